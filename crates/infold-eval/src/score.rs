//! What a stand-in is measured by: references, words and pairs of words that are used again later.
//!
//! The definitions here are the measure's own. What chooses the contents of a summary (`refs`, `extract`) does
//! not use them, and they use nothing of it, so that a summary cannot be right by definition.

mod references;
mod stop;
mod vocabulary;
mod words;

use std::ops::{Index, IndexMut};

pub(super) use references::each_reference;
pub use vocabulary::Vocabulary;
pub(super) use words::words;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Tokens with inner structure: paths, identifiers, URLs, numbers, hexadecimal ids.
    References,
    /// Plain words that are not stop words; in East Asian scripts, pairs of characters.
    Words,
    /// Two such words next to each other.
    Pairs,
}

/// All measures, in the order in which they are printed.
pub const MEASURES: [Measure; 3] = [Measure::References, Measure::Words, Measure::Pairs];

impl Measure {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Measure::References => "references",
            Measure::Words => "words",
            Measure::Pairs => "pairs",
        }
    }
}

/// How many terms were wanted, and how many of them were kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Terms that were used again after they had been folded away.
    pub wanted: u64,
    /// How many of them a stand-in held.
    pub kept: u64,
}

impl Counts {
    /// The share that was kept; none if nothing was wanted.
    pub fn share(self) -> Option<f64> {
        (self.wanted > 0).then(|| self.kept as f64 / self.wanted as f64)
    }

    /// How many were lost.
    pub fn lost(self) -> u64 {
        self.wanted - self.kept
    }
}

/// Counts by each measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scores([Counts; MEASURES.len()]);

impl Scores {
    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: Scores) {
        for measure in MEASURES {
            self[measure].wanted += other[measure].wanted;
            self[measure].kept += other[measure].kept;
        }
    }
}

impl Index<Measure> for Scores {
    type Output = Counts;

    fn index(&self, measure: Measure) -> &Counts {
        &self.0[measure as usize]
    }
}

impl IndexMut<Measure> for Scores {
    fn index_mut(&mut self, measure: Measure) -> &mut Counts {
        &mut self.0[measure as usize]
    }
}
