use std::collections::HashSet;

use rusqlite::Connection;

/// What leads from each version to the next.
///
/// Released steps never change; a new version is one more entry.
const STEPS: [&str; 1] = ["
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
    "];

/// The version that all steps lead to.
pub(super) const VERSION: i64 = STEPS.len() as i64;

/// Returns the version of a database; a new one has 0.
pub(super) fn version(db: &Connection) -> rusqlite::Result<i64> {
    db.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Sets how a connection writes: readers never wait, and a crash of the process loses nothing.
pub(super) fn settle(db: &Connection) -> rusqlite::Result<()> {
    // Answers with the mode it took. Where WAL cannot be had, any other will do.
    db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    db.execute_batch("PRAGMA synchronous = NORMAL")
}

/// Returns whether [`migrate`] has anything to do.
pub(super) fn is_due(db: &Connection) -> rusqlite::Result<bool> {
    Ok(version(db)? != VERSION || !missing(db)?.is_empty())
}

/// Takes the steps that are left, and makes again what someone dropped.
///
/// Runs inside a transaction: another process may have migrated in the meantime.
pub(super) fn migrate(db: &Connection) -> rusqlite::Result<()> {
    let done = usize::try_from(version(db)?).unwrap_or(0);
    for step in STEPS.iter().skip(done) {
        db.execute_batch(step)?;
    }
    for sql in missing(db)? {
        db.execute_batch(&sql)?;
    }
    if done < STEPS.len() {
        db.execute_batch(&format!("PRAGMA user_version = {VERSION}"))?;
    }
    Ok(())
}

/// The statements that make the tables and indexes a database lacks, tables first.
///
/// What it should have is asked of an empty one that took all the steps; the
/// steps themselves cannot be taken twice once one of them alters a table.
fn missing(db: &Connection) -> rusqlite::Result<Vec<String>> {
    let model = Connection::open_in_memory()?;
    for step in STEPS {
        model.execute_batch(step)?;
    }
    let present: HashSet<String> = objects(db)?.into_iter().map(|(name, _)| name).collect();
    let lacking = objects(&model)?
        .into_iter()
        .filter(|(name, _)| !present.contains(name));
    Ok(lacking.map(|(_, sql)| sql).collect())
}

fn objects(db: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    // Indexes that come with a primary key have no statement of their own.
    let sql = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type DESC, rowid";
    db.prepare(sql)?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}
