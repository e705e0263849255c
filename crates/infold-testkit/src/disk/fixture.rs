//! The store that runs begin with: small tasks of every kind, made by the command under test itself.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::holdings::Holdings;
use super::names::Names;
use super::proxy::{DiskProxy, ProxyConversation};
use super::sandbox::{Program, Sandbox, copy_tree};
use super::shim::Shim;
use crate::{Model, Script, Server};

/// A store, what it was made with, and what can be given to commands.
#[derive(Debug)]
pub(crate) struct Fixture {
    pub(crate) program: Program,
    upstream: Server,
    inputs: TempDir,
    sandbox: Sandbox,
    names: Names,
    /// The conversation behind the task `proxied`.
    talk: ProxyConversation,
    /// The same store, damaged in ways that can be mended.
    damaged: Sandbox,
}

/// How the store is made.
const STORE: [&str; 31] = [
    "main: task new --model gpt-4o",
    "task push @main =chat.jsonl",
    "condense @main 3..6 --text =summary.txt",
    "mask @main 10",
    "pin @main 13",
    "pin @main --note careful",
    "task tool @main < record.json",
    "undone: task new",
    "task push @undone =short.jsonl",
    "truncate @undone",
    "undo @undone",
    "fork: fork @main",
    "task push @fork =turn.jsonl",
    "ended: task new",
    "task push @ended =turn.jsonl",
    "task complete @ended",
    "failed: task new",
    "task push @failed =turn.jsonl",
    "task fail @failed --error tired",
    "imported: import =transcript.json",
    "asked: ask new hello",
    "waiting: task new",
    "task push @waiting =question.jsonl",
    "secret: task new",
    "task push @secret =secret.jsonl",
    "mask @secret 3",
    "condense @secret 2..4 --text =secret.txt",
    "task tool @secret < secret-record.json",
    "leaf: fork @secret",
    "task push @leaf =turn.jsonl",
    "condense @leaf 5..6 --text =secret.txt",
];

/// The secret that must be gone from the task `secret`, and from everything derived from it, once it is redacted.
pub(crate) const SECRET: &str = "wyvern7741";

/// The size of a message that makes a push larger than one write.
const LONG_MESSAGE_BYTES: usize = 700 << 10;

impl Fixture {
    /// Makes one with this binary.
    pub(crate) fn new(binary: &Path) -> Result<Fixture, String> {
        let mut fixture = Fixture::empty(binary)?;
        fixture.fill()?;
        fixture.damage().map_err(|error| error.to_string())?;
        Ok(fixture)
    }

    /// Returns a fixture without tasks.
    pub(crate) fn empty(binary: &Path) -> Result<Fixture, String> {
        let inputs = tempfile::tempdir().map_err(|error| error.to_string())?;
        let upstream = Server::start(Script::new().model(Model {
            strict: false,
            ..Model::default()
        }));
        let config = inputs.path().join("config.yaml");
        let llm = format!(
            "llm: {{here: {{provider: openai, model: m, base_url: '{}', context_length: 32000}}}}\n",
            upstream.url()
        );
        fs::write(&config, llm).map_err(|error| error.to_string())?;
        let binary = binary
            .canonicalize()
            .map_err(|error| format!("{}: {error}", binary.display()))?;
        let program = Program {
            binary,
            shim: Shim::build()?,
            config,
        };
        let fixture = Fixture {
            program,
            upstream,
            sandbox: Sandbox::new().map_err(|error| error.to_string())?,
            names: Names::new(inputs.path()),
            inputs,
            talk: ProxyConversation::new("harbours"),
            damaged: Sandbox::new().map_err(|error| error.to_string())?,
        };
        fixture.write_inputs().map_err(|error| error.to_string())?;
        Ok(fixture)
    }

    pub(crate) fn contexts(&self) -> PathBuf {
        self.sandbox.contexts()
    }

    pub(crate) fn holdings(&self) -> Holdings {
        Holdings::read(&self.contexts())
    }

    pub(crate) fn damaged_contexts(&self) -> PathBuf {
        self.damaged.contexts()
    }

    pub(crate) fn talk(&self) -> &ProxyConversation {
        &self.talk
    }

    /// Returns whether a push may have a key that makes doing it again harmless.
    pub(crate) fn has_keys(&self) -> bool {
        let help = self.sandbox.run(&self.program, &["task", "push", "--help"]);
        String::from_utf8_lossy(&help.out).contains("--key")
    }

    pub(crate) fn upstream(&self) -> String {
        self.upstream.url()
    }

    /// Its tasks and inputs by name.
    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// Where inputs are.
    pub(crate) fn inputs(&self) -> &Path {
        self.inputs.path()
    }

    /// The id of a task, by its name here.
    pub(crate) fn task(&self, name: &str) -> &str {
        self.names.task(name)
    }

    fn write_inputs(&self) -> std::io::Result<()> {
        let lines = |messages: &[Value]| -> String {
            messages
                .iter()
                .map(|message| format!("{message}\n"))
                .collect()
        };
        let long = json!({"role": "user", "content": long_text()});
        let files = [
            ("chat.jsonl", lines(&chat())),
            ("short.jsonl", lines(&chat()[..8])),
            ("turn.jsonl", lines(&turn())),
            ("question.jsonl", lines(&turn()[..1])),
            ("long.jsonl", lines(&vec![long; 7])),
            ("large.jsonl", lines(&large())),
            ("blocks.jsonl", lines(&blocks())),
            ("transcript.json", transcript().to_string()),
            (
                "record.json",
                json!({"tool": "ls", "args": {}, "result": "a b", "duration_ms": 3}).to_string(),
            ),
            ("secret.jsonl", lines(&secret())),
            (
                "secret-record.json",
                json!({"tool": "login", "args": {"code": SECRET}, "result": "in"}).to_string(),
            ),
            ("secret.txt", format!("The harbour code {SECRET} was used.")),
            (
                "summary.txt",
                "The parser was read and put right.".to_owned(),
            ),
        ];
        files
            .iter()
            .try_for_each(|(name, text)| fs::write(self.inputs.path().join(name), text))
    }

    fn fill(&mut self) -> Result<(), String> {
        for line in STORE {
            self.names
                .perform(&self.program, &self.sandbox, line, None)?;
        }
        self.proxied()
    }

    /// A task that a client made through the proxy.
    fn proxied(&mut self) -> Result<(), String> {
        let started = DiskProxy::start(&self.sandbox, &self.program, &self.upstream(), None);
        let proxy = started.map_err(|ran| format!("infold serve: {}", ran.ending()))?;
        self.talk.turn(proxy.port, "which berth is free?")?;
        self.talk.turn(proxy.port, "and what does it cost?")?;
        let ran = proxy.stop(&self.sandbox);
        if !ran.is_ok() {
            return Err(format!("infold serve: {}", ran.ending()));
        }
        let task = self.talk.task.as_deref();
        let task = task.ok_or("infold serve: the reply names no task")?;
        self.names.keep("proxied", task);
        Ok(())
    }

    /// Tears the end of one log, zeroes a line in the middle of another, and takes derived files away.
    fn damage(&self) -> std::io::Result<()> {
        let contexts = self.damaged.contexts();
        copy_tree(&self.contexts(), &contexts)?;
        let holdings = self.holdings();
        let file = |task: &str, name: &str| holdings.dir(&contexts, self.task(task)).join(name);
        let torn = file("undone", "messages.jsonl");
        let mut bytes = fs::read(&torn)?;
        bytes.extend(br#"{"role":"user","content":"half a mes"#);
        fs::write(&torn, bytes)?;
        let zeroed = file("imported", "messages.jsonl");
        let mut bytes = fs::read(&zeroed)?;
        let second = bytes
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        bytes[second..second + 20].fill(0);
        fs::write(&zeroed, bytes)?;
        fs::remove_file(file("main", "messages.idx"))?;
        fs::remove_file(file("fork", "current.jsonl"))
    }
}

/// Seventeen messages with tool calls: 3..6 and 9..12 are rounds with results.
fn chat() -> Vec<Value> {
    let mut messages = vec![json!({"role": "system", "content": "You are careful."})];
    for (turn, calls) in [2, 2, 1].into_iter().enumerate() {
        messages
            .push(json!({"role": "user", "content": format!("look at part {turn} of the parser")}));
        for call in 0..calls {
            let id = format!("call_{turn}_{call}");
            let arguments = format!(r#"{{"path":"src/part_{turn}_{call}.rs"}}"#);
            messages.push(json!({"role": "assistant", "content": null, "tool_calls": [
                {"id": id, "type": "function", "function": {"name": "read", "arguments": arguments}}]}));
            let text = format!("fn part_{turn}_{call}() {{ todo!() }}\n").repeat(12);
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": text}));
        }
        messages.push(
            json!({"role": "assistant", "content": format!("Part {turn} parses nothing yet.")}),
        );
    }
    messages
}

/// A conversation that holds a secret.
fn secret() -> Vec<Value> {
    let arguments = json!({"code": SECRET}).to_string();
    vec![
        json!({"role": "user", "content": format!("the harbour code is {SECRET}, log in")}),
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_s", "type": "function", "function": {"name": "login", "arguments": arguments}}]}),
        json!({"role": "tool", "tool_call_id": "call_s", "content": format!("welcome {SECRET}. ").repeat(9)}),
        json!({"role": "assistant", "content": "You are in."}),
        json!({"role": "user", "content": "good"}),
        json!({"role": "assistant", "content": "What next?"}),
    ]
}

/// A question and its answer.
fn turn() -> Vec<Value> {
    vec![
        json!({"role": "user", "content": "what is left to do?"}),
        json!({"role": "assistant", "content": "Two of the parts."}),
    ]
}

/// Answers of several megabytes, one after the other.
fn large() -> Vec<Value> {
    let mut messages = vec![json!({"role": "user", "content": "read all of it"})];
    for turn in 0..8 {
        messages.push(json!({"role": "assistant", "content": long_text()}));
        messages.push(json!({"role": "user", "content": format!("go on with {turn}")}));
    }
    messages.push(json!({"role": "assistant", "content": "That was all."}));
    messages
}

fn long_text() -> String {
    let words = "seven words that are counted rather quickly ";
    words.repeat(LONG_MESSAGE_BYTES / words.len())
}

/// A turn whose messages are several blocks of a disk long.
fn blocks() -> Vec<Value> {
    let text = |word: &str| format!("{word} and more of it, until it is long. ").repeat(300);
    vec![
        json!({"role": "user", "content": text("question")}),
        json!({"role": "assistant", "content": text("answer")}),
    ]
}

fn transcript() -> Value {
    json!({"system": "You are brief.", "messages": [
        {"role": "user", "content": "why is the sky blue?"},
        {"role": "assistant", "content": [{"type": "text", "text": "Rayleigh scattering."}]},
        {"role": "user", "content": "and at night?"},
        {"role": "assistant", "content": [{"type": "text", "text": "There is little light to scatter."}]},
    ]})
}
