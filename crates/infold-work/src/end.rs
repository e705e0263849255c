//! The end of a run, and its effect on the task.

use std::time::Duration;

use infold::config::WorkConfig;
use infold_store::{Contexts, Outcome, Return, TaskError, Writer};
use jiff::Timestamp;
use uuid::Uuid;

use crate::lease::after;
use crate::round::Finish;
use crate::{LeaseKeeper, RunError};

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The task is done.
    Completed {
        /// The model's summary of its work.
        summary: String,
    },
    /// The task failed.
    Failed {
        /// Why.
        error: String,
    },
    /// The task is paused until a user resumes it.
    Paused {
        /// Why.
        reason: String,
    },
    /// The process was asked to end.
    Stopped,
    /// The attempt failed, and another one follows.
    Retried {
        /// Why.
        error: String,
        /// The time until the next attempt.
        wait: Duration,
    },
    /// Another worker has the task now.
    LeaseLost,
}

/// Whether a user waits for the end of the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndMode {
    /// Interactive: an interrupted task is paused.
    Foreground,
    /// Unattended: an interrupted task is queued again.
    Worker {
        /// How often the task was claimed since it last made progress.
        attempts: u32,
    },
}

impl RunEnd {
    pub(crate) fn of(finish: Finish) -> RunEnd {
        let Finish { summary, failed } = finish;
        if failed {
            RunEnd::Failed { error: summary }
        } else {
            RunEnd::Completed { summary }
        }
    }

    /// Returns the end of a run that stopped with an error.
    pub fn after_error(error: &RunError, mode: EndMode, config: &WorkConfig) -> RunEnd {
        let text = error.to_string();
        match mode {
            EndMode::Foreground => RunEnd::Paused { reason: text },
            EndMode::Worker { .. } if !error.is_transient() => RunEnd::Failed { error: text },
            EndMode::Worker { attempts } => RunEnd::failed_attempt(text, attempts, config),
        }
    }

    /// Returns the end of a failed attempt: another one, unless there were too many without progress.
    pub fn failed_attempt(error: String, attempts: u32, config: &WorkConfig) -> RunEnd {
        if attempts >= config.max_attempts() {
            let error = format!("{error} (attempt {attempts}, none went on)");
            return RunEnd::Failed { error };
        }
        let wait = config.retry_wait(attempts);
        RunEnd::Retried { error, wait }
    }

    /// Carries out the end of an attempt that has no writer, because it never opened the task or its process died. Does
    /// nothing if `owner` no longer has the lease of the task.
    pub fn conclude_unopened(
        &self,
        contexts: &Contexts,
        task: Uuid,
        owner: &str,
    ) -> Result<(), TaskError> {
        let back = match self {
            RunEnd::Retried { error, wait } => Return::Retry {
                not_before: after(Timestamp::now(), *wait),
                error: error.clone(),
            },
            RunEnd::Paused { reason } => Return::Paused {
                reason: reason.clone(),
            },
            RunEnd::Failed { error } => {
                let entry = contexts.with_registry(|rows| rows.queue_entry(task))?;
                let lease = entry.and_then(|entry| entry.lease);
                if lease.is_some_and(|lease| lease.owner == owner) {
                    let error = error.clone();
                    contexts.finish(task, &Outcome::Failed { error })?;
                }
                return Ok(());
            }
            RunEnd::Completed { .. } | RunEnd::Stopped | RunEnd::LeaseLost => return Ok(()),
        };
        contexts.with_registry(|rows| rows.give_back(task, owner, &back))?;
        Ok(())
    }

    /// Carries out the end: records it in the log and the registry, and moves the directory of a task that has ended.
    pub fn conclude(
        &self,
        contexts: &Contexts,
        task: Uuid,
        writer: Writer,
        lease: &LeaseKeeper,
        mode: EndMode,
    ) -> Result<(), TaskError> {
        let how = match self {
            RunEnd::LeaseLost => return Ok(()),
            RunEnd::Completed { .. } => {
                drop(writer);
                return contexts.finish(task, &Outcome::Completed).map(drop);
            }
            RunEnd::Failed { error } => {
                drop(writer);
                let error = error.clone();
                return contexts.finish(task, &Outcome::Failed { error }).map(drop);
            }
            RunEnd::Paused { reason } => Return::Paused {
                reason: reason.clone(),
            },
            RunEnd::Stopped => match mode {
                EndMode::Foreground => Return::Paused {
                    reason: "interrupted".to_owned(),
                },
                EndMode::Worker { .. } => Return::Queued,
            },
            RunEnd::Retried { error, wait } => Return::Retry {
                not_before: after(Timestamp::now(), *wait),
                error: error.clone(),
            },
        };
        contexts
            .give_back(task, writer, lease.owner(), how)
            .map(drop)
    }
}
