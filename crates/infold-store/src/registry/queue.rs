//! The queue of the registry: which tasks wait for a worker, and who works on them until when.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use uuid::Uuid;

use super::row::{self, Text, instant, key, time};
use super::{Registry, RegistryError, Status, TaskRow};

/// A task in the queue, as the table `queue` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueEntry {
    /// The task.
    pub uuid: Uuid,
    /// Tasks with a higher priority come first.
    pub priority: i64,
    /// How often it was claimed since it last made progress.
    pub attempts: u32,
    /// It is not claimed before this time.
    pub not_before: Option<Timestamp>,
    /// The lease of the worker that works on it; an expired lease has no effect.
    pub lease: Option<Lease>,
    /// A request to its worker, which the worker obeys before its next step.
    pub stop: Option<StopRequest>,
    /// Whether a person allowed its model to run commands.
    pub allows_commands: bool,
}

/// How a new task enters the queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NewEntry<'a> {
    /// Tasks with a higher priority come first.
    pub priority: i64,
    /// The lease of the worker that creates the task to work on it at once; `None` if the task waits for a worker.
    pub lease: Option<&'a Lease>,
    /// Whether a person allowed its model to run commands.
    pub allows_commands: bool,
}

/// The right to work on a task until a time, which a heartbeat moves on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// A name that no other worker has.
    pub owner: String,
    /// When it expires.
    pub until: Timestamp,
}

/// A request to the worker of a task, for its next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopRequest {
    /// Pause the task; it can be resumed later.
    Pause {
        /// Why, for a person to read.
        reason: String,
    },
    /// End it as failed.
    Cancel {
        /// Why, for a person to read.
        reason: String,
    },
}

/// A worker's request for a task.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// The lease that the claimer gets.
    pub lease: Lease,
    /// The process of the claimer.
    pub process_id: u32,
    /// Its machine.
    pub hostname: String,
    /// The time.
    pub now: Timestamp,
    /// How many tasks of one user may be under way at a time.
    pub per_user: Option<u64>,
    /// Only this task, also if it is paused or was never queued.
    pub task: Option<Uuid>,
}

/// How a worker gives a task back that is not finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Return {
    /// Its worker was asked to stop: another worker continues, and the attempt does not count.
    Queued,
    /// It failed for now: another try is made not before this time.
    Retry {
        /// The earliest time.
        not_before: Timestamp,
        /// Why it failed.
        error: String,
    },
    /// Another process uses it for now. This counts as no attempt; the next one is not made before `not_before`.
    Deferred {
        /// The earliest time.
        not_before: Timestamp,
        /// Why it was deferred.
        error: String,
    },
    /// It is paused until a user resumes it.
    Paused {
        /// Why.
        reason: String,
    },
}

/// The result of adding a task to the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entered {
    New,
    /// The task of this id is the same.
    Known(Uuid),
}

/// A task that can be claimed: it waits, or its worker's lease has expired.
const CLAIMABLE: &str = "
    (t.status = 'queued' OR t.status = 'running' AND q.lease_until <= ?1)
    AND (q.not_before IS NULL OR q.not_before <= ?1)
    AND (?2 IS NULL OR ?2 > (
        SELECT count(*) FROM queue AS r JOIN tasks AS u ON u.uuid = r.uuid
        WHERE u.status = 'running' AND u.user IS t.user AND r.lease_until > ?1))";

impl Registry {
    /// Adds a new task to the queue, or to the tasks that are under way if it comes with a lease; `publish` makes it
    /// visible.
    ///
    /// A task with this id, or an unfinished one for the same item of the same source (issue, merge request …), is not
    /// added again.
    pub(crate) fn enqueue<E>(
        &self,
        row: &TaskRow,
        entry: NewEntry<'_>,
        publish: impl Fn() -> Result<(), E>,
    ) -> Result<Result<Entered, E>, RegistryError> {
        // The entry is stored before the directory becomes visible: a crash after that must not lose that commands are
        // allowed, which stands here alone. An entry without a row has no effect.
        let known = self.write(|db| {
            let known = same_task(db, row)?;
            if known.is_none() {
                add_entry(db, row.uuid, entry)?;
            }
            Ok(known)
        })?;
        if let Some(known) = known {
            return Ok(Ok(Entered::Known(known)));
        }
        let entered = self.run(|db| {
            let whole = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
            if let Some(known) = same_task(&whole, row)? {
                return Ok(Ok(Entered::Known(known)));
            }
            row::insert(&whole, row)?;
            // Another process may have stored an entry of the same id meanwhile.
            add_entry(&whole, row.uuid, entry)?;
            if let Err(error) = publish() {
                // Dropping the transaction takes the row back.
                return Ok(Err(error));
            }
            whole.commit()?;
            Ok(Ok(Entered::New))
        });
        if !matches!(entered, Ok(Ok(Entered::New))) {
            // The first error is the one to report.
            let _ = self.write(|db| remove_orphan(db, row.uuid));
        }
        entered
    }

    /// Queues a task that is known already; returns whether there is such a task.
    pub(crate) fn requeue(&self, uuid: Uuid) -> Result<bool, RegistryError> {
        self.write(|db| {
            let sql = "INSERT INTO queue (uuid) VALUES (?1) ON CONFLICT (uuid) DO UPDATE SET
                       attempts = 0, not_before = NULL, lease_owner = NULL, lease_until = NULL,
                       stop = NULL, stop_reason = NULL";
            db.execute(sql, [key(uuid)])?;
            let sql =
                "UPDATE tasks SET status = 'queued', completed_at = NULL, error_message = NULL
                       WHERE uuid = ?1";
            Ok(db.execute(sql, [key(uuid)])? > 0)
        })
    }

    /// Gives a task to a worker: the oldest one of the highest priority. `None` if no task can be claimed.
    pub fn claim(&self, request: &ClaimRequest) -> Result<Option<QueueEntry>, RegistryError> {
        self.write(|db| {
            let found = match request.task {
                Some(task) => claimable_task(db, task, request)?,
                None => next_task(db, request)?,
            };
            let Some(uuid) = found else { return Ok(None) };
            let sql = "INSERT INTO queue (uuid, attempts, lease_owner, lease_until)
                       VALUES (?1, 1, ?2, ?3) ON CONFLICT (uuid) DO UPDATE SET
                       attempts = attempts + 1, not_before = NULL,
                       lease_owner = excluded.lease_owner, lease_until = excluded.lease_until";
            let until = instant(request.lease.until);
            db.execute(sql, params![key(uuid), request.lease.owner, until])?;
            let sql = "UPDATE tasks SET status = 'running', started_at = coalesce(started_at, ?2),
                       process_id = ?3, hostname = ?4, completed_at = NULL, error_message = NULL
                       WHERE uuid = ?1";
            let now = instant(request.now);
            db.execute(
                sql,
                params![key(uuid), now, request.process_id, request.hostname],
            )?;
            entry(db, uuid)
        })
    }

    /// Returns how many tasks could be claimed now.
    pub fn claimable(&self, now: Timestamp, per_user: Option<u64>) -> Result<u64, RegistryError> {
        let sql = format!(
            "SELECT count(*) FROM queue AS q JOIN tasks AS t ON t.uuid = q.uuid WHERE {CLAIMABLE}"
        );
        let values = params![instant(now), per_user.map(row::amount)];
        self.run(|db| {
            let count: i64 = db.query_row(&sql, values, |row| row.get(0))?;
            Ok(count.unsigned_abs())
        })
    }

    /// Returns how many tasks wait or are under way.
    pub fn queued_or_running(&self) -> Result<u64, RegistryError> {
        let sql = "SELECT count(*) FROM queue AS q JOIN tasks AS t ON t.uuid = q.uuid
                   WHERE t.status IN ('queued', 'running')";
        self.run(|db| {
            let count: i64 = db.query_row(sql, [], |row| row.get(0))?;
            Ok(count.unsigned_abs())
        })
    }

    /// Records that the process with this id works on a task now.
    pub fn set_process(&self, uuid: Uuid, process_id: u32) -> Result<(), RegistryError> {
        let sql = "UPDATE tasks SET process_id = ?2 WHERE uuid = ?1";
        self.run(|db| db.execute(sql, params![key(uuid), process_id]).map(drop))
    }

    /// Moves the end of a lease; returns the entry, or none if the lease is no longer the owner's.
    pub fn renew_lease(
        &self,
        uuid: Uuid,
        lease: &Lease,
    ) -> Result<Option<QueueEntry>, RegistryError> {
        let sql = "UPDATE queue SET lease_until = ?3 WHERE uuid = ?1 AND lease_owner = ?2";
        let values = params![key(uuid), lease.owner, instant(lease.until)];
        self.write(|db| match db.execute(sql, values)? {
            0 => Ok(None),
            _ => entry(db, uuid),
        })
    }

    /// Records progress of a task: the count of attempts starts again.
    pub fn reset_attempts(&self, uuid: Uuid, owner: &str) -> Result<(), RegistryError> {
        let sql = "UPDATE queue SET attempts = 0
                   WHERE uuid = ?1 AND lease_owner = ?2 AND attempts > 0";
        self.run(|db| db.execute(sql, [&key(uuid), owner]).map(drop))
    }

    /// Gives a task back; returns whether the lease was the owner's.
    pub fn give_back(&self, uuid: Uuid, owner: &str, how: &Return) -> Result<bool, RegistryError> {
        let (status, less, not_before, error) = match how {
            Return::Queued => (Status::Queued, 1, None, None),
            Return::Retry { not_before, error } => {
                (Status::Queued, 0, Some(instant(*not_before)), Some(error))
            }
            Return::Deferred { not_before, error } => {
                (Status::Queued, 1, Some(instant(*not_before)), Some(error))
            }
            Return::Paused { reason } => (Status::Paused, 0, None, Some(reason)),
        };
        let sql = "UPDATE queue SET lease_owner = NULL, lease_until = NULL, not_before = ?3,
                   attempts = max(attempts - ?4, 0),
                   stop = CASE WHEN ?5 THEN NULL ELSE stop END,
                   stop_reason = CASE WHEN ?5 THEN NULL ELSE stop_reason END
                   WHERE uuid = ?1 AND lease_owner = ?2";
        let is_paused = status == Status::Paused;
        self.write(|db| {
            let values = params![key(uuid), owner, not_before, less, is_paused];
            if db.execute(sql, values)? == 0 {
                return Ok(false);
            }
            let sql = "UPDATE tasks SET status = ?2, error_message = ?3
                       WHERE uuid = ?1 AND status = 'running'";
            db.execute(sql, params![key(uuid), status.name(), error])?;
            Ok(true)
        })
    }

    /// Asks the worker of a task to stop; returns whether one has a lease on it.
    pub fn request_stop(
        &self,
        uuid: Uuid,
        request: &StopRequest,
        now: Timestamp,
    ) -> Result<bool, RegistryError> {
        let (name, reason) = match request {
            StopRequest::Pause { reason } => ("pause", reason),
            StopRequest::Cancel { reason } => ("cancel", reason),
        };
        let sql = "UPDATE queue SET stop = ?2, stop_reason = ?3
                   WHERE uuid = ?1 AND lease_until > ?4
                   AND EXISTS (SELECT 1 FROM tasks AS t WHERE t.uuid = ?1 AND t.status = 'running')";
        let values = params![key(uuid), name, reason, instant(now)];
        self.run(|db| Ok(db.execute(sql, values)? > 0))
    }

    /// Withdraws the request to pause a task; returns whether there was one.
    pub(crate) fn withdraw_pause(&self, uuid: Uuid) -> Result<bool, RegistryError> {
        let sql = "UPDATE queue SET stop = NULL, stop_reason = NULL
                   WHERE uuid = ?1 AND stop = 'pause'";
        self.run(|db| Ok(db.execute(sql, [key(uuid)])? > 0))
    }

    /// Ends the lease of an owner that is gone; returns whether it was still the owner's. The lease then has expired, so
    /// that any worker may claim the task.
    pub(crate) fn end_lease(
        &self,
        uuid: Uuid,
        owner: &str,
        now: Timestamp,
    ) -> Result<bool, RegistryError> {
        let sql = "UPDATE queue SET lease_until = ?3 WHERE uuid = ?1 AND lease_owner = ?2";
        let values = params![key(uuid), owner, instant(now)];
        self.run(|db| Ok(db.execute(sql, values)? > 0))
    }

    /// Records that a person allows the model of a task to run commands.
    pub fn allow_commands(&self, uuid: Uuid) -> Result<(), RegistryError> {
        let sql = "UPDATE queue SET commands = 1 WHERE uuid = ?1";
        self.run(|db| db.execute(sql, [key(uuid)]).map(drop))
    }

    /// Pauses a task that has no worker; returns whether there is such a task.
    pub(crate) fn set_paused(&self, uuid: Uuid, reason: &str) -> Result<bool, RegistryError> {
        self.write(|db| {
            let sql = "UPDATE queue SET lease_owner = NULL, lease_until = NULL, stop = NULL,
                       stop_reason = NULL WHERE uuid = ?1";
            db.execute(sql, [key(uuid)])?;
            let sql = "UPDATE tasks SET status = 'paused', error_message = ?2 WHERE uuid = ?1";
            Ok(db.execute(sql, [&key(uuid), reason])? > 0)
        })
    }

    /// Returns the entry of a task, if it is in the queue.
    pub fn queue_entry(&self, uuid: Uuid) -> Result<Option<QueueEntry>, RegistryError> {
        self.run(|db| entry(db, uuid))
    }
}

/// Removes a task from the queue.
pub(super) fn remove(db: &Connection, uuid: Uuid) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM queue WHERE uuid = ?1")?
        .execute([key(uuid)])
        .map(drop)
}

/// Stores the entry of a new task. One that a crash left must not decide about it.
fn add_entry(db: &Connection, uuid: Uuid, entry: NewEntry<'_>) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO queue (uuid, priority, lease_owner, lease_until, commands)
               VALUES (?1, ?2, ?3, ?4, ?5)";
    let owner = entry.lease.map(|lease| &lease.owner);
    let until = entry.lease.map(|lease| instant(lease.until));
    let values = params![
        key(uuid),
        entry.priority,
        owner,
        until,
        entry.allows_commands
    ];
    db.execute(sql, values).map(drop)
}

/// Removes the entry of a task that was not made.
fn remove_orphan(db: &Connection, uuid: Uuid) -> rusqlite::Result<()> {
    let sql = "DELETE FROM queue
               WHERE uuid = ?1 AND NOT EXISTS (SELECT 1 FROM tasks WHERE uuid = ?1)";
    db.execute(sql, [key(uuid)]).map(drop)
}

/// Finds the task with the same id, or the unfinished one for the same item of the same source.
fn same_task(db: &Connection, row: &TaskRow) -> rusqlite::Result<Option<Uuid>> {
    let sql = "SELECT uuid FROM tasks WHERE uuid = ?1
               OR ?2 IS NOT NULL AND ?6 IS NOT NULL AND task_source = ?2 AND owner IS ?3
               AND repo IS ?4 AND task_type IS ?5 AND task_id = ?6
               AND status IN ('queued', 'running', 'paused')
               ORDER BY uuid = ?1 DESC LIMIT 1";
    let values = params![
        key(row.uuid),
        row.task_source,
        row.owner,
        row.repo,
        row.task_type,
        row.task_id
    ];
    let found = db.query_row(sql, values, |row| row.get::<_, Text<Uuid>>(0));
    Ok(found.optional()?.map(|uuid| uuid.0))
}

fn next_task(db: &Connection, request: &ClaimRequest) -> rusqlite::Result<Option<Uuid>> {
    let sql = format!(
        "SELECT q.uuid FROM queue AS q JOIN tasks AS t ON t.uuid = q.uuid WHERE {CLAIMABLE}
         ORDER BY q.priority DESC, t.created_at, t.rowid LIMIT 1"
    );
    let values = params![instant(request.now), request.per_user.map(row::amount)];
    let found = db.query_row(&sql, values, |row| row.get::<_, Text<Uuid>>(0));
    Ok(found.optional()?.map(|uuid| uuid.0))
}

/// Returns a task that was asked for by its id, unless another worker has it or it has ended.
fn claimable_task(
    db: &Connection,
    task: Uuid,
    request: &ClaimRequest,
) -> rusqlite::Result<Option<Uuid>> {
    let sql = "SELECT EXISTS (SELECT 1 FROM tasks AS t LEFT JOIN queue AS q ON q.uuid = t.uuid
               WHERE t.uuid = ?1 AND t.status IN ('queued', 'running', 'paused')
               AND NOT (t.status = 'running' AND coalesce(q.lease_until > ?2, 0)))";
    let values = params![key(task), instant(request.now)];
    let is_free: bool = db.query_row(sql, values, |row| row.get(0))?;
    Ok(is_free.then_some(task))
}

fn entry(db: &Connection, uuid: Uuid) -> rusqlite::Result<Option<QueueEntry>> {
    db.prepare_cached("SELECT * FROM queue WHERE uuid = ?1")?
        .query_row([key(uuid)], read)
        .optional()
}

fn read(row: &Row<'_>) -> rusqlite::Result<QueueEntry> {
    let owner: Option<String> = row.get("lease_owner")?;
    let lease = owner.zip(time(row, "lease_until")?);
    let reason: Option<String> = row.get("stop_reason")?;
    let reason = reason.unwrap_or_default();
    let stop: Option<String> = row.get("stop")?;
    Ok(QueueEntry {
        uuid: row.get::<_, Text<Uuid>>("uuid")?.0,
        priority: row.get("priority")?,
        attempts: row.get("attempts")?,
        not_before: time(row, "not_before")?,
        lease: lease.map(|(owner, until)| Lease { owner, until }),
        stop: match stop.as_deref() {
            Some("pause") => Some(StopRequest::Pause { reason }),
            Some("cancel") => Some(StopRequest::Cancel { reason }),
            _ => None,
        },
        allows_commands: row.get("commands")?,
    })
}

#[cfg(test)]
mod tests;
