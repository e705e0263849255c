use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::Json;

/// Records that name the record before them, and the way from the newest back to the first.
///
/// Of each record a few bytes are kept, whatever it holds.
#[derive(Default)]
pub struct Tree {
    /// The parent of each record.
    parents: HashMap<u64, Option<u64>>,
    newest: Option<u64>,
    kept: HashSet<u64>,
}

/// What an id is known by.
pub fn key(id: Json<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.name().hash(&mut hasher);
    hasher.finish()
}

impl Tree {
    /// Takes in a record; the newest that may be a leaf is where the way starts.
    pub fn add(&mut self, id: u64, parent: Option<u64>, leaf: bool) {
        self.parents.insert(id, parent);
        if leaf {
            self.newest = Some(id);
        }
    }

    /// The record itself if it was taken in, else the newest that may be a leaf.
    ///
    /// What stands for earlier messages may name one that was never written down: it follows the newest then.
    pub fn known_or_newest(&self, id: u64) -> Option<u64> {
        if self.parents.contains_key(&id) {
            Some(id)
        } else {
            self.newest
        }
    }

    /// Finds the way.
    pub fn settle(&mut self) {
        let parents = std::mem::take(&mut self.parents);
        let mut next = self.newest;
        // A record that was met already ends the way, so that a circle does.
        while let Some(id) = next.filter(|id| parents.contains_key(id) && self.kept.insert(*id)) {
            next = parents.get(&id).copied().flatten();
        }
    }

    /// Says whether a record is on the way.
    pub fn keeps(&self, id: u64) -> bool {
        self.kept.contains(&id)
    }

    /// Puts a record beside the way on it.
    pub fn keep(&mut self, id: u64) {
        self.kept.insert(id);
    }
}
