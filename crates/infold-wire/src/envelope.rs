//! Finds the messages and members of a request in its bytes.
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

mod parser;

use std::ops::Range;

use crate::{Json, JsonKind, Wire};

pub use parser::EnvelopeParser;
use parser::MAX_DEPTH;

/// The ranges of a request's messages and other members in its body.
///
/// Brackets match, and the request and its list of messages are valid JSON. Messages and other members
/// are not checked in detail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The wire it came on.
    pub wire: Wire,
    /// The range of the list of messages, brackets included.
    pub list: Range<u64>,
    /// The range of each message, in order.
    pub messages: Vec<Range<u64>>,
    /// The number of first messages with the role system or developer: they belong to the frame, not to the
    /// conversation.
    pub leading: usize,
    /// Whether the input is a plain text instead of messages, which Responses accepts.
    pub is_text: bool,
    /// The names and the values' ranges of the other members, in order. Of duplicate names only the last
    /// is here.
    pub members: Vec<(String, Range<u64>)>,
}

impl Envelope {
    /// Parses a whole body.
    pub fn of(wire: Wire, body: &[u8]) -> Result<Envelope, EnvelopeError> {
        let mut parser = EnvelopeParser::new(wire);
        parser.push(body)?;
        parser.finish()
    }

    /// Returns the range of a member's value.
    pub fn member(&self, name: &str) -> Option<Range<u64>> {
        let mut members = self.members.iter();
        let (_, range) = members.find(|(known, _)| known == name)?;
        Some(range.clone())
    }
}

/// The reason that a body is not a request with messages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// Not JSON.
    #[error("the request is not JSON: {what} at byte {at}")]
    NotJson {
        /// Offset of the byte.
        at: u64,
        /// The unexpected or missing token.
        what: &'static str,
    },
    /// Too many open brackets.
    #[error("the request is nested deeper than {MAX_DEPTH} levels at byte {at}")]
    TooDeep {
        /// Offset of the first bracket beyond the limit.
        at: u64,
    },
    /// JSON, but not an object.
    #[error("the request is not a JSON object")]
    NotAnObject,
    /// The member that holds the messages is missing.
    #[error("the request has no \"{name}\"")]
    NoList {
        /// The member's name on this wire.
        name: &'static str,
    },
    /// The member that holds the messages holds something else.
    #[error("\"{name}\" is not a list")]
    NotAList {
        /// The member's name on this wire.
        name: &'static str,
    },
}

/// Returns the name of the member that holds the messages.
pub fn list_name(wire: Wire) -> &'static str {
    match wire {
        Wire::Chat | Wire::Anthropic | Wire::Ollama => "messages",
        Wire::Responses => "input",
        Wire::Gemini => "contents",
    }
}

/// Returns whether a member of a request is a prompt: a system prompt, or the messages before the first turn.
pub fn is_prompt(name: &str) -> bool {
    matches!(
        name,
        "messages" | "system" | "instructions" | "systemInstruction" | "system_instruction"
    )
}

/// Returns whether a member of a request names tools.
pub fn is_about_tools(name: &str) -> bool {
    matches!(name, "tools" | "tool_choice" | "toolConfig" | "tool_config")
}

/// Returns whether a member of a request refers to a conversation that the provider stores.
pub fn is_stored_conversation(name: &str) -> bool {
    matches!(name, "previous_response_id" | "conversation")
}

/// Returns whether a request, on any wire, carries messages.
pub fn has_messages(request: Json<'_>) -> bool {
    let [messages, input, contents] = request.pick(["messages", "input", "contents"]);
    let is_list = |json: Option<Json<'_>>| json.is_some_and(|json| json.kind() == JsonKind::Array);
    is_list(messages) || is_list(contents) || input.is_some_and(|input| !input.is_null())
}

#[cfg(test)]
mod tests;
