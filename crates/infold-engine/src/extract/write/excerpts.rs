//! Chooses sentences that say most of what is not said yet, and names, as long as there is room.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

use infold_wire::shorten;

use super::coverage::{NAME_WORTH, likely};
use super::{Draft, FINDINGS_PERCENT, FOUND, SAID, SEEN, tokens};
use crate::extract::names::Source;
use crate::extract::pool::Candidate;

/// So many candidates are compared at most: those that say most by themselves.
const MAX_COMPARED: usize = 4_000;

/// What a word that was seldom said is worth in a sentence that concludes something.
const FINDING_WORTH: f64 = 0.25;

/// Sentences that were chosen, by the message they stand in, results after what was said.
type Excerpts = BTreeMap<(bool, u64), Vec<usize>>;

fn place_of(candidate: &Candidate) -> (bool, u64) {
    (candidate.source == Source::Given, candidate.seq)
}

/// A candidate and what it would add for its length, as far as is known.
struct Ranked {
    density: f64,
    at: usize,
    /// How much was said when that was found out.
    round: usize,
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Ranked) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Ranked) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Ranked) -> Ordering {
        let by_density = self.density.total_cmp(&other.density);
        by_density.then(self.at.cmp(&other.at))
    }
}

impl<'a> Draft<'a> {
    /// Quotes what the assistant concluded, decided and reported.
    pub(super) fn findings(&mut self) {
        let share = self.share(FINDINGS_PERCENT);
        let is_finding = |candidate: &Candidate| {
            candidate.source == Source::Said && (candidate.decides || candidate.is_final)
        };
        self.excerpts(FOUND, share, is_finding);
    }

    /// Fills what is left with sentences and names, whichever say more for their length.
    pub(super) fn fill(&mut self, with_words: bool) {
        let mut heap = if with_words {
            self.ranked(|_| true)
        } else {
            BinaryHeap::new()
        };
        let mut chosen = Excerpts::new();
        let heading = self.heading_cost(SAID) + self.heading_cost(SEEN);
        let mut is_headed = false;
        let mut name = 0;
        let mut round = 0;
        while self.left >= 4 {
            while name < self.sources.ranked.len() && self.coverage.covered[name] {
                name += 1;
            }
            let name_density = self.name_density(name);
            let best = self.next(&mut heap, &chosen, &mut round);
            match best {
                Some(ranked) if ranked.density >= name_density => {
                    let candidate = &self.from.pool.all[ranked.at];
                    let opens = !chosen.contains_key(&place_of(candidate));
                    let cost = tokens(&candidate.text) + if opens { 6 } else { 2 };
                    let cost = cost + if is_headed { 0 } else { heading };
                    if cost > self.left {
                        continue;
                    }
                    is_headed = true;
                    self.left -= cost;
                    self.coverage.see(&candidate.text);
                    self.quoted.insert(ranked.at);
                    chosen
                        .entry(place_of(candidate))
                        .or_default()
                        .push(ranked.at);
                    round += 1;
                }
                ranked => {
                    heap.extend(ranked);
                    if name >= self.sources.ranked.len() {
                        break;
                    }
                    self.shelve_name(name);
                    name += 1;
                }
            }
        }
        self.write_excerpts(SAID, SEEN, chosen);
        self.write_shelf();
    }

    /// What the next name would add for its length.
    fn name_density(&self, name: usize) -> f64 {
        let Some((text, found)) = self.sources.ranked.get(name) else {
            return 0.0;
        };
        let title = if self.shelf.has_place(found) {
            0.0
        } else {
            6.0
        };
        NAME_WORTH * likely(self.from.names.score(text)) / (text.len() as f64 / 3.0 + 2.0 + title)
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
        let mut left = share
            .saturating_sub(self.heading_cost(heading))
            .min(self.left);
        let mut spent = 0;
        let mut round = 0;
        while left >= 12 {
            let Some(ranked) = self.next(&mut heap, &chosen, &mut round) else {
                break;
            };
            let candidate = &self.from.pool.all[ranked.at];
            let opens = !chosen.contains_key(&place_of(candidate));
            let cost = tokens(&candidate.text) + if opens { 6 } else { 2 };
            if cost > left {
                continue;
            }
            left -= cost;
            spent += cost;
            self.coverage.see(&candidate.text);
            self.quoted.insert(ranked.at);
            chosen
                .entry(place_of(candidate))
                .or_default()
                .push(ranked.at);
            round += 1;
        }
        if spent > 0 {
            self.left = self.left.saturating_sub(spent + self.heading_cost(heading));
        }
        self.write_excerpts(heading, heading, chosen);
    }

    /// All sentences that are wanted and not quoted, by what each would add now.
    fn ranked(&self, wanted: impl Fn(&Candidate) -> bool) -> BinaryHeap<Ranked> {
        let all = &self.from.pool.all;
        let mut ranked: Vec<Ranked> = (0..all.len())
            .filter(|at| !self.sources.obsolete[*at] && !self.quoted.contains(at))
            .filter(|at| wanted(&all[*at]))
            .map(|at| Ranked {
                density: self.density(&all[at], false),
                at,
                round: usize::MAX,
            })
            .collect();
        if ranked.len() > MAX_COMPARED {
            ranked.select_nth_unstable_by(MAX_COMPARED, |a, b| b.cmp(a));
            ranked.truncate(MAX_COMPARED);
        }
        ranked.into()
    }

    /// Takes the sentence that adds most for its length, found out anew since something else was chosen.
    fn next(
        &self,
        heap: &mut BinaryHeap<Ranked>,
        chosen: &Excerpts,
        round: &mut usize,
    ) -> Option<Ranked> {
        while let Some(mut ranked) = heap.pop() {
            if ranked.round == *round {
                return (ranked.density > 0.0).then_some(ranked);
            }
            let candidate = &self.from.pool.all[ranked.at];
            let density = self.density(candidate, chosen.contains_key(&place_of(candidate)));
            ranked.density = density;
            ranked.round = *round;
            if density > 0.0 {
                heap.push(ranked);
            }
        }
        None
    }

    /// What a sentence would add for its length.
    fn density(&self, candidate: &Candidate, beside: bool) -> f64 {
        let mut weight = match candidate.source {
            Source::User => 1.4,
            Source::Said => 1.0,
            Source::Called | Source::Given => 0.8,
        };
        if candidate.is_final {
            weight *= 1.25;
        }
        if candidate.decides {
            weight *= 1.15;
        }
        let overhead = if beside { 2.0 } else { 6.0 };
        let mut gain = self.coverage.gain(&candidate.text);
        if candidate.decides {
            // What was concluded once is seldom said again, and nothing else tells it.
            gain += FINDING_WORTH * self.from.words.rarity(&candidate.text).min(8.0);
        }
        weight * gain / (candidate.text.len() as f64 / 3.8 + overhead)
    }

    /// Writes a line for each message: its sentences in order, those of results under a heading of their own.
    fn write_excerpts(&mut self, said: &'static str, seen: &'static str, chosen: Excerpts) {
        for ((is_result, seq), mut places) in chosen {
            places.sort_unstable();
            let texts: Vec<String> = places
                .iter()
                .map(|at| shorten(&self.from.pool.all[*at].text, usize::MAX))
                .collect();
            let line = format!("- [{seq}] {}", texts.join(" … "));
            let heading = if is_result { seen } else { said };
            self.sections.entry(heading).or_default().push(line);
        }
    }
}
