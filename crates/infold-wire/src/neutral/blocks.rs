//! Reads messages with a role and a content: chat, Anthropic's, Ollama's.

use std::borrow::Cow;

use infold_log::Role;

use super::{NeutralBlock, NeutralMessage, ObjectMembers, arguments_object, raw_json};
use crate::message::block_is;
use crate::{Json, JsonKind, Message, quote};

/// Reads a message that has a content.
pub fn read_message<'a>(message: &Message<'a>, json: &ObjectMembers<'a>) -> NeutralMessage<'a> {
    let role = message.role();
    let mut blocks = Vec::new();
    if role == Role::Assistant {
        blocks.extend(read_reasoning(json));
    }
    if let Some(content) = message.content().filter(|content| !content.is_null()) {
        let content = read_content(content).into_iter();
        blocks.extend(content.filter(|block| !block.is_empty()));
    }
    blocks.extend(json.string("refusal").map(NeutralBlock::Text));
    let images = json.get("images").into_iter().flat_map(Json::elements);
    blocks.extend(images.filter_map(read_bare_image));
    if role == Role::Tool {
        return NeutralMessage {
            role: Role::User,
            blocks: vec![read_result(blocks, json)],
        };
    }
    if role == Role::Assistant {
        let calls = json.get("tool_calls").into_iter().flat_map(Json::elements);
        blocks.extend(calls.map(read_call));
        let call = json.get("function_call").filter(|call| !call.is_null());
        blocks.extend(call.map(|call| {
            let call = ObjectMembers::of(call);
            let name = call.or_empty("name");
            NeutralBlock::Call(name.clone(), name, arguments_object(call.get("arguments")))
        }));
    }
    NeutralMessage { role, blocks }
}

/// Reads the result of a tool message, which names its call by id, or the tool.
fn read_result<'a>(content: Vec<NeutralBlock<'a>>, json: &ObjectMembers<'a>) -> NeutralBlock<'a> {
    let name = json.string("tool_name").or_else(|| json.string("name"));
    let name = name.unwrap_or(Cow::Borrowed("\"\""));
    let id = match json.get("tool_call_id") {
        Some(_) => json.or_empty("tool_call_id"),
        // Functions, the predecessors of tools, have no ids.
        None if json.get("role").is_some_and(|role| role.is("function")) => name.clone(),
        None => Cow::Borrowed("\"\""),
    };
    let failed = false;
    NeutralBlock::Result {
        id,
        name,
        content,
        failed,
    }
}

/// Reads reasoning beside the content, by the names that providers have for it.
fn read_reasoning<'a>(json: &ObjectMembers<'a>) -> Option<NeutralBlock<'a>> {
    let names = ["reasoning_content", "reasoning", "thinking"];
    let mut texts = names.into_iter().filter_map(|name| json.string(name));
    let text = texts.find(|text| text != "\"\"").or_else(|| {
        let mut all = Vec::new();
        for detail in json.get("reasoning_details")?.elements() {
            let [text, summary] = detail.pick(["text", "summary"]);
            all.extend(text.or(summary).and_then(Json::text));
        }
        Some(Cow::Owned(quote(&all.join("\n"))))
    });
    text.map(|text| NeutralBlock::Thinking(text, None))
}

/// Reads an image that has only its data; the first bytes determine the type.
fn read_bare_image(data: Json<'_>) -> Option<NeutralBlock<'_>> {
    let data = (data.kind() == JsonKind::String).then(|| raw_json(data))?;
    let known = [
        ("\"/9j/", "\"image/jpeg\""),
        ("\"R0lG", "\"image/gif\""),
        ("\"UklG", "\"image/webp\""),
    ];
    let found = known.iter().find(|(start, _)| data.starts_with(start));
    let kind = found.map_or("\"image/png\"", |(_, kind)| kind);
    Some(NeutralBlock::Image(kind.into(), data))
}

/// Reads a content: a text, or a list of blocks.
pub fn read_content(json: Json<'_>) -> Vec<NeutralBlock<'_>> {
    match json.kind() {
        JsonKind::String => vec![NeutralBlock::Text(raw_json(json))],
        _ => json.elements().map(read_block).collect(),
    }
}

fn read_call(whole: Json<'_>) -> NeutralBlock<'_> {
    let json = ObjectMembers::of(whole);
    let inner = json.get("function").or_else(|| json.get("custom"));
    let inner = ObjectMembers::of(inner.unwrap_or(whole));
    let given = inner.get("arguments").or_else(|| inner.get("input"));
    NeutralBlock::Call(
        json.or_empty("id"),
        inner.or_empty("name"),
        arguments_object(given),
    )
}

/// Reads a block of a chat or an Anthropic message.
pub fn read_block(whole: Json<'_>) -> NeutralBlock<'_> {
    read_known_block(&ObjectMembers::of(whole))
        .unwrap_or_else(|| NeutralBlock::Other(raw_json(whole)))
}

fn read_known_block<'a>(json: &ObjectMembers<'a>) -> Option<NeutralBlock<'a>> {
    let kind = json.get("type").map(Json::name).unwrap_or_default();
    Some(match &*kind {
        b"text" | b"input_text" | b"output_text" if json.get("text").is_some() => {
            NeutralBlock::Text(json.or_empty("text"))
        }
        b"refusal" if json.get("refusal").is_some() => NeutralBlock::Text(json.or_empty("refusal")),
        b"thinking" => NeutralBlock::Thinking(json.or_empty("thinking"), json.string("signature")),
        b"tool_use" => {
            let (id, name) = (json.or_empty("id"), json.or_empty("name"));
            NeutralBlock::Call(id, name, arguments_object(json.get("input")))
        }
        b"tool_result" => {
            let content = json.get("content").filter(|content| !content.is_null());
            let failed = json.get("is_error").is_some_and(Json::is_true);
            NeutralBlock::Result {
                id: json.or_empty("tool_use_id"),
                name: Cow::Borrowed("\"\""),
                content: content.map(read_content).unwrap_or_default(),
                failed,
            }
        }
        b"image" => read_image(json)?,
        b"image_url" => {
            let inner = json.get("image_url")?;
            read_image_url(inner.get("url").unwrap_or(inner))?
        }
        b"input_image" => read_image_url(json.get("image_url")?)?,
        _ => return None,
    })
}

fn read_image<'a>(json: &ObjectMembers<'a>) -> Option<NeutralBlock<'a>> {
    let Some(source) = json.get("source") else {
        return Some(NeutralBlock::Image(
            json.string("mimeType")?,
            json.string("data")?,
        ));
    };
    let is_url = block_is(source, "url");
    let source = ObjectMembers::of(source);
    if is_url {
        return Some(NeutralBlock::Link(source.string("url")?));
    }
    Some(NeutralBlock::Image(
        source.string("media_type")?,
        source.string("data")?,
    ))
}

/// Reads the address of an image, which may hold the image itself.
fn read_image_url(url: Json<'_>) -> Option<NeutralBlock<'_>> {
    let text = url.text()?;
    let inner = text
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(";base64,"));
    Some(match inner {
        Some((kind, data)) => NeutralBlock::Image(quote(kind).into(), quote(data).into()),
        None => NeutralBlock::Link(raw_json(url)),
    })
}
