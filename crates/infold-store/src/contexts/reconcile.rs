//! Completes steps between log, registry and directories that a crash cut off.

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
    /// Completes the end of a task, which its log records. What fails now is done when the registry or the task is opened
    /// next.
    pub(super) fn settle_end(&self, id: Uuid, writer: Writer, end: &Outcome) {
        if let Err(error) = self.carry_end(id, writer, end) {
            let status = end.status();
            self.tell(&format!(
                "task {id} is marked {status} in its log; the registry and its directory follow by themselves as soon as that can be done ({})",
                chain(&error)
            ));
        }
    }

    /// The registry's row and the directory of a task whose log says that it ended.
    fn carry_end(&self, id: Uuid, mut writer: Writer, end: &Outcome) -> Result<(), TaskError> {
        if let Err(error) = self.register_end(id, &writer, end) {
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
            let dir = self.root.join(PLACES[0]).join(id.to_string());
            if open.contains(id) && !lock::is_left(&dir) {
                continue;
            }
            let readable = match registry.get(*id)? {
                None => self.enter(*id, registry),
                Some(row) => self.carry_through(*id, row.status, registry),
            };
            passable(readable)?;
        }
        for id in open.iter().filter(|id| !running.contains(id)) {
            if self.root.join(PLACES[1]).join(id.to_string()).is_dir() {
                passable(self.enter(*id, registry))?;
            }
        }
        Ok(())
    }

    /// Moves a task that its log calls ended, and calls one running that is.
    fn carry_through(
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

    /// Moves a task whose log says that it ended to those that ended, should it not be there.
    pub(crate) fn carry_end_through(&self, id: Uuid) -> Result<(), TaskError> {
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
        // First, so that no parent of a known task is ever without this reference.
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

/// Passes over a task that cannot be read.
pub(super) fn passable(done: Result<(), TaskError>) -> Result<(), TaskError> {
    match done {
        Err(TaskError::Log(_) | TaskError::Unknown { .. }) => Ok(()),
        done => done,
    }
}

/// When a log was written to for the last time.
pub(super) fn ended_at(log: &Log) -> Result<Timestamp, LogError> {
    let ms = i64::try_from(log.last_time()?).ok();
    Ok(ms
        .and_then(|ms| Timestamp::from_millisecond(ms).ok())
        .unwrap_or_else(Timestamp::now))
}

/// Returns an error and its sources, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}

pub(super) fn outcome(status: Status, error: Option<String>) -> Outcome {
    match status {
        Status::Failed => Outcome::Failed {
            error: error.unwrap_or_default(),
        },
        _ => Outcome::Completed,
    }
}
