//! Walks directories below a root by their handles, skipping entries that `.gitignore` leaves out.

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use infold_ignore::IgnoreRules;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};

use super::CallContext;
use super::file::{TEMPORARY_PREFIX, open_entry};
use super::root::{Location, Root, is_git_directory};

/// An entry of a directory.
pub struct WalkEntry<'a> {
    /// The directory that it is in.
    pub directory: BorrowedFd<'a>,
    pub name: &'a OsStr,
    /// Its path from the directory where the walk began.
    pub path: &'a [u8],
    pub kind: FileType,
}

/// Whether a walk continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkStep {
    Continue,
    Stop,
}

/// The parameters of a walk.
#[derive(Clone, Copy, Debug)]
pub struct WalkOptions {
    /// How many levels below the first directory; 1 for its own entries alone.
    pub max_depth: usize,
    /// Whether entries that `.gitignore` leaves out are walked, too.
    pub with_ignored: bool,
}

/// How many entries a walk looks at, whatever it does with them.
const MAX_WALKED_ENTRIES: usize = 500_000;

/// The most levels of a walk: each level holds a file open.
const MAX_WALK_DEPTH: usize = 64;

const MAX_IGNORE_FILE_BYTES: u64 = 256 << 10;

/// Calls `visit` for each entry below a directory, in the order of their names, and for each directory before
/// its entries. Links are not followed.
///
/// Returns whether everything was walked.
pub fn walk(
    start: &Location<'_>,
    options: WalkOptions,
    context: &CallContext,
    visit: &mut dyn FnMut(&WalkEntry<'_>) -> WalkStep,
) -> bool {
    let mut walk = Walk {
        root: start.root(),
        options,
        context,
        rules: Vec::new(),
        base: Vec::new(),
        left: MAX_WALKED_ENTRIES,
        visit,
        is_whole: true,
    };
    // Rules of the directories above hold here, too.
    for (directory, name) in start.directories() {
        if !name.is_empty() {
            walk.base.extend_from_slice(name.as_bytes());
            walk.base.push(b'/');
        }
        walk.read_rules(directory);
    }
    let base_bytes = walk.base.len();
    let step = walk.directory(start.parent(), base_bytes, 1);
    walk.is_whole && step == WalkStep::Continue
}

struct Walk<'a> {
    root: &'a Root,
    options: WalkOptions,
    context: &'a CallContext,
    /// The rules of each directory on the way that has some, with the length of its path.
    rules: Vec<(usize, IgnoreRules)>,
    /// The path from the root of the directory that is walked, with a slash at its end.
    base: Vec<u8>,
    left: usize,
    visit: &'a mut dyn FnMut(&WalkEntry<'_>) -> WalkStep,
    is_whole: bool,
}

impl Walk<'_> {
    fn directory(
        &mut self,
        directory: BorrowedFd<'_>,
        start_bytes: usize,
        depth: usize,
    ) -> WalkStep {
        let Ok(mut names) = names_of(directory, self.left) else {
            self.is_whole = false;
            return WalkStep::Continue;
        };
        names.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
        for (name, kind) in names {
            if self.left == 0 || self.context.cancel.is_set() {
                self.is_whole = false;
                return WalkStep::Stop;
            }
            self.left -= 1;
            let Some(kind) = kind_of(directory, &name, kind) else {
                continue;
            };
            if is_git_directory(&name) || name.as_bytes().starts_with(TEMPORARY_PREFIX.as_bytes()) {
                continue;
            }
            let above = self.base.len();
            self.base.extend_from_slice(name.as_bytes());
            let step = if self.is_ignored(kind) {
                WalkStep::Continue
            } else {
                self.entry(directory, &name, kind, start_bytes, depth)
            };
            self.base.truncate(above);
            if step == WalkStep::Stop {
                return WalkStep::Stop;
            }
        }
        WalkStep::Continue
    }

    fn entry(
        &mut self,
        directory: BorrowedFd<'_>,
        name: &OsStr,
        kind: FileType,
        start_bytes: usize,
        depth: usize,
    ) -> WalkStep {
        let entry = WalkEntry {
            directory,
            name,
            path: &self.base[start_bytes..],
            kind,
        };
        if (self.visit)(&entry) == WalkStep::Stop {
            return WalkStep::Stop;
        }
        if kind != FileType::Directory || depth >= self.options.max_depth {
            return WalkStep::Continue;
        }
        if depth >= MAX_WALK_DEPTH {
            self.is_whole = false;
            return WalkStep::Continue;
        }
        // An entry that is no longer a directory, or may not be read, is skipped.
        let Ok(below) = open_directory(directory, name) else {
            self.is_whole = false;
            return WalkStep::Continue;
        };
        if self.root.is_protected(below.as_fd()) {
            return WalkStep::Continue;
        }
        self.base.push(b'/');
        let rules = self.rules.len();
        self.read_rules(below.as_fd());
        let step = self.directory(below.as_fd(), start_bytes, depth + 1);
        self.rules.truncate(rules);
        step
    }

    fn read_rules(&mut self, directory: BorrowedFd<'_>) {
        if self.options.with_ignored {
            return;
        }
        let Ok((file, _)) = open_entry(directory, OsStr::new(".gitignore"), ".gitignore") else {
            return;
        };
        let mut text = Vec::new();
        if file
            .take(MAX_IGNORE_FILE_BYTES)
            .read_to_end(&mut text)
            .is_err()
        {
            return;
        }
        let rules = IgnoreRules::parse(&text);
        if !rules.is_empty() {
            self.rules.push((self.base.len(), rules));
        }
    }

    /// Says whether the path in `base` is left out. The innermost file with a rule about it decides.
    fn is_ignored(&self, kind: FileType) -> bool {
        let is_directory = kind == FileType::Directory;
        let mut rules = self.rules.iter().rev();
        rules
            .find_map(|(bytes, rules)| rules.verdict(&self.base[*bytes..], is_directory))
            .unwrap_or(false)
    }
}

fn open_directory(directory: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(directory, name, flags, Mode::empty())
}

/// Returns the entries of a directory, at most `max_entries`.
fn names_of(
    directory: BorrowedFd<'_>,
    max_entries: usize,
) -> rustix::io::Result<Vec<(OsString, FileType)>> {
    let mut names = Vec::new();
    // Open the directory again: a handle has one position, and other calls may read this directory now.
    for entry in Dir::new(open_directory(directory, OsStr::new("."))?)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push((OsString::from_vec(name.to_vec()), entry.file_type()));
        }
        if names.len() > max_entries {
            break;
        }
    }
    Ok(names)
}

/// Returns the kind of an entry; some file systems do not report it with the names.
fn kind_of(directory: BorrowedFd<'_>, name: &OsStr, kind: FileType) -> Option<FileType> {
    if kind != FileType::Unknown {
        return Some(kind);
    }
    let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}
