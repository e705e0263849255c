//! Creates tasks, and forks of tasks.

use std::fs;
use std::path::{Path, PathBuf};

use infold_log::EventId;
use infold_log::steer::{self, Side, Target};
use infold_wire::Wire;
use uuid::Uuid;

use super::{Contexts, HIDDEN, TaskError};
use crate::dirs::PLACES;
use crate::event::{EventLine, What};
use crate::file::{self, Access};
use crate::metadata::Metadata;
use crate::{Log, LogError, Status, lock, redacted_name, time};

impl Contexts {
    /// Creates a task.
    pub fn create(&self, metadata: Metadata) -> Result<Uuid, TaskError> {
        self.make(metadata, None)
    }

    /// Removes a task that was created just now, could not be written to, and was not announced.
    pub fn unmake(&self, id: Uuid) -> Result<(), TaskError> {
        let dir = self.root.join(PLACES[0]).join(id.to_string());
        // The directory goes first: on a full disk, that makes room for the write to the registry.
        fs::remove_dir_all(&dir).map_err(|error| LogError::io(&dir, "removed", error))?;
        self.opened()?.with(|rows| rows.remove(id)).map(drop)
    }

    /// Creates a task that continues another one's log, from its end or from a point in it.
    pub fn fork(&self, parent: Uuid, at: Option<Target>) -> Result<Uuid, TaskError> {
        let id = self.fork_as(parent, at, |_| {})?;
        // Opening it for writing makes its view. If this fails, its first writer makes the view.
        let _ = self.write(id);
        Ok(id)
    }

    /// Creates a fork as [`Contexts::fork`] does, and lets `edit` change the metadata that it takes over from its
    /// parent. Its view is only written when the fork is first closed, so that the cost of a fork does not depend on
    /// the size of its view.
    pub fn fork_as(
        &self,
        parent: Uuid,
        at: Option<Target>,
        edit: impl FnOnce(&mut Metadata),
    ) -> Result<Uuid, TaskError> {
        let step = |source| TaskError::Step {
            task: parent,
            source: Box::new(source),
        };
        let log = self.read(parent)?;
        if self.is_lasting() {
            // A power cut must not take the entries that the fork refers to and leave the fork.
            log.messages.sync()?;
            log.events.sync()?;
        }
        let at = match at {
            Some(target) => {
                let target = log.with_lookups(Side::To, target)?;
                let target = log.with_checkpoint(target)?;
                steer::locate(log.state(), Side::To, target, &log).map_err(step)?
            }
            None => log.state().at(),
        };
        let mut metadata = Metadata::read(log.dir())?;
        edit(&mut metadata);
        // Entries before the fork point belong to the task that it was forked from.
        let (parent, at) = log.holder_of(at)?.unwrap_or((parent, at));
        let task = parent.to_string();
        let what = What::Fork { task, at };
        let first = EventLine {
            id: EventId::new(at.event + 1).expect("one more than a count is not zero"),
            ts: time::following(log.last_time()?),
            after: at.seq,
            pass: None,
            what,
        };
        self.make(metadata, Some((parent, first)))
    }

    fn make(
        &self,
        mut metadata: Metadata,
        fork: Option<(Uuid, EventLine)>,
    ) -> Result<Uuid, TaskError> {
        let registry = self.reconciled()?;
        self.keep_names_redacted(&mut metadata)?;
        // A fork is entered at once, because its parent must be spared. Other tasks can wait for the next use of the
        // registry, if it stays open.
        let can_wait = fork.is_none() && self.kept.is_some();
        let first = fork
            .as_ref()
            .map(|(_, line)| line.encode())
            .unwrap_or_default();
        let next = self.make_hidden_dir(&mut metadata, &first)?;
        if let Some((parent, _)) = fork {
            // From here on `clean` spares the parent, even if the fork is never completed.
            let known = registry.with(|rows| rows.add_fork(metadata.uuid, parent))?;
            if !known && self.place(parent).is_none() {
                registry.with(|rows| rows.remove(metadata.uuid))?;
                let _ = fs::remove_dir_all(&next);
                return Err(self.unknown(parent));
            }
            // The state at that point is stored with the fork, so that opening the fork opens no ancestor.
            let indexed = Log::open(&next, Access::Write, &self.dirs());
            let indexed = indexed.and_then(|(mut log, _)| log.flush());
            if let Err(error) = indexed {
                registry.with(|rows| rows.remove(metadata.uuid))?;
                let _ = fs::remove_dir_all(&next);
                return Err(error.into());
            }
        }
        let id = metadata.uuid;
        let entered = self
            .publish_dir(id, &next)
            .map_err(TaskError::from)
            .and_then(|()| {
                let row = metadata.row(Status::Running);
                if can_wait {
                    registry.enter_soon(row);
                    return Ok(true);
                }
                registry.with(|rows| rows.insert(&row))
            });
        match entered {
            Ok(_) => Ok(id),
            Err(error) => {
                let _ = fs::remove_dir_all(&next);
                let _ = self.unmake(id);
                let source = Box::new(error);
                if self.root.join(PLACES[0]).join(id.to_string()).exists() {
                    Err(TaskError::Made { task: id, source })
                } else {
                    Err(*source)
                }
            }
        }
    }

    /// Replaces the names that were redacted in another task, so that no later task writes them again.
    pub(crate) fn keep_names_redacted(&self, metadata: &mut Metadata) -> Result<(), TaskError> {
        let Metadata {
            task_source,
            task_type,
            task_id,
            owner,
            repo,
            user,
            ..
        } = metadata;
        // The names of conversations are looked up in their own index.
        if task_source.as_deref() == Some("proxy") {
            return Ok(());
        }
        for (column, name) in [
            ("task_id", task_id.as_mut()),
            ("task_type", task_type.as_mut()),
            ("task_source", task_source.as_mut()),
            ("owner", owner.as_mut()),
            ("repo", repo.as_mut()),
            ("user", user.as_mut()),
        ] {
            let Some(name) = name else { continue };
            let redacted = redacted_name(name);
            if *name != redacted && self.with_registry(|rows| rows.has_text(column, &redacted))? {
                *name = redacted;
            }
        }
        Ok(())
    }

    /// Makes the directory of a new task under a hidden name; [`Contexts::publish_dir`] makes it visible.
    pub(crate) fn make_hidden_dir(
        &self,
        metadata: &mut Metadata,
        events: &[u8],
    ) -> Result<PathBuf, LogError> {
        metadata.uuid = Uuid::new_v4();
        self.make_hidden_dir_of(metadata, events)
    }

    /// The same for a task that has its id already.
    pub(crate) fn make_hidden_dir_of(
        &self,
        metadata: &mut Metadata,
        events: &[u8],
    ) -> Result<PathBuf, LogError> {
        metadata.created_at = time::now();
        metadata.process_id = std::process::id();
        metadata.hostname = lock::host();
        if self.redacts {
            metadata.redact();
        }
        let running = self.root.join(PLACES[0]);
        // The hidden name is not the id: two processes may create a task of the same id, or one may have been killed
        // while it did.
        let next = running.join(format!("{HIDDEN}{}", Uuid::new_v4()));
        self.write_initial_files(&next, metadata, events)
            .inspect_err(|_| {
                let _ = fs::remove_dir_all(&next);
            })?;
        Ok(next)
    }

    /// Makes the directory of a task again whose directory is gone; its log is empty.
    pub(crate) fn replace_lost(&self, id: Uuid, wire: Wire) -> Result<PathBuf, LogError> {
        let metadata = Metadata {
            uuid: id,
            created_at: time::now(),
            process_id: std::process::id(),
            hostname: lock::host(),
            wire: Some(wire.name().to_owned()),
            ..Metadata::default()
        };
        let running = self.root.join(PLACES[0]);
        let next = running.join(format!("{HIDDEN}{id}"));
        self.write_initial_files(&next, &metadata, &[])
            .inspect_err(|_| {
                let _ = fs::remove_dir_all(&next);
            })?;
        self.publish_dir(id, &next)?;
        Ok(running.join(id.to_string()))
    }

    /// Makes the files of a new task.
    fn write_initial_files(
        &self,
        next: &Path,
        metadata: &Metadata,
        events: &[u8],
    ) -> Result<(), LogError> {
        file::make_dir(next)?;
        for (name, bytes) in [
            (Metadata::NAME, metadata.encode().as_bytes()),
            ("messages.jsonl", &[]),
            ("events.jsonl", events),
            ("current.jsonl", &[]),
        ] {
            // The files are invisible until the directory has its name; an empty file has no bytes to lose.
            let lasting = self.is_lasting() && !bytes.is_empty();
            file::write_new(&next.join(name), bytes, lasting)?;
        }
        Ok(())
    }

    /// Gives the directory of a new task its name.
    pub(crate) fn publish_dir(&self, id: Uuid, next: &Path) -> Result<(), LogError> {
        if self.is_lasting() {
            file::sync_dir(next)?;
        }
        let running = self.root.join(PLACES[0]);
        let dir = running.join(id.to_string());
        fs::rename(next, &dir).map_err(|error| LogError::io(&dir, "made", error))?;
        if self.is_lasting() {
            file::sync_dir(&running)
        } else {
            Ok(())
        }
    }
}
