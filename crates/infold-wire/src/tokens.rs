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
mod cache;
mod compact;
mod weigh;
pub mod chars;

pub use weigh::{message, message_by, part, said};

use cache::pieces;

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

/// A way to tell how many tokens a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// Exactly, for models that have this encoding.
    Bpe(Encoding),
    /// From the number of characters: a quarter for ASCII, 1.3 for others.
    Chars,
    /// From the number of bytes: a quarter each.
    Bytes,
}

impl From<Encoding> for Estimator {
    fn from(encoding: Encoding) -> Estimator {
        Estimator::Bpe(encoding)
    }
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
    by: Estimator,
    total: u64,
    /// What was guessed from characters.
    guessed: f64,
    /// What is not cut yet, because how depends on what follows.
    rest: String,
    /// How long the rest is when it is worth another look.
    look_at: usize,
}

impl Counter {
    /// Starts with nothing.
    pub fn new(by: impl Into<Estimator>) -> Counter {
        Counter {
            by: by.into(),
            total: 0,
            guessed: 0.0,
            rest: String::new(),
            look_at: BATCH,
        }
    }

    /// Takes the next chunk.
    pub fn push(&mut self, chunk: &str) {
        match self.by {
            Estimator::Bpe(encoding) => self.cut(encoding, chunk),
            Estimator::Chars => chars::add(chunk, &mut self.guessed),
            Estimator::Bytes => self.guessed += chunk.len() as f64 / 4.0,
        }
    }

    fn cut(&mut self, encoding: Encoding, chunk: &str) {
        if self.rest.is_empty() && chunk.len() >= BATCH {
            let done = pieces(encoding, chunk, false, &mut self.total);
            self.rest.push_str(&chunk[done..]);
        } else {
            self.rest.push_str(chunk);
            if self.rest.len() < self.look_at {
                return;
            }
            let done = pieces(encoding, &self.rest, false, &mut self.total);
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
        if let Estimator::Bpe(encoding) = self.by {
            pieces(encoding, &self.rest, true, &mut self.total);
            self.rest.clear();
            self.look_at = BATCH;
        }
        std::mem::take(&mut self.total) + std::mem::take(&mut self.guessed) as u64
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
