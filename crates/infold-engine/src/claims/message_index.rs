//! A message of the user in the forms that claims are compared in.

use std::collections::HashMap;

use super::clause::{Clause, invert, split_clauses};
use super::relation::{Relation, RelationKind, find_relations};
use super::tables::among;
use super::word_form::inflects;
use super::words::{CHANGES, Word, WordKind, split_words};

/// A message is compared by at most this many of its words.
const MAX_MESSAGE_WORDS: usize = 20_000;
/// A claim is compared with this many words of a message at once.
const SPAN_WORDS: usize = 120;
/// Further positions of a word are not indexed.
const MAX_POSITIONS: usize = 256;

/// A message with its words, clauses and relations.
pub struct IndexedMessage {
    pub seq: Option<u64>,
    /// The text in plain form.
    pub plain: String,
    words: Vec<Word>,
    /// Positions of words by their first letters or meaning.
    index: HashMap<String, Vec<usize>>,
    pub clauses: Vec<Clause>,
    pub relations: Vec<Relation>,
}

impl IndexedMessage {
    /// Splits and indexes the text of a message.
    pub fn read(seq: Option<u64>, text: &str) -> IndexedMessage {
        let words = split_words(text, MAX_MESSAGE_WORDS);
        let mut index: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, word) in words.iter().enumerate().filter(|(_, word)| !word.is_mark()) {
            for key in keys(word).into_iter().chain(part_keys(word)) {
                let positions = index.entry(key).or_default();
                if positions.len() < MAX_POSITIONS {
                    positions.push(at);
                }
            }
        }
        let mut clauses = split_clauses(text, &words);
        let opposite: Vec<Clause> = clauses.iter().filter_map(invert).collect();
        clauses.extend(opposite);
        let relations = find_relations(text, &words);
        // "replace A with B" and "B, not A" negate A.
        let replaced = relations
            .iter()
            .filter(|relation| relation.kind == RelationKind::Instead);
        clauses.extend(replaced.map(|relation| Clause::new(relation.from.clone(), true)));
        IndexedMessage {
            seq,
            plain: plain(text),
            clauses,
            relations,
            index,
            words,
        }
    }

    /// Returns the positions of words that say the same.
    pub fn positions(&self, word: &Word) -> Vec<usize> {
        let mut out: Vec<usize> = Vec::new();
        for key in keys(word) {
            let found = self.index.get(&key).into_iter().flatten();
            out.extend(found.filter(|at| word.matches(&self.words[**at])));
        }
        if out.is_empty() {
            out.extend(self.find_inverted(word));
        }
        if out.is_empty() && (word.kind == WordKind::Fact || word.text.contains('-')) {
            out.extend(self.find_in_name(word));
        }
        if out.is_empty() {
            out.extend(self.find_compound(word));
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Finds "keep" in "do not remove", and the other way round.
    fn find_inverted(&self, word: &Word) -> Option<usize> {
        if !(word.means("keep") || word.means("remove")) {
            return None;
        }
        let clauses = self.clauses.iter().flat_map(|clause| &clause.words);
        let found = clauses.into_iter().find(|said| said.matches(word))?;
        self.words.iter().position(|said| said.at == found.at)
    }

    /// Finds a name as the end or a part of a longer one: `api.ts` in `src/api.ts`.
    fn find_in_name(&self, word: &Word) -> Option<usize> {
        if word.text.chars().count() < 2 {
            return None;
        }
        let bound = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
        self.words.iter().position(|said| {
            said.text.match_indices(&*word.text).any(|(at, _)| {
                let whole = bound(said.text[..at].chars().next_back());
                let end = said.text[at + word.text.len()..].chars().next();
                // A number with its unit is still that number; with more digits it is another.
                let unit = word.text.ends_with(|c: char| c.is_ascii_digit())
                    && end.is_some_and(char::is_alphabetic);
                let version = end == Some('.') && word.text.chars().all(|c| c.is_ascii_digit());
                whole && (bound(end) || unit) && !version
            })
        })
    }

    /// Finds the parts of a compound side by side: `auto-commit` in `auto commits`.
    fn find_compound(&self, word: &Word) -> Option<usize> {
        let parts: Vec<&str> = word
            .text
            .split(['-', '_', '/', ' '])
            .filter(|part| !part.is_empty())
            .collect();
        if parts.len() > 1 {
            let same = |said: &Word, part: &str| said.text == part || inflects(&said.text, part);
            return self
                .words
                .windows(parts.len())
                .position(|said| said.iter().zip(&parts).all(|(said, part)| same(said, part)));
        }
        // Written as two words by the user and as one here, or the other way round.
        let joined = |two: &[Word]| {
            two[0].text.len() + two[1].text.len() == word.text.len()
                && word.text.starts_with(&*two[0].text)
                && word.text.ends_with(&*two[1].text)
        };
        self.words
            .windows(2)
            .position(|two| !two[0].text.is_empty() && !two[1].text.is_empty() && joined(two))
    }

    /// Returns the overlapping ranges of words that a claim is compared with.
    pub fn spans(&self) -> impl Iterator<Item = (usize, usize)> {
        let len = self.words.len();
        let starts = (0..len.max(1)).step_by(SPAN_WORDS / 2);
        let last = len.saturating_sub(SPAN_WORDS / 2).max(1);
        starts
            .take_while(move |at| *at < last)
            .map(|at| (at, at + SPAN_WORDS))
    }

    /// Says whether the message contains a negation.
    pub fn denies(&self) -> bool {
        let no = "no nein non nao нет nope stop revert";
        self.clauses.iter().any(|clause| clause.negated)
            || self.words.iter().any(|word| among(no, &word.text))
    }

    /// Returns its number of words without marks.
    pub fn len(&self) -> usize {
        self.words.iter().filter(|word| !word.is_mark()).count()
    }

    /// Returns its words and marks.
    pub fn words(&self) -> &[Word] {
        &self.words
    }
}

/// Returns the index keys of the parts of a compound.
fn part_keys(word: &Word) -> Vec<String> {
    let parts: Vec<&str> = word.text.split(['_', '-', '/', '.', '(']).collect();
    let parts = parts
        .iter()
        .filter(|part| parts.len() > 1 && part.len() > 2);
    parts
        .take(16)
        .map(|part| part.chars().take(3).collect())
        .collect()
}

/// Returns the index keys of a word.
fn keys(word: &Word) -> Vec<String> {
    let mut out = vec![word.text.chars().take(3).collect()];
    if let Some(meaning) = word.meaning {
        out.push(format!("={}", meaning.name));
        if meaning.name == "change" {
            out.extend(CHANGES.map(|name| format!("={name}")));
        }
    }
    out
}

/// Returns a text in lower case with single spaces, without marks around words and doubled letters: a quotation that
/// corrects a typing error still matches.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    const EDGES: &str = ".,!?:;\"'()“”‘’…-–—*`[]_";
    for word in text.split_whitespace() {
        let word = word.trim_matches(|c| EDGES.contains(c));
        if word.is_empty() {
            continue;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        let mut last = ' ';
        for c in word.chars() {
            let c = match c {
                '’' | '‘' => '\'',
                '`' | '*' | '-' | '“' | '”' | '"' => continue,
                c => c,
            };
            for c in c.to_lowercase() {
                if !(c == last && c.is_ascii_alphabetic()) {
                    out.push(c);
                }
                last = c;
            }
        }
    }
    out
}
