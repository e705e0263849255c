use std::fmt;

use super::Keep;

/// One layer of settings; what it leaves out, the next one says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// How many tokens a request may hold.
    pub window: Option<Set<u64>>,
    /// When to start folding, as it was written: see [`Threshold::inherit`](super::Threshold::inherit).
    pub threshold: Option<Set<f64>>,
    /// Whether to fold at the threshold without being told to.
    pub auto: Option<Set<bool>>,
    /// How much to keep of what is newest.
    pub keep: Option<Set<Keep>>,
    /// How large a summary may be against what it replaces.
    pub ratio: Option<Set<f64>>,
    /// The model that writes summaries.
    pub condense_model: Option<Set<String>>,
    /// What it is asked.
    pub prompt: Option<Set<String>>,
    /// The name of the strategy.
    pub strategy: Option<Set<String>>,
    /// How many tokens a reply is asked to have at most.
    pub max_tokens: Option<Set<u64>>,
}

/// A value and where it was set.
#[derive(Clone, Debug, PartialEq)]
pub struct Set<T> {
    /// The value.
    pub value: T,
    /// Where it was set.
    pub origin: Origin,
}

/// Where a value was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// By whoever called: a flag of the command.
    Call,
    /// In the configuration.
    Line {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
    },
    /// By a variable of the environment.
    Env(String),
    /// In the built-in table of models, in the row of this name.
    Table(String),
    /// By a strategy of this name.
    Strategy(String),
    /// Nowhere: it is what infold does by itself.
    Default,
}

impl<T> Set<T> {
    /// A value and where it was set.
    pub fn new(value: T, origin: Origin) -> Set<T> {
        Set { value, origin }
    }

    /// A value that the caller gave.
    pub fn call(value: T) -> Set<T> {
        Set::new(value, Origin::Call)
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
