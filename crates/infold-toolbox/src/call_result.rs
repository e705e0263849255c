//! The result of a tool call.

use std::time::Duration;

/// The result of a tool call. Every call has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallResult {
    /// The output of the tool, whole up to [`crate::ToolLimits::max_result_bytes`]. Never empty: a text says so
    /// if there was no output.
    pub text: String,
    /// Whether it worked.
    pub status: CallStatus,
    /// How long it took.
    pub duration: Duration,
    /// Why it did not work, in one line; set exactly if the status is [`CallStatus::Error`].
    pub error: Option<String>,
}

/// Whether a call worked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallStatus {
    /// The tool succeeded.
    Success,
    /// The tool failed, at least in part; the text says why.
    Error,
}
