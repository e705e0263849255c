//! Finds the conversation that a call comes from.

use std::collections::BTreeSet;

use infold_log::Role;
use infold_store::{Contexts, Log, TaskRow};
use infold_wire::{ContentBlock, Message};
use serde_json::{Map, Value};
use uuid::Uuid;

/// A call is looked for in so many tasks, those with the newest activity.
const MAX_TASKS: usize = 16;
/// A call is looked for in so many messages from the end: on some wires each of several calls is a message.
const MAX_MESSAGES: u64 = 16;

/// Returns the task whose model just made this call; none if there is none, or more than one.
///
/// The protocol does not say who calls. But where the agent's requests pass through the proxy, the reply
/// with the call was recorded before the agent had the end of it.
pub fn find(
    contexts: &Contexts,
    rows: &[TaskRow],
    tool: &str,
    arguments: &Map<String, Value>,
) -> Option<Uuid> {
    let wanted: BTreeSet<(String, String)> = arguments
        .iter()
        .map(|(key, value)| match value {
            Value::String(text) => (key.clone(), text.clone()),
            other => (key.clone(), other.to_string()),
        })
        .collect();
    let running = rows.iter().filter(|row| !row.status.is_end());
    let mut matching = running.take(MAX_TASKS).filter(|row| {
        let log = contexts.read(row.uuid);
        log.is_ok_and(|log| waits_for(&log, tool, &wanted))
    });
    let found = matching.next()?;
    matching.next().is_none().then_some(found.uuid)
}

/// Returns whether the newest messages of a task are the model's, and call a tool with these arguments.
fn waits_for(log: &Log, tool: &str, wanted: &BTreeSet<(String, String)>) -> bool {
    let mut next = log.state().shown().last();
    for _ in 0..MAX_MESSAGES {
        let Some(seq) = next else { return false };
        let Ok(bytes) = log.message(seq) else {
            return false;
        };
        let Ok(message) = Message::parse(&bytes) else {
            return false;
        };
        if message.role() != Role::Assistant {
            return false;
        }
        let mut blocks = ContentBlock::all(&message).into_iter();
        if blocks.any(|block| is_call(block, tool, wanted)) {
            return true;
        }
        next = seq.prev();
    }
    false
}

fn is_call(block: ContentBlock, tool: &str, wanted: &BTreeSet<(String, String)>) -> bool {
    match block {
        // Agents put the name of the server before that of the tool, each in its own way.
        ContentBlock::Call {
            name, arguments, ..
        } => name.ends_with(tool) && arguments.into_iter().collect::<BTreeSet<_>>() == *wanted,
        _ => false,
    }
}
