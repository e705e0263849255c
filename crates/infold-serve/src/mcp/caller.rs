//! Finds the conversation that a call comes from.

use std::collections::BTreeSet;

use infold_log::{Role, Seq};
use infold_store::{Contexts, Log, TaskRow};
use infold_wire::{ContentBlock, Json, Message, argument_values};
use serde_json::{Map, Value};
use uuid::Uuid;

/// The number of tasks in which a call is looked for: those with the newest activity.
const MAX_TASKS: usize = 16;
/// The number of messages from the end in which a call is looked for: on some wires each of several calls is a message.
const MAX_MESSAGES: u64 = 16;

/// A call in the log of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerCall {
    /// The task.
    pub task: Uuid,
    /// The message with the call.
    pub seq: Seq,
}

/// Returns the call in the task whose model just made it; none if there is none, or more than one.
///
/// The protocol does not say who calls. But where the agent's requests pass through the proxy, the reply
/// with the call was recorded before the agent had the end of it.
pub fn find(
    contexts: &Contexts,
    rows: &[TaskRow],
    tool: &str,
    arguments: &Map<String, Value>,
) -> Option<CallerCall> {
    let json = Value::Object(arguments.clone()).to_string();
    let json = Json::parse(json.as_bytes()).ok()?;
    let wanted: BTreeSet<(String, String)> = argument_values(json).into_iter().collect();
    let running = rows.iter().filter(|row| !row.status.is_end());
    let mut calls = running.take(MAX_TASKS).filter_map(|row| {
        let task = row.uuid;
        let seq = waiting_call(&contexts.read(task).ok()?, tool, &wanted)?;
        Some(CallerCall { task, seq })
    });
    let found = calls.next()?;
    calls.next().is_none().then_some(found)
}

/// Returns the message that calls a tool with these arguments, if only the model spoke since.
fn waiting_call(log: &Log, tool: &str, wanted: &BTreeSet<(String, String)>) -> Option<Seq> {
    let mut next = log.state().shown().last();
    for _ in 0..MAX_MESSAGES {
        let seq = next?;
        let bytes = log.message(seq).ok()?;
        let message = Message::parse(&bytes).ok()?;
        if message.role() != Role::Assistant {
            return None;
        }
        let mut blocks = ContentBlock::all(&message).into_iter();
        if blocks.any(|block| is_call(block, tool, wanted)) {
            return Some(seq);
        }
        next = seq.prev();
    }
    None
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
