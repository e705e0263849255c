//! Redacts the whole content of a message.

use infold_log::Role;

use super::media::blank_image;
use crate::message::{Pairing, block_pairing, may_be_pair_id, part_pairing};
use crate::neutral::gemini::PLACEHOLDER_SIGNATURE;
use crate::render::BlockStyle;
use crate::{Form, Item, Json, JsonKind, Message, MessageError, quote};

/// Replaces the content of a message by a marker. Role, ids and names of calls and results stay, and so does the order of its
/// parts; reasoning, signatures and images are removed.
pub fn redact_message(message: &[u8], marker: &str) -> Result<Vec<u8>, MessageError> {
    let read = Message::read(message)?;
    let mut out = ObjectWriter::default();
    match read.form() {
        Form::Turn => redact_turn(&read, marker, &mut out),
        Form::Content => redact_content(&read, marker, &mut out),
        Form::Item(item) => redact_item(item, &read, marker, &mut out),
    }
    Ok(out.done())
}

/// Writes a JSON object.
#[derive(Default)]
pub(super) struct ObjectWriter(Vec<u8>);

impl ObjectWriter {
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
        self.0.extend_from_slice(key);
        self.0.push(b':');
        self.0.extend_from_slice(value);
    }

    fn named(&mut self, name: &str, value: &[u8]) {
        self.put(quote(name).as_bytes(), value);
    }

    pub fn keep(&mut self, (key, value): (Json<'_>, Json<'_>)) {
        self.put(key.bytes(), value.bytes());
    }

    /// Copies the members whose names pass.
    fn keep_members(&mut self, json: Json<'_>, keeps: impl Fn(&[u8]) -> bool) {
        let members = json.members().filter(|(key, _)| keeps(&key.name()));
        members.for_each(|member| self.keep(member));
    }

    pub fn done(mut self) -> Vec<u8> {
        if self.0.is_empty() {
            self.0.push(b'{');
        }
        self.0.push(b'}');
        self.0
    }
}

fn redact_turn(message: &Message<'_>, marker: &str, out: &mut ObjectWriter) {
    let is_result = message.role() == Role::Tool;
    let mut has_content = false;
    for (key, value) in message.json().members() {
        let name = key.name();
        match &*name {
            b"role" | b"type" | b"tool_call_id" | b"tool_name" | b"is_error" | b"isError" => {
                out.keep((key, value));
            }
            b"name" if is_result => out.keep((key, value)),
            b"content" => {
                has_content |= !value.is_null();
                let value = redacted_text(value, marker, is_result, message.role());
                out.put(key.bytes(), &value);
            }
            b"tool_calls" if value.kind() == JsonKind::Array => {
                has_content |= value.elements().next().is_some();
                let calls = redacted_list(value, |call| redacted_call(call, marker));
                out.put(key.bytes(), &calls);
            }
            b"function_call" if value.kind() == JsonKind::Object => {
                has_content = true;
                out.put(key.bytes(), &redacted_function(value, marker));
            }
            _ => {}
        }
    }
    if !has_content && !message.facts().empty {
        // A member of the same name may come before it: the last one counts.
        out.named("content", quote(marker).as_bytes());
    }
}

fn redacted_text(content: Json<'_>, marker: &str, is_result: bool, role: Role) -> Vec<u8> {
    match content.kind() {
        JsonKind::Array if is_result => quote(marker).into_bytes(),
        JsonKind::Array => redacted_list(content, |block| redacted_block(block, marker, role)),
        JsonKind::Null => content.bytes().to_vec(),
        JsonKind::String if content.is_blank() && !is_result => content.bytes().to_vec(),
        _ => quote(marker).into_bytes(),
    }
}

fn redacted_list(json: Json<'_>, redacted: impl FnMut(Json<'_>) -> Vec<u8>) -> Vec<u8> {
    let all: Vec<Vec<u8>> = json.elements().map(redacted).collect();
    [b"[".as_slice(), &all.join(&b","[..]), b"]"].concat()
}

pub(super) fn redacted_arguments(marker: &str) -> String {
    format!(r#"{{"redacted":{}}}"#, quote(marker))
}

fn redacted_call(call: Json<'_>, marker: &str) -> Vec<u8> {
    let mut out = ObjectWriter::default();
    for (key, value) in call.members() {
        match &*key.name() {
            b"id" | b"type" | b"index" => out.keep((key, value)),
            b"function" | b"custom" => out.put(key.bytes(), &redacted_function(value, marker)),
            _ => {}
        }
    }
    out.done()
}

fn redacted_function(function: Json<'_>, marker: &str) -> Vec<u8> {
    let mut out = ObjectWriter::default();
    for (key, value) in function.members() {
        let given = match (&*key.name(), value.kind()) {
            (b"name", _) => value.bytes().to_vec(),
            (b"arguments", JsonKind::String) => quote(&redacted_arguments(marker)).into_bytes(),
            (b"arguments", _) => redacted_arguments(marker).into_bytes(),
            (b"input", _) => quote(marker).into_bytes(),
            _ => continue,
        };
        out.put(key.bytes(), &given);
    }
    out.done()
}

pub(super) fn redacted_block(block: Json<'_>, marker: &str, role: Role) -> Vec<u8> {
    let kind = block.get("type").map(Json::name).unwrap_or_default();
    let pairing = block_pairing(&kind);
    let mut out = ObjectWriter::default();
    out.keep_members(block, |name| match pairing {
        Pairing::Call(_) | Pairing::Opens(_) => {
            matches!(name, b"type" | b"id" | b"name" | b"server_name")
        }
        Pairing::Result(_) | Pairing::Ends(_) => {
            matches!(name, b"type" | b"tool_use_id" | b"is_error")
        }
        _ => name == b"type" || may_be_pair_id(name),
    });
    let text = quote(marker);
    match pairing {
        Pairing::Call(_) | Pairing::Opens(_) => {
            if let Some(caller) = block.get("caller") {
                out.named("caller", &with_only(caller, &["type", "tool_id"]));
            }
            out.named("input", redacted_arguments(marker).as_bytes());
        }
        Pairing::Result(_) => out.named("content", text.as_bytes()),
        Pairing::Ends(_) if *kind == *b"mcp_tool_result" => {
            let block = BlockStyle::Block.text_block(role, &text);
            out.named("content", format!("[{block}]").as_bytes());
        }
        // An error is the only form of such a result without content.
        Pairing::Ends(_) => {
            let error = format!("{}_error", String::from_utf8_lossy(&kind));
            let error = format!(r#"{{"type":{},"error_code":"unavailable"}}"#, quote(&error));
            out.named("content", error.as_bytes());
        }
        Pairing::Unknown => out.named("redacted", text.as_bytes()),
        Pairing::Alone | Pairing::Continues(_) => {
            let is_item = kind.starts_with(b"input_") && *kind != *b"input_audio";
            let style = if is_item || *kind == *b"output_text" {
                BlockStyle::Item
            } else {
                BlockStyle::Block
            };
            return style.text_block(role, &text).into_bytes();
        }
    }
    out.done()
}

/// Returns an object with only these members; any other value unchanged.
fn with_only(value: Json<'_>, names: &[&str]) -> Vec<u8> {
    if value.kind() != JsonKind::Object {
        return value.bytes().to_vec();
    }
    let mut out = ObjectWriter::default();
    out.keep_members(value, |name| {
        names.iter().any(|kept| kept.as_bytes() == name)
    });
    out.done()
}

fn redact_content(message: &Message<'_>, marker: &str, out: &mut ObjectWriter) {
    for (key, value) in message.json().members() {
        match &*key.name() {
            b"role" => out.keep((key, value)),
            b"parts" => {
                let parts = redacted_list(value, |part| redacted_part(part, marker));
                out.put(key.bytes(), &parts);
            }
            _ => {}
        }
    }
}

pub(super) fn redacted_part(part: Json<'_>, marker: &str) -> Vec<u8> {
    let mut out = ObjectWriter::default();
    let mut is_call = false;
    for (key, value) in part.members() {
        let name = key.name();
        let is_known = part_pairing(&name).is_some_and(|pairing| pairing != Pairing::Alone)
            || matches!(&*name, b"function_call" | b"function_response");
        if is_known || value.kind() == JsonKind::Object && value.get("id").is_some() {
            is_call |= matches!(&*name, b"functionCall" | b"function_call");
            out.put(key.bytes(), &redacted_pair_half(&name, value, marker));
        }
    }
    if out.0.is_empty() {
        let text = quote(marker);
        return BlockStyle::Part.text_block(Role::User, &text).into_bytes();
    }
    let [camel, snake] = part.pick(["thoughtSignature", "thought_signature"]);
    if is_call && camel.or(snake).is_some() {
        out.named("thoughtSignature", PLACEHOLDER_SIGNATURE.as_bytes());
    }
    out.done()
}

fn redacted_pair_half(name: &[u8], value: Json<'_>, marker: &str) -> Vec<u8> {
    let mut out = ObjectWriter::default();
    out.keep_members(value, |name| {
        matches!(
            name,
            b"id" | b"name" | b"language" | b"outcome" | b"toolType"
        )
    });
    let text = quote(marker);
    match name {
        b"functionCall" | b"function_call" | b"toolCall" | b"tool_call" => {
            out.named("args", redacted_arguments(marker).as_bytes());
        }
        b"functionResponse" | b"function_response" | b"toolResponse" | b"tool_response" => {
            out.named("response", format!(r#"{{"output":{text}}}"#).as_bytes());
        }
        b"executableCode" | b"executable_code" => out.named("code", text.as_bytes()),
        _ => out.named("output", text.as_bytes()),
    }
    out.done()
}

/// The members of an item that stay: its type and the ids by which it is paired.
const KEPT_ITEM_MEMBERS: &str =
    "type id call_id role name status server_label approval_request_id approve";

/// Members that OpenAI documents in items, and in the objects inside them. Any other name is content.
const DOCUMENTED_IN_ITEMS: &str = "\
    acknowledged_safety_checks action actions annotations arguments attributes background button call_id code command \
    commands container_id content created_by detail diff drag end_index env error execution exit_code file_id filename \
    image_url index input input_schema keys logs max_output_length message moderation name operation outcome output \
    output_format outputs path pattern pending_safety_checks queries query quality refusal result results revised_prompt \
    score scroll_x scroll_y size sources start_index status stderr stdout summary text timeout_ms title tools url user \
    working_directory x y";

/// Members whose values are objects with names that the agent or its user chose.
const FREE_FORM: &str = "env attributes input_schema";

fn contains(names: &str, name: &[u8]) -> bool {
    let mut names = names.split_ascii_whitespace();
    names.any(|listed| listed.as_bytes() == name)
}

fn redact_item(item: Item, message: &Message<'_>, marker: &str, out: &mut ObjectWriter) {
    let mut has_content = false;
    let mut has_undocumented = false;
    for (key, value) in message.json().members() {
        let name = key.name();
        if contains(KEPT_ITEM_MEMBERS, &name) || item == Item::Hosted && may_be_pair_id(&name) {
            out.keep((key, value));
            continue;
        }
        if *name == *b"environment" {
            out.put(key.bytes(), &with_only(value, &["type", "container_id"]));
            continue;
        }
        let kind = message.json().get("type").map(Json::name);
        let blank = kind.and_then(|kind| blank_image(&kind, &name));
        let redacted = match (item, &*name, value.kind()) {
            (_, _, JsonKind::String) if let Some(blank) = &blank => quote(blank).into_bytes(),
            (Item::Message, b"content", _) => redacted_text(value, marker, false, message.role()),
            (Item::Message | Item::Reasoning | Item::Approval, ..) => continue,
            (_, b"encrypted_content" | b"signature", _) => continue,
            (_, b"arguments", JsonKind::String) => quote(&redacted_arguments(marker)).into_bytes(),
            (Item::Output, b"output", JsonKind::Array) => quote(marker).into_bytes(),
            (_, name, _) if !contains(DOCUMENTED_IN_ITEMS, name) => {
                has_undocumented = true;
                continue;
            }
            (_, name, _) => redacted_value(name, value, marker),
        };
        out.put(key.bytes(), &redacted);
        has_content = true;
    }
    // An item of an unknown type may have no documented content.
    if has_undocumented && !has_content {
        out.named("redacted", quote(marker).as_bytes());
    }
    if item == Item::Reasoning {
        let summary = format!(r#"[{{"type":"summary_text","text":{}}}]"#, quote(marker));
        out.named("summary", summary.as_bytes());
    }
}

/// Returns a value of the same shape without content, and without names of members that no provider documents.
fn redacted_value(name: &[u8], value: Json<'_>, marker: &str) -> Vec<u8> {
    match value.kind() {
        JsonKind::String => quote(marker).into_bytes(),
        JsonKind::Number => b"0".to_vec(),
        JsonKind::Bool | JsonKind::Null => value.bytes().to_vec(),
        JsonKind::Array => redacted_list(value, |element| redacted_value(name, element, marker)),
        JsonKind::Object => {
            let mut out = ObjectWriter::default();
            let is_free_form = contains(FREE_FORM, name);
            let kind = value.get("type").map(Json::name).unwrap_or_default();
            for (key, value) in value.members().filter(|_| !is_free_form) {
                match &*key.name() {
                    b"type" => out.keep((key, value)),
                    name if let Some(blank) = blank_image(&kind, name) => {
                        out.put(key.bytes(), quote(&blank).as_bytes());
                    }
                    name if contains(DOCUMENTED_IN_ITEMS, name) => {
                        out.put(key.bytes(), &redacted_value(name, value, marker));
                    }
                    _ => {}
                }
            }
            if out.0.is_empty() && value.members().next().is_some() {
                return redacted_arguments(marker).into_bytes();
            }
            out.done()
        }
    }
}
