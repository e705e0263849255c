//! The content of a message, in a form that is the same on every wire.

use crate::neutral::{NeutralBlock, NeutralMessage};
use crate::tool_use::{decode, join_texts};
use crate::{Message, MessageError};

/// A part of a message's content, without the ids by which it is paired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessagePart {
    /// A text.
    Text(String),
    /// The arguments of a call: a JSON object.
    Arguments(String),
    /// The text of a result.
    Result(String),
}

impl MessagePart {
    /// Returns the text, or the JSON text of an object.
    pub fn text(&self) -> &str {
        let (MessagePart::Text(text) | MessagePart::Arguments(text) | MessagePart::Result(text)) =
            self;
        text
    }
}

/// Returns the texts of a message, the arguments of its calls and its results, in order. Reasoning and media are left
/// out.
///
/// ```
/// use infold_wire::redact::{MessagePart, message_parts};
///
/// let result = br#"{"role":"tool","tool_call_id":"c1","content":"done"}"#;
/// let same = br#"{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"output":"done"}}}]}"#;
/// assert_eq!(message_parts(result)?, [MessagePart::Result("done".to_owned())]);
/// assert_eq!(message_parts(result)?, message_parts(same)?);
/// # Ok::<(), infold_wire::MessageError>(())
/// ```
pub fn message_parts(message: &[u8]) -> Result<Vec<MessagePart>, MessageError> {
    let blocks = NeutralMessage::of(&Message::read(message)?).blocks;
    let parts = blocks.iter().filter_map(|block| match block {
        NeutralBlock::Text(text) => Some(MessagePart::Text(decode(text))),
        NeutralBlock::Call(_, _, arguments) => {
            Some(MessagePart::Arguments(arguments.clone().into_owned()))
        }
        NeutralBlock::Result { content, .. } => Some(MessagePart::Result(join_texts(content))),
        _ => None,
    });
    Ok(parts.collect())
}
