//! Slow summaries are written before they are needed, while the task is not leased.

use std::sync::Arc;

use infold::manage::prepare;
use infold::{Aim, ManageError, Summarizer, rehearse};
use infold_store::Usage;
use uuid::Uuid;

use crate::conversations::{Core, is_slow};
use crate::model_rules::ModelRule;
use crate::pool::{TaskLease, TryLease};
use crate::recorded_summary::RecordedSummary;
use crate::{ConversationError, ModelCall};

/// A summary that may soon be needed.
pub(crate) struct PrefetchJob {
    aim: Aim,
    summarizer: Box<dyn Summarizer + Send>,
}

/// From this share of the threshold on a summary is prefetched.
const PREFETCH_SHARE: f64 = 0.85;

impl Core {
    /// Queues a prefetch if a task will soon have to be folded by a slow summarizer.
    pub fn prefetch_if_due(&self, task: Uuid, call: &ModelCall, rule: &ModelRule, tokens: u64) {
        let ModelRule { profile, aim, .. } = rule;
        let trigger = aim.budget.trigger().unwrap_or(u64::MAX);
        let limit = trigger.min(aim.budget.allow());
        if (tokens as f64) < limit as f64 * PREFETCH_SHARE {
            return;
        }
        let Ok(summarizer) = self.rules.summarizer(&call.provider, profile) else {
            return;
        };
        if is_slow(&*summarizer) {
            let aim = aim.clone();
            self.background
                .prefetch(task, PrefetchJob { aim, summarizer });
        }
    }

    /// Starts writing a summary in a thread of its own, unless there is one.
    pub fn start_prefetch(
        self: &Arc<Self>,
        task: Uuid,
        job: PrefetchJob,
    ) -> Result<(), ConversationError> {
        let mut open = match self.pool.try_lease(task) {
            TryLease::Leased(open) => open,
            // The holder of the lease queues a prefetch again.
            TryLease::Busy => return Ok(()),
            TryLease::Closed => self.pool.lease_in_process(task)?,
        };
        if open.is_preparing || open.prepared.is_some() {
            return Ok(());
        }
        open.is_preparing = true;
        drop(open);
        let core = Arc::clone(self);
        let work = move || {
            if let Err(error) = core.prefetch(task, job) {
                core.pool.report(&error);
            }
        };
        let thread = std::thread::Builder::new().name("summary".to_owned());
        if thread.spawn(work).is_err() {
            self.pool.lease(task)?.is_preparing = false;
        }
        Ok(())
    }

    fn prefetch(&self, task: Uuid, mut job: PrefetchJob) -> Result<(), ConversationError> {
        let log = self.contexts.read(task);
        let written = log.map(|log| prepare(&log, &job.aim, &mut *job.summarizer));
        let mut open = self.pool.lease(task)?;
        // Reset the flag also after a failure: requests would wait for ever.
        open.is_preparing = false;
        let (prepared, spent) = written??;
        open.prepared = prepared;
        self.record_usage(&mut open, spent)
    }

    /// Writes the summary that a fold needs at once, for a task that is marked `is_preparing`. Others use the task
    /// meanwhile.
    pub fn write_summary(
        &self,
        task: Uuid,
        aim: &Aim,
        summary: &mut RecordedSummary,
    ) -> Result<(), ConversationError> {
        let log = self.contexts.read(task);
        let rehearsed = log.map(|log| rehearse(&log, aim, summary));
        summary.end_rehearsal();
        self.pool.lease(task)?.is_preparing = false;
        match rehearsed? {
            Ok(_) | Err(ManageError::Floor { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Records the usage of a summarizer's calls.
    pub fn record_usage(
        &self,
        open: &mut TaskLease,
        spent: impl IntoIterator<Item = Usage>,
    ) -> Result<(), ConversationError> {
        for usage in spent {
            open.writer.usage(usage)?;
            open.wrote();
        }
        Ok(())
    }
}
