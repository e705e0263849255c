//! What may stand in for what was folded, each written at any size.

mod bm25;
mod lexrank;
mod names;
mod prose;
mod selection;
mod sentences;
mod verbatim;

use std::collections::HashMap;

use infold_log::Seq;
use infold_wire::Message;
use infold_wire::tokens::{Encoding, count};

use super::{Material, Point, Session};
use infold::Extract;
use prose::Prose;
use selection::Selection;

/// What may stand in for what was folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Design {
    /// What the built-in summarizer writes.
    Extractive,
    /// What the session's own agent wrote.
    Agent,
    /// The newest text of what was folded, as it was.
    Truncation,
    /// Sentences of user and assistant, evenly from the whole range.
    Prose,
    /// Sentences and lines that match the last request, by BM25.
    Bm25,
    /// The most central sentences of user and assistant, by LexRank.
    LexRank,
    /// What the user said, the newest first.
    Requests,
    /// The names that occur most often, and nothing else: no summary, but a point of reference.
    Frequent,
    /// The names that occur in most messages and were used last, and nothing else.
    Names,
}

/// All designs, in the order in which they are printed.
pub const DESIGNS: [Design; 9] = [
    Design::Extractive,
    Design::Agent,
    Design::Truncation,
    Design::Prose,
    Design::Bm25,
    Design::LexRank,
    Design::Requests,
    Design::Frequent,
    Design::Names,
];

impl Design {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Design::Extractive => "extractive",
            Design::Agent => "agent",
            Design::Truncation => "truncation",
            Design::Prose => "prose",
            Design::Bm25 => "bm25",
            Design::LexRank => "lexrank",
            Design::Requests => "requests",
            Design::Frequent => "frequent",
            Design::Names => "names",
        }
    }
}

/// Tokens of a text, the same for all designs.
pub fn size(text: &str) -> u64 {
    count(Encoding::O200k, text)
}

/// What was folded at one point, read once, for writing stand-ins of any size.
pub struct Candidates<'a> {
    session: &'a Session,
    material: &'a Material,
    point: &'a Point,
    extract: Option<Extract>,
    prose: Option<Prose>,
    selections: HashMap<Design, Selection>,
}

impl<'a> Candidates<'a> {
    /// Returns the candidates for a point.
    pub fn new(session: &'a Session, material: &'a Material, point: &'a Point) -> Candidates<'a> {
        Candidates {
            session,
            material,
            point,
            extract: None,
            prose: None,
            selections: HashMap::new(),
        }
    }

    /// Writes a stand-in of at most so many tokens; that of the agent is as it was, whatever its size.
    pub fn write(&mut self, design: Design, budget: u64) -> String {
        let (material, covers) = (self.material, &self.point.covers[..]);
        match design {
            Design::Agent => self.point.summary.clone(),
            Design::Extractive => {
                let extract = self
                    .extract
                    .get_or_insert_with(|| read(self.session, self.point));
                extract.write(budget as usize)
            }
            Design::Truncation => verbatim::truncation(material, covers, budget),
            Design::Requests => verbatim::requests(material, covers, budget),
            Design::Prose => {
                let prose = self
                    .prose
                    .get_or_insert_with(|| Prose::new(material, covers));
                prose.write(budget)
            }
            Design::Bm25 | Design::LexRank | Design::Frequent | Design::Names => {
                let point = self.point;
                let selection = self.selections.entry(design);
                let selection = selection.or_insert_with(|| match design {
                    Design::Bm25 => bm25::selection(material, point),
                    Design::LexRank => lexrank::selection(material, covers),
                    Design::Frequent => names::frequent(material, covers),
                    _ => names::recent(material, covers),
                });
                selection.write(budget)
            }
        }
    }
}

/// Shows the messages of a point to the built-in summarizer: those that it folds, and those that stay.
fn read(session: &Session, point: &Point) -> Extract {
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
