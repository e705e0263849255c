//! Errors of finding, opening and changing tasks.

use infold_checkpoint::CheckpointError;
use uuid::Uuid;

use crate::{LogError, OpenError, RegistryError, Status, StepError};

/// An error for a task; each variant has its own remedy.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// Name another one.
    #[error("no task `{name}`")]
    Unknown {
        /// The given name.
        name: String,
        /// The ids that come nearest.
        nearest: Vec<Uuid>,
    },
    /// Name it in full.
    #[error("`{name}` could be {} tasks", matches.len())]
    Ambiguous {
        /// The given name.
        name: String,
        /// The ids it could mean.
        matches: Vec<Uuid>,
    },
    /// Fork it to continue.
    #[error("task {task} has ended ({status})")]
    Ended {
        /// The task.
        task: Uuid,
        /// How it ended.
        status: Status,
    },
    /// Remove those that continue it, too.
    #[error("task {task} is continued by {}", listed(by))]
    Continued {
        /// The task.
        task: Uuid,
        /// The tasks that continue it.
        by: Vec<Uuid>,
    },
    /// Go on with the task, which was made: making it again would make another one.
    #[error("task {task} was made, then this happened: {source}")]
    Made {
        /// The task.
        task: Uuid,
        /// The cause.
        source: Box<TaskError>,
    },
    /// Wait for the other process.
    #[error("task {task}: {source}")]
    Open {
        /// The task.
        task: Uuid,
        /// The cause.
        source: OpenError,
    },
    /// Have the rest removed.
    #[error("task {task} was removed, but traces of it may be left: {source}")]
    Removed {
        /// The task.
        task: Uuid,
        /// The cause.
        source: Box<TaskError>,
    },
    /// Open the task again, which completes the redaction.
    #[error("the redaction took effect, but could not be completed: {source}")]
    Redacting {
        /// The cause.
        source: Box<TaskError>,
    },
    /// Change the request.
    #[error("task {task}: {source}")]
    Step {
        /// The task.
        task: Uuid,
        /// The cause.
        source: Box<StepError>,
    },
    /// Look at the checkpoints of workspaces.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Look at the disk.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Look at the registry.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

impl TaskError {
    /// Why a task could not be opened for writing.
    pub(crate) fn opening(task: Uuid, source: OpenError) -> TaskError {
        match source {
            OpenError::Log(error) => TaskError::Log(error),
            source => TaskError::Open { task, source },
        }
    }

    /// The address at which the process that writes to the task accepts requests, if the task is locked by one.
    pub fn held_at(&self) -> Option<&str> {
        match self {
            TaskError::Open { source, .. } => source.address(),
            _ => None,
        }
    }
}

fn listed(tasks: &[Uuid]) -> String {
    let names: Vec<String> = tasks.iter().map(Uuid::to_string).collect();
    names.join(", ")
}
