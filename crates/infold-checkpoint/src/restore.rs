//! Restores a workspace from a snapshot.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use uuid::Uuid;

use crate::about::LeftOutReason;
use crate::carry_out::CarryOut;
use crate::changes::{ChangeKind, FileChange, changes_between};
use crate::error::CheckpointError;
use crate::id::SnapshotRef;
use crate::journal::{Journal, PendingRestore};
use crate::listing::SnapshotListing;
use crate::objects::Objects;
use crate::plan::RestorePlan;
use crate::shadow::Shadow;
use crate::snapshot::Snapshot;
use crate::staging::StagingDir;
use crate::target_rules::TargetRules;
use crate::workspace::to_path;

/// A restoration that is prepared: nothing has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "`Shadow::finish_restore` carries it out, `Shadow::abandon_restore` drops it"]
pub struct PreparedRestore {
    /// The snapshot of the current workspace.
    pub from: Snapshot,
}

/// The result of a restoration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// How many files and links were written.
    pub written: u64,
    /// How many were removed.
    pub removed: u64,
    /// The number of files of which only the permissions were set.
    pub modes_set: u64,
    /// Paths that stay as they are although they differ from the snapshot.
    pub kept: Vec<Kept>,
    /// Paths of the snapshot that were not restored because of those kept.
    pub not_restored: Vec<PathBuf>,
    /// Snapshots of files that other processes changed during the restoration, if there are any. They hold what
    /// was overwritten.
    pub saved: Vec<SnapshotRef>,
    /// Paths that other processes changed during the restoration and that were overwritten.
    pub overwritten: Vec<PathBuf>,
}

/// Something that a restoration left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its path in the workspace.
    pub path: PathBuf,
    /// Why.
    pub why: KeptReason,
}

/// The reason why a restoration left a path as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptReason {
    /// It was left out of the snapshot of the current files.
    LeftOut(LeftOutReason),
    /// Ignore rules leave it out.
    Ignored,
    /// A directory with an entry that no snapshot holds.
    NotEmpty,
    /// It was created or changed meanwhile.
    Changed,
    /// The snapshot of it cannot be read.
    Damaged,
    /// The system refused, with this error.
    Refused(String),
}

impl Shadow {
    /// Takes a snapshot of the current files, and records that the workspace is to become that of `to`. `id`
    /// identifies the restoration to the caller; `above` is as for [`Shadow::snapshot`].
    ///
    /// Nothing is changed until [`Shadow::finish_restore`], which any process that opens the checkpoints later
    /// can call as well.
    pub fn prepare_restore(
        &mut self,
        id: &str,
        task: Uuid,
        above: u64,
        to: SnapshotRef,
    ) -> Result<PreparedRestore, CheckpointError> {
        self.refuse_if_unfinished()?;
        let from = self
            .repository
            .listing(to)
            .and_then(|target| self.take_snapshot(task, above, Some(&target)))
            .map_err(|error| self.repository.diagnose(error))?;
        let (from, _) = from;
        let pending = PendingRestore {
            id: id.to_owned(),
            task,
            from: from.at,
            to,
        };
        self.journal = Some(Journal::write(&self.repository.directory, pending)?);
        Ok(PreparedRestore { from })
    }

    /// Lists the changes that a restoration makes: the differences between two snapshots, without files that
    /// were ignored when `to` was taken, or are by its rules.
    pub fn planned_changes(
        &self,
        from: SnapshotRef,
        to: SnapshotRef,
    ) -> Result<Vec<FileChange>, CheckpointError> {
        let (now, target) = (self.repository.listing(from)?, self.repository.listing(to)?);
        let plan = self.plan(&now, &target)?;
        let removed: BTreeSet<PathBuf> = plan.removed.iter().map(|path| to_path(path)).collect();
        let mut changes = changes_between(&now, &target);
        changes
            .retain(|change| change.kind != ChangeKind::Removed || removed.contains(&change.path));
        Ok(changes)
    }

    /// Carries out the restoration that is prepared or was cut off. None if there is none.
    ///
    /// Whatever happens meanwhile, it can be called again.
    pub fn finish_restore(&mut self) -> Result<Option<Restored>, CheckpointError> {
        let Some(pending) = self.pending().cloned() else {
            return Ok(None);
        };
        match self.carry_out(&pending) {
            Ok(restored) => {
                if let Some(journal) = self.journal.take() {
                    journal.remove()?;
                }
                Ok(Some(restored))
            }
            Err(error) => Err(self.repository.diagnose(error)),
        }
    }

    /// Drops a restoration that is prepared. Refused if it has begun.
    pub fn abandon_restore(&mut self) -> Result<(), CheckpointError> {
        let Some(journal) = self.journal.take() else {
            return Ok(());
        };
        if StagingDir::exists(&self.workspace, &journal.pending.id) {
            self.journal = Some(journal);
            return self.refuse_if_unfinished();
        }
        journal.remove()
    }

    /// Restores the workspace from a snapshot, after a snapshot of the current files.
    pub fn restore(
        &mut self,
        id: &str,
        task: Uuid,
        above: u64,
        to: SnapshotRef,
    ) -> Result<(Snapshot, Restored), CheckpointError> {
        let prepared = self.prepare_restore(id, task, above, to)?;
        let restored = self.finish_restore()?.unwrap_or_default();
        Ok((prepared.from, restored))
    }

    fn carry_out(&mut self, pending: &PendingRestore) -> Result<Restored, CheckpointError> {
        let now = self.repository.listing(pending.from)?;
        let target = self.repository.listing(pending.to)?;
        let plan = self.plan(&now, &target)?;
        let staging = StagingDir::open(&self.workspace, &pending.id)?;
        let mut carry_out = CarryOut {
            workspace: &self.workspace,
            staging: &staging,
            now: &now,
            target: &target,
            objects: Objects::new(&self.repository.git),
            restored: Restored::default(),
            changed: Vec::new(),
            kept: BTreeMap::new(),
            damage: None,
            made_writable: BTreeSet::new(),
        };
        carry_out.sort_leftovers()?;
        carry_out.stage(&plan)?;
        carry_out.apply(&plan)?;
        let changed = std::mem::take(&mut carry_out.changed);
        let damage = carry_out.damage.take();
        let mut restored = carry_out.finish(&plan)?;
        let mut changed = changed;
        while !changed.is_empty() {
            // A snapshot can contain only one file for each path.
            let mut paths = BTreeSet::new();
            let (batch, rest): (Vec<_>, Vec<_>) = changed
                .into_iter()
                .partition(|(path, _): &(Vec<u8>, _)| paths.insert(path.clone()));
            let saved = self.save_taken(pending, &now, &staging, &batch)?;
            restored.saved.push(saved);
            for (path, name) in &batch {
                staging.discard(name)?;
                restored.overwritten.push(crate::workspace::to_path(path));
            }
            changed = rest;
        }
        if let Some(what) = damage {
            self.repository.mark_damaged(&what);
        }
        self.workspace.sync();
        if staging.remove(&self.workspace).is_err() {
            let name = StagingDir::name_of(&pending.id);
            let path = self.workspace.path().join(name);
            self.repository.warn(format!(
                "`{}` holds files that no checkpoint accounts for",
                path.display()
            ));
        }
        Ok(restored)
    }

    fn plan(
        &self,
        now: &SnapshotListing,
        target: &SnapshotListing,
    ) -> Result<RestorePlan, CheckpointError> {
        let mut objects = Objects::new(&self.repository.git);
        let mut rules = TargetRules {
            workspace: &self.workspace,
            user_excludes: self.user_excludes.as_deref(),
            now,
            target,
            objects: &mut objects,
            known: HashMap::new(),
            failed: None,
        };
        let plan = RestorePlan::new(now, target, &mut |path, is_directory| {
            rules.is_ignored(path, is_directory)
        });
        match rules.failed {
            None => Ok(plan),
            Some(error) => Err(error),
        }
    }
}
