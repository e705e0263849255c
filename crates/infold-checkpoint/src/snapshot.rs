//! Takes a snapshot.

use std::collections::BTreeMap;
use std::ffi::OsString;

use rustix::fs::{AtFlags, statat};
use uuid::Uuid;

use crate::about::{self, LeftOut};
use crate::compact;
use crate::error::CheckpointError;
use crate::id::{ObjectId, SnapshotRef};
use crate::import::{EntryContent, Import, ImportedCommit, TreeChange};
use crate::journal::PendingRestore;
use crate::last_snapshot::LastSnapshot;
use crate::listing::{FileKind, SnapshotFile, SnapshotListing};
use crate::objects::Objects;
use crate::read::{FileReader, WorkspaceFile, start_if_needed};
use crate::shadow::Shadow;
use crate::staging::{StagingDir, is_same};
use crate::stat::FileStat;
use crate::walk::{WalkedFile, WorkspaceWalkOptions, walk};

/// A snapshot that was taken, or the last one if nothing has changed since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Its name.
    pub at: SnapshotRef,
    /// Whether it was taken now.
    pub is_new: bool,
    /// The changes since the task's previous snapshot.
    pub changes: ChangeCounts,
    /// How many files and links it holds.
    pub files: u64,
    /// Paths that are not part of it, except ignored files.
    pub left_out: Vec<LeftOut>,
}

/// How many files differ between two snapshots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeCounts {
    /// Files that the first does not have.
    pub added: u64,
    /// Files with other contents, of another type or with other permissions.
    pub changed: u64,
    /// Files that the second does not have.
    pub removed: u64,
}

/// A workspace as it was read.
struct WorkspaceReading<'a> {
    /// All but the files.
    listing: SnapshotListing,
    files: BTreeMap<Vec<u8>, WorkspaceFile>,
    import: Option<Import<'a>>,
}

impl Shadow {
    /// Takes a snapshot of the workspace, unless nothing has changed since the task's last one.
    ///
    /// Its number is higher than `above`: give the highest number that the task's log names, 0 if there is none. So a
    /// number stays unique even if the shadow repository is lost.
    pub fn snapshot(&mut self, task: Uuid, above: u64) -> Result<Snapshot, CheckpointError> {
        self.refuse_if_unfinished()?;
        let (snapshot, _) = self.take_snapshot(task, above, None)?;
        Ok(snapshot)
    }

    /// Takes a snapshot, with everything that another one holds even if it is ignored by now.
    pub(crate) fn take_snapshot(
        &mut self,
        task: Uuid,
        above: u64,
        with_files_of: Option<&SnapshotListing>,
    ) -> Result<(Snapshot, SnapshotListing), CheckpointError> {
        let taken = self.try_snapshot(task, above, with_files_of);
        if let Err(CheckpointError::Full { .. }) = &taken {
            // The leftovers of this snapshot fill the disk for all other processes.
            self.repository.remove_leftovers();
        }
        match taken {
            Err(CheckpointError::Git { .. } | CheckpointError::Damaged { .. })
                if with_files_of.is_none() && self.repository.set_aside_if_damaged()? =>
            {
                self.try_snapshot(task, above, with_files_of)
            }
            taken => taken,
        }
    }

    fn try_snapshot(
        &mut self,
        task: Uuid,
        above: u64,
        with_files_of: Option<&SnapshotListing>,
    ) -> Result<(Snapshot, SnapshotListing), CheckpointError> {
        let base = self.load_base();
        let mut reading = self.read_workspace(base.as_ref(), with_files_of)?;
        let last = self.repository.refs.last(task);
        let last_is_base = match (&last, &base) {
            (Some((_, commit)), Some(base)) => *commit == base.commit,
            (None, _) => true,
            (Some(_), None) => false,
        };
        let read_last;
        let empty = SnapshotListing::default();
        let last_listing = match (last, &base) {
            (None, _) => &empty,
            (Some(_), Some(base)) if last_is_base => &base.listing,
            (Some((at, _)), _) => {
                read_last = self.repository.listing(at)?;
                &read_last
            }
        };
        if !last_is_base && let Some(import) = reading.import.take() {
            // Only the ids of new objects show whether they equal those of the task's last snapshot.
            reading.resolve(&import.finish()?)?;
        }
        let counts = ChangeCounts::between(&last_listing.files, &reading.files);
        if let Some((at, commit)) = last
            && reading.says_the_same(last_listing)
        {
            let snapshot = reading.snapshot(at, false, counts);
            if let Some(base) = &base
                && base.commit == commit
                && !reading.knows_the_same(base)
            {
                // Touched, not changed: without this they would be read each time.
                let about_text = base.about_text.clone();
                let touched = reading.into_base(base.commit, base.tree, about_text)?;
                touched.save(&self.repository.directory)?;
                return Ok((snapshot, touched.listing));
            }
            return Ok((snapshot, reading.into_listing()?));
        }
        let at = self.next_number(task, above);
        let snapshot = reading.snapshot(at, true, counts);
        let written = self.write_snapshot(at, base.as_ref(), reading)?;
        self.repository.refs.insert(at, written.commit);
        // The snapshot is valid from here on, even if derived files cannot be written.
        if written.save(&self.repository.directory).is_err() {
            LastSnapshot::remove(&self.repository.directory)?;
        }
        compact::if_due(&self.repository)?;
        Ok((snapshot, written.listing))
    }

    /// Returns the last snapshot of the workspace, if it is known.
    fn load_base(&self) -> Option<LastSnapshot> {
        let base = LastSnapshot::load(&self.repository.directory)?;
        self.repository
            .refs
            .holds_commit(base.commit)
            .then_some(base)
    }

    fn read_workspace<'a>(
        &'a self,
        base: Option<&LastSnapshot>,
        with_files_of: Option<&SnapshotListing>,
    ) -> Result<WorkspaceReading<'a>, CheckpointError> {
        let mut reader = FileReader {
            git: &self.repository.git,
            base,
            max_file_bytes: self.max_file_bytes,
            import: None,
            files: BTreeMap::new(),
        };
        let options = WorkspaceWalkOptions {
            workspace: &self.workspace,
            user_excludes: self.user_excludes.as_deref(),
            contexts: self.contexts,
            with_files_of,
        };
        let listing = walk(&options, &mut |file| reader.take(file))?;
        Ok(WorkspaceReading {
            listing,
            files: reader.files,
            import: reader.import,
        })
    }

    fn next_number(&self, task: Uuid, above: u64) -> SnapshotRef {
        let last = self
            .repository
            .refs
            .last(task)
            .map_or(0, |(at, _)| at.number);
        let number = last.max(above).max(self.repository.number_floor) + 1;
        SnapshotRef { task, number }
    }

    /// Takes a snapshot of the files that a restoration took out of the workspace, in addition to the one
    /// before it.
    pub(crate) fn save_taken(
        &mut self,
        pending: &PendingRestore,
        before: &SnapshotListing,
        staging: &StagingDir,
        taken: &[(Vec<u8>, OsString)],
    ) -> Result<SnapshotRef, CheckpointError> {
        let at = self.next_number(pending.task, 0);
        let commit = self.repository.commit_of(pending.from)?;
        let tree = self.repository.tree_of(commit)?;
        let mut reader = FileReader {
            git: &self.repository.git,
            base: None,
            max_file_bytes: u64::MAX,
            import: None,
            files: BTreeMap::new(),
        };
        for (path, name) in taken {
            let stat = statat(staging.handle(), name, AtFlags::SYMLINK_NOFOLLOW);
            let stat = stat.map_err(|error| CheckpointError::io("read", name, error))?;
            let file = WalkedFile {
                directory: staging.handle(),
                name,
                path,
                stat: FileStat::of(&stat),
            };
            if let Some(left_out) = reader.take(&file)? {
                let what = std::io::Error::other(left_out.why.name());
                return Err(CheckpointError::io("read", name, what));
            }
        }
        let written = reader.files.iter();
        let written = written.map(|(path, file)| (path.clone(), file.kind, file.content));
        let mut modes: BTreeMap<_, _> = before
            .files
            .iter()
            .map(|(path, file)| (path.as_slice(), (file.kind, file.mode)))
            .collect();
        for (path, file) in &reader.files {
            modes.insert(path, (file.kind, file.mode()));
        }
        let modes = modes.iter();
        let modes = modes.map(|(path, (kind, mode))| (*path, *kind, *mode));
        let change = TreeChange {
            base: Some(tree),
            removed: Vec::new(),
            written: written.collect(),
            about: about::write(before, modes),
        };
        let mut import = reader.import;
        let mark = start_if_needed(&mut import, &self.repository.git)?.commit(at, &change)?;
        let Some(import) = import else {
            return Ok(at);
        };
        let commit = import.finish()?.id(EntryContent::New(mark))?;
        self.repository.refs.insert(at, commit);
        self.check_saved(at, staging, taken)?;
        Ok(at)
    }

    /// Fails unless a snapshot can restore the files that were taken out, byte for byte.
    fn check_saved(
        &self,
        at: SnapshotRef,
        staging: &StagingDir,
        taken: &[(Vec<u8>, OsString)],
    ) -> Result<(), CheckpointError> {
        let listing = self.repository.listing(at)?;
        let mut objects = Objects::new(&self.repository.git);
        for (path, name) in taken {
            let file = listing.files.get(path);
            let is_saved = match file {
                Some(file) => is_same(staging.handle(), name, file, &mut objects)?,
                None => false,
            };
            if !is_saved {
                // The file changed again, or git's object of this id is a different one.
                let what = std::io::Error::other("it changed while it was read");
                return Err(CheckpointError::io("read", name, what));
            }
        }
        Ok(())
    }

    /// Writes a reading as a snapshot.
    fn write_snapshot(
        &self,
        at: SnapshotRef,
        base: Option<&LastSnapshot>,
        mut reading: WorkspaceReading<'_>,
    ) -> Result<LastSnapshot, CheckpointError> {
        if let Some(base) = base
            && reading.says_the_same(&base.listing)
        {
            // Another task's snapshot holds the same.
            let mut import = Import::start(&self.repository.git)?;
            import.set_ref(at, EntryContent::Known(base.commit))?;
            import.finish()?;
            return reading.into_base(base.commit, base.tree, base.about_text.clone());
        }
        let change = reading.change_from(base);
        let mut import = reading.import.take();
        let commit = start_if_needed(&mut import, &self.repository.git)?.commit(at, &change)?;
        let imported = match import {
            Some(import) => import.finish()?,
            None => return Err(unsaid()),
        };
        reading.resolve(&imported)?;
        let commit = imported.id(EntryContent::New(commit))?;
        let tree = imported.trees.first().copied().ok_or_else(unsaid)?;
        reading.into_base(commit, tree, change.about)
    }
}

impl WorkspaceReading<'_> {
    /// Replaces marks of objects that were being written by their ids.
    fn resolve(&mut self, imported: &ImportedCommit) -> Result<(), CheckpointError> {
        for file in self.files.values_mut() {
            file.content = EntryContent::Known(imported.id(file.content)?);
        }
        Ok(())
    }

    /// Returns whether a listing is the same; objects that are being written have no known id yet.
    fn says_the_same(&self, listing: &SnapshotListing) -> bool {
        let files = self.files.iter().zip(&listing.files);
        self.files.len() == listing.files.len()
            && self.listing.says_the_same_beside_files(listing)
            && { files }.all(|((path, file), (known_path, known))| {
                path == known_path && file.in_snapshot().as_ref() == Some(known)
            })
    }

    fn knows_the_same(&self, base: &LastSnapshot) -> bool {
        let files = self.files.iter().zip(&base.files);
        self.files.len() == base.files.len() && { files }
            .all(|((path, file), (known_path, known))| path == known_path && file.known == *known)
    }

    fn snapshot(&self, at: SnapshotRef, is_new: bool, changes: ChangeCounts) -> Snapshot {
        let left_out = self.listing.left_out.iter();
        Snapshot {
            at,
            is_new,
            changes,
            files: self.files.len() as u64,
            left_out: left_out.map(|(path, entry)| entry.public(path)).collect(),
        }
    }

    fn into_listing(self) -> Result<SnapshotListing, CheckpointError> {
        let mut listing = self.listing;
        let files = self.files.into_iter();
        let files = files.map(|(path, file)| Some((path, file.in_snapshot()?)));
        listing.files = files.collect::<Option<_>>().ok_or_else(unsaid)?;
        Ok(listing)
    }

    fn into_base(
        self,
        commit: ObjectId,
        tree: ObjectId,
        about_text: Vec<u8>,
    ) -> Result<LastSnapshot, CheckpointError> {
        let files = self.files.iter();
        let files = files
            .map(|(path, file)| (path.clone(), file.known))
            .collect();
        Ok(LastSnapshot {
            commit,
            tree,
            about_text,
            files,
            listing: self.into_listing()?,
        })
    }

    /// Returns the change that turns the tree of a base into that of this reading.
    fn change_from(&self, base: Option<&LastSnapshot>) -> TreeChange {
        let empty = BTreeMap::new();
        let before = base.map_or(&empty, |base| &base.listing.files);
        let removed = before
            .keys()
            .filter(|path| !self.files.contains_key(*path))
            .cloned();
        let written = self.files.iter().filter(|(path, file)| {
            let before = before.get(*path);
            !before.is_some_and(|before| {
                before.kind == file.kind && file.content == EntryContent::Known(before.id)
            })
        });
        let modes = self.files.iter();
        let modes = modes.map(|(path, file)| (path.as_slice(), file.kind, file.mode()));
        TreeChange {
            base: base.map(|base| base.tree),
            removed: removed.collect(),
            written: written
                .map(|(path, file)| (path.clone(), file.kind, file.content))
                .collect(),
            about: about::write(&self.listing, modes),
        }
    }
}

fn unsaid() -> CheckpointError {
    CheckpointError::Git {
        doing: "write a checkpoint",
        said: "it did not say what it wrote".to_owned(),
    }
}

impl WorkspaceFile {
    fn mode(&self) -> u32 {
        match self.kind {
            FileKind::Link => 0o777,
            _ => self.known.stat.permissions(),
        }
    }

    /// Returns it as a snapshot has it, once its id is known.
    fn in_snapshot(&self) -> Option<SnapshotFile> {
        let EntryContent::Known(id) = self.content else {
            return None;
        };
        Some(SnapshotFile {
            kind: self.kind,
            mode: self.mode(),
            id,
        })
    }
}

impl ChangeCounts {
    /// Returns whether no file differs.
    pub fn is_empty(&self) -> bool {
        *self == ChangeCounts::default()
    }

    fn between(
        before: &BTreeMap<Vec<u8>, SnapshotFile>,
        after: &BTreeMap<Vec<u8>, WorkspaceFile>,
    ) -> ChangeCounts {
        let (mut both, mut changed) = (0, 0);
        for (path, file) in after {
            if let Some(before) = before.get(path) {
                both += 1;
                changed += u64::from(file.in_snapshot() != Some(*before));
            }
        }
        ChangeCounts {
            added: after.len() as u64 - both,
            changed,
            removed: before.len() as u64 - both,
        }
    }
}
