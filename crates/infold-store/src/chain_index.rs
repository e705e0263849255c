//! Which conversations are known, by the digests of their beginnings (`chains.db`).

mod redacted;

use std::fmt;
use std::path::{Path, PathBuf};

use infold_log::Seq;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use uuid::Uuid;

use crate::RegistryError;
use crate::database::{self, Identity, connect, guard, make_private};
use crate::redacted_name::redacted_key;
use crate::registry::Patience;

/// The digest of a conversation up to one of its messages.
pub type Key = [u8; 16];

/// The position of the last known key of a conversation, and the messages that it belongs to.
pub type KnownChain = (usize, Vec<(Uuid, Seq)>);

/// Index of known conversations, and of the tasks that contain them: `chains.db` in a contexts directory.
///
/// It can be rebuilt from the tasks' own files, so a lost or damaged one is replaced. Writes are not synced to
/// the disk: after a power cut a row may point at a message, or a task, that does not exist. Rows are hints;
/// the log decides.
///
/// ```
/// use infold_log::Seq;
/// use infold_store::ChainIndex;
///
/// let dir = tempfile::tempdir()?;
/// let mut chains = ChainIndex::open(dir.path())?;
/// let (task, second) = (uuid::Uuid::new_v4(), Seq::new(2).unwrap());
/// chains.add(task, &[([1; 16], Seq::FIRST), ([2; 16], second)])?;
///
/// let found = chains.find(&[[1; 16], [2; 16], [3; 16]])?;
/// assert_eq!(found, Some((1, vec![(task, second)])));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ChainIndex {
    /// None if it was closed to be rebuilt and that failed.
    connection: Option<Connection>,
    root: PathBuf,
    path: PathBuf,
    /// The file that was opened.
    identity: Option<Identity>,
    is_new: bool,
    torn: Option<PathBuf>,
    filler: Option<Filler>,
}

/// Adds all tasks to a new index.
struct Filler(Box<dyn Fn(&mut ChainIndex) + Send>);

impl fmt::Debug for Filler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Filler")
    }
}

/// The most tasks of one key that are examined: a mere greeting may be the beginning of every task.
const MAX_TASKS_OF_A_KEY: u32 = 256;

/// The version of an index that holds all tasks; one that is yet to be filled has none.
const VERSION: i64 = 1;

// Tasks are numbered in the order of their creation: the newest is found without sorting, and a row is short.
const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS tasks (
        number INTEGER PRIMARY KEY,
        task BLOB NOT NULL UNIQUE
    );
    CREATE TABLE IF NOT EXISTS chains (
        key BLOB NOT NULL,
        task INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        PRIMARY KEY (key, task)
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS chains_task ON chains (task);
    CREATE TABLE IF NOT EXISTS names (
        number INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        task BLOB NOT NULL,
        UNIQUE (name, task)
    );
    CREATE INDEX IF NOT EXISTS names_task ON names (task);
";

impl ChainIndex {
    /// Opens the index of a contexts directory, and creates a missing one.
    ///
    /// A damaged one is set aside; [`ChainIndex::is_new`] and [`ChainIndex::torn`] report that.
    pub fn open(root: &Path) -> Result<ChainIndex, RegistryError> {
        match ChainIndex::open_as_is(root) {
            Err(RegistryError::Damaged { .. }) => ChainIndex::anew(root),
            opened => opened,
        }
    }

    /// Sets the function that adds all tasks to a new index. If the index turns out to be damaged, it is set
    /// aside, created again and filled, and the operation is repeated.
    pub fn fill_with(&mut self, filler: impl Fn(&mut ChainIndex) + Send + 'static) {
        self.filler = Some(Filler(Box::new(filler)));
    }

    /// Sets the index aside and starts an empty one, which is filled.
    fn renew(&mut self) -> Result<(), RegistryError> {
        // Close it first: the last connection that closes removes the journal of the database, which must not
        // be the new one's.
        self.connection = None;
        let torn = database::set_aside(&self.root, NAME, self.identity)?;
        let filler = self.filler.take();
        let opened = ChainIndex::open_as_is(&self.root);
        match opened {
            Ok(opened) => *self = ChainIndex { torn, ..opened },
            Err(error) => {
                self.filler = filler;
                return Err(error);
            }
        }
        if let Some(Filler(fill)) = &filler
            && self.is_new
        {
            fill(self);
        }
        self.filler = filler;
        Ok(())
    }

    fn anew(root: &Path) -> Result<ChainIndex, RegistryError> {
        let torn = database::set_aside(root, NAME, None)?;
        let chains = ChainIndex::open_as_is(root)?;
        Ok(ChainIndex { torn, ..chains })
    }

    /// Sets a damaged index aside; says where it is. A server that uses it starts a new one, else the next one does.
    pub fn set_aside(root: &Path) -> Result<Option<PathBuf>, RegistryError> {
        database::set_aside(root, NAME, None)
    }

    /// Checks the index of a contexts directory with SQLite; returns the damage, if there is any.
    pub fn check(root: &Path) -> Result<Option<String>, RegistryError> {
        if !root.join(NAME).exists() {
            return Ok(None);
        }
        let checked =
            ChainIndex::open_as_is(root).and_then(|mut chains| chains.run(database::check));
        match checked {
            Err(RegistryError::Damaged { reason, .. }) => Ok(Some(reason)),
            checked => checked,
        }
    }

    fn open_as_is(root: &Path) -> Result<ChainIndex, RegistryError> {
        database::check_path(root)?;
        let path = root.join(NAME);
        make_private(root, &path).map_err(|error| RegistryError::io(&path, error))?;
        database::check_files(&path)?;
        let patience = Patience::default();
        let opened = connect(&path, patience).and_then(|connection| {
            let found = patience.wait_for(|| settle(&connection, &path))?;
            Ok((connection, found))
        });
        let (connection, found) = opened.map_err(|error| RegistryError::sql(&path, error))?;
        guard(&path);
        if !(0..=VERSION).contains(&found) {
            let supported = VERSION;
            return Err(RegistryError::TooNew {
                path,
                found,
                supported,
            });
        }
        Ok(ChainIndex {
            connection: Some(connection),
            root: root.to_owned(),
            identity: Identity::of(&path),
            path,
            is_new: found == 0,
            torn: None,
            filler: None,
        })
    }

    /// Returns whether the tasks that are there are yet to be added, all or some of them.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Records that all tasks were added. A process that is killed before that leaves the index to be filled again.
    pub fn filled(&mut self) -> Result<(), RegistryError> {
        self.write(|db| db.pragma_update(None, "user_version", VERSION))?;
        self.is_new = false;
        Ok(())
    }

    /// Where a damaged one was put.
    pub fn torn(&self) -> Option<&Path> {
        self.torn.as_deref()
    }

    /// Finds the longest known prefix of a conversation, whose keys are given in its order.
    ///
    /// Returns the position of the last known key and the messages that it belongs to, newest task first; of
    /// very many, the newest. The search starts at the end, because most prefixes are long; its cost does not
    /// depend on the number of tasks.
    pub fn find(&mut self, keys: &[Key]) -> Result<Option<KnownChain>, RegistryError> {
        self.run(|db| {
            // Use one transaction, because otherwise each look-up takes and releases the locks.
            let whole = db.unchecked_transaction()?;
            let mut known = whole.prepare_cached(
                "SELECT tasks.task, chains.seq FROM chains
                 CROSS JOIN tasks ON tasks.number = chains.task
                 WHERE chains.key = ?1 ORDER BY chains.task DESC LIMIT ?2",
            )?;
            for (place, key) in keys.iter().enumerate().rev() {
                let rows = known.query_map(params![key, MAX_TASKS_OF_A_KEY], |row| {
                    Ok((Uuid::from_bytes(row.get(0)?), row.get::<_, i64>(1)?))
                })?;
                let rows: Vec<(Uuid, i64)> = rows.collect::<rusqlite::Result<_>>()?;
                let known = rows
                    .into_iter()
                    .filter_map(|(task, seq)| Some((task, Seq::new(u64::try_from(seq).ok()?)?)));
                let known: Vec<(Uuid, Seq)> = known.collect();
                if !known.is_empty() {
                    return Ok(Some((place, known)));
                }
            }
            Ok(None)
        })
    }

    /// Adds the keys of a task, all or none.
    ///
    /// A key that is there already is moved to its new message: a message that is repeated after a rewind is
    /// found where the task continues.
    pub fn add(&mut self, task: Uuid, rows: &[(Key, Seq)]) -> Result<(), RegistryError> {
        let rows: Vec<(Uuid, Key, Seq)> =
            rows.iter().map(|(key, seq)| (task, *key, *seq)).collect();
        self.add_all(&rows)
    }

    /// Adds the keys of several tasks, all or none.
    pub fn add_all(&mut self, rows: &[(Uuid, Key, Seq)]) -> Result<(), RegistryError> {
        if rows.is_empty() {
            return Ok(());
        }
        self.write(|db| {
            let mut add = db.prepare_cached(
                "INSERT INTO chains (key, task, seq) VALUES (?1, ?2, ?3)
                 ON CONFLICT (key, task) DO UPDATE SET seq = excluded.seq
                 WHERE seq != excluded.seq",
            )?;
            let mut last = None;
            for (task, key, seq) in rows {
                let number = match last {
                    Some((known, number)) if known == task => number,
                    _ => numbered(db, *task)?,
                };
                last = Some((task, number));
                // SQLite has no larger integers; no log comes near.
                let seq = i64::try_from(seq.get()).unwrap_or(i64::MAX);
                add.execute(params![key, number, seq])?;
            }
            Ok(())
        })
    }

    /// Gives a task a name, which others may have too.
    pub fn name(&mut self, name: &str, task: Uuid) -> Result<(), RegistryError> {
        self.write(|db| {
            let newest = "SELECT task FROM names WHERE name = ?1 ORDER BY number DESC LIMIT 1";
            let newest = db
                .prepare_cached(newest)?
                .query_row([name], |row| row.get::<_, [u8; 16]>(0))
                .optional()?;
            if newest != Some(*task.as_bytes()) {
                db.prepare_cached("INSERT OR REPLACE INTO names (name, task) VALUES (?1, ?2)")?
                    .execute(params![name, task.as_bytes()])?;
            }
            Ok(())
        })
    }

    /// The names of a task, in the order in which it got them.
    pub fn names_of(&mut self, task: Uuid) -> Result<Vec<String>, RegistryError> {
        self.run(|db| {
            db.prepare_cached("SELECT name FROM names WHERE task = ?1 ORDER BY number")?
                .query_map([task.as_bytes()], |row| row.get(0))?
                .collect()
        })
    }

    /// Says whether a task has a name.
    pub fn has_name(&mut self, name: &str) -> Result<bool, RegistryError> {
        self.run(|db| {
            db.prepare_cached("SELECT 1 FROM names WHERE name = ?1 LIMIT 1")?
                .exists([name])
        })
    }

    /// Replaces the name of a task of which `redacted` is the redacted form.
    pub(crate) fn redact_name(&mut self, task: Uuid, redacted: &str) -> Result<(), RegistryError> {
        for name in self.names_of(task)? {
            if redacted_key(&name).as_deref() == Some(redacted) {
                self.write(|db| {
                    let sql = "UPDATE OR REPLACE names SET name = ?3 WHERE task = ?1 AND name = ?2";
                    db.execute(sql, params![task.as_bytes(), name, redacted])
                })?;
            }
        }
        Ok(())
    }

    /// Removes deleted data from the file and its journal for good.
    pub(crate) fn purge(&mut self) -> Result<(), RegistryError> {
        self.run(database::purge)
    }

    /// Forgets all that leads to a task.
    pub fn forget(&mut self, task: Uuid) -> Result<(), RegistryError> {
        self.write(|db| {
            db.execute("DELETE FROM names WHERE task = ?1", [task.as_bytes()])?;
            redacted::forget_redacted(db, task)?;
            if let Some(number) = number(db, task)? {
                db.execute("DELETE FROM chains WHERE task = ?1", [number])?;
                db.execute("DELETE FROM tasks WHERE number = ?1", [number])?;
            }
            Ok(())
        })
    }

    /// Deletes the keys of a message of a task, and of all later ones.
    pub fn forget_from(&mut self, task: Uuid, seq: Seq) -> Result<(), RegistryError> {
        self.write(|db| {
            if let Some(number) = number(db, task)? {
                let seq = i64::try_from(seq.get()).unwrap_or(i64::MAX);
                db.execute(
                    "DELETE FROM chains WHERE task = ?1 AND seq >= ?2",
                    params![number, seq],
                )?;
            }
            Ok(())
        })
    }

    /// Runs `work`; if the index turns out to be damaged, on a new one.
    fn run<T>(
        &mut self,
        mut work: impl FnMut(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, RegistryError> {
        match self.run_once(&mut work) {
            Err(RegistryError::Damaged { .. }) if self.filler.is_some() => {
                self.renew()?;
                self.run_once(&mut work)
            }
            done => done,
        }
    }

    fn run_once<T>(
        &self,
        work: &mut impl FnMut(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, RegistryError> {
        let Some(db) = &self.connection else {
            return Err(RegistryError::Damaged {
                path: self.path.clone(),
                reason: "it was damaged, and could not be made anew".to_owned(),
            });
        };
        Patience::default()
            .wait_for(|| work(db))
            .map_err(|error| RegistryError::sql(&self.path, error))
    }

    fn write<T>(
        &mut self,
        mut work: impl FnMut(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, RegistryError> {
        self.run(|db| {
            let whole = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
            let answer = work(&whole)?;
            whole.commit()?;
            Ok(answer)
        })
    }
}

const NAME: &str = "chains.db";

/// Opens the index, if there is a usable one.
///
/// Without it, rows of removed tasks stay in the index; readers verify each result.
pub(crate) fn if_there(root: &Path) -> Option<ChainIndex> {
    let there = root.join(NAME).exists();
    there.then(|| ChainIndex::open_as_is(root).ok()).flatten()
}

/// Sets how a connection writes, and makes the tables; returns the version that was found.
fn settle(db: &Connection, path: &Path) -> rusqlite::Result<i64> {
    let found: i64 = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if found > VERSION {
        return Ok(found);
    }
    database::set_journal(db, path)?;
    db.execute_batch(
        "PRAGMA synchronous = OFF; PRAGMA cache_size = -8192; PRAGMA wal_autocheckpoint = 4096;",
    )?;
    // An index of an earlier version lacks some tables of redactions.
    if found == 0 || !db.table_exists(None, "redacted_texts")? {
        let whole = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
        whole.execute_batch(SCHEMA)?;
        whole.execute_batch(redacted::SCHEMA)?;
        whole.commit()?;
    }
    // Read the definitions of the tables, so that damage to them is found now.
    db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(found)
}

/// The number of a task, which is given one if it has none.
fn numbered(db: &Connection, task: Uuid) -> rusqlite::Result<i64> {
    if let Some(number) = number(db, task)? {
        return Ok(number);
    }
    db.prepare_cached("INSERT INTO tasks (task) VALUES (?1)")?
        .execute([task.as_bytes()])?;
    Ok(db.last_insert_rowid())
}

fn number(db: &Connection, task: Uuid) -> rusqlite::Result<Option<i64>> {
    db.prepare_cached("SELECT number FROM tasks WHERE task = ?1")?
        .query_row([task.as_bytes()], |row| row.get(0))
        .optional()
}

#[cfg(test)]
mod tests;
