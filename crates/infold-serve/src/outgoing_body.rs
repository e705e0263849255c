//! A request body that is sent upstream.

use std::ops::Range;

use bytes::Bytes;

use crate::RequestBody;

/// A request body to send: parts of the client's body, and inserted bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingBody {
    parts: Vec<BodyPart>,
}

/// A part of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyPart {
    /// A range of the client's body.
    Client(Range<u64>),
    /// Inserted bytes.
    Inserted(Bytes),
}

impl OutgoingBody {
    /// Returns the client's body as it came.
    pub fn untouched(body: &RequestBody) -> OutgoingBody {
        OutgoingBody {
            parts: vec![BodyPart::Client(0..body.len())],
        }
    }

    /// Joins parts; adjacent ranges become one.
    pub fn new(parts: impl IntoIterator<Item = BodyPart>) -> OutgoingBody {
        let mut all: Vec<BodyPart> = Vec::new();
        for part in parts {
            match (all.last_mut(), part) {
                (_, part) if part.is_empty() => {}
                (Some(BodyPart::Client(last)), BodyPart::Client(next))
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
    pub fn parts(&self) -> &[BodyPart] {
        &self.parts
    }

    /// Returns how many bytes it has.
    pub fn len(&self) -> u64 {
        self.parts.iter().map(BodyPart::len).sum()
    }

    /// Says whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl BodyPart {
    /// Returns how many bytes it has.
    pub fn len(&self) -> u64 {
        match self {
            BodyPart::Client(range) => range.end.saturating_sub(range.start),
            BodyPart::Inserted(bytes) => bytes.len() as u64,
        }
    }

    /// Says whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
