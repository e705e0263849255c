//! Messages as plain text.

use infold_log::Role;

use crate::message::{CalledTool, ContentItem};
use crate::neutral::raw_json;
use crate::{Json, JsonKind, Message};

/// Appends a message as plain text: calls with their arguments, results, no images.
pub fn append_plain_text(message: &Message<'_>, out: &mut String) {
    let start = out.len();
    for (_, item) in message.content_items() {
        match item {
            ContentItem::Text(text) => append_text(text, start, out),
            ContentItem::Call { tool, given, .. } => append_call(tool, given, start, out),
            ContentItem::Result(result) => {
                if message.role() != Role::Tool {
                    append_part("(result) ", start, out);
                }
                if let Some(content) = result.content {
                    append_result_text(content, out);
                }
            }
            ContentItem::Image => append_part("(image)", start, out),
        }
    }
}

/// Appends the words of a message, without calls and results.
pub fn append_words(message: &Message<'_>, out: &mut String) {
    let start = out.len();
    for (_, item) in message.content_items() {
        match item {
            ContentItem::Text(text) => append_text(text, start, out),
            // A tool message holds nothing but its result.
            ContentItem::Result(result) if message.role() == Role::Tool => {
                let content = result.content.into_iter();
                content.for_each(|content| append_result_text(content, out));
            }
            _ => {}
        }
    }
}

pub(crate) fn append_result_text(content: Json<'_>, out: &mut String) {
    let start = out.len();
    match content.kind() {
        JsonKind::String => append_text(content, start, out),
        JsonKind::Array => content.elements().for_each(|block| {
            if let Some(text) = block.get("text") {
                append_text(text, start, out);
            } else if block.get("source").is_some() || block.get("image_url").is_some() {
                append_part("(image)", start, out);
            }
        }),
        JsonKind::Null => {}
        _ => out.push_str(&raw_json(content)),
    }
}

fn append_text(value: Json<'_>, start: usize, out: &mut String) {
    if let Some(text) = value.text() {
        append_part(&text, start, out);
    }
}

fn append_call(tool: CalledTool<'_>, arguments: Option<Json<'_>>, start: usize, out: &mut String) {
    append_part("(calls ", start, out);
    out.push_str(&tool.name());
    if let Some(arguments) = arguments {
        out.push(' ');
        out.push_str(&arguments.text().unwrap_or_else(|| raw_json(arguments)));
    }
    out.push(')');
}

/// Appends a text, on a new line if something was appended since `start`.
fn append_part(text: &str, start: usize, out: &mut String) {
    if out.len() > start && !out.ends_with(' ') {
        out.push('\n');
    }
    out.push_str(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        let mut out = String::new();
        append_plain_text(&Message::parse(text.as_bytes()).unwrap(), &mut out);
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
    fn every_form_reads_the_same() {
        let call = r#"(calls ls {"path":"/"})"#;
        assert_eq!(
            said(
                r#"{"role":"model","parts":[{"text":"hm","thought":true},{"text":"look"},{"functionCall":{"name":"ls","args":{"path":"/"}}}]}"#
            ),
            format!("look\n{call}")
        );
        assert_eq!(
            said(
                r#"{"type":"function_call","call_id":"a","name":"ls","arguments":"{\"path\":\"/\"}"}"#
            ),
            call
        );
        assert_eq!(
            said(
                r#"{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"output":"a b"}}},{"functionResponse":{"name":"ls","response":{"n":1}}}]}"#
            ),
            "(result) a b\n(result) {\"n\":1}"
        );
        assert_eq!(
            said(
                r#"{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"a b"},{"type":"input_image","image_url":"data:"}]}"#
            ),
            "a b\n(image)"
        );
        assert_eq!(
            said(
                r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}"#
            ),
            "done"
        );
    }

    #[test]
    fn half_a_character_does_not_hide_the_rest() {
        assert_eq!(
            said(r#"{"role":"user","content":"a\ud83d b"}"#),
            "a\u{fffd} b"
        );
    }
}
