//! Selects the items of a layered state that fit a limit, with a reason for each item that is left out.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use infold_wire::tokens::{Encoding, count};

use crate::element::{ROOT, closing, containers, document, line, opening};
use crate::rank::{ItemRank, rank, scores};
use crate::{DocumentPart, Field, FieldForm, LayerItem, LayerState, Priority, Shares, relevance};

/// The percentage of the caller's limit that is used, because other tokenizers may count a little more.
const USED_PERCENT: u64 = 90;
/// A text is not condensed to fewer tokens: too little would be left of it.
const MIN_CONDENSED_TOKENS: u64 = 24;

/// Shortens a text to a number of tokens; none if it cannot.
pub type Condense<'a> = dyn Fn(&str, u64) -> Option<String> + 'a;
/// Scores how well each text matches a goal, from 0 to 1.
pub type Score<'a> = dyn Fn(&str, &[&str]) -> Vec<f64> + 'a;

/// The settings by which a document is built.
pub struct BuildRequest<'a> {
    /// The tokens that the caller has for it; nine tenths of them are used.
    pub max_tokens: u64,
    /// The share of each part.
    pub shares: Shares,
    /// The time, in milliseconds since 1970.
    pub now: u64,
    /// The fields whose items are ranked by how well they match the goal.
    pub ranked: Vec<Field>,
    /// Items of those fields that match less are left out.
    pub min_relevance: f64,
    /// How well texts match the goal.
    pub score: &'a Score<'a>,
    /// How texts are shortened.
    pub condense: &'a Condense<'a>,
}

impl BuildRequest<'_> {
    /// Returns a request for at most `max_tokens`, with the default shares. Texts are not shortened, and no item is
    /// recent, because no time is given.
    pub fn new(max_tokens: u64) -> BuildRequest<'static> {
        BuildRequest {
            max_tokens,
            shares: Shares::default(),
            now: u64::MAX,
            ranked: vec![Field::Summaries, Field::Facts],
            min_relevance: 0.0,
            score: &relevance,
            condense: &|_, _| None,
        }
    }

    /// Returns the tokens that are used, without an overflow for any `max_tokens`.
    fn limit(&self) -> u64 {
        self.max_tokens / 100 * USED_PERCENT + self.max_tokens % 100 * USED_PERCENT / 100
    }
}

/// A document, and the decision about each item.
#[derive(Clone, Debug)]
pub struct BuiltDocument {
    /// The tokens of the document.
    pub tokens: u64,
    /// The most it could have.
    pub limit: u64,
    /// The decision about each item, in the order of the document.
    pub decisions: Vec<Decision>,
    /// The lines of the items that are included, in order.
    lines: Vec<(Field, String)>,
}

/// The decision about one item, with its reasons.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Its field.
    pub field: Field,
    /// Its place in the field, counted from 1.
    pub index: usize,
    /// The tokens of its element.
    pub tokens: u64,
    /// How well it matches the goal, where that counts.
    pub relevance: Option<f64>,
    /// The outcome.
    pub verdict: Verdict,
}

/// The outcome of the decision about an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is included.
    In,
    /// It is included in a shortened form.
    Condensed {
        /// Its tokens before.
        from: u64,
    },
    /// It does not fit beside the items ranked before it.
    NoRoom {
        /// The tokens that were left.
        left: u64,
    },
    /// It matches the goal too little.
    Irrelevant,
}

/// Why there is no document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// Layers that must be shown whole do not fit.
    #[error(
        "system and task layers need {needed} tokens, and a limit of {max_tokens} leaves {limit} for them: {} are missing",
        needed - limit
    )]
    TooSmall {
        /// The tokens of the critical layers.
        needed: u64,
        /// The tokens available to them.
        limit: u64,
        /// The limit of the caller.
        max_tokens: u64,
    },
}

impl BuiltDocument {
    /// Returns the whole document; an empty one if nothing is in it.
    pub fn document(&self) -> String {
        self.document_of(|_| true).unwrap_or_default()
    }

    /// Returns the document of the fields that `wanted` picks; none if nothing of them is in it.
    pub fn document_of(&self, wanted: impl Fn(Field) -> bool) -> Option<String> {
        let lines = self.lines.iter();
        let lines = lines.filter(|(field, _)| wanted(*field));
        document(lines.map(|(field, line)| (*field, line.as_str())))
    }
}

/// Selects the parts of a state that fit a limit.
///
/// Critical parts are included as a whole. A part of high priority gets its share and the unused tokens of the parts
/// before it. Those of medium priority divide the rest in proportion. The remaining tokens go to any item that still
/// fits, in the same order. Within a part, items are selected by their own priority, then by relevance, then the newest
/// first; an item that does not fit is skipped.
pub fn build(state: &LayerState, request: &BuildRequest<'_>) -> Result<BuiltDocument, BuildError> {
    let mut builder = Builder::new(state, request);
    builder.take_critical()?;
    builder.take_shares();
    // The remaining tokens are offered to the parts in the same order: in each first to texts that were condensed, then
    // to items that did not fit the share of the part.
    for part in DocumentPart::ALL {
        builder.restore_condensed(part);
        builder.take_part(part, NO_BUDGET);
    }
    builder.lengthen_condensed();
    Ok(builder.finish())
}

/// The budget of a part that may use all remaining tokens. Texts are not condensed for it.
const NO_BUDGET: u64 = u64::MAX;

/// An item that may be shown.
struct Candidate<'a> {
    field: Field,
    index: usize,
    item: &'a LayerItem,
    /// Its line, if its text was shortened.
    condensed: Option<String>,
    /// The tokens of its line as it is now.
    tokens: u64,
    relevance: Option<f64>,
    /// None as long as it is undecided.
    verdict: Option<Verdict>,
}

/// A document under construction.
struct Builder<'a> {
    request: &'a BuildRequest<'a>,
    /// In the order of the document.
    candidates: Vec<Candidate<'a>>,
    /// The indexes of the candidates of each part, best first.
    ranking: BTreeMap<DocumentPart, Vec<usize>>,
    /// The elements that are open already, each as its path from the root.
    containers: HashSet<Vec<&'static str>>,
    /// A cache: for each field, the tokens of the elements around its items that are not open yet.
    unopened: BTreeMap<Field, u64>,
    /// The remaining tokens.
    left: u64,
}

impl<'a> Builder<'a> {
    fn new(state: &'a LayerState, request: &'a BuildRequest<'a>) -> Builder<'a> {
        let goal = state.text(Field::Goal).unwrap_or_default();
        let mut candidates = Vec::new();
        for (field, items) in state.fields() {
            let scores = scores(field, items, goal, request);
            for (index, item) in items.iter().enumerate() {
                let line = line(field, index, item, false);
                let relevance = scores.as_ref().and_then(|scores| scores[index]);
                let is_ranked = request.ranked.contains(&field) && !goal.is_empty();
                let is_irrelevant =
                    is_ranked && relevance.is_some_and(|one| one < request.min_relevance);
                candidates.push(Candidate {
                    field,
                    index,
                    item,
                    tokens: count(Encoding::O200k, &line),
                    condensed: None,
                    relevance,
                    verdict: is_irrelevant.then_some(Verdict::Irrelevant),
                });
            }
        }
        let mut ranking: BTreeMap<DocumentPart, Vec<usize>> = BTreeMap::new();
        for (at, candidate) in candidates.iter().enumerate() {
            ranking.entry(candidate.field.part()).or_default().push(at);
        }
        let rank_of = |one: &Candidate<'_>| rank(one.field, one.item, one.relevance, request.now);
        let ranks: Vec<ItemRank> = candidates.iter().map(rank_of).collect();
        for places in ranking.values_mut() {
            places.sort_unstable_by(|a, b| {
                let best_first = ranks[*b].partial_cmp(&ranks[*a]);
                best_first
                    .unwrap_or(std::cmp::Ordering::Equal)
                    .then(Reverse(a).cmp(&Reverse(b)))
            });
        }
        Builder {
            request,
            candidates,
            ranking,
            containers: HashSet::new(),
            unopened: BTreeMap::new(),
            left: request.limit(),
        }
    }

    /// Includes all items of critical parts.
    fn take_critical(&mut self) -> Result<(), BuildError> {
        let limit = self.left;
        let is_critical =
            |candidate: &Candidate<'_>| candidate.field.part().priority() == Priority::Critical;
        let mut needed = 0;
        for at in 0..self.candidates.len() {
            if is_critical(&self.candidates[at]) {
                needed += self.cost(at);
                self.open(at);
                self.candidates[at].verdict = Some(Verdict::In);
            }
        }
        if needed > limit {
            return Err(BuildError::TooSmall {
                needed,
                limit,
                max_tokens: self.request.max_tokens,
            });
        }
        self.left = limit - needed;
        Ok(())
    }

    /// Gives the parts of high priority their shares, and those of medium priority theirs of the rest.
    fn take_shares(&mut self) {
        let limit = self.request.limit();
        let share = |part: DocumentPart| limit * self.request.shares.percent(part) / 100;
        // The unused shares of the critical parts go to those of high priority, and from each of these to the next.
        let critical: u64 = share(DocumentPart::System) + share(DocumentPart::Task);
        let mut unused = critical.saturating_sub(limit - self.left);
        for part in DocumentPart::ALL {
            if part.priority() == Priority::High {
                let budget = self.request.shares.percent(part) * limit / 100 + unused;
                unused = budget - self.take_part(part, budget);
            }
        }
        let rest = self.left;
        for part in DocumentPart::ALL {
            if part.priority() == Priority::Medium {
                self.take_part(part, self.request.shares.of_rest(part, rest));
            }
        }
    }

    /// Selects the items of a part that fit a budget and the remaining tokens; returns the tokens used.
    fn take_part(&mut self, part: DocumentPart, budget: u64) -> u64 {
        let places = self.ranking.get(&part).cloned().unwrap_or_default();
        let mut used = 0;
        for at in places {
            if self.candidates[at].verdict.is_some() {
                continue;
            }
            let room = self.left.min(budget - used);
            // Items of lists are never condensed: one whose line alone is too long needs no further look.
            let is_list = self.candidates[at].field.is_list();
            if is_list && self.candidates[at].tokens > room {
                continue;
            }
            let mut cost = self.cost(at);
            if cost > room && budget != NO_BUDGET {
                cost = self.condense(at, room).unwrap_or(cost);
            }
            if cost <= room {
                self.open(at);
                self.left -= cost;
                used += cost;
                self.candidates[at].verdict.get_or_insert(Verdict::In);
            }
        }
        used
    }

    /// Shows texts whole that were shortened to the share of their part, if they fit now.
    fn restore_condensed(&mut self, part: DocumentPart) {
        for at in self.condensed() {
            let candidate = &self.candidates[at];
            let whole = line(candidate.field, candidate.index, candidate.item, false);
            let tokens = count(Encoding::O200k, &whole);
            let room = self.left + candidate.tokens;
            if candidate.field.part() == part && tokens <= room {
                self.left = room - tokens;
                let candidate = &mut self.candidates[at];
                candidate.condensed = None;
                candidate.tokens = tokens;
                candidate.verdict = Some(Verdict::In);
            }
        }
    }

    /// Gives the remaining tokens to texts that were shortened.
    fn lengthen_condensed(&mut self) {
        for at in self.condensed() {
            let Some(Verdict::Condensed { from }) = self.candidates[at].verdict else {
                continue;
            };
            let candidate = &self.candidates[at];
            let (item, before) = (candidate.item, candidate.tokens);
            let empty = LayerItem {
                text: String::new(),
                ..item.clone()
            };
            let (field, index) = (candidate.field, candidate.index);
            // The tokens of the line without its text.
            let overhead = count(Encoding::O200k, &line(field, index, &empty, true));
            let room = (self.left + before).saturating_sub(overhead);
            let Some(text) = (self.request.condense)(&item.text, room) else {
                continue;
            };
            let longer = LayerItem {
                text,
                ..item.clone()
            };
            let longer = line(field, index, &longer, true);
            let tokens = count(Encoding::O200k, &longer);
            if tokens > before && tokens <= self.left + before {
                self.left = self.left + before - tokens;
                let candidate = &mut self.candidates[at];
                candidate.condensed = Some(longer);
                candidate.tokens = tokens;
                candidate.verdict = Some(Verdict::Condensed { from });
            }
        }
    }

    /// Returns the indexes of the candidates whose texts were shortened.
    fn condensed(&self) -> Vec<usize> {
        let is_condensed = |candidate: &Candidate<'_>| {
            matches!(candidate.verdict, Some(Verdict::Condensed { .. }))
        };
        let all = self.candidates.iter().enumerate();
        all.filter(|(_, candidate)| is_condensed(candidate))
            .map(|(at, _)| at)
            .collect()
    }

    /// Shortens a text to `room` tokens, and returns the tokens that it then adds; none if it cannot be shortened.
    fn condense(&mut self, at: usize, room: u64) -> Option<u64> {
        let candidate = &self.candidates[at];
        if candidate.field.form() != FieldForm::Text {
            return None;
        }
        let empty = LayerItem {
            text: String::new(),
            ..candidate.item.clone()
        };
        let (field, index, from) = (candidate.field, candidate.index, candidate.tokens);
        let item = candidate.item;
        // The tokens of the line without its text, and of the elements that it opens.
        let overhead = count(Encoding::O200k, &line(field, index, &empty, true));
        let overhead = overhead + self.cost(at) - from;
        let budget = room
            .checked_sub(overhead)
            .filter(|budget| *budget >= MIN_CONDENSED_TOKENS)?;
        let text = (self.request.condense)(&item.text, budget)?;
        if text.trim().is_empty() {
            return None;
        }
        let line = line(field, index, &LayerItem { text, ..empty }, true);
        let tokens = count(Encoding::O200k, &line);
        let cost = self.cost(at) - from + tokens;
        if cost > room {
            return None;
        }
        let candidate = &mut self.candidates[at];
        candidate.condensed = Some(line);
        candidate.tokens = tokens;
        candidate.verdict = Some(Verdict::Condensed { from });
        Some(cost)
    }

    /// Returns the tokens that an item adds: its line, and the elements around it that are not open yet.
    fn cost(&mut self, at: usize) -> u64 {
        let candidate = &self.candidates[at];
        let containers = &self.containers;
        let around = self.unopened.entry(candidate.field).or_insert_with(|| {
            let closed = container_paths(candidate.field).filter(|path| !containers.contains(path));
            closed
                .filter_map(|path| path.last().copied())
                .map(|element| {
                    count(Encoding::O200k, &opening(element))
                        + count(Encoding::O200k, &closing(element))
                })
                .sum()
        });
        *around + candidate.tokens
    }

    /// Marks the elements around an item as open: further items in them do not pay for them.
    fn open(&mut self, at: usize) {
        let field = self.candidates[at].field;
        if self.unopened.get(&field) != Some(&0) {
            self.containers.extend(container_paths(field));
            // Other fields may use the same elements.
            self.unopened.clear();
        }
    }

    fn finish(self) -> BuiltDocument {
        let limit = self.request.limit();
        let left = self.left;
        let mut lines = Vec::new();
        let mut decisions = Vec::with_capacity(self.candidates.len());
        for candidate in self.candidates {
            let verdict = candidate.verdict.unwrap_or(Verdict::NoRoom { left });
            decisions.push(Decision {
                field: candidate.field,
                index: candidate.index + 1,
                tokens: candidate.tokens,
                relevance: candidate.relevance,
                verdict,
            });
            if matches!(verdict, Verdict::In | Verdict::Condensed { .. }) {
                let (field, index) = (candidate.field, candidate.index);
                let whole = || line(field, index, candidate.item, false);
                lines.push((field, candidate.condensed.unwrap_or_else(whole)));
            }
        }
        BuiltDocument {
            tokens: limit - left,
            limit,
            decisions,
            lines,
        }
    }
}

/// Returns the elements around the items of a field, outermost first, each as its path from the root.
fn container_paths(field: Field) -> impl Iterator<Item = Vec<&'static str>> {
    let all: Vec<&str> = std::iter::once(ROOT).chain(containers(field)).collect();
    (1..=all.len()).map(move |len| all[..len].to_vec())
}
