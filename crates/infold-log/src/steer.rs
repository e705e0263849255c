//! Steps, the changes of what is shown that a user can ask for and undo: turns each into an event, or into the reason
//! for its refusal.

mod refused;
mod cover;
mod oldest;
mod locate;

pub use cover::{Cover, always_shown, cover, folded};
pub use locate::{Side, Target, locate, whole_output};
pub use oldest::oldest;
pub use refused::Refused;

use crate::state::before;
use crate::{
    Event, EventId, Floor, Folded, Item, Past, Pin, Pinned, Place, Seq, Shown, Span, State,
};

/// Returns the event that opens a fold.
pub fn unfold<P: Past>(state: &State, fold: EventId, past: &P) -> Result<Event, Refused<P::Error>> {
    check_event_exists(state, fold)?;
    let shown = state.shown();
    if is_active(shown, fold) {
        return Ok(Event::Unfold(fold));
    }
    for item in shown.items() {
        if let Item::Fold(outer) = item
            && is_nested_in(fold, outer, past)?
        {
            return Err(Refused::Inner {
                fold,
                outer: outer.id,
            });
        }
    }
    Err(Refused::Inactive { fold })
}

/// Says whether a fold is in force and not under another one.
fn is_active(shown: &Shown, fold: EventId) -> bool {
    shown.outermost(fold).is_some() || shown.masked_by(fold).is_some()
}

/// Says whether a fold was in force, at whatever depth, when `outer` was put over it.
fn is_nested_in<P: Past>(fold: EventId, outer: &Folded, past: &P) -> Result<bool, P::Error> {
    // The folds that may contain it, each with the span of its messages. The folds under a fold are those that were
    // shown right before it.
    let mut outer_folds = vec![(outer.id, outer.span())];
    while let Some((outer, span)) = outer_folds.pop() {
        // A fold has a later id than the folds that it covers.
        if outer <= fold {
            continue;
        }
        let inside = past.shown(before(outer, past)?)?;
        let covered = |seq: Seq| span.holds(seq);
        let masked = inside.masked_by(fold).is_some_and(|(seq, _)| covered(seq));
        for item in inside.items() {
            let Item::Fold(inner) = item else { continue };
            if covered(inner.span().from()) {
                outer_folds.push((inner.id, inner.span()));
            }
        }
        if masked || outer_folds.iter().any(|(inner, _)| *inner == fold) {
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
    check_message_on_path(state, seq)?;
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
    check_message_on_path(state, seq)?;
    match pin_of(state, seq, past)? {
        Some(_) => Err(Refused::Pinned { seq }),
        None => Ok(Event::Pin(Pin::Message(seq))),
    }
}

/// Returns the event that removes a pin. Any message of a pinned round identifies its pin.
pub fn unpin<P: Past>(state: &State, pinned: Pinned, past: &P) -> Result<Event, Refused<P::Error>> {
    match pinned {
        Pinned::Message(seq) => {
            check_message_on_path(state, seq)?;
            let what = || format!("message {seq}");
            let pin =
                pin_of(state, seq, past)?.ok_or_else(|| Refused::NotPinned { what: what() })?;
            Ok(Event::Unpin(Pinned::Message(pin)))
        }
        Pinned::Note(id) => {
            check_event_exists(state, id)?;
            let found = state.shown().notes().any(|(note, _)| note == id);
            let what = || format!("note {id}");
            found
                .then_some(Event::Unpin(pinned))
                .ok_or_else(|| Refused::NotPinned { what: what() })
        }
    }
}

/// Refuses the id of an event that the log does not have.
fn check_event_exists<E>(state: &State, id: EventId) -> Result<(), Refused<E>> {
    let last = state.at().event;
    let event = id.get();
    if event > last {
        return Err(Refused::NoEvent { event, last });
    }
    Ok(())
}

/// Refuses a message that the log does not have, or that a rewind hides.
fn check_message_on_path<E>(state: &State, seq: Seq) -> Result<(), Refused<E>> {
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

/// Returns the message by which the round of `seq` is pinned, if it is.
fn pin_of<P: Past>(state: &State, seq: Seq, past: &P) -> Result<Option<Seq>, P::Error> {
    let round = past.record(seq)?.round;
    for pin in state.shown().pins() {
        if past.record(pin)?.round == round {
            return Ok(Some(pin));
        }
    }
    Ok(None)
}
