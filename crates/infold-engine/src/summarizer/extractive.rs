use super::{Brief, Summarizer, SummarizerError};

/// Writes a summary from the structure of the messages alone: no model, no network.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extractive;

impl Summarizer for Extractive {
    fn name(&self) -> String {
        "extractive".to_owned()
    }

    fn takes(&self, _: &Brief<'_>) -> Option<u64> {
        None
    }

    fn summarize(&mut self, brief: &Brief<'_>) -> Result<String, SummarizerError> {
        let form = brief.strategy.form;
        Ok(brief.extract.write_as(form, brief.budget as usize))
    }
}
