//! Summaries that are written before they are needed.

use std::sync::Arc;

use infold::manage::prepare;
use infold::{Aim, Summarizer};
use infold_store::Usage;
use uuid::Uuid;

use crate::Call;
use crate::desk::{DeskError, Inner, Rule, locked};

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
        let Ok((summarizer, _)) = self.pen(call, profile) else {
            return;
        };
        // The built-in one takes no time.
        if summarizer.name() != "extractive" {
            let aim = aim.clone();
            self.later.ahead(task, Ahead { aim, summarizer });
        }
    }

    /// Has a summary written, in a thread of its own, unless there is one.
    pub fn look_ahead(self: &Arc<Self>, task: Uuid, ahead: Ahead) -> Result<(), DeskError> {
        let held = self.open(task)?;
        let mut guard = locked(&held);
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
        for usage in spent {
            record(&mut held.writer, usage)?;
        }
        self.wrote(&mut held);
        Ok(())
    }
}

fn record(writer: &mut infold_store::Writer, usage: Usage) -> Result<(), DeskError> {
    writer.usage(usage)?;
    Ok(())
}
