//! Errors of opening a task for writing, and of appending to it.

use infold_wire::MessageError;

use super::MAX_MESSAGE;
use crate::LogError;
use crate::derived::RecordError;
use crate::lock::Holder;

/// Why a task could not be opened for writing.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process writes to it.
    #[error("{}", held_by(.holder))]
    Held {
        /// The process, if its name can be read.
        holder: Option<Holder>,
    },
    /// The log could not be read or repaired.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl OpenError {
    /// Returns the address of the process that writes to the task, if it is a server.
    pub fn address(&self) -> Option<&str> {
        match self {
            OpenError::Held { holder } => holder.as_ref()?.address.as_deref(),
            OpenError::Log(_) => None,
        }
    }
}

/// Why messages were not appended. None of them was.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// An element is not a message.
    #[error("{reason}")]
    NotAMessage {
        /// Which one, counted from zero.
        index: usize,
        /// Why.
        reason: MessageError,
    },
    /// An element is too large.
    #[error("a message of {bytes} bytes; at most {MAX_MESSAGE} are taken")]
    TooLarge {
        /// Which one, counted from zero.
        index: usize,
        /// Its size.
        bytes: usize,
    },
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Why a tool record was not taken.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The record is not valid.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
}

fn held_by(holder: &Option<Holder>) -> String {
    match holder {
        Some(holder) => format!("{holder} is writing to this task"),
        None => "another process is writing to this task".to_owned(),
    }
}
