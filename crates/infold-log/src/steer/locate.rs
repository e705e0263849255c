//! Finds the point of the log that a person names.

use super::Refused;
use crate::{EventId, Mark, Past, Point, Role, Seq, State};

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
            point_at_time(state, past, within)?.ok_or(Refused::TooEarly)
        }
    }
}

/// Moves a target that lies between the items of one output to the end of that output, or, before it, to its start.
///
/// Providers refuse reasoning without its item. This is only for requests of the user: a client that goes back
/// may continue with another item of the same output.
pub fn whole_output<P: Past>(
    state: &State,
    side: Side,
    target: Target,
    past: &P,
) -> Result<Target, P::Error> {
    let Target::Message(mut number) = target else {
        return Ok(target);
    };
    let last = state.at().seq;
    // The loop ends, because an output has a finite number of items.
    loop {
        let (one, next) = match side {
            Side::To => (number, number.saturating_add(1)),
            Side::Before => (number.saturating_sub(1), number),
        };
        let Some((one, next)) = Seq::new(one).zip(Seq::new(next)).filter(|_| next <= last) else {
            return Ok(Target::Message(number));
        };
        let (one, next) = (past.record(one)?, past.record(next)?);
        if !(one.item && next.item && next.role == Role::Assistant && one.round == next.round) {
            return Ok(Target::Message(number));
        }
        number = match side {
            Side::To => number + 1,
            Side::Before => number - 1,
        };
    }
}

/// Returns the last point whose entry has a time that `within` accepts.
///
/// The search starts at the end and reads every entry after the point, because times may go back: if a clock was wrong
/// for a while, entries with a time in the future precede correct ones.
fn point_at_time<P: Past>(
    state: &State,
    past: &P,
    within: impl Fn(u64) -> bool,
) -> Result<Option<Point>, P::Error> {
    let last = state.at();
    let mut seq = last.seq;
    while let Some(at) = Seq::new(seq)
        && !within(past.record(at)?.time)
    {
        seq -= 1;
    }
    let mut event = last.event;
    while let Some(id) = EventId::new(event) {
        let mark = past.mark(id)?;
        if within(mark.time) {
            // Messages that it follows were there, whatever their times say.
            seq = seq.max(mark.after);
            break;
        }
        event -= 1;
    }
    // Events that the last message follows were there as well.
    let before = events_while(state, past, |mark| mark.after < seq)?;
    let point = Point {
        seq,
        event: event.max(before),
    };
    Ok((point != Point::default()).then_some(point))
}

/// Returns how many events satisfy `holds`, if all that do come first.
fn events_while<P: Past>(
    state: &State,
    past: &P,
    holds: impl Fn(&Mark) -> bool,
) -> Result<u64, P::Error> {
    count_while(state.at().event, |number| {
        let id = EventId::new(number).expect("counted from one");
        Ok(holds(&past.mark(id)?))
    })
}

/// Returns how many of the numbers 1 to `last` satisfy `holds`, if all that do come first, by binary search.
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
