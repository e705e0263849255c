//! Chooses the sentences and names that add most to a summary, as long as there is room.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

use infold_wire::shorten;

use super::coverage::likely;
use super::lists::name_tokens;
use super::{FINDINGS_PERCENT, FOUND, SAID, SEEN, SummaryWriter, tokens};
use crate::extract::candidates::Candidate;
use crate::extract::names::MentionOrigin;

/// The most candidates that are compared: those with the highest gain of their own.
const MAX_COMPARED: usize = 4_000;

/// The worth of a name in a list, where it is next to its file or call.
const LISTED_NAME_WORTH: f64 = 50.0;
/// The worth of a rare word against that of a word that is likely to be used again.
const RARITY_WORTH: f64 = 0.25;
/// The rarity from which on a sentence counts as new.
const FULL_RARITY: f64 = 2.0;
/// More rarity than this does not count.
const MAX_RARITY: f64 = 8.0;

/// The fewest tokens of a name.
const MIN_NAME_TOKENS: usize = 4;
/// The fewest tokens of a useful sentence.
const MIN_SENTENCE_TOKENS: usize = 12;

/// The chosen sentences by message, those of results last.
type Excerpts = BTreeMap<(bool, u64), Vec<usize>>;

fn place_of(candidate: &Candidate) -> (bool, u64) {
    (candidate.origin == MentionOrigin::Result, candidate.seq)
}

/// A candidate and its gain per token.
struct RankedCandidate {
    density: f64,
    at: usize,
    /// The number of quoted sentences when that was computed.
    quoted: usize,
}

impl PartialEq for RankedCandidate {
    fn eq(&self, other: &RankedCandidate) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for RankedCandidate {}

impl PartialOrd for RankedCandidate {
    fn partial_cmp(&self, other: &RankedCandidate) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RankedCandidate {
    fn cmp(&self, other: &RankedCandidate) -> Ordering {
        let by_density = self.density.total_cmp(&other.density);
        by_density.then(self.at.cmp(&other.at))
    }
}

impl<'a> SummaryWriter<'a> {
    /// Quotes the assistant's conclusions and decisions.
    pub(super) fn findings(&mut self) {
        let share = self.share(FINDINGS_PERCENT);
        self.excerpts(FOUND, share, |candidate| {
            candidate.origin == MentionOrigin::Assistant
        });
    }

    /// Fills the rest with sentences and names, whichever add more for their length.
    pub(super) fn fill(&mut self, with_words: bool) {
        let mut heap = BinaryHeap::new();
        if with_words {
            heap = self.ranked(|_| true);
            let headings = self.heading_cost(SAID) + self.heading_cost(SEEN);
            self.left = self.left.saturating_sub(headings);
        }
        let mut chosen = Excerpts::new();
        let mut name = 0;
        while self.left >= MIN_NAME_TOKENS {
            while name < self.sources.ranked.len() && self.coverage.has_name(name) {
                name += 1;
            }
            match self.next(&mut heap, &chosen) {
                Some(ranked) if ranked.density >= self.name_density(name) => {
                    self.left -= self.quote_sentence(ranked.at, self.left, &mut chosen);
                }
                ranked => {
                    heap.extend(ranked);
                    if name >= self.sources.ranked.len() {
                        break;
                    }
                    self.list_name(name);
                    name += 1;
                }
            }
        }
        self.write_excerpts(SAID, SEEN, chosen);
        self.write_lists();
    }

    /// Returns the gain of a name per token.
    fn name_density(&self, name: usize) -> f64 {
        let Some((text, _)) = self.sources.ranked.get(name) else {
            return 0.0;
        };
        let cost = (name_tokens(text) + self.heading_line_cost(name)) as f64;
        LISTED_NAME_WORTH * likely(self.from.names.score(text)) / cost
    }

    /// Chooses sentences of one kind within a share.
    fn excerpts(
        &mut self,
        heading: &'static str,
        share: usize,
        wanted: impl Fn(&Candidate) -> bool,
    ) {
        let mut heap = self.ranked(wanted);
        let mut chosen = Excerpts::new();
        let whole = share.saturating_sub(self.heading_cost(heading));
        let mut left = whole;
        while left >= MIN_SENTENCE_TOKENS
            && let Some(ranked) = self.next(&mut heap, &chosen)
        {
            left -= self.quote_sentence(ranked.at, left, &mut chosen);
        }
        if left < whole {
            self.left = self.left.saturating_sub(share - left);
        }
        self.write_excerpts(heading, heading, chosen);
    }

    /// Quotes a sentence of the pool if it fits; returns its tokens.
    fn quote_sentence(&mut self, at: usize, left: usize, chosen: &mut Excerpts) -> usize {
        let candidate = &self.from.candidates.all[at];
        let is_new = !chosen.contains_key(&place_of(candidate));
        let cost = tokens(&candidate.text) + if is_new { 6 } else { 2 };
        if cost > left {
            return 0;
        }
        self.coverage.see(&candidate.text);
        self.quoted.insert(at);
        chosen.entry(place_of(candidate)).or_default().push(at);
        cost
    }

    /// Returns the wanted sentences that are not quoted yet, by their gain.
    fn ranked(&self, wanted: impl Fn(&Candidate) -> bool) -> BinaryHeap<RankedCandidate> {
        let all = &self.from.candidates.all;
        let mut ranked: Vec<RankedCandidate> = (0..all.len())
            .filter(|at| !self.sources.obsolete[*at] && !self.quoted.contains(at))
            .filter(|at| wanted(&all[*at]))
            .map(|at| RankedCandidate {
                density: self.density(at, false),
                at,
                quoted: usize::MAX,
            })
            .collect();
        if ranked.len() > MAX_COMPARED {
            ranked.select_nth_unstable_by(MAX_COMPARED, |a, b| b.cmp(a));
            ranked.truncate(MAX_COMPARED);
        }
        ranked.into()
    }

    /// Takes the sentence that adds most for its length; densities from before the last quotation are computed again.
    fn next(
        &self,
        heap: &mut BinaryHeap<RankedCandidate>,
        chosen: &Excerpts,
    ) -> Option<RankedCandidate> {
        let quoted = self.quoted.len();
        while let Some(mut ranked) = heap.pop() {
            if ranked.quoted == quoted {
                return (ranked.density > 0.0).then_some(ranked);
            }
            let place = place_of(&self.from.candidates.all[ranked.at]);
            ranked.density = self.density(ranked.at, chosen.contains_key(&place));
            ranked.quoted = quoted;
            if ranked.density > 0.0 {
                heap.push(ranked);
            }
        }
        None
    }

    /// Returns the gain of a sentence per token.
    fn density(&self, at: usize, beside: bool) -> f64 {
        let candidate = &self.from.candidates.all[at];
        let mut weight = match candidate.origin {
            MentionOrigin::User => 1.4,
            MentionOrigin::Assistant => 1.0,
            MentionOrigin::Call | MentionOrigin::Result => 0.3,
        };
        if candidate.is_final {
            weight *= 1.25;
        }
        if candidate.decides {
            weight *= 1.3;
        }
        let overhead = if beside { 2.0 } else { 6.0 };
        let mut gain = self.coverage.gain(&candidate.text);
        if candidate.origin == MentionOrigin::Assistant {
            // Repeated phrases are not new, while a rare one occurs nowhere else.
            let rarity = self.sources.rarity[at].min(MAX_RARITY);
            weight *= (rarity / FULL_RARITY).clamp(0.1, 1.0);
            gain += RARITY_WORTH * rarity;
        }
        weight * gain / (candidate.text.len() as f64 / 3.8 + overhead)
    }

    /// Writes a line for each message: its sentences in order, those of results under a separate heading.
    fn write_excerpts(&mut self, said: &'static str, seen: &'static str, chosen: Excerpts) {
        for ((is_result, seq), mut places) in chosen {
            places.sort_unstable();
            let texts: Vec<String> = places
                .iter()
                .map(|at| shorten(&self.from.candidates.all[*at].text, usize::MAX))
                .collect();
            let line = format!("- [{seq}] {}", texts.join(" … "));
            let heading = if is_result { seen } else { said };
            self.sections.entry(heading).or_default().push(line);
        }
    }
}
