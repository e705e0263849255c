//! Clips tool results of the last round to their head and tail.

use infold_log::plan::{FloorSize, last_round};
use infold_log::{EventId, Seq, Size, Span, State};
use infold_store::{Log, LogError};
use infold_wire::PartKind;

use super::mask::each_part;
use super::{Executor, ManageError, Pass, is_tight};
use crate::PassAction;

/// The share of the window that a summary gets at least, if tool results of the last round can be clipped for it.
const MIN_SUMMARY_SHARE: f64 = 0.15;

/// The fewest counted tokens that remain of a tool result.
const MIN_CLIPPED_TOKENS: u64 = 96;

/// A tool result of the last round.
struct Clippable {
    seq: Seq,
    part: u32,
    /// The original size.
    whole: Size,
    /// The tokens in the view.
    tokens: u64,
    /// The mask that it has in the view.
    mask: Option<EventId>,
}

impl Pass<'_> {
    /// Reduces the largest tool results of the last round to head and tail, until the view fits. Messages of the user
    /// and calls stay unchanged.
    pub(super) fn clip(&mut self, executor: &mut Executor<'_>) -> Result<(), ManageError> {
        let results = clippable(executor.log(), executor.state())?;
        match level(&results, self.excess(&results)) {
            Some(keep) => self.clip_to(executor, &results, keep),
            None => Ok(()),
        }
    }

    /// Clips tool results of the last round that would leave hardly any room for a summary of the messages before them.
    pub(super) fn make_room(&mut self, executor: &mut Executor<'_>) -> Result<(), ManageError> {
        let floor = FloorSize::of(executor.state(), executor.log())?;
        let fixed = self.scale.size(floor.total()).tokens;
        let wanted = self.least_summary();
        let excess = (fixed + wanted).saturating_sub(self.aim.budget.allow());
        // Clipping the last round does not shrink the other messages that must stay.
        let last = self.scale.part(floor.last.tokens);
        if excess == 0 || last < wanted {
            return Ok(());
        }
        let results = clippable(executor.log(), executor.state())?;
        let excess = self.scale.counted(excess);
        let least = self.scale.counted(wanted / 2).max(MIN_CLIPPED_TOKENS);
        let keep = level(&results, excess).unwrap_or(0).max(least);
        self.clip_to(executor, &results, keep)
    }

    /// Returns how many tokens a summary gets at least, if the last round leaves less.
    ///
    /// In little room that is little, or every other turn would need a pass.
    pub(super) fn least_summary(&self) -> u64 {
        if is_tight(&self.budget) {
            return self.budget.room() / 16;
        }
        (self.budget.room() as f64 * MIN_SUMMARY_SHARE) as u64
    }

    /// Shows head and tail of each tool result that has more than `keep` tokens.
    fn clip_to(
        &mut self,
        executor: &mut Executor<'_>,
        results: &[Clippable],
        keep: u64,
    ) -> Result<(), ManageError> {
        let mut folds = Vec::new();
        let mut span: Option<Span> = None;
        let mut hidden = 0;
        for result in results.iter().filter(|result| result.tokens > keep) {
            if let Some(mask) = result.mask {
                executor.unmask(mask)?;
            }
            folds.extend(executor.clip(result.seq, result.part, result.whole.tokens, keep)?);
            let from = span.map_or(result.seq, |span| span.from());
            span = Span::new(from, result.seq);
            hidden += 1;
        }
        let Some(span) = span else {
            return Ok(());
        };
        self.add_step(executor, PassAction::Masked, folds, hidden, span)
    }

    /// Returns by how many counted tokens the view is too large.
    fn excess(&self, results: &[Clippable]) -> u64 {
        let (now, budget) = (self.outcome.after, self.aim.budget);
        let over = now.tokens.saturating_sub(budget.allow());
        let most = self.scale.counted(now.tokens) - self.scale.counted(now.tokens - over);
        let limit = budget.bytes();
        let bytes = limit.map_or(0, |limit| now.bytes.saturating_sub(limit));
        let all = results.iter().map(|result| result.whole);
        let (tokens, all_bytes) = all.fold((0, 0), |(tokens, bytes), whole| {
            (tokens + whole.tokens, bytes + whole.bytes)
        });
        let dense = tokens as f64 / all_bytes.max(1) as f64;
        // Both measuring and clipping round.
        (most + results.len() as u64).max((bytes as f64 * dense).ceil() as u64)
    }
}

/// Returns the tokens that clipping could free, as counted.
pub(super) fn gain(log: &Log, state: &State) -> Result<Size, LogError> {
    let mut gain = Size::default();
    for result in clippable(log, state)? {
        let tokens = result.tokens.saturating_sub(MIN_CLIPPED_TOKENS);
        gain.tokens += tokens;
        gain.bytes +=
            (result.whole.bytes as f64 * tokens as f64 / result.whole.tokens.max(1) as f64) as u64;
    }
    Ok(gain)
}

/// Returns the size limit for tool results that reduces them by `excess` tokens in total; `None` if there is none.
fn level(results: &[Clippable], excess: u64) -> Option<u64> {
    let tokens = || results.iter().map(|result| result.tokens);
    let freed = |level: u64| -> u64 { tokens().map(|size| size.saturating_sub(level)).sum() };
    if freed(MIN_CLIPPED_TOKENS) < excess {
        return None;
    }
    let (mut low, mut high) = (MIN_CLIPPED_TOKENS, tokens().max().unwrap_or(0));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if freed(middle) >= excess {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Some(low)
}

/// Returns the tool results of the last round that may be clipped.
fn clippable(log: &Log, state: &State) -> Result<Vec<Clippable>, LogError> {
    let Some(first) = last_round(state, log)? else {
        return Ok(Vec::new());
    };
    let runs = state.shown().path().into_iter();
    let spans = runs.filter_map(|run| Span::new(run.from().max(first), run.to()));
    let mut results = Vec::new();
    each_part(log, state, spans, |part| {
        if part.kind == PartKind::Result {
            results.push(Clippable {
                seq: part.seq,
                part: part.index,
                whole: part.size,
                tokens: part.mask.map_or(part.size.tokens, |mask| mask.tokens),
                mask: part.mask.map(|mask| mask.id),
            });
        }
    })?;
    Ok(results)
}
