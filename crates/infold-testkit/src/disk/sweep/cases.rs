//! The commands that faults are injected into.

use std::path::PathBuf;

use serde_json::Value;

use crate::disk::fixture::Fixture;
use crate::disk::holdings::Task;
use crate::disk::sandbox::{Ran, Sandbox};
use crate::disk::shim::Mode;

/// A command and what it promises.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    line: String,
    /// What it reads from standard input.
    input: Option<&'static str>,
    /// The task that it is about.
    pub(crate) task: Option<&'static str>,
    pub(crate) nature: Nature,
    /// Nothing of the secret may be left when it took effect.
    pub(crate) has_secret: bool,
}

/// What a command does to the log of a task.
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
    /// What of tasks says whether a command took effect.
    pub(crate) fn visible(self, tasks: &[(String, Task)]) -> Vec<(String, Task)> {
        let mut tasks = tasks.to_vec();
        for (_, task) in &mut tasks {
            match self {
                // A task that ended is moved afterwards, by whoever comes by.
                Nature::Repeatable => task.place.clear(),
                // What was reported or failed on the way is no effect.
                Nature::Steps => task.events.retain(|line| is_step(line)),
                _ => {}
            }
        }
        tasks
    }

    /// What of tasks is the same whether a command succeeded at once or at the second time.
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

impl Case {
    fn new(name: &'static str, nature: Nature, task: &'static str, line: &str) -> Case {
        Case {
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
pub(crate) fn all(fixture: &Fixture) -> Vec<Case> {
    use Nature::{Atomic, Reads, Removes, Repairs, Repeatable, Rewrites, Serves, Steps};
    let mut cases = vec![
        Case::new("new", Atomic, "", "task new --model gpt-4o --user ada"),
        Case::new("push", Atomic, "main", "task push @main =turn.jsonl"),
        Case::new(
            "push-question",
            Atomic,
            "main",
            "task push @main =question.jsonl",
        ),
        Case::new("push-fork", Atomic, "fork", "task push @fork =turn.jsonl"),
        Case::new(
            "push-long",
            Atomic,
            "undone",
            "task push @undone =long.jsonl",
        ),
        Case::new(
            "push-always",
            Atomic,
            "main",
            "task push @main =turn.jsonl --durability always",
        ),
        Case {
            input: Some("record.json"),
            ..Case::new("tool", Atomic, "main", "task tool @main")
        },
        Case::new("complete", Repeatable, "asked", "task complete @asked"),
        Case::new("complete-parent", Repeatable, "main", "task complete @main"),
        Case::new(
            "fail",
            Repeatable,
            "asked",
            "task fail @asked --error tired",
        ),
        Case::new("clean", Removes, "", "task clean --older-than 0s"),
        Case::new("import", Atomic, "", "import =transcript.json"),
        Case::new("export", Reads, "main", "export @main"),
        Case::new(
            "export-out",
            Reads,
            "fork",
            "export @fork --out disk/tmp/export.jsonl",
        ),
        Case::new("export-imported", Reads, "imported", "export @imported"),
        Case::new(
            "condense",
            Atomic,
            "main",
            "condense @main 8..12 --text =summary.txt",
        ),
        Case::new("condense-written", Atomic, "main", "condense @main 8..12"),
        Case::new("truncate", Atomic, "main", "truncate @main"),
        Case::new("mask", Atomic, "main", "mask @main 16"),
        Case::new("unfold", Atomic, "main", "unfold @main e6"),
        Case::new("rewind", Atomic, "main", "rewind @main --to 8"),
        Case::new("undo", Atomic, "main", "undo @main"),
        Case::new("redo", Atomic, "undone", "redo @undone"),
        Case::new("fork", Atomic, "main", "fork @main"),
        Case::new("fork-at", Atomic, "fork", "fork @fork --at 8"),
        Case::new("pin", Atomic, "main", "pin @main 8"),
        Case::new("note", Atomic, "main", "pin @main --note gently"),
        Case::new("unpin", Atomic, "main", "unpin @main 13"),
        Case::new("manage", Steps, "main", "manage @main --force --window 4k"),
        Case::new("fold", Reads, "", "fold =chat.jsonl --window 1k"),
        Case::new("ask", Steps, "asked", "ask @asked and-then?"),
        Case::new("ask-new", Steps, "", "ask new hello"),
        Case::new("send", Steps, "waiting", "send @waiting"),
        Case::new("repair", Repairs, "", "doctor --repair"),
        Case::new("doctor", Reads, "", "doctor"),
        Case::new("verify", Reads, "", "verify"),
        Case::new("view", Reads, "main", "view @main"),
        Case::new("view-raw", Reads, "fork", "view @fork --raw"),
        Case::new("view-at", Reads, "main", "view @main --at 8"),
        Case::new("log", Reads, "fork", "log @fork"),
        Case::new("folds", Reads, "main", "folds @main"),
        Case::new("recall", Reads, "main", "recall @main 3..6"),
        Case::new("list", Reads, "", "task list"),
        Case::new("show", Reads, "main", "task show @main"),
        Case::new("serve", Serves, "", ""),
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
        cases.push(Case {
            has_secret: true,
            ..Case::new(name, Rewrites, task, line)
        });
    }
    cases.push(Case {
        has_secret: true,
        ..Case::new(
            "delete",
            Removes,
            "",
            "task delete @secret --with-forks --yes",
        )
    });
    if fixture.has_keys() {
        let line = "task push @main =turn.jsonl --key once";
        cases.push(Case::new("push-key", Repeatable, "main", line));
    }
    cases
}
