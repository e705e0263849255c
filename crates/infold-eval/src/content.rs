//! Finds out whether the statements about a name are in view when a message uses the name.
//!
//! A message that names something contains the name itself, so the presence of the name is no evidence. Only a
//! **statement** about it counts: a sentence or line with the name and at least three other terms that is not a
//! question. The names and statements depend on the session alone, and so are the same in all replays of a session.

use std::collections::{BTreeMap, HashMap};

use infold_log::{EventId, Role};

use crate::ParsedSession;
use crate::measure::{Measure, TermVocabulary};
use crate::parsed_session::ParsedMessage;

/// A sentence with fewer other terms says nothing about a name.
const MIN_OTHER_TERMS: usize = 3;
/// The terms of a longer sentence that are enough to recognise its content.
const MAX_COMMON_TERMS: usize = 6;

/// A longer number in the arguments of a call is an id.
const MAX_POSITION_DIGITS: usize = 4;
/// The most names in a question: a message with more contains a document that it writes or pastes.
pub const MAX_QUESTION_NAMES: usize = 32;

/// The needed references, and their places. The number of wanted ones depends on the session alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The references that were needed.
    pub wanted: u64,
    /// Those in view without recalled excerpts: messages, summaries, stubs.
    pub in_view: u64,
    /// Those in recalled excerpts only.
    pub recalled: u64,
}

impl Needs {
    /// Returns how many were not in view.
    pub fn lost(self) -> u64 {
        self.wanted - self.in_view - self.recalled
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: Needs) {
        self.wanted += other.wanted;
        self.in_view += other.in_view;
        self.recalled += other.recalled;
    }

    /// Adds one.
    pub(crate) fn count(&mut self, is_in_view: bool, is_recalled: bool) {
        self.wanted += 1;
        self.in_view += u64::from(is_in_view);
        self.recalled += u64::from(is_recalled && !is_in_view);
    }
}

/// The terms of one sentence or line, in order.
pub type StatementTerms = Vec<u32>;

/// The place of a statement about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementPlace {
    pub message: usize,
    /// The part of the message that is a tool result; none for its own text and calls.
    pub part: Option<u32>,
}

/// Finds statements in messages and stand-ins, each read once.
#[derive(Default)]
pub struct StatementIndex {
    messages: HashMap<usize, Vec<(StatementPlace, StatementTerms)>>,
    stand_ins: HashMap<EventId, Vec<StatementTerms>>,
}

impl StatementIndex {
    /// Returns the references that the messages just before `place` make, each with the first of the messages that make it: the user in words,
    /// the model in the arguments of the calls that were answered.
    pub fn named(parsed: &ParsedSession, place: usize) -> BTreeMap<u32, usize> {
        let messages = &parsed.messages[..place];
        let last = messages
            .iter()
            .rposition(|message| message.role == Role::Assistant);
        let after = last.map_or(0, |last| last + 1);
        let mut named = BTreeMap::new();
        for message in &messages[after..] {
            if message.role == Role::User {
                let used = parsed.vocabulary.used(&message.words.text);
                named.extend(used.into_iter().map(|term| (term, after)));
            }
        }
        if let Some(last) = last {
            let called = parsed.vocabulary.used(&messages[last].words.arguments);
            // A short number is a position or a limit there, and names nothing.
            let called = called.into_iter().filter(|term| {
                let text = parsed.vocabulary.text(*term);
                text.len() > MAX_POSITION_DIGITS || text.contains(char::is_alphabetic)
            });
            named.extend(called.map(|term| (term, last)));
        }
        named
    }

    /// Returns the places before message `end` of statements about a reference, and the statements.
    pub fn statements<'a>(
        &'a mut self,
        parsed: &'a ParsedSession,
        term: u32,
        end: usize,
    ) -> impl Iterator<Item = &'a (StatementPlace, StatementTerms)> + 'a {
        let occurs = parsed.occurs[term as usize].iter();
        let occurs: Vec<usize> = occurs
            .map(|at| *at as usize)
            .filter(|at| *at < end)
            .collect();
        for at in &occurs {
            let read = || read_message(*at, &parsed.messages[*at], &parsed.vocabulary);
            self.messages.entry(*at).or_insert_with(read);
        }
        let all = occurs.into_iter().flat_map(|at| &self.messages[&at]);
        all.filter(move |(_, statement)| statement.binary_search(&term).is_ok())
    }

    /// Adds the text of a stand-in.
    pub fn add_stand_in(&mut self, id: EventId, text: &str, vocabulary: &TermVocabulary) {
        self.stand_ins
            .entry(id)
            .or_insert_with(|| read_lines(text, vocabulary, 2));
    }

    /// Says whether one of these stand-ins repeats a statement about a reference: it has half of the statement's terms.
    pub fn is_repeated(&self, shown: &[EventId], term: u32, statement: &StatementTerms) -> bool {
        let lines = shown.iter().filter_map(|id| self.stand_ins.get(id));
        let mut lines = lines
            .flatten()
            .filter(|line| line.binary_search(&term).is_ok());
        let needed = (statement.len() - 1).div_ceil(2).min(MAX_COMMON_TERMS);
        lines.any(|line| {
            let common = statement
                .iter()
                .filter(|other| line.binary_search(other).is_ok());
            common.count() > needed
        })
    }
}

fn read_message(
    message: usize,
    parsed: &ParsedMessage,
    vocabulary: &TermVocabulary,
) -> Vec<(StatementPlace, StatementTerms)> {
    let words = &parsed.words;
    let own = [&words.text, &words.arguments].map(|text| (None, &**text));
    let results = words
        .results
        .iter()
        .map(|(part, text)| (Some(*part), &**text));
    let mut out = Vec::new();
    for (part, text) in own.into_iter().chain(results) {
        let place = StatementPlace { message, part };
        let read = read_lines(text, vocabulary, MIN_OTHER_TERMS + 1);
        out.extend(read.into_iter().map(|statement| (place, statement)));
    }
    out
}

/// Returns the references and words of each sentence that has at least `least` of them and is no question.
fn read_lines(text: &str, vocabulary: &TermVocabulary, least: usize) -> Vec<StatementTerms> {
    let mut out = Vec::new();
    // Stubs are kept as JSON texts.
    for line in text.replace("\\n", "\n").lines() {
        for sentence in sentences(line) {
            if sentence.trim_end().ends_with(['?', '？']) {
                continue;
            }
            let terms = vocabulary.find(sentence);
            let terms = terms.into_iter();
            let terms: StatementTerms = terms
                .filter(|term| vocabulary.measure(*term) != Measure::Pairs)
                .collect();
            if terms.len() >= least {
                out.push(terms);
            }
        }
    }
    out
}

/// Splits a line behind each sentence.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut chars = rest.char_indices().peekable();
        let mut end = rest.len();
        while let Some((at, c)) = chars.next() {
            let is_end = match c {
                '.' | '!' | '?' => chars.peek().is_none_or(|(_, next)| next.is_whitespace()),
                '。' | '！' | '？' => true,
                _ => false,
            };
            if is_end {
                end = at + c.len_utf8();
                break;
            }
        }
        let (sentence, after) = rest.split_at(end);
        rest = after;
        Some(sentence)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_questions_say_nothing_and_half_a_sentence_does() {
        let mut vocabulary = TermVocabulary::default();
        let text =
            "RETRY_BUDGET waits 1750 ms before giving up. What does RETRY_BUDGET mean for clients?";
        vocabulary.learn(text);
        let read = read_lines(text, &vocabulary, MIN_OTHER_TERMS + 1);
        assert_eq!(read.len(), 1, "the question says nothing");
        let name = vocabulary.used("RETRY_BUDGET")[0];
        let said = |stand_in: &str| {
            let mut index = StatementIndex::default();
            let id = EventId::new(1).expect("counted from one");
            index.add_stand_in(id, stand_in, &vocabulary);
            index.is_repeated(&[id], name, &read[0])
        };
        assert!(said("- [3] RETRY_BUDGET waits 1750 ms"));
        assert!(!said("Names: RETRY_BUDGET, otherName, src/main.rs"));
        assert!(!said("waits 1750 ms before giving up"));
    }
}
