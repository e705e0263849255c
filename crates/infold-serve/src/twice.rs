//! A summary that is written while nobody has the task locked, and used once somebody has.

use std::collections::VecDeque;

use infold::Summarizer;
use infold::summarizer::{Brief, SummarizerError};
use infold_log::Span;
use infold_store::Usage;

/// A summarizer that is asked twice: first it writes, then it says again what it wrote.
///
/// What it is asked for the second time and did not write is [`SummarizerError::Cancelled`]:
/// the task went another way meanwhile.
pub(crate) struct Twice {
    pen: Box<dyn Summarizer + Send>,
    again: bool,
    written: VecDeque<Written>,
    spent: Vec<Usage>,
}

struct Written {
    asked: Asked,
    text: Result<String, SummarizerError>,
    spent: Vec<Usage>,
}

/// What tells one brief from another, of one task. How long the summary may be is none of it: that
/// depends on all that is shown, and a text that is too long is refused in any case.
#[derive(PartialEq, Eq)]
struct Asked {
    runs: Vec<Span>,
    previous: Option<String>,
    part: (usize, usize),
}

impl Twice {
    /// One that has nothing written yet.
    pub fn new(pen: Box<dyn Summarizer + Send>) -> Twice {
        Twice {
            pen,
            again: false,
            written: VecDeque::new(),
            spent: Vec::new(),
        }
    }

    /// From now on it only says again what it wrote.
    pub fn close(&mut self) {
        self.again = true;
        self.spent.clear();
    }

    /// What was paid for and not asked for again.
    pub fn left(self) -> impl Iterator<Item = Usage> {
        self.written.into_iter().flat_map(|written| written.spent)
    }

    fn write(&mut self, brief: &Brief<'_>) -> Result<String, SummarizerError> {
        let text = self.pen.summarize(brief);
        let spent = self.pen.spent();
        self.spent.extend(spent.iter().cloned());
        let said = match &text {
            Ok(text) => Ok(text.clone()),
            // Why it failed is told the second time; now it only matters that it did.
            Err(_) => Err(SummarizerError::Empty),
        };
        if let Err(error @ (SummarizerError::Cancelled | SummarizerError::Log(_))) = text {
            return Err(error);
        }
        self.written.push_back(Written {
            asked: Asked::of(brief),
            text,
            spent,
        });
        said
    }
}

impl Asked {
    fn of(brief: &Brief<'_>) -> Asked {
        Asked {
            runs: brief.runs.to_vec(),
            previous: brief.previous.map(str::to_owned),
            part: brief.part,
        }
    }
}

impl Summarizer for Twice {
    fn name(&self) -> String {
        self.pen.name()
    }

    fn is_paid(&self) -> bool {
        self.pen.is_paid()
    }

    fn takes(&self, brief: &Brief<'_>) -> Option<u64> {
        self.pen.takes(brief)
    }

    fn summarize(&mut self, brief: &Brief<'_>) -> Result<String, SummarizerError> {
        if !self.again {
            return self.write(brief);
        }
        let asked = Asked::of(brief);
        let next = self.written.pop_front_if(|written| written.asked == asked);
        let Written { text, spent, .. } = next.ok_or(SummarizerError::Cancelled)?;
        self.spent.extend(spent);
        text
    }

    fn spent(&mut self) -> Vec<Usage> {
        std::mem::take(&mut self.spent)
    }
}
