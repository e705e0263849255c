//! On which wires a message can be sent as it is. When in doubt, on none: converting is safe.

use super::{Form, Item, Message};
use crate::json::Cursor;
use crate::{Json, Kind, Wire, Wires};

const CHAT: Wires = Wires::from_bits(1 << Wire::Chat as u8);
const RESPONSES: Wires = Wires::from_bits(1 << Wire::Responses as u8);
const ANTHROPIC: Wires = Wires::from_bits(1 << Wire::Anthropic as u8);
const GEMINI: Wires = Wires::from_bits(1 << Wire::Gemini as u8);
pub(super) const OLLAMA: Wires = Wires::from_bits(1 << Wire::Ollama as u8);
const NONE: Wires = Wires::from_bits(0);
/// Every wire.
pub(super) const ALL: Wires = Wires::from_bits(u8::MAX);

/// The wires that are in both sets.
pub(super) fn both(one: Wires, other: Wires) -> Wires {
    Wires::from_bits(one.bits() & other.bits())
}

const fn any(sets: &[Wires]) -> Wires {
    let (mut bits, mut at) = (0, 0);
    while at < sets.len() {
        bits |= sets[at].bits();
        at += 1;
    }
    Wires::from_bits(bits)
}

/// The wires that take a member of this name beside the others of a message.
pub(super) fn takes(member: &[u8]) -> Wires {
    match member {
        b"role" => ALL,
        b"content" => any(&[CHAT, RESPONSES, ANTHROPIC, OLLAMA]),
        b"parts" => GEMINI,
        b"tool_calls" | b"tool_call_id" => any(&[CHAT, OLLAMA]),
        b"thinking" | b"images" | b"tool_name" => OLLAMA,
        b"type" => NONE,
        // Chat servers read past what they do not know; clients echo what other servers gave them.
        _ => CHAT,
    }
}

impl Message<'_> {
    /// The wires on which it can be sent exactly as it is. One pass, and no text is decoded.
    pub fn wires(&self) -> Wires {
        match self.form {
            Form::Turn => self.turn_wires(),
            Form::Content => self.content_wires(),
            Form::Item(item) => self.item_wires(item),
        }
    }

    fn turn_wires(&self) -> Wires {
        let members = &self.members;
        let role = members.role.map(Json::name).unwrap_or_default();
        let speakers = match &*role {
            b"user" | b"assistant" => ALL,
            b"system" => any(&[CHAT, RESPONSES, OLLAMA]),
            b"developer" => any(&[CHAT, RESPONSES]),
            // Chat pairs results by id, Ollama by name.
            b"tool" => any(&[
                if members.tool_call_id.is_some() {
                    CHAT
                } else {
                    NONE
                },
                if members.name.is_some() { OLLAMA } else { NONE },
            ]),
            _ if members.name.is_some() => CHAT,
            _ => NONE,
        };
        let wires = both(members.takes, speakers);
        // Most messages are plain, and the wires above are all there is to say of them.
        let content = match members.content {
            Some(content) if content.kind() == Kind::Array => blocks_wires(content, &role),
            Some(content) if content.kind() == Kind::String => match content.is_blank() {
                true => any(&[CHAT, RESPONSES, OLLAMA]),
                false => ALL,
            },
            // Beside nothing but reasoning, servers refuse a content that is null.
            _ if self.answers_otherwise() => CHAT,
            _ => NONE,
        };
        both(both(wires, content), self.calls_wires())
    }

    fn calls_wires(&self) -> Wires {
        let mut wires = ALL;
        if let Some(calls) = self.members.tool_calls {
            calls
                .cursor()
                .array(|at| wires = both(wires, call_wires(at)));
        }
        wires
    }

    fn content_wires(&self) -> Wires {
        let role = self.members.role.map(Json::name);
        let speaks = matches!(role.as_deref(), None | Some(b"user" | b"model"));
        let mut count = 0;
        let mut known = true;
        if let Some(parts) = self.members.parts {
            parts.cursor().array(|at| {
                count += 1;
                known &= gemini_takes(at);
            });
        }
        match speaks && known && count > 0 {
            true => both(self.members.takes, GEMINI),
            false => NONE,
        }
    }

    fn item_wires(&self, item: Item) -> Wires {
        let members = &self.members;
        let whole = match item {
            Item::Message => {
                let role = members.role.map(Json::name).unwrap_or_default();
                let blocks = members
                    .content
                    .filter(|content| content.kind() == Kind::Array);
                blocks.is_none_or(|blocks| blocks_wires(blocks, &role).has(Wire::Responses))
            }
            Item::Call => members.call_id.is_some(),
            Item::Output => members.output.is_some(),
            // One that nothing followed is refused, and so is one whose content the service
            // would have to remember: it is asked not to.
            Item::Reasoning => {
                let [status, content] = self.json.pick(["status", "encrypted_content"]);
                content.is_some_and(|content| content.kind() == Kind::String)
                    && !status.is_some_and(|status| status.is("incomplete"))
            }
            Item::Hosted | Item::Approval => true,
        };
        if whole { RESPONSES } else { NONE }
    }
}

/// The wires that take a list of blocks.
fn blocks_wires(content: Json<'_>, role: &[u8]) -> Wires {
    let mut wires = None;
    let mut reasons = false;
    content.cursor().array(|at| {
        let block = block_wires(at, role, &mut reasons);
        wires = Some(both(wires.unwrap_or(ALL), block));
    });
    // Anthropic refuses an output whose last block is reasoning: one that was cut off there.
    match reasons {
        true => NONE,
        false => wires.unwrap_or(NONE),
    }
}

/// The wires that take a block; `reasons` becomes whether it is reasoning.
fn block_wires(at: &mut Cursor<'_>, role: &[u8], reasons: &mut bool) -> Wires {
    let mut block = Block::default();
    at.object(|key, at| block.take(key, at));
    let kind = block.kind.map(Json::name).unwrap_or_default();
    let assistant = role == b"assistant";
    let user = role == b"user";
    *reasons = matches!(&*kind, b"thinking" | b"redacted_thinking");
    match &*kind {
        b"text" => match block.strict && block.text.is_some_and(|text| !text.is_blank()) {
            true => any(&[CHAT, ANTHROPIC]),
            false if block.text.is_some() => CHAT,
            false => NONE,
        },
        b"image_url" | b"input_audio" | b"file" if user => CHAT,
        b"refusal" if assistant => any(&[CHAT, RESPONSES]),
        b"input_text" | b"input_image" | b"input_file" if !assistant => RESPONSES,
        b"output_text" if assistant => RESPONSES,
        b"tool_use" if assistant && block.strict && block.calls => ANTHROPIC,
        b"tool_result" if user && block.strict && block.answers && block.plain => ANTHROPIC,
        b"thinking" if assistant && block.strict && block.signed => ANTHROPIC,
        b"image" | b"document" | b"search_result" | b"container_upload" if user => ANTHROPIC,
        b"redacted_thinking" | b"server_tool_use" | b"mcp_tool_use" if assistant => ANTHROPIC,
        kind if kind.ends_with(b"_tool_result") && assistant => ANTHROPIC,
        _ => NONE,
    }
}

/// What of a block decides who takes it.
struct Block<'a> {
    kind: Option<Json<'a>>,
    text: Option<Json<'a>>,
    /// It has no member that Anthropic does not know.
    strict: bool,
    /// It has an object for arguments.
    calls: bool,
    /// It names the call it answers.
    answers: bool,
    /// Its content, if it has one, is a text or blocks that may stand in a result.
    plain: bool,
    signed: bool,
}

impl Default for Block<'_> {
    fn default() -> Self {
        Block {
            kind: None,
            text: None,
            strict: true,
            calls: false,
            answers: false,
            plain: true,
            signed: false,
        }
    }
}

impl<'a> Block<'a> {
    fn take(&mut self, key: &[u8], at: &mut Cursor<'a>) {
        let value = at.value();
        match key {
            b"type" => self.kind = Some(value),
            b"text" => self.text = Some(value).filter(|text| text.kind() == Kind::String),
            b"input" => self.calls = value.kind() == Kind::Object,
            b"tool_use_id" => self.answers = value.kind() == Kind::String,
            b"signature" => self.signed = value.kind() == Kind::String,
            b"content" => self.plain = stands_in_result(value),
            b"id" | b"name" | b"thinking" | b"is_error" | b"cache_control" | b"citations"
            | b"caller" => {}
            _ => self.strict = false,
        }
    }
}

fn stands_in_result(content: Json<'_>) -> bool {
    let mut known = matches!(content.kind(), Kind::String | Kind::Array);
    content.cursor().array(|at| {
        let mut kind = None;
        at.object(|key, at| match key {
            b"type" => kind = Some(at.value()),
            _ => drop(at.value()),
        });
        let kind = kind.map(Json::name).unwrap_or_default();
        known &= matches!(
            &*kind,
            b"text" | b"image" | b"document" | b"search_result" | b"tool_reference"
        );
    });
    known
}

/// The wires that take an entry of `tool_calls`: they differ in what arguments are.
fn call_wires(at: &mut Cursor<'_>) -> Wires {
    let (mut id, mut kind, mut named) = (false, false, false);
    let (mut text, mut object) = (false, false);
    at.object(|key, at| match key {
        b"id" => id = at.value().kind() == Kind::String,
        b"type" => kind = at.value().kind() == Kind::String,
        b"function" | b"custom" => at.object(|key, at| match key {
            b"name" => named = at.value().kind() == Kind::String,
            b"arguments" | b"input" => {
                let given = at.value().kind();
                (text, object) = (given == Kind::String, given == Kind::Object);
            }
            _ => drop(at.value()),
        }),
        _ => drop(at.value()),
    });
    match named {
        true if text && id && kind => CHAT,
        true if object => OLLAMA,
        _ => NONE,
    }
}

/// Says whether Gemini knows all members of a part; it takes them in both spellings.
fn gemini_takes(at: &mut Cursor<'_>) -> bool {
    let mut some = false;
    let mut known = true;
    at.object(|key, at| {
        at.value();
        some = true;
        known &= matches!(
            key,
            b"text"
                | b"thought"
                | b"thoughtSignature"
                | b"thought_signature"
                | b"functionCall"
                | b"function_call"
                | b"functionResponse"
                | b"function_response"
                | b"inlineData"
                | b"inline_data"
                | b"fileData"
                | b"file_data"
                | b"executableCode"
                | b"executable_code"
                | b"codeExecutionResult"
                | b"code_execution_result"
                | b"videoMetadata"
                | b"video_metadata"
        );
    });
    some && known
}
