//! The neutral form of a message, block by block, between one wire and another.
//!
//! Texts stay the JSON strings they were, so lone surrogates survive the conversion.

mod blocks;
pub mod chat;
pub mod gemini;
pub mod responses;
mod call_round;

use std::borrow::Cow;

use infold_log::Role;

use crate::{Json, JsonKind, Message, quote};

pub use blocks::{read_block, read_content};
pub use call_round::CallRound;

/// JSON text: a string with its quotes, an object with its brackets.
pub type RawJson<'a> = Cow<'a, str>;

/// One block of a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NeutralBlock<'a> {
    /// A text.
    Text(RawJson<'a>),
    /// Reasoning, and the provider's signature under it.
    Thinking(RawJson<'a>, Option<RawJson<'a>>),
    /// A tool call: id (an empty text if it has none), name, and the arguments as an object.
    Call(RawJson<'a>, RawJson<'a>, RawJson<'a>),
    /// The result of a call.
    Result {
        /// The id of the call; an empty text if it is missing.
        id: RawJson<'a>,
        /// The name of the tool; an empty text if it is missing.
        name: RawJson<'a>,
        /// The blocks of the result.
        content: Vec<NeutralBlock<'a>>,
        /// Whether the call failed.
        failed: bool,
    },
    /// An image: its type and its base64 data.
    Image(RawJson<'a>, RawJson<'a>),
    /// An image by its address.
    Link(RawJson<'a>),
    /// A block that other formats do not have.
    Other(RawJson<'a>),
}

/// A message in the neutral form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeutralMessage<'a> {
    /// The message's role. Results are the user's.
    pub role: Role,
    /// The message's blocks.
    pub blocks: Vec<NeutralBlock<'a>>,
}

/// Returns the text of a value.
pub fn raw_json(json: Json<'_>) -> RawJson<'_> {
    // `from_utf8` is faster than the lossy conversion, which is never needed.
    match std::str::from_utf8(json.bytes()) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(json.bytes()),
    }
}

/// The members of an object, collected in one pass: each [`Json::get`] would be a pass of its own.
pub struct ObjectMembers<'a>(Vec<(Json<'a>, Json<'a>)>);

impl<'a> ObjectMembers<'a> {
    /// Parses a JSON text.
    pub fn parse(text: &'a [u8]) -> Result<ObjectMembers<'a>, String> {
        let mut found = Vec::with_capacity(12);
        Json::parse_members(text, |key, value| found.push((key, value)))
            .map_err(|error| error.to_string())?;
        Ok(ObjectMembers(found))
    }

    /// Returns the members of a value.
    pub fn of(json: Json<'a>) -> ObjectMembers<'a> {
        ObjectMembers(json.members().collect())
    }

    /// Returns all members.
    pub fn members(&self) -> impl Iterator<Item = (Json<'a>, Json<'a>)> {
        self.0.iter().copied()
    }

    /// Returns the member of this name. Of duplicates the last one counts.
    pub fn get(&self, name: &str) -> Option<Json<'a>> {
        let mut found = self.0.iter().rev();
        found.find(|(key, _)| key.is(name)).map(|(_, value)| *value)
    }

    /// Returns the JSON string of a member that is a text.
    pub fn string(&self, name: &str) -> Option<RawJson<'a>> {
        let value = self.get(name)?;
        (value.kind() == JsonKind::String).then(|| raw_json(value))
    }

    /// Returns the JSON string of a member, an empty one if it is not a text.
    pub fn or_empty(&self, name: &str) -> RawJson<'a> {
        self.string(name).unwrap_or(Cow::Borrowed("\"\""))
    }
}

/// Returns arguments as an object: a text with an object is parsed, any other value is wrapped.
pub fn arguments_object<'a>(json: Option<Json<'a>>) -> RawJson<'a> {
    let Some(json) = json.filter(|json| !json.is_null()) else {
        return Cow::Borrowed("{}");
    };
    match json.kind() {
        JsonKind::Object => raw_json(json),
        JsonKind::String => {
            let text = text_with_surrogates(json);
            let inner = Json::parse(text.as_bytes()).ok();
            match inner.filter(|inner| {
                inner.kind() == JsonKind::Object && unwrap_arguments(*inner).is_none()
            }) {
                Some(_) => Cow::Owned(text.trim().to_owned()),
                None if text.trim().is_empty() => Cow::Borrowed("{}"),
                None => wrap(json),
            }
        }
        _ => wrap(json),
    }
}

/// Returns the text of a string that holds JSON: lone surrogates stay escapes.
fn text_with_surrogates(json: Json<'_>) -> Cow<'_, str> {
    let text = json.text().unwrap_or_default();
    if !text.contains(char::REPLACEMENT_CHARACTER) {
        return text;
    }
    let mut whole = String::with_capacity(text.len());
    json.decode(|decoded| match decoded {
        Ok(chunk) => whole.push_str(chunk),
        Err(surrogate) => whole.push_str(&format!("\\u{surrogate:04x}")),
    });
    Cow::Owned(whole)
}

/// Returns arguments as a JSON string of their object; wrapped ones as the text they were.
pub fn arguments_string(arguments: &str) -> String {
    let json = Json::parse(arguments.as_bytes()).ok();
    match json.and_then(unwrap_arguments) {
        Some(inner) if inner.kind() == JsonKind::String => raw_json(inner).into_owned(),
        Some(inner) => quote(&raw_json(inner)),
        None => quote(arguments),
    }
}

/// The member that holds arguments that are not an object.
const WRAPPER_MEMBER: &str = "_arguments";

fn wrap(json: Json<'_>) -> RawJson<'_> {
    Cow::Owned(format!("{{\"{WRAPPER_MEMBER}\":{}}}", raw_json(json)))
}

/// Returns what arguments hold that were put into an object because they were none.
pub(crate) fn unwrap_arguments(json: Json<'_>) -> Option<Json<'_>> {
    let mut members = json.members();
    match (members.next(), members.next()) {
        (Some((name, value)), None) if name.is(WRAPPER_MEMBER) => Some(value),
        _ => None,
    }
}

impl<'a> NeutralMessage<'a> {
    /// Reads a message of any form.
    pub fn of(message: &Message<'a>) -> NeutralMessage<'a> {
        let json = ObjectMembers::of(message.json());
        let role = message.role();
        if let Some(parts) = json.get("parts") {
            let blocks = gemini::read_parts(parts);
            return NeutralMessage { role, blocks };
        }
        match responses::read_item(message.json(), &json) {
            Some(blocks) => {
                let role = if role == Role::Tool { Role::User } else { role };
                NeutralMessage { role, blocks }
            }
            None => blocks::read_message(message, &json),
        }
    }
}

impl NeutralBlock<'_> {
    /// Copies the borrowed parts.
    pub fn into_owned(self) -> NeutralBlock<'static> {
        let own = |raw: RawJson<'_>| Cow::Owned(raw.into_owned());
        match self {
            NeutralBlock::Text(text) => NeutralBlock::Text(own(text)),
            NeutralBlock::Thinking(text, signature) => {
                NeutralBlock::Thinking(own(text), signature.map(own))
            }
            NeutralBlock::Call(id, name, input) => {
                NeutralBlock::Call(own(id), own(name), own(input))
            }
            NeutralBlock::Result {
                id,
                name,
                content,
                failed,
            } => NeutralBlock::Result {
                id: own(id),
                name: own(name),
                content: content.into_iter().map(NeutralBlock::into_owned).collect(),
                failed,
            },
            NeutralBlock::Image(kind, data) => NeutralBlock::Image(own(kind), own(data)),
            NeutralBlock::Link(url) => NeutralBlock::Link(own(url)),
            NeutralBlock::Other(raw) => NeutralBlock::Other(own(raw)),
        }
    }

    /// Returns whether the block is a text with only white space.
    pub fn is_blank(&self) -> bool {
        matches!(self, NeutralBlock::Text(text) if Json::checked(text.as_bytes()).is_blank())
    }

    /// Returns whether the block is a text without characters.
    pub fn is_empty(&self) -> bool {
        matches!(self, NeutralBlock::Text(text) if text == "\"\"")
    }

    /// Writes it as an Anthropic block.
    pub fn write_anthropic(&self, out: &mut String) {
        match self {
            NeutralBlock::Text(text) => push_all(out, &[r#"{"type":"text","text":"#, text, "}"]),
            NeutralBlock::Thinking(text, signature) => {
                push_all(out, &[r#"{"type":"thinking","thinking":"#, text]);
                if let Some(signature) = signature {
                    push_all(out, &[r#","signature":"#, signature]);
                }
                out.push('}');
            }
            NeutralBlock::Call(id, name, input) => {
                push_all(out, &[r#"{"type":"tool_use","id":"#, id, r#","name":"#]);
                push_all(out, &[name, r#","input":"#, input, "}"]);
            }
            NeutralBlock::Result {
                id,
                content,
                failed,
                ..
            } => {
                push_all(out, &[r#"{"type":"tool_result","tool_use_id":"#, id]);
                out.push_str(r#","content":"#);
                push_list(content, out, NeutralBlock::write_anthropic);
                push_all(out, &[if *failed { r#","is_error":true}"# } else { "}" }]);
            }
            NeutralBlock::Image(kind, data) => {
                let start = r#"{"type":"image","source":{"type":"base64","media_type":"#;
                push_all(out, &[start, kind, r#","data":"#, data, "}}"]);
            }
            NeutralBlock::Link(url) => {
                let start = r#"{"type":"image","source":{"type":"url","url":"#;
                push_all(out, &[start, url, "}}"]);
            }
            NeutralBlock::Other(raw) => out.push_str(raw),
        }
    }
}

/// Appends strings.
pub fn push_all(out: &mut String, parts: &[&str]) {
    parts.iter().for_each(|part| out.push_str(part));
}

/// Appends a JSON array.
pub fn push_list<T>(items: &[T], out: &mut String, write: impl Fn(&T, &mut String)) {
    out.push('[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write(item, out);
    }
    out.push(']');
}

/// Writes an Anthropic message with these blocks.
pub fn anthropic_message(role: Role, blocks: &[NeutralBlock<'_>]) -> Vec<u8> {
    let mut out = format!(r#"{{"role":"{}","content":"#, role.wire_name());
    push_list(blocks, &mut out, NeutralBlock::write_anthropic);
    out.push('}');
    out.into_bytes()
}

/// Makes up an id that is the same whenever the same transcript is written.
pub fn numbered_uuid(number: u64) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}

/// Joins the texts of a text or a list of blocks by line breaks.
pub fn join_texts(json: Json<'_>) -> String {
    let text = |json: Json<'_>| json.text().map(Cow::into_owned);
    match json.kind() {
        JsonKind::String => text(json).unwrap_or_default(),
        JsonKind::Object => json.get("text").and_then(text).unwrap_or_default(),
        _ => {
            let texts = json.elements().filter_map(|block| text(block.get("text")?));
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}

/// Returns a message with nothing but its role and its content.
pub fn bare_message(message: &Message<'_>) -> Vec<u8> {
    let members = || message.json().members();
    let known = |name: Json<'_>| name.is("role") || name.is("content");
    if members().count() == 2 && members().all(|(name, _)| known(name)) {
        return message.bytes().to_vec();
    }
    let content = message
        .content()
        .map(raw_json)
        .unwrap_or(Cow::Borrowed("\"\""));
    format!(
        r#"{{"role":"{}","content":{content}}}"#,
        message.role().wire_name()
    )
    .into_bytes()
}
