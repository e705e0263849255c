//! The built-in summarizer.

use super::{Summarizer, SummarizerError, SummaryRequest};

/// Writes a summary from the structure of the messages alone: no model, no network.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extractive;

impl Summarizer for Extractive {
    fn name(&self) -> String {
        "extractive".to_owned()
    }

    fn takes(&self, _: &SummaryRequest<'_>) -> Option<u64> {
        None
    }

    fn summarize(&mut self, request: &SummaryRequest<'_>) -> Result<String, SummarizerError> {
        let form = request.strategy.form;
        Ok(request.extract.write_as(form, request.budget as usize))
    }
}
