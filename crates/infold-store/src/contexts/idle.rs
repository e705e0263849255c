//! Ends tasks that have had no activity for a while, and continues them on new activity.

use std::fs;

use jiff::Timestamp;
use uuid::Uuid;

use super::{PLACES, end_of};
use crate::event::What;
use crate::{Contexts, LogError, Outcome, Status, TaskError, file};

impl Contexts {
    /// Ends a task that is not locked as of its last activity; returns whether it did. The next write opens it again.
    pub fn end_idle(&self, id: Uuid) -> Result<bool, TaskError> {
        let dir = self.root.join(PLACES[0]).join(id.to_string());
        if !dir.is_dir() {
            return Ok(false);
        }
        let (mut writer, _) = match self.writer(id, &dir) {
            Err(TaskError::Open { .. } | TaskError::Unknown { .. }) => return Ok(false),
            opened => opened?,
        };
        if end_of(writer.log())?.is_none() {
            let at = writer.log().last_time()?;
            let end = What::Status {
                status: Status::Completed,
                error: None,
                is_idle: true,
            };
            writer.step_at(end, at)?;
        }
        self.settle_end(id, writer, &Outcome::Completed);
        Ok(true)
    }

    /// Opens a task again that ended because nothing came to it, and no other; returns whether it did.
    pub(super) fn reopen_idle(&self, id: Uuid) -> Result<bool, TaskError> {
        let [running, completed] = PLACES.map(|place| self.root.join(place).join(id.to_string()));
        let log = self.read(id)?;
        let last = log.state().last_event();
        let last = last.map(|last| log.event(last)).transpose()?;
        drop(log);
        let is_idle =
            last.is_some_and(|last| matches!(last.what, What::Status { is_idle: true, .. }));
        if !is_idle {
            return Ok(false);
        }
        // After a crash here the log still says that the task has ended, and the next command moves it back.
        match fs::rename(&completed, &running) {
            // Another process does the same.
            Err(_) if running.is_dir() => return Ok(true),
            moved => moved.map_err(|error| LogError::io(&completed, "moved", error))?,
        }
        let (mut writer, _) = self.writer(id, &running)?;
        writer.step(What::Status {
            status: Status::Running,
            error: None,
            is_idle: false,
        })?;
        drop(writer);
        for place in PLACES.iter().filter(|_| self.is_lasting()) {
            file::sync_dir(&self.root.join(place))?;
        }
        let opened = self.opened()?;
        opened.with(|rows| rows.set_status(id, Status::Running, Timestamp::now()))?;
        Ok(true)
    }
}
