//! Calls that are run for the model.

use infold_log::Seq;
use infold_wire::{Json, quote};

use super::{number, text};

/// A call that is about to be run. One that ended has a `tool` record with the same `message` and `index`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallStartedLine {
    /// The message that holds the call.
    pub message: Seq,
    /// The number of calls before it in that message.
    pub index: u64,
    /// The tool.
    pub tool: String,
}

impl CallStartedLine {
    pub(super) fn encode(&self) -> String {
        let (message, index, tool) = (self.message, self.index, quote(&self.tool));
        format!(r#","message":{message},"index":{index},"tool":{tool}"#)
    }

    pub(super) fn decode(json: Json<'_>) -> Option<CallStartedLine> {
        Some(CallStartedLine {
            message: number(json, "message").and_then(Seq::new)?,
            index: number(json, "index")?,
            tool: text(json, "tool")?,
        })
    }
}
