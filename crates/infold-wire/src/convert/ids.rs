use crate::{Json, Wire, quote};

/// The ids of calls as a wire takes them.
///
/// Which ones were given is kept in a table of fixed size. It may take a new id for an old
/// one, and that is then changed without need; an old one is never taken for new.
#[derive(Debug)]
pub struct Ids {
    to: Wire,
    seen: Vec<u64>,
}

/// Bits in the table.
const BITS: u64 = 1 << 23;
/// How much of an id that is changed stays readable.
const READABLE: usize = 20;

impl Ids {
    pub fn new(to: Wire) -> Ids {
        Ids {
            to,
            seen: Vec::new(),
        }
    }

    /// The id of a call, the `number`th of all; `taken` if another of its round has it.
    pub fn give(&mut self, given: &str, number: u64, taken: bool) -> String {
        let text = Json::checked(given.as_bytes()).text().unwrap_or_default();
        let id = match &*text {
            "" => quote(&format!("call_{number}")),
            text if fits(self.to, text) => given.to_owned(),
            text => changed(text, given.as_bytes()),
        };
        if self.note(&id) && !taken {
            return id;
        }
        let id = changed(&text, format!("{given}{number}").as_bytes());
        self.note(&id);
        id
    }

    /// Takes note of an id; says whether it may be given to another call.
    ///
    /// Where results follow their calls at once, an id needs to differ within its round only.
    pub fn note(&mut self, id: &str) -> bool {
        if !matches!(self.to, Wire::Anthropic | Wire::Responses) {
            return true;
        }
        self.seen.resize((BITS / 64) as usize, 0);
        let text = Json::checked(id.as_bytes()).text().unwrap_or_default();
        let hash = hash(text.as_bytes());
        let mut fresh = false;
        for probe in 0..4 {
            let bit = (hash.wrapping_add(probe * (hash >> 32 | 1))) % BITS;
            let word = &mut self.seen[(bit / 64) as usize];
            fresh |= *word & 1 << (bit % 64) == 0;
            *word |= 1 << (bit % 64);
        }
        fresh
    }
}

/// Says whether a wire takes such an id.
pub fn fits(to: Wire, id: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    match to {
        // Half a character; servers take that for broken JSON.
        _ if id.contains(char::REPLACEMENT_CHARACTER) => false,
        Wire::Anthropic => id.bytes().all(word),
        Wire::Chat => id.len() <= 40,
        Wire::Responses => id.len() <= 64,
        Wire::Gemini | Wire::Ollama => true,
    }
}

/// An id that every wire takes: how it began, and what tells it apart.
pub fn changed(id: &str, from: &[u8]) -> String {
    let word = |char: char| match char {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' => char,
        _ => '_',
    };
    let start: String = id.chars().take(READABLE).map(word).collect();
    format!("\"{start}_{:016x}\"", hash(from))
}

/// FNV-1a: the same on every machine and in every version.
fn hash(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    // The low bits alone would follow the last byte.
    hash ^ hash >> 29
}
