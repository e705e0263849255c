//! The repositories of the user that a workspace is in, or has in it. They are read and never written.

use std::ffi::OsStr;
use std::io::Read as _;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat};

use crate::tracked::{TrackedPaths, shared_index};

/// The parts of a repository that decide which files are ignored.
#[derive(Debug, Default)]
pub(crate) struct UserRepository {
    /// The text of `info/exclude`.
    pub excludes: Vec<u8>,
    pub tracked: TrackedPaths,
}

const MAX_RULES_BYTES: u64 = 4 << 20;
const MAX_INDEX_BYTES: u64 = 1 << 30;
const MAX_LINK_BYTES: u64 = 4096;

const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

impl UserRepository {
    /// Reads the repository of which a directory is the top; none if it is not.
    pub fn at(directory: BorrowedFd<'_>, path: &Path) -> Option<UserRepository> {
        let git_directory = git_directory(directory, path)?;
        let common = common_directory(&git_directory);
        let excludes = read_limited(&common.join("info/exclude"), MAX_RULES_BYTES);
        Some(UserRepository {
            excludes: excludes.unwrap_or_default(),
            tracked: tracked(&git_directory).unwrap_or_default(),
        })
    }
}

/// Reads the `.gitignore` of a directory; none if there is none. A link is none, as for git.
pub(crate) fn read_ignore_file(directory: BorrowedFd<'_>) -> Option<Vec<u8>> {
    let file = openat(directory, ".gitignore", FILE, Mode::empty()).ok()?;
    read_regular(file, MAX_RULES_BYTES)
}

/// Reads a file of ignore rules by its path, which may be a link.
pub(crate) fn read_excludes(path: &Path) -> Option<Vec<u8>> {
    read_limited(path, MAX_RULES_BYTES)
}

/// Returns where the repository of a directory keeps its files, if that is a repository.
fn git_directory(directory: BorrowedFd<'_>, path: &Path) -> Option<PathBuf> {
    let found = openat(directory, ".git", FILE, Mode::empty()).ok()?;
    let stat = fstat(&found).ok()?;
    let place = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => path.join(".git"),
        FileType::RegularFile => {
            let text = read_regular(found, MAX_LINK_BYTES)?;
            let target = text.strip_prefix(b"gitdir: ")?.trim_ascii_end();
            path.join(OsStr::from_bytes(target))
        }
        _ => return None,
    };
    let has = |name: &str| place.join(name).exists();
    let is_repository = has("HEAD") && (has("commondir") || has("objects") && has("refs"));
    is_repository.then_some(place)
}

/// Returns the directory that a worktree shares with its repository.
fn common_directory(git_directory: &Path) -> PathBuf {
    match read_limited(&git_directory.join("commondir"), MAX_LINK_BYTES) {
        Some(text) => git_directory.join(OsStr::from_bytes(text.trim_ascii_end())),
        None => git_directory.to_owned(),
    }
}

fn tracked(git_directory: &Path) -> Option<TrackedPaths> {
    let index = read_limited(&git_directory.join("index"), MAX_INDEX_BYTES)?;
    let mut tracked = TrackedPaths::parse(&index)?;
    if let Some(digest) = shared_index(&index) {
        let shared = git_directory.join(format!("sharedindex.{digest}"));
        let shared = read_limited(&shared, MAX_INDEX_BYTES);
        // Paths that the smaller index removes count as tracked, too: keeping too many files does no harm.
        if let Some(shared) = shared.and_then(|index| TrackedPaths::parse(&index)) {
            tracked.merge(shared);
        }
    }
    Some(tracked)
}

fn read_limited(path: &Path, limit: u64) -> Option<Vec<u8>> {
    let flags = FILE.difference(OFlags::NOFOLLOW);
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
