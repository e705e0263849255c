//! Relevance by embeddings: vectors of the goal and of items, from the cache of the task or from a provider.

use std::collections::{HashMap, HashSet};

use infold_layers::{Field, LayerState};
use infold_store::{Log, TextVectors};

use crate::config::{LayersConfig, RelevanceMethod};

/// The most texts in one request.
const MAX_BATCH_TEXTS: usize = 128;
/// The most bytes of texts in one request.
const MAX_BATCH_BYTES: usize = 256 << 10;
/// The part of a text that is embedded: models read a few thousand tokens.
const MAX_TEXT_BYTES: usize = 8000;
/// For a state with more texts no vectors are requested: they would cost more than they are worth.
const MAX_TEXTS: usize = 4096;

/// Asks a provider for a vector of each text; an error is a text for people.
pub type Embed<'a> = dyn Fn(&[&str]) -> Result<Vec<Vec<f32>>, String> + 'a;

/// The source of vectors, and the reason if there are none.
#[derive(Default)]
pub struct VectorSource<'a> {
    embed: Option<&'a Embed<'a>>,
    /// The reason that relevance is by words although embeddings are configured.
    pub problem: Option<String>,
}

impl<'a> VectorSource<'a> {
    /// Returns a source of cached vectors, which makes no requests.
    pub fn cached() -> VectorSource<'a> {
        VectorSource::default()
    }

    /// Returns a source that requests the vectors that are not cached.
    pub fn asking(embed: &'a Embed<'a>) -> VectorSource<'a> {
        VectorSource {
            embed: Some(embed),
            problem: None,
        }
    }
}

/// The score of each text of a state against its goal.
pub(super) struct VectorScores(HashMap<String, f64>);

impl VectorScores {
    /// Returns the scores of texts; those without a vector match nothing.
    pub fn of(&self, texts: &[&str]) -> Vec<f64> {
        let score = |text: &&str| self.0.get(shortened(text)).copied().unwrap_or(0.0);
        texts.iter().map(score).collect()
    }
}

/// Scores the ranked items of a state by embeddings; `None` if relevance is to be computed from words instead.
pub(super) fn vector_scores(
    state: &LayerState,
    log: &Log,
    config: &LayersConfig,
    source: &mut VectorSource<'_>,
) -> Option<VectorScores> {
    if config.relevance.value != RelevanceMethod::Embeddings {
        return None;
    }
    let goal = shortened(state.text(Field::Goal)?);
    let ranked = config.ranked.iter().flat_map(|field| state.items(*field));
    let texts: HashSet<&str> = ranked.map(|item| shortened(&item.text)).collect();
    if texts.is_empty() {
        return None;
    }
    match scores(goal, texts, log, config, source.embed) {
        Ok(scores) => Some(scores),
        Err(problem) => {
            source.problem.get_or_insert(problem);
            None
        }
    }
}

fn scores(
    goal: &str,
    texts: HashSet<&str>,
    log: &Log,
    config: &LayersConfig,
    embed: Option<&Embed<'_>>,
) -> Result<VectorScores, String> {
    if texts.len() > MAX_TEXTS {
        let count = texts.len();
        return Err(format!("{count} items are too many for embeddings"));
    }
    let model = config.embedding_model.as_ref();
    let model = model.ok_or("`layers.embedding_model` is not set")?;
    let model = model.value.as_str();
    let mut vectors = log.text_vectors();
    let mut wanted: Vec<&str> = texts.iter().copied().chain([goal]).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let missing = |vectors: &mut TextVectors| -> Vec<&str> {
        let texts = wanted.iter().copied();
        texts
            .filter(|text| vectors.get(model, text).is_none())
            .collect()
    };
    let asked = missing(&mut vectors);
    if !asked.is_empty() {
        let embed = embed.ok_or("the vectors of some items are not known yet")?;
        let fetched = fetch(&asked, model, embed, &mut vectors);
        // Vectors that arrived before an error are cached, so that the next build requests fewer.
        log.keep_text_vectors(&vectors);
        fetched?;
    }
    let of_goal = vectors.get(model, goal).map(<[f32]>::to_vec);
    let of_goal = of_goal.ok_or("there is no vector of the goal")?;
    let mut scores = HashMap::with_capacity(texts.len());
    for text in texts {
        let vector = vectors.get(model, text);
        let vector = vector.ok_or("there is no vector of an item")?;
        if vector.len() != of_goal.len() {
            return Err(format!("vectors of {model} differ in length"));
        }
        scores.insert(text.to_owned(), cosine(&of_goal, vector));
    }
    Ok(VectorScores(scores))
}

/// Requests vectors in batches, and adds them to `vectors`.
fn fetch(
    texts: &[&str],
    model: &str,
    embed: &Embed<'_>,
    vectors: &mut TextVectors,
) -> Result<(), String> {
    let mut rest = texts;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |text: &&&str| {
            bytes += text.len();
            bytes <= MAX_BATCH_BYTES
        };
        let count = rest.iter().take(MAX_BATCH_TEXTS).take_while(fits).count();
        let (batch, after) = rest.split_at(count.max(1));
        let found = embed(batch)?;
        if found.len() != batch.len() {
            return Err("there is not a vector for each text".to_owned());
        }
        for (text, vector) in batch.iter().zip(found) {
            vectors.insert(model, text, vector);
        }
        rest = after;
    }
    Ok(())
}

/// Returns the cosine of the angle between two vectors, or 0 if it is negative.
fn cosine(one: &[f32], other: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        let pairs = a.iter().zip(b);
        pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let norm = (dot(one, one) * dot(other, other)).sqrt();
    if norm > 0.0 {
        (dot(one, other) / norm).clamp(0.0, 1.0)
    } else {
        0.0
    }
}

/// Returns the beginning of a text, as much of it as is embedded.
fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cosine_is_between_zero_and_one() {
        assert_eq!(cosine(&[1.0, 0.0], &[2.0, 0.0]), 1.0);
        assert_eq!(cosine(&[1.0, 0.0], &[0.0, 1.0]), 0.0);
        assert_eq!(cosine(&[1.0, 0.0], &[-1.0, 0.0]), 0.0);
        assert_eq!(cosine(&[0.0, 0.0], &[1.0, 0.0]), 0.0);
        assert!((cosine(&[1.0, 1.0], &[1.0, 0.0]) - 0.5_f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn texts_are_asked_for_in_batches() {
        let long = "x".repeat(MAX_TEXT_BYTES);
        let texts: Vec<String> = (0..300).map(|at| format!("{at} {long}")).collect();
        let texts: Vec<&str> = texts.iter().map(|text| shortened(text)).collect();
        let sizes = std::cell::RefCell::new(Vec::new());
        let embed = |batch: &[&str]| {
            let bytes: usize = batch.iter().map(|text| text.len()).sum();
            assert!(bytes <= MAX_BATCH_BYTES);
            sizes.borrow_mut().push(batch.len());
            Ok(vec![vec![1.0]; batch.len()])
        };
        let mut vectors = TextVectors::default();
        fetch(&texts, "m", &embed, &mut vectors).expect("all of them");
        assert_eq!(sizes.borrow().iter().sum::<usize>(), 300);
        assert!(texts.iter().all(|text| vectors.get("m", text).is_some()));
    }
}
