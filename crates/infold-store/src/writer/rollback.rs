//! Takes back a push that failed.

use infold_log::Point;

use super::Writer;
use crate::LogError;
use crate::push_journal::{Ends, PushJournal};

impl Writer {
    /// Prepares a push; says where the log ends before it.
    pub(crate) fn prepare_push(&mut self) -> Result<Ends, LogError> {
        self.prepare()?;
        // A rollback reads the sidecars.
        self.log.flush()?;
        Ok(self.log.ends())
    }

    /// Suspends updates of derived files.
    pub(crate) fn begin_push(&mut self) {
        self.is_pushing = true;
    }

    /// Resumes updates of derived files.
    pub(crate) fn end_push(&mut self) {
        self.is_pushing = false;
    }

    /// Takes back a push that failed; returns whether that could be done. What could not is tried again before anything else is written.
    pub(crate) fn roll_back(&mut self, ends: Ends, pending: Option<PushJournal>) -> bool {
        let done = self.try_roll_back(ends, pending.as_ref()).is_ok();
        if !done {
            self.lock.in_order(false);
            self.abandoned = Some((ends, pending));
        }
        done
    }

    fn try_roll_back(&mut self, ends: Ends, pending: Option<&PushJournal>) -> Result<(), LogError> {
        self.log.events.cut(ends.events)?;
        self.log.messages.cut(ends.messages)?;
        self.log.roll_back(Point {
            seq: ends.next_seq - 1,
            event: ends.next_event - 1,
        })?;
        pending.map_or(Ok(()), PushJournal::end)?;
        self.is_unsure = false;
        Ok(())
    }

    pub(super) fn retry_roll_back(&mut self) -> Result<(), LogError> {
        let Some((ends, pending)) = self.abandoned.take() else {
            return Ok(());
        };
        let done = self.try_roll_back(ends, pending.as_ref());
        match &done {
            Ok(()) => self.lock.in_order(true),
            Err(_) => self.abandoned = Some((ends, pending)),
        }
        done
    }
}
