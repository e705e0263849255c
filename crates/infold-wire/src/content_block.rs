//! The content of a message as decoded text: for people who read it, and for the search.

use crate::message::ContentItem;
use crate::{Form, Item, Json, JsonKind, Message};

/// A text, a call, a result or an image of a message, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContentBlock {
    /// A text.
    Text(String),
    /// Reasoning that the provider shows.
    Reasoning(String),
    /// A tool call.
    Call {
        /// The call's id, if it has one.
        id: Option<String>,
        /// The tool.
        name: String,
        /// The arguments: the path of each value and the value, such as `edits[0].line` and `7`.
        arguments: Vec<(String, String)>,
    },
    /// The result of a tool call.
    Result {
        /// The id of the call, if it has one.
        id: Option<String>,
        /// The text of the result.
        text: String,
        /// Whether the result is marked as an error.
        failed: bool,
    },
    /// An image or another file.
    Image,
}

/// The depth to which arguments are read; deeper values are texts of JSON.
const MAX_DEPTH: usize = 8;

impl ContentBlock {
    /// Returns the content of a message, reasoning first.
    pub fn all(message: &Message<'_>) -> Vec<ContentBlock> {
        let mut out = Vec::new();
        push_reasoning(message, &mut out);
        for (_, item) in message.content_items() {
            let id = |id: Option<Json<'_>>| Some(id?.text()?.into_owned());
            out.push(match item {
                ContentItem::Text(text) => {
                    ContentBlock::Text(text.text().unwrap_or_default().into_owned())
                }
                ContentItem::Call {
                    id: of,
                    tool,
                    given,
                } => ContentBlock::Call {
                    id: id(of),
                    name: tool.name(),
                    arguments: given.map(argument_values).unwrap_or_default(),
                },
                ContentItem::Result(result) => ContentBlock::Result {
                    id: id(result.id),
                    text: result.content.map(result_text).unwrap_or_default(),
                    failed: result.failed == Some(true),
                },
                ContentItem::Image => ContentBlock::Image,
            });
        }
        out
    }

    /// Appends the searchable text of the block, after a line break.
    pub fn append_text(&self, out: &mut String) {
        let mut line = |text: &str| {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(text);
        };
        match self {
            ContentBlock::Text(text)
            | ContentBlock::Reasoning(text)
            | ContentBlock::Result { text, .. } => line(text),
            ContentBlock::Call {
                name, arguments, ..
            } => {
                line(name);
                arguments.iter().for_each(|(_, value)| line(value));
            }
            ContentBlock::Image => {}
        }
    }
}

/// Returns all text of a message that can be searched: texts, reasoning, names and arguments of calls, results.
pub fn searchable_text(blocks: &[ContentBlock]) -> String {
    let mut out = String::new();
    blocks.iter().for_each(|block| block.append_text(&mut out));
    out
}

fn push_reasoning(message: &Message<'_>, out: &mut Vec<ContentBlock>) {
    let mut push = |text: Option<Json<'_>>| {
        let text = text.and_then(Json::text).unwrap_or_default();
        if !text.is_empty() {
            out.push(ContentBlock::Reasoning(text.into_owned()));
        }
    };
    let json = message.json();
    match message.form() {
        Form::Content => {
            for part in json.get("parts").into_iter().flat_map(Json::elements) {
                let [thought, text] = part.pick(["thought", "text"]);
                push(text.filter(|_| thought.is_some_and(Json::is_true)));
            }
        }
        Form::Item(Item::Reasoning) => {
            let lists = json.pick(["summary", "content"]);
            for block in lists.into_iter().flatten().flat_map(Json::elements) {
                push(block.get("text"));
            }
        }
        Form::Turn => {
            let names = ["reasoning_content", "reasoning", "thinking"];
            push(json.pick(names).into_iter().flatten().next());
            for block in message.blocks() {
                push(block.get("thinking"));
            }
        }
        Form::Item(_) => {}
    }
}

/// Returns the arguments of a call: the path of each value and the value, such as `edits[0].line` and `7`.
pub fn argument_values(given: Json<'_>) -> Vec<(String, String)> {
    let mut out = Vec::new();
    // OpenAI's arguments are JSON inside a text.
    let text = given.text();
    let parsed = text.as_ref();
    let parsed = parsed.and_then(|text| Json::parse(text.as_bytes()).ok());
    push_values(parsed.unwrap_or(given), String::new(), 0, &mut out);
    out
}

fn push_values(value: Json<'_>, path: String, depth: usize, out: &mut Vec<(String, String)>) {
    match value.kind() {
        JsonKind::Object if depth < MAX_DEPTH => {
            for (key, value) in value.members() {
                let key = key.text().unwrap_or_default();
                let dot = if path.is_empty() { "" } else { "." };
                push_values(value, format!("{path}{dot}{key}"), depth + 1, out);
            }
        }
        JsonKind::Array if depth < MAX_DEPTH => {
            for (at, value) in value.elements().enumerate() {
                push_values(value, format!("{path}[{at}]"), depth + 1, out);
            }
        }
        JsonKind::String => out.push((path, value.text().unwrap_or_default().into_owned())),
        _ => out.push((path, String::from_utf8_lossy(value.bytes()).into_owned())),
    }
}

/// Returns the text of a result: a text, the texts of its blocks, or the values of an object.
fn result_text(content: Json<'_>) -> String {
    let mut lines = Vec::new();
    match content.kind() {
        JsonKind::String => lines.extend(content.text().map(|text| text.into_owned())),
        JsonKind::Array => {
            for block in content.elements() {
                let text = block.get("text").unwrap_or(block).text();
                lines.extend(text.map(|text| text.into_owned()));
            }
        }
        JsonKind::Null => {}
        _ => {
            let mut values = Vec::new();
            push_values(content, String::new(), 0, &mut values);
            lines.extend(values.into_iter().map(|(_, value)| value));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(message: &str) -> String {
        let message = Message::parse(message.as_bytes()).unwrap();
        searchable_text(&ContentBlock::all(&message))
    }

    #[test]
    fn every_wire_gives_its_text() {
        assert_eq!(
            text(
                r#"{"role":"assistant","reasoning_content":"hm","content":"look","tool_calls":[{"id":"a","function":{"name":"edit","arguments":"{\"path\":\"a.rs\",\"edits\":[{\"line\":7,\"text\":\"x\\ny_z\"}]}"}}]}"#
            ),
            "hm\nlook\nedit\na.rs\n7\nx\ny_z"
        );
        assert_eq!(
            text(
                r#"{"role":"assistant","content":[{"type":"thinking","thinking":"why","signature":"s"},{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}}]}"#
            ),
            "why\nBash\nls"
        );
        assert_eq!(
            text(
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"a b"},{"type":"image","source":{"data":"AAAA"}}]},{"type":"text","text":"go on"}]}"#
            ),
            "a b\ngo on",
            "no base64"
        );
        assert_eq!(
            text(
                r#"{"role":"model","parts":[{"text":"hm","thought":true},{"text":"look"},{"functionCall":{"name":"ls","args":{"path":"/"}}}]}"#
            ),
            "hm\nlook\nls\n/"
        );
        assert_eq!(
            text(
                r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"why"}]}"#
            ),
            "why"
        );
        assert_eq!(
            text(r#"{"type":"function_call_output","call_id":"a","output":"42"}"#),
            "42"
        );
    }

    #[test]
    fn arguments_keep_their_paths() {
        let message = r#"{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"edit","input":{"path":"a.rs","edits":[{"line":7}]}}]}"#;
        let message = Message::parse(message.as_bytes()).unwrap();
        let blocks = ContentBlock::all(&message);
        let [ContentBlock::Call { arguments, .. }] = &blocks[..] else {
            panic!("{blocks:?}")
        };
        let arguments: Vec<_> = arguments.iter().map(|(k, v)| (&**k, &**v)).collect();
        assert_eq!(arguments, [("path", "a.rs"), ("edits[0].line", "7")]);
    }
}
