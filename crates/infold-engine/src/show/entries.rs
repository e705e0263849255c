use infold_log::{EventId, Past as _, Place, Record, Seq, Span};
use infold_store::{EventLine, Log, LogError, StepError, iso};
use serde_json::{Value, json};

use super::{Seen, describe, each};

/// One entry of a log.
#[derive(Debug)]
pub enum Entry<'a> {
    /// A message.
    Message {
        /// Its number.
        seq: Seq,
        /// What is known of it.
        record: Record,
        /// Its tokens.
        tokens: u64,
        /// Where it is, if it is not shown as it is: `in e3`, `rewound`.
        place: String,
        /// What it says.
        bytes: &'a [u8],
    },
    /// What happened between messages.
    Event(EventLine),
}

impl Entry<'_> {
    /// For scripts; a message's own bytes are to be its last member.
    pub fn json(&self) -> Value {
        match self {
            Entry::Message {
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
            Entry::Event(line) => json!({
                "event": line.id.to_string(), "timestamp": iso(line.ts), "after": line.after,
                "what": infold_wire::shorten(&describe(&line.what), 1000),
            }),
        }
    }
}

/// A message as it came, hidden or not.
#[derive(Debug)]
pub struct Recalled<'a> {
    /// Its number.
    pub seq: Seq,
    /// What is known of it.
    pub record: Record,
    /// The view shows it as it is.
    pub shown: bool,
    /// What it says.
    pub bytes: &'a [u8],
}

impl Recalled<'_> {
    /// For scripts; the message's own bytes are to be its last member.
    pub fn json(&self) -> Value {
        json!({
            "seq": self.seq.get(), "role": self.record.role.wire_name(),
            "timestamp": iso(self.record.time), "shown": self.shown,
        })
    }

    /// Says that there are no such messages, if so.
    pub fn check(log: &Log, span: Span) -> Result<(), StepError> {
        let (seq, last) = (span.to().get(), log.state().at().seq);
        match seq > last {
            true => Err(StepError::NoMessage { seq, last }),
            false => Ok(()),
        }
    }

    /// Visits messages that are there.
    pub fn each<E: From<LogError>>(
        log: &Log,
        span: Span,
        visit: &mut dyn FnMut(Recalled<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        each(log, span, |seq, bytes| {
            visit(Recalled {
                seq,
                record: log.record(seq)?,
                shown: log.state().shown().place(seq) == Place::Open,
                bytes,
            })
        })
    }
}

impl Seen {
    /// Visits messages in order, and between them what happened after each.
    ///
    /// What happened before the first message of all comes before it.
    pub fn entries<E: From<LogError>>(
        &self,
        span: Option<Span>,
        visit: &mut dyn FnMut(Entry<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let whole = span.is_none_or(|span| span.from() == Seq::FIRST);
        let mut event = match span {
            Some(span) if !whole => self.events_before(span.from())?,
            _ => 0,
        };
        let mut events = |seq: u64,
                          visit: &mut dyn FnMut(Entry<'_>) -> Result<(), E>|
         -> Result<(), E> {
            while let Some(id) = EventId::new(event + 1).filter(|id| id.get() <= self.at.event) {
                if self.log.mark(id)?.after > seq {
                    break;
                }
                event += 1;
                visit(Entry::Event(self.log.event(id)?))?;
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
        each(&self.log, span, |seq, bytes| {
            let record = self.log.record(seq)?;
            let tokens = record.sums.tokens - before;
            before = record.sums.tokens;
            let place = match self.shown.place(seq) {
                Place::Open => String::new(),
                Place::Under(fold) => format!("in {fold}"),
                Place::Elsewhere => "rewound".to_owned(),
            };
            visit(Entry::Message {
                seq,
                record,
                tokens,
                place,
                bytes,
            })?;
            events(seq.get(), visit)
        })
    }

    /// How many events happened before a message was there.
    fn events_before(&self, seq: Seq) -> Result<u64, LogError> {
        let (mut low, mut high) = (0, self.at.event);
        while low < high {
            let middle = low + (high - low) / 2;
            let after = match EventId::new(middle + 1) {
                Some(id) => self.log.mark(id)?.after,
                None => 0,
            };
            match after < seq.get() {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Ok(low)
    }
}
