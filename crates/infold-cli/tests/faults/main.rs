//! The state after providers fail, connections break, and processes are killed or told to stop.

mod run;
mod retry;
mod cancel;
mod full;
mod canary;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use infold_log::{EventId, Floor, Role, Seq, View};
use infold_store::{Contexts, Durability, Log, Metadata, What};
use infold_testkit::Server;
use infold_wire::{Message, Wire, append_words};
use serde_json::Value;
use tempfile::TempDir;
use uuid::Uuid;

/// A key that must be found nowhere.
const KEY: &str = "sk-canary-0b5e7d1c9f3a4e62a8d4";

/// The variable it comes from.
const VARIABLE: &str = "INFOLD_TEST_KEY";

/// The providers of the configuration, by the wire they speak.
const PROVIDERS: [(&str, &str, Wire); 5] = [
    ("by-chat", "openai", Wire::Chat),
    ("by-responses", "responses", Wire::Responses),
    ("by-anthropic", "anthropic", Wire::Anthropic),
    ("by-gemini", "gemini", Wire::Gemini),
    ("by-ollama", "ollama", Wire::Ollama),
];

/// A directory with contexts, a configuration, and everything that was ever printed.
struct World {
    root: TempDir,
    heard: Mutex<fs::File>,
}

/// The end of a command.
struct Ran {
    /// `None` if it was killed.
    code: Option<i32>,
    out: String,
    err: String,
}

impl World {
    fn new() -> World {
        let root = tempfile::tempdir().expect("a directory");
        fs::create_dir(root.path().join("tmp")).expect("a directory");
        let heard = fs::File::create(root.path().join("heard")).expect("a file");
        World {
            root,
            heard: Mutex::new(heard),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Writes a configuration whose providers are all this server, named after `lane`.
    fn configure(&self, lane: &str, server: &Server) {
        let mut text = format!("llm:\n  provider: {}\n", PROVIDERS[0].0);
        for (name, api, _) in PROVIDERS {
            let url = server.url();
            text += &format!("  {name}:\n    provider: {api}\n    model: scripted\n");
            text += &format!("    api_key: ${{{VARIABLE}}}\n    base_url: {url}\n");
        }
        fs::write(self.path(&format!("{lane}.yaml")), text).expect("a file");
    }

    fn contexts(&self) -> Contexts {
        Contexts::new(self.path("contexts"), Durability::Never)
    }

    /// A task that speaks a wire.
    fn task(&self, wire: Wire) -> Uuid {
        let (provider, ..) = PROVIDERS[wire as usize];
        let made = self.contexts().create(Metadata {
            llm_provider: Some(provider.to_owned()),
            model: Some("scripted".to_owned()),
            wire: Some(wire.name().to_owned()),
            ..Metadata::default()
        });
        made.expect("a task")
    }

    fn prepare(&self, lane: &str, command: &mut Command) {
        command
            .env_clear()
            .env("INFOLD_SUMMARIZER", "extractive")
            .env("INFOLD_CONTEXTS", self.path("contexts"))
            .env("INFOLD_CONFIG", self.path(&format!("{lane}.yaml")))
            .env("TMPDIR", self.path("tmp"))
            .env("RUST_BACKTRACE", "full")
            .env(VARIABLE, KEY)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
    }

    fn command(&self, lane: &str, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_infold"));
        self.prepare(lane, &mut command);
        command.args(args);
        command
    }

    fn run(&self, lane: &str, args: &[&str]) -> Ran {
        let ended = self.command(lane, args).output();
        self.ended(ended.expect("infold runs"))
    }

    /// Waits for a command and returns its output.
    fn wait(&self, child: Child) -> Ran {
        self.ended(child.wait_with_output().expect("it has ended"))
    }

    fn ended(&self, output: Output) -> Ran {
        let mut heard = self.heard.lock().expect("nobody else fails");
        let kept = heard
            .write_all(&output.stdout)
            .and_then(|()| heard.write_all(&output.stderr));
        kept.expect("what was printed is kept");
        Ran {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    fn read(&self, task: Uuid) -> Log {
        self.contexts().read(task).expect("a reader")
    }

    /// Returns the problems that `verify` finds in a task.
    fn problems(&self, lane: &str, task: Uuid) -> String {
        let ran = self.run(lane, &["verify", &task.to_string(), "--json"]);
        assert!(matches!(ran.code, Some(0 | 1)), "verify: {}", ran.err);
        let problems = ran.object()["problems"].clone();
        if problems.as_array().is_some_and(Vec::is_empty) {
            String::new()
        } else {
            problems.to_string()
        }
    }

    /// Returns whether the last request of a task is still stored.
    fn has_request(&self, task: Uuid) -> bool {
        self.read(task).dir().join("request.json").exists()
    }

    /// Returns whether a recorded reply was not printed yet.
    fn has_untold(&self, task: Uuid) -> bool {
        self.read(task).dir().join("reply.json").exists()
    }
}

impl Ran {
    /// The object it printed, or nothing.
    fn object(&self) -> Value {
        let line = self.out.lines().next().unwrap_or_default();
        serde_json::from_str(line).unwrap_or_default()
    }
}

/// The messages of a task: who spoke, and the words.
fn messages(log: &Log) -> Vec<(Role, String)> {
    let last = log.state().last_seq().map_or(0, Seq::get);
    let seqs = (1..=last).filter_map(Seq::new);
    let all = seqs.map(|seq| {
        let bytes = log.message(seq).expect("a message");
        let message = Message::parse(&bytes).expect("it can be read");
        let mut text = String::new();
        append_words(&message, &mut text);
        (message.role(), text)
    });
    all.collect()
}

/// The errors of the calls that failed.
fn failures(log: &Log) -> Vec<String> {
    let events = (1..=log.state().at().event).filter_map(EventId::new);
    let failed = events.filter_map(|id| match log.event(id).expect("an event").what {
        What::Failure(failure) => Some(failure.error),
        _ => None,
    });
    failed.collect()
}

/// Checks that the view keeps its rules.
fn is_valid(log: &Log) {
    let shown = log.state().shown();
    let view = View::of(shown, log).expect("a view");
    let verdict = log.check(&view, &Floor::of(shown, log).expect("a floor"));
    assert_eq!(verdict.expect("a verdict").faults, []);
}

/// Waits until something holds.
fn until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_micros(300));
    }
}

/// Sends a signal to a process that the test started.
fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill")
        .args([&format!("-{name}"), &child.id().to_string()])
        .status();
    assert!(sent.expect("kill runs").success());
}

/// Returns all files below a directory with one of these texts.
fn holding(dir: &Path, texts: &[String]) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(holding(&path, texts));
            continue;
        }
        let bytes = fs::read(&path).expect("a file");
        let held = |text: &&String| {
            let text = text.as_bytes();
            bytes.windows(text.len()).any(|window| window == text)
        };
        found.extend(
            texts
                .iter()
                .filter(held)
                .map(|text| (path.clone(), text.clone())),
        );
    }
    found
}

/// Returns the forms of a secret in headers: unchanged, and in base64 at each of three offsets.
fn forms(secret: &str) -> Vec<String> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let shifted = (0..3).map(|skip| {
        let groups = secret.as_bytes()[skip..].chunks_exact(3);
        let digits = groups.flat_map(|group| {
            let bits = group
                .iter()
                .fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
            [18, 12, 6, 0].map(|by| char::from(DIGITS[(bits >> by & 63) as usize]))
        });
        digits.collect()
    });
    shifted.chain([secret.to_owned()]).collect()
}

/// Numbers that look drawn by lot and are the same each time (xorshift).
struct Lot(u64);

impl Lot {
    fn new(seed: u64) -> Lot {
        // Scattered, so that seeds next to each other give other runs.
        Lot(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    /// Returns true in `percent` of a hundred cases.
    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}
