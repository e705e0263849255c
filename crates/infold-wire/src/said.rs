//! What a message says, block by block, in a form between the formats.
//!
//! Texts stay the JSON strings they were: what is not a character (a lone surrogate) goes
//! from format to format unharmed.

mod blocks;
pub mod chat;
pub mod gemini;
pub mod responses;
mod round;

use std::borrow::Cow;

use infold_log::Role;

use crate::{Json, Kind, Message, quote};

pub use blocks::{block, texts};
pub use round::Round;

/// A JSON value as bytes: a string with its quotes, an object with its brackets.
pub type Raw<'a> = Cow<'a, str>;

/// One thing that a message says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Block<'a> {
    /// A text.
    Text(Raw<'a>),
    /// Reasoning, and the provider's signature under it.
    Thinking(Raw<'a>, Option<Raw<'a>>),
    /// A tool call: id (an empty text if it has none), name, and the arguments as an object.
    Call(Raw<'a>, Raw<'a>, Raw<'a>),
    /// What a call gave back.
    Result {
        /// The id of the call; an empty text if it is not said.
        id: Raw<'a>,
        /// The name of the tool; an empty text if it is not said.
        name: Raw<'a>,
        /// What it gave back.
        content: Vec<Block<'a>>,
        /// Whether it failed.
        failed: bool,
    },
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
    // Parsing has checked it; the lossy way alone takes its time over each character.
    match std::str::from_utf8(json.bytes()) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(json.bytes()),
    }
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

    /// All members.
    pub fn members(&self) -> impl Iterator<Item = (Json<'a>, Json<'a>)> {
        self.0.iter().copied()
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
            let text = escaped(json);
            let inner = Json::parse(text.as_bytes()).ok();
            match inner.filter(|inner| inner.kind() == Kind::Object && wrapped(*inner).is_none()) {
                Some(_) => Cow::Owned(text.trim().to_owned()),
                None if text.trim().is_empty() => Cow::Borrowed("{}"),
                None => Cow::Owned(format!("{{\"{WRAPPED}\":{}}}", raw(json))),
            }
        }
        _ => Cow::Owned(format!("{{\"{WRAPPED}\":{}}}", raw(json))),
    }
}

/// The text of a string that holds JSON: half a character stays the escape it is there.
fn escaped(json: Json<'_>) -> Cow<'_, str> {
    let text = json.text().unwrap_or_default();
    if !text.contains(char::REPLACEMENT_CHARACTER) {
        return text;
    }
    let mut whole = String::with_capacity(text.len());
    for unit in char::decode_utf16(json.utf16().unwrap_or_default()) {
        match unit {
            Ok(char) => whole.push(char),
            Err(half) => whole.push_str(&format!("\\u{:04x}", half.unpaired_surrogate())),
        }
    }
    Cow::Owned(whole)
}

/// Arguments as the text of an object, and wrapped ones as the text they were.
pub fn as_text(arguments: &str) -> String {
    let json = Json::parse(arguments.as_bytes()).ok();
    match json.and_then(wrapped) {
        Some(inner) if inner.kind() == Kind::String => raw(inner).into_owned(),
        Some(inner) => quote(&raw(inner)),
        None => quote(arguments),
    }
}

/// What arguments that are no object are put into.
const WRAPPED: &str = "_arguments";

/// What was put into an object, if nothing else is in it.
fn wrapped(json: Json<'_>) -> Option<Json<'_>> {
    let mut members = json.members();
    match (members.next(), members.next()) {
        (Some((name, value)), None) if name.is(WRAPPED) => Some(value),
        _ => None,
    }
}

impl<'a> Said<'a> {
    /// Takes a message apart, whatever its form.
    pub fn of(message: &Message<'a>) -> Said<'a> {
        let json = Fields::of(message.json());
        if let Some(parts) = json.get("parts") {
            return Said {
                role: message.role(),
                blocks: gemini::parts(parts),
            };
        }
        match responses::item(message.json(), &json) {
            Some(blocks) => Said {
                // Results are the user's.
                role: match message.role() {
                    Role::Tool => Role::User,
                    role => role,
                },
                blocks,
            },
            None => blocks::said(message, &json),
        }
    }
}

impl Block<'_> {
    /// The same, independent of where it was read.
    pub fn into_owned(self) -> Block<'static> {
        let own = |raw: Raw<'_>| Cow::Owned(raw.into_owned());
        match self {
            Block::Text(text) => Block::Text(own(text)),
            Block::Thinking(text, signature) => Block::Thinking(own(text), signature.map(own)),
            Block::Call(id, name, input) => Block::Call(own(id), own(name), own(input)),
            Block::Result {
                id,
                name,
                content,
                failed,
            } => Block::Result {
                id: own(id),
                name: own(name),
                content: content.into_iter().map(Block::into_owned).collect(),
                failed,
            },
            Block::Image(kind, data) => Block::Image(own(kind), own(data)),
            Block::Link(url) => Block::Link(own(url)),
            Block::Other(raw) => Block::Other(own(raw)),
        }
    }

    /// A text with nothing but white space in it.
    pub fn is_blank(&self) -> bool {
        matches!(self, Block::Text(text) if Json::checked(text.as_bytes()).is_blank())
    }

    /// A text without a character in it.
    pub fn is_empty(&self) -> bool {
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
            Block::Result {
                id,
                content,
                failed,
                ..
            } => {
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
