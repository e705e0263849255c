use infold_log::Role;

use crate::message::block_is;
use crate::{Json, Kind, Message};

/// Returns what a message says in one line, for people, at most `width` characters.
pub fn gist(message: &Message<'_>, width: usize) -> String {
    let mut words = Vec::new();
    for call in calls(message) {
        words.push(format!("calls {call}"));
    }
    let said = said(message);
    if !said.is_empty() {
        words.insert(0, said);
    }
    if words.is_empty() && message.facts().reasoning {
        words.push("(reasoning)".to_owned());
    }
    if words.is_empty() {
        words.push("(empty)".to_owned());
    }
    shorten(&words.join(" · "), width)
}

/// Cuts a text to one line of at most `width` characters.
pub fn shorten(text: &str, width: usize) -> String {
    let mut line = String::new();
    let mut count = 0;
    for word in text.split_whitespace() {
        for c in line
            .chars()
            .next()
            .map(|_| ' ')
            .into_iter()
            .chain(word.chars())
        {
            if count + 1 >= width {
                line.push('…');
                return line;
            }
            // A control character in a terminal does more than show itself.
            line.push(if c.is_control() { '\u{fffd}' } else { c });
            count += 1;
        }
    }
    line
}

fn said(message: &Message<'_>) -> String {
    const ENOUGH: usize = 400;
    let mut out = String::new();
    let Some(content) = message.content() else {
        return out;
    };
    if let Some(text) = content.text() {
        return text.chars().take(ENOUGH).collect();
    }
    for block in content.elements() {
        let text = if block_is(block, "tool_result") {
            block.get("content").map(inner_text).unwrap_or_default()
        } else if let Some(text) = block.get("text").and_then(Json::text) {
            text.into_owned()
        } else if ["image", "image_url"]
            .iter()
            .any(|kind| block_is(block, kind))
        {
            "[image]".to_owned()
        } else {
            continue;
        };
        out.push_str(&text.chars().take(ENOUGH).collect::<String>());
        out.push(' ');
        if out.len() > ENOUGH {
            break;
        }
    }
    out.trim().to_owned()
}

fn inner_text(content: Json<'_>) -> String {
    match content.kind() {
        Kind::String => content.text().unwrap_or_default().into_owned(),
        _ => content
            .elements()
            .filter_map(|block| block.get("text")?.text())
            .collect::<Vec<_>>()
            .join(" "),
    }
}

/// The calls of a message as `name(argument)`, the argument being the first text in it.
fn calls(message: &Message<'_>) -> Vec<String> {
    if message.role() != Role::Assistant {
        return Vec::new();
    }
    let json = message.json();
    let chat = json.get("tool_calls").into_iter().flat_map(Json::elements);
    let chat = chat.filter_map(|call| call.get("function").or_else(|| call.get("custom")));
    let chat = chat.chain(json.get("function_call"));
    let mut out: Vec<String> = chat
        .map(|call| {
            named(
                call.get("name"),
                call.get("arguments").or_else(|| call.get("input")),
            )
        })
        .collect();
    let blocks = message
        .blocks()
        .filter(|block| block_is(*block, "tool_use"));
    out.extend(blocks.map(|block| named(block.get("name"), block.get("input"))));
    out
}

fn named(name: Option<Json<'_>>, arguments: Option<Json<'_>>) -> String {
    let name = name.and_then(Json::text).unwrap_or_default();
    // OpenAI's arguments are JSON inside a text.
    let inner = arguments.and_then(Json::text);
    let parsed = inner
        .as_ref()
        .and_then(|text| Json::parse(text.as_bytes()).ok());
    let first = parsed
        .or(arguments)
        .and_then(first_text)
        .unwrap_or_default();
    format!("{name}({})", shorten(&first, 40))
}

fn first_text(value: Json<'_>) -> Option<String> {
    match value.kind() {
        Kind::String => value.text().map(|text| text.into_owned()),
        Kind::Object => value.members().find_map(|(_, value)| first_text(value)),
        Kind::Array => value.elements().find_map(first_text),
        Kind::Number | Kind::Bool => Some(String::from_utf8_lossy(value.bytes()).into_owned()),
        Kind::Null => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        gist(&Message::parse(text.as_bytes()).unwrap(), 60)
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
    }
}
