//! Gemini's parts.

use std::borrow::Cow;

use super::{Block, Fields, Raw, arguments, put, raw};
use crate::{Json, Kind, quote};

/// What stands for a signature under a call that another model made.
///
/// Newer models refuse calls without one; this one they are told to take.
pub const UNSIGNED: &str = "\"skip_thought_signature_validator\"";

/// Parts as blocks. A signature that is not under reasoning stands as reasoning without words.
pub fn parts(json: Json<'_>) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let list = json.elements();
    let one = (json.kind() != Kind::Array).then_some(json);
    for json in list.chain(one) {
        let block = part(json);
        if !matches!(block, Block::Thinking(..)) {
            let signature = Fields::of(json).string("thoughtSignature");
            let signature = signature.filter(|signature| signature != UNSIGNED);
            blocks.extend(signature.map(|signature| {
                let words = Cow::Borrowed("\"\"");
                Block::Thinking(words, Some(signature))
            }));
        }
        if !block.is_empty() {
            blocks.push(block);
        }
    }
    blocks
}

/// One part as a block.
pub fn part(whole: Json<'_>) -> Block<'_> {
    if whole.kind() == Kind::String {
        return Block::Text(raw(whole));
    }
    let json = Fields::of(whole);
    let either = |one: &str, other: &str| json.get(one).or_else(|| json.get(other));
    if let Some(text) = json.string("text") {
        return match json.get("thought").is_some_and(Json::is_true) {
            true => Block::Thinking(text, json.string("thoughtSignature")),
            false => Block::Text(text),
        };
    }
    if let Some(call) = either("functionCall", "function_call") {
        let call = Fields::of(call);
        let (id, name) = (call.or_empty("id"), call.or_empty("name"));
        return Block::Call(id, name, arguments(call.get("args")));
    }
    if let Some(answer) = either("functionResponse", "function_response") {
        let answer = Fields::of(answer);
        let (mut content, failed) = response(answer.get("response"));
        let more = answer.get("parts").into_iter().flat_map(Json::elements);
        content.extend(more.map(part));
        return Block::Result {
            id: answer.or_empty("id"),
            name: answer.or_empty("name"),
            content,
            failed,
        };
    }
    if let Some(data) = either("inlineData", "inline_data") {
        let data = Fields::of(data);
        if let (Some(kind), Some(data)) = (media(&data), data.string("data"))
            && kind.starts_with("\"image/")
        {
            return Block::Image(kind, data);
        }
    }
    if let Some(file) = either("fileData", "file_data").map(Fields::of) {
        let url = file.string("fileUri").or_else(|| file.string("file_uri"));
        let image = media(&file).is_none_or(|kind| kind.starts_with("\"image/"));
        if let Some(url) = url.filter(|_| image) {
            return Block::Link(url);
        }
    }
    Block::Other(raw(whole))
}

fn media<'a>(json: &Fields<'a>) -> Option<Raw<'a>> {
    json.string("mimeType").or_else(|| json.string("mime_type"))
}

/// What a function gave back: one text if it is that, else its JSON as a text.
pub fn response(json: Option<Json<'_>>) -> (Vec<Block<'_>>, bool) {
    let Some(json) = json else {
        return (Vec::new(), false);
    };
    let mut members = json.members();
    if let (Some((name, value)), None) = (members.next(), members.next())
        && value.kind() == Kind::String
        && ["output", "result", "error"]
            .iter()
            .any(|known| name.is(known))
    {
        return (vec![Block::Text(raw(value))], name.is("error"));
    }
    let text = match json.kind() {
        Kind::String => raw(json),
        _ => quote(&raw(json)).into(),
    };
    (vec![Block::Text(text)], false)
}

/// Writes a text, a call, an image or a link as a part; says whether it is one of them.
pub fn put_part(block: &Block<'_>, out: &mut String) -> bool {
    match block {
        Block::Text(text) => put(out, &["{\"text\":", text, "}"]),
        Block::Call(id, name, args) => {
            let start = "{\"functionCall\":{";
            put(
                out,
                &[start, &own(id), "\"name\":", name, ",\"args\":", args, "}}"],
            );
        }
        Block::Image(kind, data) => {
            let start = "{\"inlineData\":{\"mimeType\":";
            put(out, &[start, kind, ",\"data\":", data, "}}"]);
        }
        Block::Link(url) => put(out, &["{\"fileData\":{\"fileUri\":", url, "}}"]),
        _ => return false,
    }
    true
}

/// Writes a result, which is one text, as a part.
pub fn put_result(id: &str, name: &str, text: &str, failed: bool, out: &mut String) {
    let key = if failed { "error" } else { "output" };
    let start = "{\"functionResponse\":{";
    put(
        out,
        &[start, &own(id), "\"name\":", name, ",\"response\":{\"", key],
    );
    put(out, &["\":", text, "}}}"]);
}

/// The member that is the id, if there is one.
fn own(id: &str) -> String {
    match id {
        "\"\"" => String::new(),
        id => format!("\"id\":{id},"),
    }
}
