use crate::message::Piece;
use crate::{Form, Item, Json, Kind, Message};

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
    for (_, piece) in message.pieces() {
        let text = match piece {
            Piece::Text(said) => said.text().unwrap_or_default().into_owned(),
            Piece::Result(given) => given.content.map(inner_text).unwrap_or_default(),
            Piece::Image => "[image]".to_owned(),
            Piece::Call { .. } => continue,
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
        Kind::Array => content
            .elements()
            .filter_map(|block| block.get("text")?.text())
            .collect::<Vec<_>>()
            .join(" "),
        _ => first_text(content).unwrap_or_default(),
    }
}

/// The calls of a message as `name(argument)`, the argument being the first text in it.
fn calls(message: &Message<'_>) -> Vec<String> {
    let calls = message.pieces().into_iter();
    calls
        .filter_map(|(_, piece)| match piece {
            Piece::Call { tool, given, .. } => Some(named(&tool.name(), given)),
            _ => None,
        })
        .collect()
}

fn named(name: &str, arguments: Option<Json<'_>>) -> String {
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
