//! Items of the Responses API.

use std::borrow::Cow;

use super::{Block, Fields, Raw, arguments, as_text, list, put, raw, texts};
use crate::{Json, Kind, quote};

/// An item that is no message as blocks; none for a message of whatever kind.
pub fn item<'a>(whole: Json<'a>, json: &Fields<'a>) -> Option<Vec<Block<'a>>> {
    if json.get("role").is_some() {
        return None;
    }
    let kind = json.get("type").and_then(Json::text)?;
    let call = || match json.get("call_id") {
        Some(_) => json.or_empty("call_id"),
        None => json.or_empty("id"),
    };
    let name = || json.or_empty("name");
    Some(vec![match &*kind {
        "message" => return None,
        "function_call" => Block::Call(call(), name(), arguments(json.get("arguments"))),
        "custom_tool_call" => {
            let input = format!("{{\"input\":{}}}", json.or_empty("input"));
            Block::Call(call(), name(), input.into())
        }
        "local_shell_call" => {
            let input = arguments(json.get("action"));
            Block::Call(call(), "\"local_shell\"".into(), input)
        }
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
            let (content, failed) = output(json.get("output"));
            Block::Result {
                id: call(),
                name: Cow::Borrowed("\"\""),
                content,
                failed,
            }
        }
        // Reasoning is encrypted, searches have no result of their own: kept as they are.
        _ => Block::Other(raw(whole)),
    }])
}

/// What a call gave back: a text, a list of parts, or one of them and whether it went well.
fn output(json: Option<Json<'_>>) -> (Vec<Block<'_>>, bool) {
    let Some(json) = json else {
        return (Vec::new(), false);
    };
    let [success, content] = json.pick(["success", "content"]);
    let failed = success.is_some_and(|success| success.bytes() == b"false");
    let output = content.unwrap_or(json);
    let blocks = match output.kind() {
        Kind::String | Kind::Array => texts(output),
        _ => vec![Block::Text(quote(&raw(output)).into())],
    };
    (blocks, failed)
}

/// A call as an item.
pub fn call(id: &str, name: &str, input: &str) -> String {
    let text = as_text(input);
    format!(r#"{{"type":"function_call","name":{name},"arguments":{text},"call_id":{id}}}"#)
}

/// What a call gave back as an item.
pub fn call_output(id: &str, content: &[Block<'_>], failed: bool) -> String {
    let mut item = format!(r#"{{"type":"function_call_output","call_id":{id},"output":"#);
    match content {
        [Block::Text(text)] if !failed => item.push_str(text),
        [] if !failed => item.push_str("\"\""),
        content => {
            let (start, end) = match failed {
                true => (r#"{"success":false,"content":"#, "}"),
                false => ("", ""),
            };
            item.push_str(start);
            list(content, &mut item, |block, out| part(block, "input", out));
            item.push_str(end);
        }
    }
    item.push('}');
    item
}

/// A text of the model's as an item.
///
/// One made of parts would want the id and the status that the service gave it.
pub fn said(text: &str) -> String {
    format!(r#"{{"type":"message","role":"assistant","content":{text}}}"#)
}

/// A message as an item; what it says is the model's `output` or `input` to it.
pub fn message(role: &str, kind: &str, blocks: &[&Block<'_>]) -> String {
    let mut item = format!(r#"{{"type":"message","role":"{role}","content":"#);
    list(blocks, &mut item, |block, out| part(block, kind, out));
    item.push('}');
    item
}

fn part(block: &Block<'_>, kind: &str, out: &mut String) {
    match block {
        Block::Text(text) => put(out, &["{\"type\":\"", kind, "_text\",\"text\":", text, "}"]),
        Block::Image(media, data) => {
            let url = data_url(media, data);
            put(out, &[IMAGE, &url, "}"]);
        }
        Block::Link(url) => put(out, &[IMAGE, url, "}"]),
        other => other.anthropic(out),
    }
}

/// An image up to its address; the official clients take none without its detail.
const IMAGE: &str = r#"{"type":"input_image","detail":"auto","image_url":"#;

/// An image as an address that holds it, a JSON string.
pub fn data_url(media: &Raw<'_>, data: &Raw<'_>) -> String {
    format!(
        "\"data:{};base64,{}",
        &media[1..media.len() - 1],
        &data[1..]
    )
}
