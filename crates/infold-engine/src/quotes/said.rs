//! A message of the user in the forms that claims are compared in.

use std::collections::HashMap;

use super::clause::{Clause, clauses, turned};
use super::relation::{Relation, RelationKind, relations};
use super::words::{Kind, Word, words};

/// A message is compared by at most this many of its words.
const MAX_WORDS: usize = 20_000;
/// A claim is held against so many words of a message at once,
const SPAN_WORDS: usize = 120;
/// A word that stands in more places than these is everywhere.
const MAX_PLACES: usize = 256;

/// What somebody said.
pub struct Said {
    pub seq: Option<u64>,
    pub plain: String,
    words: Vec<Word>,
    /// By first letters or meaning.
    index: HashMap<String, Vec<usize>>,
    pub clauses: Vec<Clause>,
    pub relations: Vec<Relation>,
}

impl Said {
    pub fn read(seq: Option<u64>, text: &str) -> Said {
        let words = words(text, MAX_WORDS);
        let mut index: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, word) in words.iter().enumerate().filter(|(_, word)| !word.is_mark()) {
            for key in keys(word).into_iter().chain(part_keys(word)) {
                let places = index.entry(key).or_default();
                if places.len() < MAX_PLACES {
                    places.push(at);
                }
            }
        }
        let mut clauses = clauses(text, &words);
        let opposite: Vec<Clause> = clauses.iter().filter_map(turned).collect();
        clauses.extend(opposite);
        let relations = relations(text, &words);
        // "replace A with B" and "B, not A" say no to A.
        let replaced = relations
            .iter()
            .filter(|relation| relation.kind == RelationKind::Instead);
        clauses.extend(replaced.map(|relation| Clause::negative(relation.from.clone())));
        Said {
            seq,
            plain: plain(text),
            clauses,
            relations,
            index,
            words,
        }
    }

    /// The places of words that say the same.
    pub fn places(&self, word: &Word) -> Vec<usize> {
        let mut out: Vec<usize> = Vec::new();
        for key in keys(word) {
            let found = self.index.get(&key).into_iter().flatten();
            out.extend(found.filter(|at| word.matches(&self.words[**at])));
        }
        if out.is_empty() {
            out.extend(self.turned(word));
        }
        if out.is_empty() && (word.kind == Kind::Fact || word.text.contains('-')) {
            out.extend(self.inside(word));
        }
        if out.is_empty() {
            out.extend(self.parts(word));
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Where "keep" is said as "do not remove", and the other way round.
    fn turned(&self, word: &Word) -> Option<usize> {
        if !(word.is_group("keep") || word.is_group("remove")) {
            return None;
        }
        let clauses = self.clauses.iter().flat_map(|clause| &clause.words);
        let found = clauses.into_iter().find(|said| said.matches(word))?;
        self.words.iter().position(|said| said.at == found.at)
    }

    /// Where a name is the end or a part of a longer one: `api.ts` of `src/api.ts`.
    fn inside(&self, word: &Word) -> Option<usize> {
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

    /// Where all parts of a compound stand side by side: `auto-commit` of `auto commits`.
    fn parts(&self, word: &Word) -> Option<usize> {
        let parts: Vec<&str> = word
            .text
            .split(['-', '_', '/', ' '])
            .filter(|part| !part.is_empty())
            .collect();
        if parts.len() > 1 {
            let same = |said: &Word, part: &str| {
                said.text == part || super::form::inflects(&said.text, part)
            };
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

    /// The stretches of words a claim is held against, which overlap.
    pub fn spans(&self) -> impl Iterator<Item = (usize, usize)> {
        let len = self.words.len();
        let starts = (0..len.max(1)).step_by(SPAN_WORDS / 2);
        let last = len.saturating_sub(SPAN_WORDS / 2).max(1);
        starts
            .take_while(move |at| *at < last)
            .map(|at| (at, at + SPAN_WORDS))
    }

    /// Says whether it says no to anything.
    pub fn denies(&self) -> bool {
        let no = ["no", "nein", "non", "nao", "нет", "nope", "stop", "revert"];
        self.clauses.iter().any(|clause| clause.negated)
            || self.words.iter().any(|word| no.contains(&&*word.text))
    }

    /// Its length in words.
    pub fn len(&self) -> usize {
        self.words.iter().filter(|word| !word.is_mark()).count()
    }

    pub fn words(&self) -> &[Word] {
        &self.words
    }
}

/// What the parts of a compound are looked up by.
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

/// What a word is looked up by.
fn keys(word: &Word) -> Vec<String> {
    let mut out = vec![word.text.chars().take(3).collect()];
    if let Some(group) = word.group {
        out.push(format!("={}", group.name));
        // "change" names many ways to do it.
        if group.name == "change" {
            out.extend(
                [
                    "=increase",
                    "=decrease",
                    "=rename",
                    "=replace",
                    "=use",
                    "=fix",
                ]
                .map(str::to_owned),
            );
        }
    }
    out
}

/// Small letters, single spaces, no marks around words, no doubled letters: a quotation that puts
/// a slip of the pen right is still one.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let edge = |c: char| {
        matches!(
            c,
            '.' | ','
                | '!'
                | '?'
                | ':'
                | ';'
                | '"'
                | '\''
                | '('
                | ')'
                | '“'
                | '”'
                | '‘'
                | '’'
                | '…'
                | '-'
                | '–'
                | '—'
                | '*'
                | '`'
                | '['
                | ']'
                | '_'
        )
    };
    for word in text.split_whitespace() {
        let word = word.trim_matches(edge);
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
