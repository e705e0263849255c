//! Splits off the end of a conversation together with the tool calls that it answers.

use infold_wire::{Json, JsonKind};

use crate::{Tagged, TaggedRole};

/// The end of a conversation, and the blocks of the message before it that belong to it.
#[derive(Clone, Debug)]
pub struct KeptTail<'a> {
    /// The last messages.
    pub messages: &'a [Tagged],
    /// The tool calls before them, if the first kept message answers any.
    pub calls: Vec<Json<'a>>,
    /// The `reasoning` blocks that go with those calls.
    pub reasoning: Vec<Json<'a>>,
}

/// Returns the last `count` messages with the tool calls that the first of them answers.
///
/// Ids are not compared: if the first kept message is from the user and has a
/// `tool_result`, every `tool_use` of an assistant message right before it counts.
pub fn keep_with_tool_blocks(messages: &[Tagged], count: usize) -> KeptTail<'_> {
    let (before, messages) = messages.split_at(messages.len().saturating_sub(count));
    let (mut calls, mut reasoning) = (Vec::new(), Vec::new());
    if let (Some(before), Some(first)) = (before.last(), messages.first())
        && !blocks(first, TaggedRole::User, "tool_result").is_empty()
    {
        calls = blocks(before, TaggedRole::Assistant, "tool_use");
        if !calls.is_empty() {
            reasoning = blocks(before, TaggedRole::Assistant, "reasoning");
        }
    }
    KeptTail {
        messages,
        calls,
        reasoning,
    }
}

/// Returns the blocks of one type in a message; none if it has another role.
fn blocks<'a>(message: &'a Tagged, role: TaggedRole, block_type: &str) -> Vec<Json<'a>> {
    let content = message.content().filter(|_| message.role() == role);
    let blocks = content.into_iter().flat_map(Json::elements);
    blocks
        .filter(|block| block.kind() == JsonKind::Object)
        .filter(|block| block.get("type").is_some_and(|found| found.is(block_type)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back_as_they_were_written() {
        let call = r#"{ "type":"tool_use", "input":{"n":1.0,"n":2} , "x":"\ud83d"}"#;
        let list = format!(
            r#"[{{"role":"assistant","content":[{call},null]}},
                {{"role":"user","content":[{{"type":"tool_result"}}]}}]"#
        );
        let messages = Tagged::parse_list(list.as_bytes()).unwrap();
        let kept = keep_with_tool_blocks(&messages, 1);
        assert_eq!(kept.calls[0].bytes(), call.as_bytes());
        assert_eq!(kept.calls.len(), 1);
        assert!(keep_with_tool_blocks(&messages, 2).calls.is_empty());
        assert_eq!(keep_with_tool_blocks(&messages, 9).messages.len(), 2);
    }
}
