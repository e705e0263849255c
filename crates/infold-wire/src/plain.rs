use infold_log::Role;

use crate::message::block_is;
use crate::{Json, Kind, Message};

/// Appends what a message says as plain text: calls with their arguments, results, no images.
pub fn plain(message: &Message<'_>, out: &mut String) {
    let start = out.len();
    if let Some(content) = message.content() {
        content_text(content, out);
    }
    if message.role() == Role::Assistant {
        let json = message.json();
        let calls = json.get("tool_calls").into_iter().flat_map(Json::elements);
        let calls = calls.filter_map(|call| call.get("function").or_else(|| call.get("custom")));
        for call in calls.chain(json.get("function_call")) {
            let arguments = call.get("arguments").or_else(|| call.get("input"));
            called(call.get("name"), arguments, start, out);
        }
    }
}

/// Appends only the words of a message: no calls, no results.
pub fn spoken(message: &Message<'_>, out: &mut String) {
    let start = out.len();
    let Some(content) = message.content() else {
        return;
    };
    if content.kind() == Kind::String {
        return text(content, start, out);
    }
    for block in content.elements().filter(|block| block_is(*block, "text")) {
        if let Some(said) = block.get("text") {
            text(said, start, out);
        }
    }
}

fn content_text(content: Json<'_>, out: &mut String) {
    let start = out.len();
    if content.kind() == Kind::String {
        return text(content, start, out);
    }
    for block in content.elements() {
        if block_is(block, "tool_use") {
            called(block.get("name"), block.get("input"), start, out);
        } else if block_is(block, "tool_result") {
            apart(start, out);
            out.push_str("(result) ");
            if let Some(content) = block.get("content") {
                content_text(content, out);
            }
        } else if let Some(said) = block.get("text") {
            text(said, start, out);
        } else if block.get("source").is_some() || block.get("image_url").is_some() {
            apart(start, out);
            out.push_str("(image)");
        }
    }
}

fn text(value: Json<'_>, start: usize, out: &mut String) {
    if let Some(text) = value.text() {
        apart(start, out);
        out.push_str(&text);
    }
}

fn called(name: Option<Json<'_>>, arguments: Option<Json<'_>>, start: usize, out: &mut String) {
    apart(start, out);
    out.push_str("(calls ");
    out.push_str(&name.and_then(Json::text).unwrap_or_default());
    if let Some(arguments) = arguments {
        out.push(' ');
        match arguments.text() {
            Some(inner) => out.push_str(&inner),
            None => out.push_str(&String::from_utf8_lossy(arguments.bytes())),
        }
    }
    out.push(')');
}

fn apart(start: usize, out: &mut String) {
    if out.len() > start && !out.ends_with(' ') {
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        let mut out = String::new();
        plain(&Message::parse(text.as_bytes()).unwrap(), &mut out);
        out
    }

    #[test]
    fn calls_and_results_read_as_text() {
        let chat = r#"{"role":"assistant","content":"look","tool_calls":[{"id":"a","function":{"name":"ls","arguments":"{\"path\":\"/\"}"}}]}"#;
        assert_eq!(said(chat), "look\n(calls ls {\"path\":\"/\"})");
        let blocks = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"a b"}]},{"type":"image","source":{"data":"AAAA"}}]}"#;
        assert_eq!(said(blocks), "(result) a b\n(image)");
    }

    #[test]
    fn half_a_character_does_not_hide_the_rest() {
        assert_eq!(
            said(r#"{"role":"user","content":"a\ud83d b"}"#),
            "a\u{fffd} b"
        );
    }
}
