//! The contents of a contexts directory, read by the documented format alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The tasks of a contexts directory, by id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holdings {
    pub(crate) tasks: BTreeMap<String, LogLines>,
}

/// The whole lines of a task's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogLines {
    /// `running` or `completed`.
    pub(crate) place: String,
    /// Whether it has metadata.
    pub(crate) has_metadata: bool,
    pub(crate) messages: Vec<String>,
    pub(crate) events: Vec<String>,
}

/// Members of a line that differ from run to run.
const VOLATILE: [&str; 2] = ["timestamp", "ts"];

impl Holdings {
    pub(crate) fn read(contexts: &Path) -> Holdings {
        let mut tasks = BTreeMap::new();
        for place in ["running", "completed"] {
            for id in task_ids(&contexts.join(place)) {
                let dir = contexts.join(place).join(&id);
                let task = LogLines {
                    place: place.to_owned(),
                    has_metadata: has_metadata(&dir.join("metadata.json")),
                    messages: whole_lines(&dir.join("messages.jsonl")),
                    events: whole_lines(&dir.join("events.jsonl")),
                };
                tasks.insert(id, task);
            }
        }
        Holdings { tasks }
    }

    /// The directory of a task.
    pub(crate) fn dir(&self, contexts: &Path, id: &str) -> PathBuf {
        let place = self.tasks.get(id).map_or("running", |task| &task.place);
        contexts.join(place).join(id)
    }

    /// Returns the first entry that `later` lacks: every line must still be there, in its place, byte for byte.
    pub(crate) fn lost_in(&self, later: &Holdings) -> Option<String> {
        self.tasks.iter().find_map(|(id, task)| {
            let Some(now) = later.tasks.get(id) else {
                return Some(format!("task {id} is gone"));
            };
            let missing = |name: &str, before: &[String], now: &[String]| {
                let differs =
                    |(at, line): (usize, &String)| (now.get(at) != Some(line)).then_some(at);
                let at = before.iter().enumerate().find_map(differs)?;
                Some(format!("line {} of {name} of task {id} is lost", at + 1))
            };
            missing("messages.jsonl", &task.messages, &now.messages)
                .or_else(|| missing("events.jsonl", &task.events, &now.events))
        })
    }

    /// Returns the same holdings without values that differ between runs: times, and the ids of tasks that are
    /// not in `known`.
    pub(crate) fn canonical(&self, known: &Holdings) -> Vec<(String, LogLines)> {
        let mut tasks: Vec<(String, LogLines)> = self
            .tasks
            .iter()
            .map(|(id, task)| {
                let id = if known.tasks.contains_key(id) {
                    id.clone()
                } else {
                    "new".to_owned()
                };
                let steady = |lines: &[String]| lines.iter().map(|line| steady(line)).collect();
                let task = LogLines {
                    place: task.place.clone(),
                    has_metadata: task.has_metadata,
                    messages: steady(&task.messages),
                    events: steady(&task.events),
                };
                (id, task)
            })
            .collect();
        tasks.sort_by(|(a, one), (b, other)| {
            (a, &one.messages, &one.events).cmp(&(b, &other.messages, &other.events))
        });
        tasks
    }
}

impl LogLines {
    /// Returns whether its first event names another task as the one that it continues.
    pub(crate) fn continues(&self, parent: &str) -> bool {
        let first = self.events.first();
        let first = first.and_then(|line| serde_json::from_str::<Value>(line).ok());
        first.is_some_and(|event| event["type"] == "fork" && event["task"] == parent)
    }
}

fn steady(line: &str) -> String {
    let Ok(Value::Object(mut object)) = serde_json::from_str(line) else {
        return line.to_owned();
    };
    for name in VOLATILE {
        object.remove(name);
    }
    Value::Object(object).to_string()
}

/// The directories whose names are ids, in order.
fn task_ids(dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut ids: Vec<String> = names.filter(|name| is_id(name)).collect();
    ids.sort();
    ids
}

fn is_id(name: &str) -> bool {
    name.len() == 36 && name.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

fn has_metadata(path: &Path) -> bool {
    let text = fs::read(path).unwrap_or_default();
    serde_json::from_slice::<Value>(&text).is_ok_and(|metadata| metadata["uuid"].is_string())
}

/// The lines of a file that end, and are JSON. What is torn is no line yet.
fn whole_lines(path: &Path) -> Vec<String> {
    let bytes = fs::read(path).unwrap_or_default();
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    let Some(end) = end else {
        return Vec::new();
    };
    let lines = bytes[..end].split(|byte| *byte == b'\n');
    lines
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect()
}
