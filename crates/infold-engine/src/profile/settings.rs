//! One layer of settings, with the place where each value was set.

use std::fmt;

use super::KeepRecent;

/// One layer of settings; missing values are taken from the next layer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// The most tokens of a request.
    pub window: Option<Setting<u64>>,
    /// When to start folding, as written: see [`Threshold::inherit`](super::Threshold::inherit).
    pub threshold: Option<Setting<f64>>,
    /// Whether to fold at the threshold automatically.
    pub auto: Option<Setting<bool>>,
    /// The newest part of a conversation that is kept.
    pub keep: Option<Setting<KeepRecent>>,
    /// The largest size of a summary relative to the messages that it replaces.
    pub ratio: Option<Setting<f64>>,
    /// The model that writes summaries.
    pub condense_model: Option<Setting<String>>,
    /// The prompt for it.
    pub prompt: Option<Setting<String>>,
    /// The name of the strategy.
    pub strategy: Option<Setting<String>>,
    /// The requested limit of a reply in tokens.
    pub max_tokens: Option<Setting<u64>>,
}

/// A value and where it was set.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// The place where it was set.
    pub origin: Origin,
}

/// The place where a value was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// In the call: a flag of the command.
    Call,
    /// In the configuration.
    Line {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
    },
    /// In a variable of the environment.
    Env(String),
    /// In the built-in table of models, in the row of this name.
    Table(String),
    /// By a strategy of this name.
    Strategy(String),
    /// The built-in default.
    Default,
}

impl<T> Setting<T> {
    /// Joins a value and where it was set.
    pub fn new(value: T, origin: Origin) -> Setting<T> {
        Setting { value, origin }
    }

    /// Returns a value that was set in the call.
    pub fn call(value: T) -> Setting<T> {
        Setting::new(value, Origin::Call)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Call => write!(f, "command line"),
            Origin::Line { file, line } => write!(f, "{file}:{line}"),
            Origin::Env(name) => write!(f, "environment {name}"),
            Origin::Table(name) => write!(f, "model table: {name}"),
            Origin::Strategy(name) => write!(f, "strategy {name}"),
            Origin::Default => write!(f, "default"),
        }
    }
}
