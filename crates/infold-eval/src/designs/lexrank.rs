//! The most central sentences of user and assistant, by LexRank.

use std::collections::HashMap;

use super::selection::Selection;
use super::sentences;
use crate::measure::words;
use crate::{FoldPoint, ParsedSession};

/// The most sentences that are ranked; of more, a sample is.
const MAX_SENTENCES: usize = 2_000;
/// The number of iterations.
const ITERATIONS: usize = 30;
/// The share of its centrality that each sentence has by itself.
const DAMPING: f64 = 0.15;

/// Ranks the sentences of user and assistant by how similar each is to all others.
pub fn selection(parsed: &ParsedSession, point: &FoldPoint) -> Selection {
    let texts = sentences::of_prose(parsed, &point.covers);
    let texts = sentences::sample(texts, MAX_SENTENCES);
    let scores = centrality(&texts);
    let texts = texts.into_iter().map(str::to_owned);
    Selection::of_sentences(texts.zip(scores).collect())
}

/// Returns the stationary distribution of a walk from sentence to sentence by tf-idf cosine.
///
/// The matrix of similarities is the product of the sentences' vectors with themselves and is never computed:
/// each step goes from sentences to words and back, in time linear in the text.
fn centrality(said: &[&str]) -> Vec<f64> {
    let vectors = SentenceVectors::new(said);
    let count = said.len().max(1) as f64;
    let sums = vectors.similarities(&vec![1.0; said.len()]);
    let mut ranks = vec![1.0 / count; said.len()];
    for _ in 0..ITERATIONS {
        let shares: Vec<f64> = ranks
            .iter()
            .zip(&sums)
            .map(|(rank, sum)| if *sum > 1e-9 { rank / sum } else { 0.0 })
            .collect();
        let passed = vectors.similarities(&shares);
        for (rank, passed) in ranks.iter_mut().zip(passed) {
            *rank = DAMPING / count + (1.0 - DAMPING) * passed;
        }
    }
    ranks
}

/// Sentences as vectors of length one.
struct SentenceVectors {
    sentences: Vec<Vec<(usize, f64)>>,
    words: usize,
}

impl SentenceVectors {
    fn new(said: &[&str]) -> SentenceVectors {
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let mut holders: Vec<f64> = Vec::new();
        let mut sentences: Vec<Vec<(usize, f64)>> = Vec::with_capacity(said.len());
        for sentence in said {
            let mut counts: Vec<(usize, f64)> = Vec::new();
            for word in words(sentence) {
                let next = numbers.len();
                let number = *numbers.entry(word.text).or_insert(next);
                match counts.iter_mut().find(|(known, _)| *known == number) {
                    Some((_, count)) => *count += 1.0,
                    None => counts.push((number, 1.0)),
                }
            }
            holders.resize(numbers.len(), 0.0);
            counts.iter().for_each(|(word, _)| holders[*word] += 1.0);
            sentences.push(counts);
        }
        for vector in &mut sentences {
            for (word, weight) in vector.iter_mut() {
                *weight *= (1.0 + said.len() as f64 / holders[*word]).ln();
            }
            let length = vector.iter().map(|(_, w)| w * w).sum::<f64>().sqrt();
            vector.iter_mut().for_each(|(_, weight)| *weight /= length);
        }
        SentenceVectors {
            sentences,
            words: holders.len(),
        }
    }

    /// Returns the sum of the weighted similarities of each sentence with all others.
    fn similarities(&self, weights: &[f64]) -> Vec<f64> {
        let mut words = vec![0.0; self.words];
        for (vector, weight) in self.sentences.iter().zip(weights) {
            for (word, value) in vector {
                words[*word] += value * weight;
            }
        }
        let sentences = self.sentences.iter().zip(weights);
        sentences
            .map(|(vector, weight)| {
                let with_all: f64 = vector.iter().map(|(word, v)| v * words[*word]).sum();
                let with_itself: f64 = vector.iter().map(|(_, v)| v * v).sum::<f64>() * weight;
                (with_all - with_itself).max(0.0)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_that_shares_most_with_others_is_central() {
        let said = [
            "Invoices are archived",
            "Archived invoices leave the database on Friday",
            "The database is slow on Friday",
            "Lunch was fine",
            "",
        ];
        let ranks = centrality(&said);
        let best = (0..said.len()).max_by(|a, b| ranks[*a].total_cmp(&ranks[*b]));
        assert_eq!(best, Some(1), "{ranks:?}");
        assert!(ranks[3] < ranks[0] && ranks[4] <= ranks[3], "{ranks:?}");
        assert!(ranks[..4].iter().sum::<f64>() <= 1.0 + 1e-9);
    }
}
