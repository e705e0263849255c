//! Opens, reads and replaces regular files below a root.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, fchmod, fchown, fstat, openat, renameat, statat,
    unlinkat,
};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};

use super::root::{Location, REPOSITORY_DATA, is_git_directory};
use crate::failure::CallProblem;

/// Opens a regular file for reading; `shown` is its path in messages.
pub fn open_file(place: &Location<'_>, shown: &str) -> Result<(File, u64), CallProblem> {
    let name = place
        .name()
        .ok_or_else(|| kind_failure(FileType::Directory, shown))?;
    open_entry(place.parent(), name, shown)
}

/// As [`open_file`], of an entry of a directory.
pub fn open_entry(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    shown: &str,
) -> Result<(File, u64), CallProblem> {
    let failed = |error: Errno| io_failure(error, shown);
    // Opening a device or a named pipe may have effects of its own.
    let before = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
    check_regular(&before, shown)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let handle = openat(directory, name, flags, Mode::empty()).map_err(failed)?;
    let stat = fstat(&handle).map_err(failed)?;
    check_regular(&stat, shown)?;
    Ok((File::from(handle), size_of_file(&stat)))
}

/// Reads a whole file of at most `max_bytes`.
pub fn read_whole(
    place: &Location<'_>,
    shown: &str,
    max_bytes: u64,
) -> Result<Vec<u8>, CallProblem> {
    let (file, size) = open_file(place, shown)?;
    let mut bytes = Vec::new();
    // The file may grow meanwhile, or have an unknown size, as those of /proc.
    file.take(max_bytes + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| read_failure(&error, shown))?;
    if bytes.len() as u64 > max_bytes {
        return Err(CallProblem::new(format!(
            "`{shown}` is too large: it has {} bytes, the limit is {max_bytes}",
            size.max(bytes.len() as u64)
        )));
    }
    Ok(bytes)
}

pub fn read_failure(error: &io::Error, shown: &str) -> CallProblem {
    CallProblem::new(format!("`{shown}` cannot be read: {error}"))
}

/// Returns the metadata of the file at a place, without following a link; none if there is none.
pub fn existing(place: &Location<'_>, shown: &str) -> Result<Option<Stat>, CallProblem> {
    let name = place
        .name()
        .ok_or_else(|| kind_failure(FileType::Directory, shown))?;
    match statat(place.parent(), name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => {
            check_regular(&stat, shown)?;
            Ok(Some(stat))
        }
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(io_failure(error, shown)),
    }
}

/// Replaces a file, or makes it. It is at any time as it was or wholly written, and keeps its mode.
pub fn write_whole(place: &Location<'_>, shown: &str, bytes: &[u8]) -> Result<(), CallProblem> {
    let is_protected = |name: &OsStr| is_git_directory(name);
    if place.directories().any(|(_, name)| is_protected(name))
        || place.name().is_some_and(is_protected)
    {
        return Err(CallProblem::new(format!("`{shown}` {REPOSITORY_DATA}")));
    }
    let replaced = existing(place, shown)?;
    let name = place
        .name()
        .ok_or_else(|| kind_failure(FileType::Directory, shown))?;
    if replaced.is_some() {
        check_writable(place.parent(), name, shown)?;
    }
    let temporary = temporary_name();
    let written = write_temporary(place.parent(), &temporary, bytes, replaced.as_ref())
        .and_then(|()| Ok(renameat(place.parent(), &temporary, place.parent(), name)?));
    written.map_err(|error| {
        let _ = unlinkat(place.parent(), &temporary, AtFlags::empty());
        CallProblem::new(format!("`{shown}` cannot be written: {error}"))
    })
}

/// Refuses a file that may not be written, because renaming would replace it all the same.
fn check_writable(directory: BorrowedFd<'_>, name: &OsStr, shown: &str) -> Result<(), CallProblem> {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match openat(directory, name, flags, Mode::empty()) {
        Err(error @ (Errno::ACCESS | Errno::PERM | Errno::ROFS)) => {
            Err(CallProblem::new(format!("`{shown}` is read-only: {error}")))
        }
        _ => Ok(()),
    }
}

fn write_temporary(
    directory: BorrowedFd<'_>,
    name: &str,
    bytes: &[u8],
    replaced: Option<&Stat>,
) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Other users must not read it before it has the mode of the replaced file.
    let mode = if replaced.is_some() { 0o600 } else { 0o666 };
    let handle = openat(directory, name, flags, Mode::from_raw_mode(mode))?;
    let mut file = File::from(handle);
    file.write_all(bytes)?;
    if let Some(replaced) = replaced {
        let own = fstat(&file)?;
        if (own.st_uid, own.st_gid) != (replaced.st_uid, replaced.st_gid) {
            // Only an administrator may give a file away.
            let (user, group) = (
                Uid::from_raw(replaced.st_uid),
                Gid::from_raw(replaced.st_gid),
            );
            let _ = fchown(&file, Some(user), Some(group));
        }
        fchmod(&file, Mode::from_raw_mode(replaced.st_mode & 0o777))?;
    }
    // Without this, a power cut after the renaming could leave an empty file.
    file.sync_data()
}

/// Prefix of the temporary files that are renamed to their targets; one is left behind only by a crash.
pub const TEMPORARY_PREFIX: &str = ".infold-write-";

fn temporary_name() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    format!("{TEMPORARY_PREFIX}{}-{count}", std::process::id())
}

/// Returns the size of a file, whatever type the system has for it.
pub fn size_of_file(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

fn check_regular(stat: &Stat, shown: &str) -> Result<(), CallProblem> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        kind => Err(kind_failure(kind, shown)),
    }
}

fn kind_failure(kind: FileType, shown: &str) -> CallProblem {
    let what = match kind {
        FileType::Directory => "a directory: use `list` to see what is in it",
        FileType::Fifo => "a named pipe, not a file",
        FileType::Socket => "a socket, not a file",
        FileType::CharacterDevice | FileType::BlockDevice => "a device, not a file",
        // A link has just replaced a file that was no link.
        FileType::Symlink => "being replaced by something else right now: try again",
        _ => "not a regular file",
    };
    CallProblem::new(format!("`{shown}` is {what}"))
}

fn io_failure(error: Errno, shown: &str) -> CallProblem {
    match error {
        Errno::NOENT => CallProblem::new(format!(
            "`{shown}` does not exist: list the directory to see what is there"
        )),
        Errno::LOOP => kind_failure(FileType::Symlink, shown),
        error => CallProblem::new(format!("`{shown}` cannot be opened: {error}")),
    }
}
