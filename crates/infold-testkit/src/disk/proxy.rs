//! `infold serve` in a sandbox, and a client that talks through it.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::http::{self, HttpResponse};
use super::sandbox::{FinishedCommand, Program, Sandbox, TIME_LIMIT, wait};
use super::shim::Mode;

/// A server that listens.
#[derive(Debug)]
pub(crate) struct DiskProxy {
    child: Child,
    pub(crate) port: u16,
}

/// A conversation as its client keeps it.
#[derive(Clone, Debug)]
pub(crate) struct ProxyConversation {
    pub(crate) history: Vec<Value>,
    /// The task that the last reply was recorded in.
    pub(crate) task: Option<String>,
}

impl DiskProxy {
    /// Starts one; if it does not, says how it ended.
    pub(crate) fn start(
        sandbox: &Sandbox,
        program: &Program,
        upstream: &str,
        mode: Option<Mode>,
    ) -> Result<DiskProxy, FinishedCommand> {
        let mut command = sandbox.command(program, mode);
        command.args(["--json", "serve", "--port", "0", "--trace", "json"]);
        command.args(["--upstream", upstream]);
        let failed = |error: std::io::Error| FinishedCommand {
            err: format!("not started: {error}"),
            ..FinishedCommand::default()
        };
        let file = |name: &str| File::create(sandbox.beside(name)).map_err(failed);
        let spawned = command
            .stdin(Stdio::null())
            .stdout(file("ready")?)
            .stderr(file("traces")?)
            .spawn();
        let mut child = spawned.map_err(failed)?;
        match await_port(&mut child, &sandbox.beside("ready")) {
            Some(port) => Ok(DiskProxy { child, port }),
            None => Err(ended(&mut child, sandbox)),
        }
    }

    /// Tells it to stop, and waits until it has.
    pub(crate) fn stop(mut self, sandbox: &Sandbox) -> FinishedCommand {
        if let Some(id) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            // A process that has ended already is waited for as well.
            let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        }
        ended(&mut self.child, sandbox)
    }
}

/// Waits for the line that says where a server listens, as long as it runs.
fn await_port(child: &mut Child, ready: &Path) -> Option<u16> {
    let begin = Instant::now();
    loop {
        let is_running = matches!(child.try_wait(), Ok(None));
        let text = fs::read_to_string(ready).unwrap_or_default();
        if let Some((line, _)) = text.split_once('\n') {
            let line: Value = serde_json::from_str(line).unwrap_or_default();
            return line["port"].as_u64()?.try_into().ok();
        }
        if !is_running || begin.elapsed() > TIME_LIMIT {
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

impl Drop for DiskProxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ended(child: &mut Child, sandbox: &Sandbox) -> FinishedCommand {
    use std::os::unix::process::ExitStatusExt as _;
    let status = wait(child, TIME_LIMIT);
    let err = fs::read(sandbox.beside("traces")).unwrap_or_default();
    let mut ran = FinishedCommand {
        err: String::from_utf8_lossy(&err).into_owned(),
        ..FinishedCommand::default()
    };
    match status {
        Ok(Some(status)) => (ran.code, ran.signal) = (status.code(), status.signal()),
        _ => ran.is_late = true,
    }
    ran
}

impl ProxyConversation {
    /// Returns a conversation with its own instructions, so that it equals no other.
    pub(crate) fn new(about: &str) -> ProxyConversation {
        ProxyConversation {
            history: vec![json!({"role": "system", "content": format!("You know {about}.")})],
            task: None,
        }
    }

    /// Sends a message and reads the reply; a client does not keep an incomplete reply.
    pub(crate) fn turn(&mut self, port: u16, text: &str) -> Result<(), String> {
        let asked = self.asked(text);
        let body = request(&asked).to_string();
        let answer = http::call(port, "POST", "/v1/chat/completions", body.as_bytes());
        let answer = answer.map_err(|error| format!("no answer: {error}"))?;
        self.hear(asked, &answer)
    }

    /// The history with one more question.
    fn asked(&self, text: &str) -> Vec<Value> {
        let mut asked = self.history.clone();
        asked.push(json!({"role": "user", "content": text}));
        asked
    }

    fn hear(&mut self, asked: Vec<Value>, answer: &HttpResponse) -> Result<(), String> {
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let message = &body["choices"][0]["message"];
        if answer.status != 200 || !message.is_object() {
            let text = String::from_utf8_lossy(&answer.body);
            return Err(format!("status {}: {text}", answer.status));
        }
        self.history = asked;
        self.history.push(message.clone());
        self.task = answer.header("x-infold-task").map(str::to_owned);
        Ok(())
    }

    /// Returns the messages without the instructions.
    pub(crate) fn said(&self) -> Vec<String> {
        let said = self
            .history
            .iter()
            .filter(|message| message["role"] != "system");
        said.map(content).collect()
    }
}

fn request(messages: &[Value]) -> Value {
    let tool = json!({"type": "function", "function": {"name": "ls", "description": "lists",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}});
    json!({"model": "gpt-4o", "messages": messages, "tools": [tool]})
}

/// The text of a message.
pub(crate) fn content(message: &Value) -> String {
    message["content"].as_str().unwrap_or_default().to_owned()
}
