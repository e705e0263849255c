//! Bare names without any text: useless as a summary, but an upper bound for names kept in a size.

use std::collections::HashMap;

use super::selection::Selection;
use crate::{FoldPoint, ParsedSession};

/// A name that was last used this many messages earlier counts half.
const HALF_LIFE_MESSAGES: f64 = 100.0;

/// Selects the most frequent names of the folded messages.
pub fn frequent(parsed: &ParsedSession, point: &FoldPoint) -> Selection {
    let mut counts: HashMap<usize, f64> = HashMap::new();
    for place in &point.covers {
        for (name, count) in &parsed.messages[*place].names {
            *counts.entry(*name).or_default() += f64::from(*count);
        }
    }
    rank_names(parsed, counts)
}

/// Selects the names that occur in most messages; those that were used last come first.
pub fn recent(parsed: &ParsedSession, point: &FoldPoint) -> Selection {
    let mut found: HashMap<usize, (f64, usize)> = HashMap::new();
    for (at, place) in point.covers.iter().enumerate() {
        for (name, _) in &parsed.messages[*place].names {
            let (messages, last) = found.entry(*name).or_default();
            *messages += 1.0;
            *last = at;
        }
    }
    let scores = found.into_iter().map(|(name, (messages, last))| {
        let age = (point.covers.len() - 1 - last) as f64;
        (name, messages * 0.5_f64.powf(age / HALF_LIFE_MESSAGES))
    });
    rank_names(parsed, scores.collect())
}

fn rank_names(parsed: &ParsedSession, scores: HashMap<usize, f64>) -> Selection {
    let mut ranked: Vec<(usize, f64)> = scores.into_iter().collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let names = ranked.into_iter();
    Selection::of_names(names.map(|(name, _)| parsed.names[name].clone()).collect())
}
