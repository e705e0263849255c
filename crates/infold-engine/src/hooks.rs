use std::time::Duration;

use crate::Config;
use crate::child::{self, Ended};
use crate::profile::Set;

/// Commands that are told of folds, a JSON object on their standard input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Run before anything is folded, by a pass or by hand; ending badly, it keeps that from happening.
    pub before_fold: Option<String>,
    /// Run after something was folded.
    pub after_fold: Option<String>,
}

/// How long a hook may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much a hook may print; nobody reads it.
const MOST: u64 = 1 << 20;

impl Hooks {
    /// Those that are configured.
    pub fn of(config: &Config) -> Hooks {
        let command = |set: &Option<Set<String>>| set.as_ref().map(|set| set.value.clone());
        Hooks {
            before_fold: command(&config.hooks.before_fold),
            after_fold: command(&config.hooks.after_fold),
        }
    }

    /// Asks whether to fold; says why not.
    pub fn before(&self, told: &serde_json::Value) -> Result<(), String> {
        run("before_fold", self.before_fold.as_deref(), told)
    }

    /// Tells of what was folded; says what went wrong.
    pub fn after(&self, told: &serde_json::Value) -> Result<(), String> {
        run("after_fold", self.after_fold.as_deref(), told)
    }
}

fn run(name: &str, command: Option<&str>, told: &serde_json::Value) -> Result<(), String> {
    let Some(command) = command else {
        return Ok(());
    };
    let input = format!("{told}\n").into_bytes();
    let said = |text: &str| match text.trim().lines().next_back() {
        Some(line) => format!(": {}", line.trim()),
        None => String::new(),
    };
    match child::run(child::shell(command), Some(input), MOST, PATIENCE) {
        Ok(Ended::Well { .. }) => Ok(()),
        Ok(Ended::Badly { status, stderr }) => Err(format!(
            "the hook {name} `{command}` ended with {status}{}",
            said(&stderr)
        )),
        Ok(Ended::Hung) => Err(format!(
            "the hook {name} `{command}` took more than {} s and was stopped",
            PATIENCE.as_secs()
        )),
        Ok(Ended::Endless) => Err(format!("the hook {name} `{command}` prints without end")),
        Err(error) => Err(format!(
            "the hook {name} `{command}` could not be run: {error}"
        )),
    }
}
