//! Writes entries of chat messages.

use super::responses::data_url;
use super::{NeutralBlock, arguments_string, push_all};

/// Writes a call as an entry of `tool_calls`.
pub fn put_call(id: &str, name: &str, input: &str, out: &mut String) {
    let kind = r#","type":"function","function":{"name":"#;
    let text = arguments_string(input);
    push_all(out, &[r#"{"id":"#, id, kind, name]);
    push_all(out, &[r#","arguments":"#, &text, "}}"]);
}

/// Writes a block as a part of a content.
pub fn put_part(block: &NeutralBlock<'_>, out: &mut String) {
    let start = r#"{"type":"image_url","image_url":{"url":"#;
    match block {
        NeutralBlock::Image(kind, data) => push_all(out, &[start, &data_url(kind, data), "}}"]),
        NeutralBlock::Link(url) => push_all(out, &[start, url, "}}"]),
        other => other.write_anthropic(out),
    }
}

/// Joins the texts among some blocks to one JSON string, with line breaks between them.
pub fn join_texts(blocks: &[NeutralBlock<'_>]) -> String {
    let mut text = String::from("\"");
    for block in blocks {
        if let NeutralBlock::Text(more) = block {
            if text.len() > 1 {
                text.push_str("\\n");
            }
            text.push_str(&more[1..more.len() - 1]);
        }
    }
    text.push('"');
    text
}
