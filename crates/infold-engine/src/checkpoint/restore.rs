//! Restores files with a step: the present files are saved first, the step is recorded, then the files are written.

use std::path::{Path, PathBuf};

use infold_checkpoint::{
    CheckpointError, FileChange, KeptReason, LeftOutReason, Shadow, SnapshotRef,
};
use infold_log::steer::{Side, Target};
use infold_store::{CheckpointNote, FilesAt, Log, Restoration, Writer};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{FileHistory, FilesError, OpenShadow, record, task_of};
use crate::numbers::count;

/// A restoration whose present files are saved, and whose files are not written yet.
#[must_use = "carry it out or abandon it"]
pub struct BegunRestore {
    open: OpenShadow,
    restoration: Restoration,
}

/// The outcome of restoring files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreReport {
    /// The workspace.
    pub workspace: PathBuf,
    /// Files that were written, or whose permissions were set.
    pub written: Vec<PathBuf>,
    /// Files that were removed.
    pub removed: Vec<PathBuf>,
    /// Files that were left as they are, with the reasons.
    pub kept: Vec<(PathBuf, String)>,
    /// Files that could not be restored because of those that were left.
    pub not_restored: Vec<PathBuf>,
    /// Files that other programs changed meanwhile; a snapshot has their contents.
    pub overwritten: Vec<PathBuf>,
    /// The repairs that were made on the way, in whole sentences.
    pub notes: Vec<String>,
}

impl FileHistory {
    /// Returns the checkpoint of the files at a target.
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

    /// Begins to restore the files of a snapshot: saves the present ones, and records that snapshot.
    pub fn begin(
        &self,
        writer: &mut Writer,
        workspace: &Path,
        to: SnapshotRef,
    ) -> Result<BegunRestore, FilesError> {
        let task = task_of(writer.log())?;
        let above = writer.log().last_checkpoint()?;
        let mut open = self.open(workspace)?;
        let id = Uuid::new_v4().to_string();
        let prepared = open.shadow.prepare_restore(&id, task, above, to)?;
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
            open.shadow.abandon_restore()?;
            return Err(error.into());
        }
        Ok(BegunRestore { open, restoration })
    }

    /// Begins to restore the files that a step had replaced; `None` if the step touched no files, or files are to be
    /// left alone.
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
    /// Returns the record of the restoration for the step.
    pub fn restoration(&self) -> Restoration {
        self.restoration.clone()
    }

    /// Leaves the files as they are: the step was refused.
    pub fn abandon(mut self) -> Result<(), FilesError> {
        Ok(self.open.shadow.abandon_restore()?)
    }

    /// Writes the files, once the step is recorded.
    pub fn carry_out(mut self) -> Result<RestoreReport, FilesError> {
        let Restoration { from, to, .. } = self.restoration;
        let restored = finish(&mut self.open.shadow, from, to);
        let mut report = restored.map_err(|source| FilesError::Unfinished { source })?;
        report.notes = self.open.notes;
        Ok(report)
    }
}

/// Writes the files of a restoration that is prepared or was cut off.
pub(super) fn finish(
    shadow: &mut Shadow,
    from: SnapshotRef,
    to: SnapshotRef,
) -> Result<RestoreReport, CheckpointError> {
    let changes = shadow.planned_changes(from, to)?;
    let restored = shadow.finish_restore()?.unwrap_or_default();
    let stayed = |path: &PathBuf| {
        let mut kept = restored.kept.iter();
        kept.any(|kept| kept.path == *path) || restored.not_restored.contains(path)
    };
    let done = changes.into_iter().filter(|change| !stayed(&change.path));
    let is_removal = |change: &FileChange| change.kind == infold_checkpoint::ChangeKind::Removed;
    let (removed, written): (Vec<_>, Vec<_>) = done.partition(is_removal);
    let paths = |changes: Vec<FileChange>| changes.into_iter().map(|change| change.path).collect();
    let kept = restored.kept.into_iter();
    Ok(RestoreReport {
        workspace: shadow.workspace().to_owned(),
        written: paths(written),
        removed: paths(removed),
        kept: kept
            .map(|kept| (kept.path, describe_kept(&kept.why)))
            .collect(),
        not_restored: restored.not_restored,
        overwritten: restored.overwritten,
        notes: Vec::new(),
    })
}

/// Returns the reason that a file was left as it is, for people.
fn describe_kept(why: &KeptReason) -> String {
    match why {
        KeptReason::LeftOut(why) => format!("no checkpoint has it ({})", describe_left_out(*why)),
        KeptReason::Ignored => "ignore rules leave it out".to_owned(),
        KeptReason::NotEmpty => "it has files that no checkpoint has".to_owned(),
        KeptReason::Changed => "it was changed meanwhile".to_owned(),
        KeptReason::Damaged => "the checkpoint of it cannot be read".to_owned(),
        KeptReason::Refused(said) => said.clone(),
    }
}

/// Says why something is not part of a snapshot.
pub fn describe_left_out(why: LeftOutReason) -> &'static str {
    match why {
        LeftOutReason::TooLarge => "too large",
        LeftOutReason::Unreadable => "unreadable",
        LeftOutReason::Special => "a FIFO, a socket or a device",
        LeftOutReason::Changing => "it changed each time that it was read",
        LeftOutReason::Name => "git cannot keep the name",
        LeftOutReason::OtherDevice => "on another device",
        LeftOutReason::TooDeep => "too deep below the workspace",
        LeftOutReason::Redacted => "redacted",
    }
}

impl RestoreReport {
    /// Describes the outcome in a few words.
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

    /// Returns the report as JSON for scripts.
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
            "not_restored": paths(&self.not_restored), "overwritten": paths(&self.overwritten),
        })
    }
}
