//! Designs of stand-ins for folded messages. Each can be written for any budget, so that they are compared at equal size.

mod bm25;
mod lexrank;
mod names;
mod newest;
mod oracle;
mod prose;
mod selection;
mod sentences;

use std::collections::HashMap;

use infold::Extract;
use infold_log::Seq;
use infold_wire::Message;
use infold_wire::tokens::{Encoding, count};

use crate::{FoldPoint, ParsedSession, RecordedSession};
use prose::Prose;
use selection::Selection;

named! {
    /// A way to write a stand-in for folded messages.
    Design,
    /// All designs, in the order in which they are printed.
    DESIGNS: 10
    /// The summary of the built-in summarizer.
    Extractive = "extractive",
    /// The summary that the session's own agent wrote at the time.
    Agent = "agent",
    /// The newest text of the folded messages, unchanged.
    Truncation = "truncation",
    /// Sentences of user and assistant, taken evenly from all folded messages.
    Prose = "prose",
    /// Sentences and lines that match the last request, by BM25.
    Bm25 = "bm25",
    /// The most central sentences of user and assistant, by LexRank.
    LexRank = "lexrank",
    /// The messages of the user, the newest first.
    Requests = "requests",
    /// The names that occur most often, and nothing else: not a summary, but a baseline.
    Frequent = "frequent",
    /// The names that occur in most messages and were used last, and nothing else.
    Names = "names",
    /// The pieces with most of the terms wanted later, chosen by reading the rest of the session: not a summary, but an
    /// upper bound.
    Oracle = "oracle",
}

/// Returns the number of tokens of a text. All designs count with the same encoding, so that their sizes compare.
pub fn count_tokens(text: &str) -> u64 {
    count(Encoding::O200k, text)
}

/// Writes stand-ins of any size for the messages that were folded at one point.
pub struct StandInWriter<'a> {
    session: &'a RecordedSession,
    parsed: &'a ParsedSession,
    point: &'a FoldPoint,
    // The fields below cache what a design computes before it knows the budget. Each is set when the design is first
    // written.
    extract: Option<Extract>,
    prose: Option<Prose>,
    selections: HashMap<Design, Selection>,
}

impl<'a> StandInWriter<'a> {
    /// Returns the writer of stand-ins for a point of a session.
    pub fn new(
        session: &'a RecordedSession,
        parsed: &'a ParsedSession,
        point: &'a FoldPoint,
    ) -> StandInWriter<'a> {
        StandInWriter {
            session,
            parsed,
            point,
            extract: None,
            prose: None,
            selections: HashMap::new(),
        }
    }

    /// Writes a stand-in of at most `budget` tokens. The agent's own summary is returned unchanged, whatever its size.
    pub fn write(&mut self, design: Design, budget: u64) -> String {
        let (parsed, point) = (self.parsed, self.point);
        let covers = &point.covers[..];
        let selection: fn(&ParsedSession, &FoldPoint) -> Selection = match design {
            Design::Agent => return point.summary.clone(),
            Design::Extractive => {
                let session = self.session;
                let extract = self
                    .extract
                    .get_or_insert_with(|| build_extract(session, point));
                return extract.write(budget as usize);
            }
            Design::Truncation => return newest::truncation(parsed, covers, budget),
            Design::Requests => return newest::requests(parsed, covers, budget),
            Design::Prose => {
                let prose = self.prose.get_or_insert_with(|| Prose::new(parsed, covers));
                return prose.write(budget);
            }
            Design::Bm25 => bm25::selection,
            Design::LexRank => lexrank::selection,
            Design::Frequent => names::frequent,
            Design::Names => names::recent,
            Design::Oracle => oracle::selection,
        };
        let selection = self
            .selections
            .entry(design)
            .or_insert_with(|| selection(parsed, point));
        selection.write(budget)
    }
}

/// Gives all messages before a point to the built-in summarizer, because a summary need not repeat the messages that stay
/// visible. A message that cannot be parsed is left out.
fn build_extract(session: &RecordedSession, point: &FoldPoint) -> Extract {
    let mut extract = Extract::new();
    for place in 0..point.at {
        let seq = Seq::new(place as u64 + 1);
        if let (Some(seq), Ok(message)) = (seq, Message::parse(&session.messages[place])) {
            if point.covers.binary_search(&place).is_ok() {
                extract.message(seq, &message);
            } else {
                extract.stays(&message);
            }
        }
    }
    extract
}
