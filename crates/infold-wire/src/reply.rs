//! What a provider answers: read as it streams, and written as a provider would write it.

pub mod stream;
mod text;
mod reader;
mod chat;
mod responses;
mod anthropic;
mod gemini;
mod ollama;
mod write;
pub use reader::{Delivery, MOST_REPLY, Reader};
pub use write::{relay, stream, whole};

/// A whole reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The message, in the form of its wire; on Responses each output item is one.
    ///
    /// None where nothing was said that could be sent back.
    pub messages: Vec<Vec<u8>>,
    /// Why it ended.
    pub stop: Stop,
    /// What it took, as the provider counts.
    pub usage: Option<Reported>,
    /// The model that answered, as the provider names it.
    pub model: Option<String>,
    /// What a provider that keeps it calls it: the next request may name it instead of repeating it.
    pub id: Option<String>,
}

/// Why a reply ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// All was said.
    #[default]
    End,
    /// The length allowed was reached.
    Length,
    /// The model calls tools and waits for their results.
    Calls,
    /// The provider or the model declined.
    Declined,
    /// Another reason, in the provider's word.
    Other(String),
}

/// What a provider reports of a request and its reply, in its own tokens.
///
/// The parts do not overlap: what was sent is `input + cache_read + cache_write`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reported {
    /// Sent, and neither read from nor written into a cache.
    pub input: u64,
    /// Sent, and read from a cache.
    pub cache_read: u64,
    /// Sent, and written into a cache.
    pub cache_write: u64,
    /// The reply, reasoning included.
    pub output: u64,
    /// What of the reply was reasoning.
    pub reasoning: u64,
}

/// A piece of a reply, as soon as it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// Some text.
    Text(String),
    /// Some reasoning.
    Reasoning(String),
    /// A call of this tool begins.
    Call(String),
    /// Some of the arguments of the call that began last.
    Arguments(String),
}

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// The provider says in its reply that it failed: an error body, whole.
    #[error("the provider reports an error: {}", String::from_utf8_lossy(.body))]
    Failed {
        /// What it says.
        body: Vec<u8>,
    },
    /// The reply ends before it says that it is complete.
    #[error("the reply was cut off after {bytes} bytes")]
    Cut {
        /// How much there was.
        bytes: u64,
    },
    /// Nothing came at all.
    #[error("the reply is empty")]
    Empty,
    /// What came is not what this wire has.
    #[error("the reply is not understood: {reason}")]
    Malformed {
        /// What is wrong, and where.
        reason: String,
    },
    /// What came is nothing of this wire from its first line on: a page, or a text.
    #[error("it is no reply of this API: it begins `{start}`")]
    Foreign {
        /// How it begins.
        start: String,
    },
    /// It is larger than anything worth reading.
    #[error("the reply has more than {most} bytes")]
    TooLarge {
        /// How much is read at most.
        most: u64,
    },
}

impl Stop {
    /// Its name for scripts.
    pub fn name(&self) -> &str {
        match self {
            Stop::End => "end",
            Stop::Length => "length",
            Stop::Calls => "calls",
            Stop::Declined => "declined",
            Stop::Other(word) => word,
        }
    }
}

impl Reported {
    /// All that was sent.
    pub fn sent(&self) -> u64 {
        self.input + self.cache_read + self.cache_write
    }

    /// All that was sent, and the reply.
    pub fn total(&self) -> u64 {
        self.sent() + self.output
    }
}
