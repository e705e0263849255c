//! Tracks which terms are visible: shown unchanged, hidden, or in a stand-in.

use std::collections::{HashMap, HashSet};

use infold::StandIn;
use infold_log::{Cause, EventId, Item, Seq, Shows, View};
use infold_store::{Log, LogError, What};

use crate::ParsedSession;
use crate::content::{MAX_QUESTION_NAMES, Needs, StatementIndex, StatementPlace};
use crate::measure::Measure;

/// The number of visible and of hidden parts of a session with each term.
///
/// A part is the text of a message, or one result in it, as a mask hides it.
pub struct TermVisibility<'a> {
    parsed: &'a ParsedSession,
    /// For each term, the number of visible parts with it.
    visible: Vec<u32>,
    /// For each term, the number of hidden parts with it.
    hidden: Vec<u32>,
    /// The state of each message so far.
    messages: Vec<MaskedParts>,
    /// For each term, whether a visible stand-in, stub, note or excerpt contains it.
    in_stand_in: Vec<bool>,
    /// The terms in each stand-in, stub, note and excerpt that was ever shown, sorted.
    stand_ins: HashMap<EventId, Vec<u32>>,
    /// The stand-ins, stubs and notes that are shown.
    shown: Vec<EventId>,
    /// The recalled excerpts that are shown.
    excerpts: Vec<EventId>,
    statements: StatementIndex,
}

/// The masked parts of a visible message; `None` if it is hidden.
type MaskedParts = Option<Vec<u32>>;

/// A visible summary, with the event of its fold.
pub struct ShownSummary {
    pub id: EventId,
    /// The text, without the frame around it.
    pub text: String,
    /// The messages that it hides, counted from zero.
    pub covers: Vec<usize>,
}

impl<'a> TermVisibility<'a> {
    /// Starts before the first message.
    pub fn new(parsed: &'a ParsedSession) -> TermVisibility<'a> {
        let count = parsed.vocabulary.len();
        TermVisibility {
            parsed,
            visible: vec![0; count],
            hidden: vec![0; count],
            messages: Vec::new(),
            in_stand_in: vec![false; count],
            stand_ins: HashMap::new(),
            shown: Vec::new(),
            excerpts: Vec::new(),
            statements: StatementIndex::default(),
        }
    }

    /// Shows the next message.
    pub fn append(&mut self) {
        self.messages.push(Some(Vec::new()));
        self.count_terms(self.messages.len() - 1, true);
    }

    /// Hides a message, as a fold does.
    pub fn hide(&mut self, message: usize) {
        self.set(message, None);
    }

    /// Returns the terms that the next message uses and that are only in folded messages.
    pub fn wanted(&self) -> impl Iterator<Item = u32> + '_ {
        let next = &self.parsed.messages[self.messages.len()];
        let uses = next.uses.iter().copied();
        uses.filter(|term| self.visible[*term as usize] == 0 && self.hidden[*term as usize] > 0)
    }

    /// Counts the references that the next message makes to earlier ones, by where they can be read now.
    pub fn count_used_again(&self) -> Needs {
        let next = &self.parsed.messages[self.messages.len()];
        let mut out = Needs::default();
        for term in &next.uses {
            let (visible, hidden) = (self.visible[*term as usize], self.hidden[*term as usize]);
            let is_again = visible + hidden > 0;
            if is_again && self.parsed.vocabulary.measure(*term) == Measure::References {
                let held_by = |ids: &[EventId]| {
                    let mut held = ids.iter().map(|id| &self.stand_ins[id]);
                    held.any(|terms| terms.binary_search(term).is_ok())
                };
                let is_in_view = visible > 0 || held_by(&self.shown);
                out.count(is_in_view, !is_in_view && held_by(&self.excerpts));
            }
        }
        out
    }

    /// Counts the references of the last messages to earlier statements, and says whether they name so much that they
    /// contain a document rather than a question.
    pub fn count_content(&mut self) -> (Needs, bool) {
        let place = self.messages.len();
        let named = StatementIndex::named(self.parsed, place);
        let is_document = named.len() > MAX_QUESTION_NAMES;
        let mut out = Needs::default();
        for (term, first) in named {
            let parsed = self.parsed;
            let said = self.statements.statements(parsed, term, place);
            let said: Vec<_> = said.cloned().collect();
            let is_before = |place: &StatementPlace| place.message < first;
            if !said.iter().any(|(place, _)| is_before(place)) {
                continue;
            }
            let is_shown = said.iter().any(|(place, _)| {
                // A tool result among the last messages may state it; the text that names it does not.
                (is_before(place) || place.part.is_some()) && self.is_shown(*place)
            });
            let repeated_by = |ids: &[EventId]| {
                let mut before = said.iter().filter(|(place, _)| is_before(place));
                before.any(|(_, statement)| self.statements.is_repeated(ids, term, statement))
            };
            let is_in_view = is_shown || repeated_by(&self.shown);
            let is_recalled = !is_in_view && repeated_by(&self.excerpts);
            out.count(is_in_view, is_recalled);
        }
        (out, is_document)
    }

    fn is_shown(&self, place: StatementPlace) -> bool {
        let masked = self.messages[place.message].as_ref();
        masked.is_some_and(|masked| place.part.is_none_or(|part| !masked.contains(&part)))
    }

    /// Says whether a visible stand-in, stub, note or excerpt contains a term.
    pub fn is_kept(&self, term: u32) -> bool {
        self.in_stand_in[term as usize]
    }

    /// Returns the messages with a term that are hidden or partly masked, the newest first.
    pub fn hidden_in(&self, term: u32) -> impl Iterator<Item = usize> + '_ {
        let occurs = self.parsed.occurs[term as usize].iter().rev();
        let occurs = occurs.map(|message| *message as usize);
        occurs.filter(|message| {
            let shown = self.messages.get(*message);
            shown.is_some_and(|masked| *masked != Some(Vec::new()))
        })
    }

    /// Updates everything to the present view, after a fold.
    pub fn update(&mut self, view: &View, log: &Log) -> Result<(), LogError> {
        let mut shown = vec![None; self.messages.len()];
        let (mut stand_ins, mut excerpts) = (Vec::new(), Vec::new());
        for piece in view.pieces() {
            match &piece.shows {
                Shows::Verbatim(span) => {
                    for seq in span.seqs() {
                        shown[index(seq)] = Some(Vec::new());
                    }
                }
                Shows::Round {
                    members,
                    masks,
                    recalls,
                    ..
                } => {
                    for seq in members {
                        let masked = masks.iter().filter(|(masked, ..)| masked == seq);
                        let masked = masked.map(|(_, part, _)| *part).collect();
                        shown[index(*seq)] = Some(masked);
                    }
                    stand_ins.extend(masks.iter().map(|(.., id)| *id));
                    excerpts.extend(recalls.iter().map(|(_, id)| *id));
                }
                Shows::StandIn(id) | Shows::Note(id) => stand_ins.push(*id),
            }
        }
        for (message, shown) in shown.into_iter().enumerate() {
            self.set(message, shown);
        }
        self.in_stand_in.fill(false);
        for id in stand_ins.iter().chain(&excerpts) {
            if !self.stand_ins.contains_key(id) {
                let text = stand_in_text(*id, log)?;
                let vocabulary = &self.parsed.vocabulary;
                self.statements.add_stand_in(*id, &text, vocabulary);
                self.stand_ins.insert(*id, vocabulary.find(&text));
            }
            for term in &self.stand_ins[id] {
                self.in_stand_in[*term as usize] = true;
            }
        }
        (self.shown, self.excerpts) = (stand_ins, excerpts);
        Ok(())
    }

    /// Changes what is shown of a message, and the counts of its terms with it.
    fn set(&mut self, message: usize, shown: MaskedParts) {
        if self.messages[message] != shown {
            self.count_terms(message, false);
            self.messages[message] = shown;
            self.count_terms(message, true);
        }
    }

    /// Adds a message to the counts, or subtracts it.
    fn count_terms(&mut self, message: usize, add: bool) {
        let parsed = &self.parsed.messages[message];
        let results = parsed.result_terms.iter();
        let results = results.map(|(part, terms)| (Some(*part), terms));
        for (part, terms) in std::iter::once((None, &parsed.own_terms)).chain(results) {
            let masked = self.messages[message].as_ref();
            let is_shown =
                masked.is_some_and(|masked| part.is_none_or(|part| !masked.contains(&part)));
            let counts = if is_shown {
                &mut self.visible
            } else {
                &mut self.hidden
            };
            for term in terms {
                let count = &mut counts[*term as usize];
                *count = if add { *count + 1 } else { *count - 1 };
            }
        }
    }
}

/// Returns the text of a stand-in, a stub, a note or an excerpt.
fn stand_in_text(id: EventId, log: &Log) -> Result<String, LogError> {
    Ok(match log.event(id)?.what {
        What::Fold(fold) => {
            let texts: Vec<&str> = fold.stand_in.iter().map(|(_, text)| &**text).collect();
            texts.join("\n")
        }
        What::Mask(mask) => mask.stub,
        What::Note { text, .. } => text,
        What::Recall(recall) => recall.text,
        _ => String::new(),
    })
}

/// Returns the visible summaries, with the messages that each covers.
pub fn shown_summaries(view: &View, log: &Log) -> Result<Vec<ShownSummary>, LogError> {
    let mut visible = HashSet::new();
    for piece in view.pieces() {
        if let Shows::Verbatim(span) = piece.shows {
            visible.extend(span.seqs());
        }
    }
    let mut out = Vec::new();
    for item in log.state().shown().items() {
        let Item::Fold(fold) = item else { continue };
        if fold.cause != Cause::Summary {
            continue;
        }
        if let What::Fold(line) = log.event(fold.id)?.what {
            let seqs = fold.runs.iter().flat_map(|run| run.seqs());
            out.push(ShownSummary {
                id: fold.id,
                text: StandIn::summary(&line.stand_in).to_owned(),
                // The floor is shown although the fold spans it.
                covers: seqs
                    .filter(|seq| !visible.contains(seq))
                    .map(index)
                    .collect(),
            });
        }
    }
    Ok(out)
}

/// Messages are counted from zero here, and from one in a log.
fn index(seq: Seq) -> usize {
    seq.get() as usize - 1
}
