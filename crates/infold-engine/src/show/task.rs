//! A task with its row of the registry and its sizes.

use infold_log::View;
use infold_store::{Contexts, Log, TaskError, TaskRow};
use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

/// Returns the row of a task in the registry, for scripts.
pub fn row(row: &TaskRow) -> Value {
    let time = |at: Option<Timestamp>| at.map(|at| format!("{at:.3}"));
    json!({
        "uuid": row.uuid.to_string(), "status": row.status.to_string(),
        "task_source": row.task_source, "owner": row.owner, "repo": row.repo,
        "task_type": row.task_type, "task_id": row.task_id, "user": row.user,
        "created_at": time(Some(row.created_at)), "started_at": time(row.started_at), "completed_at": time(row.completed_at),
        "process_id": row.process_id, "hostname": row.hostname,
        "llm_provider": row.llm_provider, "model": row.model, "context_length": row.context_length,
        "llm_call_count": row.counters.llm_calls, "tool_call_count": row.counters.tool_calls,
        "total_tokens": row.counters.tokens, "compression_count": row.counters.compressions,
        "cached_tokens": row.counters.cached, "cost": row.counters.cost as f64 / 1e6,
        "error_message": row.error_message,
        "title": row.title, "agent": row.agent, "cwd": row.cwd, "active_at": time(row.active_at.or(Some(row.created_at))),
    })
}

/// A task with its row, its log and its sizes.
#[derive(Debug)]
pub struct TaskReport {
    /// The row of the registry.
    pub row: TaskRow,
    /// The log.
    pub log: Log,
    /// The tokens of its view.
    pub view_tokens: u64,
    /// The task's size on disk.
    pub bytes: u64,
}

impl TaskReport {
    /// Reads a task; none if the registry has no row for it.
    pub fn of(contexts: &Contexts, id: Uuid) -> Result<Option<TaskReport>, TaskError> {
        let log = contexts.read(id)?;
        let Some(row) = contexts.row(id)? else {
            return Ok(None);
        };
        let view_tokens = View::of(log.state().shown(), &log)?.tokens();
        let bytes = infold_store::size(log.dir())?;
        Ok(Some(TaskReport {
            row,
            log,
            view_tokens,
            bytes,
        }))
    }

    /// Returns the task for scripts.
    pub fn json(&self) -> Value {
        let at = self.log.state().at();
        let mut object = row(&self.row);
        object["messages"] = at.seq.into();
        object["events"] = at.event.into();
        object["view_tokens"] = self.view_tokens.into();
        object["bytes"] = self.bytes.into();
        object["directory"] = self.log.dir().display().to_string().into();
        let parent = self.log.parent();
        object["parent"] = parent
            .map(|(parent, at)| json!({"task": parent, "seq": at.seq, "event": at.event}))
            .into();
        object
    }
}
