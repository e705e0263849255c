//! Prints the activity of the proxy: folds as they happen, and the recorded tasks at the end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use infold_serve::{EventListener, LiveEvent, LiveItem};
use uuid::Uuid;

use crate::output::{count, note, number};

/// Prints folds as they happen, until the server ends.
pub async fn print_folds(mut listener: EventListener) {
    while let Some(heard) = listener.next().await {
        if let LiveItem::Event(change) = heard
            && let Some(text) = describe_fold(&change)
        {
            note(false, text);
        }
    }
}

/// Describes a fold in one line; returns none for other changes.
fn describe_fold(change: &LiveEvent) -> Option<String> {
    if change.name != "fold" {
        return None;
    }
    let object: serde_json::Value = serde_json::from_str(&change.json).ok()?;
    let tokens = |name: &str| object[name].as_u64().map(number);
    let (before, after) = (tokens("tokens_before")?, tokens("tokens_after")?);
    let outcome = object["outcome"].as_str().unwrap_or("folded");
    let task = &change.task.to_string()[..8];
    Some(format!("task {task} {outcome}: {before} → {after} tokens"))
}

/// Counts the activity in each task.
#[derive(Clone, Debug, Default)]
pub struct TaskActivity(Arc<Mutex<HashMap<Uuid, Activity>>>);

#[derive(Clone, Copy, Debug, Default)]
struct Activity {
    messages: u64,
    folds: u64,
}

impl TaskActivity {
    /// Counts messages and folds, until the server ends.
    pub async fn watch(self, mut listener: EventListener) {
        while let Some(heard) = listener.next().await {
            if let LiveItem::Event(change) = heard {
                let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                let activity = tasks.entry(change.task).or_default();
                activity.messages += u64::from(change.name == "message");
                activity.folds += u64::from(change.name == "fold");
            }
        }
    }

    /// Prints the tasks, the one with most messages first: agents create others for titles and the like.
    pub fn print(&self) {
        const MAX_PRINTED_TASKS: usize = 3;
        let tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tasks: Vec<(&Uuid, &Activity)> = tasks.iter().collect();
        tasks.retain(|(_, activity)| activity.messages > 0);
        tasks.sort_by_key(|(id, activity)| (std::cmp::Reverse(activity.messages), **id));
        for (id, activity) in tasks.iter().take(MAX_PRINTED_TASKS) {
            let id = &id.to_string()[..8];
            let folds = match activity.folds {
                0 => String::new(),
                folds => format!(", {}", count(folds, "fold")),
            };
            let text = format!("recorded as task {id}{folds} (infold view {id})");
            note(false, text);
        }
        if tasks.len() > MAX_PRINTED_TASKS {
            let more = tasks.len() - MAX_PRINTED_TASKS;
            let text = format!("and {more} more (infold task list)");
            note(false, text);
        }
    }
}
