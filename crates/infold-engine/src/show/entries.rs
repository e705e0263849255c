//! The entries of a log: messages, and the events between them.

use infold_log::{EventId, Past as _, Place, Record, Seq, Span};
use infold_store::{EventLine, Log, LogError, iso};
use serde_json::{Value, json};

use super::{LogSnapshot, describe, each_message};

/// One entry of a log.
#[derive(Debug)]
pub enum LogEntry<'a> {
    /// A message.
    Message {
        /// The message's number.
        seq: Seq,
        /// The message's record.
        record: Record,
        /// The message's tokens.
        tokens: u64,
        /// The reason that it is not shown unchanged: `in e3`, `rewound`.
        place: String,
        /// The message's bytes.
        bytes: &'a [u8],
    },
    /// An event.
    Event(EventLine),
}

impl LogEntry<'_> {
    /// Returns the entry for scripts; a message's own bytes are to be its last member.
    pub fn json(&self) -> Value {
        match self {
            LogEntry::Message {
                seq,
                record,
                tokens,
                place,
                ..
            } => json!({
                "seq": seq.get(), "role": record.role.wire_name(), "timestamp": iso(record.time),
                "tokens": tokens, "round": record.round.get(),
                "place": if place.is_empty() { "shown" } else { place },
            }),
            LogEntry::Event(line) => json!({
                "event": line.id.to_string(), "timestamp": iso(line.ts), "after": line.after,
                "what": infold_wire::shorten(&describe(&line.what), 1000),
            }),
        }
    }
}

/// A message as it came, hidden or not.
#[derive(Debug)]
pub struct RecalledMessage<'a> {
    /// The message's number.
    pub seq: Seq,
    /// The message's record.
    pub record: Record,
    /// Whether the view shows it unchanged.
    pub shown: bool,
    /// The message's bytes.
    pub bytes: &'a [u8],
}

impl RecalledMessage<'_> {
    /// Returns the message for scripts; its own bytes are to be its last member.
    pub fn json(&self) -> Value {
        json!({
            "seq": self.seq.get(), "role": self.record.role.wire_name(),
            "timestamp": iso(self.record.time), "shown": self.shown,
        })
    }

    /// Visits the messages of a span.
    pub fn each<E: From<LogError>>(
        log: &Log,
        span: Span,
        visit: &mut dyn FnMut(RecalledMessage<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        each_message(log, span, |seq, bytes| {
            visit(RecalledMessage {
                seq,
                record: log.record(seq)?,
                shown: log.state().shown().place(seq) == Place::Open,
                bytes,
            })
        })
    }
}

impl LogSnapshot {
    /// Visits messages in order, and after each the events that followed it.
    ///
    /// Events before the first message come before it.
    pub fn entries<E: From<LogError>>(
        &self,
        span: Option<Span>,
        visit: &mut dyn FnMut(LogEntry<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let whole = span.is_none_or(|span| span.from() == Seq::FIRST);
        let mut event = match span {
            Some(span) if !whole => self.events_before(span.from())?,
            _ => 0,
        };
        let mut events = |seq: u64,
                          visit: &mut dyn FnMut(LogEntry<'_>) -> Result<(), E>|
         -> Result<(), E> {
            while let Some(id) = EventId::new(event + 1).filter(|id| id.get() <= self.at.event) {
                if self.log.mark(id)?.after > seq {
                    break;
                }
                event += 1;
                visit(LogEntry::Event(self.log.event(id)?))?;
            }
            Ok(())
        };
        if whole {
            events(0, visit)?;
        }
        let Some(span) = span else { return Ok(()) };
        let mut before = match span.from().prev() {
            Some(seq) => self.log.record(seq)?.sums.tokens,
            None => 0,
        };
        each_message(&self.log, span, |seq, bytes| {
            let record = self.log.record(seq)?;
            let tokens = record.sums.tokens - before;
            before = record.sums.tokens;
            let place = match self.shown.place(seq) {
                Place::Open => String::new(),
                Place::Under(fold) => format!("in {fold}"),
                Place::Elsewhere => "rewound".to_owned(),
            };
            visit(LogEntry::Message {
                seq,
                record,
                tokens,
                place,
                bytes,
            })?;
            events(seq.get(), visit)
        })
    }

    /// Counts the events before a message.
    fn events_before(&self, seq: Seq) -> Result<u64, LogError> {
        let (mut low, mut high) = (0, self.at.event);
        while low < high {
            let middle = low + (high - low) / 2;
            let after = match EventId::new(middle + 1) {
                Some(id) => self.log.mark(id)?.after,
                None => 0,
            };
            if after < seq.get() {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}
