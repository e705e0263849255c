//! Failures of tools, as a model reads them.

use infold::search::SearchError;
use infold_store::{LogError, StepError, TaskError};

use crate::api::ApiError;

/// The reason that a tool has no result, with a hint, in one text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolFailure(String);

impl ToolFailure {
    /// Makes a failure of a text.
    pub fn new(text: impl Into<String>) -> ToolFailure {
        ToolFailure(text.into())
    }

    /// Adds a hint.
    pub(super) fn hint(self, hint: &str) -> ToolFailure {
        ToolFailure(format!("{}; {hint}", self.0))
    }
}

impl From<ApiError> for ToolFailure {
    fn from(error: ApiError) -> ToolFailure {
        ToolFailure(error.text())
    }
}

impl From<TaskError> for ToolFailure {
    fn from(error: TaskError) -> ToolFailure {
        let is_unknown = matches!(error, TaskError::Unknown { .. });
        let failure = ToolFailure::from(ApiError::from(error));
        if is_unknown {
            return failure
                .hint("it may have been deleted: list_conversations names those there are");
        }
        failure
    }
}

impl From<StepError> for ToolFailure {
    fn from(error: StepError) -> ToolFailure {
        ApiError::from(error).into()
    }
}

impl From<LogError> for ToolFailure {
    fn from(error: LogError) -> ToolFailure {
        ApiError::from(error).into()
    }
}

impl From<SearchError> for ToolFailure {
    fn from(error: SearchError) -> ToolFailure {
        match error {
            SearchError::Pattern(error) => ToolFailure::new(error.to_string()),
            SearchError::Task(error) => error.into(),
        }
    }
}
