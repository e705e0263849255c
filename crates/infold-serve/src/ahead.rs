//! Summaries that are written before they are needed.

use std::sync::Arc;

use infold::manage::prepare;
use infold::{Aim, ManageError, Summarizer, rehearse};
use infold_store::Usage;
use uuid::Uuid;

use crate::Call;
use crate::desk::{DeskError, Inner, Rule, is_slow, locked, tried};
use crate::held::Held;
use crate::twice::Twice;

/// A summary that may soon be needed, and what it takes to write it.
pub(crate) struct Ahead {
    aim: Aim,
    summarizer: Box<dyn Summarizer + Send>,
}

/// From this share of the threshold on, a summary is written ahead of need.
const SOON: f64 = 0.85;

impl Inner {
    /// Looks whether a task will soon have to be folded by somebody who takes long.
    pub fn look_out(&self, task: Uuid, call: &Call, rule: &Rule, tokens: u64) {
        let Rule { profile, aim, .. } = rule;
        let limit = aim
            .budget
            .trigger()
            .unwrap_or(u64::MAX)
            .min(aim.budget.allow());
        if (tokens as f64) < limit as f64 * SOON {
            return;
        }
        let Ok(summarizer) = self.pen(call, profile) else {
            return;
        };
        if is_slow(&*summarizer) {
            let aim = aim.clone();
            self.later.ahead(task, Ahead { aim, summarizer });
        }
    }

    /// Has a summary written, in a thread of its own, unless there is one.
    pub fn look_ahead(self: &Arc<Self>, task: Uuid, ahead: Ahead) -> Result<(), DeskError> {
        let held = self.try_open(task)?;
        // Whoever is at it asks for one again.
        let Some(mut guard) = tried(&held) else {
            return Ok(());
        };
        if guard.preparing || guard.ready.is_some() {
            return Ok(());
        }
        guard.preparing = true;
        drop(guard);
        let desk = self.clone();
        let work = move || {
            if let Err(error) = desk.write_ahead(task, ahead) {
                desk.failed(&error);
            }
        };
        let started = std::thread::Builder::new()
            .name("summary".to_owned())
            .spawn(work);
        if started.is_err() {
            locked(&held).preparing = false;
        }
        Ok(())
    }

    fn write_ahead(&self, task: Uuid, mut ahead: Ahead) -> Result<(), DeskError> {
        let log = self.contexts.read(task);
        let written = log.map(|log| prepare(&log, &ahead.aim, &mut *ahead.summarizer));
        let held = self.open(task)?;
        let mut held = locked(&held);
        // Also if nothing came of it: requests would wait for ever.
        held.preparing = false;
        let (ready, spent) = written??;
        held.ready = ready;
        self.paid(&mut held, spent)
    }

    /// Has the summary written that a fold needs at once, of a task in which it is `preparing`.
    /// Others go on with the task meanwhile: nobody but the one who needs it waits.
    pub fn write_now(&self, task: Uuid, aim: &Aim, pen: &mut Twice) -> Result<(), DeskError> {
        let log = self.contexts.read(task);
        let rehearsed = log.map(|log| rehearse(&log, aim, pen));
        pen.close();
        locked(&*self.open(task)?).preparing = false;
        match rehearsed? {
            Ok(_) | Err(ManageError::Floor { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Records what calls of a summarizer took.
    pub fn paid(
        &self,
        held: &mut Held,
        spent: impl IntoIterator<Item = Usage>,
    ) -> Result<(), DeskError> {
        for usage in spent {
            held.writer.usage(usage)?;
            self.wrote(held);
        }
        Ok(())
    }
}
