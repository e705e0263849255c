//! The situation of a task: its phase, its permissions, and its environment.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::{Permission, UnknownName};

/// The environment in which a task runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Environment {
    /// Development: a mistake does no harm.
    #[default]
    Dev,
    /// A copy of production.
    Staging,
    /// Production: schemas are narrowed and unknown tools are hidden.
    Production,
}

impl Environment {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Environment::Dev => "dev",
            Environment::Staging => "staging",
            Environment::Production => "production",
        }
    }
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Environment {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Environment, UnknownName> {
        Ok(match text {
            "dev" | "development" => Environment::Dev,
            "staging" => Environment::Staging,
            "prod" | "production" => Environment::Production,
            other => {
                let valid = ["dev", "staging", "prod", "production"];
                return Err(UnknownName::new("environment", other, valid));
            }
        })
    }
}

/// The phase, permissions and environment of a task. Only a policy creates one, so its names are valid.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Situation {
    pub(crate) phase: String,
    pub(crate) permissions: BTreeSet<Permission>,
    pub(crate) environment: Environment,
    pub(crate) is_urgent: bool,
}

/// Overrides of the situation that a policy describes; a member that is `None` keeps the policy's value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SituationChange {
    /// The phase.
    pub phase: Option<String>,
    /// All permissions that are granted.
    pub permissions: Option<Vec<String>>,
    /// The environment.
    pub environment: Option<String>,
    /// Whether the task is urgent.
    pub is_urgent: Option<bool>,
}

impl Situation {
    /// The phase.
    pub fn phase(&self) -> &str {
        &self.phase
    }

    /// The permissions that are granted.
    pub fn permissions(&self) -> impl Iterator<Item = &Permission> {
        self.permissions.iter()
    }

    /// The environment.
    pub fn environment(&self) -> Environment {
        self.environment
    }

    /// Whether the task is urgent.
    pub fn is_urgent(&self) -> bool {
        self.is_urgent
    }

    /// Returns those of the permissions that nothing grants.
    pub(crate) fn missing(&self, required: &[Permission]) -> Vec<Permission> {
        let is_granted = |one: &&Permission| self.permissions.iter().any(|it| it.grants(one));
        let missing = required.iter().filter(|one| !is_granted(one));
        missing.cloned().collect()
    }
}
