//! A summarizer that is a Python function.

use std::sync::{Arc, Mutex, PoisonError};

use infold::Summarizer;
use infold::summarizer::{SummarizerError, SummaryRequest};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

/// An exception of a function that is no failure of the summary, such as `KeyboardInterrupt`.
#[derive(Clone, Default)]
pub struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    fn put(&self, error: PyErr) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    pub fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Asks a Python function for a summary: it gets the transcript and how many tokens the summary may have.
pub struct FunctionSummarizer {
    pub function: Py<PyAny>,
    pub name: String,
    pub raised: Raised,
}

impl Summarizer for FunctionSummarizer {
    fn name(&self) -> String {
        format!("function:{}", self.name)
    }

    fn takes(&self, _: &SummaryRequest<'_>) -> Option<u64> {
        None
    }

    fn summarize(&mut self, request: &SummaryRequest<'_>) -> Result<String, SummarizerError> {
        let file = request.transcript()?;
        let bytes = std::fs::read(file.path()).map_err(|source| SummarizerError::Start {
            command: self.name.clone(),
            source,
        })?;
        let text = String::from_utf8_lossy(&bytes);
        Python::attach(|py| {
            let returned = self.function.bind(py).call1((text, request.budget));
            returned
                .and_then(|text| text.extract::<String>())
                .map_err(|error| self.failed(py, error))
        })
    }
}

impl FunctionSummarizer {
    /// An `Exception` is a summary that failed, for which there is a fallback; anything else ends the fold.
    fn failed(&self, py: Python<'_>, error: PyErr) -> SummarizerError {
        if !error.is_instance_of::<PyException>(py) {
            self.raised.put(error);
            return SummarizerError::Cancelled;
        }
        SummarizerError::Failed {
            command: self.name.clone(),
            status: error
                .get_type(py)
                .name()
                .map_or_else(|_| "an exception".to_owned(), |name| name.to_string()),
            stderr: error.value(py).to_string(),
        }
    }
}
