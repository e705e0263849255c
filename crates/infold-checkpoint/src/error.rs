//! Errors of checkpoints.

use std::io;
use std::path::{Path, PathBuf};

use crate::id::SnapshotRef;

/// An error of checkpoints; each variant has its own remedy.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// Install git; everything else works without it.
    #[error("checkpoints need git, and `{program}` cannot be started: {source}")]
    GitMissing {
        /// The program.
        program: String,
        /// The error of the system.
        source: io::Error,
    },
    /// Install a newer git.
    #[error("checkpoints need git {needed} or newer, and this is {found}")]
    GitTooOld {
        /// The version that is installed.
        found: String,
        /// The oldest that will do.
        needed: &'static str,
    },
    /// Name another workspace.
    #[error("`{}` cannot be a workspace with checkpoints: {problem}", path.display())]
    Workspace {
        /// The path of the workspace.
        path: PathBuf,
        /// The reason why it cannot be one.
        problem: WorkspaceProblem,
    },
    /// Wait for the process.
    #[error("the checkpoints of `{}` are in use by {holder}", workspace.display())]
    Locked {
        /// The workspace.
        workspace: PathBuf,
        /// Which process holds them, as far as it is known.
        holder: String,
    },
    /// Name another snapshot.
    #[error("there is no checkpoint {at} of `{}`", workspace.display())]
    NoSnapshot {
        /// The snapshot that was requested.
        at: SnapshotRef,
        /// The workspace.
        workspace: PathBuf,
    },
    /// Resume or abandon the restoration that was cut off.
    #[error("a restoration of `{}` to checkpoint {to} was cut off and has to be finished first", workspace.display())]
    Unfinished {
        /// The workspace.
        workspace: PathBuf,
        /// The snapshot to restore.
        to: SnapshotRef,
    },
    /// The shadow repository is damaged; when it is next opened it is set aside and replaced by a new one.
    #[error("the checkpoints in `{}` are damaged: {what}", dir.display())]
    Damaged {
        /// The directory of the shadow repository.
        dir: PathBuf,
        /// The damage that was found.
        what: String,
    },
    /// Free space on the disk.
    #[error("the disk is full: `{}` cannot be {action}", path.display())]
    Full {
        /// The action that failed.
        action: &'static str,
        /// Its path.
        path: PathBuf,
    },
    /// A file or directory of the checkpoints or of the workspace.
    #[error("`{}` cannot be {action}: {source}", path.display())]
    Io {
        /// The action that failed.
        action: &'static str,
        /// Its path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Git failed for another reason.
    #[error("git could not {doing}: {said}")]
    Git {
        /// The action that failed.
        doing: &'static str,
        /// The end of git's error output.
        said: String,
    },
}

/// The reason why a directory cannot be a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkspaceProblem {
    /// It does not exist.
    #[error("it does not exist")]
    Missing,
    /// It is no directory.
    #[error("it is not a directory")]
    NotADirectory,
    /// It cannot be read.
    #[error("it cannot be read")]
    Unreadable,
    /// It is `/`.
    #[error("it is the root of the file system")]
    Root,
    /// It is a file system of processes and devices, not of files.
    #[error("it shows processes and devices, no files")]
    System,
    /// It is the user's home directory.
    #[error("it is the home directory")]
    Home,
    /// The home directory is in it.
    #[error("the home directory is in it")]
    AboveHome,
    /// It is in the directory of the contexts, or is that directory.
    #[error("it is in the directory of the contexts, where checkpoints are kept")]
    InContexts,
    /// Two paths have the same digest.
    #[error("another workspace has the same digest")]
    DigestInUse,
}

impl CheckpointError {
    /// Makes an error of a system call.
    pub(crate) fn io(
        action: &'static str,
        path: impl AsRef<Path>,
        source: impl Into<io::Error>,
    ) -> CheckpointError {
        let path = path.as_ref().to_owned();
        let source = source.into();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                CheckpointError::Full { action, path }
            }
            _ => CheckpointError::Io {
                action,
                path,
                source,
            },
        }
    }
}
