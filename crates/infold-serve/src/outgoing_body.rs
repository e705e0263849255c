//! A request body that is sent upstream.

use std::ops::Range;

use bytes::Bytes;

use crate::IncomingBody;

/// A request body to send: parts of the client's body, and inserted bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingBody {
    parts: Vec<OutgoingPart>,
}

/// A part of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutgoingPart {
    /// A range of the client's body.
    Client(Range<u64>),
    /// Inserted bytes.
    Inserted(Bytes),
}

impl OutgoingBody {
    /// Returns the client's body as it came.
    pub fn untouched(body: &IncomingBody) -> OutgoingBody {
        OutgoingBody {
            parts: vec![OutgoingPart::Client(0..body.len())],
        }
    }

    /// Joins parts; adjacent ranges become one.
    pub fn new(parts: impl IntoIterator<Item = OutgoingPart>) -> OutgoingBody {
        let mut all: Vec<OutgoingPart> = Vec::new();
        for part in parts {
            match (all.last_mut(), part) {
                (_, part) if part.is_empty() => {}
                (Some(OutgoingPart::Client(last)), OutgoingPart::Client(next))
                    if last.end == next.start =>
                {
                    last.end = next.end;
                }
                (_, part) => all.push(part),
            }
        }
        OutgoingBody { parts: all }
    }

    /// Returns its parts in order.
    pub fn parts(&self) -> &[OutgoingPart] {
        &self.parts
    }

    /// Returns how many bytes it has.
    pub fn len(&self) -> u64 {
        self.parts.iter().map(OutgoingPart::len).sum()
    }

    /// Says whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl OutgoingPart {
    /// Returns how many bytes it has.
    pub fn len(&self) -> u64 {
        match self {
            OutgoingPart::Client(range) => range.end.saturating_sub(range.start),
            OutgoingPart::Inserted(bytes) => bytes.len() as u64,
        }
    }

    /// Says whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
