//! Lists the registry's rows of a contexts directory.

use std::cmp::Reverse;

use uuid::Uuid;

use super::activity::title;
use super::reconcile::ended_at;
use crate::{
    Contexts, Filter, Metadata, RegistryError, Status, TaskError, TaskRow, end_of, recorded_status,
};

impl Contexts {
    /// Returns the rows of all tasks that a filter selects, newest activity first.
    ///
    /// Rows of tasks whose directory was removed by hand are removed too, and those that forks refer to
    /// are left out.
    pub fn rows(&self, filter: &Filter) -> Result<Vec<TaskRow>, TaskError> {
        let listed = self.with_registry_if_writable(|registry| {
            loop {
                let mut rows = registry.list(filter)?;
                let is_gone = |row: &mut TaskRow| self.place(row.uuid).is_none();
                let gone: Vec<TaskRow> = rows.extract_if(.., is_gone).collect();
                let mut is_shorter = false;
                for row in gone {
                    is_shorter |= registry.remove(row.uuid)?;
                }
                if !is_shorter {
                    return Ok::<_, RegistryError>(rows);
                }
            }
        })?;
        match listed {
            Some(rows) => Ok(rows),
            None => self.derived_rows(filter),
        }
    }

    /// Returns the row of a task; none if it has no row or no directory.
    pub fn row(&self, id: Uuid) -> Result<Option<TaskRow>, TaskError> {
        if self.place(id).is_none() {
            return Ok(None);
        }
        match self.with_registry_if_writable(|rows| rows.get(id))? {
            Some(row) => Ok(row),
            None => self.derived_row(id).map(Some),
        }
    }

    fn derived_rows(&self, filter: &Filter) -> Result<Vec<TaskRow>, TaskError> {
        let mut rows = Vec::new();
        for id in self.tasks()? {
            let row = self.derived_row(id)?;
            let status = filter.status.is_none_or(|status| status == row.status);
            if status && (filter.user.is_none() || filter.user == row.user) {
                rows.push(row);
            }
        }
        rows.sort_by_key(|row| {
            Reverse((
                row.active_at.unwrap_or(row.created_at),
                row.created_at,
                row.uuid,
            ))
        });
        let limit = filter.limit.and_then(|limit| usize::try_from(limit).ok());
        rows.truncate(limit.unwrap_or(rows.len()));
        Ok(rows)
    }

    fn derived_row(&self, id: Uuid) -> Result<TaskRow, TaskError> {
        let log = self.read(id)?;
        let mut row = Metadata::read(log.dir())?.row(Status::Running);
        row.counters = self.recount(&log)?;
        row.title = title(&log);
        if log.last_time()? > 0 {
            row.active_at = Some(ended_at(&log)?);
        }
        if let Some((status, error)) = end_of(&log)? {
            row.status = status;
            row.completed_at = Some(ended_at(&log)?);
            row.error_message = error;
        } else if let Some((status, reason)) = recorded_status(&log)?
            && !status.is_end()
        {
            row.status = status;
            row.error_message = reason;
        }
        Ok(row)
    }
}
