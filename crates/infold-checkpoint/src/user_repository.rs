//! Reads what the user's own git repositories say about ignored files: a snapshot leaves out what git would ignore.
//!
//! Such a repository contains the workspace, or lies inside it. It is only read, and git is not run in it. A file that is
//! missing, damaged or too large counts as empty, so that an unusual repository never stops a snapshot.

use std::ffi::OsStr;
use std::io::Read as _;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat};

use crate::tracked::{TrackedPaths, shared_index};

/// The parts of a repository, apart from its `.gitignore` files, that decide which files are ignored.
#[derive(Debug, Default)]
pub(crate) struct UserRepository {
    /// The text of `info/exclude`.
    pub excludes: Vec<u8>,
    /// The paths in the index: git never ignores a file that it tracks.
    pub tracked: TrackedPaths,
}

const MAX_RULES_BYTES: u64 = 4 << 20;
const MAX_INDEX_BYTES: u64 = 1 << 30;
/// The limit for the files that contain one path: `commondir`, and a `.git` that is a file.
const MAX_PATH_FILE_BYTES: u64 = 4096;

/// How files are opened. `NONBLOCK`, because opening a FIFO would otherwise wait for a writer.
const OPEN_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

impl UserRepository {
    /// Reads the repository whose top directory this is; none if the directory is not the top of a repository.
    pub fn at(directory: BorrowedFd<'_>, path: &Path) -> Option<UserRepository> {
        let git_directory = git_directory(directory, path)?;
        let common = common_directory(&git_directory);
        let excludes = read_limited(&common.join("info/exclude"), MAX_RULES_BYTES);
        Some(UserRepository {
            excludes: excludes.unwrap_or_default(),
            tracked: read_tracked(&git_directory).unwrap_or_default(),
        })
    }
}

/// Reads the `.gitignore` of a directory; none if it has none. A symbolic link is not followed, because git does not
/// follow it either.
pub(crate) fn read_ignore_file(directory: BorrowedFd<'_>) -> Option<Vec<u8>> {
    let file = openat(directory, ".gitignore", OPEN_FLAGS, Mode::empty()).ok()?;
    read_regular(file, MAX_RULES_BYTES)
}

/// Reads a file of ignore rules outside of the workspace. Symbolic links are followed, as git does for these files.
pub(crate) fn read_excludes(path: &Path) -> Option<Vec<u8>> {
    read_limited(path, MAX_RULES_BYTES)
}

/// Returns the git directory of a directory: its `.git`, or the one that a `.git` file of a worktree or submodule names.
/// None if there is no repository.
fn git_directory(directory: BorrowedFd<'_>, path: &Path) -> Option<PathBuf> {
    let found = openat(directory, ".git", OPEN_FLAGS, Mode::empty()).ok()?;
    let stat = fstat(&found).ok()?;
    let git_directory = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => path.join(".git"),
        FileType::RegularFile => {
            let text = read_regular(found, MAX_PATH_FILE_BYTES)?;
            let target = text.strip_prefix(b"gitdir: ")?.trim_ascii_end();
            path.join(OsStr::from_bytes(target))
        }
        _ => return None,
    };
    let has = |name: &str| git_directory.join(name).exists();
    let is_repository = has("HEAD") && (has("commondir") || has("objects") && has("refs"));
    is_repository.then_some(git_directory)
}

/// Returns the directory that holds `info/exclude`: a worktree shares that of its main repository.
fn common_directory(git_directory: &Path) -> PathBuf {
    match read_limited(&git_directory.join("commondir"), MAX_PATH_FILE_BYTES) {
        Some(text) => git_directory.join(OsStr::from_bytes(text.trim_ascii_end())),
        None => git_directory.to_owned(),
    }
}

/// Reads the index. A split index has most of its entries in a second, shared file.
fn read_tracked(git_directory: &Path) -> Option<TrackedPaths> {
    let index = read_limited(&git_directory.join("index"), MAX_INDEX_BYTES)?;
    let mut tracked = TrackedPaths::parse(&index)?;
    if let Some(digest) = shared_index(&index) {
        let shared = git_directory.join(format!("sharedindex.{digest}"));
        let shared = read_limited(&shared, MAX_INDEX_BYTES);
        // Paths that the main index deletes from the shared one count as tracked, too: a file too many in the snapshot
        // does no harm.
        if let Some(shared) = shared.and_then(|index| TrackedPaths::parse(&index)) {
            tracked.merge(shared);
        }
    }
    Some(tracked)
}

/// Reads a regular file; none if it is larger than `limit`. Symbolic links are followed.
fn read_limited(path: &Path, limit: u64) -> Option<Vec<u8>> {
    let flags = OPEN_FLAGS.difference(OFlags::NOFOLLOW);
    read_regular(open(path, flags, Mode::empty()).ok()?, limit)
}

fn read_regular(file: OwnedFd, limit: u64) -> Option<Vec<u8>> {
    let stat = fstat(&file).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    let mut text = Vec::new();
    let file = std::fs::File::from(file);
    let read = file.take(limit + 1).read_to_end(&mut text).ok()?;
    (read as u64 <= limit).then_some(text)
}
