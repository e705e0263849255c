//! Counts how often the model has made the same call in a row.

use infold_log::{Past as _, Role, Seq};
use infold_store::{Log, LogError};
use infold_wire::{ClientCall, Message};

/// From this number of identical calls in a row on, the model is warned.
pub(crate) const WARN_AFTER_REPEATS: usize = 3;
/// After this number of identical calls in a row, the task is paused.
pub(crate) const PAUSE_AFTER_REPEATS: usize = 5;

/// Returns how many of the last calls before the message `before` are the same as `call`, in a row. Stops counting at
/// [`PAUSE_AFTER_REPEATS`].
pub(crate) fn count_before(log: &Log, before: Seq, call: &ClientCall) -> Result<usize, LogError> {
    let path = log.state().shown().path();
    let seqs = path.iter().rev().flat_map(|run| run.seqs().rev());
    let mut count = 0;
    for seq in seqs.filter(|seq| *seq < before) {
        let record = log.record(seq)?;
        // A call that is made again after a message of the user is not counted as a repetition. Such a message begins a
        // round; tool results on some wires have the same role, but belong to the round of their call.
        if record.role == Role::User && record.round == seq {
            break;
        }
        if record.role != Role::Assistant {
            continue;
        }
        let bytes = log.message(seq)?;
        let calls = Message::parse(&bytes).map(|message| ClientCall::all(&message));
        for made in calls.unwrap_or_default().iter().rev() {
            if !is_same(made, call) || count >= PAUSE_AFTER_REPEATS {
                return Ok(count);
            }
            count += 1;
        }
    }
    Ok(count)
}

/// Returns whether two calls have the same tool and equal arguments.
pub(crate) fn is_same(one: &ClientCall, other: &ClientCall) -> bool {
    one.name == other.name && arguments(one) == arguments(other)
}

/// Returns the arguments for a comparison: parsed, so that white space and the order of members do not matter; as text
/// if they are not JSON.
fn arguments(call: &ClientCall) -> Result<serde_json::Value, &str> {
    serde_json::from_str(&call.arguments).map_err(|_| call.arguments.trim())
}

/// Returns the warning for the model in the result of a repeated call.
pub(crate) fn warning(repeats: usize) -> String {
    format!(
        "[This is call {repeats} in a row with the same arguments. Do something else: read the result, change the arguments, or call `done`. After {PAUSE_AFTER_REPEATS} the task is paused.]"
    )
}
