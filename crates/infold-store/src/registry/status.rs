//! The status of a task, and how a task ends.

use std::fmt;
use std::str::FromStr;

/// Where a task stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Status {
    /// Waits for a worker.
    #[default]
    Queued,
    /// Is being worked on.
    Running,
    /// Was set aside, and can go on.
    Paused,
    /// Ended well.
    Completed,
    /// Ended with an error.
    Failed,
}

impl Status {
    /// Every status, in the order of a task's life.
    pub const ALL: [Status; 5] = [
        Status::Queued,
        Status::Running,
        Status::Paused,
        Status::Completed,
        Status::Failed,
    ];

    /// Returns the status as the registry and the command spell it.
    pub fn name(self) -> &'static str {
        match self {
            Status::Queued => "queued",
            Status::Running => "running",
            Status::Paused => "paused",
            Status::Completed => "completed",
            Status::Failed => "failed",
        }
    }

    /// Returns whether the task has ended.
    pub fn is_end(self) -> bool {
        matches!(self, Status::Completed | Status::Failed)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `pad` and not `write_str`: lists align it.
        f.pad(self.name())
    }
}

impl FromStr for Status {
    type Err = StatusError;

    fn from_str(text: &str) -> Result<Status, StatusError> {
        let named = Status::ALL.into_iter().find(|status| status.name() == text);
        named.ok_or_else(|| StatusError {
            text: text.to_owned(),
        })
    }
}

/// A text that names no [`Status`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no status `{text}`; there are {}", Status::ALL.map(Status::name).join(", "))]
pub struct StatusError {
    /// The given text.
    pub text: String,
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The task was completed.
    Completed,
    /// The task failed.
    Failed {
        /// Why, for a person to read.
        error: String,
    },
}

impl Outcome {
    /// Returns the status of a task that ended so.
    pub fn status(&self) -> Status {
        match self {
            Outcome::Completed => Status::Completed,
            Outcome::Failed { .. } => Status::Failed,
        }
    }

    pub(super) fn error(&self) -> Option<&str> {
        match self {
            Outcome::Completed => None,
            Outcome::Failed { error } => Some(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_reads_back() {
        for status in Status::ALL {
            assert_eq!(status.to_string().parse(), Ok(status));
        }
    }

    #[test]
    fn a_wrong_status_is_answered_with_the_right_ones() {
        let error = "done".parse::<Status>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "no status `done`; there are queued, running, paused, completed, failed"
        );
    }
}
