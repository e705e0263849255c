//! What a message says, block by block, in a form between the formats.
//!
//! Texts stay the JSON strings they were: what is not a character (a lone surrogate) goes
//! from format to format unharmed.

use std::borrow::Cow;

use infold_log::Role;

use crate::message::block_is;
use crate::{Json, Kind, Message, quote};

/// A JSON value as bytes: a string with its quotes, an object with its brackets.
pub type Raw<'a> = Cow<'a, str>;

/// One thing that a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block<'a> {
    /// A text.
    Text(Raw<'a>),
    /// Reasoning, and the provider's signature under it.
    Thinking(Raw<'a>, Option<Raw<'a>>),
    /// A tool call: id, name, and the arguments as an object.
    Call(Raw<'a>, Raw<'a>, Raw<'a>),
    /// What a call gave back: its id, what, and whether it failed.
    Result(Raw<'a>, Vec<Block<'a>>, bool),
    /// An image: its type and its base64 data.
    Image(Raw<'a>, Raw<'a>),
    /// An image by its address.
    Link(Raw<'a>),
    /// A block that other formats do not have.
    Other(Raw<'a>),
}

/// A message taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said<'a> {
    /// Who speaks. Results are the user's.
    pub role: Role,
    /// What.
    pub blocks: Vec<Block<'a>>,
}

/// The bytes of a value.
pub fn raw(json: Json<'_>) -> Raw<'_> {
    String::from_utf8_lossy(json.bytes())
}

/// The members of an object, found in one pass: asking for one by one would be a pass each.
pub struct Fields<'a>(Vec<(Json<'a>, Json<'a>)>);

impl<'a> Fields<'a> {
    /// Checks that a text is JSON, and finds its members on the way.
    pub fn parse(text: &'a [u8]) -> Result<Fields<'a>, String> {
        let mut found = Vec::with_capacity(12);
        Json::parse_members(text, |key, value| found.push((key, value)))
            .map_err(|error| error.to_string())?;
        Ok(Fields(found))
    }

    /// The members of a value that is known to be JSON.
    pub fn of(json: Json<'a>) -> Fields<'a> {
        Fields(json.members().collect())
    }

    /// The member of this name. Of duplicates the last one counts.
    pub fn get(&self, name: &str) -> Option<Json<'a>> {
        let mut found = self.0.iter().rev();
        found.find(|(key, _)| key.is(name)).map(|(_, value)| *value)
    }

    /// The bytes of a member if it is a text.
    pub fn string(&self, name: &str) -> Option<Raw<'a>> {
        let value = self.get(name)?;
        (value.kind() == Kind::String).then(|| raw(value))
    }

    /// The bytes of a member if it is a text, else an empty text.
    pub fn or_empty(&self, name: &str) -> Raw<'a> {
        self.string(name).unwrap_or(Cow::Borrowed("\"\""))
    }
}

/// Arguments that are an object as they are, texts that hold one as that, others wrapped.
pub fn arguments<'a>(json: Option<Json<'a>>) -> Raw<'a> {
    let Some(json) = json.filter(|json| !json.is_null()) else {
        return Cow::Borrowed("{}");
    };
    match json.kind() {
        Kind::Object => raw(json),
        Kind::String => {
            let text = json.text().unwrap_or_default();
            let inner = Json::parse(text.as_bytes()).ok();
            match inner.filter(|inner| inner.kind() == Kind::Object && inner.get(WRAPPED).is_none())
            {
                Some(_) => Cow::Owned(text.trim().to_owned()),
                None if text.trim().is_empty() => Cow::Borrowed("{}"),
                None => Cow::Owned(format!("{{\"{WRAPPED}\":{}}}", raw(json))),
            }
        }
        _ => Cow::Owned(format!("{{\"{WRAPPED}\":{}}}", raw(json))),
    }
}

/// Arguments as the text of an object, and wrapped ones as the text they were.
pub fn as_text(arguments: &str) -> String {
    let json = Json::parse(arguments.as_bytes()).ok();
    let wrapped = json.and_then(|json| Fields::of(json).string(WRAPPED).map(Cow::into_owned));
    wrapped.unwrap_or_else(|| quote(arguments))
}

/// What arguments that are no object are put into.
const WRAPPED: &str = "_arguments";

/// The texts of a list of blocks, or a text.
pub fn texts(json: Json<'_>) -> Vec<Block<'_>> {
    match json.kind() {
        Kind::String => vec![Block::Text(raw(json))],
        _ => json.elements().map(block).collect(),
    }
}

impl<'a> Said<'a> {
    /// Takes a message apart.
    pub fn of(message: &Message<'a>) -> Said<'a> {
        let json = Fields::of(message.json());
        let mut blocks = Vec::new();
        if message.role() == Role::Assistant
            && let Some(text) = json
                .string("reasoning_content")
                .filter(|text| text != "\"\"")
        {
            blocks.push(Block::Thinking(text, None));
        }
        if let Some(content) = message.content().filter(|content| !content.is_null()) {
            blocks.extend(texts(content).into_iter().filter(|block| !block.is_blank()));
        }
        blocks.extend(json.string("refusal").map(Block::Text));
        if message.role() == Role::Tool {
            let id = json
                .get("tool_call_id")
                .map(|_| json.or_empty("tool_call_id"));
            let id = id.unwrap_or_else(|| json.or_empty("name"));
            let blocks = vec![Block::Result(id, blocks, false)];
            return Said {
                role: Role::User,
                blocks,
            };
        }
        if message.role() == Role::Assistant {
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
        Said {
            role: message.role(),
            blocks,
        }
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
        b"thinking" => Block::Thinking(json.or_empty("thinking"), json.string("signature")),
        b"tool_use" => {
            let (id, name) = (json.or_empty("id"), json.or_empty("name"));
            Block::Call(id, name, arguments(json.get("input")))
        }
        b"tool_result" => {
            let content = json.get("content").filter(|content| !content.is_null());
            let failed = json.get("is_error").is_some_and(Json::is_true);
            let content = content.map(texts).unwrap_or_default();
            Block::Result(json.or_empty("tool_use_id"), content, failed)
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

impl Block<'_> {
    /// A text without a character in it.
    fn is_blank(&self) -> bool {
        matches!(self, Block::Text(text) if text == "\"\"")
    }

    /// Writes it as an Anthropic block.
    pub fn anthropic(&self, out: &mut String) {
        match self {
            Block::Text(text) => put(out, &[r#"{"type":"text","text":"#, text, "}"]),
            Block::Thinking(text, None) => {
                put(out, &[r#"{"type":"thinking","thinking":"#, text, "}"]);
            }
            Block::Thinking(text, Some(signature)) => {
                let kind = r#"{"type":"thinking","thinking":"#;
                put(out, &[kind, text, r#","signature":"#, signature, "}"]);
            }
            Block::Call(id, name, input) => {
                let kind = r#"{"type":"tool_use","id":"#;
                put(
                    out,
                    &[kind, id, r#","name":"#, name, r#","input":"#, input, "}"],
                );
            }
            Block::Result(id, content, failed) => {
                put(out, &[r#"{"type":"tool_result","tool_use_id":"#, id]);
                out.push_str(r#","content":"#);
                list(content, out, Block::anthropic);
                put(out, &[if *failed { r#","is_error":true}"# } else { "}" }]);
            }
            Block::Image(kind, data) => {
                let start = r#"{"type":"image","source":{"type":"base64","media_type":"#;
                put(out, &[start, kind, r#","data":"#, data, "}}"]);
            }
            Block::Link(url) => {
                put(
                    out,
                    &[
                        r#"{"type":"image","source":{"type":"url","url":"#,
                        url,
                        "}}",
                    ],
                );
            }
            Block::Other(raw) => out.push_str(raw),
        }
    }
}

/// Appends strings.
pub fn put(out: &mut String, parts: &[&str]) {
    parts.iter().for_each(|part| out.push_str(part));
}

/// Appends a JSON array.
pub fn list<T>(items: &[T], out: &mut String, write: impl Fn(&T, &mut String)) {
    out.push('[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write(item, out);
    }
    out.push(']');
}

/// An Anthropic message with these blocks.
pub fn message(role: Role, blocks: &[Block<'_>]) -> Vec<u8> {
    let mut out = format!(r#"{{"role":"{}","content":"#, role.wire_name());
    list(blocks, &mut out, Block::anthropic);
    out.push('}');
    out.into_bytes()
}

/// A made-up id that is the same whenever the same transcript is written.
pub fn id(number: u64) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}

/// The texts of a text or a list of blocks, a line between them.
pub fn plain(json: Json<'_>) -> String {
    let text = |json: Json<'_>| json.text().map(Cow::into_owned);
    match json.kind() {
        Kind::String => text(json).unwrap_or_default(),
        Kind::Object => json.get("text").and_then(text).unwrap_or_default(),
        _ => {
            let texts = json.elements().filter_map(|block| text(block.get("text")?));
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}

/// A message with nothing but its role and its content.
pub fn bare(message: &Message<'_>) -> Vec<u8> {
    let members = || message.json().members();
    let known = |name: Json<'_>| name.is("role") || name.is("content");
    if members().count() == 2 && members().all(|(name, _)| known(name)) {
        return message.bytes().to_vec();
    }
    let content = message.content().map(raw).unwrap_or(Cow::Borrowed("\"\""));
    format!(
        r#"{{"role":"{}","content":{content}}}"#,
        message.role().wire_name()
    )
    .into_bytes()
}
