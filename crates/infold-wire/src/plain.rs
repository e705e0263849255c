use infold_log::Role;

use crate::message::{Piece, Tool};
use crate::{Json, Kind, Message};

/// Appends what a message says as plain text: calls with their arguments, results, no images.
pub fn plain(message: &Message<'_>, out: &mut String) {
    let start = out.len();
    for (_, piece) in message.pieces() {
        match piece {
            Piece::Text(said) => text(said, start, out),
            Piece::Call { tool, given, .. } => called(tool, given, start, out),
            Piece::Result(given) => {
                if message.role() != Role::Tool {
                    apart(start, out);
                    out.push_str("(result) ");
                }
                if let Some(content) = given.content {
                    result_text(content, out);
                }
            }
            Piece::Image => {
                apart(start, out);
                out.push_str("(image)");
            }
        }
    }
}

/// Appends only the words of a message: no calls, no results.
pub fn spoken(message: &Message<'_>, out: &mut String) {
    let start = out.len();
    for (_, piece) in message.pieces() {
        match piece {
            Piece::Text(said) => text(said, start, out),
            // A result of a message of its own is all that it says.
            Piece::Result(given) if message.role() == Role::Tool => {
                let said = given.content.into_iter();
                said.for_each(|content| result_text(content, out));
            }
            _ => {}
        }
    }
}

pub(crate) fn result_text(content: Json<'_>, out: &mut String) {
    let start = out.len();
    match content.kind() {
        Kind::String => text(content, start, out),
        Kind::Array => content.elements().for_each(|block| {
            if let Some(said) = block.get("text") {
                text(said, start, out);
            } else if block.get("source").is_some() || block.get("image_url").is_some() {
                apart(start, out);
                out.push_str("(image)");
            }
        }),
        Kind::Null => {}
        _ => out.push_str(&String::from_utf8_lossy(content.bytes())),
    }
}

fn text(value: Json<'_>, start: usize, out: &mut String) {
    if let Some(text) = value.text() {
        apart(start, out);
        out.push_str(&text);
    }
}

fn called(tool: Tool<'_>, arguments: Option<Json<'_>>, start: usize, out: &mut String) {
    apart(start, out);
    out.push_str("(calls ");
    out.push_str(&tool.name());
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
