//! Errors of logs and tasks, by their remedy.

use std::io;
use std::path::{Path, PathBuf};

use infold_log::steer::Refused;

/// An error while the log of a task was read or written; each variant has its own remedy.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Free some space, then do it again. Nothing acknowledged is lost.
    #[error("no space left for {}", path.display())]
    Full {
        /// The file being written.
        path: PathBuf,
    },
    /// Change the permissions.
    #[error("{} may not be {action}", path.display())]
    Denied {
        /// The file or directory.
        path: PathBuf,
        /// The operation.
        action: &'static str,
    },
    /// Look at the disk.
    #[error("{} could not be {action}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The operation.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// Have it repaired. What lies before the damage is readable.
    #[error("{} is damaged at byte {at}: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the damage starts.
        at: u64,
        /// The problem.
        reason: String,
    },
    /// Look at the log, because the write may have succeeded.
    #[error("{source}; it could not be taken back, so it may have taken effect")]
    Unsure {
        /// The cause.
        source: Box<LogError>,
    },
    /// Open the task again: nothing was written.
    #[error("{} was removed or replaced while it was held: another process may write to this task", path.display())]
    LockLost {
        /// The lock.
        path: PathBuf,
    },
    /// Restore the task that this one was forked from.
    #[error("this task continues task {parent}, which {reason}")]
    NoParent {
        /// The task it was forked from, or one further back.
        parent: String,
        /// The problem of that task.
        reason: &'static str,
    },
    /// A first event is wrong: no task continues itself.
    #[error("task {parent} continues itself: what it was forked from leads back to it")]
    Circular {
        /// The task that comes twice.
        parent: String,
    },
}

/// Why a step was not made: refused by the rules, or the log failed.
pub type StepError = Refused<LogError>;

impl LogError {
    pub(crate) fn io(path: &Path, action: &'static str, source: io::Error) -> LogError {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => LogError::Full { path },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                LogError::Denied { path, action }
            }
            _ => LogError::Io {
                path,
                action,
                source,
            },
        }
    }

    /// Returns the same error, marked as unsure if earlier writes could not be undone.
    pub(crate) fn after(self, is_taken_back: bool) -> LogError {
        match self {
            error if is_taken_back => error,
            error @ LogError::Unsure { .. } => error,
            error => LogError::Unsure {
                source: Box::new(error),
            },
        }
    }

    /// Returns the same error, once the earlier writes have been undone after all.
    pub(crate) fn without_doubt(self) -> LogError {
        match self {
            LogError::Unsure { source } => *source,
            error => error,
        }
    }

    /// Returns whether only a sidecar is damaged or behind: it can be derived anew from the log.
    pub(crate) fn is_of_sidecar(&self) -> bool {
        match self {
            LogError::Damaged { path, .. } => path.extension().is_some_and(|name| name == "idx"),
            _ => false,
        }
    }

    /// Returns the error for a file with unexpected bytes.
    pub fn damaged(path: &Path, at: u64, reason: impl Into<String>) -> LogError {
        LogError::Damaged {
            path: path.to_owned(),
            at,
            reason: reason.into(),
        }
    }
}
