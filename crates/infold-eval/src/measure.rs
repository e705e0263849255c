//! Measures stand-ins by the references, words and pairs of words that are used again later.
//!
//! The code that writes summaries (`infold::references`, `infold::extract`) shares no definition with this module:
//! otherwise a summary would be right by definition.

mod references;
mod stop_words;
mod vocabulary;
mod words;

use std::ops::{Index, IndexMut};

pub(crate) use references::each_reference;
pub use vocabulary::TermVocabulary;
pub(crate) use words::words;

named! {
    /// A kind of term that is counted.
    Measure,
    /// All measures, in the order in which they are printed.
    MEASURES: 3
    /// Tokens with inner structure: paths, identifiers, URLs, numbers, hexadecimal ids.
    References = "references",
    /// Plain words that are not stop words; in East Asian scripts, pairs of characters.
    Words = "words",
    /// Two such words next to each other.
    Pairs = "pairs",
}

/// The numbers of wanted and of kept terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Terms that were used again after they had been folded away.
    pub wanted: u64,
    /// The wanted terms that a stand-in contained.
    pub kept: u64,
}

impl Counts {
    /// Returns the share that was kept; `None` if there were no wanted terms.
    pub fn share(self) -> Option<f64> {
        (self.wanted > 0).then(|| self.kept as f64 / self.wanted as f64)
    }

    /// Adds other counts.
    pub fn add(&mut self, other: Counts) {
        self.wanted += other.wanted;
        self.kept += other.kept;
    }

    /// Returns how many were lost.
    pub fn lost(self) -> u64 {
        self.wanted - self.kept
    }
}

/// Counts by each measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scores([Counts; MEASURES.len()]);

impl Scores {
    /// Adds other counts.
    pub fn add(&mut self, other: Scores) {
        for measure in MEASURES {
            self[measure].add(other[measure]);
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
