//! The directory that paths cannot leave.
//!
//! Every component is opened relative to the handle of the directory before it, and links are not followed by the
//! system but read and walked here. So a directory that is replaced by a link meanwhile leads nowhere else.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, Stat, fstat, mkdirat, open, openat, readlinkat};
use rustix::io::Errno;

/// The directory that paths cannot leave.
#[derive(Debug)]
pub struct Root {
    handle: OwnedFd,
    /// Its path without links.
    path: PathBuf,
    /// Its path as it was given.
    given: PathBuf,
    /// Directories that nothing is read from or written to: device and inode of each.
    protected: Vec<(u64, u64)>,
}

/// A place below a [`Root`].
#[derive(Debug)]
pub struct Location<'a> {
    root: &'a Root,
    /// The directories on the way, without that of the root.
    parents: Vec<Parent>,
    /// The last component, if it was not opened as a directory. It is no link, or was none just now.
    name: Option<OsString>,
}

#[derive(Debug)]
struct Parent {
    handle: OwnedFd,
    name: OsString,
}

/// Whether directories that are missing on the way are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingParents {
    Refuse,
    Create,
}

/// The kind of file as which the last component is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenKind {
    Entry,
    Directory,
}

/// Why a path leads nowhere.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    #[error(
        "`{path}` is outside the workspace: use a path relative to the workspace that does not leave it by `..` or a link"
    )]
    Outside { path: String },
    #[error("`{path}` does not exist: list the directory to see what is there")]
    Missing { path: String },
    #[error("a component of `{path}` is not a directory")]
    NotADirectory { path: String },
    #[error("`{path}` is in a directory that is kept from file tools")]
    Protected { path: String },
    #[error("`{path}` {REPOSITORY_DATA}")]
    Repository { path: String },
    #[error("the path is too long or too deep: `{path}`…")]
    TooDeep { path: String },
    #[error("`{path}` has too many links, or a link to itself")]
    Links { path: String },
    #[error("`{path}` cannot be opened: {source}")]
    Io { path: String, source: io::Error },
}

/// The reason given to a model that wants to write to a repository's own directory.
pub const REPOSITORY_DATA: &str =
    "belongs to the repository's own data (.git), which files tools do not change: use git itself";

/// As many links as Linux follows on one path.
const MAX_LINKS: usize = 40;

/// How deep a path may be: each directory on the way is held open.
const MAX_DEPTH: usize = 128;

/// As long as Linux takes a path.
const MAX_PATH_BYTES: usize = 4096;

impl Root {
    /// Opens a directory. `protected` are directories that paths do not lead into; those that are missing are none.
    pub fn open(given: &Path, protected: &[PathBuf]) -> io::Result<Root> {
        let path = given.canonicalize()?;
        let handle = open(&path, DIRECTORY, Mode::empty())?;
        let found = protected.iter().filter_map(|path| path.metadata().ok());
        Ok(Root {
            handle,
            path,
            given: given.to_owned(),
            protected: found.map(|found| (found.dev(), found.ino())).collect(),
        })
    }

    /// Says whether a directory is one that paths do not lead into, by whatever name it was opened.
    pub fn is_protected(&self, directory: BorrowedFd<'_>) -> bool {
        !self.protected.is_empty()
            && fstat(directory).is_ok_and(|stat| self.protected.contains(&identity(&stat)))
    }

    /// Returns its path without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the place of a file, whether it exists or not.
    pub fn locate(&self, path: &str, missing: MissingParents) -> Result<Location<'_>, PathError> {
        let mut names = Path::new(path).components();
        let is_repository = |name: Component<'_>| is_git_directory(name.as_os_str());
        // Before anything is made on the way: nothing is written there.
        if missing == MissingParents::Create && names.any(is_repository) {
            return Err(ComponentError::Repository.of(path));
        }
        self.walk(path, OpenKind::Entry, missing)
    }

    /// Returns the place of a directory, which is opened.
    pub fn directory(&self, path: &str) -> Result<Location<'_>, PathError> {
        self.walk(path, OpenKind::Directory, MissingParents::Refuse)
    }

    fn walk(
        &self,
        path: &str,
        target: OpenKind,
        missing: MissingParents,
    ) -> Result<Location<'_>, PathError> {
        if path.len() > MAX_PATH_BYTES {
            return Err(ComponentError::TooDeep.of(path));
        }
        let mut place = Location {
            root: self,
            parents: Vec::new(),
            name: None,
        };
        let mut links = 0;
        let mut pending = Vec::new();
        place
            .enter(Path::new(path), &mut pending)
            .map_err(|error| error.of(path))?;
        while let Some(name) = pending.pop() {
            let is_last = pending.is_empty() && target == OpenKind::Entry;
            let step = place.step(name, is_last, missing);
            if let Some(link) = step.map_err(|error| error.of(path))? {
                links += 1;
                if links > MAX_LINKS {
                    return Err(ComponentError::Links.of(path));
                }
                place
                    .enter(&link, &mut pending)
                    .map_err(|error| error.of(path))?;
            }
        }
        Ok(place)
    }
}

/// Returns device and inode, whatever types the system has for them.
#[allow(clippy::unnecessary_cast)]
fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev as u64, stat.st_ino as u64)
}

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// As [`PathError`], before the path is known.
enum ComponentError {
    Outside,
    NotADirectory,
    Links,
    TooDeep,
    Protected,
    Repository,
    System(Errno),
}

impl ComponentError {
    fn of(self, path: &str) -> PathError {
        let path = path.to_owned();
        match self {
            ComponentError::Outside => PathError::Outside { path },
            ComponentError::NotADirectory => PathError::NotADirectory { path },
            ComponentError::Links => PathError::Links { path },
            ComponentError::Protected => PathError::Protected { path },
            ComponentError::Repository => PathError::Repository { path },
            ComponentError::TooDeep => PathError::TooDeep {
                path: path.chars().take(80).collect(),
            },
            ComponentError::System(Errno::NOENT) => PathError::Missing { path },
            ComponentError::System(error) => PathError::Io {
                path,
                source: error.into(),
            },
        }
    }
}

impl Location<'_> {
    /// Returns the directory that the path started from.
    pub fn root(&self) -> &Root {
        self.root
    }

    /// Returns the directory that the last component is in; the last directory if all components are.
    pub fn parent(&self) -> BorrowedFd<'_> {
        match self.parents.last() {
            Some(parent) => parent.handle.as_fd(),
            None => self.root.handle.as_fd(),
        }
    }

    /// Returns the last component; none if the path leads to a directory that is open.
    pub fn name(&self) -> Option<&OsStr> {
        self.name.as_deref()
    }

    /// Returns the directories from the root on, each with its name; that of the root is empty.
    pub fn directories(&self) -> impl Iterator<Item = (BorrowedFd<'_>, &OsStr)> {
        let root = (self.root.handle.as_fd(), OsStr::new(""));
        let parents = self.parents.iter();
        let parents = parents.map(|parent| (parent.handle.as_fd(), parent.name.as_os_str()));
        std::iter::once(root).chain(parents)
    }

    /// Returns the prefix for the names in the directory: its path from the root, without links.
    pub fn path_prefix(&self) -> String {
        let names = self.parents.iter();
        let names = names.map(|parent| format!("{}/", parent.name.to_string_lossy()));
        names.collect()
    }

    /// Adds the components of a path to those that are walked next, the first one last.
    fn enter(&mut self, path: &Path, pending: &mut Vec<OsString>) -> Result<(), ComponentError> {
        let relative = if path.is_absolute() {
            self.parents.clear();
            let roots = [&self.root.path, &self.root.given];
            let mut below = roots.iter().filter_map(|root| path.strip_prefix(root).ok());
            below.next().ok_or(ComponentError::Outside)?
        } else {
            path
        };
        for component in relative.components().rev() {
            match component {
                Component::Normal(name) => pending.push(name.to_owned()),
                Component::ParentDir => pending.push("..".into()),
                Component::CurDir => {}
                Component::RootDir | Component::Prefix(_) => return Err(ComponentError::Outside),
            }
        }
        Ok(())
    }

    /// Walks one component. Returns where it leads if it is a link.
    fn step(
        &mut self,
        name: OsString,
        is_last: bool,
        missing: MissingParents,
    ) -> Result<Option<PathBuf>, ComponentError> {
        if name == ".." {
            // The handle from which this directory was opened, whatever its parent is by now.
            return match self.parents.pop() {
                Some(_) => Ok(None),
                None => Err(ComponentError::Outside),
            };
        }
        if is_last {
            return match self.read_link(&name) {
                Ok(link) => Ok(Some(link)),
                Err(Errno::INVAL | Errno::NOENT) => {
                    self.name = Some(name);
                    Ok(None)
                }
                Err(error) => Err(ComponentError::System(error)),
            };
        }
        // A link may lead there, too.
        if missing == MissingParents::Create && is_git_directory(&name) {
            return Err(ComponentError::Repository);
        }
        if self.parents.len() == MAX_DEPTH {
            return Err(ComponentError::TooDeep);
        }
        let mut opened = openat(self.parent(), &name, DIRECTORY, Mode::empty());
        if matches!(opened, Err(Errno::NOENT)) && missing == MissingParents::Create {
            match mkdirat(self.parent(), &name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(ComponentError::System(error)),
            }
            opened = openat(self.parent(), &name, DIRECTORY, Mode::empty());
        }
        match opened {
            Ok(handle) if self.root.is_protected(handle.as_fd()) => Err(ComponentError::Protected),
            Ok(handle) => {
                self.parents.push(Parent { handle, name });
                Ok(None)
            }
            // The error code for a link differs between systems.
            Err(Errno::LOOP | Errno::NOTDIR | Errno::MLINK) => match self.read_link(&name) {
                Ok(link) => Ok(Some(link)),
                Err(_) => Err(ComponentError::NotADirectory),
            },
            Err(error) => Err(ComponentError::System(error)),
        }
    }

    fn read_link(&self, name: &OsStr) -> Result<PathBuf, Errno> {
        let target = readlinkat(self.parent(), name, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }
}

/// Says whether a name is that of a repository's own directory, on any file system.
pub fn is_git_directory(name: &OsStr) -> bool {
    name.as_bytes().eq_ignore_ascii_case(b".git")
}
