//! Gemini's rules for contents and parts.

use std::collections::BTreeMap;

use infold_wire::Json;

use super::seal::is_sealed;
use super::{given, refuse, string, unknown_member};
use crate::dialect::BadRequest;
use crate::reply_request::listed;

/// The contents of a part; each part has one of them. The last two stand for future kinds.
const PART_DATA: [&str; 11] = [
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
    "robotCall",
    "robotResponse",
];

/// Members allowed beside the contents.
const PART_EXTRAS: [&str; 5] = [
    "thought",
    "thoughtSignature",
    "videoMetadata",
    "mediaResolution",
    "partMetadata",
];

pub(super) fn check(body: Json<'_>, model: &str, alternate: bool) -> Result<(), BadRequest> {
    let contents = listed(body, "contents");
    let mut before = String::new();
    let mut open: Vec<(String, String)> = Vec::new();
    // Calls that the server runs, by kind and id, and the content that has them.
    let mut running: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for (at, content) in contents.iter().enumerate() {
        if let Some(name) = unknown_member(*content, &["role", "parts"]) {
            return unknown_name(&name, &format!("contents[{at}]"));
        }
        let role = match string(*content, "role").as_str() {
            "" | "function" => "user".to_owned(),
            role => role.to_owned(),
        };
        if before.is_empty() && role != "user" {
            return refuse("Please ensure that multiturn requests begin with a user role.");
        }
        if alternate && before == role {
            return refuse(
                "Please ensure that multiturn requests alternate between user and model.",
            );
        }
        before = role.clone();
        let parts = listed(*content, "parts");
        for (place, part) in parts.iter().enumerate() {
            check_part(at, place, *part)?;
        }
        if role == "user" {
            // Any part other than a result would end the running tools of the server.
            if let Some(((kind, id), from)) = running.iter().next()
                && (parts
                    .iter()
                    .any(|part| given(*part, "functionResponse").is_none())
                    && *kind != "robot"
                    || at > from + 8)
            {
                return refuse(format!(
                    "Please ensure that each {kind} call has its response: `{id}` in contents[{from}] has none."
                ));
            }
            answer(&mut open, &parts)?;
        } else {
            check_code(at, &parts)?;
            run(at, &parts, &mut running)?;
        }
        let calls = parts.iter().filter_map(|part| given(*part, "functionCall"));
        open = calls
            .map(|call| (string(call, "id"), string(call, "name")))
            .collect();
    }
    if before != "user" {
        return refuse(
            "Please ensure that multiturn requests ends with a user role or a function response.",
        );
    }
    if model.contains("gemini-3") {
        check_signed(&contents)?;
    }
    Ok(())
}

fn unknown_name<T>(name: &str, place: &str) -> Result<T, BadRequest> {
    refuse(format!(
        "Invalid JSON payload received. Unknown name \"{name}\" at '{place}': Cannot find field."
    ))
}

fn check_part(at: usize, place: usize, part: Json<'_>) -> Result<(), BadRequest> {
    let here = format!("contents[{at}].parts[{place}]");
    let allowed = [&PART_DATA[..], &PART_EXTRAS].concat();
    if let Some(name) = unknown_member(part, &allowed) {
        return unknown_name(&name, &here);
    }
    let data = PART_DATA.iter().filter(|name| given(part, name).is_some());
    if data.count() != 1 {
        return refuse(format!(
            "* GenerateContentRequest.{here}.data: required oneof field 'data' must have one initialized field\n"
        ));
    }
    let signature = string(part, "thoughtSignature");
    let empty = part.get("text").is_some_and(|text| text.bytes() == b"\"\"");
    if empty && signature.is_empty() {
        return refuse(
            "Unable to submit request because it has an empty text parameter. Add a value to the parameter and try again.",
        );
    }
    if !signature.is_empty() && !is_sealed(&signed_text(part), &signature) {
        return refuse("Corrupted thought signature.");
    }
    Ok(())
}

/// Returns the data that a signature covers: that of its part.
fn signed_text(part: Json<'_>) -> String {
    let data = PART_DATA.iter().find_map(|name| given(part, name));
    let bytes = data.map(Json::bytes).unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

/// The results of a content are those of the calls in the content before it.
fn answer(open: &mut Vec<(String, String)>, parts: &[Json<'_>]) -> Result<(), BadRequest> {
    let results = parts
        .iter()
        .filter_map(|part| given(*part, "functionResponse"));
    for result in results {
        let (id, name) = (string(result, "id"), string(result, "name"));
        let found = open
            .iter()
            .position(|(open_id, open_name)| *open_id == id && *open_name == name);
        let Some(found) = found else {
            return refuse(format!(
                "Please ensure that function response `{name}` ({id}) has the id and the name of a function call of the function call turn."
            ));
        };
        open.remove(found);
    }
    Ok(())
}

/// Code stands directly before its result.
fn check_code(at: usize, parts: &[Json<'_>]) -> Result<(), BadRequest> {
    let has = |place: usize, name: &str| {
        let part = parts.get(place);
        part.is_some_and(|part| given(*part, name).is_some())
    };
    for place in 0..parts.len() {
        let code = has(place, "executableCode");
        let lonely =
            has(place, "codeExecutionResult") && !(place > 0 && has(place - 1, "executableCode"));
        if lonely || code && !has(place + 1, "codeExecutionResult") {
            return refuse(format!(
                "Please ensure that code execution result comes immediately after executable code (contents[{at}].parts[{place}])."
            ));
        }
    }
    Ok(())
}

fn run(
    at: usize,
    parts: &[Json<'_>],
    running: &mut BTreeMap<(&'static str, String), usize>,
) -> Result<(), BadRequest> {
    for part in parts {
        for (kind, call, response) in [
            ("tool", "toolCall", "toolResponse"),
            ("robot", "robotCall", "robotResponse"),
        ] {
            if let Some(call) = given(*part, call)
                && running.insert((kind, string(call, "id")), at).is_some()
            {
                let id = string(call, "id");
                return refuse(format!(
                    "Please ensure that ids of {kind} calls are unique: `{id}`."
                ));
            }
            if let Some(found) = given(*part, response)
                && running.remove(&(kind, string(found, "id"))).is_none()
            {
                let id = string(found, "id");
                return refuse(format!(
                    "Please ensure that {kind} response `{id}` comes after its {kind} call."
                ));
            }
        }
    }
    Ok(())
}

/// In the current turn the first call of each step has the signature that came with it.
fn check_signed(contents: &[Json<'_>]) -> Result<(), BadRequest> {
    let asks = |content: &Json<'_>| {
        let parts = listed(*content, "parts");
        string(*content, "role") != "model"
            && parts
                .iter()
                .all(|part| given(*part, "functionResponse").is_none())
    };
    let start = contents.iter().rposition(asks).unwrap_or(0);
    for (at, content) in contents.iter().enumerate().skip(start) {
        let parts = listed(*content, "parts");
        let first = parts
            .iter()
            .find(|part| given(**part, "functionCall").is_some());
        if let Some(part) = first
            && string(*part, "thoughtSignature").is_empty()
        {
            let name = given(*part, "functionCall").map(|call| string(call, "name"));
            return refuse(format!(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:{}` , position {at}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
                name.unwrap_or_default()
            ));
        }
    }
    Ok(())
}
