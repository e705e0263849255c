//! The script of the server, request by request.

use std::collections::VecDeque;
use std::fmt;

use crate::{Faults, Model, Seen, Step, agent};

/// The script of the server, request by request.
///
/// Only a request that the model would answer uses up a step: one with a wrong key, an invalid one, one that is too
/// long and one that meets a fault leave the script where it was.
#[derive(Default)]
pub struct Script {
    pub(crate) steps: VecDeque<Step>,
    pub(crate) decide: Option<Box<Decide>>,
    pub(crate) model: Model,
    pub(crate) faults: Option<Faults>,
    pub(crate) watch: Option<Box<Watch>>,
}

pub(crate) type Decide = dyn FnMut(&Seen) -> Step + Send;
pub(crate) type Watch = dyn FnMut(&Seen) + Send;

impl Script {
    /// Returns a script with only the default model.
    pub fn new() -> Script {
        Script::default()
    }

    /// Returns a script of these steps in order, then the default model.
    pub fn steps(steps: impl IntoIterator<Item = Step>) -> Script {
        Script {
            steps: steps.into_iter().collect(),
            ..Script::default()
        }
    }

    /// Returns a script in which a function chooses the step for each request.
    pub fn decide(decide: impl FnMut(&Seen) -> Step + Send + 'static) -> Script {
        Script::new().otherwise(decide)
    }

    /// Sets the function that handles requests after the steps.
    pub fn otherwise(mut self, decide: impl FnMut(&Seen) -> Step + Send + 'static) -> Script {
        self.decide = Some(Box::new(decide));
        self
    }

    /// After the steps, follows the instructions in prompts: ``please run `ls` 3 times``, `please say 40
    /// words`.
    ///
    /// Commands are run by the first of the offered tools that looks like a shell. With `think` it reasons
    /// before it replies.
    pub fn obedient(self, think: bool) -> Script {
        self.otherwise(move |seen| agent::obey(seen, think))
    }

    /// Sets the model behind the script: its window, its key, its strictness.
    pub fn model(mut self, model: Model) -> Script {
        self.model = model;
        self
    }

    /// Lets things go wrong at random.
    pub fn faults(mut self, faults: Faults) -> Script {
        self.faults = Some(faults);
        self
    }

    /// Shows every request to `watch`, answered or not.
    pub fn watch(mut self, watch: impl FnMut(&Seen) + Send + 'static) -> Script {
        self.watch = Some(Box::new(watch));
        self
    }

    /// Returns the next step, and goes on to the one after it unless `stay` is set.
    pub(crate) fn next(&mut self, seen: &Seen, stay: bool) -> Step {
        let step = if stay {
            self.steps.front().cloned()
        } else {
            self.steps.pop_front()
        };
        step.unwrap_or_else(|| match &mut self.decide {
            Some(decide) => decide(seen),
            None => Step::model(),
        })
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script")
            .field("steps", &self.steps)
            .field("decides", &self.decide.is_some())
            .field("model", &self.model)
            .field("faults", &self.faults)
            .finish()
    }
}
