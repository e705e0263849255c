//! Makes registry and directories agree with the logs of tasks, where a crash interrupted a change of all three.
//!
//! The log is written first, and so decides: a task has ended if its log says so.

use std::fs;

use jiff::Timestamp;
use uuid::Uuid;

use super::PLACES;
use crate::file;
use crate::{
    Contexts, Log, LogError, Metadata, Outcome, Registry, Status, TaskError, Writer, end_of, lock,
    recorded_status,
};

impl Contexts {
    /// Completes the end of a task, which its log records already. If that fails, it is done when the registry or the
    /// task is opened the next time.
    pub(super) fn settle_end(&self, id: Uuid, writer: Writer, end: &Outcome) {
        if let Err(error) = self.register_and_move(id, writer, end) {
            let status = end.status();
            self.tell(&format!(
                "task {id} is marked {status} in its log; the registry and its directory follow by themselves as soon as that can be done ({})",
                with_sources(&error)
            ));
        }
    }

    /// Marks a task as ended in the registry, and moves its directory to those of ended tasks.
    fn register_and_move(
        &self,
        id: Uuid,
        mut writer: Writer,
        end: &Outcome,
    ) -> Result<(), TaskError> {
        if let Err(error) = self.register_end(id, &writer, end) {
            // A lock that looks like that of a crashed writer makes the next `reconcile` complete the end.
            writer.abandon();
            return Err(error);
        }
        writer.close()?;
        let from = self.root.join(PLACES[0]).join(id.to_string());
        let to = self.root.join(PLACES[1]).join(id.to_string());
        fs::rename(&from, &to).map_err(|error| LogError::io(&from, "moved", error))?;
        for place in PLACES.iter().filter(|_| self.is_lasting()) {
            file::sync_dir(&self.root.join(place))?;
        }
        Ok(())
    }

    /// Writes the registry's row of a task that ended.
    fn register_end(&self, id: Uuid, writer: &Writer, end: &Outcome) -> Result<(), TaskError> {
        let row = Metadata::read(writer.log().dir())?.row(Status::Running);
        let (counted, at) = (self.recount(writer.log())?, ended_at(writer.log())?);
        self.opened()?.with(|rows| {
            rows.insert(&row)?;
            rows.set_counters(id, counted)?;
            rows.finish(id, end, at).map(drop)
        })
    }

    /// Corrects the registry: adds missing rows, and completes ends of tasks.
    ///
    /// A task that cannot be read is skipped and left for `verify` to report.
    pub(super) fn reconcile(&self, registry: &Registry) -> Result<(), TaskError> {
        let running = self.tasks_in(PLACES[0])?;
        let open: std::collections::BTreeSet<Uuid> = registry.unfinished()?.into_iter().collect();
        for id in &running {
            // A task that the registry knows needs no correction, unless its last writer crashed.
            let dir = self.root.join(PLACES[0]).join(id.to_string());
            if open.contains(id) && !lock::is_left(&dir) {
                continue;
            }
            let corrected = match registry.get(*id)? {
                None => self.enter(*id, registry),
                Some(row) => self.correct_running(*id, row.status, registry),
            };
            ignore_unreadable(corrected)?;
        }
        for id in open.iter().filter(|id| !running.contains(id)) {
            if self.root.join(PLACES[1]).join(id.to_string()).is_dir() {
                ignore_unreadable(self.enter(*id, registry))?;
            }
        }
        Ok(())
    }

    /// Corrects the row of a task in the directory of running tasks: completes its end if its log says that it ended,
    /// and marks it running if only the registry says that it ended.
    fn correct_running(
        &self,
        id: Uuid,
        status: Status,
        registry: &Registry,
    ) -> Result<(), TaskError> {
        let log = self.read(id)?;
        let ended = end_of(&log)?.is_some();
        if !ended && !status.is_end() {
            // Its last writer may not have updated the counters. The next writer repairs the rest, and
            // reports it.
            registry.set_counters(id, self.recount(&log)?)?;
            return Ok(());
        }
        // Opening a task for writing completes its end, if its log records one.
        match self.write(id) {
            Ok(_) => {
                registry.set_status(id, Status::Running, Timestamp::now())?;
                Ok(())
            }
            // A process that is moving it holds its lock; then there is nothing to do here.
            Err(TaskError::Ended { .. } | TaskError::Open { .. } | TaskError::Unknown { .. }) => {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Moves a task whose log says that it ended to the directory of ended tasks, if it is not there yet.
    pub(crate) fn complete_end(&self, id: Uuid) -> Result<(), TaskError> {
        if !self.root.join(PLACES[0]).join(id.to_string()).is_dir() {
            return Ok(());
        }
        match self.write(id) {
            Err(TaskError::Ended { .. }) => Ok(()),
            opened => opened.map(drop),
        }
    }

    /// Adds a task to the registry, or corrects its row, from its log.
    pub(crate) fn enter(&self, id: Uuid, registry: &Registry) -> Result<(), TaskError> {
        let log = self.read(id)?;
        // The reference to the parent is written before the row: a registered task always protects its parent.
        if let Some((parent, _)) = log.parent()
            && let Ok(parent) = parent.parse()
        {
            registry.add_fork(id, parent)?;
        }
        let recorded = match end_of(&log)? {
            Some(_) => None,
            None => recorded_status(&log)?,
        };
        let status = recorded
            .as_ref()
            .map_or(Status::Running, |(status, _)| *status);
        registry.insert(&Metadata::read(log.dir())?.row(Status::Running))?;
        match (status, recorded.and_then(|(_, reason)| reason)) {
            (Status::Queued, _) => drop(registry.requeue(id)?),
            (Status::Paused, reason) => {
                registry.set_paused(id, reason.as_deref().unwrap_or_default())?;
            }
            _ => {}
        }
        registry.set_counters(id, self.recount(&log)?)?;
        self.note_activity(id, &log, registry)?;
        if let Some((status, error)) = end_of(&log)? {
            registry.finish(id, &outcome(status, error), ended_at(&log)?)?;
        }
        Ok(())
    }
}

/// Ignores the error of a task that cannot be read.
pub(super) fn ignore_unreadable(done: Result<(), TaskError>) -> Result<(), TaskError> {
    match done {
        Err(TaskError::Log(_) | TaskError::Unknown { .. }) => Ok(()),
        done => done,
    }
}

/// Returns when a log was written to for the last time, or the present time if that is unknown.
pub(super) fn ended_at(log: &Log) -> Result<Timestamp, LogError> {
    let ms = i64::try_from(log.last_time()?).ok();
    Ok(ms
        .and_then(|ms| Timestamp::from_millisecond(ms).ok())
        .unwrap_or_else(Timestamp::now))
}

/// Returns an error and its sources, in one line.
fn with_sources(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", with_sources(source)),
        None => error.to_string(),
    }
}

/// Returns the outcome of a task that ended with this status.
pub(super) fn outcome(status: Status, error: Option<String>) -> Outcome {
    match status {
        Status::Failed => Outcome::Failed {
            error: error.unwrap_or_default(),
        },
        _ => Outcome::Completed,
    }
}
