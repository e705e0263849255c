use infold_log::Role;

use crate::message::Piece;
use crate::{Json, Kind, Message, typed};

/// What a message says, whole: for looking for things in it. Reasoning is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// What is said in plain text.
    pub said: String,
    /// The values of the arguments of calls, one a line, without their keys.
    pub called: String,
    /// What tools gave back, by the part of the message that holds it.
    pub given: Vec<(u32, String)>,
}

impl Words {
    /// Reads a message.
    pub fn of(message: &Message<'_>) -> Words {
        let mut words = Words::default();
        let mut is_headed = false;
        for (part, piece) in message.pieces() {
            match piece {
                Piece::Text(said) => {
                    is_headed = words.text(message.role(), part, said, is_headed);
                }
                Piece::Call { given, .. } => words.arguments(given),
                Piece::Result(given) => {
                    let given = given.content.map(inner).unwrap_or_default();
                    words.given.push((part, given));
                }
                Piece::Image => {}
            }
        }
        words
    }

    /// Some agents answer calls in plain text. Returns whether the answer follows.
    fn text(&mut self, role: Role, part: u32, text: Json<'_>, is_headed: bool) -> bool {
        let Some(text) = text.text() else {
            return false;
        };
        let output = match is_headed {
            true => Some(&*text),
            false => typed::output(&text).filter(|_| role == Role::User),
        };
        match output {
            Some("") => return true,
            Some(output) => self.given.push((part, output.to_owned())),
            None => line(&text, &mut self.said),
        }
        false
    }

    fn arguments(&mut self, arguments: Option<Json<'_>>) {
        let Some(arguments) = arguments else { return };
        // OpenAI's arguments are JSON inside a text.
        let text = arguments.text();
        match text.as_ref().map(|text| Json::parse(text.as_bytes())) {
            Some(Ok(parsed)) => values(parsed, &mut self.called),
            _ => values(arguments, &mut self.called),
        }
    }
}

/// What a result says.
fn inner(content: Json<'_>) -> String {
    let mut out = String::new();
    match content.kind() {
        Kind::String => out.push_str(&content.text().unwrap_or_default()),
        Kind::Array => {
            for block in content.elements() {
                if let Some(text) = block.get("text").unwrap_or(block).text() {
                    line(&text, &mut out);
                }
            }
        }
        _ => values(content, &mut out),
    }
    out
}

/// All texts and numbers in a value, one a line.
fn values(value: Json<'_>, out: &mut String) {
    match value.kind() {
        Kind::String => line(&value.text().unwrap_or_default(), out),
        Kind::Number => line(&String::from_utf8_lossy(value.bytes()), out),
        Kind::Object => value.members().for_each(|(_, value)| values(value, out)),
        Kind::Array => value.elements().for_each(|value| values(value, out)),
        Kind::Bool | Kind::Null => {}
    }
}

fn line(text: &str, out: &mut String) {
    if !out.is_empty() {
        out.push('\n');
    }
    out.push_str(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Words {
        Words::of(&Message::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn what_is_said_called_and_given_is_kept_apart() {
        let chat = of(
            r#"{"role":"assistant","content":"look","tool_calls":[{"id":"a","function":{"name":"edit","arguments":"{\"path\":\"a.rs\",\"edits\":[{\"line\":7,\"text\":\"x\\ny_z\"}]}"}}]}"#,
        );
        assert_eq!(
            (&*chat.said, &*chat.called),
            ("look", "a.rs\n7\nx\ny_z"),
            "values without keys, decoded"
        );
        let blocks = of(
            r#"{"role":"user","content":[{"type":"text","text":"see"},{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"a b"}]},{"type":"thinking","thinking":"hm"}]}"#,
        );
        assert_eq!(
            (&*blocks.said, blocks.given),
            ("see", vec![(1, "a b".to_owned())])
        );
        let tool = of(r#"{"role":"tool","tool_call_id":"a","content":"42"}"#);
        assert_eq!(tool.given, [(0, "42".to_owned())]);
        let answer = of(r#"{"role":"user","content":"[read_file for 'a.rs'] Result:\nfn main"}"#);
        assert_eq!((&*answer.said, answer.given.len()), ("", 1));
        let headed = of(
            r#"{"role":"user","content":[{"type":"text","text":"[read_file for 'a.rs'] Result:"},{"type":"text","text":"fn main"},{"type":"text","text":"go on"}]}"#,
        );
        assert_eq!(
            (&*headed.said, headed.given),
            ("go on", vec![(1, "fn main".to_owned())])
        );
        let shell = of(
            r#"{"role":"user","content":"a.rs\n(Open file: n/a)\n(Current directory: /a)\nbash-$"}"#,
        );
        assert_eq!(
            (&*shell.said, shell.given),
            ("", vec![(0, "a.rs".to_owned())])
        );
    }
}
