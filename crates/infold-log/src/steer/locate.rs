use super::Refused;
use crate::{EventId, Mark, Past, Point, Record, Seq, State};

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
            let seq = messages_while(state, past, |record| within(record.time))?;
            let event = events_while(state, past, |mark| within(mark.time))?;
            if seq == 0 && event == 0 {
                return Err(Refused::TooEarly);
            }
            Ok(Point { seq, event })
        }
    }
}

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

fn messages_while<P: Past>(
    state: &State,
    past: &P,
    holds: impl Fn(&Record) -> bool,
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
