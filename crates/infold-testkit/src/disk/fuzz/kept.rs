//! Bytes that damage and repairs must keep: intact lines, and files that were set aside.

use std::fs;
use std::path::Path;

use super::FuzzCase;
use super::damage_kind::DamageKind;
use super::store::ASIDE;
use crate::disk::holdings::{Holdings, LogLines};
use crate::disk::report::Flaw;
use crate::disk::sandbox::Sandbox;

/// The lines of the logs of a task, as they are on the disk.
pub(super) struct Lines {
    messages: Vec<Vec<u8>>,
    events: Vec<Vec<u8>>,
}

impl Lines {
    pub(super) fn read(contexts: &Path, case: &FuzzCase<'_>) -> Lines {
        let dir = ["running", "completed"].map(|place| contexts.join(place).join(&case.damaged.id));
        let read = |name: &str| {
            let found = dir.iter().find_map(|dir| fs::read(dir.join(name)).ok());
            let bytes = found.unwrap_or_default();
            bytes
                .split(|byte| *byte == b'\n')
                .map(<[u8]>::to_vec)
                .collect()
        };
        Lines {
            messages: read("messages.jsonl"),
            events: read("events.jsonl"),
        }
    }
}

/// Returns intact lines and set-aside files that are missing.
pub(super) fn missing(
    case: &FuzzCase<'_>,
    before: &Lines,
    sandbox: &Sandbox,
) -> Option<(Flaw, String)> {
    let contexts = sandbox.contexts();
    let now = Holdings::read(&contexts);
    let id = &case.damaged.id;
    let aside = set_aside(&contexts).concat();
    let mut others = case.store.holdings.clone();
    others.tasks.remove(id);
    // A repair may move the start of a fork of the task, with notes before its own entries.
    let forks = others.tasks.extract_if(.., |_, task| task.continues(id));
    let forks: Vec<(String, LogLines)> = forks.collect();
    let lost = others.lost_in(&now).or_else(|| {
        let mut lost = forks.iter().filter_map(|(fork, task)| {
            let after = now.tasks.get(fork)?;
            lost_of_fork(task, after, &aside).map(|what| format!("of task {fork}: {what}"))
        });
        lost.next()
    });
    if let Some(lost) = lost {
        return Some((Flaw::Lost, lost));
    }
    let task = case.store.holdings.tasks.get(id)?;
    let after = Lines::read(&contexts, case);
    let is_aside = |line: &[u8]| {
        aside
            .windows(line.len().max(1))
            .any(|window| window == line)
    };
    // Lines in their place stay there; those that were moved are at least set aside.
    let is_moved = matches!(case.damage, DamageKind::Swap | DamageKind::Duplicate);
    let logs = [
        (
            "message",
            &task.messages,
            &before.messages,
            &after.messages,
            is_moved,
        ),
        ("event", &task.events, &before.events, &after.events, true),
    ];
    for (name, original, before, after, may_be_aside) in logs {
        for line in original {
            let line = line.as_bytes();
            let was_there = before.iter().any(|other| other == line);
            let is_there = after.iter().any(|other| other == line);
            if was_there && !is_there && !(may_be_aside && is_aside(line)) {
                let what = String::from_utf8_lossy(line);
                return Some((Flaw::Lost, format!("an intact {name} is gone: {what}")));
            }
        }
        // Everything else is kept for a person to look at.
        for line in before.iter().filter(|line| !line.is_empty()) {
            if !after.contains(line) && !is_aside(line) {
                let what = String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
                return Some((
                    Flaw::Lost,
                    format!("a damaged {name} was not set aside: {what}"),
                ));
            }
        }
    }
    let kept = set_aside(&contexts).iter().any(|bytes| bytes == ASIDE.1);
    (!kept).then(|| (Flaw::Lost, format!("{} is gone", ASIDE.0)))
}

/// A line of a fork that is not there any more: messages follow one another as they did, events may be set aside.
fn lost_of_fork(before: &LogLines, after: &LogLines, aside: &[u8]) -> Option<String> {
    let mut rest = after.messages.iter();
    let message = before
        .messages
        .iter()
        .find(|line| !rest.any(|other| other == *line));
    let is_kept = |line: &String| {
        let mut windows = aside.windows(line.len().max(1));
        after.events.contains(line) || windows.any(|window| window == line.as_bytes())
    };
    let event = before.events.iter().find(|line| !is_kept(line));
    let line = message.or(event)?;
    Some(format!("a line is gone: {line}"))
}

/// Everything that repairs have set aside.
fn set_aside(dir: &Path) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        if path.is_dir() {
            found.extend(set_aside(&path));
        } else if name.contains("torn-") || name.contains("damaged-") {
            found.extend(fs::read(&path));
        }
    }
    found
}
