//! The directory of which snapshots are taken.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, fstat, open, openat};
use rustix::io::Errno;

use crate::error::{CheckpointError, WorkspaceProblem};
use crate::stat::FileStat;

/// The directory of which snapshots are taken, opened.
#[derive(Debug)]
pub(crate) struct WorkspaceDir {
    /// The canonical path, without symbolic links.
    path: PathBuf,
    handle: OwnedFd,
}

/// How a directory is opened. Symbolic links are not followed: they could lead out of the workspace.
pub(crate) const DIRECTORY_OPEN_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

impl WorkspaceDir {
    /// Opens a workspace. Refuses directories that must never be restored as a whole: the root, system directories, the
    /// home directory and those above it, and the contexts directory, where infold keeps its own data.
    pub fn open(
        given: &Path,
        home: Option<&Path>,
        contexts: &Path,
    ) -> Result<WorkspaceDir, CheckpointError> {
        let refused = |problem| CheckpointError::Workspace {
            path: given.to_owned(),
            problem,
        };
        let path = given.canonicalize().map_err(|error| {
            refused(match error.kind() {
                std::io::ErrorKind::NotFound => WorkspaceProblem::Missing,
                std::io::ErrorKind::NotADirectory => WorkspaceProblem::NotADirectory,
                _ => WorkspaceProblem::Unreadable,
            })
        })?;
        let handle = open(&path, DIRECTORY_OPEN_FLAGS, Mode::empty()).map_err(|error| {
            refused(match error {
                Errno::NOTDIR | Errno::LOOP => WorkspaceProblem::NotADirectory,
                _ => WorkspaceProblem::Unreadable,
            })
        })?;
        if path == Path::new("/") {
            return Err(refused(WorkspaceProblem::Root));
        }
        let is_system = ["/proc", "/sys", "/dev"]
            .iter()
            .any(|dir| path.starts_with(dir));
        // `/dev/shm` is a file system for ordinary files.
        if is_system && !path.starts_with("/dev/shm") {
            return Err(refused(WorkspaceProblem::System));
        }
        if let Some(home) = home.and_then(|home| home.canonicalize().ok()) {
            if path == home {
                return Err(refused(WorkspaceProblem::Home));
            }
            if home.starts_with(&path) {
                return Err(refused(WorkspaceProblem::AboveHome));
            }
        }
        if contexts
            .canonicalize()
            .is_ok_and(|contexts| path.starts_with(contexts))
        {
            return Err(refused(WorkspaceProblem::InContexts));
        }
        Ok(WorkspaceDir { path, handle })
    }

    /// Returns the metadata of the contexts directory, by which a walk of the workspace recognises it.
    pub fn contexts_stat(contexts: &Path) -> Option<FileStat> {
        let stat = rustix::fs::stat(contexts).ok()?;
        Some(FileStat::of(&stat))
    }

    /// Returns the canonical path, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    pub fn stat(&self) -> Result<FileStat, CheckpointError> {
        let stat = fstat(&self.handle);
        let stat = stat.map_err(|error| CheckpointError::io("examined", &self.path, error))?;
        Ok(FileStat::of(&stat))
    }

    /// Opens a directory of the workspace. The empty path is the workspace itself.
    ///
    /// Each component is opened in turn: `NOFOLLOW` applies to the last component of a path only.
    pub fn directory(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        let mut handle = openat(&self.handle, ".", DIRECTORY_OPEN_FLAGS, Mode::empty())?;
        for name in components(path) {
            handle = openat(&handle, name, DIRECTORY_OPEN_FLAGS, Mode::empty())?;
        }
        Ok(handle)
    }

    /// Flushes the writes of the whole file system to disk, on a best-effort basis.
    pub fn sync(&self) {
        #[cfg(target_os = "linux")]
        let _ = rustix::fs::syncfs(&self.handle);
        #[cfg(not(target_os = "linux"))]
        rustix::fs::sync();
    }

    /// Returns the full path of a path of the workspace, for messages.
    pub fn display(&self, path: &[u8]) -> PathBuf {
        self.path.join(OsStr::from_bytes(path))
    }
}

/// Returns the name of the directory in which the checkpoints of a workspace are: a prefix of the digest of its path.
pub(crate) fn key(path: &Path) -> String {
    let digest = blake3::hash(path.as_os_str().as_bytes());
    digest.to_hex()[..16].to_owned()
}

/// Returns the components of a path.
pub(crate) fn components(path: &[u8]) -> impl DoubleEndedIterator<Item = &OsStr> {
    let names = path.split(|byte| *byte == b'/');
    names.filter(|name| !name.is_empty()).map(OsStr::from_bytes)
}

/// Returns the parent directory of a path, which is empty for an entry of the workspace itself, and the last component.
pub(crate) fn split(path: &[u8]) -> (&[u8], &OsStr) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], OsStr::from_bytes(&path[slash + 1..])),
        None => (b"", OsStr::from_bytes(path)),
    }
}

/// Returns the directories above a path, the nearest first, without the workspace itself.
pub(crate) fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = path.iter().enumerate().rev();
    slashes
        .filter(|(_, byte)| **byte == b'/')
        .map(|(slash, _)| &path[..slash])
}

/// Returns whether a path is a directory or below it. The empty directory is the workspace, which contains every path.
pub(crate) fn is_below(path: &[u8], directory: &[u8]) -> bool {
    path.strip_prefix(directory)
        .is_some_and(|rest| directory.is_empty() || rest.first() == Some(&b'/'))
}

/// Returns the path of an entry of a directory.
pub(crate) fn join(directory: &[u8], name: &OsStr) -> Vec<u8> {
    let mut path = Vec::with_capacity(directory.len() + 1 + name.len());
    path.extend_from_slice(directory);
    if !directory.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name.as_bytes());
    path
}

/// Converts a path in bytes to a [`PathBuf`].
pub(crate) fn to_path(path: &[u8]) -> PathBuf {
    OsString::from(OsStr::from_bytes(path)).into()
}
