//! Reads and writes Gemini's parts.

use infold_log::Role;

use super::{NeutralBlock, ObjectMembers, RawJson, arguments_object, push_all, raw_json};
use crate::{Json, JsonKind, quote};

/// The signature of a call that another model made.
///
/// Newer models refuse calls without a signature, but accept this documented one.
pub const PLACEHOLDER_SIGNATURE: &str = "\"skip_thought_signature_validator\"";

/// Returns the name of a role.
pub fn role_name(role: Role) -> &'static str {
    match role {
        Role::Assistant => "model",
        Role::System => "system",
        Role::User | Role::Tool => "user",
    }
}

/// Reads parts. A signature that is not reasoning's becomes reasoning without words.
pub fn read_parts(json: Json<'_>) -> Vec<NeutralBlock<'_>> {
    let mut blocks = Vec::new();
    let single = (json.kind() != JsonKind::Array).then_some(json);
    for json in json.elements().chain(single) {
        let block = read_part(json);
        if !matches!(block, NeutralBlock::Thinking(..)) {
            let signature = ObjectMembers::of(json).string("thoughtSignature");
            let signature = signature.filter(|signature| signature != PLACEHOLDER_SIGNATURE);
            let thinking = |signature| NeutralBlock::Thinking("\"\"".into(), Some(signature));
            blocks.extend(signature.map(thinking));
        }
        if !block.is_empty() {
            blocks.push(block);
        }
    }
    blocks
}

/// Reads one part.
pub fn read_part(whole: Json<'_>) -> NeutralBlock<'_> {
    if whole.kind() == JsonKind::String {
        return NeutralBlock::Text(raw_json(whole));
    }
    let json = ObjectMembers::of(whole);
    let either = |one: &str, other: &str| json.get(one).or_else(|| json.get(other));
    if let Some(text) = json.string("text") {
        return if json.get("thought").is_some_and(Json::is_true) {
            NeutralBlock::Thinking(text, json.string("thoughtSignature"))
        } else {
            NeutralBlock::Text(text)
        };
    }
    if let Some(call) = either("functionCall", "function_call") {
        let call = ObjectMembers::of(call);
        let (id, name) = (call.or_empty("id"), call.or_empty("name"));
        return NeutralBlock::Call(id, name, arguments_object(call.get("args")));
    }
    if let Some(answer) = either("functionResponse", "function_response") {
        let answer = ObjectMembers::of(answer);
        let (mut content, failed) = read_response(answer.get("response"));
        let more = answer.get("parts").into_iter().flat_map(Json::elements);
        content.extend(more.map(read_part));
        return NeutralBlock::Result {
            id: answer.or_empty("id"),
            name: answer.or_empty("name"),
            content,
            failed,
        };
    }
    if let Some(data) = either("inlineData", "inline_data") {
        let data = ObjectMembers::of(data);
        if let (Some(kind), Some(data)) = (media_type(&data), data.string("data"))
            && kind.starts_with("\"image/")
        {
            return NeutralBlock::Image(kind, data);
        }
    }
    if let Some(file) = either("fileData", "file_data").map(ObjectMembers::of) {
        let url = file.string("fileUri").or_else(|| file.string("file_uri"));
        let is_image = media_type(&file).is_none_or(|kind| kind.starts_with("\"image/"));
        if let Some(url) = url.filter(|_| is_image) {
            return NeutralBlock::Link(url);
        }
    }
    NeutralBlock::Other(raw_json(whole))
}

fn media_type<'a>(json: &ObjectMembers<'a>) -> Option<RawJson<'a>> {
    json.string("mimeType").or_else(|| json.string("mime_type"))
}

/// Reads the response of a function, and whether it failed: its one text, else its JSON as a text.
pub fn read_response(json: Option<Json<'_>>) -> (Vec<NeutralBlock<'_>>, bool) {
    let Some(json) = json else {
        return (Vec::new(), false);
    };
    let mut members = json.members();
    if let (Some((name, value)), None) = (members.next(), members.next())
        && value.kind() == JsonKind::String
        && matches!(&*name.name(), b"output" | b"result" | b"error")
    {
        return (vec![NeutralBlock::Text(raw_json(value))], name.is("error"));
    }
    let text = match json.kind() {
        JsonKind::String => raw_json(json),
        _ => quote(&raw_json(json)).into(),
    };
    (vec![NeutralBlock::Text(text)], false)
}

/// Writes a text, a call, an image or a link as a part; returns whether it is one of them.
pub fn put_part(block: &NeutralBlock<'_>, out: &mut String) -> bool {
    match block {
        NeutralBlock::Text(text) => push_all(out, &["{\"text\":", text, "}"]),
        NeutralBlock::Call(id, name, args) => {
            push_all(out, &["{\"functionCall\":{", &id_member(id), "\"name\":"]);
            push_all(out, &[name, ",\"args\":", args, "}}"]);
        }
        NeutralBlock::Image(kind, data) => {
            let start = "{\"inlineData\":{\"mimeType\":";
            push_all(out, &[start, kind, ",\"data\":", data, "}}"]);
        }
        NeutralBlock::Link(url) => push_all(out, &["{\"fileData\":{\"fileUri\":", url, "}}"]),
        _ => return false,
    }
    true
}

/// Writes a result, which is one text, as a part.
pub fn put_result(id: &str, name: &str, text: &str, failed: bool, out: &mut String) {
    let key = if failed { "error" } else { "output" };
    push_all(
        out,
        &["{\"functionResponse\":{", &id_member(id), "\"name\":"],
    );
    push_all(out, &[name, ",\"response\":{\"", key, "\":", text, "}}}"]);
}

fn id_member(id: &str) -> String {
    match id {
        "\"\"" => String::new(),
        id => format!("\"id\":{id},"),
    }
}
