//! Entries of chat messages.

use super::responses::data_url;
use super::{Block, as_text, put};

/// Writes a call as an entry of `tool_calls`.
pub fn put_call(id: &str, name: &str, input: &str, out: &mut String) {
    let kind = r#","type":"function","function":{"name":"#;
    let text = as_text(input);
    put(out, &[r#"{"id":"#, id, kind, name]);
    put(out, &[r#","arguments":"#, &text, "}}"]);
}

/// Writes a block as a part of a content.
pub fn put_part(block: &Block<'_>, out: &mut String) {
    let start = r#"{"type":"image_url","image_url":{"url":"#;
    match block {
        Block::Image(kind, data) => put(out, &[start, &data_url(kind, data), "}}"]),
        Block::Link(url) => put(out, &[start, url, "}}"]),
        other => other.anthropic(out),
    }
}

/// The texts among some blocks as one JSON string, a line break between them.
pub fn joined(blocks: &[Block<'_>]) -> String {
    let mut text = String::from("\"");
    for block in blocks {
        if let Block::Text(more) = block {
            if text.len() > 1 {
                text.push_str("\\n");
            }
            text.push_str(&more[1..more.len() - 1]);
        }
    }
    text.push('"');
    text
}
