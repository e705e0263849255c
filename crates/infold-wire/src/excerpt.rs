//! One-line excerpts of messages, for people.

use crate::message::ContentItem;
use crate::neutral::raw_json;
use crate::{Form, Item, Json, JsonKind, Message};

/// Returns one line of at most `width` characters about a message: its text, its calls, or its type.
pub fn message_excerpt(message: &Message<'_>, width: usize) -> String {
    let mut words = Vec::new();
    let text = leading_text(message);
    if !text.is_empty() {
        words.push(text);
    }
    for (_, item) in message.content_items() {
        if let ContentItem::Call { tool, given, .. } = item {
            words.push(format!("calls {}", format_call(&tool.name(), given)));
        }
    }
    if words.is_empty() && message.facts().reasoning {
        words.push("(reasoning)".to_owned());
    }
    if words.is_empty() {
        let hosted = matches!(message.form(), Form::Item(Item::Hosted | Item::Approval));
        let kind = message.json().get("type").filter(|_| hosted);
        let kind = kind.and_then(Json::text).unwrap_or("empty".into());
        words.push(format!("({kind})"));
    }
    shorten(&words.join(" · "), width)
}

/// Cuts a text to one line of at most `width` characters.
pub fn shorten(text: &str, width: usize) -> String {
    let mut line = String::new();
    let mut count = 0;
    for word in text.split_whitespace() {
        let space = (!line.is_empty()).then_some(' ');
        for c in space.into_iter().chain(word.chars()) {
            if count + 1 >= width {
                line.push('…');
                return line;
            }
            // Control characters would act on a terminal.
            line.push(if c.is_control() { '\u{fffd}' } else { c });
            count += 1;
        }
    }
    line
}

fn leading_text(message: &Message<'_>) -> String {
    const MAX_EXCERPT_CHARS: usize = 400;
    let mut out = String::new();
    for (_, item) in message.content_items() {
        let text = match item {
            ContentItem::Text(text) => text.text().unwrap_or_default().into_owned(),
            ContentItem::Result(result) => result.content.map(result_text).unwrap_or_default(),
            ContentItem::Image => "[image]".to_owned(),
            ContentItem::Call { .. } => continue,
        };
        out.extend(text.chars().take(MAX_EXCERPT_CHARS));
        out.push(' ');
        if out.len() > MAX_EXCERPT_CHARS {
            break;
        }
    }
    out.trim().to_owned()
}

fn result_text(content: Json<'_>) -> String {
    match content.kind() {
        JsonKind::String => content.text().unwrap_or_default().into_owned(),
        JsonKind::Array => {
            let texts = content.elements();
            let texts = texts.filter_map(|block| block.get("text")?.text());
            texts.collect::<Vec<_>>().join(" ")
        }
        _ => first_scalar(content).unwrap_or_default(),
    }
}

/// Formats a call as `name(argument)` with the first text among its arguments.
fn format_call(name: &str, arguments: Option<Json<'_>>) -> String {
    // OpenAI's arguments are JSON inside a text.
    let text = arguments.and_then(Json::text);
    let inner = text.as_ref();
    let inner = inner.and_then(|text| Json::parse(text.as_bytes()).ok());
    let first = inner.or(arguments).and_then(first_scalar);
    format!("{name}({})", shorten(&first.unwrap_or_default(), 40))
}

fn first_scalar(value: Json<'_>) -> Option<String> {
    match value.kind() {
        JsonKind::String => value.text().map(|text| text.into_owned()),
        JsonKind::Object => value.members().find_map(|(_, value)| first_scalar(value)),
        JsonKind::Array => value.elements().find_map(first_scalar),
        JsonKind::Number | JsonKind::Bool => Some(raw_json(value).into_owned()),
        JsonKind::Null => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        message_excerpt(&Message::parse(text.as_bytes()).unwrap(), 60)
    }

    #[test]
    fn a_line_says_what_a_message_does() {
        assert_eq!(of(r#"{"role":"user","content":"fix\n  it"}"#), "fix it");
        assert_eq!(
            of(
                r#"{"role":"assistant","content":"ok","tool_calls":[{"function":{"name":"write","arguments":"{\"path\":\"a/b.rs\",\"text\":\"…\"}"}}]}"#
            ),
            "ok · calls write(a/b.rs)"
        );
        assert_eq!(
            of(
                r#"{"role":"assistant","content":[{"type":"tool_use","name":"Bash","input":{"command":"ls\u001b[31m"}}]}"#
            ),
            "calls Bash(ls\u{fffd}[31m)"
        );
        assert_eq!(of(r#"{"role":"assistant","content":[]}"#), "(empty)");
        assert_eq!(
            of(
                r#"{"role":"model","parts":[{"text":"hm","thought":true},{"functionCall":{"name":"read","args":{"path":"a.rs"}}}]}"#
            ),
            "calls read(a.rs)"
        );
        assert_eq!(
            of(
                r#"{"role":"user","parts":[{"functionResponse":{"name":"read","response":{"output":"fn main"}}},{"inlineData":{"mimeType":"image/png","data":"AA"}}]}"#
            ),
            "fn main [image]"
        );
        assert_eq!(
            of(
                r#"{"type":"local_shell_call","call_id":"a","action":{"type":"exec","command":["ls"]}}"#
            ),
            "calls local_shell(exec)"
        );
        assert_eq!(
            of(r#"{"type":"reasoning","summary":[],"encrypted_content":"x"}"#),
            "(reasoning)"
        );
        assert_eq!(
            of(r#"{"type":"compaction","encrypted_content":"x"}"#),
            "(compaction)"
        );
    }
}
