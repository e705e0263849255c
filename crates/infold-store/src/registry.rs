//! The list of all tasks, and data learned about models (`tasks.db`).

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use uuid::Uuid;

use crate::database::{self, Identity, beside, connect, guard, make_private};

mod status;
mod row;
mod error;
mod patience;
mod schema;
mod expiry;
mod factor;
mod window;
mod quirk;
mod learned;
mod queue;
mod stats;

pub use error::RegistryError;
pub use factor::Report;
pub use queue::{ClaimRequest, Lease, QueueEntry, Return, StopRequest};
pub(crate) use queue::{Entered, NewEntry};
pub use quirk::Quirks;
pub use row::{Counters, Filter, TaskRow};
pub use stats::TaskStats;
pub use status::{Outcome, Status, StatusError};
pub use window::LearnedWindow;

pub(crate) use patience::Patience;
use row::{Text, amount, instant, key};

/// The list of all tasks: `tasks.db` in a contexts directory.
///
/// Any number of processes may have it open. All of it is derived from the tasks' own files, except the learned
/// [factors](Registry::factor), so a lost registry can be filled again with [`insert`](Registry::insert),
/// [`set_counters`](Registry::set_counters) and [`add_fork`](Registry::add_fork), all of which may be repeated.
///
/// It has no clock; callers pass the times, which are stored in milliseconds.
///
/// ```
/// use infold_store::{Counters, Outcome, Registry, Status, TaskRow};
///
/// let dir = tempfile::tempdir()?;
/// let registry = Registry::open(dir.path())?;
/// let uuid = uuid::Uuid::new_v4();
/// registry.insert(&TaskRow::new(uuid, Status::Running, "2026-11-15T20:51:34.123Z".parse()?))?;
/// registry.set_counters(uuid, Counters { llm_calls: 1, tokens: 812, ..Counters::default() })?;
/// registry.finish(uuid, &Outcome::Completed, "2026-11-15T20:59:02Z".parse()?)?;
///
/// let row = registry.get(uuid)?.expect("it was inserted");
/// assert_eq!(row.status, Status::Completed);
/// assert_eq!(row.counters.tokens, 812);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Registry {
    connection: Connection,
    path: PathBuf,
    /// The file that was opened.
    identity: Option<Identity>,
    patience: Patience,
}

/// Marks a registry that knows all tasks.
const FILLED: i64 = 0x0f01_d001;

/// The columns of a task's row that hold texts of people or agents.
const TEXTS: [&str; 13] = [
    "title",
    "error_message",
    "task_source",
    "owner",
    "repo",
    "task_type",
    "task_id",
    "user",
    "agent",
    "cwd",
    "hostname",
    "llm_provider",
    "model",
];

impl Registry {
    /// The file's name.
    pub(crate) const NAME: &str = "tasks.db";

    /// Opens the registry of `contexts_dir`, and makes directory, file and tables where missing.
    ///
    /// A registry of an older version is brought up to date; one of a newer
    /// version is refused and stays as it is.
    pub fn open(contexts_dir: &Path) -> Result<Registry, RegistryError> {
        Registry::open_with(contexts_dir, Patience::default())
    }

    fn open_with(contexts_dir: &Path, patience: Patience) -> Result<Registry, RegistryError> {
        database::check_path(contexts_dir)?;
        let path = contexts_dir.join(Registry::NAME);
        make_private(contexts_dir, &path).map_err(|error| RegistryError::io(&path, error))?;
        database::check_files(&path)?;
        let had_wal = beside(&path, "-wal").exists();
        let connection =
            connect(&path, patience).map_err(|error| RegistryError::sql(&path, error))?;
        let registry = Registry {
            connection,
            identity: Identity::of(&path),
            path,
            patience,
        };
        let found = registry.run(schema::version)?;
        if !(0..=schema::VERSION).contains(&found) {
            return Err(registry.refuse(found, had_wal));
        }
        registry.run(|db| schema::settle(db, &registry.path))?;
        // Asked first, so that opening does not wait for writers.
        if registry.run(schema::is_due)? {
            registry.write(schema::migrate)?;
        }
        guard(&registry.path);
        Ok(registry)
    }

    /// Adds a task; returns whether it was new.
    ///
    /// An existing task stays as it is, so repair may insert every task that it finds.
    pub fn insert(&self, row: &TaskRow) -> Result<bool, RegistryError> {
        self.run(|db| row::insert(db, row))
    }

    /// Adds tasks, all or none.
    pub(crate) fn insert_all(&self, rows: &[TaskRow]) -> Result<(), RegistryError> {
        self.write(|db| {
            rows.iter()
                .try_for_each(|row| row::insert(db, row).map(drop))
        })
    }

    /// Returns a task's row.
    pub fn get(&self, uuid: Uuid) -> Result<Option<TaskRow>, RegistryError> {
        self.run(|db| row::get(db, uuid))
    }

    /// Returns the rows that pass `filter`, newest first.
    pub fn list(&self, filter: &Filter) -> Result<Vec<TaskRow>, RegistryError> {
        self.run(|db| row::list(db, filter))
    }

    /// Returns every task there is, newest first.
    pub fn uuids(&self) -> Result<Vec<Uuid>, RegistryError> {
        self.run(|db| {
            keys(
                db,
                "SELECT uuid FROM tasks ORDER BY created_at DESC, rowid DESC",
                [],
            )
        })
    }

    /// Returns every task that is known to continue another one, whether or not it has a row.
    pub(crate) fn forks(&self) -> Result<Vec<Uuid>, RegistryError> {
        self.run(|db| keys(db, "SELECT child FROM forks ORDER BY child", []))
    }

    /// Returns the tasks that are queued, running or paused, newest first.
    pub fn unfinished(&self) -> Result<Vec<Uuid>, RegistryError> {
        let sql = "SELECT uuid FROM tasks WHERE status IN ('queued', 'running', 'paused')
                   ORDER BY created_at DESC, rowid DESC";
        self.run(|db| keys(db, sql, []))
    }

    /// Returns running tasks of a source to which nothing came since `before`, not more than so many.
    pub fn idle(
        &self,
        source: &str,
        before: Timestamp,
        limit: u64,
    ) -> Result<Vec<Uuid>, RegistryError> {
        let sql = "SELECT uuid FROM tasks
                   WHERE status = 'running' AND task_source = ?1 AND coalesce(active_at, created_at) < ?2
                   ORDER BY coalesce(active_at, created_at) LIMIT ?3";
        let values = params![source, row::instant(before), amount(limit)];
        self.run(|db| keys(db, sql, values))
    }

    /// Moves a task to `status`, as of `at`; returns whether there is such a task.
    ///
    /// The first move to `running` sets `started_at`. A move to `completed` or `failed` sets
    /// `completed_at` and `active_at`, any other clears the former; all clear the error, which [`Registry::finish`] gives.
    pub fn set_status(
        &self,
        uuid: Uuid,
        status: Status,
        at: Timestamp,
    ) -> Result<bool, RegistryError> {
        self.change(uuid, status, at, None)
    }

    /// Ends a task at `at`; returns whether there is such a task.
    pub fn finish(
        &self,
        uuid: Uuid,
        outcome: &Outcome,
        at: Timestamp,
    ) -> Result<bool, RegistryError> {
        self.change(uuid, outcome.status(), at, outcome.error())
    }

    fn change(
        &self,
        uuid: Uuid,
        status: Status,
        at: Timestamp,
        error: Option<&str>,
    ) -> Result<bool, RegistryError> {
        let sql = "UPDATE tasks SET
                       status = ?2,
                       started_at = CASE WHEN ?3 THEN coalesce(started_at, ?5) ELSE started_at END,
                       completed_at = CASE WHEN ?4 THEN ?5 END,
                       active_at = CASE WHEN ?4 THEN ?5 ELSE active_at END,
                       error_message = ?6
                   WHERE uuid = ?1";
        let (starts, ends) = (status == Status::Running, status.is_end());
        let values = params![key(uuid), status.name(), starts, ends, instant(at), error];
        self.run(|db| {
            if ends {
                queue::remove(db, uuid)?;
            }
            Ok(db.prepare_cached(sql)?.execute(values)? > 0)
        })
    }

    /// Sets a task's counters, as counted in its log; returns whether there is such a task.
    pub fn set_counters(&self, uuid: Uuid, counted: Counters) -> Result<bool, RegistryError> {
        let sql = "UPDATE tasks SET
                       llm_call_count = ?2,
                       tool_call_count = ?3,
                       total_tokens = ?4,
                       compression_count = ?5,
                       cached_tokens = ?6,
                       cost = ?7
                   WHERE uuid = ?1";
        let [llm, tool] = [counted.llm_calls, counted.tool_calls].map(amount);
        let [tokens, folds] = [counted.tokens, counted.compressions].map(amount);
        let (cached, cost) = (amount(counted.cached), counted.cost as f64 / 1e6);
        let values = params![key(uuid), llm, tool, tokens, folds, cached, cost];
        self.run(|db| Ok(db.prepare_cached(sql)?.execute(values)? > 0))
    }

    /// Records the time of the last activity of a task, and its title unless it has one; returns whether there
    /// is such a task.
    pub fn set_activity(
        &self,
        uuid: Uuid,
        at: Timestamp,
        title: Option<&str>,
    ) -> Result<bool, RegistryError> {
        let sql = "UPDATE tasks SET active_at = ?2, title = coalesce(title, ?3) WHERE uuid = ?1";
        let values = params![key(uuid), row::instant(at), title];
        self.run(|db| Ok(db.prepare_cached(sql)?.execute(values)? > 0))
    }

    /// Records that `child`'s log begins with a reference to `parent`; returns whether `parent` is here.
    ///
    /// Recorded before the child is made, it keeps the parent from being
    /// removed meanwhile. It is recorded in any case.
    pub fn add_fork(&self, child: Uuid, parent: Uuid) -> Result<bool, RegistryError> {
        self.write(|db| {
            db.execute(
                "INSERT INTO forks (child, parent) VALUES (?1, ?2)
                 ON CONFLICT (child) DO UPDATE SET parent = excluded.parent",
                params![key(child), key(parent)],
            )?;
            let sql = "SELECT EXISTS (SELECT 1 FROM tasks WHERE uuid = ?1)";
            db.query_row(sql, [key(parent)], |row| row.get(0))
        })
    }

    /// Returns the tasks whose log begins with a reference to `parent`.
    pub fn forks_of(&self, parent: Uuid) -> Result<Vec<Uuid>, RegistryError> {
        let sql = "SELECT child FROM forks WHERE parent = ?1 ORDER BY child";
        self.run(|db| keys(db, sql, [key(parent)]))
    }

    /// Forgets which task `child` continues; returns whether that was known.
    pub(crate) fn remove_fork(&self, child: Uuid) -> Result<bool, RegistryError> {
        let sql = "DELETE FROM forks WHERE child = ?1";
        self.run(|db| Ok(db.execute(sql, [key(child)])? > 0))
    }

    /// Returns the tasks that ended before `before` and that no remaining task refers to.
    ///
    /// Forks come before their parents, so removing them in this order leaves no dangling reference, wherever
    /// it stops.
    pub fn expired(&self, before: Timestamp) -> Result<Vec<TaskRow>, RegistryError> {
        self.run(|db| expiry::expired(db, before))
    }

    /// Removes a task's row, unless a fork refers to it; returns whether it was removed.
    ///
    /// Its own reference to a parent is removed with it, even if it has no row.
    pub fn remove(&self, uuid: Uuid) -> Result<bool, RegistryError> {
        self.write(|db| {
            let sql = "DELETE FROM tasks WHERE uuid = ?1
                       AND NOT EXISTS (SELECT 1 FROM forks WHERE parent = ?1)";
            let removed = db.execute(sql, [key(uuid)])? > 0;
            // A task that stays keeps its reference to its parent.
            let sql = "DELETE FROM forks WHERE child = ?1
                       AND NOT EXISTS (SELECT 1 FROM tasks WHERE uuid = ?1)";
            db.execute(sql, [key(uuid)])?;
            if removed {
                queue::remove(db, uuid)?;
            }
            Ok(removed)
        })
    }

    /// Removes deleted data from the file and its journal for good.
    pub fn purge(&self) -> Result<(), RegistryError> {
        self.run(database::purge)
    }

    /// Sets a column of a task's row; returns whether there is such a task.
    pub(crate) fn set_text(
        &self,
        uuid: Uuid,
        column: &str,
        text: &str,
    ) -> Result<bool, RegistryError> {
        let known = TEXTS.iter().find(|known| **known == column);
        let Some(column) = known else {
            return Ok(false);
        };
        let sql = format!("UPDATE tasks SET \"{column}\" = ?2 WHERE uuid = ?1");
        self.run(|db| Ok(db.execute(&sql, params![key(uuid), text])? > 0))
    }

    /// Says whether the row of any task has this text in a column.
    pub(crate) fn has_text(&self, column: &str, text: &str) -> Result<bool, RegistryError> {
        let Some(column) = TEXTS.iter().find(|known| **known == column) else {
            return Ok(false);
        };
        let sql = format!("SELECT 1 FROM tasks WHERE \"{column}\" = ?1 LIMIT 1");
        self.run(|db| db.prepare_cached(&sql)?.exists([text]))
    }

    /// Checks the file with SQLite; returns the damage, if there is any.
    pub fn check(&self) -> Result<Option<String>, RegistryError> {
        match self.run(database::check) {
            Err(RegistryError::Damaged { reason, .. }) => Ok(Some(reason)),
            checked => checked,
        }
    }

    /// Returns whether all tasks were entered that there are, those that ended included.
    pub(crate) fn is_filled(&self) -> Result<bool, RegistryError> {
        let id: i64 = self.run(|db| db.query_row("PRAGMA application_id", [], |row| row.get(0)))?;
        Ok(id == FILLED)
    }

    /// Notes that all tasks were entered. Who is stopped before that enters them again.
    pub(crate) fn set_filled(&self) -> Result<(), RegistryError> {
        self.run(|db| db.execute_batch(&format!("PRAGMA application_id = {FILLED}")))
    }

    /// The file that was opened.
    pub(crate) fn identity(&self) -> Option<Identity> {
        self.identity
    }

    /// Runs `work`, again if the database is busy.
    fn run<T>(
        &self,
        mut work: impl FnMut(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, RegistryError> {
        self.patience
            .wait_for(|| work(&self.connection))
            .map_err(|error| RegistryError::sql(&self.path, error))
    }

    /// Runs `work` whole or not at all, and no other writer meanwhile.
    fn write<T>(
        &self,
        mut work: impl FnMut(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, RegistryError> {
        self.run(|db| {
            // Immediate: a transaction that reads first could not be retried in
            // place when another writer comes between.
            let whole = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
            let answer = work(&whole)?;
            whole.commit()?;
            Ok(answer)
        })
    }

    /// Closes a registry of another version as it was found.
    fn refuse(self, found: i64, had_wal: bool) -> RegistryError {
        if had_wal {
            // The last to close a database writes its journal back. That may be
            // right, but is for the newer version to do.
            let keep = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
            if let Err(error) = self.connection.set_db_config(keep, true) {
                return RegistryError::sql(&self.path, error);
            }
        }
        RegistryError::TooNew {
            path: self.path,
            found,
            supported: schema::VERSION,
        }
    }
}

fn keys(db: &Connection, sql: &str, values: impl rusqlite::Params) -> rusqlite::Result<Vec<Uuid>> {
    db.prepare(sql)?
        .query_map(values, |row| Ok(row.get::<_, Text<Uuid>>(0)?.0))?
        .collect()
}

#[cfg(test)]
mod tests;
