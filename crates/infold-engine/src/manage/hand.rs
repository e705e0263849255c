use infold_log::steer::{self, Cover};
use infold_log::{Cause, Event, EventId, Fold, Hides, Role, Seq, State};
use infold_store::{Log, LogError, StepError, Trigger, Usage, Writer, stand_in_tokens};

use crate::extract::outline;

/// What takes the steps of a pass: a task that is written to, or a rehearsal.
pub enum Hand<'a> {
    /// Appends events.
    Writes(&'a mut Writer),
    /// Only imagines what they would lead to.
    Imagines {
        /// The log.
        log: &'a Log,
        /// The state it would be in.
        state: State,
    },
}

impl Hand<'_> {
    /// The log behind it.
    pub fn log(&self) -> &Log {
        match self {
            Hand::Writes(writer) => writer.log(),
            Hand::Imagines { log, .. } => log,
        }
    }

    /// The state that the steps so far led to.
    pub fn state(&self) -> &State {
        match self {
            Hand::Writes(writer) => writer.log().state(),
            Hand::Imagines { state, .. } => state,
        }
    }

    /// Folds what a cover covers; returns the fold, if it was made.
    pub fn fold(
        &mut self,
        cause: Cause,
        cover: &Cover,
        trigger: Trigger,
        stand_in: Vec<(Role, String)>,
    ) -> Result<Option<EventId>, LogError> {
        match self {
            Hand::Writes(writer) => writer.fold(cause, cover, trigger, stand_in).map(Some),
            Hand::Imagines { log, state } => {
                let tokens = stand_in_tokens(&stand_in);
                imagine(log, state, &steer::folded(cause, cover, tokens))?;
                Ok(None)
            }
        }
    }

    /// Records what a summary took.
    pub fn usage(&mut self, usage: Usage) -> Result<(), LogError> {
        match self {
            Hand::Writes(writer) => writer.usage(usage).map(drop),
            Hand::Imagines { .. } => Ok(()),
        }
    }

    /// Masks a part of a message; returns the mask, if it was made.
    pub fn mask(
        &mut self,
        seq: Seq,
        part: u32,
        hides: u64,
        tokens: u64,
    ) -> Result<Option<EventId>, StepError> {
        match self {
            Hand::Writes(writer) => writer.mask_described(seq, part, outline).map(Some),
            Hand::Imagines { log, state } => {
                let hides = Hides::Part {
                    seq,
                    part,
                    tokens: hides,
                };
                imagine(log, state, &Event::Fold(Fold { hides, tokens }))?;
                Ok(None)
            }
        }
    }
}

impl Hand<'_> {
    /// Shows head and tail of a tool result, so many tokens; returns the mask, if it was made.
    pub fn clip(
        &mut self,
        seq: Seq,
        part: u32,
        hides: u64,
        keep: u64,
    ) -> Result<Option<EventId>, StepError> {
        match self {
            Hand::Writes(writer) => writer.clip(seq, part, keep).map(Some),
            Hand::Imagines { .. } => self.mask(seq, part, hides, keep),
        }
    }

    /// Shows a part of a message as it came again.
    pub fn unmask(&mut self, mask: EventId) -> Result<(), StepError> {
        match self {
            Hand::Writes(writer) => writer.unfold(mask).map(drop),
            Hand::Imagines { log, state } => Ok(imagine(log, state, &Event::Unfold(mask))?),
        }
    }
}

fn imagine(log: &Log, state: &mut State, event: &Event) -> Result<(), LogError> {
    state.event(event, None, 0, log).map(|_| ())
}
