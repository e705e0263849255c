//! Tool calls and what came of them, for a record of tools.

use crate::said::{Block, Said};
use crate::{Json, Message};

/// A call that a message makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Its id; empty if it has none.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Its arguments: a JSON object.
    pub args: String,
}

/// A result that a message brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Came {
    /// The id of the call; empty if it is not said.
    pub id: String,
    /// The tool; empty if it is not said.
    pub tool: String,
    /// What it says: the text, or what stands for other things.
    pub text: String,
    /// It says that it failed.
    pub failed: bool,
}

/// The calls of a message.
pub fn made(message: &Message<'_>) -> Vec<Made> {
    let blocks = Said::of(message).blocks.into_iter();
    let calls = blocks.filter_map(|block| match block {
        Block::Call(id, tool, args) => Some(Made {
            id: word(&id),
            tool: word(&tool),
            args: args.into_owned(),
        }),
        _ => None,
    });
    calls.collect()
}

/// The results in a message.
pub fn came(message: &Message<'_>) -> Vec<Came> {
    let blocks = Said::of(message).blocks.into_iter();
    let results = blocks.filter_map(|block| match block {
        Block::Result {
            id,
            name,
            content,
            failed,
        } => Some(Came {
            id: word(&id),
            tool: word(&name),
            text: text(&content),
            failed,
        }),
        _ => None,
    });
    results.collect()
}

/// What blocks say, one below the other.
fn text(blocks: &[Block<'_>]) -> String {
    let lines = blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(word(text)),
        Block::Image(..) | Block::Link(_) => Some("[image]".to_owned()),
        Block::Other(other) => Some(other.clone().into_owned()),
        _ => None,
    });
    let lines: Vec<String> = lines.collect();
    lines.join("\n")
}

/// What a JSON string says.
fn word(raw: &str) -> String {
    let json = Json::parse(raw.as_bytes()).ok();
    let text = json.and_then(Json::text);
    text.map(|text| text.into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(text: &str) -> String {
        let message = Message::parse(text.as_bytes()).unwrap();
        format!("{:?} {:?}", made(&message), came(&message))
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
