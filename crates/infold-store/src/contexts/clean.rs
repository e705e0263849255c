//! Removes tasks that ended long ago, and leftovers of killed processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;

use uuid::Uuid;

use super::{HIDDEN, PLACES};
use crate::task_draft::is_left_behind;
use crate::{Contexts, LogError, Registry, TaskError, TaskRow, chain_index, file, lock};

/// The age from which an unfinished directory is taken to be abandoned: creating a task takes milliseconds.
const UNBORN: Duration = Duration::from_secs(3600);

impl Contexts {
    /// Removes tasks that ended before a time and that no other task continues.
    pub fn clean(&self, before: Timestamp, really: bool) -> Result<Vec<TaskRow>, TaskError> {
        self.with_registry(|registry| self.clean_with(registry, before, really))
    }

    fn clean_with(
        &self,
        registry: &Registry,
        before: Timestamp,
        really: bool,
    ) -> Result<Vec<TaskRow>, TaskError> {
        for id in self.tasks_in(PLACES[1])? {
            // A crash may have come between the removal of a row and of its directory.
            if registry.get(id)?.is_none() {
                self.enter(id, registry)?;
            }
        }
        let mut removed = Vec::new();
        let mut chains = chain_index::if_there(&self.root);
        for row in registry.expired(before)? {
            if !really {
                removed.push(row);
            } else if registry.remove(row.uuid)? {
                if let Some(chains) = &mut chains {
                    let _ = chains.forget(row.uuid);
                }
                let dir = self.root.join(PLACES[1]).join(row.uuid.to_string());
                if dir.is_dir() {
                    self.hide(&dir, row.uuid)?;
                }
                removed.push(row);
            }
        }
        if really {
            self.empty_trash()?;
            self.remove_unborn(registry)?;
            self.forget_gone_in_search()?;
            let ids: Vec<Uuid> = removed.iter().map(|row| row.uuid).collect();
            if let Err(error) = self.checkpoints().forget(&ids) {
                self.tell(&format!(
                    "checkpoints of removed tasks are left: {error}; `infold checkpoint gc` removes them"
                ));
            }
        }
        Ok(removed)
    }

    /// Renames the directory of a task, so that it disappears in one step.
    ///
    /// A crash leaves trash, not half a task; a power cut does not restore the name of a directory that lost
    /// its files.
    pub(super) fn hide(&self, dir: &Path, id: Uuid) -> Result<PathBuf, LogError> {
        let completed = self.root.join(PLACES[1]);
        let trash = completed.join(format!("{HIDDEN}{id}"));
        fs::rename(dir, &trash).map_err(|error| LogError::io(dir, "removed", error))?;
        if self.is_lasting() {
            file::sync_dir(&completed)?;
            dir.parent().map_or(Ok(()), file::sync_dir)?;
        }
        Ok(trash)
    }

    /// Deletes the remaining files of removed tasks; returns the number of tasks.
    pub(crate) fn empty_trash(&self) -> Result<usize, LogError> {
        let trash = self.hidden(PLACES[1])?;
        for path in &trash {
            let id = path.file_name().and_then(|name| name.to_str());
            let id = id.and_then(|name| name.trim_start_matches(HIDDEN).parse().ok());
            if let Some(id) = id {
                self.remove_torn_databases_with(id)?;
            }
            fs::remove_dir_all(path).map_err(|error| LogError::io(path, "removed", error))?;
        }
        Ok(trash.len())
    }

    /// Deletes tasks whose creation was cut off, and their references to a parent; returns their number.
    pub(crate) fn remove_unborn(&self, registry: &Registry) -> Result<usize, TaskError> {
        let mut removed = 0;
        for path in self.hidden(PLACES[0])? {
            let made = fs::metadata(&path).and_then(|meta| meta.modified());
            let age = made.ok().and_then(|made| made.elapsed().ok());
            let is_left = age.is_some_and(|age| age >= UNBORN) || is_left_behind(&path);
            if !is_left || lock::is_held(&path) {
                continue;
            }
            let id = path.file_name().and_then(|name| name.to_str());
            if let Some(id) = id.and_then(|name| name.trim_start_matches(HIDDEN).parse().ok()) {
                registry.remove(id)?;
            }
            fs::remove_dir_all(&path).map_err(|error| LogError::io(&path, "removed", error))?;
            removed += 1;
        }
        Ok(removed)
    }

    /// The directories in a place that are no tasks.
    pub(crate) fn hidden(&self, place: &str) -> Result<Vec<PathBuf>, LogError> {
        let dir = self.root.join(place);
        let entries = fs::read_dir(&dir).map_err(|error| LogError::io(&dir, "read", error))?;
        let hidden = entries.flatten().filter(|entry| {
            let name = entry.file_name();
            name.to_str().is_some_and(|name| name.starts_with(HIDDEN))
        });
        Ok(hidden.map(|entry| entry.path()).collect())
    }
}
