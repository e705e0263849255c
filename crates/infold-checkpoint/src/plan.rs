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
    /// Directories that the target does not have, the deepest first. Each is removed only if it is empty by then: it
    /// may contain ignored files, which stay.
    pub removed_directories: Vec<Vec<u8>>,
    /// Directories to create, parents before children.
    pub made_directories: Vec<Vec<u8>>,
    /// Files and links that are missing or have other contents now.
    pub written: Vec<(Vec<u8>, SnapshotFile)>,
    /// Files of which only the permissions differ.
    pub file_modes: Vec<(Vec<u8>, u32)>,
    /// Directories and the permissions that they get at the end, the deepest first: a parent that becomes read-only
    /// earlier would block access to its children.
    pub directory_modes: Vec<(Vec<u8>, u32)>,
}

/// The permissions that the owner of a directory needs to change its entries (`rwx`).
const OWNER_PERMISSIONS: u32 = 0o700;

impl RestorePlan {
    /// Plans how `now` becomes `target`. `is_ignored` takes a path and whether it is a directory, and returns whether
    /// the ignore rules of the target exclude the path.
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
                // Files and executables with the same contents differ in their mode only. A link that becomes a file,
                // or a file that becomes a link, is written again, even with the same contents.
                Some(current)
                    if current.id == file.id && current.kind.is_link() == file.kind.is_link() =>
                {
                    if current.mode != file.mode && !file.kind.is_link() {
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
            // While the plan is carried out, a directory without these permissions gets them. If this one is not empty
            // and so stays, it gets its own permissions back.
            if mode & OWNER_PERMISSIONS != OWNER_PERMISSIONS {
                plan.directory_modes.push((path.clone(), *mode));
            }
        }
        for (path, mode) in &target.directories {
            match now.directories.get(path) {
                Some(current)
                    if current == mode && mode & OWNER_PERMISSIONS == OWNER_PERMISSIONS =>
                {
                    continue;
                }
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

/// Returns whether a path that the target does not have is removed.
///
/// A path that occupies the place of a path of the target is always removed. Any other path is removed only if the
/// target would contain it had it existed then: not if the target's snapshot ignored it or left it out for another
/// reason, nor if the ignore rules of the target match it.
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

/// Returns the number of directories above a path.
fn depth(path: &[u8]) -> usize {
    path.iter().filter(|byte| **byte == b'/').count()
}
