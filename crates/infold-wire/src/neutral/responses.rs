//! Reads and writes items of the Responses API.

use super::{
    NeutralBlock, ObjectMembers, RawJson, arguments_object, arguments_string, push_all, push_list,
    raw_json, read_content,
};
use crate::{Json, JsonKind, quote};

/// Reads an item; none if it is a message.
pub fn read_item<'a>(whole: Json<'a>, json: &ObjectMembers<'a>) -> Option<Vec<NeutralBlock<'a>>> {
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
        "function_call" => {
            NeutralBlock::Call(call(), name(), arguments_object(json.get("arguments")))
        }
        "custom_tool_call" => {
            let input = format!("{{\"input\":{}}}", json.or_empty("input"));
            NeutralBlock::Call(call(), name(), input.into())
        }
        "local_shell_call" => {
            let input = arguments_object(json.get("action"));
            NeutralBlock::Call(call(), "\"local_shell\"".into(), input)
        }
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
            let (content, failed) = read_output(json.get("output"));
            NeutralBlock::Result {
                id: call(),
                name: "\"\"".into(),
                content,
                failed,
            }
        }
        // Reasoning is encrypted, and searches have no result of their own.
        _ => NeutralBlock::Other(raw_json(whole)),
    }])
}

/// Reads the output of a call, and whether it failed: a text, a list of parts, or an object with one of them.
fn read_output(json: Option<Json<'_>>) -> (Vec<NeutralBlock<'_>>, bool) {
    let Some(json) = json else {
        return (Vec::new(), false);
    };
    let [success, content] = json.pick(["success", "content"]);
    let failed = success.is_some_and(Json::is_false);
    let output = content.unwrap_or(json);
    let blocks = match output.kind() {
        JsonKind::String | JsonKind::Array => read_content(output),
        _ => vec![NeutralBlock::Text(quote(&raw_json(output)).into())],
    };
    (blocks, failed)
}

/// Writes a call as an item.
pub fn write_call(id: &str, name: &str, input: &str) -> String {
    let text = arguments_string(input);
    format!(r#"{{"type":"function_call","name":{name},"arguments":{text},"call_id":{id}}}"#)
}

/// Writes the result of a call as an item.
pub fn write_call_output(id: &str, content: &[NeutralBlock<'_>], failed: bool) -> String {
    let mut item = format!(r#"{{"type":"function_call_output","call_id":{id},"output":"#);
    match content {
        [NeutralBlock::Text(text)] if !failed => item.push_str(text),
        [] if !failed => item.push_str("\"\""),
        content => {
            if failed {
                item.push_str(r#"{"success":false,"content":"#);
            }
            push_list(content, &mut item, |block, out| {
                write_part(block, "input", out)
            });
            if failed {
                item.push('}');
            }
        }
    }
    item.push('}');
    item
}

/// Writes a text of the model's as an item.
///
/// An item with parts would need the id and the status that the service gave it.
pub fn write_output_text(text: &str) -> String {
    format!(r#"{{"type":"message","role":"assistant","content":{text}}}"#)
}

/// Writes a message as an item; its parts are of the `kind` "output" or "input".
pub fn write_message(role: &str, kind: &str, blocks: &[&NeutralBlock<'_>]) -> String {
    let mut item = format!(r#"{{"type":"message","role":"{role}","content":"#);
    push_list(blocks, &mut item, |block, out| write_part(block, kind, out));
    item.push('}');
    item
}

fn write_part(block: &NeutralBlock<'_>, kind: &str, out: &mut String) {
    match block {
        NeutralBlock::Text(text) => {
            push_all(out, &["{\"type\":\"", kind, "_text\",\"text\":", text, "}"])
        }
        NeutralBlock::Image(media, data) => {
            push_all(out, &[IMAGE_PREFIX, &data_url(media, data), "}"]);
        }
        NeutralBlock::Link(url) => push_all(out, &[IMAGE_PREFIX, url, "}"]),
        other => other.write_anthropic(out),
    }
}

/// An image up to its address; the official clients require `detail`.
const IMAGE_PREFIX: &str = r#"{"type":"input_image","detail":"auto","image_url":"#;

/// Returns the address of an image that holds its data, as a JSON string.
pub fn data_url(media: &RawJson<'_>, data: &RawJson<'_>) -> String {
    format!(
        "\"data:{};base64,{}",
        &media[1..media.len() - 1],
        &data[1..]
    )
}
