use crate::{Role, Tagged};
use infold_wire::{Json, Kind};

/// The end of a conversation, and what of the message before it must not be lost.
#[derive(Clone, Debug)]
pub struct Kept<'a> {
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
pub fn keep_with_tool_blocks(messages: &[Tagged], count: usize) -> Kept<'_> {
    let start = messages.len().saturating_sub(count);
    let (before, kept) = messages.split_at(start);
    let calls = match (before.last(), kept.first()) {
        (Some(before), Some(first)) if !blocks(first, Role::User, "tool_result").is_empty() => {
            blocks(before, Role::Assistant, "tool_use")
        }
        _ => Vec::new(),
    };
    let reasoning = match before.last() {
        Some(before) if !calls.is_empty() => blocks(before, Role::Assistant, "reasoning"),
        _ => Vec::new(),
    };
    Kept {
        messages: kept,
        calls,
        reasoning,
    }
}

/// The blocks of one type in a message; none if another role said it.
fn blocks<'a>(message: &'a Tagged, role: Role, kind: &str) -> Vec<Json<'a>> {
    let content = message.content().filter(|_| message.role() == role);
    let blocks = content.into_iter().flat_map(Json::elements);
    blocks
        .filter(|block| block.kind() == Kind::Object)
        .filter(|block| block.get("type").is_some_and(|found| found.is(kind)))
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
