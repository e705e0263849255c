//! The steps of a restoration.

use std::cmp::Reverse;

use crate::listing::{SnapshotFile, SnapshotListing};
use crate::workspace::ancestors;

/// The steps that turn the current snapshot of a workspace into the one to restore.
///
/// Each path of a plan is in one of the two snapshots; no other path is touched.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RestorePlan {
    /// Files and links that the target does not have.
    pub removed: Vec<Vec<u8>>,
    /// Directories that the target does not have, those below first. They are removed if they are empty.
    pub removed_directories: Vec<Vec<u8>>,
    /// Directories that are missing, those above first.
    pub made_directories: Vec<Vec<u8>>,
    /// Files and links with other contents.
    pub written: Vec<(Vec<u8>, SnapshotFile)>,
    /// Files of which only the permissions differ.
    pub file_modes: Vec<(Vec<u8>, u32)>,
    /// Directories of which the permissions are to be as they are here, those below first.
    pub directory_modes: Vec<(Vec<u8>, u32)>,
}

/// The permissions without which a directory's entries cannot be changed.
const OWNER: u32 = 0o700;

impl RestorePlan {
    /// Plans how `now` becomes `target`. `is_ignored` returns whether the restored ignore rules of the target
    /// leave a path out.
    pub fn new(
        now: &SnapshotListing,
        target: &SnapshotListing,
        is_ignored: &mut dyn FnMut(&[u8], bool) -> bool,
    ) -> RestorePlan {
        let mut plan = RestorePlan::default();
        for path in now.files.keys() {
            if !target.files.contains_key(path) && is_removable(path, false, target, is_ignored) {
                plan.removed.push(path.clone());
            }
        }
        for (path, file) in &target.files {
            match now.files.get(path) {
                Some(there)
                    if there.id == file.id && there.kind.is_link() == file.kind.is_link() =>
                {
                    if there.mode != file.mode && !file.kind.is_link() {
                        plan.file_modes.push((path.clone(), file.mode));
                    }
                }
                _ => plan.written.push((path.clone(), *file)),
            }
        }
        for (path, mode) in &now.directories {
            if target.directories.contains_key(path) {
                continue;
            }
            if is_removable(path, true, target, is_ignored) {
                plan.removed_directories.push(path.clone());
            }
            // A directory that stays may have been made writable.
            if mode & OWNER != OWNER {
                plan.directory_modes.push((path.clone(), *mode));
            }
        }
        for (path, mode) in &target.directories {
            match now.directories.get(path) {
                Some(there) if there == mode && mode & OWNER == OWNER => continue,
                Some(_) => {}
                None => plan.made_directories.push(path.clone()),
            }
            plan.directory_modes.push((path.clone(), *mode));
        }
        plan.removed_directories
            .sort_by_key(|path| Reverse(depth(path)));
        plan.directory_modes
            .sort_by_key(|(path, _)| Reverse(depth(path)));
        plan
    }
}

/// Returns whether a path that the target does not have is removed. It is if it is in the place of a path of
/// the target; otherwise only if it was not ignored then, nor left out for another reason, nor is ignored by
/// the rules of the target.
fn is_removable(
    path: &[u8],
    is_directory: bool,
    target: &SnapshotListing,
    is_ignored: &mut dyn FnMut(&[u8], bool) -> bool,
) -> bool {
    let is_in_the_way = target.directories.contains_key(path)
        || target.files.contains_key(path)
        || ancestors(path).any(|above| target.files.contains_key(above));
    is_in_the_way || !target.spares(path) && !is_ignored(path, is_directory)
}

fn depth(path: &[u8]) -> usize {
    path.iter().filter(|byte| **byte == b'/').count()
}
