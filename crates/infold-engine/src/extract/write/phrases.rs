//! Lists phrases that recur within a share of the budget.

use std::collections::BinaryHeap;

use super::quotations::RankedCandidate;
use super::{PHRASES, PHRASES_PERCENT, SummaryWriter, tokens};

impl SummaryWriter<'_> {
    /// Lists the phrases that add most for their length.
    pub(super) fn phrases(&mut self) {
        let whole = self.share(PHRASES_PERCENT);
        // The line begins with a dash.
        let Some(mut left) = whole.checked_sub(self.heading_cost(PHRASES) + 1) else {
            return;
        };
        let phrases = &self.sources.phrases;
        let ranked = |density, at| RankedCandidate {
            density,
            at,
            quoted: 0,
        };
        let mut heap: BinaryHeap<RankedCandidate> = (0..phrases.len())
            .map(|at| ranked(self.phrase_density(at), at))
            .collect();
        let mut texts: Vec<&str> = Vec::new();
        while let Some(best) = heap.pop() {
            // A phrase adds less the more is listed, so one that is still ahead of the next is the best.
            let best = ranked(self.phrase_density(best.at), best.at);
            if best.density <= 0.0 {
                continue;
            }
            if heap.peek().is_some_and(|next| best < *next) {
                heap.push(best);
                continue;
            }
            let text = phrases[best.at].text;
            let cost = tokens(&format!(", {text}"));
            if cost > left {
                break;
            }
            left -= cost;
            self.coverage.see(text);
            texts.push(text);
        }
        if !texts.is_empty() {
            self.left -= whole - left;
            let line = format!("- {}", texts.join(", "));
            self.sections.entry(PHRASES).or_default().push(line);
        }
    }

    /// Returns what a phrase would add for its length.
    fn phrase_density(&self, at: usize) -> f64 {
        let phrase = &self.sources.phrases[at];
        self.coverage.phrase_gain(phrase) / (phrase.text.len() as f64 / 5.0 + 1.5)
    }
}
