//! Takes the steps of a pass: on a log, or only simulated.

use infold_log::steer::{self, Cover};
use infold_log::{Cause, Event, EventId, Fold, Hides, Role, Seq, State};
use infold_store::{Log, LogError, StepError, Trigger, Usage, Writer, stand_in_tokens};

use crate::extract::outline;

/// Takes the steps of a pass.
pub enum Executor<'a> {
    /// Appends events.
    Writes(&'a mut Writer),
    /// Only computes the state after the events.
    Simulates {
        /// The log.
        log: &'a Log,
        /// The state it would be in.
        state: Box<State>,
    },
}

impl Executor<'_> {
    /// Returns the log.
    pub fn log(&self) -> &Log {
        match self {
            Executor::Writes(writer) => writer.log(),
            Executor::Simulates { log, .. } => log,
        }
    }

    /// Returns the state after the steps so far.
    pub fn state(&self) -> &State {
        match self {
            Executor::Writes(writer) => writer.log().state(),
            Executor::Simulates { state, .. } => state,
        }
    }

    /// Folds a cover; returns the fold, if it was appended.
    pub fn fold(
        &mut self,
        cause: Cause,
        cover: &Cover,
        trigger: Trigger,
        stand_in: Vec<(Role, String)>,
    ) -> Result<Option<EventId>, LogError> {
        match self {
            Executor::Writes(writer) => writer.fold(cause, cover, trigger, stand_in).map(Some),
            Executor::Simulates { log, state } => {
                let tokens = stand_in_tokens(&stand_in);
                simulate(log, state, &steer::folded(cause, cover, tokens))?;
                Ok(None)
            }
        }
    }

    /// Records the usage of a summary.
    pub fn usage(&mut self, usage: Usage) -> Result<(), LogError> {
        match self {
            Executor::Writes(writer) => writer.usage(usage).map(drop),
            Executor::Simulates { .. } => Ok(()),
        }
    }

    /// Masks a part of a message; returns the mask, if it was appended.
    pub fn mask(
        &mut self,
        seq: Seq,
        part: u32,
        hides: u64,
        tokens: u64,
    ) -> Result<Option<EventId>, StepError> {
        match self {
            Executor::Writes(writer) => writer.mask_described(seq, part, outline).map(Some),
            Executor::Simulates { log, state } => {
                let hides = Hides::Part {
                    seq,
                    part,
                    tokens: hides,
                };
                simulate(log, state, &Event::Fold(Fold { hides, tokens }))?;
                Ok(None)
            }
        }
    }

    /// Shows head and tail of a tool result, this many tokens; returns the mask, if it was appended.
    pub fn clip(
        &mut self,
        seq: Seq,
        part: u32,
        hides: u64,
        keep: u64,
    ) -> Result<Option<EventId>, StepError> {
        match self {
            Executor::Writes(writer) => writer.clip(seq, part, keep).map(Some),
            Executor::Simulates { .. } => self.mask(seq, part, hides, keep),
        }
    }

    /// Opens a mask.
    pub fn unmask(&mut self, mask: EventId) -> Result<(), StepError> {
        match self {
            Executor::Writes(writer) => writer.unfold(mask).map(drop),
            Executor::Simulates { log, state } => Ok(simulate(log, state, &Event::Unfold(mask))?),
        }
    }
}

fn simulate(log: &Log, state: &mut State, event: &Event) -> Result<(), LogError> {
    state.event(event, None, 0, log).map(|_| ())
}
