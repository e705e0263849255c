//! Takes all that a message says out of it.

use infold_log::Role;

use super::replace::{text_block, text_part};
use crate::message::{Pairing, may_name, of_block, of_part};
use crate::said::gemini::UNSIGNED;
use crate::{Form, Item, Json, Kind, Message, MessageError, quote};

/// Replaces all that a message says by a marker. Role, ids and names of calls and results stay, and each part of it keeps its place;
/// reasoning, signatures and images go.
pub fn redact_message(message: &[u8], marker: &str) -> Result<Vec<u8>, MessageError> {
    let read = Message::read(message)?;
    let mut out = Object::default();
    match read.form() {
        Form::Turn => turn(&read, marker, &mut out),
        Form::Content => content(&read, marker, &mut out),
        Form::Item(item) => put_item(item, &read, marker, &mut out),
    }
    Ok(out.done())
}

/// An object on its way out.
#[derive(Default)]
struct Object(Vec<u8>);

impl Object {
    fn put(&mut self, key: &[u8], value: &[u8]) {
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
        self.0.extend_from_slice(key);
        self.0.push(b':');
        self.0.extend_from_slice(value);
    }

    fn named(&mut self, name: &str, value: &[u8]) {
        self.put(quote(name).as_bytes(), value);
    }

    /// Copies a member.
    fn keep(&mut self, (key, value): (Json<'_>, Json<'_>)) {
        self.put(key.bytes(), value.bytes());
    }

    fn done(mut self) -> Vec<u8> {
        if self.0.is_empty() {
            self.0.push(b'{');
        }
        self.0.push(b'}');
        self.0
    }
}

fn turn(message: &Message<'_>, marker: &str, out: &mut Object) {
    let is_result = message.role() == Role::Tool;
    let was_empty = message.facts().empty;
    let mut says = false;
    for (key, value) in message.json().members() {
        let name = key.name();
        match &*name {
            b"role" | b"type" | b"tool_call_id" | b"tool_name" | b"is_error" | b"isError" => {
                out.keep((key, value));
            }
            b"name" if is_result => out.keep((key, value)),
            b"content" => {
                says |= !value.is_null();
                let value = said(value, marker, is_result, message.role());
                out.put(key.bytes(), &value);
            }
            b"tool_calls" if value.kind() == Kind::Array => {
                says |= value.elements().next().is_some();
                out.put(key.bytes(), &list(value, |call| chat_call(call, marker)));
            }
            b"function_call" if value.kind() == Kind::Object => {
                says = true;
                out.put(key.bytes(), &function(value, marker));
            }
            _ => {}
        }
    }
    if !says && !was_empty {
        // Of duplicate members the last one counts.
        out.named("content", quote(marker).as_bytes());
    }
}

/// A content: a text, or a list of blocks.
fn said(content: Json<'_>, marker: &str, is_result: bool, role: Role) -> Vec<u8> {
    match content.kind() {
        Kind::Array if is_result => quote(marker).into_bytes(),
        Kind::Array => list(content, |one| block(one, marker, role)),
        Kind::Null => content.bytes().to_vec(),
        Kind::String if content.is_blank() && !is_result => content.bytes().to_vec(),
        _ => quote(marker).into_bytes(),
    }
}

fn list(json: Json<'_>, mut one: impl FnMut(Json<'_>) -> Vec<u8>) -> Vec<u8> {
    let all: Vec<Vec<u8>> = json.elements().map(&mut one).collect();
    [b"[".as_slice(), &all.join(&b","[..]), b"]"].concat()
}

/// What stands for arguments.
fn arguments(marker: &str) -> String {
    format!(r#"{{"redacted":{}}}"#, quote(marker))
}

fn chat_call(call: Json<'_>, marker: &str) -> Vec<u8> {
    let mut out = Object::default();
    for (key, value) in call.members() {
        match &*key.name() {
            b"id" | b"type" | b"index" => out.keep((key, value)),
            b"function" | b"custom" => out.put(key.bytes(), &function(value, marker)),
            _ => {}
        }
    }
    out.done()
}

fn function(function: Json<'_>, marker: &str) -> Vec<u8> {
    let mut out = Object::default();
    for (key, value) in function.members() {
        let given = match (&*key.name(), value.kind()) {
            (b"name", _) => value.bytes().to_vec(),
            (b"arguments", Kind::String) => quote(&arguments(marker)).into_bytes(),
            (b"arguments", _) => arguments(marker).into_bytes(),
            (b"input", _) => quote(marker).into_bytes(),
            _ => continue,
        };
        out.put(key.bytes(), &given);
    }
    out.done()
}

/// A block of a content.
fn block(block: Json<'_>, marker: &str, role: Role) -> Vec<u8> {
    let kind = block.get("type").map(Json::name).unwrap_or_default();
    let keeps: &[&[u8]] = match of_block(&kind) {
        Pairing::Call(_) | Pairing::Opens(_) => {
            &[b"type", b"id", b"name", b"server_name", b"caller"]
        }
        Pairing::Result(_) | Pairing::Ends(_) => &[b"type", b"tool_use_id", b"is_error"],
        Pairing::Unknown => &[b"type"],
        Pairing::Alone | Pairing::Continues(_) => return text(&kind, marker, role),
    };
    let is_unknown = of_block(&kind) == Pairing::Unknown;
    let mut out = Object::default();
    for (key, value) in block.members() {
        let name = key.name();
        if *name == *b"caller" && keeps.contains(&&*name) {
            out.put(key.bytes(), &only(value, &[b"type", b"tool_id"]));
        } else if keeps.contains(&&*name) || is_unknown && may_name(&name) {
            out.keep((key, value));
        }
    }
    match of_block(&kind) {
        Pairing::Call(_) | Pairing::Opens(_) => out.named("input", arguments(marker).as_bytes()),
        Pairing::Result(_) => out.named("content", quote(marker).as_bytes()),
        Pairing::Ends(_) if *kind == *b"mcp_tool_result" => {
            let text = text_block(marker);
            out.named("content", &[b"[".as_slice(), &text, b"]"].concat());
        }
        // The one form of such a result that holds nothing of it.
        Pairing::Ends(_) => {
            let error = format!("{}_error", String::from_utf8_lossy(&kind));
            let error = format!(r#"{{"type":{},"error_code":"unavailable"}}"#, quote(&error));
            out.named("content", error.as_bytes());
        }
        _ => out.named("redacted", quote(marker).as_bytes()),
    }
    out.done()
}

/// An object with only these members; another value as it is.
fn only(value: Json<'_>, names: &[&[u8]]) -> Vec<u8> {
    if value.kind() != Kind::Object {
        return value.bytes().to_vec();
    }
    let mut out = Object::default();
    let members = value.members();
    for member in members.filter(|(key, _)| names.contains(&&*key.name())) {
        out.keep(member);
    }
    out.done()
}

/// A block of text in the place of another, of the same family.
fn text(kind: &[u8], marker: &str, role: Role) -> Vec<u8> {
    let of_items = kind.starts_with(b"input_") && kind != b"input_audio" || kind == b"output_text";
    if !of_items {
        return text_block(marker);
    }
    let kind = match role {
        Role::Assistant => "output_text",
        _ => "input_text",
    };
    format!(r#"{{"type":"{kind}","text":{}}}"#, quote(marker)).into_bytes()
}

fn content(message: &Message<'_>, marker: &str, out: &mut Object) {
    for (key, value) in message.json().members() {
        match &*key.name() {
            b"role" => out.keep((key, value)),
            b"parts" => out.put(key.bytes(), &list(value, |one| part(one, marker))),
            _ => {}
        }
    }
}

/// A part of a Gemini content.
fn part(part: Json<'_>, marker: &str) -> Vec<u8> {
    let mut out = Object::default();
    let mut is_call = false;
    for (key, value) in part.members() {
        let name = key.name();
        let is_known = of_part(&name).is_some_and(|pairing| pairing != Pairing::Alone)
            || matches!(&*name, b"function_call" | b"function_response");
        if is_known || value.kind() == Kind::Object && value.get("id").is_some() {
            is_call |= matches!(&*name, b"functionCall" | b"function_call");
            out.put(key.bytes(), &part_of_pair(&name, value, marker));
        }
    }
    if out.0.is_empty() {
        return text_part(marker);
    }
    let [camel, snake] = part.pick(["thoughtSignature", "thought_signature"]);
    if is_call && camel.or(snake).is_some() {
        out.named("thoughtSignature", UNSIGNED.as_bytes());
    }
    out.done()
}

fn part_of_pair(name: &[u8], value: Json<'_>, marker: &str) -> Vec<u8> {
    let mut out = Object::default();
    for (key, value) in value.members() {
        if matches!(
            &*key.name(),
            b"id" | b"name" | b"language" | b"outcome" | b"toolType"
        ) {
            out.keep((key, value));
        }
    }
    let result = format!(r#"{{"output":{}}}"#, quote(marker));
    match name {
        b"functionCall" | b"function_call" | b"toolCall" | b"tool_call" => {
            out.named("args", arguments(marker).as_bytes());
        }
        b"functionResponse" | b"function_response" | b"toolResponse" | b"tool_response" => {
            out.named("response", result.as_bytes());
        }
        b"executableCode" | b"executable_code" => out.named("code", quote(marker).as_bytes()),
        _ => out.named("output", quote(marker).as_bytes()),
    }
    out.done()
}

/// Members of an item that say what it is and what it pairs with.
const OF_ITEMS: [&[u8]; 9] = [
    b"type",
    b"id",
    b"call_id",
    b"role",
    b"name",
    b"status",
    b"server_label",
    b"approval_request_id",
    b"approve",
];

/// Members that OpenAI documents in items, and in the objects inside them. Any other name is content, as names of variables are.
const DOCUMENTED: &str = "\
    acknowledged_safety_checks action actions annotations arguments attributes background button call_id code command \
    commands container_id content created_by detail diff drag end_index env error execution exit_code file_id filename \
    image_url index input input_schema keys logs max_output_length message moderation name operation outcome output \
    output_format outputs path pattern pending_safety_checks queries query quality refusal result results revised_prompt \
    score scroll_x scroll_y size sources start_index status stderr stdout summary text timeout_ms title tools url user \
    working_directory x y";

fn is_documented(name: &[u8]) -> bool {
    let mut names = DOCUMENTED.split_ascii_whitespace();
    names.any(|documented| documented.as_bytes() == name)
}

/// Members whose names somebody chose.
fn is_free_form(name: &[u8]) -> bool {
    matches!(name, b"env" | b"attributes" | b"input_schema")
}

fn put_item(item: Item, message: &Message<'_>, marker: &str, out: &mut Object) {
    let is_unknown = matches!(item, Item::Hosted);
    let mut has_others = false;
    let mut says = false;
    for (key, value) in message.json().members() {
        let name = key.name();
        if OF_ITEMS.contains(&&*name) || is_unknown && may_name(&name) {
            out.keep((key, value));
            continue;
        }
        if *name == *b"environment" {
            out.put(key.bytes(), &only(value, &[b"type", b"container_id"]));
            continue;
        }
        let given = match (item, &*name, value.kind()) {
            (Item::Reasoning, ..) | (Item::Approval, ..) => continue,
            (Item::Message, b"content", _) => said(value, marker, false, message.role()),
            (Item::Message, ..) => continue,
            (_, b"encrypted_content" | b"signature", _) => continue,
            (_, b"arguments", Kind::String) => quote(&arguments(marker)).into_bytes(),
            (Item::Output, b"output", Kind::Array) => quote(marker).into_bytes(),
            _ if !is_documented(&name) => {
                has_others = true;
                continue;
            }
            _ => emptied(&name, value, marker),
        };
        out.put(key.bytes(), &given);
        says = true;
    }
    // Only an item that no provider documents has no documented member that says something.
    if has_others && !says {
        out.named("redacted", quote(marker).as_bytes());
    }
    if item == Item::Reasoning {
        let summary = format!(r#"[{{"type":"summary_text","text":{}}}]"#, quote(marker));
        out.named("summary", summary.as_bytes());
    }
}

/// A value that says nothing: of the same shape, but for names of members that somebody chose.
fn emptied(name: &[u8], value: Json<'_>, marker: &str) -> Vec<u8> {
    match value.kind() {
        Kind::String => quote(marker).into_bytes(),
        Kind::Number => b"0".to_vec(),
        Kind::Bool | Kind::Null => value.bytes().to_vec(),
        Kind::Array => list(value, |one| emptied(name, one, marker)),
        Kind::Object => {
            let mut out = Object::default();
            for (key, value) in value.members().filter(|_| !is_free_form(name)) {
                match &*key.name() {
                    b"type" => out.keep((key, value)),
                    name if is_documented(name) => {
                        out.put(key.bytes(), &emptied(name, value, marker));
                    }
                    _ => {}
                }
            }
            if out.0.is_empty() && value.members().next().is_some() {
                return arguments(marker).into_bytes();
            }
            out.done()
        }
    }
}
