use std::ops::Range;

use bytes::Bytes;

use crate::Body;

/// What is sent upstream: parts of what the client sent, and what stands in for the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    pieces: Vec<Piece>,
}

/// A piece of what is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// So many of the client's own bytes.
    Client(Range<u64>),
    /// Bytes of ours.
    Ours(Bytes),
}

impl Outgoing {
    /// The client's body as it came.
    pub fn untouched(body: &Body) -> Outgoing {
        Outgoing {
            pieces: vec![Piece::Client(0..body.len())],
        }
    }

    /// Pieces one after another; ranges that touch become one.
    pub fn new(pieces: impl IntoIterator<Item = Piece>) -> Outgoing {
        let mut all: Vec<Piece> = Vec::new();
        for piece in pieces {
            match (all.last_mut(), piece) {
                (_, piece) if piece.is_empty() => {}
                (Some(Piece::Client(last)), Piece::Client(next)) if last.end == next.start => {
                    last.end = next.end;
                }
                (_, piece) => all.push(piece),
            }
        }
        Outgoing { pieces: all }
    }

    /// Its pieces in order.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// How many bytes it has.
    pub fn len(&self) -> u64 {
        self.pieces.iter().map(Piece::len).sum()
    }

    /// There is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Piece {
    /// How many bytes it has.
    pub fn len(&self) -> u64 {
        match self {
            Piece::Client(range) => range.end.saturating_sub(range.start),
            Piece::Ours(bytes) => bytes.len() as u64,
        }
    }

    /// There is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
