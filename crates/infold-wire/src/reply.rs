//! Reads the replies of providers as they stream.

pub mod stream;
pub(crate) mod growing_json;
mod reader;
mod chat;
pub(crate) mod chat_calls;
mod responses;
mod anthropic;
mod gemini;
mod ollama;
pub use growing_json::with_members;
pub use reader::{Delivery, MAX_REPLY_BYTES, ReplyReader};

/// A whole reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The message, in the form of its wire; on Responses each output item is one.
    ///
    /// Empty if there is nothing that could be sent back.
    pub messages: Vec<Vec<u8>>,
    /// The reason that the reply ended.
    pub stop: StopReason,
    /// The usage, as the provider counts.
    pub usage: Option<TokenUsage>,
    /// The model that answered, as the provider names it.
    pub model: Option<String>,
    /// The id at a provider that stores the reply, by which the next request may refer to it.
    pub id: Option<String>,
}

/// The reason that a reply ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StopReason {
    /// The reply is complete.
    #[default]
    End,
    /// The maximum length was reached.
    Length,
    /// The model calls tools and waits for their results.
    Calls,
    /// The provider or the model declined.
    Declined,
    /// Another reason, in the provider's word.
    Other(String),
}

/// The usage that a provider reports, in its own tokens.
///
/// The parts do not overlap: the request has `input + cache_read + cache_write`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// Tokens sent that were neither read from nor written into a cache.
    pub input: u64,
    /// Tokens sent that were read from a cache.
    pub cache_read: u64,
    /// Tokens sent that were written into a cache.
    pub cache_write: u64,
    /// The reply, reasoning included.
    pub output: u64,
    /// The part of the reply that is reasoning.
    pub reasoning: u64,
}

/// A part of a reply, as it arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyDelta {
    /// Some text.
    Text(String),
    /// Some reasoning.
    Reasoning(String),
    /// A call of this tool begins.
    Call(String),
    /// Some of the arguments of the call that began last.
    Arguments(String),
}

/// The reason that there is no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// The reply is an error body.
    #[error("the provider reports an error: {}", String::from_utf8_lossy(.body))]
    Failed {
        /// The body.
        body: Vec<u8>,
    },
    /// The reply ends before its end marker.
    #[error("the reply was cut off after {bytes} bytes")]
    Cut {
        /// The bytes that arrived.
        bytes: u64,
    },
    /// The reply is empty.
    #[error("the reply is empty")]
    Empty,
    /// The reply is not one of this wire.
    #[error("the reply is malformed: {reason}")]
    Malformed {
        /// The defect, and its place.
        reason: String,
    },
    /// The reply is a web page, or a text.
    #[error("this is not a reply of this API: it begins with `{start}`")]
    Foreign {
        /// The beginning of the body.
        start: String,
    },
    /// The reply is too large.
    #[error("the reply has more than {most} bytes")]
    TooLarge {
        /// The maximum size.
        most: u64,
    },
}

impl StopReason {
    /// Returns its name for scripts.
    pub fn name(&self) -> &str {
        match self {
            StopReason::End => "end",
            StopReason::Length => "length",
            StopReason::Calls => "calls",
            StopReason::Declined => "declined",
            StopReason::Other(word) => word,
        }
    }
}

impl TokenUsage {
    /// Returns the usage of a request whose count includes tokens read from and written into a cache.
    fn including_cache(
        sent: u64,
        read: u64,
        write: u64,
        output: u64,
        reasoning: u64,
    ) -> TokenUsage {
        let cache_read = read.min(sent);
        let cache_write = write.min(sent - cache_read);
        TokenUsage {
            input: sent - cache_read - cache_write,
            cache_read,
            cache_write,
            output,
            reasoning: reasoning.min(output),
        }
    }

    /// Returns the tokens of the request.
    pub fn sent(&self) -> u64 {
        self.input + self.cache_read + self.cache_write
    }

    /// Returns the tokens of the request and the reply.
    pub fn total(&self) -> u64 {
        self.sent() + self.output
    }
}
