//! What a proxy does, told to whoever started it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use infold_serve::{Listener, LiveEvent, LiveItem};
use uuid::Uuid;

use crate::out::{DIM, count, number, paint, say};

/// Tells of folds as they happen, until the server ends.
pub async fn tell_folds(mut listener: Listener) {
    while let Some(heard) = listener.next().await {
        if let LiveItem::Event(change) = heard
            && let Some(text) = fold(&change)
        {
            say(false, paint(DIM, text));
        }
    }
}

/// A fold in one line; none if the change is about something else.
fn fold(change: &LiveEvent) -> Option<String> {
    if change.name != "fold" {
        return None;
    }
    let told: serde_json::Value = serde_json::from_str(&change.json).ok()?;
    let tokens = |name: &str| told[name].as_u64().map(number);
    let (before, after) = (tokens("tokens_before")?, tokens("tokens_after")?);
    let outcome = told["outcome"].as_str().unwrap_or("folded");
    let task = &change.task.to_string()[..8];
    Some(format!("task {task} {outcome}: {before} → {after} tokens"))
}

/// The tasks in which something was said, and how much.
#[derive(Clone, Debug, Default)]
pub struct Tasks(Arc<Mutex<HashMap<Uuid, Activity>>>);

#[derive(Clone, Copy, Debug, Default)]
struct Activity {
    messages: u64,
    folds: u64,
}

impl Tasks {
    /// Counts what happens, until the server ends.
    pub async fn watch(self, mut listener: Listener) {
        while let Some(heard) = listener.next().await {
            if let LiveItem::Event(change) = heard {
                let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                let activity = tasks.entry(change.task).or_default();
                activity.messages += u64::from(change.name == "message");
                activity.folds += u64::from(change.name == "fold");
            }
        }
    }

    /// Names the tasks, the one in which most was said first; an agent makes some for titles and the like.
    pub fn tell(&self) {
        const MAX_TASKS: usize = 3;
        let tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tasks: Vec<(&Uuid, &Activity)> = tasks.iter().collect();
        tasks.retain(|(_, activity)| activity.messages > 0);
        tasks.sort_by_key(|(id, activity)| (std::cmp::Reverse(activity.messages), **id));
        for (id, activity) in tasks.iter().take(MAX_TASKS) {
            let id = &id.to_string()[..8];
            let folds = match activity.folds {
                0 => String::new(),
                folds => format!(", {}", count(folds, "fold")),
            };
            let text = format!("recorded as task {id}{folds} (infold view {id})");
            say(false, paint(DIM, text));
        }
        if tasks.len() > MAX_TASKS {
            let more = tasks.len() - MAX_TASKS;
            let text = format!("and {more} more (infold task list)");
            say(false, paint(DIM, text));
        }
    }
}
