//! Tasks that wait for a worker: how they are made, set aside, resumed and cancelled.

use std::path::Path;

use infold_log::EventId;
use infold_wire::secrets;
use jiff::Timestamp;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use uuid::Uuid;

use super::activity::title;
use super::reconcile::ended_at;
use crate::event::What;
use crate::registry::{Entered, NewEntry};
use crate::{
    Contexts, DraftError, Lease, Log, LogError, Metadata, Outcome, QueueEntry, Return, Status,
    StopRequest, TaskError, TaskRow, Writer, lock,
};

/// A task that is to be queued.
#[derive(Clone, Debug, Default)]
pub struct NewTask {
    /// The metadata of the task; its id and creation time are set when it is created.
    pub metadata: Metadata,
    /// The id of the task; a new one is generated if this is `None`.
    pub uuid: Option<Uuid>,
    /// The priority; tasks with a higher one are claimed first.
    pub priority: i64,
    /// The first messages of the task.
    pub messages: Vec<Vec<u8>>,
    /// The lease of the worker that creates the task to work on it at once; `None` if the task waits for a worker.
    pub lease: Option<Lease>,
    /// Whether a person allowed its model to run commands.
    pub allows_commands: bool,
}

/// A task that was queued, now or before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enqueued {
    /// The task.
    pub task: Uuid,
    /// Whether it was created now. Otherwise a task with this id, or an unfinished one of the same source item,
    /// existed.
    pub is_new: bool,
}

impl Contexts {
    /// Makes a task that waits for a worker: it appears whole, with its first messages, or not at all.
    pub fn enqueue(&self, new: NewTask) -> Result<Enqueued, DraftError> {
        self.prepare()?;
        let mut metadata = new.metadata;
        metadata.uuid = new.uuid.unwrap_or_else(Uuid::new_v4);
        let task = metadata.uuid;
        if self.place(task).is_some() {
            return Ok(Enqueued {
                task,
                is_new: false,
            });
        }
        self.keep_names_redacted(&mut metadata)?;
        let dir = self.make_hidden_dir_of(&mut metadata, &[])?;
        let entered = self
            .fill_queued(&metadata, &dir, &new.messages, new.lease.is_none())
            .and_then(|row| {
                let row = TaskRow {
                    process_id: row.process_id.filter(|_| new.lease.is_some()),
                    hostname: row.hostname.clone().filter(|_| new.lease.is_some()),
                    ..row
                };
                let registry = self.reconciled()?;
                let entry = NewEntry {
                    priority: new.priority,
                    lease: new.lease.as_ref(),
                    allows_commands: new.allows_commands,
                };
                let entered = registry.with(|rows| {
                    rows.enqueue(&row, entry, || {
                        // A transaction that is run again finds it published.
                        if dir.exists() {
                            self.publish_dir(task, &dir)
                        } else {
                            Ok(())
                        }
                    })
                })?;
                Ok(entered?)
            });
        match entered {
            Ok(Entered::New) => Ok(Enqueued { task, is_new: true }),
            Ok(Entered::Known(task)) => {
                let _ = std::fs::remove_dir_all(&dir);
                Ok(Enqueued {
                    task,
                    is_new: false,
                })
            }
            Err(error) => {
                let _ = std::fs::remove_dir_all(&dir);
                // Another process may have made the task of this id meanwhile.
                match self.place(task) {
                    Some(_) if new.uuid.is_some() => Ok(Enqueued {
                        task,
                        is_new: false,
                    }),
                    _ => Err(error),
                }
            }
        }
    }

    /// Writes the first messages of a task that is not visible yet; returns its row.
    fn fill_queued(
        &self,
        metadata: &Metadata,
        dir: &Path,
        messages: &[Vec<u8>],
        waits: bool,
    ) -> Result<TaskRow, DraftError> {
        let (mut writer, _) = self.writer(metadata.uuid, dir)?;
        writer.append(messages)?;
        let status = if waits {
            writer.status(Status::Queued, None)?;
            Status::Queued
        } else {
            Status::Running
        };
        writer.sync()?;
        let log = writer.log();
        Ok(TaskRow {
            title: title(log),
            active_at: Some(ended_at(log)?),
            counters: self.recount(log)?,
            ..metadata.row(status)
        })
    }

    /// Sets a task aside; returns false if its worker was asked to, which it does after its step.
    pub fn pause(&self, id: Uuid, reason: &str) -> Result<bool, TaskError> {
        self.end_dead_lease(id)?;
        let reason = self.shown_reason(reason);
        let request = StopRequest::Pause {
            reason: reason.clone(),
        };
        if self.with_registry(|rows| rows.request_stop(id, &request, Timestamp::now()))? {
            return Ok(false);
        }
        let (mut writer, _) = self.write(id)?;
        writer.status(Status::Paused, Some(reason.clone()))?;
        drop(writer);
        self.opened()?.with(|rows| rows.set_paused(id, &reason))?;
        Ok(true)
    }

    /// Queues a task again that was paused, or that no worker ever claimed; returns false if a worker has it
    /// now, which then continues even if it was asked to pause.
    pub fn resume(&self, id: Uuid) -> Result<bool, TaskError> {
        self.end_dead_lease(id)?;
        let now = Timestamp::now();
        let (row, entry) =
            self.with_registry(|rows| Ok::<_, TaskError>((rows.get(id)?, rows.queue_entry(id)?)))?;
        let is_running = row.is_some_and(|row| row.status == Status::Running);
        if is_running && entry.as_ref().is_some_and(|entry| entry.is_leased(now)) {
            self.opened()?.with(|rows| rows.withdraw_pause(id))?;
            return Ok(false);
        }
        let (mut writer, _) = self.write(id)?;
        writer.status(Status::Queued, None)?;
        drop(writer);
        self.opened()?.with(|rows| rows.requeue(id))?;
        Ok(true)
    }

    /// Ends a task as failed; returns false if its worker was asked to, which it does after its step.
    pub fn cancel(&self, id: Uuid, reason: &str) -> Result<bool, TaskError> {
        self.end_dead_lease(id)?;
        let reason = self.shown_reason(reason);
        let request = StopRequest::Cancel {
            reason: reason.clone(),
        };
        if self.with_registry(|rows| rows.request_stop(id, &request, Timestamp::now()))? {
            return Ok(false);
        }
        self.finish(id, &Outcome::Failed { error: reason })?;
        Ok(true)
    }

    /// Ends the lease on a task whose process died on this machine; returns whether it did.
    ///
    /// The process that carries a task out has its lock and signed it. The system released the lock with the process,
    /// and the name is left only by one that did not close the task: that is proof. A process that died before it took
    /// the lock, or that could not sign it on a full disk, left no name; then its id tells, if no process has it now.
    pub fn end_dead_lease(&self, id: Uuid) -> Result<bool, TaskError> {
        let now = Timestamp::now();
        let (row, entry) =
            self.with_registry(|rows| Ok::<_, TaskError>((rows.get(id)?, rows.queue_entry(id)?)))?;
        let entry = entry.filter(|entry| entry.is_leased(now));
        let (Some(row), Some(lease)) = (row, entry.and_then(|entry| entry.lease)) else {
            return Ok(false);
        };
        let is_here = row.hostname.is_some_and(|host| host == lock::host());
        let dir = self
            .place(id)
            .filter(|_| is_here && row.status == Status::Running);
        let (Some(dir), Some(pid)) = (dir, row.process_id) else {
            return Ok(false);
        };
        let left = lock::left_by(&dir);
        let is_left = left.is_some_and(|left| left.pid == pid && left.host == lock::host());
        if !is_left && (lock::is_held(&dir) || !is_gone(pid)) {
            return Ok(false);
        }
        self.opened()?
            .with(|rows| rows.end_lease(id, &lease.owner, now))
    }

    /// Gives a task back whose writer is `writer`; returns whether the lease was the owner's.
    ///
    /// A pause is in the log first, and then in the registry.
    pub fn give_back(
        &self,
        id: Uuid,
        mut writer: Writer,
        owner: &str,
        how: Return,
    ) -> Result<bool, TaskError> {
        let how = match how {
            Return::Paused { reason } => {
                let reason = self.shown_reason(&reason);
                writer.status(Status::Paused, Some(reason.clone()))?;
                Return::Paused { reason }
            }
            Return::Retry { not_before, error } => Return::Retry {
                not_before,
                error: self.shown_reason(&error),
            },
            Return::Deferred { not_before, error } => Return::Deferred {
                not_before,
                error: self.shown_reason(&error),
            },
            Return::Queued => Return::Queued,
        };
        writer.sync()?;
        drop(writer);
        self.opened()?.with(|rows| rows.give_back(id, owner, &how))
    }

    /// Returns a reason as it is stored: without secrets, if those are redacted.
    fn shown_reason(&self, reason: &str) -> String {
        let redacted = self.redacts.then(|| secrets::text_without_secrets(reason));
        redacted.flatten().unwrap_or_else(|| reason.to_owned())
    }
}

/// Returns whether no process of this machine has this id.
fn is_gone(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.map(test_kill_process) == Some(Err(Errno::SRCH))
}

impl QueueEntry {
    /// Returns whether a worker has a lease of the task at this time.
    pub fn is_leased(&self, now: Timestamp) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.until > now)
    }
}

impl Writer {
    /// Records that the task waits, is paused or continues, and why. [`Contexts::finish`] ends one.
    pub fn status(&mut self, status: Status, reason: Option<String>) -> Result<EventId, LogError> {
        self.step(What::Status {
            status,
            error: reason,
            is_idle: false,
        })
    }
}

/// Returns the status that a log recorded last, and why; none if it never did.
pub fn recorded_status(log: &Log) -> Result<Option<(Status, Option<String>)>, LogError> {
    let events = log.own().event..=log.state().at().event;
    for id in events.rev().filter_map(EventId::new) {
        if let What::Status { status, error, .. } = log.event(id)?.what {
            return Ok(Some((status, error)));
        }
    }
    Ok(None)
}
