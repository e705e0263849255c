//! Scores how well texts match a goal, by BM25 over the same terms as the search index.

use std::collections::HashMap;

use infold_wire::terms::{DocumentTerms, FormKind, Query};

/// BM25 `k1`: how soon further occurrences of a term stop adding to the score. The usual value.
const K1: f64 = 1.2;
/// BM25 `b`: how strongly the length of a text reduces the weight of the terms in it.
const B: f64 = 0.3;
/// The weight of a word with the same stem, relative to the word itself.
const STEM_WEIGHT: f64 = 0.7;
/// The weight of a synonym.
const SYNONYM_WEIGHT: f64 = 0.5;
/// The weight of a word that begins or ends like the word itself, such as a compound.
const KIN_WEIGHT: f64 = 0.3;

/// Returns for each text how well it matches a goal, from 0 (no term in common) to 1.
///
/// The score is divided by the largest possible one, so that scores for different goals can be compared.
pub fn relevance(goal: &str, texts: &[&str]) -> Vec<f64> {
    let query = Query::parse(goal);
    let forms = QueryForms::of(&query);
    let width = query.terms.len();
    // A matrix with a row for each text: the weighted count of each query term in it.
    let mut counts: Vec<f64> = vec![0.0; texts.len() * width];
    let mut lengths: Vec<f64> = Vec::with_capacity(texts.len());
    let mut texts_with = vec![0_usize; width];
    for (at, text) in texts.iter().enumerate() {
        let terms = DocumentTerms::of(text);
        let found = &mut counts[at * width..(at + 1) * width];
        let lists = [&terms.words, &terms.wholes, &terms.stems];
        for term in lists.into_iter().flat_map(|list| list.split(' ')) {
            forms.count(term, found);
        }
        for (at, count) in found.iter().enumerate() {
            texts_with[at] += usize::from(*count > 0.0);
        }
        lengths.push(terms.count.max(1) as f64);
    }
    let mean = lengths.iter().sum::<f64>() / lengths.len().max(1) as f64;
    let total = texts.len() as f64;
    let rarity = |count: &usize| (1.0 + (total - *count as f64 + 0.5) / (*count as f64 + 0.5)).ln();
    let weights: Vec<f64> = texts_with.iter().map(rarity).collect();
    // The limit of the sum for a text in which each query term occurs infinitely often.
    let best = weights.iter().sum::<f64>() * (K1 + 1.0);
    let score = |(at, length): (usize, &f64)| {
        let found = &counts[at * width..(at + 1) * width];
        let norm = K1 * (1.0 - B + B * length / mean);
        let terms = found.iter().zip(&weights);
        let sum: f64 = terms
            .map(|(count, weight)| weight * count * (K1 + 1.0) / (count + norm))
            .sum();
        if best > 0.0 { sum / best } else { 0.0 }
    };
    lengths.iter().enumerate().map(score).collect()
}

/// An index of the forms of the query terms. A form leads to the positions of its terms in the query, with weights.
struct QueryForms<'a> {
    /// Forms that match a whole term of a text.
    whole: HashMap<&'a str, Vec<(usize, f64)>>,
    /// Forms that match the terms that start with them.
    prefixes: Vec<(&'a str, usize, f64)>,
}

impl<'a> QueryForms<'a> {
    fn of(query: &'a Query) -> QueryForms<'a> {
        let mut forms = QueryForms {
            whole: HashMap::new(),
            prefixes: Vec::new(),
        };
        for (at, term) in query.terms.iter().enumerate() {
            for form in &term.forms {
                let weight = match form.kind {
                    FormKind::Word => 1.0,
                    FormKind::Stem => STEM_WEIGHT,
                    FormKind::Synonym => SYNONYM_WEIGHT,
                    FormKind::Kin => KIN_WEIGHT,
                };
                if form.is_prefix {
                    forms.prefixes.push((&form.term, at, weight));
                } else {
                    let whole = forms.whole.entry(&form.term).or_default();
                    whole.push((at, weight));
                }
            }
        }
        forms
    }

    /// Adds a term of a text to the counts of the query terms that it matches. Prefixes count only for a term that is not
    /// the whole of any form.
    fn count(&self, term: &str, found: &mut [f64]) {
        if let Some(whole) = self.whole.get(term) {
            for (at, weight) in whole {
                found[*at] += weight;
            }
            return;
        }
        for (start, at, weight) in &self.prefixes {
            if term.starts_with(start) {
                found[*at] += weight;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shares_rare_words_with_the_goal_is_most_relevant() {
        let texts = [
            "the build takes nine minutes",
            "users.email must stay unique while we migrate",
            "migrations run at night",
        ];
        let scores = relevance("migrate the users table", &texts);
        assert!(scores[1] > scores[2] && scores[2] > scores[0], "{scores:?}");
        assert_eq!(scores[0], 0.0);
        assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)));
    }

    #[test]
    fn a_goal_in_japanese_finds_its_facts() {
        let texts = ["認証サーバーは毎晩再起動される", "請求書は月末に送る"];
        let scores = relevance("認証の不具合を直す", &texts);
        assert!(scores[0] > scores[1], "{scores:?}");
    }

    #[test]
    fn no_goal_or_no_text_is_no_error() {
        assert!(relevance("", &[]).is_empty());
        assert_eq!(relevance("", &["a"]), [0.0]);
    }
}
