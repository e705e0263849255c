//! Ids of calls that a wire accepts.

use crate::{Json, Wire, quote};

/// Assigns ids to calls.
///
/// A Bloom filter of fixed size records the ids in use: a new id may be changed without need, but none is
/// assigned twice.
#[derive(Debug)]
pub struct CallIds {
    to: Wire,
    seen: Vec<u64>,
}

const FILTER_BITS: u64 = 1 << 23;
/// The number of characters of a changed id that stay.
const KEPT_ID_CHARS: usize = 20;

impl CallIds {
    /// Returns an assignment for messages of this wire.
    pub fn new(to: Wire) -> CallIds {
        CallIds {
            to,
            seen: Vec::new(),
        }
    }

    /// Returns the id of a call, the `number`th of all; `taken` if another of its round has it.
    pub fn assign(&mut self, given: &str, number: u64, taken: bool) -> String {
        let text = Json::checked(given.as_bytes()).text().unwrap_or_default();
        let id = match &*text {
            "" => quote(&format!("call_{number}")),
            text if is_accepted(self.to, text) => given.to_owned(),
            text => hashed_id(text, given.as_bytes()),
        };
        if self.record(&id) && !taken {
            return id;
        }
        let id = hashed_id(&text, format!("{given}{number}").as_bytes());
        self.record(&id);
        id
    }

    /// Records an id; returns whether it was unused.
    ///
    /// If results follow their calls at once, ids need to differ within a round only.
    pub fn record(&mut self, id: &str) -> bool {
        if !matches!(self.to, Wire::Anthropic | Wire::Responses) {
            return true;
        }
        self.seen.resize((FILTER_BITS / 64) as usize, 0);
        let text = Json::checked(id.as_bytes()).text().unwrap_or_default();
        let hash = hash(text.as_bytes());
        let mut fresh = false;
        for probe in 0..4 {
            let bit = (hash.wrapping_add(probe * (hash >> 32 | 1))) % FILTER_BITS;
            let word = &mut self.seen[(bit / 64) as usize];
            fresh |= *word & 1 << (bit % 64) == 0;
            *word |= 1 << (bit % 64);
        }
        fresh
    }
}

/// Returns whether a wire accepts such an id.
pub fn is_accepted(to: Wire, id: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    match to {
        // Servers take a lone surrogate for broken JSON.
        _ if id.contains(char::REPLACEMENT_CHARACTER) => false,
        Wire::Anthropic => id.bytes().all(word),
        Wire::Chat => id.len() <= 40,
        Wire::Responses => id.len() <= 64,
        Wire::Gemini | Wire::Ollama => true,
    }
}

/// Returns an id that every wire accepts: the start of the old one, and a hash.
pub fn hashed_id(id: &str, from: &[u8]) -> String {
    let word = |char: char| match char {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' => char,
        _ => '_',
    };
    let start: String = id.chars().take(KEPT_ID_CHARS).map(word).collect();
    format!("\"{start}_{:016x}\"", hash(from))
}

/// Returns the FNV-1a hash, which is the same on every machine and in every version.
fn hash(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    // Mix the high bits in: the low ones alone depend mostly on the last byte.
    hash ^ hash >> 29
}
