use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard};

use infold_log::Seq;
use infold_store::{Chains, Key, RegistryError};
use uuid::Uuid;

use super::{Inner, locked};
use crate::held::Held;

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
    pub fn find<'k>(
        &self,
        keys: impl DoubleEndedIterator<Item = &'k Key> + ExactSizeIterator,
    ) -> Option<(usize, (Uuid, Seq))> {
        let known = locked(&self.0);
        let last = keys.enumerate().rev().take(BACK);
        { last }.find_map(|(at, key)| Some((at, *known.get(key)?)))
    }

    /// The last known place of a conversation, however far from its end.
    pub fn find_any(&self, keys: &[Key]) -> Option<(usize, Uuid)> {
        let known = locked(&self.0);
        let mut keys = keys.iter().enumerate().rev();
        keys.find_map(|(at, key)| Some((at, known.get(key)?.0)))
    }

    fn add(&self, task: Uuid, rows: &[(Key, Seq)]) {
        // Of a long history only the end is asked for.
        let rows = &rows[rows.len().saturating_sub(2 * BACK)..];
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

/// Rows for the index that are written some at a time, and before anybody asks for them.
///
/// Should they be lost, the log leads on from the rows that are there.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    rows: Vec<(Uuid, Key, Seq)>,
    keys: HashSet<Key>,
}

/// What tells a task from others that begin alike is indexed at once: so many steps.
const TELLING: u32 = 4;

/// So many rows may wait.
const MOST_WAITING: usize = 4096;

impl Inner {
    /// The index of conversations, with all that is known.
    pub fn whole_index(&self) -> Result<MutexGuard<'_, Chains>, RegistryError> {
        let mut chains = self.chains();
        let waiting = std::mem::take(&mut *locked(&self.waiting));
        if let Err(error) = chains.add_all(&waiting.rows) {
            let mut room = locked(&self.waiting);
            if room.rows.len() + waiting.rows.len() <= MOST {
                room.keys.extend(waiting.keys);
                room.rows.splice(0..0, waiting.rows);
            }
            return Err(error);
        }
        Ok(chains)
    }

    /// The index, with all that is known of these.
    pub fn index_of(&self, keys: &[Key]) -> Result<MutexGuard<'_, Chains>, RegistryError> {
        let waiting = locked(&self.waiting);
        let waits = keys.iter().any(|key| waiting.keys.contains(key));
        drop(waiting);
        match waits {
            true => self.whole_index(),
            false => Ok(self.chains()),
        }
    }

    /// Keeps where a conversation is found; how it goes on, once it is told from others, not at once.
    pub fn index(&self, held: &mut Held, rows: &[(Key, Seq)]) -> Result<(), RegistryError> {
        held.indexed += 1;
        if held.indexed <= TELLING {
            return self.index_now(held.id, rows);
        }
        let mut waiting = locked(&self.waiting);
        waiting.keys.extend(rows.iter().map(|(key, _)| *key));
        let rows_of = rows.iter().map(|(key, seq)| (held.id, *key, *seq));
        waiting.rows.extend(rows_of);
        let many = waiting.rows.len() >= MOST_WAITING;
        drop(waiting);
        if many && let Err(error) = self.whole_index() {
            self.failed(&error.into());
        }
        self.recent.add(held.id, rows);
        Ok(())
    }

    /// Keeps where a conversation is found, at once.
    pub fn index_now(&self, task: Uuid, rows: &[(Key, Seq)]) -> Result<(), RegistryError> {
        let keys: Vec<Key> = rows.iter().map(|(key, _)| *key).collect();
        // What waits for the same place is older.
        self.index_of(&keys)?.add(task, rows)?;
        self.recent.add(task, rows);
        Ok(())
    }

    /// Forgets what leads to a task, from a message on or all of it.
    pub fn forget(&self, task: Uuid, from: Option<Seq>) -> Result<(), RegistryError> {
        self.recent.clear();
        match from {
            Some(seq) => self.whole_index()?.forget_from(task, seq),
            None => self.whole_index()?.forget(task),
        }
    }
}
