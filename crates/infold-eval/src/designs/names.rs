//! Bare names without any text: what nobody could work with, but keeps most names for its size.

use std::collections::HashMap;

use super::super::Material;
use super::selection::Selection;

/// A name that was last used so many messages earlier counts half.
const HALF_LIFE_MESSAGES: f64 = 100.0;

/// The most frequent names of these messages.
pub fn frequent(material: &Material, covers: &[usize]) -> Selection {
    let mut counts: HashMap<usize, f64> = HashMap::new();
    for place in covers {
        for (name, count) in &material.messages[*place].names {
            *counts.entry(*name).or_default() += f64::from(*count);
        }
    }
    ranked(material, counts)
}

/// The names that stand in most messages, those that were used last before others.
pub fn recent(material: &Material, covers: &[usize]) -> Selection {
    let mut found: HashMap<usize, (f64, usize)> = HashMap::new();
    for (at, place) in covers.iter().enumerate() {
        for (name, _) in &material.messages[*place].names {
            let (messages, last) = found.entry(*name).or_default();
            *messages += 1.0;
            *last = at;
        }
    }
    let scores = found.into_iter().map(|(name, (messages, last))| {
        let age = (covers.len() - 1 - last) as f64;
        (name, messages * 0.5_f64.powf(age / HALF_LIFE_MESSAGES))
    });
    ranked(material, scores.collect())
}

fn ranked(material: &Material, scores: HashMap<usize, f64>) -> Selection {
    let mut ranked: Vec<(usize, f64)> = scores.into_iter().collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let names = ranked.into_iter();
    Selection::of_names(
        names
            .map(|(name, _)| material.names[name].clone())
            .collect(),
    )
}
