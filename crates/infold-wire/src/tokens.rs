//! Counts the tokens of texts and messages.
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

mod char_class;
mod split;
mod vocabulary;
mod merge;
mod piece_cache;
mod compact_json;
mod message_tokens;
pub mod chars;

pub use message_tokens::{message, message_by, part, text_message};

use piece_cache::count_pieces;

use crate::Json;

/// A vocabulary, and the rule by which texts are split for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// `o200k_base`: GPT-4o and later.
    #[default]
    O200k,
    /// `cl100k_base`: GPT-4 and GPT-3.5.
    Cl100k,
}

/// A method of counting tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// Exactly, for models that have this encoding.
    Bpe(Encoding),
    /// By the number of characters: a quarter for ASCII, 1.3 for others.
    Chars,
    /// From the number of bytes: a quarter each.
    Bytes,
}

impl From<Encoding> for Estimator {
    fn from(encoding: Encoding) -> Estimator {
        Estimator::Bpe(encoding)
    }
}

/// Counts the tokens of `text`.
pub fn count(encoding: Encoding, text: &str) -> u64 {
    let mut total = 0;
    count_pieces(encoding, text, true, &mut total);
    total
}

/// Counts a text that comes in chunks; the sum is that of the whole.
#[derive(Debug)]
pub struct Counter {
    by: Estimator,
    total: u64,
    /// The estimate so far, for other methods than BPE.
    estimate: f64,
    /// Text that is not split yet, because the split depends on the next text.
    rest: String,
    /// The length of the rest at which it is split again.
    split_at: usize,
}

impl Counter {
    /// Starts a count.
    pub fn new(by: impl Into<Estimator>) -> Counter {
        Counter {
            by: by.into(),
            total: 0,
            estimate: 0.0,
            rest: String::new(),
            split_at: BATCH_BYTES,
        }
    }

    /// Counts the next chunk.
    pub fn push(&mut self, chunk: &str) {
        match self.by {
            Estimator::Bpe(encoding) => self.push_bpe(encoding, chunk),
            Estimator::Chars => chars::add(chunk, &mut self.estimate),
            Estimator::Bytes => self.estimate += chunk.len() as f64 / 4.0,
        }
    }

    fn push_bpe(&mut self, encoding: Encoding, chunk: &str) {
        if self.rest.is_empty() && chunk.len() >= BATCH_BYTES {
            let done = count_pieces(encoding, chunk, false, &mut self.total);
            self.rest.push_str(&chunk[done..]);
        } else {
            self.rest.push_str(chunk);
            if self.rest.len() < self.split_at {
                return;
            }
            let done = count_pieces(encoding, &self.rest, false, &mut self.total);
            self.rest.drain(..done);
        }
        // A piece that does not end is read again when it has doubled, not at each chunk.
        self.split_at = BATCH_BYTES.max(self.rest.len() * 2);
    }

    /// Counts the text of a JSON string, and nothing of any other value. A lone surrogate is U+FFFD.
    pub fn push_json(&mut self, string: Json<'_>) {
        string.for_each_chunk(|chunk| self.push(chunk));
    }

    /// Returns the number of tokens; the next chunk starts a new text.
    pub fn finish(&mut self) -> u64 {
        if let Estimator::Bpe(encoding) = self.by {
            count_pieces(encoding, &self.rest, true, &mut self.total);
            self.rest.clear();
            self.split_at = BATCH_BYTES;
        }
        std::mem::take(&mut self.total) + std::mem::take(&mut self.estimate) as u64
    }
}

/// The size of text that is collected before it is split.
const BATCH_BYTES: usize = 8 << 10;

/// Returns the tokens of an image: the square root of the length of its data, or 300 without data.
pub fn image(data: Option<Json<'_>>) -> u64 {
    match data {
        None => 300,
        Some(data) => (data.utf16_len() as f64).sqrt().ceil() as u64,
    }
}
