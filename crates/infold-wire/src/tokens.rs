//! How many tokens a text is.
//!
//! Byte pair encoding as OpenAI's models have it, exact to the token, in linear time on
//! any input. Text that spells a special token is ordinary text.
//!
//! ```
//! use infold_wire::tokens::{Counter, Encoding, count};
//!
//! assert_eq!(count(Encoding::O200k, "hello world"), 2);
//! let mut counter = Counter::new(Encoding::O200k);
//! counter.push("hello wo");
//! counter.push("rld");
//! assert_eq!(counter.finish(), 2);
//! ```

mod class;
mod split;
mod vocabulary;
mod merge;
mod compact;
mod weigh;
pub mod chars;

pub use weigh::{message, part};

use split::Text;
use vocabulary::Vocabulary;

use crate::Json;

/// A vocabulary and how texts are cut for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// `o200k_base`: GPT-4o and later.
    #[default]
    O200k,
    /// `cl100k_base`: GPT-4 and GPT-3.5.
    Cl100k,
}

/// Returns how many tokens `text` is.
pub fn count(encoding: Encoding, text: &str) -> u64 {
    let mut total = 0;
    pieces(encoding, text, true, &mut total);
    total
}

/// Counts a text that comes in chunks; the sum is that of the whole.
#[derive(Debug)]
pub struct Counter {
    encoding: Encoding,
    total: u64,
    /// What is not cut yet, because how depends on what follows.
    rest: String,
    /// How long the rest is when it is worth another look.
    look_at: usize,
}

impl Counter {
    /// Starts with nothing.
    pub fn new(encoding: Encoding) -> Counter {
        Counter {
            encoding,
            total: 0,
            rest: String::new(),
            look_at: BATCH,
        }
    }

    /// Takes the next chunk.
    pub fn push(&mut self, chunk: &str) {
        if self.rest.is_empty() && chunk.len() >= BATCH {
            let done = pieces(self.encoding, chunk, false, &mut self.total);
            self.rest.push_str(&chunk[done..]);
        } else {
            self.rest.push_str(chunk);
            if self.rest.len() < self.look_at {
                return;
            }
            let done = pieces(self.encoding, &self.rest, false, &mut self.total);
            self.rest.drain(..done);
        }
        // A piece that does not end is looked at when it has doubled, not at each chunk.
        self.look_at = BATCH.max(self.rest.len() * 2);
    }

    /// Takes what a JSON string says; of any other value nothing. A lone surrogate is U+FFFD.
    pub fn push_json(&mut self, string: Json<'_>) {
        string.chunks(|chunk| self.push(chunk));
    }

    /// Returns the number of tokens; the next chunk starts a new text.
    pub fn finish(&mut self) -> u64 {
        pieces(self.encoding, &self.rest, true, &mut self.total);
        self.rest.clear();
        self.look_at = BATCH;
        std::mem::take(&mut self.total)
    }
}

/// How much is collected before it is cut.
const BATCH: usize = 8 << 10;

/// Returns the tokens of an image: 300, or as its data has it, the square root of its length.
pub fn image(data: Option<Json<'_>>) -> u64 {
    match data {
        None => 300,
        Some(data) => (data.utf16_len() as f64).sqrt().ceil() as u64,
    }
}

/// Adds up the pieces of a text and returns where the part begins that was not cut yet.
fn pieces(encoding: Encoding, text: &str, whole: bool, total: &mut u64) -> usize {
    let vocabulary = Vocabulary::of(encoding);
    let cut = match encoding {
        Encoding::O200k => split::o200k,
        Encoding::Cl100k => split::cl100k,
    };
    let text = Text {
        bytes: text.as_bytes(),
        whole,
    };
    let mut start = 0;
    while let Some(end) = cut(text, start) {
        let piece = &text.bytes[start..end];
        *total += match vocabulary.has(piece) {
            true => 1,
            false => merge::merge(vocabulary, piece),
        };
        start = end;
    }
    start
}
