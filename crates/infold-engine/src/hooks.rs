//! Hooks: commands that are run before and after a fold.

use std::time::Duration;

use crate::Config;
use crate::profile::Setting;
use crate::subprocess::{self, CommandEnd};

/// Commands that are run around folds, with a JSON object on their standard input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Runs before a pass or a manual fold; if it fails, nothing is folded.
    pub before_fold: Option<String>,
    /// Run after something was folded.
    pub after_fold: Option<String>,
}

const HOOK_TIMEOUT: Duration = Duration::from_secs(60);

/// The most bytes that a hook may print; the output is not used.
const MAX_HOOK_OUTPUT_BYTES: u64 = 1 << 20;

impl Hooks {
    /// Returns the configured hooks.
    pub fn of(config: &Config) -> Hooks {
        let command = |set: &Option<Setting<String>>| set.as_ref().map(|set| set.value.clone());
        Hooks {
            before_fold: command(&config.hooks.before_fold),
            after_fold: command(&config.hooks.after_fold),
        }
    }

    /// Runs `before_fold`; returns why it refuses.
    pub fn before(&self, details: &serde_json::Value) -> Result<(), String> {
        run("before_fold", self.before_fold.as_deref(), details)
    }

    /// Runs `after_fold`; returns why it failed.
    pub fn after(&self, details: &serde_json::Value) -> Result<(), String> {
        run("after_fold", self.after_fold.as_deref(), details)
    }
}

fn run(name: &str, command: Option<&str>, details: &serde_json::Value) -> Result<(), String> {
    let Some(command) = command else {
        return Ok(());
    };
    let input = format!("{details}\n").into_bytes();
    let shell = subprocess::shell(command);
    let end = subprocess::run(shell, Some(input), MAX_HOOK_OUTPUT_BYTES, HOOK_TIMEOUT);
    let why = match end {
        Ok(CommandEnd::Succeeded { .. }) => return Ok(()),
        Ok(CommandEnd::Failed { status, stderr }) => {
            let last = stderr.trim().lines().next_back();
            let last = last.map(|line| format!(": {}", line.trim()));
            format!("ended with {status}{}", last.unwrap_or_default())
        }
        Ok(CommandEnd::TimedOut) => {
            let limit = HOOK_TIMEOUT.as_secs();
            format!("took more than {limit} s and was stopped")
        }
        Ok(CommandEnd::TooMuchOutput) => "prints without end".to_owned(),
        Err(error) => format!("could not be run: {error}"),
    };
    Err(format!("the hook {name} `{command}` {why}"))
}
