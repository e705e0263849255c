//! The wires on which a message can be sent unchanged. In doubt there are none: converting is safe.

use super::{Form, Item, Message};
use crate::json::Cursor;
use crate::{Json, JsonKind, Wire, Wires};

const CHAT: Wires = Wires::from_bits(1 << Wire::Chat as u8);
const RESPONSES: Wires = Wires::from_bits(1 << Wire::Responses as u8);
const ANTHROPIC: Wires = Wires::from_bits(1 << Wire::Anthropic as u8);
const GEMINI: Wires = Wires::from_bits(1 << Wire::Gemini as u8);
pub(super) const OLLAMA: Wires = Wires::from_bits(1 << Wire::Ollama as u8);
const NONE: Wires = Wires::from_bits(0);
pub(super) const ALL: Wires = Wires::from_bits(u8::MAX);

/// Returns the wires that are in both sets.
pub(super) fn intersect(one: Wires, other: Wires) -> Wires {
    Wires::from_bits(one.bits() & other.bits())
}

fn any(sets: &[Wires]) -> Wires {
    Wires::from_bits(sets.iter().fold(0, |bits, set| bits | set.bits()))
}

/// Returns the wires that accept a member of this name in a message.
pub(super) fn accepting_wires(member: &[u8]) -> Wires {
    match member {
        b"role" => ALL,
        b"content" => any(&[CHAT, RESPONSES, ANTHROPIC, OLLAMA]),
        b"parts" => GEMINI,
        b"tool_calls" | b"tool_call_id" => any(&[CHAT, OLLAMA]),
        b"thinking" | b"images" | b"tool_name" => OLLAMA,
        b"type" => NONE,
        // Chat servers ignore members they do not know; clients echo what other servers sent them.
        _ => CHAT,
    }
}

impl Message<'_> {
    /// Returns the wires on which the message can be sent unchanged. One pass, and no text is decoded.
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
        let role_wires = match &*role {
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
        let wires = intersect(members.wires, role_wires);
        let content = match members.content {
            Some(content) if content.kind() == JsonKind::Array => blocks_wires(content, &role),
            Some(content) if content.kind() == JsonKind::String && content.is_blank() => {
                any(&[CHAT, RESPONSES, OLLAMA])
            }
            Some(content) if content.kind() == JsonKind::String => ALL,
            // Servers refuse a content that is null beside reasoning alone.
            _ if self.answers_beside_content() => CHAT,
            _ => NONE,
        };
        intersect(intersect(wires, content), self.calls_wires())
    }

    fn calls_wires(&self) -> Wires {
        let mut wires = ALL;
        if let Some(calls) = self.members.tool_calls {
            calls
                .cursor()
                .array(|at| wires = intersect(wires, call_wires(at)));
        }
        wires
    }

    fn content_wires(&self) -> Wires {
        let role = self.members.role.map(Json::name);
        let mut is_native = matches!(role.as_deref(), None | Some(b"user" | b"model"));
        let mut is_empty = true;
        if let Some(parts) = self.members.parts {
            parts.cursor().array(|at| {
                is_empty = false;
                is_native &= is_gemini_part(at);
            });
        }
        if is_native && !is_empty {
            intersect(self.members.wires, GEMINI)
        } else {
            NONE
        }
    }

    fn item_wires(&self, item: Item) -> Wires {
        let members = &self.members;
        let is_native = match item {
            Item::Message => {
                let role = members.role.map(Json::name).unwrap_or_default();
                let blocks = members
                    .content
                    .filter(|content| content.kind() == JsonKind::Array);
                blocks.is_none_or(|blocks| blocks_wires(blocks, &role).has(Wire::Responses))
            }
            Item::Call => members.call_id.is_some(),
            Item::Output => members.output.is_some(),
            // The service refuses reasoning that no item followed, and reasoning without its content: requests ask it
            // not to store any.
            Item::Reasoning => {
                let [status, content] = self.json.pick(["status", "encrypted_content"]);
                content.is_some_and(|content| content.kind() == JsonKind::String)
                    && !status.is_some_and(|status| status.is("incomplete"))
            }
            Item::Hosted | Item::Approval => true,
        };
        if is_native { RESPONSES } else { NONE }
    }
}

fn blocks_wires(content: Json<'_>, role: &[u8]) -> Wires {
    let mut wires = None;
    let mut is_reasoning = false;
    content.cursor().array(|at| {
        let block = block_wires(at, role, &mut is_reasoning);
        wires = Some(intersect(wires.unwrap_or(ALL), block));
    });
    // Anthropic refuses an output whose last block is reasoning, as one that was cut off there.
    wires.filter(|_| !is_reasoning).unwrap_or(NONE)
}

/// Returns the wires that accept a block; sets whether it is reasoning.
fn block_wires(at: &mut Cursor<'_>, role: &[u8], is_reasoning: &mut bool) -> Wires {
    let mut block = BlockMembers::default();
    at.object(|key, at| block.insert(key, at));
    let kind = block.kind.map(Json::name).unwrap_or_default();
    let assistant = role == b"assistant";
    let user = role == b"user";
    *is_reasoning = matches!(&*kind, b"thinking" | b"redacted_thinking");
    match (&*kind, block.text) {
        (b"text", Some(text)) if !block.has_unknown && !text.is_blank() => any(&[CHAT, ANTHROPIC]),
        (b"text", Some(_)) => CHAT,
        (kind, _) => other_block_wires(kind, &block, user, assistant),
    }
}

fn other_block_wires(kind: &[u8], block: &BlockMembers<'_>, user: bool, assistant: bool) -> Wires {
    match kind {
        b"image_url" | b"input_audio" | b"file" if user => CHAT,
        b"refusal" if assistant => any(&[CHAT, RESPONSES]),
        b"input_text" | b"input_image" | b"input_file" if !assistant => RESPONSES,
        b"output_text" if assistant => RESPONSES,
        b"tool_use" if assistant && !block.has_unknown && block.has_arguments => ANTHROPIC,
        b"tool_result"
            if user && !block.has_unknown && block.has_call_id && !block.has_odd_content =>
        {
            ANTHROPIC
        }
        b"thinking" if assistant && !block.has_unknown && block.is_signed => ANTHROPIC,
        b"image" | b"document" | b"search_result" | b"container_upload" if user => ANTHROPIC,
        b"redacted_thinking" | b"server_tool_use" | b"mcp_tool_use" if assistant => ANTHROPIC,
        kind if kind.ends_with(b"_tool_result") && assistant => ANTHROPIC,
        _ => NONE,
    }
}

/// The members of a block that decide which wires accept it.
#[derive(Default)]
struct BlockMembers<'a> {
    kind: Option<Json<'a>>,
    text: Option<Json<'a>>,
    /// Whether the block has a member that Anthropic does not know.
    has_unknown: bool,
    /// Whether the arguments are an object.
    has_arguments: bool,
    /// Whether the block names the call that it answers.
    has_call_id: bool,
    /// Whether the content may not occur in a result.
    has_odd_content: bool,
    is_signed: bool,
}

impl<'a> BlockMembers<'a> {
    fn insert(&mut self, key: &[u8], at: &mut Cursor<'a>) {
        let value = at.value();
        match key {
            b"type" => self.kind = Some(value),
            b"text" => self.text = Some(value).filter(|text| text.kind() == JsonKind::String),
            b"input" => self.has_arguments = value.kind() == JsonKind::Object,
            b"tool_use_id" => self.has_call_id = value.kind() == JsonKind::String,
            b"signature" => self.is_signed = value.kind() == JsonKind::String,
            b"content" => self.has_odd_content = !is_result_content(value),
            b"id" | b"name" | b"thinking" | b"is_error" | b"cache_control" | b"citations"
            | b"caller" => {}
            _ => self.has_unknown = true,
        }
    }
}

/// Returns whether a value is a text, or blocks that may occur in a result.
fn is_result_content(content: Json<'_>) -> bool {
    let mut known = matches!(content.kind(), JsonKind::String | JsonKind::Array);
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

/// Returns the wires that accept an entry of `tool_calls`: they differ in the type of arguments.
fn call_wires(at: &mut Cursor<'_>) -> Wires {
    let (mut id, mut kind, mut named) = (false, false, false);
    let (mut text, mut object) = (false, false);
    at.object(|key, at| match key {
        b"id" => id = at.value().kind() == JsonKind::String,
        b"type" => kind = at.value().kind() == JsonKind::String,
        b"function" | b"custom" => at.object(|key, at| match key {
            b"name" => named = at.value().kind() == JsonKind::String,
            b"arguments" | b"input" => {
                let given = at.value().kind();
                (text, object) = (given == JsonKind::String, given == JsonKind::Object);
            }
            _ => drop(at.value()),
        }),
        _ => drop(at.value()),
    });
    if named && text && id && kind {
        CHAT
    } else if named && object {
        OLLAMA
    } else {
        NONE
    }
}

/// Members of Gemini parts, the frequent ones first.
const GEMINI_MEMBERS: &str = "text thought thoughtSignature functionCall functionResponse inlineData \
    fileData executableCode codeExecutionResult videoMetadata thought_signature function_call \
    function_response inline_data file_data executable_code code_execution_result video_metadata";

/// Returns whether Gemini knows all members of a part; it accepts them in both spellings.
fn is_gemini_part(at: &mut Cursor<'_>) -> bool {
    let mut is_empty = true;
    let mut is_known = true;
    at.object(|key, at| {
        at.value();
        is_empty = false;
        let mut members = GEMINI_MEMBERS.split_ascii_whitespace();
        is_known &= members.any(|member| member.as_bytes() == key);
    });
    is_known && !is_empty
}
