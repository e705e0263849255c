//! Walks a workspace by the handles of its directories.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, openat, statat};
use rustix::io::Errno;

use crate::about::{LeftOutEntry, LeftOutReason};
use crate::error::CheckpointError;
use crate::listing::SnapshotListing;
use crate::rules::{DirectoryRules, Tracked};
use crate::stat::FileStat;
use crate::user_repository::read_ignore_file;
use crate::workspace::{DIRECTORY_OPEN_FLAGS, WorkspaceDir, join};

/// A file or link that is to be part of a snapshot.
pub(crate) struct WalkedFile<'a> {
    /// The directory that it is in.
    pub directory: BorrowedFd<'a>,
    pub name: &'a OsStr,
    /// Its path in the workspace.
    pub path: &'a [u8],
    pub stat: FileStat,
}

/// The parameters of a walk.
pub(crate) struct WorkspaceWalkOptions<'a> {
    pub workspace: &'a WorkspaceDir,
    /// The file of ignore rules that the user has for all repositories.
    pub user_excludes: Option<&'a Path>,
    /// Where the contexts are: a directory that is never part of a snapshot.
    pub contexts: Option<FileStat>,
    /// Another snapshot: its files are walked even if they are ignored now.
    pub with_files_of: Option<&'a SnapshotListing>,
}

/// Called for each file of a walk; returns the reason if the file is to be left out of the snapshot.
pub(crate) type VisitFile<'a> =
    dyn FnMut(&WalkedFile<'_>) -> Result<Option<LeftOutEntry>, CheckpointError> + 'a;

/// The prefix of the directory in which a restoration keeps its files.
pub(crate) const STAGING_PREFIX: &str = ".infold-restore-";

/// The most levels of directories that are walked, because each level holds one directory open.
const MAX_DEPTH: usize = 200;

/// Calls `visit` for each file and link that no ignore rule leaves out. Returns the rest of the listing: the
/// directories, and the paths that are ignored or left out. Links are not followed.
pub(crate) fn walk(
    options: &WorkspaceWalkOptions<'_>,
    visit: &mut VisitFile<'_>,
) -> Result<SnapshotListing, CheckpointError> {
    let workspace = options.workspace;
    let top = workspace
        .directory(b"")
        .map_err(|error| CheckpointError::io("opened", workspace.path(), error))?;
    let ignore_file = read_ignore_file(top.as_fd());
    let mut walk = WorkspaceWalk {
        options,
        device: workspace.stat()?.device,
        listing: SnapshotListing::default(),
        visit,
    };
    let rules =
        DirectoryRules::of_workspace(workspace, ignore_file.as_deref(), options.user_excludes);
    let names = names_of(top.as_fd())
        .map_err(|error| CheckpointError::io("listed", workspace.path(), error))?;
    let directory = Directory {
        handle: top,
        path: Vec::new(),
        rules,
        is_ignored: false,
        depth: 1,
    };
    walk.entries(&directory, names)?;
    Ok(walk.listing)
}

struct WorkspaceWalk<'a, 'b> {
    options: &'a WorkspaceWalkOptions<'a>,
    device: u64,
    listing: SnapshotListing,
    visit: &'a mut VisitFile<'b>,
}

struct Directory {
    handle: OwnedFd,
    path: Vec<u8>,
    rules: DirectoryRules,
    /// Whether a rule leaves it out, so that only tracked files in it count.
    is_ignored: bool,
    depth: usize,
}

impl WorkspaceWalk<'_, '_> {
    fn entries(
        &mut self,
        directory: &Directory,
        names: Vec<OsString>,
    ) -> Result<(), CheckpointError> {
        for name in names {
            if name == ".git" || name.as_bytes().starts_with(STAGING_PREFIX.as_bytes()) {
                continue;
            }
            let path = join(&directory.path, &name);
            match statat(&directory.handle, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => self.entry(directory, &name, path, FileStat::of(&stat))?,
                // The directory was removed meanwhile.
                Err(Errno::NOENT) => {}
                Err(_) => self.leave_out(path, LeftOutReason::Unreadable, None),
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        directory: &Directory,
        name: &OsStr,
        path: Vec<u8>,
        stat: FileStat,
    ) -> Result<(), CheckpointError> {
        let is_directory = stat.kind() == FileType::Directory;
        if is_directory && self.is_contexts(&stat) {
            return Ok(());
        }
        let is_ignored = directory.is_ignored || directory.rules.is_ignored(&path, is_directory);
        let tracked = if is_ignored {
            directory.rules.is_tracked(&path, is_directory)
        } else {
            Tracked::No
        };
        if is_ignored && tracked == Tracked::No && !self.is_wanted(&path, is_directory) {
            self.listing.ignored.insert(path);
            return Ok(());
        }
        if !is_name_for_git(name, stat.kind()) {
            self.leave_out(path, LeftOutReason::Name, None);
            return Ok(());
        }
        match stat.kind() {
            FileType::Directory => {
                // A submodule is tracked itself: nothing in it is ignored for its path.
                let is_ignored = is_ignored && tracked != Tracked::Itself;
                self.directory(directory, name, path, stat, is_ignored)
            }
            FileType::RegularFile | FileType::Symlink => {
                let file = WalkedFile {
                    directory: directory.handle.as_fd(),
                    name,
                    path: &path,
                    stat,
                };
                if let Some(entry) = (self.visit)(&file)? {
                    self.listing.left_out.insert(path, entry);
                }
                Ok(())
            }
            _ => {
                self.leave_out(path, LeftOutReason::Special, None);
                Ok(())
            }
        }
    }

    fn directory(
        &mut self,
        above: &Directory,
        name: &OsStr,
        path: Vec<u8>,
        stat: FileStat,
        is_ignored: bool,
    ) -> Result<(), CheckpointError> {
        if stat.device != self.device {
            self.leave_out(path, LeftOutReason::OtherDevice, None);
            return Ok(());
        }
        if above.depth >= MAX_DEPTH {
            self.leave_out(path, LeftOutReason::TooDeep, None);
            return Ok(());
        }
        let opened = openat(&above.handle, name, DIRECTORY_OPEN_FLAGS, Mode::empty());
        let listed =
            opened.and_then(|handle| names_of(handle.as_fd()).map(|names| (handle, names)));
        let (handle, names) = match listed {
            Ok(listed) => listed,
            // The entry was removed or replaced meanwhile.
            Err(Errno::NOENT) => return Ok(()),
            Err(_) => {
                self.leave_out(path, LeftOutReason::Unreadable, None);
                return Ok(());
            }
        };
        let ignore_file = read_ignore_file(handle.as_fd());
        let rules = above.rules.of_directory(
            Some(handle.as_fd()),
            self.options.workspace,
            &path,
            ignore_file.as_deref(),
        );
        self.listing
            .directories
            .insert(path.clone(), stat.permissions());
        let directory = Directory {
            handle,
            path,
            rules,
            is_ignored,
            depth: above.depth + 1,
        };
        self.entries(&directory, names)
    }

    /// Returns whether an ignored path is walked because another snapshot has it, or has files below it.
    fn is_wanted(&self, path: &[u8], is_directory: bool) -> bool {
        let Some(wanted) = self.options.with_files_of else {
            return false;
        };
        if is_directory {
            wanted.holds_below(path)
        } else {
            wanted.holds_at_or_below(path)
        }
    }

    fn is_contexts(&self, stat: &FileStat) -> bool {
        let contexts = self.options.contexts;
        contexts.is_some_and(|known| (known.device, known.inode) == (stat.device, stat.inode))
    }

    fn leave_out(&mut self, path: Vec<u8>, why: LeftOutReason, size: Option<u64>) {
        self.listing
            .left_out
            .insert(path, LeftOutEntry { why, size });
    }
}

/// Returns whether git can keep a name: it refuses names that another system could take for `.git`, and links
/// that it would read as its own files.
fn is_name_for_git(name: &OsStr, kind: FileType) -> bool {
    let name = name.as_bytes();
    let is_link = kind == FileType::Symlink;
    let is_refused = |refused: &[u8]| name.eq_ignore_ascii_case(refused);
    !(is_refused(b".git") || is_link && is_refused(b".gitmodules"))
}

/// Returns the names of the entries of a directory.
pub(crate) fn names_of(directory: BorrowedFd<'_>) -> Result<Vec<OsString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = entry?.file_name().to_bytes().to_owned();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
    }
    Ok(names)
}
