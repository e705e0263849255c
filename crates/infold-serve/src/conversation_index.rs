//! The conversation index: finds the task of a conversation by chain digest or name.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use infold_log::{Past as _, Role, Seq};
use infold_store::{ChainIndex, Contexts, Key, Log, Metadata, RedactedDigests, RegistryError};
use infold_wire::digest::{self, Digest};
use infold_wire::request_options::RequestOptions;
use quick_cache::sync::Cache;
use uuid::Uuid;

use crate::conversations::TASK_SOURCE;
use crate::message_digest::DigestPath;
use crate::open_task::OpenTask;
use crate::parsed_request::{conversation_key, opening_salt};
use crate::{ConversationError, ConversationName, locked};

/// Finds tasks by conversation keys: recent ones in memory, the others on disk (`chains.db`).
///
/// Rows are hints: they are checked against the log before anything is appended.
pub(crate) struct ConversationIndex {
    chains: Mutex<ChainIndex>,
    /// The places of recent conversations. Most requests continue one of them.
    recent: Cache<Key, (Uuid, Seq)>,
    pending: Mutex<PendingRows>,
    root: PathBuf,
    redacted: Mutex<RedactedCache>,
}

/// The redacted digests as of the last change of the contexts directory, which changes with every redaction.
#[derive(Default)]
struct RedactedCache {
    digests: Arc<RedactedDigests>,
    /// When the directory was changed last; none if it may have changed since within the resolution of its clock.
    changed: Option<SystemTime>,
}

/// Clocks of file systems are finer than this.
const MAX_CLOCK_STEP: Duration = Duration::from_secs(2);

/// Rows that are written in bulk, and before any lookup. If they are lost, the log still leads on from the rows that
/// are there.
#[derive(Debug, Default)]
struct PendingRows {
    rows: Vec<(Uuid, Key, Seq)>,
    keys: HashSet<Key>,
    /// The numbers of batches that were added and written.
    added: u64,
    written: u64,
}

impl PendingRows {
    /// Adds a batch, and returns its number.
    fn add(&mut self, task: Uuid, rows: &[(Key, Seq)]) -> u64 {
        self.keys.extend(rows.iter().map(|(key, _)| *key));
        let rows = rows.iter().map(|(key, seq)| (task, *key, *seq));
        self.rows.extend(rows);
        self.added += 1;
        self.added
    }
}

/// The tasks that hold the longest known beginning of a conversation.
pub(crate) struct KnownPlaces {
    /// The number of the request's messages that they hold.
    pub known: usize,
    pub places: Vec<(Uuid, Seq)>,
}

const MAX_RECENT_KEYS: usize = 64 << 10;

/// The number of messages from the end of a conversation at which it is looked for among the recent ones: a question,
/// tool results.
const RECENT_LOOK_BACK: usize = 3;

/// The first batches of a task, which distinguish it from others that begin alike, are written immediately.
const IMMEDIATE_BATCHES: u32 = 4;

const MAX_PENDING_ROWS: usize = 4096;

impl ConversationIndex {
    /// Opens the index of a contexts directory. A new or damaged one is filled from the tasks.
    pub fn open(contexts: &Contexts) -> Result<ConversationIndex, RegistryError> {
        let mut chains = ChainIndex::open(contexts.root())?;
        if chains.is_new() {
            fill(&mut chains, contexts);
        } else if let Err(error) = contexts.add_redacted(&mut chains) {
            tracing::warn!(%error, "not all that was redacted will be recognised");
        }
        let root = contexts.root().to_owned();
        let contexts = contexts.clone();
        chains.fill_with(move |chains| fill(chains, &contexts));
        Ok(ConversationIndex {
            chains: Mutex::new(chains),
            recent: Cache::new(MAX_RECENT_KEYS),
            pending: Mutex::default(),
            redacted: Mutex::default(),
            root,
        })
    }

    /// Finds a recent conversation near its end: the number of known messages, and the place.
    pub fn find_recent(
        &self,
        keys: impl DoubleEndedIterator<Item = Key> + ExactSizeIterator,
    ) -> Option<(usize, (Uuid, Seq))> {
        let mut last = keys.enumerate().rev().take(RECENT_LOOK_BACK);
        last.find_map(|(at, key)| Some((at + 1, self.recent.get(&key)?)))
    }

    /// Finds the longest known beginning of a conversation.
    pub fn find(&self, keys: &[Key]) -> Result<Option<KnownPlaces>, RegistryError> {
        let mut chains = self.chains_with(keys)?;
        let found = chains.find(keys)?;
        Ok(found.map(|(at, places)| KnownPlaces {
            known: at + 1,
            places,
        }))
    }

    /// Finds the same without writing, even if the file cannot be read: for requests that cannot be recorded.
    pub fn find_read_only(&self, keys: &[Key]) -> Option<KnownPlaces> {
        let mut newest = keys.iter().enumerate().rev();
        let newest = newest.find_map(|(at, key)| Some((at + 1, self.recent.get(key)?)));
        let found = locked(&self.chains).find(keys).unwrap_or_default();
        match (newest, found) {
            (Some((known, place)), found)
                if found.as_ref().is_none_or(|(at, _)| known > at + 1) =>
            {
                Some(KnownPlaces {
                    known,
                    places: vec![place],
                })
            }
            (_, found) => found.map(|(at, places)| KnownPlaces {
                known: at + 1,
                places,
            }),
        }
    }

    /// Returns the names of a task.
    pub fn names_of(&self, task: Uuid) -> Result<Vec<String>, RegistryError> {
        locked(&self.chains).names_of(task)
    }

    /// Returns a name in its stored form: a redacted name stays redacted in every task.
    pub fn stored_name(&self, name: &ConversationName) -> Result<ConversationName, RegistryError> {
        let redacted = name.redacted();
        if locked(&self.chains).is_redacted_name(redacted.text())? {
            Ok(redacted)
        } else {
            Ok(name.clone())
        }
    }

    /// Returns the digests of redacted messages; `None` if there are none. Without redactions this costs one look at
    /// the directory.
    pub fn redacted(&self) -> Result<Option<Arc<RedactedDigests>>, RegistryError> {
        let changed = std::fs::metadata(&self.root).and_then(|root| root.modified());
        let changed = changed.ok();
        let mut cache = locked(&self.redacted);
        if changed.is_none() || cache.changed != changed {
            let is_old = |changed: &SystemTime| {
                let age = SystemTime::now().duration_since(*changed);
                age.is_ok_and(|age| age > MAX_CLOCK_STEP)
            };
            // The time is read before the index: a change in between is seen the next time.
            cache.changed = changed.filter(is_old);
            cache.digests = Arc::new(locked(&self.chains).redacted()?);
        }
        Ok((!cache.digests.is_empty()).then(|| Arc::clone(&cache.digests)))
    }

    /// Adds the redactions of a task.
    pub fn set_redacted(&self, task: Uuid, log: &Log) -> Result<(), ConversationError> {
        let redactions = log.redactions()?;
        locked(&self.chains).set_redacted(task, &redactions)?;
        locked(&self.redacted).changed = None;
        Ok(())
    }

    /// Gives a task a name.
    pub fn name(&self, name: &str, task: Uuid) -> Result<(), RegistryError> {
        locked(&self.chains).name(name, task)
    }

    /// Indexes new rows: the first four batches of a task immediately, later ones in bulk.
    pub fn add(&self, open: &mut OpenTask, rows: &[(Key, Seq)]) -> Result<(), RegistryError> {
        open.indexed_batches += 1;
        if open.indexed_batches <= IMMEDIATE_BATCHES {
            return self.add_now(open.id, rows);
        }
        let mut pending = locked(&self.pending);
        pending.add(open.id, rows);
        let is_full = pending.rows.len() >= MAX_PENDING_ROWS;
        drop(pending);
        self.add_recent(open.id, rows);
        // The rows stay pending if this fails, and are written later.
        if is_full && let Err(error) = self.flush() {
            tracing::warn!(%error, "the conversation index could not be written");
        }
        Ok(())
    }

    /// Indexes rows immediately: the thread that has the file locked writes the rows of all threads that wait for it.
    pub fn add_now(&self, task: Uuid, rows: &[(Key, Seq)]) -> Result<(), RegistryError> {
        let batch = locked(&self.pending).add(task, rows);
        let mut chains = locked(&self.chains);
        if locked(&self.pending).written < batch
            && let Err(error) = self.write_pending(&mut chains)
        {
            let is_own = |row: &(Uuid, Key, Seq)| row.0 == task && rows.contains(&(row.1, row.2));
            locked(&self.pending).rows.retain(|row| !is_own(row));
            return Err(error);
        }
        drop(chains);
        self.add_recent(task, rows);
        Ok(())
    }

    /// Drops the rows of a task, from a message on or all of them.
    pub fn forget(&self, task: Uuid, from: Option<Seq>) -> Result<(), RegistryError> {
        self.recent.clear();
        let mut chains = self.flushed()?;
        match from {
            Some(seq) => chains.forget_from(task, seq),
            None => chains.forget(task),
        }
    }

    /// Writes the pending rows.
    pub fn flush(&self) -> Result<(), RegistryError> {
        self.flushed().map(drop)
    }

    fn add_recent(&self, task: Uuid, rows: &[(Key, Seq)]) {
        // Of a long history only the end is looked up.
        let rows = &rows[rows.len().saturating_sub(2 * RECENT_LOOK_BACK)..];
        for (key, seq) in rows {
            self.recent.insert(*key, (task, *seq));
        }
    }

    /// Returns the index with all pending rows written.
    fn flushed(&self) -> Result<MutexGuard<'_, ChainIndex>, RegistryError> {
        let mut chains = locked(&self.chains);
        self.write_pending(&mut chains)?;
        Ok(chains)
    }

    fn write_pending(&self, chains: &mut ChainIndex) -> Result<(), RegistryError> {
        let mut pending = locked(&self.pending);
        let rows = std::mem::take(&mut pending.rows);
        let keys = std::mem::take(&mut pending.keys);
        let last = pending.added;
        drop(pending);
        let written = chains.add_all(&rows);
        let mut pending = locked(&self.pending);
        if written.is_ok() {
            pending.written = last;
        } else if pending.rows.len() + rows.len() <= MAX_RECENT_KEYS {
            pending.keys.extend(keys);
            pending.rows.splice(0..0, rows);
        }
        written
    }

    /// Returns the index with the pending rows of these keys written.
    fn chains_with(&self, keys: &[Key]) -> Result<MutexGuard<'_, ChainIndex>, RegistryError> {
        let pending = locked(&self.pending);
        let is_pending = keys.iter().any(|key| pending.keys.contains(key));
        drop(pending);
        if is_pending {
            self.flushed()
        } else {
            Ok(locked(&self.chains))
        }
    }
}

/// Adds the tasks that are there. If that fails half way, the next one who opens the index begins again.
fn fill(chains: &mut ChainIndex, contexts: &Contexts) {
    if let Some(set_aside) = chains.torn() {
        tracing::warn!(
            ?set_aside,
            "the conversation index was damaged and is rebuilt"
        );
    }
    if let Err(error) = add_all_tasks(chains, contexts) {
        tracing::warn!(%error, "not all conversations will be recognised");
    }
}

/// Adds all tasks except unreadable ones, which could not be continued anyway.
fn add_all_tasks(chains: &mut ChainIndex, contexts: &Contexts) -> Result<(), ConversationError> {
    for task in contexts.tasks()? {
        let rows = match rows_of(contexts, task) {
            Ok(rows) => rows,
            Err(error) => {
                tracing::warn!(%task, %error, "a conversation will not be recognised");
                continue;
            }
        };
        for name in rows.names {
            chains.name(&name, task)?;
        }
        if !rows.keys.is_empty() {
            chains.add(task, &rows.keys)?;
        }
    }
    contexts.add_redacted(chains)?;
    Ok(chains.filled()?)
}

/// The rows of one task in the index.
#[derive(Default)]
struct TaskRows {
    names: Vec<String>,
    keys: Vec<(Key, Seq)>,
}

/// Derives the rows of a task from its log.
fn rows_of(contexts: &Contexts, task: Uuid) -> Result<TaskRows, ConversationError> {
    let Some(dir) = contexts.place(task) else {
        return Ok(TaskRows::default());
    };
    let metadata = Metadata::read(&dir)?;
    if metadata.task_source.as_deref() != Some(TASK_SOURCE) {
        return Ok(TaskRows::default());
    }
    let mut keys = Vec::new();
    let log = contexts.read(task)?;
    let name = ConversationName::of(&metadata);
    let salts = opening_salts(&log, name.as_ref(), &metadata)?;
    let (mut chain, mut is_answered) = (digest::empty_chain(), false);
    for (seq, digest) in DigestPath::default().follow(&log)? {
        chain = digest::chain_digest(chain, *digest);
        is_answered |= log.record(*seq)?.role == Role::Assistant;
        // The messages that a fork shares with its parent are found in the parent.
        if seq.get() < log.own().seq {
            continue;
        }
        if is_answered {
            keys.push((chain, *seq));
        } else {
            let opening = |salt: &Digest| (conversation_key(chain, false, *salt), *seq);
            keys.extend(salts.iter().map(opening));
        }
    }
    let mut names: Vec<String> = name.iter().map(ConversationName::key).collect();
    names.extend(log.redacted_names()?);
    Ok(TaskRows { names, keys })
}

/// Returns the salts that distinguish the beginning of a task from others with the same words: one for each of its
/// first frames, as requests may have been repeated with another model or other tools before one was answered.
fn opening_salts(
    log: &Log,
    name: Option<&ConversationName>,
    metadata: &Metadata,
) -> Result<Vec<Digest>, ConversationError> {
    const MAX_SALTS: usize = 8;
    let mut salts = Vec::new();
    log.frames(|frame| {
        let mut member = |name: &str| frame.members.get(name).cloned();
        let options = RequestOptions::read(frame.wire, &mut member);
        let model = options.model.as_ref().or(metadata.model.as_ref());
        let model = model.map_or("", String::as_str);
        let salt = opening_salt(name, model, &options.tool_names);
        if salts.len() < MAX_SALTS && !salts.contains(&salt) {
            salts.push(salt);
        }
    })?;
    Ok(salts)
}
