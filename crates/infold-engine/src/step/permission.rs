use infold_log::steer::Refused;
use infold_store::{Log, StepError, Trigger};
use serde_json::{Value, json};

use super::tokens;
use crate::Hooks;

/// The leave to fold by hand, given by the hooks.
#[derive(Debug)]
pub struct Permission<'a> {
    hooks: &'a Hooks,
    /// What they were told.
    told: Value,
}

impl<'a> Permission<'a> {
    /// Asks for it. `step` is what the step is called.
    pub fn ask(hooks: &'a Hooks, log: &Log, step: &str) -> Result<Permission<'a>, StepError> {
        let told = json!({
            "task": log.dir().file_name().map(|name| name.to_string_lossy()),
            "trigger": Trigger::Manual.name(),
            "step": step,
            "tokens": tokens(log)?,
        });
        match hooks.before(&told) {
            Ok(()) => Ok(Permission { hooks, told }),
            Err(why) => Err(Refused::Vetoed { why }),
        }
    }

    /// Tells what was folded; returns what went wrong with that.
    pub fn tell(&self, outcome: &Value) -> Option<String> {
        let mut told = self.told.clone();
        told["outcome"] = outcome.clone();
        self.hooks.after(&told).err()
    }
}
