//! The body of a request, in the direction of the server: where its messages lie.
//!
//! ```
//! use infold_wire::Wire;
//! use infold_wire::envelope::Envelope;
//!
//! let body = br#"{"model":"m","messages":[{"role":"user","content":"hello"}]}"#;
//! let envelope = Envelope::of(Wire::Chat, body)?;
//! assert_eq!(envelope.messages, [25..58]);
//! assert_eq!(envelope.members, [("model".to_owned(), 9..12)]);
//! # Ok::<(), infold_wire::envelope::EnvelopeError>(())
//! ```

mod open;
mod splitter;

use std::ops::Range;

use crate::Wire;

use open::DEEPEST;
pub use splitter::Splitter;

/// The body of a request, found its way through: where its messages lie, and what stands
/// around them.
///
/// Brackets match, and the request and its list of messages are written as JSON is. What a
/// message or another member is made of in detail shows only when it is parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The wire it came on.
    pub wire: Wire,
    /// Where the list of messages stands, brackets included.
    pub list: Range<u64>,
    /// Where each message stands, in order.
    pub messages: Vec<Range<u64>>,
    /// How many of the first messages are a system's or a developer's: they belong to the
    /// frame, not to the conversation.
    pub leading: usize,
    /// What is asked is a plain text, without messages: Responses takes that too.
    pub is_text: bool,
    /// The other members of the request: name and where the value stands, in order.
    /// Of duplicate names only the last is here.
    pub members: Vec<(String, Range<u64>)>,
}

impl Envelope {
    /// Finds its way through a body that is there as a whole.
    pub fn of(wire: Wire, body: &[u8]) -> Result<Envelope, EnvelopeError> {
        let mut splitter = Splitter::new(wire);
        splitter.push(body)?;
        splitter.finish()
    }

    /// Where the value of a member stands.
    pub fn member(&self, name: &str) -> Option<Range<u64>> {
        let mut members = self.members.iter();
        let (_, range) = members.find(|(known, _)| known == name)?;
        Some(range.clone())
    }
}

/// Why a body is no request with messages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// Not JSON.
    #[error("the request is not JSON: {what} at byte {at}")]
    NotJson {
        /// Offset of the byte.
        at: u64,
        /// What is there, or is not.
        what: &'static str,
    },
    /// Brackets within brackets within brackets.
    #[error("the request is nested deeper than {DEEPEST} levels at byte {at}")]
    TooDeep {
        /// Offset of the first bracket that is too deep.
        at: u64,
    },
    /// JSON, but not an object.
    #[error("the request is not a JSON object")]
    NotAnObject,
    /// The member that holds the messages is missing.
    #[error("the request has no \"{name}\"")]
    NoList {
        /// What it is called on this wire.
        name: &'static str,
    },
    /// The member that holds the messages holds something else.
    #[error("\"{name}\" is not a list")]
    NotAList {
        /// What it is called on this wire.
        name: &'static str,
    },
}

/// The name of the member that holds the messages.
pub fn list_name(wire: Wire) -> &'static str {
    match wire {
        Wire::Chat | Wire::Anthropic | Wire::Ollama => "messages",
        Wire::Responses => "input",
        Wire::Gemini => "contents",
    }
}

#[cfg(test)]
mod tests;
