//! Chooses the rounds that a truncation hides.

use std::collections::BTreeSet;

use super::cover::{exempt, round_end};
use super::{Cover, Refused, cover};
use crate::unit::last_unit;
use crate::{Cause, Floor, Item, Past, Seq, Span, State};

/// Returns the cover of a truncation: the oldest rounds, about `fraction` of the visible ones.
///
/// The count follows the rule of Roo Code: floor((visible − 1) × fraction), made even. Only whole rounds within that
/// count are hidden, but at least one. The floor, pinned rounds and the last round stay; summaries are hidden last.
pub fn oldest<P: Past>(state: &State, fraction: f64, past: &P) -> Result<Cover, Refused<P::Error>> {
    let floor = Floor::of(state.shown(), past)?;
    let nothing = Refused::Nothing {
        why: "only the system prompt, the first request, pins, stand-ins and the last round are visible",
    };
    let Some(tip) = state.shown().last() else {
        return Err(nothing);
    };
    let last_round = match last_unit(state.shown(), past)? {
        Some(start) => start,
        None => past.record(tip)?.round,
    };
    let budget = budget(state, &floor, fraction);
    if budget == 0 {
        let some = oldest_rounds(state, &floor, last_round, u64::MAX, past)?;
        return Err(match some {
            Some(_) => Refused::Nothing {
                why: "so small a fraction of what is visible is less than two messages",
            },
            None => nothing,
        });
    }
    let span = oldest_rounds(state, &floor, last_round, budget, past)?;
    cover(
        state,
        span.or_else(|| stand_ins(state)).ok_or(nothing)?,
        past,
    )
}

/// Returns how many messages to hide.
fn budget(state: &State, floor: &Floor, fraction: f64) -> u64 {
    let runs = state.shown().items().iter().map(|item| match item {
        Item::Run(run) => run.count(),
        Item::Fold(_) => 0,
    });
    let system = floor.seqs().len() as u64 - u64::from(floor.request().is_some());
    let visible = runs.sum::<u64>().saturating_sub(system);
    let hide = (visible.saturating_sub(1) as f64 * fraction.clamp(0.0, 1.0)).floor() as u64;
    hide - hide % 2
}

/// Returns the span of the oldest visible rounds: at most `budget` messages, but at least one round.
fn oldest_rounds<P: Past>(
    state: &State,
    floor: &Floor,
    last_round: Seq,
    budget: u64,
    past: &P,
) -> Result<Option<Span>, Refused<P::Error>> {
    let mut from: Option<Seq> = None;
    let mut to: Option<Seq> = None;
    let mut left = budget;
    for stretch in stretches(state, floor, last_round, past)? {
        let run = match stretch {
            // A truncation hides no summary while it can hide rounds, so its span starts after or ends before one.
            Stretch::Summary if to.is_some() => break,
            Stretch::Summary => {
                from = None;
                continue;
            }
            Stretch::Marker(start) => {
                from = from.or(Some(start));
                continue;
            }
            Stretch::Run(run) => run,
        };
        let wanted = run.count().min(left);
        if wanted < run.count() {
            let kept = Seq::new(run.from().get() + wanted).expect("past the start of a run");
            // Cut before the round that the cut would split.
            let cut = past.record(kept)?.round.max(run.from());
            let before = cut.prev().filter(|end| *end >= run.from());
            if let Some(end) = before {
                from = from.or(Some(run.from()));
                to = Some(end);
            } else if to.is_none() {
                from = from.or(Some(run.from()));
                to = Some(round_end(run.from(), &[Item::Run(run)], past)?);
            }
            break;
        }
        from = from.or(Some(run.from()));
        to = Some(run.to());
        left -= wanted;
        if left == 0 {
            break;
        }
    }
    let to = match to {
        // The run may end inside a round that continues in the next one.
        Some(end) if past.record(end)?.round >= last_round => None,
        other => other,
    };
    Ok(from.zip(to).and_then(|(from, to)| Span::new(from, to)))
}

/// A part of the view, by how a truncation treats it.
enum Stretch {
    /// A summary, which is hidden last.
    Summary,
    /// The marker of an earlier truncation, with its first message: the new fold includes it.
    Marker(Seq),
    /// Messages that may be hidden.
    Run(Span),
}

fn stretches<P: Past>(
    state: &State,
    floor: &Floor,
    last_round: Seq,
    past: &P,
) -> Result<Vec<Stretch>, P::Error> {
    let path = state.shown().path();
    let mut stretches = Vec::new();
    let (Some(first), Some(last)) = (path.first(), path.last()) else {
        return Ok(stretches);
    };
    let whole = Span::new(first.from(), last.to()).expect("runs are in order");
    let stays = exempt(&path, state, whole, floor, past)?;
    for item in state.shown().items() {
        match item {
            Item::Fold(fold) if fold.cause == Cause::Summary => stretches.push(Stretch::Summary),
            Item::Fold(fold) => stretches.push(Stretch::Marker(fold.span().from())),
            Item::Run(run) => {
                let parts = foldable(*run, &stays, last_round).into_iter();
                stretches.extend(parts.map(Stretch::Run));
            }
        }
    }
    Ok(stretches)
}

/// Returns the parts of a run that may be hidden: all but the floor, pinned rounds and the last round.
fn foldable(run: Span, stays: &BTreeSet<Seq>, last_round: Seq) -> Vec<Span> {
    let end = last_round.prev().map(|end| end.min(run.to()));
    let part = |from, to: Option<Seq>| Span::new(from, to?.min(end?));
    let mut from = run.from();
    let mut parts = Vec::new();
    for stays in stays.range(run.from()..=run.to()) {
        parts.extend(part(from, stays.prev()));
        from = stays.next();
    }
    parts.extend(part(from, end));
    parts
}

/// Returns the span from the first visible stand-in to the last, if a summary is among them.
fn stand_ins(state: &State) -> Option<Span> {
    let folds = || {
        state.shown().items().iter().filter_map(|item| match item {
            Item::Fold(fold) => Some(fold),
            Item::Run(_) => None,
        })
    };
    let summary = folds().any(|fold| fold.cause == Cause::Summary);
    let (first, last) = (folds().next()?, folds().next_back()?);
    Span::new(first.span().from(), last.span().to()).filter(|_| summary)
}
