//! The directory in which a restoration keeps files that are on their way.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, fchmod, mkdirat, openat, readlinkat, renameat,
    renameat_with, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::error::CheckpointError;
use crate::listing::SnapshotFile;
use crate::objects::Objects;
use crate::walk::{STAGING_PREFIX, names_of};
use crate::workspace::{DIRECTORY_OPEN_FLAGS, WorkspaceDir};

/// The directory in the workspace in which a restoration keeps files that are on their way. It is on the same device as
/// everything that a snapshot holds, so that a file can be put in its place at once.
#[derive(Debug)]
pub(crate) struct StagingDir {
    handle: OwnedFd,
    name: String,
}

/// The state of a file in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It is being written, and no other process has opened it.
    Partial,
    /// It is complete; after an exchange, it is the file that was in its place.
    Whole,
    /// It was in the workspace.
    Taken,
}

const STAGES: [(Stage, &str); 3] = [
    (Stage::Partial, ".part"),
    (Stage::Whole, ".new"),
    (Stage::Taken, ".old"),
];

const NEW_FILE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

const COMPARE_BYTES: usize = 1 << 16;

impl StagingDir {
    pub fn name_of(id: &str) -> String {
        let digest = blake3::hash(id.as_bytes()).to_hex();
        format!("{STAGING_PREFIX}{}", &digest[..16])
    }

    /// Returns whether a restoration has made its directory.
    pub fn exists(workspace: &WorkspaceDir, id: &str) -> bool {
        let name = StagingDir::name_of(id);
        statat(workspace.handle(), name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Opens the directory of a restoration, and makes it if it is missing.
    pub fn open(workspace: &WorkspaceDir, id: &str) -> Result<StagingDir, CheckpointError> {
        let name = StagingDir::name_of(id);
        let failed = |error: Errno| {
            let path = workspace.display(name.as_bytes());
            CheckpointError::io("made", path, error)
        };
        match mkdirat(workspace.handle(), &name, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(failed(error)),
        }
        let handle = openat(
            workspace.handle(),
            &name,
            DIRECTORY_OPEN_FLAGS,
            Mode::empty(),
        );
        let handle = handle.map_err(failed)?;
        Ok(StagingDir { handle, name })
    }

    pub fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// Returns the name of the file for a path of the workspace.
    pub fn file_name(path: &[u8], stage: Stage) -> OsString {
        let digest = blake3::hash(path).to_hex();
        let end = STAGES.iter().find(|(known, _)| *known == stage);
        format!("{}{}", &digest[..32], end.map_or("", |(_, end)| end)).into()
    }

    /// Parses the name of a file: the prefix derived from its path, and the stage.
    pub fn parse(name: &OsStr) -> Option<(&str, Stage)> {
        let (digest, end) = name.to_str()?.split_once('.')?;
        let mut stages = STAGES.iter();
        let (stage, _) = stages.find(|(_, known)| end.ends_with(&known[1..]))?;
        Some((digest, *stage))
    }

    /// Gives a file a name that nothing else gets.
    pub fn put_by(&self, path: &[u8], name: &OsStr) -> Result<OsString, Errno> {
        let plain = StagingDir::file_name(path, Stage::Taken);
        let (digest, _) = StagingDir::parse(&plain).ok_or(Errno::INVAL)?;
        let mut number = 1;
        loop {
            let free = OsString::from(format!("{digest}.{number}.old"));
            match move_to_free(self.handle(), name, self.handle(), &free) {
                Ok(()) => return Ok(free),
                Err(Errno::EXIST) => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the names of all files in it.
    pub fn names(&self) -> Result<Vec<OsString>, Errno> {
        names_of(self.handle())
    }

    /// Writes a file or link of a snapshot, whole and with its permissions.
    pub fn write(
        &self,
        path: &[u8],
        file: &SnapshotFile,
        objects: &mut Objects<'_>,
    ) -> Result<(), CheckpointError> {
        let failed = |error: Errno| CheckpointError::io("written", self.display(path), error);
        let whole = StagingDir::file_name(path, Stage::Whole);
        if file.kind.is_link() {
            let target = objects.read(file.id)?;
            return symlinkat(OsStr::from_bytes(&target), &self.handle, &whole).map_err(failed);
        }
        let partial = StagingDir::file_name(path, Stage::Partial);
        let opened = openat(&self.handle, &partial, NEW_FILE, Mode::from_raw_mode(0o600));
        let mut output = File::from(opened.map_err(failed)?);
        objects.stream(file.id, |contents| {
            let copied = std::io::copy(contents, &mut output).and_then(|_| output.flush());
            copied.map_err(|error| CheckpointError::io("written", self.display(path), error))
        })?;
        fchmod(&output, Mode::from_raw_mode(file.mode as _)).map_err(failed)?;
        renameat(&self.handle, &partial, &self.handle, &whole).map_err(failed)
    }

    /// Removes a file.
    pub fn discard(&self, name: &OsStr) -> Result<(), CheckpointError> {
        match unlinkat(&self.handle, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(CheckpointError::io("removed", name, error)),
        }
    }

    /// Removes the directory, unless it has entries.
    pub fn remove(&self, workspace: &WorkspaceDir) -> Result<(), Errno> {
        unlinkat(workspace.handle(), &self.name, AtFlags::REMOVEDIR)
    }

    fn display(&self, path: &[u8]) -> std::path::PathBuf {
        crate::workspace::to_path(path)
    }
}

/// Returns whether an entry of a directory is, byte for byte, a file or link of a snapshot, as git gives it back now.
/// Its permissions do not matter.
///
/// Fails if git cannot give it back.
pub(crate) fn is_same(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    file: &SnapshotFile,
    objects: &mut Objects<'_>,
) -> Result<bool, CheckpointError> {
    let Ok(stat) = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
        return Ok(false);
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink if file.kind.is_link() => {
            let Ok(target) = readlinkat(directory, name, Vec::new()) else {
                return Ok(false);
            };
            Ok(objects.read(file.id)? == target.as_bytes())
        }
        FileType::RegularFile if !file.kind.is_link() => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let Ok(opened) = openat(directory, name, flags, Mode::empty()) else {
                return Ok(false);
            };
            let mut there = File::from(opened);
            let mut same = false;
            objects.stream(file.id, |contents| {
                same = are_equal(contents, &mut there)?;
                Ok(())
            })?;
            Ok(same)
        }
        _ => Ok(false),
    }
}

/// Compares two readers, and reads the first to its end.
fn are_equal(contents: &mut dyn Read, there: &mut File) -> Result<bool, CheckpointError> {
    let failed = |error| CheckpointError::io("read", "an object", error);
    let mut left = vec![0; COMPARE_BYTES];
    let mut right = vec![0; COMPARE_BYTES];
    let mut is_equal = true;
    loop {
        let read = contents.read(&mut left).map_err(failed)?;
        if read == 0 {
            break;
        }
        is_equal = is_equal
            && there.read_exact(&mut right[..read]).is_ok()
            && left[..read] == right[..read];
    }
    Ok(is_equal && matches!(there.read(&mut right), Ok(0)))
}

/// Moves an entry to a free name. Fails with `EXIST` if the name is taken.
pub(crate) fn move_to_free(
    from: BorrowedFd<'_>,
    from_name: &OsStr,
    to: BorrowedFd<'_>,
    to_name: &OsStr,
) -> Result<(), Errno> {
    match renameat_with(from, from_name, to, to_name, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            rustix::fs::linkat(from, from_name, to, to_name, AtFlags::empty())?;
            unlinkat(from, from_name, AtFlags::empty())
        }
        moved => moved,
    }
}

/// Lets two entries change places. Where a file system cannot, `INVAL`, `NOSYS` or `NOTSUP` says so.
pub(crate) fn exchange(
    left: BorrowedFd<'_>,
    left_name: &OsStr,
    right: BorrowedFd<'_>,
    right_name: &OsStr,
) -> Result<(), Errno> {
    renameat_with(left, left_name, right, right_name, RenameFlags::EXCHANGE)
}
