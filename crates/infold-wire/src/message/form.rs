use super::pairs::{self, Pairing};
use crate::{Json, Kind};

/// How a message is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `role` and `content`: chat completions, Anthropic, Ollama, and the easy form of Responses.
    Turn,
    /// Gemini's contents: `parts`, and perhaps a `role`.
    Content,
    /// An item of OpenAI Responses: `type` says what it is.
    Item(Item),
}

/// What an item of OpenAI Responses is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// `message`: something said, by whomever.
    Message,
    /// `reasoning`
    Reasoning,
    /// A call that waits for its output: `function_call`, `custom_tool_call`, `local_shell_call` …
    Call,
    /// What a call gave back: `function_call_output` …
    Output,
    /// Anything else of the model's: calls that the provider answers itself, references, compactions,
    /// and types that are not known.
    Hosted,
    /// `mcp_approval_response`: the person's yes or no.
    Approval,
}

impl Item {
    /// Knows an item by its `type`; one that calls, or answers a call of the client's, has a `call_id`.
    ///
    /// A call of a type that is not listed may be one that the provider answers, at any time.
    pub(super) fn known(kind: &[u8], calls: bool) -> Option<Item> {
        match (kind, pairs::of_item(kind)) {
            (b"reasoning", _) => Some(Item::Reasoning),
            (b"mcp_approval_response", _) => Some(Item::Approval),
            (b"function_call" | b"custom_tool_call" | b"local_shell_call", _) => Some(Item::Call),
            (_, Pairing::Call(_)) if calls => Some(Item::Call),
            // Without a call of the client's, the provider has searched itself.
            (b"tool_search_output", _) if !calls => Some(Item::Hosted),
            (_, Pairing::Result(_)) => Some(Item::Output),
            (_, Pairing::Unknown) if !is_call(kind) => None,
            _ => Some(Item::Hosted),
        }
    }

    /// Says whether the content of something of type `message` is an item's.
    ///
    /// Anthropic's replies have that type too, but other blocks.
    pub(super) fn holds(content: Json<'_>) -> bool {
        let mut blocks = content.elements();
        match (content.kind(), blocks.next()) {
            (Kind::String, _) => true,
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
