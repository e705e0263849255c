//! Rounds that must be shown or hidden together, because ids tie them to each other.

use std::collections::BTreeSet;

use crate::floor::{first_above, sums_before};
use crate::view::round_members;
use crate::{EventId, Facts, Floor, Item, Past, Place, Role, Seq, Shown, Span};

/// A tie reaches back at most this many visible messages, so that the look-up for one message stays bounded.
const MAX_TIE_MESSAGES: u64 = 256;

/// A tie reaches back at most this many seqs, hidden branches included.
const MAX_TIE_SEQS: u64 = u16::MAX as u64;

/// An id in more messages than this ties none of them: it is a constant, not the id of a pair.
const MAX_MENTIONS: usize = 2;

/// Returns the messages that the next one may be tied to: the newest visible ones after the newest fold.
///
/// The floor is always shown, so that nothing needs to be tied to it.
pub fn reach<P: Past>(shown: &Shown, past: &P) -> Result<Vec<Span>, P::Error> {
    let floor = Floor::of(shown, past)?;
    let mut left = MAX_TIE_MESSAGES;
    let mut spans = Vec::new();
    for item in shown.items().iter().rev() {
        let Item::Run(run) = item else { break };
        let first = run.to().get().saturating_sub(left.saturating_sub(1));
        let from = Seq::new(first).map_or(run.from(), |first| first.max(run.from()));
        let rest = Span::new(from, run.to()).filter(|_| left > 0);
        left = left.saturating_sub(run.count());
        spans.extend(
            rest.into_iter()
                .flat_map(|rest| without_floor(rest, &floor)),
        );
    }
    spans.reverse();
    Ok(spans)
}

/// Returns the parts of a span that are not in the floor, the last first.
fn without_floor(span: Span, floor: &Floor) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut rest = Some(span);
    for held in floor.seqs().iter().rev() {
        let Some(span) = rest.filter(|span| span.holds(*held)) else {
            continue;
        };
        spans.extend(Span::new(held.next(), span.to()));
        rest = held.prev().and_then(|to| Span::new(span.from(), to));
    }
    spans.extend(rest);
    spans
}

/// Returns whether a message belongs to the one right before it: later instructions refer to it, and some
/// providers accept them only after it.
pub fn goes_with_previous(facts: &Facts) -> bool {
    facts.role == Role::System
}

/// Returns the round that the message `seq` is tied to. `holders` are the messages within [`reach`] that contain one of
/// its unresolved ids, in order.
pub fn tied_to<P: Past>(seq: Seq, holders: &[Seq], past: &P) -> Result<Option<Seq>, P::Error> {
    let Some(first) = holders.first().filter(|_| holders.len() <= MAX_MENTIONS) else {
        return Ok(None);
    };
    let round = past.record(*first)?.tied;
    Ok(Some(round).filter(|round| seq.get() - round.get() <= MAX_TIE_SEQS))
}

/// Widens a span of whole rounds until no visible message beside it is tied to one in it.
pub(crate) fn widen<P: Past>(shown: &Shown, span: Span, past: &P) -> Result<Span, P::Error> {
    let items = shown.items();
    let run = |item: &&Item| matches!(item, Item::Run(_));
    let first = items.partition_point(|item| item.span().to() < span.from());
    let after = items.partition_point(|item| item.span().from() <= span.to());
    let first = first - items[..first].iter().rev().take_while(run).count();
    let after = after + items[after..].iter().take_while(run).count();
    let around = items[first..after.max(first)].iter();
    let runs: Vec<Span> = around.map(Item::span).collect();
    widen_along(span, &runs, past)
}

/// Returns a fold that hides messages to which a visible one is tied, if there is one. Undoing a step can restore such
/// a fold: later messages may have been tied to those that it hides.
pub fn torn<P: Past>(shown: &Shown, past: &P) -> Result<Option<EventId>, P::Error> {
    for item in shown.items() {
        let Item::Run(run) = item else { continue };
        let mut rest = Some(*run);
        while let Some(span) = rest {
            let before = sums_before(span.from(), past)?.ties;
            let Some(seq) = first_above(span, before, |sums| sums.ties, past)? else {
                break;
            };
            if let Place::Under(fold) = shown.place(past.record(seq)?.tied) {
                return Ok(Some(fold));
            }
            rest = Span::new(seq.next(), run.to());
        }
    }
    Ok(None)
}

/// Returns the first messages of all rounds that pins keep visible.
///
/// The result does not depend on folds; otherwise a fold would hide more or less than it announced.
pub fn pinned_rounds<P: Past>(shown: &Shown, past: &P) -> Result<BTreeSet<Seq>, P::Error> {
    let mut rounds = BTreeSet::new();
    let mut pins = shown.pins().peekable();
    if pins.peek().is_none() {
        return Ok(rounds);
    }
    // Ties to the floor pin no other rounds, because the floor is always shown.
    let floor = Floor::of(shown, past)?;
    let path: Vec<Span> = shown
        .path()
        .into_iter()
        .flat_map(|run| without_floor(run, &floor).into_iter().rev())
        .collect();
    for seq in pins {
        let round = past.record(seq)?.round;
        rounds.insert(round);
        if shown.place(seq) == Place::Elsewhere {
            continue;
        }
        let span = Span::new(round, seq).expect("a round starts no later than its messages");
        let span = widen_along(span, &path, past)?;
        // A unit of one round is by far the most frequent.
        if span.from() < round || past.record(span.to())?.round != round {
            let members = path.iter().filter_map(|run| run.meet(span));
            for seq in members.flat_map(Span::seqs) {
                rounds.insert(past.record(seq)?.round);
            }
        }
    }
    Ok(rounds)
}

/// Returns the first message of the tied rounds at the end of the view.
pub(crate) fn last_unit<P: Past>(shown: &Shown, past: &P) -> Result<Option<Seq>, P::Error> {
    let Some(Item::Run(run)) = shown.items().last() else {
        return Ok(None);
    };
    let round = past.record(run.to())?.round;
    let span = Span::new(round, run.to()).expect("a round starts no later than it ends");
    Ok(Some(widen(shown, span, past)?.from()))
}

/// Widens a span until no tie crosses its ends, along the given runs.
fn widen_along<P: Past>(span: Span, runs: &[Span], past: &P) -> Result<Span, P::Error> {
    let Some(start) = runs.first().map(|run| run.from()) else {
        return Ok(span);
    };
    let mut span = span;
    loop {
        let mut from = span.from();
        // A message that is tied to one before the span is near the start of the span, because ties are short.
        visit_tied(span.from(), Some(span.to()), runs, past, |_, tied| {
            from = from.min(tied.max(start));
        })?;
        let mut to = span.to();
        visit_tied(span.to().next(), None, runs, past, |seq, tied| {
            if tied <= span.to() {
                to = to.max(seq);
            }
        })?;
        if to != span.to() {
            let round = past.record(to)?.round;
            let members = round_members(round, runs.iter().copied(), past)?;
            to = members.last().map_or(to, |last| to.max(*last));
        }
        let wider = Span::new(from, to).expect("widening keeps the order");
        if wider == span {
            return Ok(span);
        }
        span = wider;
    }
}

/// Visits the tied messages from `from` to `to` along the runs, and the rounds that they are tied to. Stops after
/// [`MAX_TIE_MESSAGES`].
fn visit_tied<P: Past>(
    from: Seq,
    to: Option<Seq>,
    runs: &[Span],
    past: &P,
    mut visit: impl FnMut(Seq, Seq),
) -> Result<(), P::Error> {
    let mut left = MAX_TIE_MESSAGES;
    for run in runs {
        let end = to.map_or(run.to(), |to| to.min(run.to()));
        let mut rest = Span::new(from.max(run.from()), end);
        while let Some(span) = rest {
            let before = sums_before(span.from(), past)?.ties;
            let Some(seq) = first_above(span, before, |sums| sums.ties, past)? else {
                left = left.saturating_sub(span.count());
                break;
            };
            left = left.saturating_sub(seq.get() - span.from().get() + 1);
            if left == 0 {
                return Ok(());
            }
            visit(seq, past.record(seq)?.tied);
            rest = Span::new(seq.next(), span.to());
        }
        if left == 0 {
            break;
        }
    }
    Ok(())
}
