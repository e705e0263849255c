//! Checkpoints: snapshots of a workspace's files, recorded with a conversation and restored with it.
//!
//! Connects the snapshots of `infold-checkpoint` with the events of the log.

mod compare;
mod effects;
mod point;
mod restore;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub use infold_checkpoint as git;
use infold_checkpoint::{CheckpointError, Checkpoints, Shadow, Snapshot};
use infold_log::EventId;
use infold_store::{
    CheckpointLine, CheckpointNote, Contexts, FileCounts, FilesAt, Log, LogError, Metadata,
    StepError, TaskError, Writer,
};
use uuid::Uuid;

pub use compare::Comparison;
pub use effects::{ResultScan, may_write};
pub use point::{FilePoint, FileRange};
pub use restore::{BegunRestore, RestoreReport, describe_left_out};

/// Takes snapshots of workspaces, records them in logs, and puts files back.
#[derive(Clone, Debug)]
pub struct FileHistory {
    contexts: Contexts,
    checkpoints: Checkpoints,
    /// Whether `undo` and `redo` restore files.
    restores: bool,
}

/// The reason that files could not be saved or restored.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The shadow repository, the workspace or git.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The task's directory is not known.
    #[error("the task has no workspace: none was named, and it was not made in a directory")]
    NoWorkspace,
    /// There is no checkpoint at or before that point.
    #[error("{}", none_before(*first))]
    NoneBefore {
        /// The first checkpoint there is.
        first: Option<EventId>,
    },
    /// Two points lie in different workspaces.
    #[error("the two points are of different workspaces: `{}` and `{}`", from.display(), to.display())]
    TwoWorkspaces {
        /// The one workspace.
        from: PathBuf,
        /// The other.
        to: PathBuf,
    },
    /// The step was recorded, and the files are not all in place.
    #[error("the step was taken, and the files are not all in place yet: {source}")]
    Unfinished {
        /// The reason.
        source: CheckpointError,
    },
    /// The step was refused, or the log could not be read or written.
    #[error(transparent)]
    Step(#[from] StepError),
    /// A task could not be opened.
    #[error(transparent)]
    Task(#[from] TaskError),
}

fn none_before(first: Option<EventId>) -> String {
    match first {
        Some(first) => format!("no checkpoint at or before that point; the first one is {first}"),
        None => "the task has no checkpoints".to_owned(),
    }
}

impl From<LogError> for FilesError {
    fn from(error: LogError) -> FilesError {
        FilesError::Step(error.into())
    }
}

impl From<FilesError> for StepError {
    fn from(error: FilesError) -> StepError {
        match error {
            FilesError::Step(error) => error,
            error => StepError::Files {
                why: error.to_string(),
            },
        }
    }
}

/// A usable shadow repository, and the repairs that were made when it was opened.
pub struct OpenShadow {
    /// The repository.
    pub shadow: Shadow,
    /// The repairs that were made, in whole sentences.
    pub notes: Vec<String>,
}

/// A snapshot that was taken.
pub struct TakenSnapshot {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// The event that records it; `None` if the last recorded snapshot is the same.
    pub event: Option<EventId>,
    /// The repairs that were made on the way, in whole sentences.
    pub notes: Vec<String>,
}

impl FileHistory {
    /// The workspaces whose checkpoints are in a contexts directory.
    pub fn new(contexts: &Contexts) -> FileHistory {
        FileHistory {
            checkpoints: contexts.checkpoints(),
            contexts: contexts.clone(),
            restores: true,
        }
    }

    /// Leaves files as they are when a step is undone that had restored them.
    pub fn keeping_files(self) -> FileHistory {
        FileHistory {
            restores: false,
            ..self
        }
    }

    /// Returns the shadow repositories.
    pub fn checkpoints(&self) -> &Checkpoints {
        &self.checkpoints
    }

    /// Returns the workspace of a task: that of its last checkpoint, else the directory that it was made in.
    pub fn workspace_of(&self, log: &Log) -> Result<PathBuf, FilesError> {
        if let Some(files) = log.last_files()? {
            return Ok(files.workspace);
        }
        let metadata = Metadata::read(log.dir())?;
        metadata
            .cwd
            .map(PathBuf::from)
            .ok_or(FilesError::NoWorkspace)
    }

    /// Takes a snapshot of a workspace and records it, unless the last recorded one is the same.
    pub fn take(
        &self,
        writer: &mut Writer,
        workspace: &Path,
        note: CheckpointNote,
    ) -> Result<TakenSnapshot, FilesError> {
        let above = writer.log().last_checkpoint()?;
        let task = task_of(writer.log())?;
        let (snapshot, workspace, notes) = self.snapshot(task, above, workspace)?;
        let event = record(writer, &workspace, &snapshot, note)?;
        Ok(TakenSnapshot {
            snapshot,
            event,
            notes,
        })
    }

    /// Takes a snapshot without recording it, with a number greater than `above`; returns it with the recorded path of
    /// the workspace, and the repairs that were made on the way.
    pub fn snapshot(
        &self,
        task: Uuid,
        above: u64,
        workspace: &Path,
    ) -> Result<(Snapshot, PathBuf, Vec<String>), FilesError> {
        let OpenShadow {
            mut shadow,
            mut notes,
        } = self.open(workspace)?;
        let known = shadow.warning().map(str::to_owned);
        let snapshot = shadow.snapshot(task, above)?;
        // The repository may be found damaged while it is used.
        notes.extend(
            shadow
                .warning()
                .map(str::to_owned)
                .filter(|text| known.as_ref() != Some(text)),
        );
        Ok((snapshot, shadow.workspace().to_owned(), notes))
    }

    /// Opens the shadow repository of a workspace. A restoration that was cut off is carried through first, or dropped if it
    /// had not begun.
    pub fn open(&self, workspace: &Path) -> Result<OpenShadow, FilesError> {
        let mut shadow = self.checkpoints.open(workspace)?;
        let notes = self.settle(&mut shadow)?;
        Ok(OpenShadow { shadow, notes })
    }

    /// Completes interrupted restorations in all workspaces; returns a description of each.
    pub fn settle_all(&self) -> Result<Vec<String>, FilesError> {
        let mut notes = Vec::new();
        for info in self.checkpoints.all()? {
            if info.pending.is_some()
                && let Some(mut shadow) = self.checkpoints.open_existing(&info.workspace)?
            {
                notes.extend(self.settle(&mut shadow)?);
            }
        }
        Ok(notes)
    }

    fn settle(&self, shadow: &mut Shadow) -> Result<Vec<String>, FilesError> {
        let mut notes: Vec<String> = shadow.warning().map(str::to_owned).into_iter().collect();
        let Some(pending) = shadow.pending().cloned() else {
            return Ok(notes);
        };
        let begun = match self.contexts.read(pending.task) {
            Ok(log) => log.has_restored(&pending.id)?,
            Err(TaskError::Unknown { .. }) => false,
            Err(error) => return Err(error.into()),
        };
        if begun {
            let report = restore::finish(shadow, pending.from, pending.to)?;
            let dir = shadow.workspace().display();
            notes.push(format!(
                "a restoration of `{dir}` that was cut off is finished: {}",
                report.text()
            ));
        } else {
            shadow.abandon_restore()?;
        }
        Ok(notes)
    }

    /// Removes snapshots of removed tasks, and packs all repositories; returns their sizes before and after.
    pub fn collect_garbage(&self) -> Result<(u64, u64), FilesError> {
        let before = self.checkpoints.all()?;
        let tasks = before.iter().flat_map(|info| info.tasks.keys());
        let is_gone = |task: &&Uuid| self.contexts.place(**task).is_none();
        let gone: BTreeSet<Uuid> = tasks.filter(is_gone).copied().collect();
        let gone: Vec<Uuid> = gone.into_iter().collect();
        self.checkpoints.forget(&gone)?;
        for info in &before {
            if let Some(mut shadow) = self.checkpoints.open_existing(&info.workspace)? {
                self.settle(&mut shadow)?;
                shadow.compact()?;
            }
        }
        let after = self.checkpoints.all()?;
        let bytes = |all: &[infold_checkpoint::ShadowInfo]| all.iter().map(|info| info.bytes).sum();
        Ok((bytes(&before), bytes(&after)))
    }
}

/// Records a snapshot, unless the last recorded one is the same.
pub fn record(
    writer: &mut Writer,
    workspace: &Path,
    snapshot: &Snapshot,
    note: CheckpointNote,
) -> Result<Option<EventId>, LogError> {
    let last: Option<FilesAt> = writer.log().last_files()?;
    if last.is_some_and(|last| last.at == snapshot.at && last.workspace == workspace) {
        return Ok(None);
    }
    let line = CheckpointLine {
        number: snapshot.at.number,
        workspace: workspace.to_owned(),
        files: FileCounts {
            added: snapshot.changes.added,
            changed: snapshot.changes.changed,
            removed: snapshot.changes.removed,
        },
        left_out: snapshot.left_out.len() as u64,
        note,
    };
    writer.checkpoint(line).map(Some)
}

fn task_of(log: &Log) -> Result<Uuid, FilesError> {
    log.task().ok_or(FilesError::NoWorkspace)
}
