//! The result of a tool call.

use std::time::Duration;

/// The result of a tool call. Every call has one, because model APIs refuse a conversation in which a call has no
/// result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallResult {
    /// The output of the tool; of a failed call also the reason. A text of more than
    /// [`crate::ToolLimits::max_result_bytes`] is reduced to its head and tail. Never empty: without output it says so.
    pub text: String,
    /// Whether the call succeeded.
    pub status: CallStatus,
    /// How long the call took.
    pub duration: Duration,
    /// The reason of the failure, in one line; `Some` if and only if the status is [`CallStatus::Error`].
    pub error: Option<String>,
}

/// Whether a call succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallStatus {
    /// The tool succeeded.
    Success,
    /// The tool failed, at least in part; the text says why.
    Error,
}
