//! Takes a snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use rustix::fs::{AtFlags, statat};
use uuid::Uuid;

use crate::about::{self, LeftOut};
use crate::base::{Base, KnownFile};
use crate::compact;
use crate::error::CheckpointError;
use crate::id::{ObjectId, SnapshotRef};
use crate::import::{Content, Import, Imported, TreeChange};
use crate::journal::PendingRestore;
use crate::listing::{FileKind, Listing, SnapshotFile};
use crate::objects::Objects;
use crate::read::{FileReader, ReadFile, started};
use crate::shadow::Shadow;
use crate::staging::{Staging, is_same};
use crate::stat::FileStat;
use crate::walk::{WalkOptions, WalkedFile, walk};

/// A snapshot that was taken, or the last one if nothing has changed since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Its name.
    pub at: SnapshotRef,
    /// Whether it was taken now.
    pub is_new: bool,
    /// What has changed since the task's last one.
    pub changes: ChangeCounts,
    /// How many files and links it holds.
    pub files: u64,
    /// What is not part of it, ignored files aside.
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
struct Reading<'a> {
    /// All but the files.
    listing: Listing,
    files: BTreeMap<Vec<u8>, ReadFile>,
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
        with_files_of: Option<&Listing>,
    ) -> Result<(Snapshot, Listing), CheckpointError> {
        let taken = self.try_snapshot(task, above, with_files_of);
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
        with_files_of: Option<&Listing>,
    ) -> Result<(Snapshot, Listing), CheckpointError> {
        let base = self.load_base();
        let mut reading = self.read_workspace(base.as_ref(), with_files_of)?;
        let last = self.repository.refs.last(task);
        let last_is_base = match (&last, &base) {
            (Some((_, commit)), Some(base)) => *commit == base.commit,
            (None, _) => true,
            (Some(_), None) => false,
        };
        let last_listing = match (last, &base) {
            (None, _) => Listing::default(),
            (Some(_), Some(base)) if last_is_base => base.listing.clone(),
            (Some((_, commit)), _) => {
                let mut objects = Objects::new(&self.repository.git);
                Listing::read(&self.repository.git, &mut objects, commit)?
            }
        };
        if !last_is_base && let Some(import) = reading.import.take() {
            // Only the ids of what is new tell whether it is what the task's last snapshot has.
            reading.resolve(&import.finish()?)?;
        }
        let snapshot = |at, is_new, now: &Listing| Snapshot {
            at,
            is_new,
            changes: ChangeCounts::between(&last_listing, now),
            files: now.files.len() as u64,
            left_out: now
                .left_out
                .iter()
                .map(|(path, entry)| entry.public(path))
                .collect(),
        };
        if reading.import.is_none()
            && let Some((at, commit)) = last
            && let Some(now) = reading.known_listing()
            && now.says_the_same(&last_listing)
        {
            if let Some(mut base) = base
                && base.commit == commit
                && base.files != reading.known_files()
            {
                // Touched, not changed: without this they would be read each time.
                base.files = reading.known_files();
                base.save(&self.repository.directory)?;
            }
            return Ok((snapshot(at, false, &now), now));
        }
        let at = self.next_number(task, above);
        let base = self.write_snapshot(at, base.as_ref(), reading)?;
        self.repository.refs.insert(at, base.commit);
        // A snapshot counts from here on, whatever becomes of what is derived from it.
        let saved = base.save(&self.repository.directory);
        if saved.is_err() {
            Base::remove(&self.repository.directory)?;
        }
        compact::if_due(&self.repository)?;
        Ok((snapshot(at, true, &base.listing), base.listing))
    }

    /// Returns the last snapshot of the workspace, if it is known.
    fn load_base(&self) -> Option<Base> {
        let base = Base::load(&self.repository.directory)?;
        self.repository
            .refs
            .holds_commit(base.commit)
            .then_some(base)
    }

    fn read_workspace<'a>(
        &'a self,
        base: Option<&Base>,
        with_files_of: Option<&Listing>,
    ) -> Result<Reading<'a>, CheckpointError> {
        let mut reader = FileReader {
            git: &self.repository.git,
            base,
            max_file_bytes: self.max_file_bytes,
            import: None,
            files: BTreeMap::new(),
        };
        let options = WalkOptions {
            workspace: &self.workspace,
            user_excludes: self.user_excludes.as_deref(),
            contexts: self.contexts,
            with_files_of,
        };
        let listing = walk(&options, &mut |file| reader.take(file))?;
        Ok(Reading {
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

    /// Takes a snapshot of what a restoration took out of the workspace, beside what was there before.
    pub(crate) fn save_taken(
        &mut self,
        pending: &PendingRestore,
        before: &Listing,
        staging: &Staging,
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
        let mut about = before.clone();
        let mut written = Vec::new();
        for (path, file) in &reader.files {
            about
                .files
                .insert(path.clone(), file.in_snapshot(ObjectId([0; 20])));
            written.push((path.clone(), file.kind, file.content));
        }
        let change = TreeChange {
            base: Some(tree),
            removed: Vec::new(),
            written,
            about: about::write(&about),
        };
        let mut import = reader.import;
        let mark = started(&mut import, &self.repository.git)?.commit(at, &change)?;
        let Some(import) = import else {
            return Ok(at);
        };
        let commit = import.finish()?.id(Content::New(mark))?;
        self.repository.refs.insert(at, commit);
        self.check_saved(at, staging, taken)?;
        Ok(at)
    }

    /// Fails unless a snapshot gives back what was taken out, byte for byte.
    fn check_saved(
        &self,
        at: SnapshotRef,
        staging: &Staging,
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
                // It changed again, or what git had under its id is something else.
                let what = std::io::Error::other("it changed while it was read");
                return Err(CheckpointError::io("read", name, what));
            }
        }
        Ok(())
    }

    /// Writes what was read as a snapshot.
    fn write_snapshot(
        &self,
        at: SnapshotRef,
        base: Option<&Base>,
        mut reading: Reading<'_>,
    ) -> Result<Base, CheckpointError> {
        let known_files = reading.known_files();
        if let Some(base) = base
            && let Some(now) = reading.known_listing()
            && now == base.listing
        {
            // Another task's snapshot holds the same.
            let mut import = Import::start(&self.repository.git)?;
            import.set_ref(at, Content::Known(base.commit))?;
            import.finish()?;
            return Ok(Base {
                commit: base.commit,
                tree: base.tree,
                listing: now,
                files: known_files,
            });
        }
        let change = reading.change_from(base);
        let mut import = reading.import.take();
        let commit = started(&mut import, &self.repository.git)?.commit(at, &change)?;
        let imported = match import {
            Some(import) => import.finish()?,
            None => unreachable!("it was started"),
        };
        reading.resolve(&imported)?;
        let listing = reading.known_listing();
        let tree = imported.trees.first().copied();
        match (listing, tree) {
            (Some(listing), Some(tree)) => Ok(Base {
                commit: imported.id(Content::New(commit))?,
                tree,
                listing,
                files: known_files,
            }),
            _ => Err(CheckpointError::Git {
                doing: "write a checkpoint",
                said: "it did not say what it wrote".to_owned(),
            }),
        }
    }
}

impl Reading<'_> {
    /// Replaces what is being written by its ids.
    fn resolve(&mut self, imported: &Imported) -> Result<(), CheckpointError> {
        for file in self.files.values_mut() {
            file.content = Content::Known(imported.id(file.content)?);
        }
        Ok(())
    }

    /// Returns the listing, if the ids of all files are known.
    fn known_listing(&self) -> Option<Listing> {
        let mut listing = self.listing.clone();
        for (path, file) in &self.files {
            let Content::Known(id) = file.content else {
                return None;
            };
            listing.files.insert(path.clone(), file.in_snapshot(id));
        }
        Some(listing)
    }

    fn known_files(&self) -> BTreeMap<Vec<u8>, KnownFile> {
        let files = self.files.iter();
        files
            .map(|(path, file)| (path.clone(), file.known))
            .collect()
    }

    /// Returns what has to be written so that the tree of a base becomes that of this reading.
    fn change_from(&self, base: Option<&Base>) -> TreeChange {
        let empty = BTreeMap::new();
        let before = base.map_or(&empty, |base| &base.listing.files);
        let removed = before
            .keys()
            .filter(|path| !self.files.contains_key(*path))
            .cloned();
        let written = self.files.iter().filter(|(path, file)| {
            let before = before.get(*path);
            !before.is_some_and(|before| {
                before.kind == file.kind && file.content == Content::Known(before.id)
            })
        });
        TreeChange {
            base: base.map(|base| base.tree),
            removed: removed.collect(),
            written: written
                .map(|(path, file)| (path.clone(), file.kind, file.content))
                .collect(),
            about: about::write(&self.listing_for_about()),
        }
    }

    /// Returns a listing that has the permissions of all files, and no true ids.
    fn listing_for_about(&self) -> Listing {
        let mut listing = self.listing.clone();
        let no_id = ObjectId([0; 20]);
        let files = self.files.iter();
        listing.files = files
            .map(|(path, file)| (path.clone(), file.in_snapshot(no_id)))
            .collect();
        listing
    }
}

impl ReadFile {
    fn in_snapshot(&self, id: ObjectId) -> SnapshotFile {
        let mode = match self.kind {
            FileKind::Link => 0o777,
            _ => self.known.stat.permissions(),
        };
        SnapshotFile {
            kind: self.kind,
            mode,
            id,
        }
    }
}

impl ChangeCounts {
    /// Returns whether no file differs.
    pub fn is_empty(&self) -> bool {
        *self == ChangeCounts::default()
    }

    fn between(before: &Listing, after: &Listing) -> ChangeCounts {
        let (before, after) = (&before.files, &after.files);
        let both: BTreeSet<_> = after
            .keys()
            .filter(|path| before.contains_key(*path))
            .collect();
        let changed = both.iter().filter(|path| before[**path] != after[**path]);
        ChangeCounts {
            added: (after.len() - both.len()) as u64,
            changed: changed.count() as u64,
            removed: (before.len() - both.len()) as u64,
        }
    }
}
