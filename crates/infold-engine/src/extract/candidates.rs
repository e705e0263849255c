//! Sentences that an extractive summary may quote: those of the assistant, and lines of tool results.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use super::facts::persist;
use super::names::MentionOrigin;
use super::terms::{self, TermTable};
use super::word_lists::{ANNOUNCEMENTS, DECISIONS, PROPOSALS};
use crate::references;
use crate::sentence;

/// A sentence that may be quoted.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The seq of the message.
    pub seq: u64,
    /// The kind of text of the sentence.
    pub origin: MentionOrigin,
    pub text: Box<str>,
    /// Whether the sentence decides, concludes or explains.
    pub decides: bool,
    /// Whether the sentence is in the last reply before the user's next message.
    pub is_final: bool,
}

/// All sentences that may be quoted; if there are too many, the weaker ones of the older half are dropped.
#[derive(Clone, Debug, Default)]
pub struct CandidatePool {
    /// The sentences in the order of the messages.
    pub all: Vec<Candidate>,
    /// The total length of the sentences.
    bytes: usize,
    /// The index of the first sentence since the user last wrote.
    turn_start: usize,
}

/// More sentences than this many bytes (1.5 MiB), or than [`MAX_CANDIDATES`], are thinned.
const MAX_POOL_BYTES: usize = 3 << 19;
const MAX_CANDIDATES: usize = 16_000;
/// Shorter sentences have no content of their own, longer ones are data.
const MIN_SENTENCE_BYTES: usize = 12;
const MAX_SENTENCE_BYTES: usize = 420;
/// A reply with more sentences is a document.
const MAX_SENTENCES_OF_REPLY: usize = 120;
/// At most this many lines of a result may be quoted.
const MAX_LINES_OF_RESULT: usize = 24;
/// The length of a line of a result that may be quoted.
const RESULT_LINE_BYTES: RangeInclusive<usize> = 24..=240;

impl CandidatePool {
    /// Adds the sentences of a reply; `words` weighs the terms by which weak sentences are dropped.
    pub fn add_reply(&mut self, seq: u64, text: &str, words: &TermTable) {
        let mut left = MAX_SENTENCES_OF_REPLY;
        sentence::for_each(text, |sentence| {
            if sentence.is_code || left == 0 || !is_quotable(sentence.text) {
                return;
            }
            left -= 1;
            self.push(seq, MentionOrigin::Assistant, sentence.text);
        });
        self.thin(words);
    }

    /// Adds the lines of a result that are prose.
    pub fn add_result(&mut self, seq: u64, text: &str, words: &TermTable) {
        let mut lines: Vec<&str> = Vec::new();
        for line in text.lines() {
            let line = without_line_number(line.trim());
            if RESULT_LINE_BYTES.contains(&line.len()) && sentence::is_prose(line) {
                lines.push(line);
            }
        }
        // The lines are taken evenly from the whole result, its last line included.
        let step = lines.len().div_ceil(MAX_LINES_OF_RESULT).max(1);
        let skip = lines.len().saturating_sub(1) % step;
        for line in lines.iter().skip(skip).step_by(step) {
            self.push(seq, MentionOrigin::Result, line);
        }
        self.thin(words);
    }

    /// Ends a turn: the last reply is final, and its proposals are dropped if the user rejects them.
    pub fn end_turn(&mut self, is_rejection: bool) {
        let start = self.turn_start.min(self.all.len());
        let last = self.all[start..]
            .iter()
            .rev()
            .find(|candidate| candidate.origin == MentionOrigin::Assistant)
            .map(|candidate| candidate.seq);
        if is_rejection {
            // A rejected proposal must not be quoted as a decision.
            let mut at = 0;
            self.all.retain(|candidate| {
                at += 1;
                at <= start || Some(candidate.seq) != last || !proposes(&candidate.text)
            });
        }
        for candidate in &mut self.all[start..] {
            candidate.is_final |=
                Some(candidate.seq) == last && candidate.origin == MentionOrigin::Assistant;
        }
        self.turn_start = self.all.len();
    }

    /// Returns for each sentence whether a later one gives the same name another value, or has the same content.
    pub fn obsolete(&self) -> Vec<bool> {
        let mut valued: HashSet<&str> = HashSet::new();
        let mut texts: HashSet<&str> = HashSet::new();
        let mut out = vec![false; self.all.len()];
        for (at, candidate) in self.all.iter().enumerate().rev() {
            let mut is_old = !texts.insert(&candidate.text);
            if candidate.origin == MentionOrigin::Assistant {
                let names = valued_names(&candidate.text);
                is_old |= names.iter().any(|name| valued.contains(name));
                valued.extend(names);
            }
            out[at] = is_old;
        }
        out
    }

    /// Returns about how many bytes the pool takes.
    pub fn memory_bytes(&self) -> usize {
        self.bytes + self.all.capacity() * size_of::<Candidate>()
    }

    fn push(&mut self, seq: u64, origin: MentionOrigin, text: &str) {
        let text = text.replace("**", "");
        self.bytes += text.len();
        self.all.push(Candidate {
            seq,
            origin,
            decides: origin == MentionOrigin::Assistant && decides(&text),
            is_final: false,
            text: text.into(),
        });
    }

    /// Drops two thirds of the older half of the sentences, those of the least value, if there are too many.
    ///
    /// A third of the pool must be added again before the next time, so the total time is linear.
    fn thin(&mut self, words: &TermTable) {
        if self.bytes <= MAX_POOL_BYTES && self.all.len() <= MAX_CANDIDATES {
            return;
        }
        let half = self.all.len() / 2;
        let mut ranked: Vec<(f64, usize)> = self.all[..half]
            .iter()
            .enumerate()
            .map(|(at, candidate)| (candidate.static_value(words), at))
            .collect();
        ranked.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let mut is_kept = vec![false; half];
        for (_, at) in &ranked[..half / 3] {
            is_kept[*at] = true;
        }
        let mut at = 0;
        self.all.retain(|_| {
            at += 1;
            at > half || is_kept[at - 1]
        });
        self.bytes = self.all.iter().map(|candidate| candidate.text.len()).sum();
        self.turn_start = self.turn_start.min(self.all.len());
    }
}

impl Candidate {
    /// Returns the weight of its terms relative to its length, whatever else is in the pool or quoted already.
    fn static_value(&self, words: &TermTable) -> f64 {
        let mut sum = 0.0;
        terms::for_each(&self.text, |term| {
            sum += term.map_or(0.0, |term| words.weight(term))
        });
        let weight = if self.decides || self.is_final {
            1.5
        } else {
            1.0
        };
        // The constant keeps very short sentences from winning by their length alone.
        weight * sum / (self.text.len() as f64 + 20.0)
    }
}

/// Removes the line number that a tool put in front: `101→let x`, `12: fn`.
fn without_line_number(line: &str) -> &str {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = rest.len() < line.len() && rest.starts_with(['→', '\t', ':', '|']);
    if !is_numbered {
        return line;
    }
    rest[rest.chars().next().map_or(0, char::len_utf8)..].trim_start()
}

/// Returns the names to which a sentence gives numbers: `MAX = 150`, "`MAX` is 135 now", "raised `max` from 5 to 8".
fn valued_names(text: &str) -> Vec<&str> {
    const WORDS: [&str; 8] = [
        "= ", ": ", "is ", "are ", "to ", "from ", "becomes ", "now ",
    ];
    const MARKS: [char; 5] = ['`', '*', '"', '\'', ' '];
    let mut found = Vec::new();
    references::for_each(text, |name| {
        // `name` is a slice of `text`, so the addresses give its position.
        let end = name.as_ptr() as usize - text.as_ptr() as usize + name.len();
        if name.starts_with(|c: char| c.is_ascii_alphabetic()) && !name.contains('/') {
            let rest = text[end..].trim_start_matches(MARKS);
            let value = WORDS.iter().find_map(|word| rest.strip_prefix(word));
            let value = value.map(|rest| rest.trim_start_matches(MARKS));
            if value.is_some_and(|value| value.starts_with(|c: char| c.is_ascii_digit())) {
                found.push(name);
            }
        }
    });
    found
}

/// Returns whether a sentence of a reply stands on its own: one that ends in a colon only introduces a list or code.
fn is_quotable(text: &str) -> bool {
    (MIN_SENTENCE_BYTES..=MAX_SENTENCE_BYTES).contains(&text.len())
        && !text.ends_with(':')
        && !announces(text)
}

/// Says whether a sentence only announces the tool call after it.
fn announces(text: &str) -> bool {
    let start: String = text.chars().take(24).collect::<String>().to_lowercase();
    ANNOUNCEMENTS.start_of(&start).is_some()
}

/// Says whether a sentence offers to do something.
fn proposes(text: &str) -> bool {
    text.ends_with('?') || PROPOSALS.start_of(&text.to_lowercase()).is_some()
}

/// Says whether a sentence decides, concludes or explains something.
fn decides(text: &str) -> bool {
    DECISIONS.occurs_in(&text.to_lowercase())
}

persist!(Candidate: seq, origin, text, decides, is_final);
persist!(CandidatePool: all, bytes, turn_start);
