//! The differences between the files of two points.

use std::io::Write;
use std::path::{Path, PathBuf};

use infold_checkpoint::{DiffOptions, FileChange, SnapshotRef};
use infold_log::steer::{Side, Target};
use infold_store::Log;

use super::{FileHistory, FilePoint, FileRange, FilesError, OpenShadow};

/// Two points that can be compared.
pub struct Comparison {
    /// The repository.
    pub open: OpenShadow,
    /// The workspace.
    pub workspace: PathBuf,
    from: SnapshotRef,
    to: SnapshotRef,
}

impl FileHistory {
    /// Finds the files of two points.
    pub fn compare(&self, log: &Log, range: FileRange) -> Result<Comparison, FilesError> {
        let kept = |point: FilePoint| match point {
            FilePoint::At(target) => self.files_of(log, Side::To, target).map(Some),
            FilePoint::Now => Ok(None),
        };
        let (from, to) = (kept(range.from)?, kept(range.to)?);
        let workspace = match (&from, &to) {
            (Some(from), Some(to)) if from.workspace != to.workspace => {
                return Err(FilesError::TwoWorkspaces {
                    from: from.workspace.clone(),
                    to: to.workspace.clone(),
                });
            }
            (Some(files), _) | (None, Some(files)) => files.workspace.clone(),
            (None, None) => self.workspace_of(log)?,
        };
        let (from, to) = (from.map(|files| files.at), to.map(|files| files.at));
        self.compare_snapshots(&workspace, from, to)
    }

    /// Computes the changes that going back to a target would make.
    pub fn preview(&self, log: &Log, side: Side, target: Target) -> Result<Comparison, FilesError> {
        let files = self.files_of(log, side, target)?;
        self.compare_snapshots(&files.workspace, None, Some(files.at))
    }

    /// Compares two snapshots, or one with the directory.
    fn compare_snapshots(
        &self,
        workspace: &Path,
        from: Option<SnapshotRef>,
        to: Option<SnapshotRef>,
    ) -> Result<Comparison, FilesError> {
        let mut open = self.open(workspace)?;
        let now = match (from, to) {
            (Some(_), Some(_)) => None,
            _ => Some(open.shadow.passing_snapshot()?),
        };
        let at = |point: Option<SnapshotRef>| point.or(now).ok_or(FilesError::NoWorkspace);
        Ok(Comparison {
            from: at(from)?,
            to: at(to)?,
            workspace: open.shadow.workspace().to_owned(),
            open,
        })
    }
}

impl Drop for Comparison {
    fn drop(&mut self) {
        // Files that could not be removed are removed when the checkpoints are opened next.
        let _ = self.open.shadow.drop_passing();
    }
}

impl Comparison {
    /// Lists the files that differ.
    pub fn changes(&self) -> Result<Vec<FileChange>, FilesError> {
        Ok(self.open.shadow.changes(self.from, self.to)?)
    }

    /// Lists the changes that restoring the second from the first would make.
    pub fn planned_changes(&self) -> Result<Vec<FileChange>, FilesError> {
        Ok(self.open.shadow.planned_changes(self.from, self.to)?)
    }

    /// Writes the differences in the files.
    pub fn diff(&self, options: &DiffOptions, out: &mut dyn Write) -> Result<(), FilesError> {
        Ok(self.open.shadow.diff(self.from, self.to, options, out)?)
    }
}
