//! Reads the section `work`: how tasks are carried out, and where they stop.

use std::path::PathBuf;
use std::time::Duration;

use super::reader::{ConfigReader, Scalar};
use super::sections::{TOKENS, directory};
use super::yaml::YamlNode;
use crate::profile::Setting;

/// The settings for carrying out tasks, and their limits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkConfig {
    /// The most model calls for a task.
    pub max_steps: Option<Setting<u64>>,
    /// The most tokens of a task.
    pub max_tokens: Option<Setting<u64>>,
    /// The highest cost of a task in dollars.
    pub max_cost: Option<Setting<f64>>,
    /// The most minutes of a task from its first start.
    pub max_minutes: Option<Setting<u64>>,
    /// The most tokens of a tool's output that the model is shown.
    pub result_tokens: Option<Setting<u64>>,
    /// Whether the model may run commands in the workspace.
    pub commands: Option<Setting<bool>>,
    /// Whether snapshots of the workspace are taken before the first step and after each step that may have changed
    /// files.
    pub checkpoints: Option<Setting<bool>>,
    /// The workspace of tasks that name none.
    pub workspace: Option<Setting<PathBuf>>,
    /// The system prompt, instead of the built-in one.
    pub system_prompt: Option<Setting<String>>,
    /// The number of tasks that a worker carries out at a time.
    pub concurrency: Option<Setting<u64>>,
    /// The number of tasks of one user that are carried out at a time.
    pub per_user: Option<Setting<u64>>,
    /// The number of attempts without progress before a task has failed.
    pub max_attempts: Option<Setting<u64>>,
    /// The seconds before the second attempt; each further one waits twice as long.
    pub retry_seconds: Option<Setting<u64>>,
    /// After how many seconds without a sign of life another worker takes a task.
    pub lease_seconds: Option<Setting<u64>>,
}

const KEYS: &str = "max_steps max_tokens max_cost max_minutes result_tokens commands checkpoints workspace system_prompt concurrency per_user max_attempts retry_seconds lease_seconds";

/// The longest wait before an attempt.
const MAX_RETRY_WAIT: Duration = Duration::from_secs(600);

pub(super) fn read(reader: &mut ConfigReader<'_>, node: &YamlNode) -> WorkConfig {
    let home = (reader.env)("HOME");
    let mut section = reader.section("work", node, KEYS);
    let dollars = |scalar: &Scalar| scalar.number().filter(|cost| *cost > 0.0);
    let path = |scalar: &Scalar| directory(&scalar.text, home.as_deref());
    let count = |most: u64| {
        move |scalar: &Scalar| {
            let number = scalar.integer();
            number.filter(|number| (1..=most).contains(number))
        }
    };
    let seconds = |scalar: &Scalar| scalar.integer().filter(|seconds| *seconds <= 86_400);
    WorkConfig {
        max_steps: section.positive("max_steps", "a number of steps"),
        max_tokens: section.positive("max_tokens", TOKENS),
        max_cost: section.value("max_cost", "a number of dollars", dollars),
        max_minutes: section.positive("max_minutes", "a number of minutes"),
        result_tokens: section.positive("result_tokens", TOKENS),
        commands: section.boolean("commands"),
        checkpoints: section.boolean("checkpoints"),
        workspace: section.value("workspace", "a directory", path),
        system_prompt: section.text("system_prompt"),
        concurrency: section.value("concurrency", "a number from 1 to 1000", count(1000)),
        per_user: section.positive("per_user", "a number of tasks"),
        max_attempts: section.value(
            "max_attempts",
            "a number from 1 to 1000000",
            count(1_000_000),
        ),
        retry_seconds: section.value(
            "retry_seconds",
            "a number of seconds, at most 86400",
            seconds,
        ),
        lease_seconds: section.value("lease_seconds", "a number from 1 to 86400", count(86_400)),
    }
}

impl WorkConfig {
    /// Returns the most model calls for a task.
    pub fn max_steps(&self) -> u64 {
        or(&self.max_steps, 200)
    }

    /// Returns whether snapshots of the workspace are taken.
    pub fn checkpoints(&self) -> bool {
        self.checkpoints.as_ref().is_none_or(|set| set.value)
    }

    /// Returns the number of tasks that a worker carries out at a time.
    pub fn concurrency(&self) -> usize {
        or(&self.concurrency, 1) as usize
    }

    /// Returns the number of attempts without progress before a task has failed.
    pub fn max_attempts(&self) -> u32 {
        u32::try_from(or(&self.max_attempts, 5)).unwrap_or(u32::MAX)
    }

    /// For how long a worker has a task without a sign of life.
    pub fn lease(&self) -> Duration {
        Duration::from_secs(or(&self.lease_seconds, 60))
    }

    /// Returns the wait after this number of attempts.
    pub fn retry_wait(&self, attempts: u32) -> Duration {
        let first = Duration::from_secs(or(&self.retry_seconds, 5));
        let doubled = first.saturating_mul(1 << attempts.saturating_sub(1).min(16));
        doubled.min(MAX_RETRY_WAIT.max(first))
    }
}

fn or(set: &Option<Setting<u64>>, default: u64) -> u64 {
    set.as_ref().map_or(default, |set| set.value)
}
