//! `infold serve` as a process, with clients that talk through it, and everything that goes wrong around it.

mod http;
mod talk;
mod restart;
mod upstream;
mod disk;
mod bytes;
mod steering;
mod traces;
mod crowd;

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use infold_log::{EventId, Seq};
use infold_store::{Contexts, Durability, Log, What};
use infold_testkit::Server;
use infold_wire::{Message, append_plain_text};
use serde_json::Value;
use tempfile::TempDir;
use uuid::Uuid;

/// A directory with contexts, and the server that keeps them.
struct House {
    root: TempDir,
    contexts: PathBuf,
    /// The address for requests.
    upstream: String,
    /// The window of every model, if the test sets one.
    window: Option<u64>,
    /// The limit of open files, if the test sets one.
    files: Option<u64>,
    port: u16,
    child: Option<Child>,
}

/// The end of a command.
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl House {
    /// A server that has begun to listen.
    fn open(upstream: &Server) -> House {
        House::with(upstream, None)
    }

    /// A house whose models all have this window.
    fn with(upstream: &Server, window: impl Into<Option<u64>>) -> House {
        let mut house = House::closed(&upstream.url());
        house.window = window.into();
        house.start();
        house
    }

    /// A house whose server does not run yet.
    fn closed(upstream: &str) -> House {
        let root = tempfile::tempdir().expect("a directory");
        House {
            contexts: root.path().join("contexts"),
            root,
            upstream: upstream.to_owned(),
            window: None,
            files: None,
            port: 0,
            child: None,
        }
    }

    /// Starts the server, on the port it had before.
    fn start(&mut self) {
        let begin = Instant::now();
        let (child, line) = loop {
            let mut child = self.spawn();
            let mut line = String::new();
            let stdout = child.stdout.take().expect("a pipe");
            // There is no other output.
            BufReader::new(stdout).read_line(&mut line).expect("a line");
            if !line.is_empty() {
                break (child, line);
            }
            child.wait().expect("it ends");
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "it does not start: {}",
                self.traces()
            );
        };
        let ready: Value = serde_json::from_str(&line).expect("an object");
        let port = ready["port"].as_u64().expect("a port");
        self.port = port.try_into().expect("a port");
        self.child = Some(child);
    }

    fn spawn(&self) -> Child {
        let traces = File::options()
            .create(true)
            .append(true)
            .open(self.root.path().join("traces"))
            .expect("a file");
        let infold = env!("CARGO_BIN_EXE_infold");
        let mut command = match self.files {
            None => Command::new(infold),
            Some(files) => {
                let mut shell = Command::new("/bin/sh");
                let limited = format!("ulimit -n {files} && exec \"$0\" \"$@\"");
                shell.args(["-c", &limited, infold]);
                shell
            }
        };
        self.prepare(&mut command);
        command
            .args(["--json", "serve", "--trace", "json"])
            .args(["--port", &self.port.to_string()])
            .args(["--upstream", &self.upstream])
            .stdout(Stdio::piped())
            .stderr(traces)
            .spawn()
            .expect("infold starts")
    }

    fn prepare(&self, command: &mut Command) {
        let tmp = self.root.path().join("tmp");
        fs::create_dir_all(&tmp).expect("a directory");
        let window = self
            .window
            .map(|window| ("INFOLD_WINDOW", window.to_string()));
        command
            .env_clear()
            .env("INFOLD_CONTEXTS", &self.contexts)
            .env("HOME", self.root.path())
            .env("TMPDIR", tmp)
            .env("NO_COLOR", "1")
            // No model writes summaries.
            .env("INFOLD_SUMMARIZER", "extractive")
            .envs(window)
            .current_dir(self.root.path())
            .stdin(Stdio::null());
    }

    /// Returns the traces that the server wrote.
    fn traces(&self) -> String {
        fs::read_to_string(self.root.path().join("traces")).unwrap_or_default()
    }

    /// Kills the server.
    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it is ours");
            child.wait().expect("it ends");
        }
    }

    /// Tells the server to stop, and waits until it has.
    fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let id = child.id().to_string();
            let sent = Command::new("kill").args(["-TERM", &id]).status();
            assert!(sent.expect("kill runs").success());
            let ended = child.wait().expect("it ends");
            assert!(ended.success(), "{ended}: {}", self.traces());
        }
    }

    /// Runs a command on the same contexts.
    fn run(&self, args: &[&str]) -> Ran {
        self.fed(args, b"")
    }

    /// The same, with standard input.
    fn fed(&self, args: &[&str], input: &[u8]) -> Ran {
        let mut command = self.command(args);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
        // A command that needs no input does not read it.
        let _ = child.stdin.take().expect("a pipe").write_all(input);
        Ran::from(child.wait_with_output().expect("infold runs"))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_infold"));
        self.prepare(&mut command);
        command
            .arg("--json")
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a command that must succeed; returns the objects it prints.
    fn ok(&self, args: &[&str]) -> Vec<Value> {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {}{}", ran.out, ran.err);
        ran.objects()
    }

    /// Returns all tasks.
    fn tasks(&self) -> Vec<Uuid> {
        self.store().tasks().expect("a list")
    }

    fn store(&self) -> Contexts {
        Contexts::new(&self.contexts, Durability::Never)
    }

    fn log(&self, task: Uuid) -> Log {
        self.store().read(task).expect("a reader")
    }

    /// Returns the messages on the path of a task, in order.
    fn said(&self, task: Uuid) -> Vec<String> {
        let log = self.log(task);
        let path = log.state().shown().path();
        let seqs = path.iter().flat_map(|run| run.seqs());
        seqs.map(|seq| words(&log.message(seq).expect("a message")))
            .collect()
    }

    /// Returns the number of messages in the log of a task, visible or not.
    fn length(&self, task: Uuid) -> u64 {
        self.log(task).state().last_seq().map_or(0, Seq::get)
    }

    /// Returns the errors of a task's exchanges, from `infold log`.
    fn failures(&self, task: Uuid) -> Vec<String> {
        let log = self.log(task);
        let events = (1..=log.state().at().event).filter_map(EventId::new);
        let failed = events.filter_map(|id| match log.event(id).expect("an event").what {
            What::Failure(failure) => Some(failure.error),
            _ => None,
        });
        failed.collect()
    }

    /// Waits until `count` exchanges of a task have failed, and returns the errors.
    fn failed(&self, task: Uuid, count: usize) -> Vec<String> {
        until("failures are recorded", || {
            self.failures(task).len() >= count
        });
        self.failures(task)
    }

    /// Checks that `verify` finds nothing wrong with a task.
    fn is_well(&self, task: Uuid) {
        let ran = self.run(&["verify", &task.to_string()]);
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
        let problems = &ran.objects()[0]["problems"];
        assert_eq!(problems.as_array().map(Vec::len), Some(0), "{problems}");
    }

    /// A number that the server counts.
    fn counted(&self, what: &str) -> u64 {
        let answer = http::get(self.port, "/metrics").expect("an answer");
        let text = answer.text();
        let line = text.lines().filter(|line| line.starts_with(what));
        let numbers = line.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        numbers.sum()
    }
}

impl Drop for House {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            let traces = self.traces();
            let lines = traces.lines().filter(|line| !line.contains("\"INFO\""));
            let last: Vec<&str> = lines.rev().take(12).collect();
            eprintln!("the server told, newest first:\n{}", last.join("\n"));
        }
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Ran {
    fn objects(&self) -> Vec<Value> {
        let lines = self.out.lines();
        let object = |line| serde_json::from_str(line).expect("each line is JSON");
        lines.map(object).collect()
    }
}

/// Returns the text of a message.
fn words(bytes: &[u8]) -> String {
    let message = Message::parse(bytes).expect("it can be read");
    let mut text = String::new();
    append_plain_text(&message, &mut text);
    text.trim().to_owned()
}

/// Waits until something holds.
fn until(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
