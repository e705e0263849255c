//! Finds out how often the model has made the very same call in a row.

use infold_log::{Past as _, Role, Seq};
use infold_store::{Log, LogError};
use infold_wire::{ClientCall, Message};

/// The number of identical calls in a row from which the model is warned.
pub(crate) const TOLD_AFTER_REPEATS: usize = 3;
/// With so many of the same call in a row the task is set aside.
pub(crate) const PAUSED_AFTER_REPEATS: usize = 5;

/// Returns how many calls right before the messages from `before` on are the same as `call`, at most as many as matter.
pub(crate) fn count_before(log: &Log, before: Seq, call: &ClientCall) -> Result<usize, LogError> {
    let path = log.state().shown().path();
    let seqs = path.iter().rev().flat_map(|run| run.seqs().rev());
    let mut count = 0;
    for seq in seqs.filter(|seq| *seq < before) {
        let record = log.record(seq)?;
        // After a message of the user, a call that is made again is no mere repetition.
        if record.role == Role::User && record.round == seq {
            break;
        }
        if record.role != Role::Assistant {
            continue;
        }
        let bytes = log.message(seq)?;
        let made = Message::parse(&bytes).map(|message| ClientCall::all(&message));
        for made in made.unwrap_or_default().iter().rev() {
            if !is_same(made, call) || count >= PAUSED_AFTER_REPEATS {
                return Ok(count);
            }
            count += 1;
        }
    }
    Ok(count)
}

/// Returns whether two calls ask for the same.
pub(crate) fn is_same(one: &ClientCall, other: &ClientCall) -> bool {
    one.name == other.name && arguments(one) == arguments(other)
}

/// The arguments, whatever their white space and the order of their members.
fn arguments(call: &ClientCall) -> Result<serde_json::Value, &str> {
    serde_json::from_str(&call.arguments).map_err(|_| call.arguments.trim())
}

/// Returns the warning for the model in the result of a repeated call.
pub(crate) fn warning(repeats: usize) -> String {
    format!(
        "[This is call {repeats} in a row with the same arguments. Do something else: read the result, change the arguments, or call `done`. After {PAUSED_AFTER_REPEATS} the task is paused.]"
    )
}
