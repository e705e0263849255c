//! The state after the process is killed, the disk is full, or two processes write at once.

mod kill;
mod two;
mod full;
mod blocks;
mod limit;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use infold_log::{Floor, Seq, View};
use infold_store::{Contexts, Durability, Log};
use serde_json::Value;
use tempfile::TempDir;
use uuid::Uuid;

/// A contexts directory and the command to work on it.
struct World {
    root: TempDir,
}

/// The end of a command.
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl World {
    fn new() -> World {
        let root = tempfile::tempdir().expect("a directory");
        World { root }
    }

    fn path(&self) -> PathBuf {
        self.root.path().join("contexts")
    }

    fn contexts(&self) -> Contexts {
        Contexts::new(self.path(), Durability::Never)
    }

    /// Writes a file that a command can read.
    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.root.path().join(name);
        fs::write(&path, bytes).expect("a file");
        path
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_infold"));
        self.prepare(&mut command);
        command.arg("--json").args(args);
        command
    }

    fn prepare(&self, command: &mut Command) {
        command
            .env("INFOLD_CONTEXTS", self.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
    }

    fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().expect("infold runs"))
    }

    /// Runs a command that must succeed; returns the object it prints.
    fn ok(&self, args: &[&str]) -> Value {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {}{}", ran.out, ran.err);
        ran.object()
    }

    fn task(&self) -> Uuid {
        id(&self.ok(&["task", "new"]))
    }

    /// Returns the problems that `verify` finds in a task.
    fn problems(&self, task: Uuid) -> Vec<String> {
        let ran = self.run(&["verify", &task.to_string()]);
        assert!(matches!(ran.code, Some(0 | 1)), "verify: {}", ran.err);
        let object = ran.object();
        let problems = object["problems"].as_array().expect("a list").iter();
        problems
            .map(|problem| problem.as_str().expect("a text").to_owned())
            .collect()
    }

    /// The rows of the registry: status by task.
    fn list(&self) -> BTreeMap<Uuid, String> {
        let ran = self.run(&["task", "list"]);
        assert_eq!(ran.code, Some(0), "task list: {}", ran.err);
        let rows = ran.out.lines().map(|line| {
            let row: Value = serde_json::from_str(line).expect("an object");
            (
                id(&row),
                row["status"].as_str().expect("a status").to_owned(),
            )
        });
        rows.collect()
    }

    fn read(&self, task: Uuid) -> Log {
        self.contexts().read(task).expect("a reader")
    }
}

impl Ran {
    fn of(output: Output) -> Ran {
        Ran {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).expect("text"),
            err: String::from_utf8(output.stderr).expect("text"),
        }
    }

    /// The first object it printed, or nothing.
    fn object(&self) -> Value {
        let line = self.out.lines().next().unwrap_or_default();
        serde_json::from_str(line).unwrap_or_default()
    }
}

fn id(object: &Value) -> Uuid {
    let text = object["uuid"].as_str().expect("an id");
    text.parse().expect("a UUID")
}

/// Checks that the view keeps its rules.
fn is_valid(log: &Log) {
    let shown = log.state().shown();
    let view = View::of(shown, log).expect("a view");
    let verdict = log.check(&view, &Floor::of(shown, log).expect("a floor"));
    assert_eq!(verdict.expect("a verdict").faults, []);
}

fn message(log: &Log, number: u64) -> Vec<u8> {
    log.message(Seq::new(number).expect("counted from one"))
        .expect("a message")
}

/// Numbers that look drawn by lot and are the same each time (xorshift).
struct Lot(u64);

impl Lot {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

const DIR: &str = "INFOLD_TEST_WRITER_DIR";
const TASK: &str = "INFOLD_TEST_WRITER_TASK";
const WHEN: &str = "INFOLD_TEST_WRITER_DURABILITY";

/// Another process that writes to a task until it is killed.
struct Author {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Author {
    fn start(contexts: &Path, task: Uuid, durability: &str) -> Author {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command
            .args(["--exact", "author", "--nocapture", "--test-threads=1"])
            .envs([(DIR, contexts.as_os_str()), (WHEN, durability.as_ref())])
            .env(TASK, task.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().expect("it runs again");
        let lines = BufReader::new(child.stdout.take().expect("a pipe"));
        Author { child, lines }
    }

    /// Waits until the author has acknowledged one thing more: how far messages and events go.
    fn acknowledged(&mut self) -> Option<(u64, u64)> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).expect("its output") == 0 {
                return None;
            }
            // The harness has put its own words before the first one.
            let Some((_, numbers)) = line.split_once("acknowledged ") else {
                continue;
            };
            // An incomplete line is not an acknowledgement.
            let (seq, event) = numbers.strip_suffix('\n')?.split_once(' ')?;
            return Some((
                seq.parse().expect("a seq"),
                event.parse().expect("an event"),
            ));
        }
    }

    /// Waits for `count` acknowledgements, then kills it.
    fn kill_after(mut self, count: u32) -> Option<(u64, u64)> {
        let mut last = None;
        for _ in 0..count {
            last = self.acknowledged().or(last);
        }
        self.kill(last)
    }

    /// Kills it; returns its last acknowledgement, if that is not in `last` already.
    fn kill(mut self, mut last: Option<(u64, u64)>) -> Option<(u64, u64)> {
        self.child.kill().expect("it can be killed");
        while let Some(more) = self.acknowledged() {
            last = Some(more);
        }
        self.child.wait().expect("it has ended");
        last
    }
}

fn authored(number: u64) -> String {
    match number % 4 {
        1 => format!(r#"{{"role":"user","content":"ask {number}"}}"#),
        2 => format!(
            r#"{{"role":"assistant","tool_calls":[{{"id":"c{number}","function":{{"name":"f","arguments":"{{}}"}}}}]}}"#
        ),
        3 => format!(
            r#"{{"role":"tool","tool_call_id":"c{}","content":"{}"}}"#,
            number - 1,
            "x".repeat(number as usize % 700)
        ),
        _ => format!(r#"{{"role":"assistant","content":"done {number}"}}"#),
    }
}

/// Not a test: the program of [`Author`].
#[test]
fn author() {
    let (Ok(dir), Ok(task)) = (std::env::var(DIR), std::env::var(TASK)) else {
        return;
    };
    let durability = match std::env::var(WHEN).as_deref() {
        Ok("always") => Durability::Always,
        Ok("turn") => Durability::Turn,
        _ => Durability::Never,
    };
    let contexts = Contexts::new(dir, durability);
    let task = task.parse().expect("a UUID");
    let (mut writer, _) = contexts.write(task).expect("a writer");
    let mut out = std::io::stdout();
    loop {
        let next = writer.log().state().next_seq().get();
        match next % 13 {
            // Refusals are fine: in any case the log grows or stays.
            0 => drop(writer.truncate(0.5)),
            3 if next < 600 => drop(writer.note("mind this")),
            5 => drop(writer.undo()),
            7 => drop(writer.rewind(
                infold_log::steer::Side::To,
                infold_log::steer::Target::Message(next / 2 + 1),
            )),
            9 => drop(writer.tool(br#"{"tool":"ls","result":"x"}"#)),
            _ => {}
        }
        writer.append(&[authored(next)]).expect("a message");
        let at = writer.log().state().at();
        writeln!(out, "acknowledged {} {}", at.seq, at.event).expect("a pipe");
        out.flush().expect("a pipe");
    }
}
