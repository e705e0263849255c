//! What a summary says already: names, words and pairs of words.

use crate::extract::Extract;
use crate::extract::names::NameRecord;
use crate::extract::terms::{self, Term, TermSet};
use crate::references::{self, ReferenceFinder};

/// What a summary is written from, ranked once however often it is composed.
pub struct RankedContent<'a> {
    /// NameTable, the likeliest to be referred to first.
    pub ranked: Vec<(&'a str, &'a NameRecord)>,
    finder: ReferenceFinder,
    /// Whether a later sentence says otherwise, for each of the pool.
    pub obsolete: Vec<bool>,
    /// How much of each sentence of the pool was said seldom.
    pub rarity: Vec<f64>,
    /// What is said in view beside the summary.
    in_view: Covered,
}

/// NameTable, words and pairs of words that are said.
#[derive(Clone, Default)]
struct Covered {
    /// Whether each of the ranked names is.
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
    /// Ranks what was collected.
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

/// Which names and words a text already has, and what another sentence would add.
pub struct Coverage<'a> {
    from: &'a Extract,
    finder: &'a ReferenceFinder,
    said: Covered,
}

/// More names than any summary has room for.
const MAX_NAMES: usize = 4_000;
/// What a name is worth against a word that is as likely to be said again: there are fewer of them.
const NAME_WORTH: f64 = 8.0;
/// What two words beside each other are worth against one.
const PAIR_WORTH: f64 = 0.45;
/// A name with this score is as likely as not to be referred to.
const EVEN_SCORE: f64 = 4.0;

impl<'a> Coverage<'a> {
    /// Nothing is said yet.
    pub fn new(from: &'a Extract, sources: &'a RankedContent<'a>) -> Coverage<'a> {
        Coverage {
            from,
            finder: &sources.finder,
            said: sources.in_view.clone(),
        }
    }

    /// Takes in a text that the summary has.
    pub fn see(&mut self, text: &str) {
        self.said.see(text, self.finder);
    }

    /// Says whether one of the ranked names is said.
    pub fn has_name(&self, index: usize) -> bool {
        self.said.names[index]
    }

    /// What a text would add: how likely it is that what only it says is said again, in all.
    pub fn gain(&self, text: &str) -> f64 {
        let vocabulary = &self.from.terms;
        let mut sum = 0.0;
        let mut last: Option<(Term, f64)> = None;
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

    /// How likely a name is to be referred to again; nothing if it is said already.
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

/// Turns a score of a name into how likely it is to be referred to, from 0 to 1.
pub fn likely(score: f64) -> f64 {
    score / (score + EVEN_SCORE)
}
