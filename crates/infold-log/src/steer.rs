//! Steps: from what a person asks for to the event that does it, or why it is refused.

use std::collections::BTreeSet;

use crate::floor::sums_before;
use crate::state::before;
use crate::view::round_members;
use crate::{
    Cause, Event, EventId, Floor, Fold, Folded, Hides, Item, Past, Pin, Pinned, Place, Point, Seq,
    Shown, Span, State,
};

/// Why a step was refused. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum Refused<E> {
    /// No such message.
    #[error("message {seq} does not exist; the last one is {last}")]
    NoMessage {
        /// The message asked for.
        seq: u64,
        /// The last one there is.
        last: u64,
    },
    /// No such event.
    #[error("event e{event} does not exist; the last one is e{last}")]
    NoEvent {
        /// The event asked for.
        event: u64,
        /// The last one there is.
        last: u64,
    },
    /// Nothing happened that early.
    #[error("nothing was recorded at or before that time")]
    TooEarly,
    /// The point asked for is where the log already is.
    #[error("the conversation is already there")]
    Already,
    /// The message is on another branch.
    #[error("message {seq} is hidden by a rewind")]
    Elsewhere {
        /// The message.
        seq: Seq,
    },
    /// The message is covered by a fold already.
    #[error("message {seq} is inside fold {fold}")]
    Under {
        /// The message.
        seq: Seq,
        /// The outermost fold over it.
        fold: EventId,
    },
    /// Nothing in the span could be hidden.
    #[error("nothing to fold: {why}")]
    Nothing {
        /// What stands in the way.
        why: &'static str,
    },
    /// The span reaches into a round whose results are still to come.
    #[error("the round that starts at message {round} still waits for {waiting} tool result(s)")]
    Waiting {
        /// The first message of the round.
        round: Seq,
        /// How many calls wait.
        waiting: u32,
    },
    /// The fold is not in force.
    #[error("fold {fold} is not active")]
    Inactive {
        /// The fold.
        fold: EventId,
    },
    /// The fold lies in another one.
    #[error("fold {fold} lies inside fold {outer}")]
    Inner {
        /// The fold.
        fold: EventId,
        /// The outermost one around it.
        outer: EventId,
    },
    /// A part that is hidden already, or must not be.
    #[error("part {part} of message {seq} cannot be masked: {why}")]
    Part {
        /// The message.
        seq: Seq,
        /// The part.
        part: u32,
        /// What stands in the way.
        why: &'static str,
    },
    /// No step is left to undo.
    #[error("nothing to undo")]
    NothingToUndo,
    /// No undo is left to redo.
    #[error("nothing to redo")]
    NothingToRedo,
    /// The round is pinned already.
    #[error("message {seq} is pinned already")]
    Pinned {
        /// The message.
        seq: Seq,
    },
    /// A note without a word: no provider takes an empty message.
    #[error("a note has to say something")]
    Blank,
    /// There is no such pin.
    #[error("{what} is not pinned")]
    NotPinned {
        /// What was to be unpinned.
        what: String,
    },
    /// The log could not be read.
    #[error(transparent)]
    Past(#[from] E),
}

/// What a fold will cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cover {
    /// What was asked for.
    pub asked: Span,
    /// What it comes to, in whole rounds and stand-ins, without the floor at either end.
    pub span: Span,
    /// Messages it hides, those under inner folds included.
    pub messages: u64,
    /// Tokens of those messages.
    pub tokens: u64,
}

/// A place in the log as a person names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Right after this message.
    Message(u64),
    /// Right after this event.
    Event(u64),
    /// After everything recorded up to this time, in milliseconds.
    Time(u64),
}

/// Which side of a [`Target`] is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The target included.
    To,
    /// The target excluded.
    Before,
}

/// Works out what a fold over `asked` has to cover.
pub fn cover<P: Past>(state: &State, asked: Span, past: &P) -> Result<Cover, Refused<P::Error>> {
    let last = state.at().seq;
    if asked.to().get() > last {
        let seq = asked.to().get();
        return Err(Refused::NoMessage { seq, last });
    }
    let floor = Floor::of(state.shown(), past)?;
    let span = widen(state, asked, past)?;
    let span = trim(state, span, &floor).ok_or(Refused::Nothing {
        why: "the system prompt and the first request are always shown",
    })?;
    let tip = state.shown().last().expect("something visible was found");
    let record = past.record(tip)?;
    if span.holds(tip) && record.waiting > 0 {
        return Err(Refused::Waiting {
            round: record.round,
            waiting: record.waiting,
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

/// Works out which rounds a truncation hides: the oldest, about `fraction` of those visible.
///
/// The count follows the peers' rule, floor((visible − 1) × fraction) made even, then
/// whole rounds within it, at least one. The floor, pinned rounds and the last round
/// stay; a summary goes last.
pub fn oldest<P: Past>(state: &State, fraction: f64, past: &P) -> Result<Cover, Refused<P::Error>> {
    let floor = Floor::of(state.shown(), past)?;
    let nothing = Refused::Nothing {
        why: "only the system prompt, the first request, pins, stand-ins and the last round are visible",
    };
    let Some(tip) = state.shown().last() else {
        return Err(nothing);
    };
    let last_round = past.record(tip)?.round;
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

/// Returns the event that opens a fold.
pub fn unfold<P: Past>(state: &State, fold: EventId, past: &P) -> Result<Event, Refused<P::Error>> {
    known(state, fold)?;
    let shown = state.shown();
    if is_active(shown, fold) {
        return Ok(Event::Unfold(fold));
    }
    for item in shown.items() {
        if let Item::Fold(outer) = item
            && lies_in(fold, outer, past)?
        {
            return Err(Refused::Inner {
                fold,
                outer: outer.id,
            });
        }
    }
    Err(Refused::Inactive { fold })
}

fn is_active(shown: &Shown, fold: EventId) -> bool {
    shown.outermost(fold).is_some() || shown.masked_by(fold).is_some()
}

/// Says whether a fold was in force, at whatever depth, when `outer` was put over it.
fn lies_in<P: Past>(fold: EventId, outer: &Folded, past: &P) -> Result<bool, P::Error> {
    let mut around = vec![(outer.id, outer.span())];
    while let Some((outer, span)) = around.pop() {
        // A fold is younger than what it covers.
        if outer <= fold {
            continue;
        }
        let inside = past.shown(before(outer, past)?)?;
        let covered = |seq: Seq| span.holds(seq);
        let masked = inside.masked_by(fold).is_some_and(|(seq, _)| covered(seq));
        for item in inside.items() {
            let Item::Fold(inner) = item else { continue };
            if covered(inner.span().from()) {
                around.push((inner.id, inner.span()));
            }
        }
        if masked || around.iter().any(|(inner, _)| *inner == fold) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Checks that a part of a message may be masked.
pub fn mask<P: Past>(
    state: &State,
    (seq, part): (Seq, u32),
    past: &P,
) -> Result<(), Refused<P::Error>> {
    reachable(state, seq)?;
    if let Place::Under(fold) = state.shown().place(seq) {
        return Err(Refused::Under { seq, fold });
    }
    let why = if state
        .shown()
        .masks(Span::one(seq))
        .any(|(_, masked, _)| masked == part)
    {
        "it is masked already"
    } else if Floor::of(state.shown(), past)?.holds(seq) {
        "the system prompt and the first request are always shown whole"
    } else {
        return Ok(());
    };
    Err(Refused::Part { seq, part, why })
}

/// Returns the event that rewinds to a target.
pub fn rewind<P: Past>(
    state: &State,
    side: Side,
    target: Target,
    past: &P,
) -> Result<Event, Refused<P::Error>> {
    let point = locate(state, side, target, past)?;
    if point == state.at() {
        return Err(Refused::Already);
    }
    Ok(Event::Rewind(point))
}

/// Returns the event that undoes the newest step, and that step.
pub fn undo<E>(state: &State) -> Result<(Event, EventId), Refused<E>> {
    let step = state.step().ok_or(Refused::NothingToUndo)?;
    Ok((Event::Undo, step))
}

/// Returns the event that redoes the newest undo, and that undo.
pub fn redo<P: Past>(state: &State, past: &P) -> Result<(Event, EventId), Refused<P::Error>> {
    let undo = state.undone(past)?.ok_or(Refused::NothingToRedo)?;
    Ok((Event::Redo, undo))
}

/// Returns the event that pins the round of a message.
pub fn pin<P: Past>(state: &State, seq: Seq, past: &P) -> Result<Event, Refused<P::Error>> {
    reachable(state, seq)?;
    match pin_of(state, seq, past)? {
        Some(_) => Err(Refused::Pinned { seq }),
        None => Ok(Event::Pin(Pin::Message(seq))),
    }
}

/// Returns the event that takes a pin away. Any message of a pinned round names its pin.
pub fn unpin<P: Past>(state: &State, pinned: Pinned, past: &P) -> Result<Event, Refused<P::Error>> {
    match pinned {
        Pinned::Message(seq) => {
            reachable(state, seq)?;
            let what = || format!("message {seq}");
            let pin =
                pin_of(state, seq, past)?.ok_or_else(|| Refused::NotPinned { what: what() })?;
            Ok(Event::Unpin(Pinned::Message(pin)))
        }
        Pinned::Note(id) => {
            known(state, id)?;
            let found = state.shown().notes().any(|(note, _)| note == id);
            let what = || format!("note {id}");
            found
                .then_some(Event::Unpin(pinned))
                .ok_or_else(|| Refused::NotPinned { what: what() })
        }
    }
}

/// Finds the point that a target names. It may lie on a hidden branch, not in the future.
pub fn locate<P: Past>(
    state: &State,
    side: Side,
    target: Target,
    past: &P,
) -> Result<Point, Refused<P::Error>> {
    let last = state.at();
    match target {
        Target::Message(seq) if seq == 0 || seq > last.seq => Err(Refused::NoMessage {
            seq,
            last: last.seq,
        }),
        Target::Event(event) if event == 0 || event > last.event => Err(Refused::NoEvent {
            event,
            last: last.event,
        }),
        Target::Message(seq) => Ok(Point {
            seq: seq - u64::from(side == Side::Before),
            event: events_while(state, past, |mark| mark.after < seq)?,
        }),
        Target::Event(event) => {
            let id = EventId::new(event).expect("zero was refused above");
            Ok(Point {
                seq: past.mark(id)?.after,
                event: event - u64::from(side == Side::Before),
            })
        }
        Target::Time(time) => {
            let within = |at: u64| match side {
                Side::To => at <= time,
                Side::Before => at < time,
            };
            let seq = messages_while(state, past, |record| within(record.time))?;
            let event = events_while(state, past, |mark| within(mark.time))?;
            if seq == 0 && event == 0 {
                return Err(Refused::TooEarly);
            }
            Ok(Point { seq, event })
        }
    }
}

/// Returns the fold event over a cover.
pub fn folded(cause: Cause, cover: &Cover, tokens: u64) -> Event {
    Event::Fold(Fold {
        hides: Hides::Rounds(cause, cover.span),
        tokens,
    })
}

fn known<E>(state: &State, id: EventId) -> Result<(), Refused<E>> {
    let last = state.at().event;
    let event = id.get();
    if event > last {
        return Err(Refused::NoEvent { event, last });
    }
    Ok(())
}

fn reachable<E>(state: &State, seq: Seq) -> Result<(), Refused<E>> {
    if seq.get() > state.at().seq {
        return Err(Refused::NoMessage {
            seq: seq.get(),
            last: state.at().seq,
        });
    }
    match state.shown().place(seq) {
        Place::Elsewhere => Err(Refused::Elsewhere { seq }),
        Place::Open | Place::Under(_) => Ok(()),
    }
}

/// The pin that holds the round of `seq`.
fn pin_of<P: Past>(state: &State, seq: Seq, past: &P) -> Result<Option<Seq>, P::Error> {
    let round = past.record(seq)?.round;
    for pin in state.shown().pins() {
        if past.record(pin)?.round == round {
            return Ok(Some(pin));
        }
    }
    Ok(None)
}

/// Widens a span to whole stand-ins and rounds, and narrows it to what is visible.
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

/// The last visible message of the round of `seq`, which lies in the first of `items`.
fn round_end<P: Past>(seq: Seq, items: &[Item], past: &P) -> Result<Seq, P::Error> {
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

/// Takes the floor off both ends of a span.
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

/// Counts what a fold over `span` would hide: messages and their tokens.
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

/// The messages of a span that a fold over it would not hide.
fn exempt<P: Past>(
    path: &[Span],
    state: &State,
    span: Span,
    floor: &Floor,
    past: &P,
) -> Result<BTreeSet<Seq>, P::Error> {
    let in_span = |seq: &Seq| span.holds(*seq) && state.shown().place(*seq) != Place::Elsewhere;
    let mut exempt: BTreeSet<Seq> = floor.seqs().iter().copied().filter(in_span).collect();
    for pin in state.shown().pins().filter(in_span) {
        let round = past.record(pin)?.round;
        exempt.extend(round_members(round, path.iter().copied(), past)?);
    }
    Ok(exempt)
}

fn tokens_of<P: Past>(run: Span, past: &P) -> Result<u64, P::Error> {
    Ok(past.record(run.to())?.sums.tokens - sums_before(run.from(), past)?.tokens)
}

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

/// A stretch of what is visible, as far as truncation goes.
enum Stretch {
    /// A summary, which goes last.
    Summary,
    /// A marker, which starts there and joins the next one.
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

/// The oldest visible rounds of at most `budget` messages, at least one round.
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
            // Start again behind a summary, or stop before it.
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
            // The cut goes before the round it would split.
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
        // The run may end inside a round that goes on in the next one.
        Some(end) if past.record(end)?.round >= last_round => None,
        other => other,
    };
    Ok(from.zip(to).and_then(|(from, to)| Span::new(from, to)))
}

/// What of a run may be hidden: not the floor or a pinned round, not the last round.
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

/// From the first visible stand-in to the last, if a summary is among them.
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

fn events_while<P: Past>(
    state: &State,
    past: &P,
    holds: impl Fn(&crate::Mark) -> bool,
) -> Result<u64, P::Error> {
    count_while(state.at().event, |number| {
        let id = EventId::new(number).expect("counted from one");
        Ok(holds(&past.mark(id)?))
    })
}

fn messages_while<P: Past>(
    state: &State,
    past: &P,
    holds: impl Fn(&crate::Record) -> bool,
) -> Result<u64, P::Error> {
    count_while(state.at().seq, |number| {
        let seq = Seq::new(number).expect("counted from one");
        Ok(holds(&past.record(seq)?))
    })
}

/// How many of the numbers 1 to `last` satisfy `holds`, if all that do come first.
fn count_while<E>(last: u64, holds: impl Fn(u64) -> Result<bool, E>) -> Result<u64, E> {
    let (mut low, mut high) = (0, last);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if holds(middle)? {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Ok(low)
}
