//! Repairs tasks and their registry.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use jiff::Timestamp;
use uuid::Uuid;

use crate::derived::Derived;
use crate::dirs::is_among_ended;
use crate::file::move_aside;
use crate::lock::{Lock, Taken};
use crate::log::{continued_by, kept_parent};
use crate::verify::Problem;
use crate::{
    Contexts, Durability, LogError, OpenError, Registry, Status, TaskError, What, Writer,
    chain_index, end_of,
};

const SIDECARS: [&str; 4] = ["messages.idx", "events.idx", "states.idx", "current.idx"];

impl Contexts {
    /// Opens the registry; one with any damage is set aside and rebuilt from the directories.
    pub fn repaired_registry(&self) -> Result<(Registry, Vec<String>), TaskError> {
        let mut done = Vec::new();
        if self.discard_redaction()? {
            done.push(
                "what a redaction left that was cut short was removed; nothing was redacted"
                    .to_owned(),
            );
        }
        let mut registry = self.registry()?;
        if let Some(reason) = registry.check()? {
            let opened = registry.identity();
            // Close it first: the last connection that closes removes the journal of the database.
            drop(registry);
            registry = self.renew_registry(opened, &reason)?;
            done.push(format!("damaged registry made anew: {reason}"));
        }
        for id in self.tasks()? {
            if registry.get(id)?.is_none() {
                match self.enter(id, &registry) {
                    Ok(()) => done.push(format!("task {id} entered into the registry")),
                    // `verify` reports the damage of this task.
                    Err(TaskError::Log(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        let trash = self.empty_trash()?;
        if trash > 0 {
            done.push(format!(
                "what was left of {trash} removed task(s) was removed"
            ));
            // Their titles and names may be left in the databases.
            registry.purge()?;
            if let Some(mut chains) = chain_index::if_there(self.root()) {
                chains.purge()?;
            }
            self.forget_gone_in_search()?;
        }
        let unborn = self.remove_unborn(&registry)?;
        if unborn > 0 {
            done.push(format!(
                "what was left of {unborn} task(s) that never came to be was removed"
            ));
        }
        // A fork is recorded before it is created, and its record keeps the row of its parent.
        for id in registry.forks()? {
            if self.place(id).is_none() {
                registry.remove(id)?;
            }
        }
        done.extend(self.remove_false_forks(&registry)?);
        let mut is_shorter = true;
        while std::mem::take(&mut is_shorter) {
            for id in registry.uuids()? {
                if self.place(id).is_none() && registry.remove(id)? {
                    is_shorter = true;
                    done.push(format!("row of task {id} removed: its directory is gone"));
                }
            }
        }
        Ok((registry, done))
    }

    /// Removes references to tasks that are gone from the registry if no file of the fork names the task any more: after
    /// a power cut, neither the task nor the event that named it may have reached the disk.
    fn remove_false_forks(&self, registry: &Registry) -> Result<Vec<String>, TaskError> {
        let mut done = Vec::new();
        for parent in registry.uuids()? {
            if self.place(parent).is_some() {
                continue;
            }
            for child in registry.forks_of(parent)? {
                let is_named = self
                    .place(child)
                    .is_none_or(|dir| may_continue(&dir, parent));
                if !is_named && registry.remove_fork(child)? {
                    done.push(format!(
                        "task {child} was known to continue task {parent}, which is gone; its files do not say so, and the registry does not any more"
                    ));
                }
            }
        }
        Ok(done)
    }

    /// Repairs a task and returns the actions taken. Damaged bytes are set aside.
    ///
    /// Damage of a task that it continues is repaired there first; then this is called again.
    pub fn repair(&self, id: Uuid, registry: &Registry) -> Result<Vec<String>, TaskError> {
        let mut done = Vec::new();
        let mut problems = self.verify(id, registry)?;
        let Some(dir) = self.place(id).filter(|_| !problems.is_empty()) else {
            return Ok(done);
        };
        for problem in &problems {
            if let Problem::Misplaced { path } = problem {
                let aside = move_aside(path)?.display().to_string();
                done.push(format!(
                    "{} was not a file: moved to {aside}",
                    path.display()
                ));
            }
        }
        if !done.is_empty() {
            problems = self.verify(id, registry)?;
        }
        // Messages are mended in the form that the metadata names.
        done.extend(self.restore_metadata(id, &dir, registry)?);
        let mended = self.mend(id, &dir, &problems)?;
        if !mended.is_empty() {
            // Damage of a task that it continues is found once its own files can be read.
            problems.extend(self.verify(id, registry)?);
        }
        done.extend(mended);
        for problem in &problems {
            if let Problem::Exposed { path, mode } = problem {
                let closed = fs::Permissions::from_mode(mode & 0o700);
                fs::set_permissions(path, closed)
                    .map_err(|error| LogError::io(path, "closed", error))?;
                done.push(format!("{} closed to others", path.display()));
            }
        }
        let is_shortened = |problem: &&Problem| matches!(problem, Problem::Shortened { .. });
        done.extend(problems.iter().filter(is_shortened).map(Problem::to_string));
        if let Some(parent) = lost_parent(&problems) {
            done.extend(self.restore_fork_point(id, &dir, parent)?);
        }
        if problems
            .iter()
            .any(|problem| !matches!(problem, Problem::Exposed { .. }))
        {
            let lock = self.locked(id, &dir)?;
            for name in SIDECARS {
                let _ = fs::remove_file(dir.join(name));
            }
            drop(lock);
            match self.rewrite(id, &dir, registry) {
                // The task that it continues has to be repaired first; the repairs made here are reported all the same.
                Err(TaskError::Log(LogError::NoParent { .. })) if !done.is_empty() => {}
                rewritten => done.extend(rewritten?),
            }
        }
        Ok(done)
    }

    /// Takes the lock of a task, so that no writer is in the way.
    pub(crate) fn locked(&self, id: Uuid, dir: &Path) -> Result<Lock, TaskError> {
        match Lock::take(dir, self.address())? {
            Taken::Ours(lock, _) => Ok(lock),
            Taken::Held(holder) => {
                let source = OpenError::Held { holder };
                Err(TaskError::Open { task: id, source })
            }
        }
    }

    /// Rewrites all derived files of a task from its log.
    fn rewrite(&self, id: Uuid, dir: &Path, registry: &Registry) -> Result<Vec<String>, TaskError> {
        let opened = Writer::open(dir, Durability::Turn, &self.dirs());
        let (mut writer, repairs) = opened.map_err(|source| TaskError::opening(id, source))?;
        for derived in Derived::ALL {
            if !derived.lines(writer.log())?.is_empty() || dir.join(derived.name()).exists() {
                derived.rewrite(writer.log())?;
            }
        }
        let mut done: Vec<String> = repairs.iter().map(|repair| repair.to_string()).collect();
        if let Err(LogError::Damaged { path, .. }) = writer.log().check_imported() {
            let aside = move_aside(&path)?.display().to_string();
            done.push(format!(
                "{} does not fit the log: moved to {aside}; `export` writes what the log holds",
                path.display()
            ));
        }
        done.extend(self.end_again(id, dir, &mut writer, registry)?);
        done.push("everything derived was derived anew".to_owned());
        let is_running = end_of(writer.log())?.is_none();
        drop(writer);
        self.enter(id, registry)?;
        let is_ended = registry.get(id)?.is_some_and(|row| row.status.is_end());
        if is_ended && is_running {
            registry.set_status(id, Status::Running, Timestamp::now())?;
        } else if is_ended {
            // Move a task that ended to the directory of completed ones.
            self.complete_end(id)?;
        }
        Ok(done)
    }

    /// Says in its log that a task ended which is among those that ended, should that be lost.
    fn end_again(
        &self,
        id: Uuid,
        dir: &Path,
        writer: &mut Writer,
        registry: &Registry,
    ) -> Result<Option<String>, TaskError> {
        if !is_among_ended(dir) || end_of(writer.log())?.is_some() {
            return Ok(None);
        }
        let row = registry.get(id)?.filter(|row| row.status.is_end());
        let (status, error) = match row {
            Some(row) => (row.status, row.error_message),
            None => (Status::Completed, None),
        };
        writer.step(What::Status {
            status,
            error,
            is_idle: false,
        })?;
        Ok(Some(format!("that it ended was lost: {status} again")))
    }
}

/// Returns whether the files of a task name another one as the one that it continues. A file that cannot be read may.
fn may_continue(dir: &Path, parent: Uuid) -> bool {
    let first = if dir.join("events.jsonl").exists() {
        continued_by(dir)
    } else {
        Ok(None)
    };
    let named = first.map(|first| first.or_else(|| kept_parent(dir)));
    named.map_or(true, |named| named.is_some_and(|(task, _)| task == parent))
}

/// The task that is continued from a point which it does not have.
fn lost_parent(problems: &[Problem]) -> Option<&str> {
    problems.iter().find_map(|problem| match problem {
        Problem::Damaged(LogError::NoParent { parent, .. }) => Some(parent.as_str()),
        _ => None,
    })
}

/// How many bytes a task takes on disk; none if it is gone.
pub fn size(dir: &Path) -> Result<u64, LogError> {
    let fail = |error| LogError::io(dir, "listed", error);
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        entries => entries.map_err(fail)?,
    };
    let mut bytes = 0;
    for entry in entries {
        // A file that is removed meanwhile takes nothing.
        bytes += entry.map_err(fail)?.metadata().map_or(0, |meta| meta.len());
    }
    Ok(bytes)
}
