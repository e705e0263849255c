//! Figures of all tasks, each by one plain query.

use rusqlite::Connection;

use super::row::{self, Text};
use super::{Registry, RegistryError, Status, TaskRow};

/// Figures of all tasks in the registry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskStats {
    /// The tasks that are running, the longest first.
    pub running: Vec<TaskRow>,
    /// How many tasks there are of each status.
    pub by_status: Vec<(Status, u64)>,
    /// How many tasks there are of each user, most first.
    pub by_user: Vec<(Option<String>, u64)>,
    /// The last failures, newest first.
    pub failures: Vec<TaskRow>,
    /// How many minutes tasks took that completed; none if none did.
    pub average_minutes: Option<f64>,
    /// The tokens of all tasks.
    pub total_tokens: u64,
    /// The tokens of a task; none if there is none.
    pub average_tokens: Option<f64>,
}

/// So many failures are listed.
const LISTED_FAILURES: u32 = 10;

impl Registry {
    /// Returns figures of all tasks.
    pub fn stats(&self) -> Result<TaskStats, RegistryError> {
        self.run(read)
    }
}

fn read(db: &Connection) -> rusqlite::Result<TaskStats> {
    let rows = |sql: &str| {
        let mut query = db.prepare(sql)?;
        let rows = query.query_map([], row::read)?;
        rows.collect::<rusqlite::Result<Vec<TaskRow>>>()
    };
    let running = rows("SELECT * FROM tasks WHERE status = 'running' ORDER BY started_at, rowid")?;
    let failures = rows(&format!(
        "SELECT * FROM tasks WHERE status = 'failed'
         ORDER BY completed_at DESC, rowid DESC LIMIT {LISTED_FAILURES}"
    ))?;
    let by_status = db
        .prepare("SELECT status, count(*) FROM tasks GROUP BY status ORDER BY status")?
        .query_map([], |row| {
            Ok((
                row.get::<_, Text<Status>>(0)?.0,
                row.get::<_, u32>(1)?.into(),
            ))
        })?
        .collect::<rusqlite::Result<_>>()?;
    let by_user = db
        .prepare("SELECT user, count(*) FROM tasks GROUP BY user ORDER BY count(*) DESC, user")?
        .query_map([], |row| Ok((row.get(0)?, row.get::<_, u32>(1)?.into())))?
        .collect::<rusqlite::Result<_>>()?;
    let sql = "SELECT avg((julianday(completed_at) - julianday(started_at)) * 1440)
               FROM tasks WHERE status = 'completed'";
    let average_minutes = db.query_row(sql, [], |row| row.get(0))?;
    let sql = "SELECT coalesce(sum(total_tokens), 0), avg(total_tokens) FROM tasks";
    let (total, average_tokens) =
        db.query_row(sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)))?;
    Ok(TaskStats {
        running,
        by_status,
        by_user,
        failures,
        average_minutes,
        total_tokens: total.unsigned_abs(),
        average_tokens,
    })
}
