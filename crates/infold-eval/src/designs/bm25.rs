//! Sentences and lines that match the last request best, by BM25.

use std::collections::{HashMap, HashSet};

use super::selection::Selection;
use super::sentences;
use crate::measure::words;
use crate::{FoldPoint, ParsedSession};

/// The most sentences and lines that are ranked; of more, a sample is.
const MAX_SENTENCES: usize = 20_000;
/// The saturation of repeated words (`k1`).
const SATURATION: f64 = 1.2;
/// The weight of a sentence's length against it (`b`).
const LENGTH_WEIGHT: f64 = 0.75;

/// Ranks the sentences and lines that a point covers against the last request before it.
///
/// If the request has no word in common with any, the newest come first.
pub fn selection(parsed: &ParsedSession, point: &FoldPoint) -> Selection {
    let texts = sentences::of_all_contents(parsed, &point.covers);
    let texts = sentences::sample(texts, MAX_SENTENCES);
    let query: HashSet<String> = last_request(parsed, point.at)
        .map(|text| words(text).into_iter().map(|word| word.text).collect())
        .unwrap_or_default();
    let mut lengths = Vec::with_capacity(texts.len());
    let mut matches: Vec<HashMap<String, f64>> = Vec::with_capacity(texts.len());
    let mut holders: HashMap<String, f64> = HashMap::new();
    for sentence in &texts {
        let all = words(sentence);
        lengths.push(all.len() as f64);
        let mut counts: HashMap<String, f64> = HashMap::new();
        for word in all.into_iter().filter(|word| query.contains(&word.text)) {
            *counts.entry(word.text).or_default() += 1.0;
        }
        for word in counts.keys() {
            *holders.entry(word.clone()).or_default() += 1.0;
        }
        matches.push(counts);
    }
    let count = texts.len() as f64;
    let mean = (lengths.iter().sum::<f64>() / count.max(1.0)).max(1.0);
    let score = |counts: &HashMap<String, f64>, length: f64| -> f64 {
        let norm = SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length / mean);
        let mut words: Vec<(&String, &f64)> = counts.iter().collect();
        // Sums of floats depend on their order, and a map has none.
        words.sort_by_key(|(word, _)| *word);
        let words = words.into_iter().map(|(word, times)| {
            let holders = holders[word];
            let rarity = (1.0 + (count - holders + 0.5) / (holders + 0.5)).ln();
            rarity * times * (SATURATION + 1.0) / (times + norm)
        });
        words.sum()
    };
    let scores: Vec<f64> = matches
        .iter()
        .zip(&lengths)
        .map(|(counts, length)| score(counts, *length))
        .collect();
    let texts = texts.into_iter().map(str::to_owned);
    Selection::of_sentences(texts.zip(scores).collect())
}

/// Returns the last request of the user before a fold.
fn last_request(parsed: &ParsedSession, at: usize) -> Option<&str> {
    let before = parsed.messages[..at.min(parsed.len())].iter().rev();
    let mut requests = before.filter(|it| it.is_request() && !it.words.text.is_empty());
    requests.next().map(|request| &*request.words.text)
}
