use super::EMPTY;
use crate::message::block_is;
use crate::{Json, Kind, Message, quote, splice};

/// Returns an Anthropic message without its thinking; none if it has none.
///
/// Newer models sign a thinking block together with everything before it, so that it is refused once
/// something before it was folded.
pub fn without_thinking(message: &[u8]) -> Option<Vec<u8>> {
    let message = Message::read(message).ok()?;
    let content = message
        .content()
        .filter(|content| content.kind() == Kind::Array)?;
    let thinks = |block: &Json<'_>| {
        ["thinking", "redacted_thinking"]
            .iter()
            .any(|kind| block_is(*block, kind))
    };
    let all: Vec<Json<'_>> = content.elements().collect();
    if !all.iter().any(thinks) {
        return None;
    }
    let kept: Vec<_> = all.iter().filter(|block| !thinks(block)).collect();
    let kept: Vec<_> = kept
        .iter()
        .map(|block| String::from_utf8_lossy(block.bytes()))
        .collect();
    let kept = match kept.is_empty() {
        true => quote(EMPTY),
        false => format!("[{}]", kept.join(",")),
    };
    let base = message.json().range().start;
    let range = content.range();
    let range = range.start - base..range.end - base;
    Some(splice(message.bytes(), &[(range, kept)]))
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
