//! Messages with a role and a content: chat, Anthropic's, Ollama's.

use std::borrow::Cow;

use infold_log::Role;

use super::{Block, Fields, Said, arguments, raw};
use crate::message::block_is;
use crate::{Json, Kind, Message, quote};

/// Takes a message apart that has a content.
pub fn said<'a>(message: &Message<'a>, json: &Fields<'a>) -> Said<'a> {
    let role = message.role();
    let mut blocks = Vec::new();
    if role == Role::Assistant {
        blocks.extend(reasoning(json));
    }
    if let Some(content) = message.content().filter(|content| !content.is_null()) {
        blocks.extend(texts(content).into_iter().filter(|block| !block.is_empty()));
    }
    blocks.extend(json.string("refusal").map(Block::Text));
    let images = json.get("images").into_iter().flat_map(Json::elements);
    blocks.extend(images.filter_map(bare_image));
    if role == Role::Tool {
        return result(blocks, json);
    }
    if role == Role::Assistant {
        let calls = json.get("tool_calls").into_iter().flat_map(Json::elements);
        blocks.extend(calls.map(call));
        blocks.extend(
            json.get("function_call")
                .filter(|call| !call.is_null())
                .map(|call| {
                    let call = Fields::of(call);
                    let name = call.or_empty("name");
                    Block::Call(name.clone(), name, arguments(call.get("arguments")))
                }),
        );
    }
    Said { role, blocks }
}

/// A message that is a result. It names its call by id, or the tool.
fn result<'a>(content: Vec<Block<'a>>, json: &Fields<'a>) -> Said<'a> {
    let name = json.string("tool_name").or_else(|| json.string("name"));
    let name = name.unwrap_or(Cow::Borrowed("\"\""));
    let id = match json.get("tool_call_id") {
        Some(_) => json.or_empty("tool_call_id"),
        // Functions, before there were tools, had nothing but their names.
        None if json.get("role").is_some_and(|role| role.is("function")) => name.clone(),
        None => Cow::Borrowed("\"\""),
    };
    let failed = false;
    Said {
        role: Role::User,
        blocks: vec![Block::Result {
            id,
            name,
            content,
            failed,
        }],
    }
}

/// Reasoning beside the content, by the names that providers have for it.
fn reasoning<'a>(json: &Fields<'a>) -> Option<Block<'a>> {
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
    text.map(|text| Block::Thinking(text, None))
}

/// An image of which there is nothing but the data; its type shows in how it begins.
fn bare_image(data: Json<'_>) -> Option<Block<'_>> {
    let data = (data.kind() == Kind::String).then(|| raw(data))?;
    let known = [
        ("\"/9j/", "\"image/jpeg\""),
        ("\"R0lG", "\"image/gif\""),
        ("\"UklG", "\"image/webp\""),
    ];
    let found = known.iter().find(|(start, _)| data.starts_with(start));
    let kind = found.map_or("\"image/png\"", |(_, kind)| kind);
    Some(Block::Image(kind.into(), data))
}

/// The texts of a list of blocks, or a text.
pub fn texts(json: Json<'_>) -> Vec<Block<'_>> {
    match json.kind() {
        Kind::String => vec![Block::Text(raw(json))],
        _ => json.elements().map(block).collect(),
    }
}

fn call(json: Json<'_>) -> Block<'_> {
    let whole = json;
    let json = Fields::of(json);
    let inner = json
        .get("function")
        .or_else(|| json.get("custom"))
        .unwrap_or(whole);
    let inner = Fields::of(inner);
    let given = inner.get("arguments").or_else(|| inner.get("input"));
    Block::Call(
        json.or_empty("id"),
        inner.or_empty("name"),
        arguments(given),
    )
}

/// Reads a block of a chat or an Anthropic message.
pub fn block(whole: Json<'_>) -> Block<'_> {
    let json = Fields::of(whole);
    let kind = json.get("type").map(Json::name).unwrap_or_default();
    match &*kind {
        b"text" | b"input_text" | b"output_text" if json.get("text").is_some() => {
            Block::Text(json.or_empty("text"))
        }
        b"refusal" if json.get("refusal").is_some() => Block::Text(json.or_empty("refusal")),
        b"thinking" => Block::Thinking(json.or_empty("thinking"), json.string("signature")),
        b"tool_use" => {
            let (id, name) = (json.or_empty("id"), json.or_empty("name"));
            Block::Call(id, name, arguments(json.get("input")))
        }
        b"tool_result" => {
            let content = json.get("content").filter(|content| !content.is_null());
            let failed = json.get("is_error").is_some_and(Json::is_true);
            Block::Result {
                id: json.or_empty("tool_use_id"),
                name: Cow::Borrowed("\"\""),
                content: content.map(texts).unwrap_or_default(),
                failed,
            }
        }
        b"image" => image(&json).unwrap_or_else(|| Block::Other(raw(whole))),
        b"image_url" => {
            let inner = json.get("image_url");
            let url = inner.map(|inner| inner.get("url").unwrap_or(inner));
            url.and_then(link)
                .unwrap_or_else(|| Block::Other(raw(whole)))
        }
        b"input_image" => {
            let url = json.get("image_url").and_then(link);
            url.unwrap_or_else(|| Block::Other(raw(whole)))
        }
        _ => Block::Other(raw(whole)),
    }
}

/// Anthropic's image block, and pi's.
fn image<'a>(json: &Fields<'a>) -> Option<Block<'a>> {
    let Some(source) = json.get("source") else {
        return Some(Block::Image(json.string("mimeType")?, json.string("data")?));
    };
    let is_url = block_is(source, "url");
    let source = Fields::of(source);
    if is_url {
        return Some(Block::Link(source.string("url")?));
    }
    Some(Block::Image(
        source.string("media_type")?,
        source.string("data")?,
    ))
}

/// An address, which may hold the image itself.
fn link(url: Json<'_>) -> Option<Block<'_>> {
    let text = url.text()?;
    let inner = text
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(";base64,"));
    Some(match inner {
        Some((kind, data)) => Block::Image(quote(kind).into(), quote(data).into()),
        None => Block::Link(raw(url)),
    })
}
