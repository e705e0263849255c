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

/// The most failures that are listed.
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

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;
    use crate::{Counters, Outcome};

    #[test]
    fn figures_are_what_plain_sql_says() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::open(dir.path()).unwrap();
        assert_eq!(registry.stats().unwrap(), TaskStats::default());
        let at = |minute: u32| -> Timestamp {
            let text = format!("2026-11-18T{:02}:{:02}:00Z", 8 + minute / 60, minute % 60);
            text.parse().unwrap()
        };
        // Twelve tasks fail at minutes 1 to 12; two complete after 10 and 20 minutes; one runs.
        for number in 1..=15_u32 {
            let uuid = Uuid::from_u128(number.into());
            let user = if number % 2 == 0 { Some("ada") } else { None };
            let row = TaskRow {
                user: user.map(str::to_owned),
                counters: Counters {
                    tokens: 100 * u64::from(number),
                    ..Counters::default()
                },
                ..TaskRow::new(uuid, Status::Running, at(0))
            };
            registry.insert(&row).unwrap();
            let (end, minute) = match number {
                1..=12 => {
                    let error = format!("failure {number}");
                    (Outcome::Failed { error }, number)
                }
                13 => (Outcome::Completed, 10),
                14 => (Outcome::Completed, 20),
                _ => continue,
            };
            registry.finish(uuid, &end, at(minute)).unwrap();
        }
        let stats = registry.stats().unwrap();
        let by_status = [
            (Status::Completed, 2),
            (Status::Failed, 12),
            (Status::Running, 1),
        ];
        assert_eq!(stats.by_status, by_status);
        assert_eq!(stats.by_user, [(None, 8), (Some("ada".to_owned()), 7)]);
        assert_eq!(stats.running.len(), 1);
        let errors = stats.failures.iter().map(|row| row.error_message.clone());
        let newest = (3..=12)
            .rev()
            .map(|number| Some(format!("failure {number}")));
        assert!(errors.eq(newest));
        assert!((stats.average_minutes.unwrap() - 15.0).abs() < 0.001);
        assert_eq!(stats.total_tokens, 12_000);
        assert_eq!(stats.average_tokens, Some(800.0));
    }
}
