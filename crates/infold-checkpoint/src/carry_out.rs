//! Carries out the plan of a restoration.
//!
//! Each step can be repeated: the file that it finds at a path is that of the previous snapshot, that of the
//! target, or another one, which is never removed before it is in a snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, fchmod, fstat, mkdirat, openat, statat, unlinkat,
};
use rustix::io::Errno;

use crate::error::CheckpointError;
use crate::listing::{SnapshotFile, SnapshotListing};
use crate::objects::Objects;
use crate::plan::RestorePlan;
use crate::restore::{Kept, KeptReason, Restored};
use crate::staging::{Stage, StagingDir, exchange, is_same, move_to_free};
use crate::workspace::{WorkspaceDir, ancestors, is_below, split, to_path};

/// A restoration that is under way.
pub(crate) struct CarryOut<'a> {
    pub workspace: &'a WorkspaceDir,
    pub staging: &'a StagingDir,
    /// The snapshot of the workspace before the restoration.
    pub now: &'a SnapshotListing,
    /// The snapshot to restore.
    pub target: &'a SnapshotListing,
    pub objects: Objects<'a>,
    pub restored: Restored,
    /// Paths that were taken out and are in no snapshot, with their names in the staging directory.
    pub changed: Vec<(Vec<u8>, OsString)>,
    pub kept: BTreeMap<Vec<u8>, KeptReason>,
    /// The damage found in a snapshot that cannot be read.
    pub damage: Option<String>,
    /// Directories that were made writable.
    pub made_writable: BTreeSet<Vec<u8>>,
}

/// The result of a step on one path.
enum PathOutcome {
    Done,
    /// There was nothing to do.
    Nothing,
    /// The path stays as it is.
    Kept(KeptReason),
}

impl CarryOut<'_> {
    /// Cleans up the leftovers of a restoration that was cut off.
    pub fn sort_leftovers(&mut self) -> Result<(), CheckpointError> {
        let names = self.staging.names();
        let names = names.map_err(|error| self.failed("listed", b"", error))?;
        if names.is_empty() {
            return Ok(());
        }
        let mut paths = BTreeMap::new();
        for path in self.now.files.keys().chain(self.target.files.keys()) {
            let name = StagingDir::file_name(path, Stage::Partial);
            if let Some((digest, _)) = StagingDir::parse(&name) {
                paths.insert(digest.to_owned(), path);
            }
        }
        for name in names {
            let known = StagingDir::parse(&name)
                .and_then(|(digest, stage)| Some((*paths.get(digest)?, stage)));
            match known {
                Some((_, Stage::Partial)) => self.staging.discard(&name)?,
                Some((path, _)) if !is_file(self.staging.handle(), &name) => {
                    self.put_back(path, &name)?;
                }
                Some((path, _)) => {
                    let is_settled = self.settle(path, &name)?;
                    if !is_settled {
                        self.put_by(path, &name)?;
                    }
                }
                // This file is not one of ours.
                None => {}
            }
        }
        Ok(())
    }

    /// Writes all new files before anything is changed: on a full disk, or if an object is damaged, the
    /// workspace stays as it is.
    pub fn stage(&mut self, plan: &RestorePlan) -> Result<(), CheckpointError> {
        for (path, file) in &plan.written {
            let staged = self.staging.write(path, file, &mut self.objects);
            if let Err(error) = staged {
                self.discard_staged(plan);
                return Err(error);
            }
        }
        Ok(())
    }

    pub fn apply(&mut self, plan: &RestorePlan) -> Result<(), CheckpointError> {
        for path in &plan.removed {
            let step = self.remove(path)?;
            if let PathOutcome::Done = step {
                self.restored.removed += 1;
            }
            self.note(path, step);
        }
        for path in &plan.removed_directories {
            let step = self.remove_directory(path)?;
            self.note(path, step);
        }
        for path in &plan.made_directories {
            if let PathOutcome::Kept(why) = self.make_directory(path)? {
                let in_the_way = self.in_the_way(path);
                self.note(&in_the_way, PathOutcome::Kept(why));
                self.restored.not_restored.push(to_path(path));
            }
        }
        for (path, file) in &plan.written {
            match self.place(path, file)? {
                PathOutcome::Done => self.restored.written += 1,
                PathOutcome::Nothing => {}
                PathOutcome::Kept(why) => {
                    let in_the_way = self.in_the_way(path);
                    self.note(&in_the_way, PathOutcome::Kept(why));
                    self.restored.not_restored.push(to_path(path));
                    self.staging
                        .discard(&StagingDir::file_name(path, Stage::Whole))?;
                }
            }
        }
        for (path, mode) in &plan.file_modes {
            if self.set_file_mode(path, *mode)? {
                self.restored.modes_set += 1;
            }
        }
        Ok(())
    }

    /// Sets the permissions of directories, and returns the report.
    pub fn finish(mut self, plan: &RestorePlan) -> Result<Restored, CheckpointError> {
        let mut modes: BTreeMap<_, _> = self
            .made_writable
            .iter()
            .filter_map(|path| {
                let target = self.target.directories.get(path);
                let mode = target.or_else(|| self.now.directories.get(path))?;
                Some((path.clone(), *mode))
            })
            .collect();
        modes.extend(plan.directory_modes.iter().cloned());
        // Lower directories come first: a directory that may not be entered hides its entries.
        for (path, mode) in modes.into_iter().rev() {
            if let Ok(handle) = self.workspace.directory(&path) {
                let _ = fchmod(&handle, Mode::from_raw_mode(mode as _));
            }
        }
        let kept = std::mem::take(&mut self.kept);
        let kept = kept.into_iter().map(|(path, why)| Kept {
            path: to_path(&path),
            why,
        });
        self.restored.kept = kept.collect();
        Ok(self.restored)
    }

    fn remove(&mut self, path: &[u8]) -> Result<PathOutcome, CheckpointError> {
        let (above, name) = split(path);
        let Some(directory) = self.open(above)? else {
            return Ok(PathOutcome::Nothing);
        };
        match kind_of(directory.as_fd(), name) {
            None => return Ok(PathOutcome::Nothing),
            Some(_) if is_file(directory.as_fd(), name) => {}
            // An earlier run removed the file and made the directory.
            Some(FileType::Directory) if self.target.directories.contains_key(path) => {
                return Ok(PathOutcome::Nothing);
            }
            Some(_) => return Ok(PathOutcome::Kept(KeptReason::Changed)),
        }
        let taken = StagingDir::file_name(path, Stage::Taken);
        let moved = self.with_write_access(above, directory.as_fd(), |directory| {
            move_to_free(directory, name, self.staging.handle(), &taken)
        })?;
        match moved {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(PathOutcome::Nothing),
            Err(error) => return Ok(refused(error)),
        }
        let why = match self.is_known(path, &taken) {
            Ok(true) => {
                self.staging.discard(&taken)?;
                return Ok(PathOutcome::Done);
            }
            Ok(false) => KeptReason::Changed,
            Err(CheckpointError::Damaged { what, .. }) => {
                self.damage.get_or_insert(what);
                KeptReason::Damaged
            }
            Err(error) => return Err(error),
        };
        // The file changed since the snapshot, or cannot be read, so it is moved back.
        match move_to_free(self.staging.handle(), &taken, directory.as_fd(), name) {
            Ok(()) => {}
            // There is another one by now.
            Err(Errno::EXIST) if why == KeptReason::Changed => {
                let name = self.put_by(path, &taken)?;
                self.changed.push((path.to_owned(), name));
            }
            Err(Errno::EXIST) => {
                self.put_by(path, &taken)?;
            }
            Err(error) => return Err(self.failed("moved back", path, error)),
        }
        Ok(PathOutcome::Kept(why))
    }

    fn remove_directory(&mut self, path: &[u8]) -> Result<PathOutcome, CheckpointError> {
        let (above, name) = split(path);
        let Some(directory) = self.open(above)? else {
            return Ok(PathOutcome::Nothing);
        };
        let removed = self.with_write_access(above, directory.as_fd(), |directory| {
            unlinkat(directory, name, AtFlags::REMOVEDIR)
        })?;
        Ok(match removed {
            Ok(()) => PathOutcome::Done,
            Err(Errno::NOENT | Errno::NOTDIR) => PathOutcome::Nothing,
            Err(Errno::NOTEMPTY | Errno::EXIST) => PathOutcome::Kept(KeptReason::NotEmpty),
            Err(error) => refused(error),
        })
    }

    fn make_directory(&mut self, path: &[u8]) -> Result<PathOutcome, CheckpointError> {
        let (above, name) = split(path);
        let Some(directory) = self.open(above)? else {
            let in_the_way = self.in_the_way(path);
            return Ok(PathOutcome::Kept(self.why_kept(&in_the_way)));
        };
        let made = self.with_write_access(above, directory.as_fd(), |directory| {
            mkdirat(directory, name, Mode::from_raw_mode(0o700))
        })?;
        Ok(match made {
            Ok(()) => PathOutcome::Done,
            Err(Errno::EXIST) => match kind_of(directory.as_fd(), name) {
                Some(FileType::Directory) => PathOutcome::Nothing,
                _ => PathOutcome::Kept(self.why_kept(path)),
            },
            Err(error) => refused(error),
        })
    }

    /// Puts a staged file in its place.
    fn place(&mut self, path: &[u8], file: &SnapshotFile) -> Result<PathOutcome, CheckpointError> {
        let (above, name) = split(path);
        let staged = StagingDir::file_name(path, Stage::Whole);
        let Some(directory) = self.open(above)? else {
            let in_the_way = self.in_the_way(path);
            return Ok(PathOutcome::Kept(self.why_kept(&in_the_way)));
        };
        if !self.now.files.contains_key(path) {
            return self.place_new(path, file, above, directory.as_fd());
        }
        match kind_of(directory.as_fd(), name) {
            None => return self.place_new(path, file, above, directory.as_fd()),
            Some(FileType::RegularFile | FileType::Symlink) => {}
            Some(FileType::Directory) => return Ok(PathOutcome::Kept(KeptReason::NotEmpty)),
            Some(_) => return Ok(PathOutcome::Kept(KeptReason::Changed)),
        }
        let exchanged = self.with_write_access(above, directory.as_fd(), |directory| {
            exchange(self.staging.handle(), &staged, directory, name)
        })?;
        match exchanged {
            Ok(()) => {}
            Err(Errno::NOENT) => return self.place_new(path, file, above, directory.as_fd()),
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                return self.place_in_turn(path, file, above, directory.as_fd());
            }
            Err(error) => return Ok(refused(error)),
        }
        let why = if is_file(self.staging.handle(), &staged) {
            if self.settle(path, &staged)? {
                return Ok(PathOutcome::Done);
            }
            KeptReason::Damaged
        } else {
            // Something else than a file had come there meanwhile.
            KeptReason::Changed
        };
        let back = exchange(self.staging.handle(), &staged, directory.as_fd(), name);
        back.map_err(|error| self.failed("moved back", path, error))?;
        Ok(PathOutcome::Kept(why))
    }

    /// Puts a staged file where nothing was.
    fn place_new(
        &mut self,
        path: &[u8],
        file: &SnapshotFile,
        above: &[u8],
        directory: BorrowedFd<'_>,
    ) -> Result<PathOutcome, CheckpointError> {
        let (_, name) = split(path);
        let staged = StagingDir::file_name(path, Stage::Whole);
        let moved = self.with_write_access(above, directory, |directory| {
            move_to_free(self.staging.handle(), &staged, directory, name)
        })?;
        match moved {
            Ok(()) => Ok(PathOutcome::Done),
            Err(Errno::EXIST) if is_same(directory, name, file, &mut self.objects)? => {
                // An earlier run put it there.
                self.staging.discard(&staged)?;
                self.set_file_mode(path, file.mode)?;
                Ok(PathOutcome::Nothing)
            }
            Err(Errno::EXIST) if kind_of(directory, name) == Some(FileType::Directory) => {
                Ok(PathOutcome::Kept(KeptReason::NotEmpty))
            }
            Err(Errno::EXIST) => Ok(PathOutcome::Kept(self.why_kept(path))),
            Err(error) => Ok(refused(error)),
        }
    }

    /// Takes a file out and puts the staged one in its place, where a file system cannot exchange them.
    fn place_in_turn(
        &mut self,
        path: &[u8],
        file: &SnapshotFile,
        above: &[u8],
        directory: BorrowedFd<'_>,
    ) -> Result<PathOutcome, CheckpointError> {
        let (_, name) = split(path);
        let taken = StagingDir::file_name(path, Stage::Taken);
        match move_to_free(directory, name, self.staging.handle(), &taken) {
            Ok(()) => {
                if !self.settle(path, &taken)? {
                    let back = move_to_free(self.staging.handle(), &taken, directory, name);
                    back.map_err(|error| self.failed("moved back", path, error))?;
                    return Ok(PathOutcome::Kept(KeptReason::Damaged));
                }
            }
            Err(Errno::NOENT) => {}
            Err(error) => return Ok(refused(error)),
        }
        self.place_new(path, file, above, directory)
    }

    /// Removes a file that was taken out if a snapshot can restore it, byte for byte; otherwise it is added to
    /// a further snapshot. If the snapshot cannot be read, the file stays, and the result is false: a further
    /// snapshot could not be read either.
    fn settle(&mut self, path: &[u8], name: &OsStr) -> Result<bool, CheckpointError> {
        match self.is_known(path, name) {
            Ok(true) => self.staging.discard(name)?,
            Ok(false) => {
                let name = self.put_by(path, name)?;
                self.changed.push((path.to_owned(), name));
            }
            Err(CheckpointError::Damaged { what, .. }) => {
                self.damage.get_or_insert(what);
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// Renames a file that was taken out, so that nothing overwrites it.
    fn put_by(&mut self, path: &[u8], name: &OsStr) -> Result<OsString, CheckpointError> {
        let moved = self.staging.put_by(path, name);
        moved.map_err(|error| self.failed("moved", path, error))
    }

    /// Moves back an entry that is no file, such as a directory in the place of one.
    fn put_back(&mut self, path: &[u8], name: &OsStr) -> Result<(), CheckpointError> {
        let (above, last) = split(path);
        if let Some(directory) = self.open(above)? {
            let staging = self.staging.handle();
            if move_to_free(staging, name, directory.as_fd(), last).is_ok() {
                return Ok(());
            }
            if exchange(staging, name, directory.as_fd(), last).is_ok() {
                self.settle(path, name)?;
                return Ok(());
            }
        }
        self.put_by(path, name)?;
        Ok(())
    }

    /// Returns whether a file in the staging directory is that of one of the two snapshots at a path.
    fn is_known(&mut self, path: &[u8], name: &OsStr) -> Result<bool, CheckpointError> {
        for listing in [self.now, self.target] {
            if let Some(file) = listing.files.get(path)
                && is_same(self.staging.handle(), name, file, &mut self.objects)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn set_file_mode(&mut self, path: &[u8], mode: u32) -> Result<bool, CheckpointError> {
        let (above, name) = split(path);
        let Some(directory) = self.open(above)? else {
            return Ok(false);
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = openat(&directory, name, flags, Mode::empty()) else {
            return Ok(false);
        };
        let is_file = fstat(&file)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        if !is_file {
            return Ok(false);
        }
        match fchmod(&file, Mode::from_raw_mode(mode as _)) {
            Ok(()) => Ok(true),
            Err(error) => {
                self.note(path, refused(error));
                Ok(false)
            }
        }
    }

    /// Opens a directory of the workspace; none if it is not there.
    fn open(&mut self, path: &[u8]) -> Result<Option<OwnedFd>, CheckpointError> {
        match self.workspace.directory(path) {
            Ok(handle) => Ok(Some(handle)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(Errno::ACCESS) if self.make_writable(path) => {
                Ok(self.workspace.directory(path).ok())
            }
            Err(Errno::ACCESS) => Ok(None),
            Err(error) => Err(self.failed("opened", path, error)),
        }
    }

    /// Runs an action in a directory; if that is not writable, makes it writable and runs the action again.
    fn with_write_access(
        &mut self,
        path: &[u8],
        directory: BorrowedFd<'_>,
        act: impl Fn(BorrowedFd<'_>) -> Result<(), Errno>,
    ) -> Result<Result<(), Errno>, CheckpointError> {
        match act(directory) {
            Err(Errno::ACCESS) if self.make_writable(path) => Ok(act(directory)),
            Err(error @ (Errno::NOSPC | Errno::DQUOT)) => Err(self.failed("changed", path, error)),
            done => Ok(done),
        }
    }

    /// Makes a directory and those above it writable. Returns whether that changed anything.
    fn make_writable(&mut self, path: &[u8]) -> bool {
        let mut way: Vec<_> = std::iter::once(path).chain(ancestors(path)).collect();
        way.reverse();
        let mut is_changed = false;
        for path in way {
            let Ok(handle) = self.workspace.directory(path) else {
                break;
            };
            let Ok(stat) = fstat(&handle) else {
                break;
            };
            let mode = stat.st_mode & 0o7777;
            let is_known = self.now.directories.contains_key(path)
                || self.target.directories.contains_key(path);
            if mode & 0o700 != 0o700
                && is_known
                && fchmod(&handle, Mode::from_raw_mode(mode | 0o700)).is_ok()
            {
                self.made_writable.insert(path.to_owned());
                is_changed = true;
            }
        }
        is_changed
    }

    fn discard_staged(&self, plan: &RestorePlan) {
        for (path, _) in &plan.written {
            for stage in [Stage::Partial, Stage::Whole] {
                let _ = self.staging.discard(&StagingDir::file_name(path, stage));
            }
        }
        let _ = self.staging.remove(self.workspace);
    }

    fn note(&mut self, path: &[u8], step: PathOutcome) {
        if let PathOutcome::Kept(why) = step {
            let below = |kept: &Vec<u8>| is_below(kept, path);
            if why == KeptReason::NotEmpty && self.kept.keys().any(below) {
                // The entries below it that were kept are reported already.
                return;
            }
            self.kept.entry(path.to_owned()).or_insert(why);
        }
    }

    /// Returns the path that blocks a file: its own path, or a parent that is not a directory.
    fn in_the_way(&self, path: &[u8]) -> Vec<u8> {
        let mut above: Vec<_> = ancestors(path).collect();
        above.reverse();
        let blocked = above
            .into_iter()
            .find(|above| self.workspace.directory(above).is_err());
        blocked.unwrap_or(path).to_owned()
    }

    /// Returns the reason why an entry stays in the place of one of the target.
    fn why_kept(&self, path: &[u8]) -> KeptReason {
        if let Some(entry) = self.now.left_out.get(path) {
            return KeptReason::LeftOut(entry.why);
        }
        if self.now.ignored.contains(path) {
            return KeptReason::Ignored;
        }
        KeptReason::Changed
    }

    fn failed(&self, action: &'static str, path: &[u8], error: Errno) -> CheckpointError {
        CheckpointError::io(action, self.workspace.display(path), error)
    }
}

fn refused(error: Errno) -> PathOutcome {
    PathOutcome::Kept(KeptReason::Refused(std::io::Error::from(error).to_string()))
}

fn kind_of(directory: BorrowedFd<'_>, name: &OsStr) -> Option<FileType> {
    let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

fn is_file(directory: BorrowedFd<'_>, name: &OsStr) -> bool {
    matches!(
        kind_of(directory, name),
        Some(FileType::RegularFile | FileType::Symlink)
    )
}
