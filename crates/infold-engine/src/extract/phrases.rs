//! Phrases: two words that stand side by side in several messages, and so are likely to do so again.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::Extract;
use super::names::MentionOrigin;
use super::terms::{self, Term, TermMap};
use crate::sentence::{self, is_wide};

/// A phrase that several messages use.
pub struct Phrase<'a> {
    /// Its words as one message has them, with the stop words between them.
    pub text: &'a str,
    /// The terms of its two words.
    pub words: (Term, Term),
    /// The weight of the messages that use it, recent ones counting more.
    pub value: f64,
}

/// A phrase is no longer than this.
const MAX_PHRASE_BYTES: usize = 40;
/// At most this many phrases are compared, those of the newest messages.
const MAX_COUNTED: usize = 14_000;
/// More phrases than any summary has room for.
const MAX_PHRASES: usize = 3_000;
/// After this many messages a use counts half as much,
const HALF_LIFE_MESSAGES: f64 = 60.0;
/// and always this much.
const PAST_WORTH: f64 = 0.1;

/// Returns the phrases that at least two of the messages use, the likeliest to be used again first.
pub fn recurring(from: &Extract) -> Vec<Phrase<'_>> {
    let mut counter = PhraseCounter {
        counts: HashMap::default(),
        now: from.span.map_or(0, |(_, last)| last),
    };
    for request in from.requests.all.iter().rev() {
        sentence::for_each(&request.text, |sentence| {
            if !sentence.is_code {
                counter.count(sentence.text, request.seq, MentionOrigin::User);
            }
        });
    }
    for candidate in from.candidates.all.iter().rev() {
        counter.count(&candidate.text, candidate.seq, candidate.origin);
    }
    let recurring = counter.counts.into_values().filter(|count| count.recurs);
    let mut phrases: Vec<Phrase<'_>> = recurring.map(|count| count.phrase).collect();
    phrases.sort_unstable_by(|a, b| b.value.total_cmp(&a.value).then(a.text.cmp(b.text)));
    phrases.truncate(MAX_PHRASES);
    phrases
}

struct PhraseCounter<'a> {
    counts: TermMap<PhraseCount<'a>>,
    /// The last message of all.
    now: u64,
}

struct PhraseCount<'a> {
    phrase: Phrase<'a>,
    /// The message it was last counted for.
    seq: u64,
    /// Whether another message uses it, too.
    recurs: bool,
}

impl<'a> PhraseCounter<'a> {
    /// Counts each phrase of a sentence once for each message.
    fn count(&mut self, sentence: &'a str, seq: u64, origin: MentionOrigin) {
        let age = self.now.saturating_sub(seq) as f64;
        let value = weight(origin) * (0.5_f64.powf(age / HALF_LIFE_MESSAGES) + PAST_WORTH);
        let is_full = self.counts.len() >= MAX_COUNTED;
        for_each(sentence, |text, words| {
            match self.counts.entry(terms::pair(words.0, words.1)) {
                Entry::Occupied(entry) => {
                    let count = entry.into_mut();
                    if count.seq != seq {
                        count.seq = seq;
                        count.recurs = true;
                        count.phrase.value += value;
                    }
                    if text.len() < count.phrase.text.len() {
                        count.phrase.text = text;
                    }
                }
                Entry::Vacant(entry) if !is_full => {
                    entry.insert(PhraseCount {
                        phrase: Phrase { text, words, value },
                        seq,
                        recurs: false,
                    });
                }
                Entry::Vacant(_) => {}
            }
        });
    }
}

/// Returns the weight of a message that uses a phrase.
fn weight(origin: MentionOrigin) -> f64 {
    match origin {
        MentionOrigin::User => 3.0,
        MentionOrigin::Assistant => 1.4,
        MentionOrigin::Call => 0.5,
        MentionOrigin::Result => 0.1,
    }
}

/// Calls `found` with each two words of a sentence between which there are only stop words, and with their terms.
///
/// Parts of names and words of scripts without spaces are left out.
fn for_each<'a>(sentence: &'a str, mut found: impl FnMut(&'a str, (Term, Term))) {
    let mut last: Option<(usize, Term)> = None;
    let mut rest = sentence;
    while let Some(first) = rest.chars().next() {
        let at = sentence.len() - rest.len();
        if !first.is_alphanumeric() {
            last = last.filter(|_| matches!(first, ' ' | '-' | '\''));
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        if is_in_name(word, &sentence[..at], after) {
            last = None;
        } else if let Some(term) = terms::of_word(word) {
            let end = at + word.len();
            if let Some((start, before)) = last
                && end - start <= MAX_PHRASE_BYTES
            {
                found(&sentence[start..end], (before, term));
            }
            last = Some((at, term));
        }
    }
}

/// Says whether a word is a name, a part of one, or of a script without spaces.
fn is_in_name(word: &str, before: &str, after: &str) -> bool {
    const MARKS: [char; 9] = ['_', '/', '\\', '@', '#', '$', '<', '=', '.'];
    let is_dotted = after.starts_with('.') && after[1..].starts_with(|c: char| c.is_alphanumeric());
    is_dotted
        || before.ends_with(MARKS)
        || after.starts_with(['_', '/', '\\', '@', '#', '$', '<', '=', '('])
        || word.chars().any(|c| !c.is_alphabetic() || is_wide(c))
        || word.chars().skip(1).any(char::is_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phrases(sentence: &str) -> Vec<&str> {
        let mut out = Vec::new();
        for_each(sentence, |text, _| out.push(text));
        out
    }

    #[test]
    fn a_phrase_has_two_words_and_the_stop_words_between_them() {
        assert_eq!(
            phrases("Check for errors in the shadow branch, then merge"),
            ["Check for errors", "errors in the shadow", "shadow branch"]
        );
    }

    #[test]
    fn names_and_values_part_phrases() {
        assert_eq!(
            phrases("open src/main.rs twice, call parseAll() again 30 times later"),
            ["times later"]
        );
        assert!(phrases("请检查数据库迁移").is_empty());
    }
}
