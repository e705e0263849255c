//! `infold task pause|resume|cancel|stats`: control tasks of the queue, and print figures of all tasks.
//!
//! A task that a worker is carrying out cannot be changed from here: `pause` and `cancel` ask the worker to stop after its
//! current step, and `resume` withdraws a pause that was asked for. In these cases `is_done` is false.

use infold::{Config, show};
use infold_store::{Contexts, TaskRow};
use infold_work::RunEnd;
use serde_json::json;

use super::{short_id, title};
use crate::error::{CliError, CliResult};
use crate::output::{DIM, Output, count, note, number, one_line, paint};
use crate::source_report::report_end;
use crate::steps::short;
use crate::task_lock::acquire;

/// `infold task pause`: takes a task out of the queue until it is resumed.
pub fn pause(contexts: &Contexts, task: &str, reason: &str, out: &mut Output) -> CliResult {
    let id = contexts.resolve(task)?;
    let paused = acquire(|| contexts.pause(id, reason));
    let is_done = paused.map_err(|error| CliError::from(error).about(&short(task)))?;
    let object = json!({"uuid": id.to_string(), "paused": is_done});
    let text = if is_done {
        format!(
            "task {id} paused (resume: infold task resume {})",
            short(&id.to_string())
        )
    } else {
        format!("task {id} is paused after the step that is under way")
    };
    out.result(&object, text)
}

/// `infold task resume`: queues a paused task again.
pub fn resume(contexts: &Contexts, task: &str, out: &mut Output) -> CliResult {
    let id = contexts.resolve(task)?;
    let resumed = acquire(|| contexts.resume(id));
    let is_done = resumed.map_err(|error| CliError::from(error).about(&short(task)))?;
    let object = json!({"uuid": id.to_string(), "queued": is_done});
    let text = if is_done {
        format!("task {id} queued; `infold work` carries it out")
    } else {
        format!("task {id} is being carried out")
    };
    out.result(&object, text)
}

/// `infold task cancel`: marks a task failed, and reports that to the issue it came from, if it came from one.
pub fn cancel(
    contexts: &Contexts,
    config: &Config,
    task: &str,
    reason: &str,
    out: &mut Output,
) -> CliResult {
    let id = contexts.resolve(task)?;
    let cancelled = acquire(|| contexts.cancel(id, reason));
    let is_done = cancelled.map_err(|error| CliError::from(error).about(&short(task)))?;
    // Otherwise the worker reports the end when it stops.
    if is_done {
        let error = reason.to_owned();
        report_end(
            contexts,
            config,
            id,
            &RunEnd::Failed { error },
            out.is_json(),
        );
    }
    let object = json!({"uuid": id.to_string(), "cancelled": is_done});
    let text = if is_done {
        format!("task {id} cancelled; it stays readable")
    } else {
        format!("task {id} is cancelled after the step that is under way")
    };
    out.result(&object, text)
}

/// `infold task stats`: prints numbers of tasks and tokens, the running tasks and the last failures.
pub fn stats(contexts: &Contexts, out: &mut Output) -> CliResult {
    let stats = contexts.with_registry(|rows| rows.stats())?;
    if out.is_json() {
        let rows = |rows: &[TaskRow]| rows.iter().map(show::row).collect::<Vec<_>>();
        let by_status = stats.by_status.iter();
        let by_status = by_status.map(|(status, count)| (status.to_string(), json!(count)));
        let by_user = stats.by_user.iter();
        let by_user = by_user.map(|(user, count)| json!({"user": user, "count": count}));
        return out.object(&json!({
            "running": rows(&stats.running),
            "by_status": by_status.collect::<serde_json::Map<_, _>>(),
            "by_user": by_user.collect::<Vec<_>>(),
            "failures": rows(&stats.failures),
            "average_minutes": stats.average_minutes,
            "total_tokens": stats.total_tokens,
            "average_tokens": stats.average_tokens,
        }));
    }
    if stats.by_status.is_empty() {
        note(false, "no tasks");
        return Ok(());
    }
    let heading = |text: &str, out: &mut Output| out.line(paint(DIM, text));
    heading("by status", out)?;
    for (status, tasks) in &stats.by_status {
        out.line(format!("  {status:<10} {}", number(*tasks)))?;
    }
    heading("by user", out)?;
    for (user, tasks) in &stats.by_user {
        let user = one_line(user.as_deref().unwrap_or("–"));
        out.line(format!("  {user:<10} {}", number(*tasks)))?;
    }
    if !stats.running.is_empty() {
        heading("running", out)?;
    }
    for row in &stats.running {
        let process = row.process_id.zip(row.hostname.as_deref());
        let process = process.map(|(pid, host)| format!("process {pid} on {host}, "));
        let (id, process) = (short_id(row), process.unwrap_or_default());
        out.line(format!("  {id}  {process}{}", title(row)))?;
    }
    if !stats.failures.is_empty() {
        heading("last failures", out)?;
    }
    for row in &stats.failures {
        let at = row
            .completed_at
            .map(|at| at.strftime("%Y-%m-%d %H:%M").to_string());
        let (id, at) = (short_id(row), at.unwrap_or_default());
        out.line(format!("  {id}  {at}  {}", title(row)))?;
    }
    heading("completed tasks took, on average", out)?;
    let minutes = stats
        .average_minutes
        .map(|minutes| format!("{minutes:.1} minutes"));
    out.line(format!("  {}", minutes.as_deref().unwrap_or("–")))?;
    heading("tokens", out)?;
    let average = stats.average_tokens.unwrap_or_default().round() as u64;
    out.line(format!(
        "  {} in all, {} a task",
        count(stats.total_tokens, "token"),
        number(average)
    ))
}
