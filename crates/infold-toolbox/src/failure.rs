//! Why a call did not work.

/// Why a call did not work, as the model reads it: what is wrong and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct CallProblem {
    /// One line.
    pub reason: String,
    /// The output of the tool before the failure, if any.
    pub output: Option<String>,
}

impl CallProblem {
    pub fn new(reason: impl Into<String>) -> CallProblem {
        CallProblem {
            reason: reason.into(),
            output: None,
        }
    }
}
