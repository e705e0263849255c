//! The tables of the registry, and how each version leads to the next.

use std::collections::HashSet;
use std::path::Path;

use rusqlite::Connection;

use crate::database;

/// The migration from each version to the next.
///
/// Released steps never change; a new version is one more entry.
const STEPS: [&str; 7] = [
    "
    CREATE TABLE IF NOT EXISTS tasks (
        uuid TEXT PRIMARY KEY NOT NULL,
        task_source TEXT,
        owner TEXT,
        repo TEXT,
        task_type TEXT,
        task_id TEXT,
        status TEXT NOT NULL,
        created_at TEXT NOT NULL,
        started_at TEXT,
        completed_at TEXT,
        process_id INTEGER,
        hostname TEXT,
        llm_provider TEXT,
        model TEXT,
        context_length INTEGER,
        llm_call_count INTEGER NOT NULL DEFAULT 0,
        tool_call_count INTEGER NOT NULL DEFAULT 0,
        total_tokens INTEGER NOT NULL DEFAULT 0,
        compression_count INTEGER NOT NULL DEFAULT 0,
        error_message TEXT,
        user TEXT
    );
    CREATE INDEX IF NOT EXISTS tasks_status ON tasks (status);
    CREATE INDEX IF NOT EXISTS tasks_created_at ON tasks (created_at);
    CREATE INDEX IF NOT EXISTS tasks_user ON tasks (user);
    CREATE TABLE IF NOT EXISTS forks (
        child TEXT PRIMARY KEY NOT NULL,
        parent TEXT NOT NULL
    );
    CREATE INDEX IF NOT EXISTS forks_parent ON forks (parent);
    ",
    "CREATE TABLE IF NOT EXISTS token_factors (
        provider TEXT NOT NULL,
        model TEXT NOT NULL,
        factor REAL NOT NULL,
        reports INTEGER NOT NULL,
        updated_at TEXT NOT NULL,
        PRIMARY KEY (provider, model)
    );",
    "ALTER TABLE tasks ADD COLUMN cached_tokens INTEGER NOT NULL DEFAULT 0;
     ALTER TABLE tasks ADD COLUMN cost REAL NOT NULL DEFAULT 0;
     CREATE TABLE IF NOT EXISTS model_windows (
        provider TEXT NOT NULL,
        model TEXT NOT NULL,
        window INTEGER NOT NULL,
        updated_at TEXT NOT NULL,
        PRIMARY KEY (provider, model)
     );",
    "CREATE TABLE IF NOT EXISTS model_quirks (
        provider TEXT NOT NULL,
        model TEXT NOT NULL,
        alternate INTEGER NOT NULL,
        plain INTEGER NOT NULL,
        bound INTEGER NOT NULL,
        updated_at TEXT NOT NULL,
        PRIMARY KEY (provider, model)
     );",
    "ALTER TABLE tasks ADD COLUMN title TEXT;
     ALTER TABLE tasks ADD COLUMN agent TEXT;
     ALTER TABLE tasks ADD COLUMN cwd TEXT;
     ALTER TABLE tasks ADD COLUMN active_at TEXT;
     CREATE INDEX IF NOT EXISTS idx_tasks_active_at ON tasks (active_at);
     DROP INDEX IF EXISTS tasks_status;
     DROP INDEX IF EXISTS tasks_created_at;
     DROP INDEX IF EXISTS tasks_user;
     CREATE INDEX IF NOT EXISTS idx_tasks_status ON tasks (status);
     CREATE INDEX IF NOT EXISTS idx_tasks_created_at ON tasks (created_at);
     CREATE INDEX IF NOT EXISTS idx_tasks_user ON tasks (user);",
    "CREATE TABLE IF NOT EXISTS queue (
        uuid TEXT PRIMARY KEY NOT NULL,
        priority INTEGER NOT NULL DEFAULT 0,
        attempts INTEGER NOT NULL DEFAULT 0,
        not_before TEXT,
        lease_owner TEXT,
        lease_until TEXT,
        stop TEXT,
        stop_reason TEXT
     );",
    "ALTER TABLE queue ADD COLUMN commands INTEGER NOT NULL DEFAULT 0;",
];

/// The version that all steps lead to.
pub(super) const VERSION: i64 = STEPS.len() as i64;

/// Returns the version of a database; a new one has 0.
pub(super) fn version(db: &Connection) -> rusqlite::Result<i64> {
    db.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Sets how a connection writes: readers never wait, and a crash of the process loses nothing.
pub(super) fn settle(db: &Connection, path: &Path) -> rusqlite::Result<()> {
    database::set_journal(db, path)?;
    db.execute_batch("PRAGMA synchronous = NORMAL")
}

/// Returns whether [`migrate`] has anything to do.
pub(super) fn is_due(db: &Connection) -> rusqlite::Result<bool> {
    Ok(version(db)? != VERSION || !missing(db, &STEPS)?.is_empty())
}

/// Applies the remaining steps, and restores dropped tables and indexes.
///
/// Runs inside a transaction: another process may have migrated in the meantime.
pub(super) fn migrate(db: &Connection) -> rusqlite::Result<()> {
    take(db, &STEPS)
}

fn take(db: &Connection, steps: &[&str]) -> rusqlite::Result<()> {
    let done = usize::try_from(version(db)?).unwrap_or(0);
    for step in steps.iter().skip(done) {
        db.execute_batch(step)?;
    }
    for sql in missing(db, steps)? {
        db.execute_batch(&sql)?;
    }
    let now = done.max(steps.len());
    db.execute_batch(&format!("PRAGMA user_version = {now}"))
}

/// The statements that make the tables and indexes a database lacks, tables first.
///
/// An empty database that took all the steps is the model; the steps themselves
/// cannot be taken twice once one of them alters a table.
fn missing(db: &Connection, steps: &[&str]) -> rusqlite::Result<Vec<String>> {
    let model = Connection::open_in_memory()?;
    for step in steps {
        model.execute_batch(step)?;
    }
    let present: HashSet<String> = objects(db)?.into_iter().map(|(name, _)| name).collect();
    let expected = objects(&model)?.into_iter();
    let lacking = expected.filter(|(name, _)| !present.contains(name));
    Ok(lacking.map(|(_, sql)| sql).collect())
}

fn objects(db: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    // Indexes that come with a primary key have no statement of their own.
    let sql = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type DESC, rowid";
    db.prepare(sql)?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATER: [&str; 8] = [
        STEPS[0],
        STEPS[1],
        STEPS[2],
        STEPS[3],
        STEPS[4],
        STEPS[5],
        STEPS[6],
        "ALTER TABLE tasks ADD COLUMN colour TEXT DEFAULT 'red';
         CREATE INDEX tasks_colour ON tasks (colour)",
    ];

    fn colours(db: &Connection) -> i64 {
        let sql = "SELECT count(*) FROM tasks WHERE colour = 'red'";
        db.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_new_version_is_one_more_step() {
        let db = Connection::open_in_memory().unwrap();
        take(&db, &STEPS).unwrap();
        let row = "INSERT INTO tasks (uuid, status, created_at) VALUES ('u', 'queued', 't')";
        db.execute_batch(row).unwrap();
        take(&db, &LATER).unwrap();
        assert_eq!(version(&db).unwrap(), 8);
        assert_eq!(colours(&db), 1);
        take(&db, &LATER).unwrap();
        assert_eq!(colours(&db), 1);
    }

    #[test]
    fn a_dropped_table_comes_back_as_its_version_has_it() {
        let db = Connection::open_in_memory().unwrap();
        take(&db, &LATER).unwrap();
        db.execute_batch("DROP TABLE tasks").unwrap();
        take(&db, &LATER).unwrap();
        assert_eq!(colours(&db), 0);
        assert!(missing(&db, &LATER).unwrap().is_empty());
    }
}
