//! The names, words and pairs of words that a summary already has.

use crate::extract::Extract;
use crate::extract::names::NameRecord;
use crate::extract::terms::{self, TermHash, TermSet};
use crate::references::{self, ReferenceFinder};

/// The collected facts, ranked once for all attempts to compose a summary.
pub struct RankedContent<'a> {
    /// Names, the likeliest to be used again first.
    pub ranked: Vec<(&'a str, &'a NameRecord)>,
    finder: ReferenceFinder,
    /// For each sentence of the pool, whether a later one contradicts it.
    pub obsolete: Vec<bool>,
    /// The rarity of each sentence of the pool.
    pub rarity: Vec<f64>,
    /// The content of the messages in view beside the summary.
    in_view: Covered,
}

/// Names, words and pairs of words that occur in a text.
#[derive(Clone, Default)]
struct Covered {
    /// For each ranked name, whether it occurs.
    names: Vec<bool>,
    words: TermSet,
    pairs: TermSet,
}

impl Covered {
    fn see(&mut self, text: &str, finder: &ReferenceFinder) {
        finder.find(text, |index| self.names[index] = true);
        let mut last = None;
        terms::for_each(text, |term| {
            let Some(term) = term else {
                last = None;
                return;
            };
            self.words.insert(term);
            if let Some(last) = last {
                self.pairs.insert(terms::pair(last, term));
            }
            last = Some(term);
        });
    }
}

impl<'a> RankedContent<'a> {
    /// Ranks the collected facts.
    pub fn of(from: &'a Extract) -> RankedContent<'a> {
        let ranked = from.names.ranked(MAX_NAMES);
        let pool = from.candidates.all.iter();
        let finder = ReferenceFinder::new(ranked.iter().map(|(text, _)| *text));
        let mut in_view = Covered {
            names: vec![false; ranked.len()],
            ..Covered::default()
        };
        in_view.see(&from.in_view, &finder);
        RankedContent {
            finder,
            in_view,
            ranked,
            obsolete: from.candidates.obsolete(),
            rarity: pool.map(|one| from.terms.rarity(&one.text)).collect(),
        }
    }
}

/// The content of a summary so far, for computing the gain of another sentence.
pub struct Coverage<'a> {
    from: &'a Extract,
    finder: &'a ReferenceFinder,
    said: Covered,
}

/// The limit of names, above the number that fits any summary.
const MAX_NAMES: usize = 4_000;
/// The worth of a name against that of an equally likely word: there are fewer names.
const NAME_WORTH: f64 = 8.0;
/// The worth of a pair of neighbouring words against that of one word.
const PAIR_WORTH: f64 = 0.45;
/// A name with this score is used again with a probability of one half.
const EVEN_SCORE: f64 = 4.0;

impl<'a> Coverage<'a> {
    /// Returns the coverage of an empty summary.
    pub fn new(from: &'a Extract, sources: &'a RankedContent<'a>) -> Coverage<'a> {
        Coverage {
            from,
            finder: &sources.finder,
            said: sources.in_view.clone(),
        }
    }

    /// Adds a text of the summary.
    pub fn see(&mut self, text: &str) {
        self.said.see(text, self.finder);
    }

    /// Says whether the summary has a ranked name.
    pub fn has_name(&self, index: usize) -> bool {
        self.said.names[index]
    }

    /// Returns the gain of a text: the sum of the likelihoods that its new content is used again.
    pub fn gain(&self, text: &str) -> f64 {
        let vocabulary = &self.from.terms;
        let mut sum = 0.0;
        let mut last: Option<(TermHash, f64)> = None;
        let mut own = TermSet::default();
        terms::for_each(text, |term| {
            let Some(term) = term else {
                last = None;
                return;
            };
            let weight = vocabulary.weight(term);
            if !self.said.words.contains(&term) && own.insert(term) {
                sum += weight;
            }
            if let Some((before, other)) = last {
                let pair = terms::pair(before, term);
                if !self.said.pairs.contains(&pair) && own.insert(pair) {
                    sum += PAIR_WORTH * (weight * other).sqrt();
                }
            }
            last = Some((term, weight));
        });
        references::for_each(text, |name| sum += NAME_WORTH * self.name_gain(name));
        sum
    }

    /// Returns how likely a name is to be used again; zero if the summary has it.
    fn name_gain(&self, name: &str) -> f64 {
        let is_said = self
            .finder
            .index(name)
            .is_none_or(|index| self.has_name(index));
        if is_said {
            0.0
        } else {
            likely(self.from.names.score(name))
        }
    }
}

/// Returns the likelihood, from 0 to 1, that a name with this score is used again.
pub fn likely(score: f64) -> f64 {
    score / (score + EVEN_SCORE)
}
