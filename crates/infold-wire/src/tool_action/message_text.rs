//! Collects all text of a message, to be searched.

use infold_log::Role;

use crate::message::ContentItem;
use crate::{Json, JsonKind, Message, typed_text};

/// All searchable text of a message: everything except reasoning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageText {
    /// The message's plain text.
    pub text: String,
    /// The values of the arguments of calls, one a line, without their keys.
    pub arguments: String,
    /// Results of tools, each with the index of its part.
    pub results: Vec<(u32, String)>,
}

impl MessageText {
    /// Reads a message.
    pub fn of(message: &Message<'_>) -> MessageText {
        let mut out = MessageText::default();
        let mut is_headed = false;
        for (part, piece) in message.content_items() {
            match piece {
                ContentItem::Text(text) => {
                    is_headed = out.add_text(message.role(), part, text, is_headed);
                }
                ContentItem::Call { given, .. } => out.add_arguments(given),
                ContentItem::Result(result) => {
                    let text = result.content.map(result_text).unwrap_or_default();
                    out.results.push((part, text));
                }
                ContentItem::Image => {}
            }
        }
        out
    }

    /// Adds a text, in which some agents give results. Returns whether it is only the heading of a result.
    fn add_text(&mut self, role: Role, part: u32, text: Json<'_>, is_headed: bool) -> bool {
        let Some(text) = text.text() else {
            return false;
        };
        let output = if is_headed {
            Some(&*text)
        } else {
            typed_text::tool_output(&text).filter(|_| role == Role::User)
        };
        match output {
            Some("") => return true,
            Some(output) => self.results.push((part, output.to_owned())),
            None => push_line(&text, &mut self.text),
        }
        false
    }

    fn add_arguments(&mut self, arguments: Option<Json<'_>>) {
        let Some(arguments) = arguments else { return };
        // OpenAI's arguments are JSON inside a text.
        let text = arguments.text();
        match text.as_ref().map(|text| Json::parse(text.as_bytes())) {
            Some(Ok(parsed)) => push_values(parsed, &mut self.arguments),
            _ => push_values(arguments, &mut self.arguments),
        }
    }
}

/// Returns the text of a result.
fn result_text(content: Json<'_>) -> String {
    let mut out = String::new();
    match content.kind() {
        JsonKind::String => out.push_str(&content.text().unwrap_or_default()),
        JsonKind::Array => {
            for block in content.elements() {
                if let Some(text) = block.get("text").unwrap_or(block).text() {
                    push_line(&text, &mut out);
                }
            }
        }
        _ => push_values(content, &mut out),
    }
    out
}

/// Appends all texts and numbers in a value, one a line.
fn push_values(value: Json<'_>, out: &mut String) {
    match value.kind() {
        JsonKind::String => push_line(&value.text().unwrap_or_default(), out),
        JsonKind::Number => push_line(&String::from_utf8_lossy(value.bytes()), out),
        JsonKind::Object => value
            .members()
            .for_each(|(_, value)| push_values(value, out)),
        JsonKind::Array => value.elements().for_each(|value| push_values(value, out)),
        JsonKind::Bool | JsonKind::Null => {}
    }
}

fn push_line(text: &str, out: &mut String) {
    if !out.is_empty() {
        out.push('\n');
    }
    out.push_str(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> MessageText {
        MessageText::of(&Message::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn what_is_said_called_and_given_is_kept_apart() {
        let chat = of(
            r#"{"role":"assistant","content":"look","tool_calls":[{"id":"a","function":{"name":"edit","arguments":"{\"path\":\"a.rs\",\"edits\":[{\"line\":7,\"text\":\"x\\ny_z\"}]}"}}]}"#,
        );
        assert_eq!(
            (&*chat.text, &*chat.arguments),
            ("look", "a.rs\n7\nx\ny_z"),
            "values without keys, decoded"
        );
        let blocks = of(
            r#"{"role":"user","content":[{"type":"text","text":"see"},{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"a b"}]},{"type":"thinking","thinking":"hm"}]}"#,
        );
        assert_eq!(
            (&*blocks.text, blocks.results),
            ("see", vec![(1, "a b".to_owned())])
        );
        let tool = of(r#"{"role":"tool","tool_call_id":"a","content":"42"}"#);
        assert_eq!(tool.results, [(0, "42".to_owned())]);
        let answer = of(r#"{"role":"user","content":"[read_file for 'a.rs'] Result:\nfn main"}"#);
        assert_eq!((&*answer.text, answer.results.len()), ("", 1));
        let headed = of(
            r#"{"role":"user","content":[{"type":"text","text":"[read_file for 'a.rs'] Result:"},{"type":"text","text":"fn main"},{"type":"text","text":"go on"}]}"#,
        );
        assert_eq!(
            (&*headed.text, headed.results),
            ("go on", vec![(1, "fn main".to_owned())])
        );
        let shell = of(
            r#"{"role":"user","content":"a.rs\n(Open file: n/a)\n(Current directory: /a)\nbash-$"}"#,
        );
        assert_eq!(
            (&*shell.text, shell.results),
            ("", vec![(0, "a.rs".to_owned())])
        );
    }
}
