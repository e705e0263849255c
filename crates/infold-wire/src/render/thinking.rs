//! Removes thinking that its provider would refuse.

use super::EMPTY_PLACEHOLDER;
use crate::neutral::raw_json;
use crate::{Json, JsonKind, Message, quote};

/// Returns an Anthropic message without its thinking; none if it has none.
///
/// Newer models sign a thinking block together with everything before it, so they refuse it once
/// something before it was folded.
pub fn without_thinking(message: &[u8]) -> Option<Vec<u8>> {
    let message = Message::read(message).ok()?;
    let content = message.content();
    let content = content.filter(|content| content.kind() == JsonKind::Array)?;
    let is_thinking = |block: &Json<'_>| {
        let kind = block.get("type").map(Json::name).unwrap_or_default();
        matches!(&*kind, b"thinking" | b"redacted_thinking")
    };
    if !content.elements().any(|block| is_thinking(&block)) {
        return None;
    }
    let kept = content.elements().filter(|block| !is_thinking(block));
    let kept: Vec<_> = kept.map(raw_json).collect();
    let kept = if kept.is_empty() {
        quote(EMPTY_PLACEHOLDER)
    } else {
        format!("[{}]", kept.join(","))
    };
    Some(message.with_replaced(content, &kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(text: &str) -> Option<String> {
        let message = without_thinking(text.as_bytes())?;
        Some(String::from_utf8(message).unwrap())
    }

    #[test]
    fn only_thinking_goes() {
        let text = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"s"}, {"type":"text","text":"caf\u00e9"},{"type":"redacted_thinking","data":"d"},{"type":"tool_use","id":"a","name":"f","input":{"type":"thinking"}}],"x":1}"#;
        assert_eq!(
            without(text).as_deref(),
            Some(
                r#"{"role":"assistant","content":[{"type":"text","text":"caf\u00e9"},{"type":"tool_use","id":"a","name":"f","input":{"type":"thinking"}}],"x":1}"#
            )
        );
        assert_eq!(without(r#"{"role":"assistant","content":"x"}"#), None);
        let alone = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"s"}]}"#;
        assert_eq!(
            without(alone).as_deref(),
            Some(r#"{"role":"assistant","content":"(empty)"}"#)
        );
    }
}
