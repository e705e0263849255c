//! A summary that is written while the task is not leased, and used once it is.

use std::collections::VecDeque;

use infold::Summarizer;
use infold::summarizer::{SummarizerError, SummaryRequest};
use infold_log::Span;
use infold_store::Usage;

/// A summarizer that records its summaries in a rehearsal, and repeats them in the pass that folds.
///
/// A request that was not rehearsed is answered with [`SummarizerError::Cancelled`]: the task changed meanwhile.
pub(crate) struct RecordedSummary {
    summarizer: Box<dyn Summarizer + Send>,
    is_repeating: bool,
    written: VecDeque<WrittenText>,
    spent: Vec<Usage>,
}

struct WrittenText {
    brief: BriefKey,
    text: Result<String, SummarizerError>,
    spent: Vec<Usage>,
}

/// The key that identifies a request within its task. The length limit is not part of it: it depends on all that is
/// shown, and a text that is too long is refused in any case.
#[derive(PartialEq, Eq)]
struct BriefKey {
    runs: Vec<Span>,
    previous: Option<String>,
    part: (usize, usize),
}

impl RecordedSummary {
    pub fn new(summarizer: Box<dyn Summarizer + Send>) -> RecordedSummary {
        RecordedSummary {
            summarizer,
            is_repeating: false,
            written: VecDeque::new(),
            spent: Vec::new(),
        }
    }

    /// Ends the rehearsal: from now on only recorded summaries are returned.
    pub fn end_rehearsal(&mut self) {
        self.is_repeating = true;
        self.spent.clear();
    }

    /// Returns the usage of summaries that were paid for and not repeated.
    pub fn unrepeated_usage(self) -> impl Iterator<Item = Usage> {
        self.written.into_iter().flat_map(|written| written.spent)
    }

    fn write(&mut self, brief: &SummaryRequest<'_>) -> Result<String, SummarizerError> {
        let text = self.summarizer.summarize(brief);
        let spent = self.summarizer.spent();
        self.spent.extend(spent.iter().cloned());
        let rehearsed = match &text {
            Ok(text) => Ok(text.clone()),
            // The reason is reported when the failure is repeated.
            Err(_) => Err(SummarizerError::Empty),
        };
        if let Err(error @ (SummarizerError::Cancelled | SummarizerError::Log(_))) = text {
            return Err(error);
        }
        self.written.push_back(WrittenText {
            brief: BriefKey::of(brief),
            text,
            spent,
        });
        rehearsed
    }
}

impl BriefKey {
    fn of(brief: &SummaryRequest<'_>) -> BriefKey {
        BriefKey {
            runs: brief.runs.to_vec(),
            previous: brief.previous.map(str::to_owned),
            part: brief.part,
        }
    }
}

impl Summarizer for RecordedSummary {
    fn name(&self) -> String {
        self.summarizer.name()
    }

    fn is_paid(&self) -> bool {
        self.summarizer.is_paid()
    }

    fn takes(&self, brief: &SummaryRequest<'_>) -> Option<u64> {
        self.summarizer.takes(brief)
    }

    fn summarize(&mut self, brief: &SummaryRequest<'_>) -> Result<String, SummarizerError> {
        if !self.is_repeating {
            return self.write(brief);
        }
        let key = BriefKey::of(brief);
        let next = self.written.pop_front_if(|written| written.brief == key);
        let WrittenText { text, spent, .. } = next.ok_or(SummarizerError::Cancelled)?;
        self.spent.extend(spent);
        text
    }

    fn spent(&mut self) -> Vec<Usage> {
        std::mem::take(&mut self.spent)
    }
}
