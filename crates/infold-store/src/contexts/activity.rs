//! The title of a task and the time of its last activity, by which users identify tasks.

use std::cmp::Reverse;

use infold_log::{Seq, Span};
use infold_wire::{Message, TypedTextFilter, title_of};
use jiff::Timestamp;
use uuid::Uuid;

use super::reconcile::ended_at;
use crate::Contexts;
use crate::{Filter, Log, Registry, TaskError, TaskRow};

/// The first request is looked for in this many messages.
const MAX_MESSAGES: u64 = 32;

impl Contexts {
    /// Records the time of the last activity of a task in the registry, and its title if that is not known yet.
    pub(super) fn note_activity(
        &self,
        id: Uuid,
        log: &Log,
        registry: &Registry,
    ) -> Result<(), TaskError> {
        if log.last_time()? == 0 {
            return Ok(());
        }
        let at = ended_at(log)?;
        let Some(row) = registry.get(id)? else {
            return Ok(());
        };
        let is_new = row.active_at.is_none() || log.state().at().seq <= MAX_MESSAGES;
        let title = if row.title.is_none() && is_new {
            title(log)
        } else {
            None
        };
        if row.active_at != Some(at) || title.is_some() {
            registry.set_activity(id, at, title.as_deref())?;
        }
        Ok(())
    }

    /// Returns the task of `@`, the one with the newest activity, or of `@2` and so on for those before it;
    /// none for any other name, or if there are not so many.
    pub(super) fn recent(&self, name: &str) -> Result<Option<Uuid>, TaskError> {
        match recent_place(name) {
            Some(place) => Ok(self.rows_by_activity()?.get(place).map(|row| row.uuid)),
            None => Ok(None),
        }
    }

    /// Returns the rows of all tasks, newest activity first, whether or not the registry knows of it yet.
    pub fn rows_by_activity(&self) -> Result<Vec<TaskRow>, TaskError> {
        // Listing does not create the directory.
        if !self.root.exists() {
            return Ok(Vec::new());
        }
        let mut rows = self.rows(&Filter::default())?;
        // The order of the registry decides where times are equal, as the sort is stable.
        rows.sort_by_cached_key(|row| Reverse(self.last_activity(row)));
        Ok(rows)
    }

    /// Returns the time of the last activity of a task, even if the registry lacks it: a server updates the
    /// registry in the background, after the log of the task was written.
    fn last_activity(&self, row: &TaskRow) -> Timestamp {
        let known = row.active_at.unwrap_or(row.created_at);
        if row.status.is_end() {
            return known;
        }
        let Some(dir) = self.place(row.uuid) else {
            return known;
        };
        let written = ["messages.jsonl", "events.jsonl"].map(|name| {
            let modified = std::fs::metadata(dir.join(name)).and_then(|file| file.modified());
            Timestamp::try_from(modified.ok()?).ok()
        });
        written.into_iter().flatten().fold(known, Timestamp::max)
    }
}

/// The place of `@`, `@2` and so on among the tasks with the newest activity, counted from zero; none if it is no such name.
pub(super) fn recent_place(name: &str) -> Option<usize> {
    match name.strip_prefix('@')? {
        "" => Some(0),
        digits => digits.parse::<usize>().ok()?.checked_sub(1),
    }
}

/// Returns the title of a conversation; none if it cannot be read.
pub(super) fn title(log: &Log) -> Option<String> {
    let last = log.state().last_seq()?.min(Seq::new(MAX_MESSAGES)?);
    let mut typist = TypedTextFilter::default();
    let mut found = None;
    let read = log.each_message(Span::new(Seq::FIRST, last)?, &mut |_, bytes| {
        if found.is_none()
            && let Ok(message) = Message::read(bytes)
        {
            found = title_of(&mut typist, &message);
        }
        Ok(())
    });
    found.filter(|_| read.is_ok())
}
