//! A temporary snapshot for a comparison.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;

use uuid::Uuid;

use crate::compact;
use crate::error::CheckpointError;
use crate::id::SnapshotRef;
use crate::import::Import;
use crate::last_snapshot::{self, LastSnapshot};
use crate::refs::Refs;
use crate::repository::ShadowRepository;
use crate::shadow::Shadow;

/// Snapshots for comparisons belong to no task.
const PASSING_TASK: Uuid = Uuid::nil();

/// The state of the repository before a snapshot for a comparison.
#[derive(Debug)]
pub(crate) struct Passing {
    /// The metadata of known files.
    known_files: Option<Vec<u8>>,
    packs: BTreeSet<OsString>,
}

impl Shadow {
    /// Takes a snapshot for a comparison. [`Shadow::drop_passing`] removes it; if that is not called, it is
    /// removed when the checkpoints are next opened.
    pub fn passing_snapshot(&mut self) -> Result<SnapshotRef, CheckpointError> {
        let passing = Passing {
            known_files: last_snapshot::read_bytes(&self.repository.directory),
            packs: self.repository.packs(),
        };
        let taken = self.snapshot(PASSING_TASK, 0)?;
        self.passing = Some(passing);
        Ok(taken.at)
    }

    /// Removes the snapshot that was taken for a comparison, and objects that no other snapshot needs.
    pub fn drop_passing(&mut self) -> Result<(), CheckpointError> {
        match self.passing.take() {
            Some(passing) => self.repository.drop_passing(Some(passing)),
            None => Ok(()),
        }
    }
}

impl ShadowRepository {
    /// Removes snapshots that were taken for comparisons, and objects that no other snapshot needs. `before` is
    /// none if a killed process left them.
    pub fn drop_passing(&mut self, before: Option<Passing>) -> Result<(), CheckpointError> {
        let refs = self.refs.iter().map(|(at, _)| at);
        let passing: Vec<SnapshotRef> = refs.filter(|at| at.task == PASSING_TASK).collect();
        if passing.is_empty() {
            return Ok(());
        }
        let mut import = Import::start(&self.git)?;
        for at in &passing {
            import.delete_ref(*at)?;
        }
        import.finish()?;
        self.refs = Refs::read(self.git.directory())?;
        let is_packed = before
            .as_ref()
            .is_none_or(|before| before.packs != self.packs());
        match before.and_then(|before| before.known_files) {
            Some(bytes) => last_snapshot::write_bytes(&self.directory, &bytes)?,
            None => LastSnapshot::remove(&self.directory)?,
        }
        if is_packed {
            compact::pack(self)?;
        } else {
            compact::prune(self)?;
        }
        Ok(())
    }

    fn packs(&self) -> BTreeSet<OsString> {
        let packs = self.git.directory().join("objects/pack");
        let entries = fs::read_dir(packs).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name()).collect()
    }
}
