//! The permission of the hooks to fold by hand.

use infold_log::steer::Refused;
use infold_store::{Log, StepError, Trigger};
use serde_json::{Value, json};

use super::tokens;
use crate::Hooks;

/// The permission to fold by hand, given by the hooks.
#[derive(Debug)]
pub struct FoldPermission<'a> {
    hooks: &'a Hooks,
    /// The details that they were given.
    details: Value,
}

impl<'a> FoldPermission<'a> {
    /// Asks for it. `step` is the name of the step.
    pub fn ask(hooks: &'a Hooks, log: &Log, step: &str) -> Result<FoldPermission<'a>, StepError> {
        let details = json!({
            "task": log.dir().file_name().map(|name| name.to_string_lossy()),
            "trigger": Trigger::Manual.name(),
            "step": step,
            "tokens": tokens(log)?,
        });
        match hooks.before(&details) {
            Ok(()) => Ok(FoldPermission { hooks, details }),
            Err(why) => Err(Refused::Vetoed { why }),
        }
    }

    /// Runs the hooks after a fold; returns their error.
    pub fn tell(&self, outcome: &Value) -> Option<String> {
        let mut details = self.details.clone();
        details["outcome"] = outcome.clone();
        self.hooks.after(&details).err()
    }
}
