//! Which files a workspace had at a point of a log.

use std::path::{Path, PathBuf};

use infold_checkpoint::SnapshotRef;
use infold_log::steer::{self, Side, Target};
use infold_log::{Event, EventId, Point};
use uuid::Uuid;

use crate::event::{CheckpointLine, RestoreLine, What};
use crate::{Log, LogError, StepError};

/// The files of a workspace, as an event recorded them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesAt {
    /// The event.
    pub event: EventId,
    /// The workspace.
    pub workspace: PathBuf,
    /// The snapshot.
    pub at: SnapshotRef,
}

impl Log {
    /// Returns the id of its task.
    pub fn task(&self) -> Option<Uuid> {
        let name = self.dir.file_name()?.to_str()?;
        name.trim_start_matches('.').parse().ok()
    }

    /// Returns the last recorded state of the files of a workspace.
    pub fn last_files(&self) -> Result<Option<FilesAt>, LogError> {
        self.files_up_to(self.state().at().event)
    }

    /// Returns the recorded state of the files at a target; none if nothing was recorded before.
    ///
    /// The files of a message are those of the last snapshot before the next message. If a rewind, undo or redo
    /// changed the files after the message, they are those before that change.
    pub fn files_of(&self, side: Side, target: Target) -> Result<Option<FilesAt>, StepError> {
        let Point { event, .. } = steer::locate(self.state(), side, target, self)?;
        let (Target::Message(seq), Side::To) = (target, side) else {
            let behind = match (target, side) {
                (Target::Event(_), Side::To) => self.restore_of(event)?,
                _ => None,
            };
            return Ok(self.files_up_to(event + u64::from(behind.is_some()))?);
        };
        let last = self.state().at();
        let end = if seq < last.seq {
            steer::locate(self.state(), Side::Before, Target::Message(seq + 1), self)?.event
        } else {
            last.event
        };
        let mut found = self.files_up_to(end)?;
        let mut next = found.clone();
        while let Some(files) = next.filter(|files| files.event.get() > event) {
            let before = match self.restore_at(files.event)? {
                // Other files were put in place behind the message.
                Some(restore) => {
                    found = self.files_up_to(restore.step.get().min(files.event.get()) - 1)?;
                    found.clone()
                }
                None => self.files_up_to(files.event.get() - 1)?,
            };
            next = before;
        }
        Ok(found)
    }

    /// Returns the target for one that names a message: right after the checkpoint that shows its effect, if
    /// only facts are in between. A fork that ended before the checkpoint would begin with the files of the
    /// message before.
    pub fn with_checkpoint(&self, target: Target) -> Result<Target, LogError> {
        let Target::Message(seq) = target else {
            return Ok(target);
        };
        let Ok(point) = steer::locate(self.state(), Side::To, target, self) else {
            return Ok(target);
        };
        let mut meant = target;
        for number in point.event + 1..=self.state().at().event {
            let line = self.event(EventId::new(number).expect("counted from one"))?;
            if line.after != seq || line.event() != Event::Fact {
                break;
            }
            if matches!(line.what, What::Checkpoint(_)) {
                meant = Target::Event(number);
            }
        }
        Ok(meant)
    }

    /// Returns the last recorded state of the files up to an event.
    pub fn files_up_to(&self, event: u64) -> Result<Option<FilesAt>, LogError> {
        let mut event = event;
        while let Some(id) = EventId::new(event) {
            let held = self.ancestor_of(event, |point| point.event)?;
            let newest = self.event_entry(id)?.files;
            if let Some(newest) = EventId::new(newest) {
                let holder = match held {
                    Some(held) => self.lineage.link(held)?.map(|link| link.task),
                    None => self.task(),
                };
                return Ok(files_at(&self.event(newest)?.what, newest, holder));
            }
            // The task that holds the event recorded nothing, so look in the one that it continues.
            event = match held {
                Some(held) => self.lineage.link(held + 1)?.map_or(0, |next| next.at.event),
                None => self.base.event,
            };
        }
        Ok(None)
    }

    /// Returns the restoration that belongs to a step; none if the step touched no files.
    pub fn restore_of(&self, step: u64) -> Result<Option<RestoreLine>, LogError> {
        let next = EventId::new(step + 1).filter(|next| next.get() <= self.state().at().event);
        let found = next.map(|next| self.restore_at(next)).transpose()?;
        Ok(found.flatten().filter(|line| line.step.get() == step))
    }

    /// Returns the checkpoints and where each stands, newest first, until `take` says that it has enough.
    pub fn each_checkpoint(
        &self,
        mut take: impl FnMut(&FilesAt, u64, &CheckpointLine) -> bool,
    ) -> Result<(), LogError> {
        let mut next = self.last_files()?;
        while let Some(files) = next {
            let line = self.event(files.event)?;
            if let What::Checkpoint(checkpoint) = &line.what
                && !take(&files, line.after, checkpoint)
            {
                break;
            }
            next = self.files_up_to(files.event.get() - 1)?;
        }
        Ok(())
    }

    /// Returns the highest number of a snapshot that the log records for its task; zero if there is none.
    pub fn last_checkpoint(&self) -> Result<u64, LogError> {
        let mut highest = 0;
        let own = self.task();
        self.each_checkpoint(|files, _, line| {
            let is_own = Some(files.at.task) == own;
            if is_own {
                highest = line.number;
            }
            // The checkpoints of a task are numbered in order, after those of the task that it continues.
            !is_own && files.event.get() > self.base.event
        })?;
        Ok(highest)
    }

    /// Returns whether a restoration with this id is recorded. It is one of the last things that were.
    pub fn has_restored(&self, id: &str) -> Result<bool, LogError> {
        /// The most snapshots that are searched, which may have been taken since the restoration was cut off.
        const MAX_SEARCHED: usize = 1000;
        let mut next = self.last_files()?;
        for _ in 0..MAX_SEARCHED {
            let Some(files) = next else { break };
            if self
                .restore_at(files.event)?
                .is_some_and(|line| line.id == id)
            {
                return Ok(true);
            }
            next = self.files_up_to(files.event.get() - 1)?;
        }
        Ok(false)
    }

    fn restore_at(&self, event: EventId) -> Result<Option<RestoreLine>, LogError> {
        Ok(match self.event(event)?.what {
            What::Restore(restore) => Some(restore),
            _ => None,
        })
    }
}

fn files_at(what: &What, event: EventId, holder: Option<Uuid>) -> Option<FilesAt> {
    let found = |workspace: &Path, at| FilesAt {
        event,
        workspace: workspace.to_owned(),
        at,
    };
    match what {
        What::Checkpoint(line) => holder.map(|task| {
            let number = line.number;
            found(&line.workspace, SnapshotRef { task, number })
        }),
        What::Restore(line) => Some(found(&line.workspace, line.to)),
        _ => None,
    }
}
