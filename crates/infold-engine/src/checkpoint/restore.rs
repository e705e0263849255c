//! Puts files back with a step: what is there is kept first, the step is recorded, then the files are written.

use std::path::{Path, PathBuf};

use infold_checkpoint::{Prepared, Restored, SnapshotRef};
use infold_log::steer::{Side, Target};
use infold_store::{CheckpointNote, FilesAt, Log, Restoration, Writer};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{FileHistory, FilesError, OpenShadow, record, task_of};
use crate::numbers::count;

/// A restoration whose files are kept and not yet touched.
#[must_use = "carry it out or abandon it"]
pub struct BegunRestore {
    open: OpenShadow,
    prepared: Prepared,
    restoration: Restoration,
}

/// What became of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreReport {
    /// The workspace.
    pub workspace: PathBuf,
    /// Files that were written.
    pub written: Vec<PathBuf>,
    /// Files that were removed.
    pub removed: Vec<PathBuf>,
    /// What was left as it is, and why.
    pub kept: Vec<(PathBuf, String)>,
    /// What was put right on the way.
    pub notes: Vec<String>,
}

impl FileHistory {
    /// Returns what was kept of the files at a target.
    pub fn files_of(&self, log: &Log, side: Side, target: Target) -> Result<FilesAt, FilesError> {
        if let Some(files) = log.files_of(side, target)? {
            return Ok(files);
        }
        let mut first = None;
        log.each_checkpoint(|files, _, _| {
            first = Some(files.event);
            true
        })?;
        Err(FilesError::NoneBefore { first })
    }

    /// Begins to put the files of a snapshot in place: keeps what is there, and records it.
    pub fn begin(
        &self,
        writer: &mut Writer,
        workspace: &Path,
        to: SnapshotRef,
    ) -> Result<BegunRestore, FilesError> {
        let task = task_of(writer.log())?;
        let mut open = self.open(workspace)?;
        let id = Uuid::new_v4().to_string();
        let prepared = open.shadow.prepare(&id, task, to)?;
        let workspace = open.shadow.workspace().to_owned();
        let restoration = Restoration {
            workspace,
            from: prepared.from.at,
            to,
            id,
        };
        let kept = &prepared.from;
        if let Err(error) = record(
            writer,
            &restoration.workspace,
            kept,
            CheckpointNote::Restore,
        ) {
            open.shadow.abandon()?;
            return Err(error.into());
        }
        Ok(BegunRestore {
            open,
            prepared,
            restoration,
        })
    }

    /// Begins to put back what a step had replaced; none if the step touched no files, or files are to be left alone.
    pub fn begin_to_take_back(
        &self,
        writer: &mut Writer,
        step: Option<infold_log::EventId>,
    ) -> Result<Option<BegunRestore>, FilesError> {
        let Some(step) = step.filter(|_| self.restores) else {
            return Ok(None);
        };
        let Some(restore) = writer.log().restore_of(step.get())? else {
            return Ok(None);
        };
        self.begin(writer, &restore.workspace, restore.from)
            .map(Some)
    }
}

impl BegunRestore {
    /// What the step records of it.
    pub fn restoration(&self) -> Restoration {
        self.restoration.clone()
    }

    /// Leaves the files as they are: the step was refused.
    pub fn abandon(mut self) -> Result<(), FilesError> {
        Ok(self.open.shadow.abandon()?)
    }

    /// Writes the files, once the step is recorded.
    pub fn carry_out(mut self) -> Result<RestoreReport, FilesError> {
        let restored = self.open.shadow.carry_out(self.prepared);
        let restored = restored.map_err(|source| FilesError::Unfinished { source })?;
        let mut report = RestoreReport::new(&self.restoration.workspace, &restored);
        report.notes = self.open.notes;
        Ok(report)
    }
}

impl RestoreReport {
    pub(super) fn new(workspace: &Path, restored: &Restored) -> RestoreReport {
        let kept = restored.kept.iter();
        RestoreReport {
            workspace: workspace.to_owned(),
            written: restored.written.clone(),
            removed: restored.removed.clone(),
            kept: kept
                .map(|(path, why)| (path.clone(), why.to_string()))
                .collect(),
            notes: Vec::new(),
        }
    }

    /// Says in a few words what became of the files.
    pub fn text(&self) -> String {
        let (written, removed) = (self.written.len() as u64, self.removed.len() as u64);
        let mut text = match (written, removed) {
            (0, 0) => "no file differed".to_owned(),
            _ => format!("{} written, {removed} removed", count(written, "file")),
        };
        if !self.kept.is_empty() {
            text += &format!(", {} left as they are", self.kept.len());
        }
        text
    }

    /// The same for scripts.
    pub fn json(&self) -> Value {
        let paths = |paths: &[PathBuf]| -> Vec<String> {
            paths
                .iter()
                .map(|path| path.display().to_string())
                .collect()
        };
        let kept = self.kept.iter();
        let kept: Vec<Value> = kept
            .map(|(path, why)| json!({"path": path.display().to_string(), "why": why}))
            .collect();
        json!({
            "workspace": self.workspace.display().to_string(),
            "written": paths(&self.written), "removed": paths(&self.removed), "kept": kept,
        })
    }
}
