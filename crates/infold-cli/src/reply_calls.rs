//! The tool calls of a reply, and which results the model waits for.

use infold_log::Span;
use infold_store::{RefusalLine, Writer};
use infold_wire::{ClientCall, Json, Message, StopReason};
use serde_json::json;

use crate::error::CliResult;
use crate::output::say;
use crate::steps::short;

/// A tool call of a reply.
pub struct ReplyCall {
    /// The call; its arguments may be incomplete.
    call: ClientCall,
    /// The model finished writing it.
    complete: bool,
}

impl ReplyCall {
    /// Returns the call for `--json`.
    pub fn json(&self) -> serde_json::Value {
        let value = serde_json::from_str(&self.call.arguments);
        json!({
            "id": self.call.id, "name": self.call.name, "complete": self.complete,
            "arguments": value.unwrap_or_else(|_| json!(self.call.arguments)),
        })
    }
}

/// Returns the calls of a reply that wait for results; `stop` is the reason that it ended, if known.
pub fn waiting_calls(
    writer: &Writer,
    reply: Span,
    stop: Option<&StopReason>,
) -> CliResult<Vec<ReplyCall>> {
    let mut calls = Vec::new();
    // A reply all of whose calls were refused is followed by their results.
    if writer.log().state().last_seq() != Some(reply.to()) {
        return Ok(calls);
    }
    let ended = stop.is_some_and(|stop| *stop != StopReason::Length);
    for seq in reply.seqs() {
        let bytes = writer.log().message(seq)?;
        // Bytes that are not a message have no calls.
        let Ok(message) = Message::parse(&bytes) else {
            continue;
        };
        calls.extend(ClientCall::all(&message).into_iter().map(|call| ReplyCall {
            complete: ended || Json::parse(call.arguments.as_bytes()).is_ok(),
            call,
        }));
    }
    Ok(calls)
}

/// Prints which results the model waits for.
pub fn print_waiting(calls: &[ReplyCall], task: &str) {
    let name = |call: &ReplyCall| call.call.name.clone();
    let (complete, cut): (Vec<_>, Vec<_>) = calls.iter().partition(|call| call.complete);
    for name in cut.into_iter().map(name) {
        let text =
            format!("the call of {name} was cut off: do not run it; push a result that says so");
        say(false, text);
    }
    let names: Vec<String> = complete.into_iter().map(name).collect();
    if !names.is_empty() {
        let (names, task) = (names.join(", "), short(task));
        let next = format!("`infold task push {task}`, then `infold ask {task}`");
        say(false, format!("waiting for results of {names}; {next}"));
    }
}

/// Prints the calls that the policy for tools refused; `has_others` says whether results of other calls are still to
/// come.
pub fn print_refused(refusals: &[RefusalLine], task: &str, has_others: bool) {
    for refusal in refusals {
        say(false, &refusal.told);
    }
    if !refusals.is_empty() && !has_others {
        let task = short(task);
        let text = format!(
            "the model is told so with the next message; `infold ask {task}` lets it go on"
        );
        say(false, text);
    }
}
