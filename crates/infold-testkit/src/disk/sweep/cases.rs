//! The commands that faults are injected into.

use std::path::PathBuf;

use serde_json::Value;

use crate::disk::fixture::Fixture;
use crate::disk::holdings::Task;
use crate::disk::sandbox::{Ran, Sandbox};
use crate::disk::shim::Mode;

/// A command and what it promises.
#[derive(Clone, Debug)]
pub(crate) struct CommandCase {
    pub(crate) name: &'static str,
    line: String,
    /// The file given as standard input.
    input: Option<&'static str>,
    /// The task that it is about.
    pub(crate) task: Option<&'static str>,
    pub(crate) nature: Nature,
    /// Nothing of the secret may be left when it took effect.
    pub(crate) has_secret: bool,
}

/// The effect of a command on the log of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nature {
    /// Nothing.
    Reads,
    /// All of what it does, or nothing.
    Atomic,
    /// The same, and doing it again changes nothing more.
    Repeatable,
    /// One thing after the other: it goes on where it was interrupted.
    Steps,
    /// Takes what messages say out of logs, all of it or nothing.
    Rewrites,
    /// Takes whole tasks away, one after the other.
    Removes,
    /// Mends a damaged store.
    Repairs,
    /// Serves clients until it is stopped.
    Serves,
}

/// Where a command writes that is told to write to a file, below the disk.
pub(super) const OUTPUT: &str = "tmp/export.jsonl";

/// The events that change what is shown.
const STEPS: [&str; 7] = ["fold", "unfold", "rewind", "undo", "redo", "pin", "unpin"];

impl Nature {
    /// Returns the parts of tasks that show whether a command took effect.
    pub(crate) fn visible(self, tasks: &[(String, Task)]) -> Vec<(String, Task)> {
        let mut tasks = tasks.to_vec();
        for (_, task) in &mut tasks {
            match self {
                // The directory of a task that ended is moved afterwards, by any command.
                Nature::Repeatable => task.place.clear(),
                // Usage and failure events are not effects.
                Nature::Steps => task.events.retain(|line| is_step(line)),
                _ => {}
            }
        }
        tasks
    }

    /// Returns the parts of tasks that are equal whether a command succeeded at once or at the second attempt.
    pub(crate) fn comparable(self, tasks: &[(String, Task)]) -> Vec<(String, Task)> {
        let mut tasks = tasks.to_vec();
        for (_, task) in &mut tasks {
            match self {
                Nature::Steps => task.events.clear(),
                // Notes in place of damaged lines name files by the time.
                Nature::Repairs => {
                    let lines = task.messages.iter_mut().chain(&mut task.events);
                    lines.for_each(String::clear);
                }
                _ => {}
            }
        }
        tasks
    }
}

fn is_step(line: &str) -> bool {
    let event: Value = serde_json::from_str(line).unwrap_or_default();
    event["type"]
        .as_str()
        .is_some_and(|name| STEPS.contains(&name))
}

impl CommandCase {
    fn new(name: &'static str, nature: Nature, task: &'static str, line: &str) -> CommandCase {
        CommandCase {
            name,
            line: line.to_owned(),
            input: None,
            task: (!task.is_empty()).then_some(task),
            nature,
            has_secret: false,
        }
    }

    /// The store that it works on.
    pub(crate) fn contexts(&self, fixture: &Fixture) -> PathBuf {
        match self.nature {
            Nature::Repairs => fixture.damaged_contexts(),
            _ => fixture.contexts(),
        }
    }

    pub(crate) fn run(&self, fixture: &Fixture, sandbox: &Sandbox, mode: Option<Mode>) -> Ran {
        let input = self.input.map(|name| fixture.names().input(name));
        let words = fixture.names().words(&self.line);
        sandbox.run_with(&fixture.program, &words, input.as_deref(), mode)
    }

    /// Goes on where it was interrupted, once what it was given is kept.
    pub(crate) fn resume(&self, fixture: &Fixture, sandbox: &Sandbox) -> Ran {
        match (self.name, self.task) {
            ("ask", Some(task)) => sandbox.run(
                &fixture.program,
                &fixture.names().words(&format!("ask @{task}")),
            ),
            _ => self.run(fixture, sandbox, None),
        }
    }
}

/// Every command that writes to a store or reads one.
pub(crate) fn all(fixture: &Fixture) -> Vec<CommandCase> {
    use Nature::{Atomic, Reads, Removes, Repairs, Repeatable, Rewrites, Serves, Steps};
    let mut cases = vec![
        CommandCase::new("new", Atomic, "", "task new --model gpt-4o --user ada"),
        CommandCase::new("push", Atomic, "main", "task push @main =turn.jsonl"),
        CommandCase::new(
            "push-question",
            Atomic,
            "main",
            "task push @main =question.jsonl",
        ),
        CommandCase::new("push-fork", Atomic, "fork", "task push @fork =turn.jsonl"),
        CommandCase::new(
            "push-long",
            Atomic,
            "undone",
            "task push @undone =long.jsonl",
        ),
        CommandCase::new(
            "push-always",
            Atomic,
            "main",
            "task push @main =turn.jsonl --durability always",
        ),
        CommandCase {
            input: Some("record.json"),
            ..CommandCase::new("tool", Atomic, "main", "task tool @main")
        },
        CommandCase::new("complete", Repeatable, "asked", "task complete @asked"),
        CommandCase::new("complete-parent", Repeatable, "main", "task complete @main"),
        CommandCase::new(
            "fail",
            Repeatable,
            "asked",
            "task fail @asked --error tired",
        ),
        CommandCase::new("clean", Removes, "", "task clean --older-than 0s"),
        CommandCase::new("import", Atomic, "", "import =transcript.json"),
        CommandCase::new("export", Reads, "main", "export @main"),
        CommandCase::new(
            "export-out",
            Reads,
            "fork",
            "export @fork --out disk/tmp/export.jsonl",
        ),
        CommandCase::new("export-imported", Reads, "imported", "export @imported"),
        CommandCase::new(
            "condense",
            Atomic,
            "main",
            "condense @main 8..12 --text =summary.txt",
        ),
        CommandCase::new("condense-written", Atomic, "main", "condense @main 8..12"),
        CommandCase::new("truncate", Atomic, "main", "truncate @main"),
        CommandCase::new("mask", Atomic, "main", "mask @main 16"),
        CommandCase::new("unfold", Atomic, "main", "unfold @main e6"),
        CommandCase::new("rewind", Atomic, "main", "rewind @main --to 8"),
        CommandCase::new("undo", Atomic, "main", "undo @main"),
        CommandCase::new("redo", Atomic, "undone", "redo @undone"),
        CommandCase::new("fork", Atomic, "main", "fork @main"),
        CommandCase::new("fork-at", Atomic, "fork", "fork @fork --at 8"),
        CommandCase::new("pin", Atomic, "main", "pin @main 8"),
        CommandCase::new("note", Atomic, "main", "pin @main --note gently"),
        CommandCase::new("unpin", Atomic, "main", "unpin @main 13"),
        CommandCase::new("manage", Steps, "main", "manage @main --force --window 4k"),
        CommandCase::new("fold", Reads, "", "fold =chat.jsonl --window 1k"),
        CommandCase::new("ask", Steps, "asked", "ask @asked and-then?"),
        CommandCase::new("ask-new", Steps, "", "ask new hello"),
        CommandCase::new("send", Steps, "waiting", "send @waiting"),
        CommandCase::new("repair", Repairs, "", "doctor --repair"),
        CommandCase::new("doctor", Reads, "", "doctor"),
        CommandCase::new("verify", Reads, "", "verify"),
        CommandCase::new("view", Reads, "main", "view @main"),
        CommandCase::new("view-raw", Reads, "fork", "view @fork --raw"),
        CommandCase::new("view-at", Reads, "main", "view @main --at 8"),
        CommandCase::new("log", Reads, "fork", "log @fork"),
        CommandCase::new("folds", Reads, "main", "folds @main"),
        CommandCase::new("recall", Reads, "main", "recall @main 3..6"),
        CommandCase::new("list", Reads, "", "task list"),
        CommandCase::new("show", Reads, "main", "task show @main"),
        CommandCase::new("serve", Serves, "", ""),
    ];
    let redactions = [
        ("redact", "secret", "redact @secret 1..3 --yes"),
        ("redact-leaf", "leaf", "redact @leaf 1..3 --yes"),
        (
            "redact-pattern",
            "leaf",
            "redact @leaf --pattern wyvern[0-9]+ --yes",
        ),
    ];
    for (name, task, line) in redactions {
        cases.push(CommandCase {
            has_secret: true,
            ..CommandCase::new(name, Rewrites, task, line)
        });
    }
    cases.push(CommandCase {
        has_secret: true,
        ..CommandCase::new(
            "delete",
            Removes,
            "",
            "task delete @secret --with-forks --yes",
        )
    });
    if fixture.has_keys() {
        let line = "task push @main =turn.jsonl --key once";
        cases.push(CommandCase::new("push-key", Repeatable, "main", line));
    }
    cases
}
