//! The sentences, lines and names with most of the terms used later, chosen by reading the future: no summary, but an
//! upper bound for texts assembled from the folded messages.

use std::cmp::Ordering;
use std::collections::{BTreeSet, BinaryHeap, HashSet};

use super::selection::Selection;
use super::{count_tokens, sentences};
use crate::measure::{MEASURES, Measure};
use crate::{FoldPoint, ParsedSession};

/// Ranks sentences, lines and names by the wanted terms that each adds for its tokens.
///
/// A term counts by its share of all wanted terms of its measure, so the three figures weigh the same. The choice is
/// greedy: each piece is the best after those before it.
pub fn selection(parsed: &ParsedSession, point: &FoldPoint) -> Selection {
    let mut weights = [0.0; MEASURES.len()];
    for term in &point.wanted {
        weights[parsed.vocabulary.measure(*term) as usize] += 1.0;
    }
    let weight = |term: u32| 1.0 / weights[parsed.vocabulary.measure(term) as usize];
    let pieces = pieces(parsed, point);
    let gain = |at: usize, held: &HashSet<u32>| -> f64 {
        let new = pieces[at].terms.iter().filter(|term| !held.contains(term));
        new.map(|term| weight(*term)).sum::<f64>() / pieces[at].tokens as f64
    };
    let mut held = HashSet::new();
    let mut heap: BinaryHeap<RankedPiece> = (0..pieces.len())
        .map(|at| RankedPiece {
            density: gain(at, &held),
            at,
        })
        .collect();
    let mut rank = Vec::new();
    while let Some(mut best) = heap.pop() {
        // The gain of a piece only decreases as others are chosen, so a piece whose new gain is still the largest is
        // the best.
        best.density = gain(best.at, &held);
        if best.density == 0.0 {
            continue;
        }
        if heap.peek().is_some_and(|next| best < *next) {
            heap.push(best);
            continue;
        }
        held.extend(&pieces[best.at].terms);
        rank.push(best.at);
    }
    let texts = pieces.into_iter().map(|piece| piece.text.to_owned());
    Selection::of_ranked(texts.collect(), rank)
}

/// A sentence, a line or a name.
struct OraclePiece<'a> {
    text: &'a str,
    tokens: u64,
    /// The wanted terms that it holds.
    terms: Vec<u32>,
}

/// A piece, and its gain per token.
struct RankedPiece {
    density: f64,
    at: usize,
}

impl Ord for RankedPiece {
    fn cmp(&self, other: &RankedPiece) -> Ordering {
        let by_density = self.density.total_cmp(&other.density);
        by_density.then(self.at.cmp(&other.at))
    }
}

impl PartialOrd for RankedPiece {
    fn partial_cmp(&self, other: &RankedPiece) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RankedPiece {
    fn eq(&self, other: &RankedPiece) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for RankedPiece {}

/// Returns the pieces of the folded messages with wanted terms: their sentences and lines, and each name by itself.
fn pieces<'a>(parsed: &'a ParsedSession, point: &FoldPoint) -> Vec<OraclePiece<'a>> {
    let names = point
        .wanted
        .iter()
        .filter(|term| parsed.vocabulary.measure(**term) == Measure::References);
    let names = names.map(|term| parsed.vocabulary.text(*term));
    let texts: BTreeSet<&str> = sentences::of_all_contents(parsed, &point.covers)
        .into_iter()
        .chain(names)
        .collect();
    let pieces = texts.into_iter().map(|text| {
        let mut terms = parsed.vocabulary.find(text);
        terms.retain(|term| point.wanted.contains(term));
        let tokens = if terms.is_empty() {
            0
        } else {
            count_tokens(text) + 1
        };
        OraclePiece {
            text,
            tokens,
            terms,
        }
    });
    pieces.filter(|piece| !piece.terms.is_empty()).collect()
}
