//! The registry's row of a task.

use std::str::FromStr;

use jiff::Timestamp;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, params};
use uuid::Uuid;

use super::status::Status;

/// A row of the registry: one task.
///
/// Fields bear the names of their columns. There is none for a key or a
/// password, and none should be put into a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskRow {
    /// The task.
    pub uuid: Uuid,
    /// Where the work came from, such as `github`.
    pub task_source: Option<String>,
    /// The owner of the repository that it is about.
    pub owner: Option<String>,
    /// The repository.
    pub repo: Option<String>,
    /// The kind of work, such as `issue`.
    pub task_type: Option<String>,
    /// Its id at the source.
    pub task_id: Option<String>,
    /// Its state.
    pub status: Status,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it first ran.
    pub started_at: Option<Timestamp>,
    /// When it completed or failed.
    pub completed_at: Option<Timestamp>,
    /// The process that made it.
    pub process_id: Option<u32>,
    /// The machine of that process.
    pub hostname: Option<String>,
    /// The provider it talks to.
    pub llm_provider: Option<String>,
    /// The model it talks to.
    pub model: Option<String>,
    /// The model's window, in tokens.
    pub context_length: Option<u64>,
    /// Its counters.
    pub counters: Counters,
    /// Why it failed.
    pub error_message: Option<String>,
    /// The user for whom the task is done.
    pub user: Option<String>,
    /// Its title: the first request, shortened.
    pub title: Option<String>,
    /// The agent that works on it.
    pub agent: Option<String>,
    /// The directory in which that agent works.
    pub cwd: Option<String>,
    /// The time of its last activity.
    pub active_at: Option<Timestamp>,
}

/// Counters of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Calls of a model.
    pub llm_calls: u64,
    /// Calls of a tool.
    pub tool_calls: u64,
    /// Tokens sent and received.
    pub tokens: u64,
    /// Summary folds.
    pub compressions: u64,
    /// Tokens read from a provider's cache.
    pub cached: u64,
    /// Cost of the calls in millionths of a dollar.
    pub cost: u64,
}

/// Which tasks to list; the default is all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only those of this status.
    pub status: Option<Status>,
    /// Only those of this user.
    pub user: Option<String>,
    /// No more than so many.
    pub limit: Option<u64>,
}

impl TaskRow {
    /// Returns the row of a new task without further data.
    ///
    /// A `running` task started when it was created.
    pub fn new(uuid: Uuid, status: Status, created_at: Timestamp) -> TaskRow {
        TaskRow {
            uuid,
            status,
            created_at,
            started_at: (status == Status::Running).then_some(created_at),
            ..TaskRow::default()
        }
    }
}

pub(super) fn insert(db: &Connection, row: &TaskRow) -> rusqlite::Result<bool> {
    // Only the key may clash: OR IGNORE would also pass over a broken rule.
    let sql = "INSERT INTO tasks (
                   uuid, task_source, owner, repo, task_type, task_id, status,
                   created_at, started_at, completed_at, process_id, hostname,
                   llm_provider, model, context_length, llm_call_count,
                   tool_call_count, total_tokens, compression_count, error_message, user,
                   cached_tokens, cost, title, agent, cwd, active_at)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,
                   ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27)
               ON CONFLICT (uuid) DO NOTHING";
    let values = params![
        key(row.uuid),
        row.task_source,
        row.owner,
        row.repo,
        row.task_type,
        row.task_id,
        row.status.name(),
        instant(row.created_at),
        row.started_at.map(instant),
        row.completed_at.map(instant),
        row.process_id,
        row.hostname,
        row.llm_provider,
        row.model,
        row.context_length.map(amount),
        amount(row.counters.llm_calls),
        amount(row.counters.tool_calls),
        amount(row.counters.tokens),
        amount(row.counters.compressions),
        row.error_message,
        row.user,
        amount(row.counters.cached),
        row.counters.cost as f64 / 1e6,
        row.title,
        row.agent,
        row.cwd,
        row.active_at.map(instant),
    ];
    Ok(db.prepare_cached(sql)?.execute(values)? > 0)
}

pub(super) fn get(db: &Connection, uuid: Uuid) -> rusqlite::Result<Option<TaskRow>> {
    db.prepare_cached("SELECT * FROM tasks WHERE uuid = ?1")?
        .query_row([key(uuid)], read)
        .optional()
}

pub(super) fn list(db: &Connection, filter: &Filter) -> rusqlite::Result<Vec<TaskRow>> {
    let sql = "SELECT * FROM tasks
               WHERE (?1 IS NULL OR status = ?1) AND (?2 IS NULL OR user = ?2)
               ORDER BY coalesce(active_at, created_at) DESC, created_at DESC, rowid DESC LIMIT coalesce(?3, -1)";
    let values = params![
        filter.status.map(Status::name),
        filter.user,
        filter.limit.map(amount)
    ];
    db.prepare(sql)?.query_map(values, read)?.collect()
}

/// Reads a row of `tasks`, by the names of its columns: a later version may add some.
pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<TaskRow> {
    Ok(TaskRow {
        uuid: row.get::<_, Text<Uuid>>("uuid")?.0,
        task_source: row.get("task_source")?,
        owner: row.get("owner")?,
        repo: row.get("repo")?,
        task_type: row.get("task_type")?,
        task_id: row.get("task_id")?,
        status: row.get::<_, Text<Status>>("status")?.0,
        created_at: row.get::<_, Text<Timestamp>>("created_at")?.0,
        started_at: time(row, "started_at")?,
        completed_at: time(row, "completed_at")?,
        process_id: row.get("process_id")?,
        hostname: row.get("hostname")?,
        llm_provider: row.get("llm_provider")?,
        model: row.get("model")?,
        context_length: row
            .get::<_, Option<Amount>>("context_length")?
            .map(|amount| amount.0),
        counters: Counters {
            llm_calls: row.get::<_, Amount>("llm_call_count")?.0,
            tool_calls: row.get::<_, Amount>("tool_call_count")?.0,
            tokens: row.get::<_, Amount>("total_tokens")?.0,
            compressions: row.get::<_, Amount>("compression_count")?.0,
            cached: row.get::<_, Amount>("cached_tokens")?.0,
            cost: (row.get::<_, f64>("cost")? * 1e6).round() as u64,
        },
        error_message: row.get("error_message")?,
        user: row.get("user")?,
        title: row.get("title")?,
        agent: row.get("agent")?,
        cwd: row.get("cwd")?,
        active_at: time(row, "active_at")?,
    })
}

pub(super) fn time(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<Timestamp>> {
    let time: Option<Text<Timestamp>> = row.get(column)?;
    Ok(time.map(|time| time.0))
}

/// A task as the database spells it.
pub(super) fn key(uuid: Uuid) -> String {
    uuid.to_string()
}

/// A time as the database spells it: all of one length, so that their order as texts is theirs in time.
pub(super) fn instant(time: Timestamp) -> String {
    format!("{time:.3}")
}

/// A number as the database keeps it, which ends at 2⁶³ - 1.
pub(super) fn amount(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A column whose text encodes a value.
pub(super) struct Text<T>(pub(super) T);

impl<T> FromSql for Text<T>
where
    T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
{
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Text<T>> {
        value
            .as_str()?
            .parse()
            .map(Text)
            .map_err(FromSqlError::other)
    }
}

/// A column whose number is never negative.
struct Amount(u64);

impl FromSql for Amount {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Amount> {
        let number = value.as_i64()?;
        u64::try_from(number)
            .map(Amount)
            .map_err(|_| FromSqlError::OutOfRange(number))
    }
}
