//! Numbers the terms that user and assistant use in a session, and finds them in texts.

use std::collections::HashMap;

use super::references::{each_token, normal};
use super::{Measure, words};

/// The terms of a session.
#[derive(Default)]
pub struct TermVocabulary {
    references: HashMap<String, u32>,
    words: HashMap<String, u32>,
    pairs: HashMap<(u32, u32), u32>,
    terms: Vec<(Measure, String)>,
}

impl TermVocabulary {
    /// Returns the number of terms.
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// Says whether there are no terms.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Returns the measure that a term belongs to.
    pub fn measure(&self, term: u32) -> Measure {
        self.terms[term as usize].0
    }

    /// Returns the first form of a reference or a word; pairs have no text of their own.
    pub fn text(&self, term: u32) -> &str {
        &self.terms[term as usize].1
    }

    /// Adds the terms that a text uses, and returns their numbers, each once, in order.
    pub fn learn(&mut self, text: &str) -> Vec<u32> {
        let mut out = Vec::new();
        each_token(text, |token| {
            if token.is_reference(text) {
                let name = &text[token.range.clone()];
                out.push(self.reference(name));
            }
        });
        let mut last: Option<(u32, usize)> = None;
        for word in words(text) {
            // A pair does not reach across a reference.
            let Some(number) = word.is_plain.then(|| self.word(&word.text)) else {
                last = None;
                continue;
            };
            out.push(number);
            if let Some((before, sentence)) = last
                && sentence == word.sentence
            {
                out.push(self.pair(before, number));
            }
            last = Some((number, word.sentence));
        }
        sort_unique(out)
    }

    /// Returns the known references in a text, each once, in order; parts of longer names are excluded.
    pub fn used(&self, text: &str) -> Vec<u32> {
        let mut out = Vec::new();
        each_token(text, |token| {
            if token.is_reference(text) {
                let name = normal(&text[token.range.clone()]);
                out.extend(self.references.get(&name));
            }
        });
        sort_unique(out)
    }

    /// Returns the known terms that occur in a text, each once, in order.
    pub fn find(&self, text: &str) -> Vec<u32> {
        let mut out = Vec::new();
        each_token(text, |token| {
            token.each_stretch(text, |name| {
                out.extend(self.references.get(&normal(name)));
            });
        });
        let mut last: Option<(u32, usize)> = None;
        for word in words(text) {
            let number = self.words.get(&word.text).copied();
            out.extend(number);
            if let (Some((before, sentence)), Some(number)) = (last, number)
                && sentence == word.sentence
            {
                out.extend(self.pairs.get(&(before, number)));
            }
            last = number.map(|number| (number, word.sentence));
        }
        sort_unique(out)
    }

    fn reference(&mut self, name: &str) -> u32 {
        let next = self.terms.len() as u32;
        let number = *self.references.entry(normal(name)).or_insert(next);
        if number == next {
            self.terms.push((Measure::References, name.to_owned()));
        }
        number
    }

    fn word(&mut self, word: &str) -> u32 {
        if let Some(number) = self.words.get(word) {
            return *number;
        }
        let next = self.terms.len() as u32;
        self.words.insert(word.to_owned(), next);
        self.terms.push((Measure::Words, word.to_owned()));
        next
    }

    fn pair(&mut self, first: u32, second: u32) -> u32 {
        let next = self.terms.len() as u32;
        let number = *self.pairs.entry((first, second)).or_insert(next);
        if number == next {
            self.terms.push((Measure::Pairs, String::new()));
        }
        number
    }
}

fn sort_unique(mut terms: Vec<u32>) -> Vec<u32> {
    terms.sort_unstable();
    terms.dedup();
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the terms used by `later` that occur in `text`, by measure.
    fn kept(later: &str, text: &str) -> [(usize, usize); 3] {
        let mut vocabulary = TermVocabulary::default();
        let used = vocabulary.learn(later);
        let found = vocabulary.find(text);
        crate::MEASURES.map(|measure| {
            let count = |terms: &[u32]| {
                let of = terms
                    .iter()
                    .filter(|term| vocabulary.measure(**term) == measure);
                of.count()
            };
            (count(&used), count(&found))
        })
    }

    #[test]
    fn terms_are_found_whatever_their_case_and_inside_of_longer_names() {
        assert_eq!(
            kept(
                "Read retry.rs: MaxRetries is 1,250.",
                "src/net/Retry.rs has maxretries = 1250 rows; I read it."
            ),
            [(3, 3), (1, 1), (0, 0)]
        );
    }

    #[test]
    fn a_name_that_is_only_part_of_a_word_is_not_found() {
        assert_eq!(
            kept("run_once", "we run_once_more and rerun_once")[0],
            (1, 0)
        );
    }

    #[test]
    fn pairs_stand_in_one_sentence_and_stop_words_do_not_part_them() {
        let later = "archive the old invoices";
        assert_eq!(kept(later, "Archive old invoices!")[2], (2, 2));
        assert_eq!(kept(later, "archive. old\ninvoices")[2], (2, 0));
        assert_eq!(kept(later, "archive paper old invoices")[2], (2, 1));
    }

    #[test]
    fn words_are_found_in_any_script() {
        assert_eq!(
            kept("数据库迁移", "先迁移旧的数据库")[1..],
            [(4, 3), (3, 1)]
        );
        assert_eq!(kept("срок пятница", "Пятница: срок")[1..], [(2, 2), (1, 0)]);
        assert_eq!(kept("마감일은 금요일", "금요일")[1], (5, 2));
    }
}
