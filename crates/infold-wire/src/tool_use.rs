//! Tool calls and tool results, for the record of tools.

use crate::neutral::{NeutralBlock, NeutralMessage};
use crate::{Json, Message};

/// A tool call in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedCall {
    /// The call's id; empty if it has none.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The call's arguments: a JSON object.
    pub args: String,
}

/// A tool result in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedResult {
    /// The id of the call; empty if it is missing.
    pub id: String,
    /// The tool's name; empty if it is missing.
    pub tool: String,
    /// The text of the result, with placeholders for other content.
    pub text: String,
    /// Whether the result is marked as failed.
    pub failed: bool,
}

/// Returns the calls of a message.
pub fn tool_calls(message: &Message<'_>) -> Vec<RecordedCall> {
    let blocks = NeutralMessage::of(message).blocks.into_iter();
    let calls = blocks.filter_map(|block| match block {
        NeutralBlock::Call(id, tool, args) => Some(RecordedCall {
            id: decode(&id),
            tool: decode(&tool),
            args: args.into_owned(),
        }),
        _ => None,
    });
    calls.collect()
}

/// Returns the results in a message.
pub fn tool_results(message: &Message<'_>) -> Vec<RecordedResult> {
    let blocks = NeutralMessage::of(message).blocks.into_iter();
    let results = blocks.filter_map(|block| match block {
        NeutralBlock::Result {
            id,
            name,
            content,
            failed,
        } => Some(RecordedResult {
            id: decode(&id),
            tool: decode(&name),
            text: join_texts(&content),
            failed,
        }),
        _ => None,
    });
    results.collect()
}

/// Joins the texts of a result, with placeholders for other content.
pub(crate) fn join_texts(blocks: &[NeutralBlock<'_>]) -> String {
    let lines = blocks.iter().filter_map(|block| match block {
        NeutralBlock::Text(text) => Some(decode(text)),
        NeutralBlock::Image(..) | NeutralBlock::Link(_) => Some("[image]".to_owned()),
        NeutralBlock::Other(other) => Some(other.clone().into_owned()),
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Decodes a JSON string.
pub(crate) fn decode(raw: &str) -> String {
    let json = Json::parse(raw.as_bytes()).ok();
    json.and_then(Json::text).unwrap_or_default().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(text: &str) -> String {
        let message = Message::parse(text.as_bytes()).unwrap();
        format!("{:?} {:?}", tool_calls(&message), tool_results(&message))
    }

    #[test]
    fn calls_and_results_are_found_on_every_wire() {
        let messages = [
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{\"p\":1}"}}]}"#,
            r#"{"role":"tool","tool_call_id":"a","content":"x\ny"}"#,
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"ls","input":{"p":1}}]}"#,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":"no"}]}"#,
            r#"{"role":"model","parts":[{"functionCall":{"name":"ls","args":{"p":1}}}]}"#,
            r#"{"type":"function_call_output","call_id":"a","output":"x"}"#,
            r#"{"role":"user","content":"hello"}"#,
        ];
        let all: Vec<String> = messages.map(both).to_vec();
        insta::assert_snapshot!(all.join("\n"));
    }
}
