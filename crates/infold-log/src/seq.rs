//! Positions in a log: seqs, events, points and spans.

use std::fmt;
use std::str::FromStr;

/// Position of a message in one task's log.
///
/// Dense, counted from one, never reused: a rewind hides messages, it does not
/// give their numbers back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(u64);

/// Number of an event in one task's log, counted from one. A fold is named by its event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(u64);

macro_rules! counted_from_one {
    ($name:ident) => {
        impl $name {
            /// The first one.
            pub const FIRST: $name = $name(1);

            /// Returns the one with this number; there is none with number zero.
            pub fn new(number: u64) -> Option<$name> {
                (number > 0).then_some($name(number))
            }

            /// Returns its number.
            pub fn get(self) -> u64 {
                self.0
            }

            /// Returns the one after it.
            pub fn next(self) -> $name {
                $name(self.0 + 1)
            }

            /// Returns the one before it, if it is not the first.
            pub fn prev(self) -> Option<$name> {
                $name::new(self.0 - 1)
            }
        }
    };
}
counted_from_one!(Seq);
counted_from_one!(EventId);

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("e{}", self.0))
    }
}

/// A place in the log: how many messages and how many events lie before it.
///
/// Messages and events form one sequence, so a point names one state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Point {
    /// Messages up to and including this seq; zero is the empty log.
    pub seq: u64,
    /// Events up to and including this one.
    pub event: u64,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message {}, event {}", self.seq, self.event)
    }
}

/// Messages from one seq to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    from: Seq,
    to: Seq,
}

impl Span {
    /// Returns the span, unless it ends before it starts.
    pub fn new(from: Seq, to: Seq) -> Option<Span> {
        (from <= to).then_some(Span { from, to })
    }

    /// The span of one message.
    pub fn one(seq: Seq) -> Span {
        Span { from: seq, to: seq }
    }

    /// Its first message.
    pub fn from(self) -> Seq {
        self.from
    }

    /// Its last message.
    pub fn to(self) -> Seq {
        self.to
    }

    /// Says whether `seq` lies in it.
    pub fn holds(self, seq: Seq) -> bool {
        self.from <= seq && seq <= self.to
    }

    /// Returns the messages of both spans, if there are any.
    pub fn meet(self, other: Span) -> Option<Span> {
        Span::new(self.from.max(other.from), self.to.min(other.to))
    }

    /// How many seqs it spans; never zero.
    pub fn count(self) -> u64 {
        self.to.0 - self.from.0 + 1
    }

    /// Its seqs in order.
    pub fn seqs(self) -> impl DoubleEndedIterator<Item = Seq> {
        (self.from.0..=self.to.0).map(Seq)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.from == self.to {
            return f.pad(&self.from.to_string());
        }
        f.pad(&format!("{}..{}", self.from, self.to))
    }
}

/// A text that names no span of messages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a range of messages such as 3..12")]
pub struct SpanError {
    text: String,
}

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Span, SpanError> {
        let bad = || SpanError {
            text: text.to_owned(),
        };
        let (from, to) = text.split_once("..").unwrap_or((text, text));
        let seq = |text: &str| text.parse().ok().and_then(Seq::new).ok_or_else(bad);
        Span::new(seq(from)?, seq(to)?).ok_or_else(bad)
    }
}
