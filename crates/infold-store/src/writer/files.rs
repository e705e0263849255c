//! Records changes of the files of a workspace.

use std::path::PathBuf;

use infold_checkpoint::SnapshotRef;
use infold_log::EventId;

use super::{Durability, Writer};
use crate::LogError;
use crate::derived::Derived;
use crate::event::{CheckpointLine, EventLine, RestoreLine, What};
use crate::log::LinePlace;

/// Files that are put in place with a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restoration {
    /// The workspace.
    pub workspace: PathBuf,
    /// The snapshot of the files before.
    pub from: SnapshotRef,
    /// The snapshot that is restored.
    pub to: SnapshotRef,
    /// The name of the restoration in the journal of the workspace.
    pub id: String,
}

impl Writer {
    /// Records a snapshot of a workspace. It is no step: `undo` passes over it.
    pub fn checkpoint(&mut self, checkpoint: CheckpointLine) -> Result<EventId, LogError> {
        self.step(What::Checkpoint(checkpoint))
    }

    /// Appends a step, and with it that files are put in place: a process that is killed leaves both or none.
    pub(super) fn step_with(
        &mut self,
        what: What,
        files: Option<Restoration>,
    ) -> Result<EventId, LogError> {
        let Some(files) = files else {
            return self.step(what);
        };
        let ends = self.prepare_push()?;
        let ts = self.now();
        let forces = self.durability != Durability::Never;
        if forces {
            let synced = self.log.messages.sync().and_then(|()| self.sync_frames());
            synced.map_err(|error| error.after(!self.is_unsure))?;
        }
        let (step, mut bytes) = self.next_line(what, ts, 0)?;
        let restore = What::Restore(RestoreLine {
            step: step.id,
            workspace: files.workspace,
            from: files.from,
            to: files.to,
            id: files.id,
        });
        let (restore, second) = self.next_line(restore, ts, 1)?;
        let first = bytes.len();
        bytes.extend_from_slice(&second);
        let offset = self.log.events.append(&bytes)?;
        let synced = if forces {
            self.log.events.sync()
        } else {
            Ok(())
        };
        let places = [(&step, 0..first), (&restore, first..bytes.len())];
        let mut taken = synced;
        for (line, range) in places {
            let place = LinePlace::of(offset + range.start as u64, &bytes[range.clone()]);
            if taken.is_ok() {
                taken = self.log.took_event(line, place);
            }
        }
        if let Err(error) = taken {
            let is_gone = self.roll_back(ends, None);
            return Err(error.after(is_gone));
        }
        self.follow_lines(&[step.clone(), restore]);
        Ok(step.id)
    }

    /// Updates the files derived from events, as far as possible now.
    fn follow_lines(&mut self, lines: &[EventLine]) {
        for line in lines {
            for derived in Derived::ALL {
                let done = derived.follow(&self.log, line, self.current.written(derived));
                self.is_derived_behind |= done.is_err();
            }
        }
        if self.durability != Durability::Never && !self.is_pushing {
            self.follow();
        }
    }
}
