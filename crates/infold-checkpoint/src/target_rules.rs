//! The ignore rules that hold once those of a snapshot are back.

use std::collections::HashMap;
use std::os::fd::AsFd as _;
use std::path::Path;

use crate::error::CheckpointError;
use crate::listing::SnapshotListing;
use crate::objects::Objects;
use crate::rules::{DirectoryRules, Tracked};
use crate::user_repository::read_ignore_file;
use crate::workspace::{WorkspaceDir, join, split};

/// The ignore rules that hold once those of a snapshot are back.
pub(crate) struct TargetRules<'a, 'b> {
    pub workspace: &'a WorkspaceDir,
    pub user_excludes: Option<&'a Path>,
    pub now: &'a SnapshotListing,
    pub target: &'a SnapshotListing,
    pub objects: &'a mut Objects<'b>,
    /// The rules of each directory that was looked at, and whether it is ignored itself.
    pub known: HashMap<Vec<u8>, (DirectoryRules, bool)>,
    /// The first problem that was met.
    pub failed: Option<CheckpointError>,
}

impl TargetRules<'_, '_> {
    /// Says whether a path is ignored. If the rules cannot be read everything is, and [`TargetRules::failed`] says why.
    pub fn is_ignored(&mut self, path: &[u8], is_directory: bool) -> bool {
        let (above, _) = split(path);
        let (rules, is_above_ignored) = self.of_directory(above);
        if self.failed.is_some() {
            return true;
        }
        let is_ignored = is_above_ignored || rules.is_ignored(path, is_directory);
        is_ignored && rules.is_tracked(path, is_directory) == Tracked::No
    }

    fn of_directory(&mut self, path: &[u8]) -> (DirectoryRules, bool) {
        if let Some(known) = self.known.get(path) {
            return known.clone();
        }
        let text = self.ignore_file(path);
        let found = if path.is_empty() {
            let rules =
                DirectoryRules::of_workspace(self.workspace, text.as_deref(), self.user_excludes);
            (rules, false)
        } else {
            let (above, _) = split(path);
            let (rules, is_above_ignored) = self.of_directory(above);
            let is_ignored = is_above_ignored || rules.is_ignored(path, true);
            let is_ignored = is_ignored && rules.is_tracked(path, true) != Tracked::Itself;
            let handle = self.workspace.directory(path).ok();
            let handle = handle.as_ref().map(|handle| handle.as_fd());
            let rules = rules.of_directory(handle, self.workspace, path, text.as_deref());
            (rules, is_ignored)
        };
        self.known.insert(path.to_owned(), found.clone());
        found
    }

    /// Returns the text of the `.gitignore` that a directory will have.
    fn ignore_file(&mut self, directory: &[u8]) -> Option<Vec<u8>> {
        let path = join(directory, ".gitignore".as_ref());
        match self.target.files.get(&path) {
            Some(file) if file.kind.is_link() => None,
            Some(file) => match self.objects.read(file.id) {
                Ok(text) => Some(text),
                Err(error) => {
                    self.failed.get_or_insert(error);
                    None
                }
            },
            // The file will be removed.
            None if self.now.files.contains_key(&path) => None,
            // The file is ignored itself, and stays.
            None => {
                let handle = self.workspace.directory(directory).ok()?;
                read_ignore_file(handle.as_fd())
            }
        }
    }
}
