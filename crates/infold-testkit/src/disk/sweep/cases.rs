//! The commands that faults are injected into.

use std::path::PathBuf;

use serde_json::Value;

use crate::disk::fixture::Fixture;
use crate::disk::holdings::LogLines;
use crate::disk::sandbox::{FinishedCommand, Sandbox};
use crate::disk::shim::Mode;
use Nature::{Atomic, Reads, Removes, Repairs, Repeatable, Rewrites, Serves, Steps};

/// A command and its guarantees.
#[derive(Clone, Debug)]
pub(crate) struct CommandCase {
    pub(crate) name: &'static str,
    line: &'static str,
    /// The file given as standard input.
    input: Option<&'static str>,
    /// The task that it is about.
    pub(crate) task: Option<&'static str>,
    pub(crate) nature: Nature,
    /// Whether it must remove all traces of the secret if it takes effect.
    pub(crate) has_secret: bool,
}

/// The effect of a command on the log of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nature {
    /// Nothing.
    Reads,
    /// It takes effect completely, or not at all.
    Atomic,
    /// The same, and doing it again changes nothing more.
    Repeatable,
    /// It has several steps, and continues where it was interrupted.
    Steps,
    /// It redacts messages in logs, completely or not at all.
    Rewrites,
    /// It removes whole tasks, one after the other.
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
    pub(crate) fn visible(self, tasks: &[(String, LogLines)]) -> Vec<(String, LogLines)> {
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
    pub(crate) fn comparable(self, tasks: &[(String, LogLines)]) -> Vec<(String, LogLines)> {
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
    /// Makes a case about the task that its line names first, if it does not remove tasks.
    fn new(name: &'static str, nature: Nature, line: &'static str) -> CommandCase {
        let mut words = line.split(' ').filter_map(|word| word.strip_prefix('@'));
        CommandCase {
            name,
            line,
            input: None,
            task: words.next().filter(|_| nature != Removes),
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

    pub(crate) fn run(
        &self,
        fixture: &Fixture,
        sandbox: &Sandbox,
        mode: Option<Mode>,
    ) -> FinishedCommand {
        let input = self.input.map(|name| fixture.names().input(name));
        let words = fixture.names().words(self.line);
        sandbox.run_with(&fixture.program, &words, input.as_deref(), mode)
    }

    /// Goes on where it was interrupted, once what it was given is kept.
    pub(crate) fn resume(&self, fixture: &Fixture, sandbox: &Sandbox) -> FinishedCommand {
        match (self.name, self.task) {
            ("ask", Some(task)) => sandbox.run(
                &fixture.program,
                &fixture.names().words(&format!("ask @{task}")),
            ),
            _ => self.run(fixture, sandbox, None),
        }
    }
}

/// Every command that writes to a store or reads one: its name, its nature, its command line.
const CASES: [(&str, Nature, &str); 49] = [
    ("new", Atomic, "task new --model gpt-4o --user ada"),
    ("push", Atomic, "task push @main =turn.jsonl"),
    ("push-question", Atomic, "task push @main =question.jsonl"),
    ("push-fork", Atomic, "task push @fork =turn.jsonl"),
    ("push-long", Atomic, "task push @undone =long.jsonl"),
    (
        "push-always",
        Atomic,
        "task push @main =turn.jsonl --durability always",
    ),
    ("tool", Atomic, "task tool @main"),
    ("complete", Repeatable, "task complete @asked"),
    ("complete-parent", Repeatable, "task complete @main"),
    ("fail", Repeatable, "task fail @asked --error tired"),
    ("clean", Removes, "task clean --older-than 0s"),
    ("import", Atomic, "import =transcript.json"),
    ("export", Reads, "export @main"),
    (
        "export-out",
        Reads,
        "export @fork --out disk/tmp/export.jsonl",
    ),
    ("export-imported", Reads, "export @imported"),
    (
        "condense",
        Atomic,
        "condense @main 8..12 --text =summary.txt",
    ),
    ("condense-written", Atomic, "condense @main 8..12"),
    ("truncate", Atomic, "truncate @main"),
    ("mask", Atomic, "mask @main 16"),
    ("unfold", Atomic, "unfold @main e6"),
    ("rewind", Atomic, "rewind @main --to 8"),
    ("undo", Atomic, "undo @main"),
    ("redo", Atomic, "redo @undone"),
    ("fork", Atomic, "fork @main"),
    ("fork-at", Atomic, "fork @fork --at 8"),
    ("pin", Atomic, "pin @main 8"),
    ("note", Atomic, "pin @main --note gently"),
    ("unpin", Atomic, "unpin @main 13"),
    ("manage", Steps, "manage @main --force --window 4k"),
    ("fold", Reads, "fold =chat.jsonl --window 1k"),
    ("ask", Steps, "ask @asked and-then?"),
    ("ask-new", Steps, "ask new hello"),
    ("send", Steps, "send @waiting"),
    ("repair", Repairs, "doctor --repair"),
    ("doctor", Reads, "doctor"),
    ("verify", Reads, "verify"),
    ("view", Reads, "view @main"),
    ("view-raw", Reads, "view @fork --raw"),
    ("view-at", Reads, "view @main --at 8"),
    ("log", Reads, "log @fork"),
    ("folds", Reads, "folds @main"),
    ("recall", Reads, "recall @main 3..6"),
    ("list", Reads, "task list"),
    ("show", Reads, "task show @main"),
    ("serve", Serves, ""),
    ("redact", Rewrites, "redact @secret 1..3 --yes"),
    ("redact-leaf", Rewrites, "redact @leaf 1..3 --yes"),
    (
        "redact-pattern",
        Rewrites,
        "redact @leaf --pattern wyvern[0-9]+ --yes",
    ),
    ("delete", Removes, "task delete @secret --with-forks --yes"),
];

/// The cases that remove a secret.
const SECRET_CASES: [&str; 4] = ["redact", "redact-leaf", "redact-pattern", "delete"];

/// Returns all cases that the binary of the fixture supports.
pub(crate) fn all(fixture: &Fixture) -> Vec<CommandCase> {
    let mut cases: Vec<CommandCase> = CASES
        .map(|(name, nature, line)| CommandCase {
            input: (name == "tool").then_some("record.json"),
            has_secret: SECRET_CASES.contains(&name),
            ..CommandCase::new(name, nature, line)
        })
        .into();
    if fixture.has_keys() {
        let line = "task push @main =turn.jsonl --key once";
        cases.push(CommandCase::new("push-key", Repeatable, line));
    }
    cases
}
