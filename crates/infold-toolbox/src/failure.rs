//! Why a call did not work.

/// The reason why a call failed, for the model: the problem and a remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct CallProblem {
    /// The reason, in one line.
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
