//! Widens a range to one that a fold can cover.

use std::collections::BTreeSet;

use super::Refused;
use crate::floor::sums_before;
use crate::unit::{self, pinned_rounds};
use crate::view::round_members;
use crate::{Cause, Event, Floor, Fold, Hides, Item, Past, Place, Seq, Span, State};

/// The extent of a planned fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cover {
    /// The requested span.
    pub asked: Span,
    /// The span that is folded: whole rounds and stand-ins, without the floor at either end.
    pub span: Span,
    /// Messages it hides, those under inner folds included.
    pub messages: u64,
    /// Tokens of those messages.
    pub tokens: u64,
}

/// Returns the cover of a fold for the requested span.
pub fn cover<P: Past>(state: &State, asked: Span, past: &P) -> Result<Cover, Refused<P::Error>> {
    let last = state.at().seq;
    if asked.to().get() > last {
        let seq = asked.to().get();
        return Err(Refused::NoMessage { seq, last });
    }
    let floor = Floor::of(state.shown(), past)?;
    let span = unit::widen(state.shown(), widen(state, asked, past)?, past)?;
    let span = trim(state, span, &floor).ok_or(Refused::Nothing {
        why: "the system prompt and the first request are always shown",
    })?;
    let tip = state.shown().last().expect("something visible was found");
    let record = past.record(tip)?;
    if span.holds(tip) && (record.waiting > 0 || record.unended) {
        return Err(Refused::Waiting {
            round: record.round,
            waiting: record.waiting.max(1),
        });
    }
    let (messages, tokens) = weigh(state, span, &floor, past)?;
    if messages == 0 {
        return Err(Refused::Nothing {
            why: "everything in that range is pinned",
        });
    }
    Ok(Cover {
        asked,
        span,
        messages,
        tokens,
    })
}

/// Returns the fold event over a cover.
pub fn folded(cause: Cause, cover: &Cover, tokens: u64) -> Event {
    Event::Fold(Fold {
        hides: Hides::Rounds(cause, cover.span),
        tokens,
    })
}

/// Widens a span to whole stand-ins and rounds, and narrows it to the visible messages.
fn widen<P: Past>(state: &State, asked: Span, past: &P) -> Result<Span, Refused<P::Error>> {
    let items = state.shown().items();
    let one = asked.from() == asked.to();
    if one && state.shown().place(asked.from()) == Place::Elsewhere {
        return Err(Refused::Elsewhere { seq: asked.from() });
    }
    let first = items.partition_point(|item| item.span().to() < asked.from());
    let after = items.partition_point(|item| item.span().from() <= asked.to());
    if first >= after {
        return Err(Refused::Elsewhere { seq: asked.from() });
    }
    let from = match &items[first] {
        Item::Fold(fold) => fold.span().from(),
        Item::Run(run) => past.record(run.from().max(asked.from()))?.round,
    };
    let to = match &items[after - 1] {
        Item::Fold(fold) => fold.span().to(),
        Item::Run(run) => round_end(run.to().min(asked.to()), &items[after - 1..], past)?,
    };
    // A round may start before a run that a rewind cut off; it is visible all the same.
    Ok(Span::new(from, to).expect("widening keeps the order"))
}

/// Returns the last visible message of the round of `seq`, which lies in the first of `items`.
pub(super) fn round_end<P: Past>(seq: Seq, items: &[Item], past: &P) -> Result<Seq, P::Error> {
    let round = past.record(seq)?.round;
    let mut end = seq;
    let runs = items.iter().map_while(|item| match item {
        Item::Run(run) => Some(*run),
        Item::Fold(_) => None,
    });
    for next in runs.flat_map(Span::seqs).skip_while(|next| *next <= seq) {
        if past.record(next)?.round != round {
            break;
        }
        end = next;
    }
    Ok(end)
}

/// Removes the floor from both ends of a span.
fn trim(state: &State, span: Span, floor: &Floor) -> Option<Span> {
    let mut span = span;
    while floor.holds(span.from()) {
        span = Span::new(next_visible(state, span.from())?, span.to())?;
    }
    while floor.holds(span.to()) {
        span = Span::new(span.from(), span.to().prev()?)?;
    }
    Some(span)
}

fn next_visible(state: &State, seq: Seq) -> Option<Seq> {
    let items = state.shown().items();
    let at = items.partition_point(|item| item.span().to() <= seq);
    items.get(at).map(|item| item.span().from().max(seq.next()))
}

/// Counts the messages that a fold over `span` would hide, and their tokens.
fn weigh<P: Past>(
    state: &State,
    span: Span,
    floor: &Floor,
    past: &P,
) -> Result<(u64, u64), P::Error> {
    let path = state.shown().path();
    let (mut messages, mut tokens) = (0, 0);
    for run in path.iter().filter_map(|run| run.meet(span)) {
        messages += run.count();
        tokens += tokens_of(run, past)?;
    }
    for seq in exempt(&path, state, span, floor, past)? {
        messages -= 1;
        tokens -= tokens_of(Span::one(seq), past)?;
    }
    Ok((messages, tokens))
}

/// Returns the messages of a span that no fold hides: the system prompt, the first request and pinned ones.
pub fn always_shown<P: Past>(
    state: &State,
    span: Span,
    past: &P,
) -> Result<BTreeSet<Seq>, P::Error> {
    let floor = Floor::of(state.shown(), past)?;
    exempt(&state.shown().path(), state, span, &floor, past)
}

/// The messages of a span that a fold over it would not hide.
pub(super) fn exempt<P: Past>(
    path: &[Span],
    state: &State,
    span: Span,
    floor: &Floor,
    past: &P,
) -> Result<BTreeSet<Seq>, P::Error> {
    let in_span = |seq: &Seq| span.holds(*seq) && state.shown().place(*seq) != Place::Elsewhere;
    let mut exempt: BTreeSet<Seq> = floor.seqs().iter().copied().filter(in_span).collect();
    for round in pinned_rounds(state.shown(), past)? {
        let members = round_members(round, path.iter().copied(), past)?;
        exempt.extend(members.into_iter().filter(in_span));
    }
    Ok(exempt)
}

fn tokens_of<P: Past>(run: Span, past: &P) -> Result<u64, P::Error> {
    Ok(past.record(run.to())?.sums.tokens - sums_before(run.from(), past)?.tokens)
}
