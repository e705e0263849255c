//! Sentences of user and assistant in order, taken evenly from all folded messages.

use super::selection::fill;
use super::{count_tokens, sentences};
use crate::ParsedSession;

/// Sentences and their tokens.
pub struct Prose(Vec<(String, u64)>);

impl Prose {
    /// Reads the sentences of these messages.
    pub fn new(parsed: &ParsedSession, covers: &[usize]) -> Prose {
        let texts = sentences::of_prose(parsed, covers).into_iter();
        // The space before the next sentence counts, too.
        Prose(
            texts
                .map(|text| (text.to_owned(), count_tokens(text) + 1))
                .collect(),
        )
    }

    /// Writes as many as fit into `budget` tokens.
    pub fn write(&self, budget: u64) -> String {
        fill(budget, |room| self.compose(room))
    }

    fn compose(&self, budget: u64) -> String {
        let total: u64 = self.0.iter().map(|(_, tokens)| tokens).sum();
        let share = budget as f64 / total.max(1) as f64;
        let mut out: Vec<&str> = Vec::new();
        let (mut seen, mut used) = (0, 0);
        for (sentence, tokens) in &self.0 {
            seen += tokens;
            // The share of the budget for the sentences so far. A sentence is taken if at least half of it is due.
            let due = seen as f64 * share;
            if used + tokens <= budget && (used as f64 + *tokens as f64 / 2.0) <= due {
                used += tokens;
                out.push(sentence);
            }
        }
        out.join(" ")
    }
}
