//! The index file `search.db`: terms of messages, by row.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};
use uuid::Uuid;

use super::document::Document;
use super::scope::row;
use crate::database::{self, connect, guard, make_private};
use crate::registry::Patience;
use crate::{RegistryError, time};

/// Full-text index over the messages of all tasks.
///
/// It holds terms, not texts. Terms of removed messages remain in its files until [`SearchIndex::purge`].
#[derive(Debug)]
pub struct SearchIndex {
    connection: Connection,
    path: PathBuf,
    /// Why the one that was there was removed, if one was.
    pub renewed: Option<String>,
}

pub(crate) const NAME: &str = "search.db";

/// The version of the tables and of the extraction of terms: an index of another version is rebuilt.
const VERSION: i64 = 2;

/// How far a task is indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskMark {
    /// Its number in the index.
    pub number: i64,
    /// The last message that is indexed; zero if none is.
    pub through: u64,
    /// The checksum of that message's line.
    pub sum: u32,
    /// How long `messages.jsonl` was up to there.
    pub bytes: u64,
}

// `AUTOINCREMENT`: rows of a task that was forgotten are not used again.
const SCHEMA: &str = "
    CREATE TABLE tasks (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        task BLOB NOT NULL UNIQUE,
        through INTEGER NOT NULL,
        sum INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        messages INTEGER NOT NULL,
        words INTEGER NOT NULL
    );
    CREATE TABLE documents (
        row INTEGER PRIMARY KEY,
        time INTEGER NOT NULL,
        words INTEGER NOT NULL
    );
    CREATE TABLE unpurged (since INTEGER NOT NULL);
    CREATE VIRTUAL TABLE terms USING fts5 (
        words, wholes, stems, facts,
        content = '', contentless_delete = 1,
        tokenize = \"ascii tokenchars '_./-:@+#=~'\"
    );
    INSERT INTO terms (terms, rank) VALUES ('hashsize', 16777216);
    INSERT INTO terms (terms, rank) VALUES ('automerge', 8);
";

/// Where each term occurs.
const OCCURRENCES: &str =
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.instances USING fts5vocab (main, terms, instance)";

impl SearchIndex {
    /// Opens the index of a contexts directory, and makes it where it is missing, damaged or of another version.
    pub fn open(root: &Path) -> Result<SearchIndex, RegistryError> {
        let reason = match SearchIndex::open_as_is(root) {
            Err(RegistryError::Damaged { reason, .. }) => format!("was damaged ({reason})"),
            Err(RegistryError::TooNew { found, .. }) => format!("was of version {found}"),
            opened => return opened,
        };
        SearchIndex::remove(root)?;
        let index = SearchIndex::open_as_is(root)?;
        Ok(SearchIndex {
            renewed: Some(reason),
            ..index
        })
    }

    /// Checks the index of a contexts directory; returns the damage, if there is any.
    pub fn check(root: &Path) -> Result<Option<String>, RegistryError> {
        if !root.join(NAME).exists() {
            return Ok(None);
        }
        let checked =
            SearchIndex::open_as_is(root).and_then(|mut index| index.run(database::check));
        match checked {
            Err(RegistryError::Damaged { reason, .. }) => Ok(Some(format!("is damaged: {reason}"))),
            Err(RegistryError::TooNew { found, .. }) => Ok(Some(format!("is of version {found}"))),
            checked => Ok(checked?.map(|reason| format!("is damaged: {reason}"))),
        }
    }

    /// Removes the index of a contexts directory. Nothing of it is set aside: it holds nothing that the logs do not.
    pub fn remove(root: &Path) -> Result<(), RegistryError> {
        if let Some(aside) = database::set_aside(root, NAME, None)? {
            for suffix in ["-wal", "-shm", "-journal", ""] {
                let path = database::beside(&aside, suffix);
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(RegistryError::io(&path, error));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Returns an index in memory, for use where no file can be written.
    pub fn in_memory() -> Result<SearchIndex, RegistryError> {
        let path = PathBuf::from(":memory:");
        let opened = Connection::open_in_memory().and_then(|connection| {
            connection.execute_batch(SCHEMA)?;
            connection.execute_batch(OCCURRENCES)?;
            Ok(connection)
        });
        let connection = opened.map_err(|error| RegistryError::sql(&path, error))?;
        Ok(SearchIndex {
            connection,
            path,
            renewed: None,
        })
    }

    /// Removes tasks from the index of a contexts directory, if there is one, and from its files for good. If
    /// that fails, the whole index is removed.
    pub fn forget_for_good(
        root: &Path,
        is_meant: impl Fn(Uuid) -> bool,
    ) -> Result<(), RegistryError> {
        if !root.join(NAME).exists() {
            return Ok(());
        }
        let forgotten = SearchIndex::open_as_is(root).and_then(|mut index| {
            let tasks = index.marks()?.into_iter().map(|(task, _)| task);
            index.forget(&tasks.filter(|task| is_meant(*task)).collect::<Vec<_>>())?;
            index.purge()
        });
        match forgotten {
            Ok(()) => Ok(()),
            Err(_) => SearchIndex::remove(root),
        }
    }

    fn open_as_is(root: &Path) -> Result<SearchIndex, RegistryError> {
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
        if found != VERSION {
            let supported = VERSION;
            return Err(RegistryError::TooNew {
                path,
                found,
                supported,
            });
        }
        Ok(SearchIndex {
            connection,
            path,
            renewed: None,
        })
    }

    /// How far a task is indexed; none if it is not.
    pub fn mark(&mut self, task: Uuid) -> Result<Option<TaskMark>, RegistryError> {
        self.run(|db| {
            db.prepare_cached("SELECT number, through, sum, bytes FROM tasks WHERE task = ?1")?
                .query_row([task.as_bytes()], read_mark)
                .optional()
        })
    }

    /// All tasks that are indexed, and how far.
    pub fn marks(&mut self) -> Result<Vec<(Uuid, TaskMark)>, RegistryError> {
        self.run(|db| {
            db.prepare_cached("SELECT number, through, sum, bytes, task FROM tasks")?
                .query_map([], |row| {
                    Ok((Uuid::from_bytes(row.get(4)?), read_mark(row)?))
                })?
                .collect()
        })
    }

    /// The number of a task, if it is indexed.
    pub fn number(&mut self, task: Uuid) -> Result<Option<i64>, RegistryError> {
        Ok(self.mark(task)?.map(|mark| mark.number))
    }

    /// The task of a number.
    pub fn task(&mut self, number: i64) -> Result<Option<Uuid>, RegistryError> {
        self.run(|db| {
            db.prepare_cached("SELECT task FROM tasks WHERE number = ?1")?
                .query_row([number], |row| Ok(Uuid::from_bytes(row.get(0)?)))
                .optional()
        })
    }

    /// How many messages are indexed, and how many words they have.
    pub fn totals(&mut self) -> Result<(u64, u64), RegistryError> {
        self.run(|db| {
            db.prepare_cached("SELECT total(messages), total(words) FROM tasks")?
                .query_row([], |row| {
                    Ok((row.get::<_, f64>(0)? as u64, row.get::<_, f64>(1)? as u64))
                })
        })
    }

    /// How many messages are indexed from one row to another.
    pub fn messages_between(&mut self, first: i64, last: i64) -> Result<u64, RegistryError> {
        self.run(|db| {
            db.prepare_cached("SELECT count(*) FROM documents WHERE row BETWEEN ?1 AND ?2")?
                .query_row([first, last], |row| row.get::<_, i64>(0))
                .map(i64::unsigned_abs)
        })
    }

    /// Adds messages of a task and moves its mark, all or nothing; adds nothing if `is_current` returns that
    /// they are no longer in the log. If another process was faster, returns the mark that it left and adds
    /// nothing.
    ///
    /// `is_current` is called under the write lock: a redaction first replaces the log and then deletes its
    /// messages here, so messages added before it are deleted, and messages read before it are not added after.
    pub fn add(
        &mut self,
        task: Uuid,
        documents: &[(u64, Document)],
        mark: TaskMark,
        is_current: impl Fn() -> bool,
    ) -> Result<Option<TaskMark>, RegistryError> {
        self.write(|db| {
            if !is_current() {
                return Ok(None);
            }
            let known = db
                .prepare_cached("SELECT number, through, sum, bytes FROM tasks WHERE task = ?1")?
                .query_row([task.as_bytes()], read_mark)
                .optional()?;
            let first = documents.first().map_or(mark.through + 1, |(seq, _)| *seq);
            match known {
                // Another process indexed this meanwhile: the caller continues from there.
                Some(known) if mark.number != known.number || known.through >= first => {
                    return Ok(Some(known));
                }
                // The task was deleted from the index meanwhile.
                None if mark.number != 0 => return Ok(None),
                _ => {}
            }
            let number = match mark.number {
                0 => {
                    db.prepare_cached(
                        "INSERT INTO tasks (task, through, sum, bytes, messages, words)
                         VALUES (?1, 0, 0, 0, 0, 0)",
                    )?
                    .execute([task.as_bytes()])?;
                    db.last_insert_rowid()
                }
                number => number,
            };
            let mut terms = db.prepare_cached(
                "INSERT INTO terms (rowid, words, wholes, stems, facts)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?;
            let mut rows =
                db.prepare_cached("INSERT INTO documents (row, time, words) VALUES (?1, ?2, ?3)")?;
            let mut words = 0;
            for (seq, document) in documents {
                let row = row(number, *seq);
                let found = &document.terms;
                terms.execute(params![
                    row,
                    found.words,
                    found.wholes,
                    found.stems,
                    document.facts
                ])?;
                rows.execute(params![row, int(document.time), int(found.count)])?;
                words += found.count;
            }
            db.prepare_cached(
                "UPDATE tasks SET through = ?2, sum = ?3, bytes = ?4,
                 messages = messages + ?5, words = words + ?6 WHERE number = ?1",
            )?
            .execute(params![
                number,
                int(mark.through),
                mark.sum,
                int(mark.bytes),
                int(documents.len() as u64),
                int(words)
            ])?;
            Ok(Some(TaskMark { number, ..mark }))
        })
    }

    /// Removes the messages of tasks.
    pub fn forget(&mut self, tasks: &[Uuid]) -> Result<(), RegistryError> {
        let mut numbers = Vec::new();
        for task in tasks {
            numbers.extend(self.number(*task)?);
        }
        if numbers.is_empty() {
            return Ok(());
        }
        self.write(|db| {
            for number in &numbers {
                let rows = [row(*number, 0), row(*number, u64::MAX)];
                let all: Vec<i64> = db
                    .prepare_cached("SELECT row FROM documents WHERE row BETWEEN ?1 AND ?2")?
                    .query_map(rows, |row| row.get(0))?
                    .collect::<rusqlite::Result<_>>()?;
                let mut remove = db.prepare_cached("DELETE FROM terms WHERE rowid = ?1")?;
                for row in all {
                    remove.execute([row])?;
                }
                db.execute("DELETE FROM documents WHERE row BETWEEN ?1 AND ?2", rows)?;
                db.execute("DELETE FROM tasks WHERE number = ?1", [number])?;
            }
            db.execute(
                "INSERT INTO unpurged (since) VALUES (?1)",
                [int(time::now())],
            )
            .map(drop)
        })
    }

    /// Removes deleted data from the file and its journal for good, if there is any.
    pub fn purge(&mut self) -> Result<(), RegistryError> {
        let is_due = self.run(|db| {
            db.query_row("SELECT EXISTS (SELECT 1 FROM unpurged)", [], |row| {
                row.get::<_, bool>(0)
            })
        })?;
        if !is_due {
            return Ok(());
        }
        self.run(|db| {
            // Merging all segments into one drops the terms of rows that were deleted.
            db.execute("INSERT INTO terms (terms) VALUES ('optimize')", [])?;
            database::purge(db)
        })?;
        // Last: a purge that is cut short is made again.
        self.write(|db| db.execute("DELETE FROM unpurged", []).map(drop))
    }

    /// Runs a query.
    pub fn run<T>(
        &mut self,
        mut work: impl FnMut(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, RegistryError> {
        Patience::default()
            .wait_for(|| work(&self.connection))
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

/// SQLite has no larger integers; no log comes near.
fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn read_mark(row: &rusqlite::Row<'_>) -> rusqlite::Result<TaskMark> {
    Ok(TaskMark {
        number: row.get(0)?,
        through: row.get::<_, i64>(1)?.unsigned_abs(),
        sum: row.get(2)?,
        bytes: row.get::<_, i64>(3)?.unsigned_abs(),
    })
}

/// Sets how a connection writes, and makes the tables; returns the version that was found.
fn settle(db: &Connection, path: &Path) -> rusqlite::Result<i64> {
    let found: i64 = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if found > VERSION {
        return Ok(found);
    }
    database::set_journal(db, path)?;
    db.execute_batch(
        "PRAGMA synchronous = NORMAL; PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY;",
    )?;
    if found == 0 {
        let whole = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
        // Another process may have created the tables meanwhile.
        let made: i64 = whole.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if made == 0 {
            whole.execute_batch(SCHEMA)?;
            whole.pragma_update(None, "user_version", VERSION)?;
        }
        whole.commit()?;
    }
    // Read the definitions of the tables, so that damage to them is found now.
    db.query_row(
        "SELECT count(*) FROM (SELECT 1 FROM tasks LIMIT 1)",
        [],
        |_| Ok(()),
    )?;
    db.query_row(
        "SELECT count(*) FROM (SELECT 1 FROM terms LIMIT 1)",
        [],
        |_| Ok(()),
    )?;
    db.execute_batch(OCCURRENCES)?;
    Ok(VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use infold_wire::terms::DocumentTerms;

    /// Messages read from a log before it was redacted must not be added after that.
    #[test]
    fn what_is_not_current_is_not_added() {
        let mut index = SearchIndex::in_memory().expect("an index");
        let task = Uuid::from_u128(7);
        let document = Document {
            terms: DocumentTerms::of("the secret zebra"),
            ..Document::default()
        };
        let mark = TaskMark {
            number: 0,
            through: 1,
            sum: 0,
            bytes: 100,
        };
        let batch = [(1, document)];
        let added = index.add(task, &batch, mark, || false).expect("no error");
        assert_eq!((added, index.mark(task).expect("no error")), (None, None));
        assert_eq!(index.totals().expect("no error"), (0, 0));
        let added = index.add(task, &batch, mark, || true).expect("no error");
        assert_eq!(added, index.mark(task).expect("no error"));
        // The second process, new to the task or not, continues from the mark of the first.
        let first = added.expect("a mark");
        for late in [
            mark,
            TaskMark {
                through: 1,
                ..first
            },
        ] {
            let added = index.add(task, &batch, late, || true).expect("no error");
            assert_eq!(added, Some(first));
        }
        assert_eq!(index.totals().expect("no error").0, 1);
        index.forget(&[task]).expect("forgotten");
        assert_eq!(index.totals().expect("no error"), (0, 0));
        let added = index.add(task, &batch, first, || true);
        assert_eq!(added.expect("no error"), None, "it was forgotten meanwhile");
    }
}
