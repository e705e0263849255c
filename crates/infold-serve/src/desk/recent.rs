use std::collections::HashMap;
use std::sync::Mutex;

use infold_log::Seq;
use infold_store::{Key, RegistryError};
use uuid::Uuid;

use super::{Inner, locked};

/// Where conversations were that went on lately: most requests go on with one of them.
///
/// Only a help: what is not here is in the index, and what is here is checked against the log.
#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<HashMap<Key, (Uuid, Seq)>>);

/// So many are kept in mind.
const MOST: usize = 64 << 10;

/// How far back from the end of a conversation it is looked: a question, what tools gave back.
const BACK: usize = 3;

impl Recent {
    /// The last known place of a conversation, if it is near its end.
    pub fn find(&self, keys: &[Key]) -> Option<(usize, (Uuid, Seq))> {
        let known = locked(&self.0);
        let last = keys.iter().enumerate().rev().take(BACK);
        { last }.find_map(|(at, key)| Some((at, *known.get(key)?)))
    }

    fn add(&self, task: Uuid, rows: &[(Key, Seq)]) {
        let mut known = locked(&self.0);
        if known.len() + rows.len() > MOST {
            known.clear();
        }
        known.extend(rows.iter().map(|(key, seq)| (*key, (task, *seq))));
    }

    fn clear(&self) {
        locked(&self.0).clear();
    }
}

impl Inner {
    /// Keeps where conversations are found.
    pub fn index(&self, task: Uuid, rows: &[(Key, Seq)]) -> Result<(), RegistryError> {
        self.chains().add(task, rows)?;
        // Of a long history only the end is asked for.
        self.recent
            .add(task, &rows[rows.len().saturating_sub(2 * BACK)..]);
        Ok(())
    }

    /// Forgets what leads to a task, from a message on or all of it.
    pub fn forget(&self, task: Uuid, from: Option<Seq>) -> Result<(), RegistryError> {
        self.recent.clear();
        match from {
            Some(seq) => self.chains().forget_from(task, seq),
            None => self.chains().forget(task),
        }
    }
}
