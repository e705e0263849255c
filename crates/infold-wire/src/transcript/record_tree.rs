//! Finds the branch of the newest record in formats that are trees.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::Json;

/// Records that name their parents, and the branch of the newest.
///
/// It stores a few bytes for each record.
#[derive(Default)]
pub struct RecordTree {
    /// The parent of each record.
    parents: HashMap<u64, Option<u64>>,
    newest: Option<u64>,
    branch: HashSet<u64>,
}

/// Returns the hash of a record's id.
pub fn id_hash(id: Json<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.name().hash(&mut hasher);
    hasher.finish()
}

impl RecordTree {
    /// Adds a record; the branch ends with the newest that may be a leaf.
    pub fn add(&mut self, id: u64, parent: Option<u64>, leaf: bool) {
        self.parents.insert(id, parent);
        if leaf {
            self.newest = Some(id);
        }
    }

    /// Returns the record itself if it was added, else the newest that may be a leaf.
    ///
    /// A compaction may name a parent that was never written; then it follows the newest.
    pub fn known_or_newest(&self, id: u64) -> Option<u64> {
        if self.parents.contains_key(&id) {
            Some(id)
        } else {
            self.newest
        }
    }

    /// Finds the branch of the newest record.
    pub fn choose_branch(&mut self) {
        let parents = std::mem::take(&mut self.parents);
        let mut next = self.newest;
        // A record that was met already ends the branch, so that a cycle does.
        while let Some(id) = next.filter(|id| parents.contains_key(id) && self.branch.insert(*id)) {
            next = parents.get(&id).copied().flatten();
        }
    }

    /// Returns whether a record is on the branch.
    pub fn is_on_branch(&self, id: u64) -> bool {
        self.branch.contains(&id)
    }

    /// Adds a record to the branch.
    pub fn add_to_branch(&mut self, id: u64) {
        self.branch.insert(id);
    }
}
