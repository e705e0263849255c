//! Which files of a workspace git would ignore.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::rc::Rc;

use infold_ignore::{IgnoreRules, RuleChain};

use crate::tracked::TrackedPaths;
use crate::user_repository::{UserRepository, read_excludes, read_ignore_file};
use crate::workspace::{WorkspaceDir, components, join};

/// The rules that hold in a directory of a workspace.
#[derive(Clone, Debug)]
pub(crate) struct DirectoryRules {
    chain: RuleChain,
    repository: Rc<EnclosingRepository>,
    /// The text of the file of rules that the user has for all repositories.
    user_excludes: Rc<[u8]>,
}

/// The repository that a directory belongs to.
#[derive(Debug, Default)]
struct EnclosingRepository {
    /// The prefix that turns a path of the workspace into one of the repository, if that encloses the
    /// workspace.
    above: Vec<u8>,
    /// The directory in the workspace, with a slash at its end, if the repository is in the workspace.
    below: Vec<u8>,
    tracked: TrackedPaths,
}

impl DirectoryRules {
    /// Returns the rules of the top directory of a workspace.
    pub fn of_workspace(
        workspace: &WorkspaceDir,
        ignore_file: Option<&[u8]>,
        user_excludes: Option<&Path>,
    ) -> DirectoryRules {
        let user_excludes: Rc<[u8]> = user_excludes
            .and_then(read_excludes)
            .unwrap_or_default()
            .into();
        let plain = DirectoryRules {
            chain: RuleChain::default().with(0, IgnoreRules::parse(&user_excludes)),
            repository: Rc::default(),
            user_excludes,
        };
        let rules = match UserRepository::at(workspace.handle(), workspace.path()) {
            Some(found) => plain.in_repository(Vec::new(), Vec::new(), found),
            None => plain.enclosing(workspace.path()).unwrap_or(plain),
        };
        rules.with_ignore_file(b"", ignore_file)
    }

    /// Returns the rules of a directory directly below the one that has these rules.
    pub fn of_directory(
        &self,
        handle: Option<BorrowedFd<'_>>,
        workspace: &WorkspaceDir,
        path: &[u8],
        ignore_file: Option<&[u8]>,
    ) -> DirectoryRules {
        let at = workspace.display(path);
        let found = handle.and_then(|handle| UserRepository::at(handle, &at));
        let rules = match found {
            Some(found) => {
                let mut below = path.to_owned();
                below.push(b'/');
                self.in_repository(Vec::new(), below, found)
            }
            None => self.clone(),
        };
        rules.with_ignore_file(path, ignore_file)
    }

    /// Says whether a rule leaves a path out, given that no directory above it is left out.
    pub fn is_ignored(&self, path: &[u8], is_directory: bool) -> bool {
        let path = self.repository.path_of(path);
        self.chain.is_ignored(&path, is_directory)
    }

    /// Returns whether the index tracks a file, or a directory or anything below it.
    pub fn is_tracked(&self, path: &[u8], is_directory: bool) -> Tracked {
        let path = self.repository.path_of(path);
        let tracked = &self.repository.tracked;
        if !is_directory {
            return if tracked.contains(&path) {
                Tracked::Itself
            } else {
                Tracked::No
            };
        }
        // A path that was tracked as a file and is now a directory is not tracked.
        match (tracked.is_submodule(&path), tracked.any_below(&path)) {
            (true, _) => Tracked::Itself,
            (false, true) => Tracked::Below,
            (false, false) => Tracked::No,
        }
    }

    /// Returns the rules of the top directory of a repository, in which the rules outside of it do not apply.
    fn in_repository(
        &self,
        above: Vec<u8>,
        below: Vec<u8>,
        found: UserRepository,
    ) -> DirectoryRules {
        let user_rules = IgnoreRules::parse(&self.user_excludes);
        let chain = RuleChain::default()
            .with(0, user_rules)
            .with(0, IgnoreRules::parse(&found.excludes));
        DirectoryRules {
            chain,
            repository: Rc::new(EnclosingRepository {
                above,
                below,
                tracked: found.tracked,
            }),
            user_excludes: self.user_excludes.clone(),
        }
    }

    fn with_ignore_file(mut self, path: &[u8], ignore_file: Option<&[u8]>) -> DirectoryRules {
        if let Some(text) = ignore_file {
            let mut base = self.repository.path_of(path).len();
            // The slash behind the directory, unless that is the top of its repository.
            base += usize::from(base > 0 && !path.is_empty());
            self.chain = self.chain.with(base, IgnoreRules::parse(text));
        }
        self
    }

    /// Returns the rules of the repository that a workspace is in, above the workspace itself. None if there is no such
    /// repository, or if it ignores the workspace: then the workspace is no part of it.
    fn enclosing(&self, workspace: &Path) -> Option<DirectoryRules> {
        let open = |path: &Path| {
            let opened = std::fs::File::open(path);
            opened.map(std::os::fd::OwnedFd::from).ok()
        };
        let mut tops = workspace.ancestors().skip(1);
        let (top, found) = tops.find_map(|top| {
            let handle = open(top)?;
            let found = UserRepository::at(std::os::fd::AsFd::as_fd(&handle), top)?;
            Some((top, found))
        })?;
        let way = workspace.strip_prefix(top).ok()?;
        let way = std::os::unix::ffi::OsStrExt::as_bytes(way.as_os_str());
        let mut rules = self.in_repository(Vec::new(), Vec::new(), found);
        let mut at = Vec::new();
        let mut directory = top.to_owned();
        for name in components(way) {
            let text = open(&directory)
                .and_then(|handle| read_ignore_file(std::os::fd::AsFd::as_fd(&handle)));
            rules = rules.with_ignore_file(&at, text.as_deref());
            at = join(&at, name);
            directory.push(name);
            if rules.is_ignored(&at, true) && rules.is_tracked(&at, true) == Tracked::No {
                return None;
            }
        }
        at.push(b'/');
        let mut repository = Rc::into_inner(rules.repository)?;
        repository.above = at;
        rules.repository = Rc::new(repository);
        Some(rules)
    }
}

/// Whether an index tracks a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tracked {
    No,
    Itself,
    Below,
}

impl EnclosingRepository {
    /// Returns a path of the workspace as one of the repository.
    fn path_of(&self, path: &[u8]) -> Vec<u8> {
        match path.strip_prefix(self.below.as_slice()) {
            Some(below) => [&self.above, below].concat(),
            // The top of the repository itself.
            None => Vec::new(),
        }
    }
}
