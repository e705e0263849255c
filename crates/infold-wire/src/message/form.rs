//! The forms in which messages are written.

use super::pairs::{Pairing, item_pairing};
use crate::{Json, JsonKind};

/// The form of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `role` and `content`: chat completions, Anthropic, Ollama, and the easy form of Responses.
    Turn,
    /// Gemini's contents: `parts`, and perhaps a `role`.
    Content,
    /// An item of OpenAI Responses, identified by `type`.
    Item(Item),
}

/// The role of an item of OpenAI Responses in its conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// `message`, of any role.
    Message,
    /// `reasoning`
    Reasoning,
    /// A call that waits for its output: `function_call`, `custom_tool_call`, `local_shell_call` …
    Call,
    /// The result of a call: `function_call_output` …
    Output,
    /// Any other output of the model: calls that the provider answers itself, references, compactions,
    /// and unknown types.
    Hosted,
    /// `mcp_approval_response`: the user allows a call or not.
    Approval,
}

impl Item {
    /// Classifies an item by its `type`; one that calls, or answers a call of the client's, has a `call_id`.
    ///
    /// A call of a type that is not listed may be one that the provider answers.
    pub(super) fn from_type(kind: &[u8], has_call_id: bool) -> Option<Item> {
        match (kind, item_pairing(kind)) {
            (b"reasoning", _) => Some(Item::Reasoning),
            (b"mcp_approval_response", _) => Some(Item::Approval),
            (b"function_call" | b"custom_tool_call" | b"local_shell_call", _) => Some(Item::Call),
            (_, Pairing::Call(_)) if has_call_id => Some(Item::Call),
            // Without a call of the client's, the provider searched itself.
            (b"tool_search_output", _) if !has_call_id => Some(Item::Hosted),
            (_, Pairing::Result(_)) => Some(Item::Output),
            (_, Pairing::Unknown) if !is_call(kind) => None,
            _ => Some(Item::Hosted),
        }
    }

    /// Returns whether the content of a `message` is an item's: Anthropic's replies have that type too.
    pub(super) fn has_content(content: Json<'_>) -> bool {
        let mut blocks = content.elements();
        match (content.kind(), blocks.next()) {
            (JsonKind::String, _) => true,
            (_, Some(first)) => first.get("type").is_some_and(is_item_block),
            _ => false,
        }
    }
}

fn is_call(kind: &[u8]) -> bool {
    kind.ends_with(b"_call") || kind.ends_with(b"_call_output")
}

fn is_item_block(kind: Json<'_>) -> bool {
    let kind = kind.name();
    kind.starts_with(b"input_") || kind.starts_with(b"output_") || &*kind == b"refusal"
}
