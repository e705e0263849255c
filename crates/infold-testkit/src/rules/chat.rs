//! The rules of chat templates for the order of messages.

use std::collections::HashSet;

use infold_wire::{Json, JsonKind};

use super::{bookkeeping, given, has_parts_of, is_plain, string};
use crate::dialect::BadRequest;
use crate::reply_request::listed;

const ID_LENGTH: usize = 40;
const NAME_LENGTH: usize = 64;

pub(super) fn check(body: Json<'_>, alternate: bool) -> Result<(), BadRequest> {
    let messages = listed(body, "messages");
    for (at, message) in messages.iter().enumerate() {
        let role = string(*message, "role");
        if let Some(name) = bookkeeping(*message) {
            return invalid(
                format!("Unknown parameter: 'messages[{at}].{name}'."),
                format!("messages[{at}].{name}"),
                "unknown_parameter",
            );
        }
        check_content(at, &role, *message)?;
        check_calls(at, *message)?;
        if role == "tool" && string(*message, "tool_call_id").is_empty() {
            let param = format!("messages[{at}].tool_call_id");
            let code = "missing_required_parameter";
            return invalid(
                format!("Missing required parameter: '{param}'."),
                param,
                code,
            );
        }
    }
    if alternate {
        check_turns(&messages)?;
    }
    Ok(())
}

fn invalid<T>(message: String, param: String, code: &'static str) -> Result<T, BadRequest> {
    Err(BadRequest::new(message, param, code))
}

fn check_content(at: usize, role: &str, message: Json<'_>) -> Result<(), BadRequest> {
    let Some(content) = given(message, "content") else {
        return Ok(());
    };
    let param = format!("messages[{at}].content");
    if content.kind() == JsonKind::Array && content.elements().next().is_none() {
        return invalid(
            format!(
                "Invalid '{param}': empty array. Expected an array with minimum length 1, but got an empty array instead."
            ),
            param,
            "empty_array",
        );
    }
    let allowed: &[&str] = match role {
        "user" => &["text", "image_url", "input_audio", "file"],
        "assistant" => &["text", "refusal"],
        _ => &["text"],
    };
    has_parts_of(message, "content", allowed).or_else(|(place, kind)| {
        invalid(
            format!(
                "Invalid value: '{kind}'. Supported values are: '{}'.",
                allowed.join("', '")
            ),
            format!("{param}[{place}].type"),
            "invalid_value",
        )
    })
}

fn check_calls(at: usize, message: Json<'_>) -> Result<(), BadRequest> {
    let Some(calls) = given(message, "tool_calls") else {
        return Ok(());
    };
    let list = format!("messages[{at}].tool_calls");
    let mut ids = HashSet::new();
    for (place, call) in calls.elements().enumerate() {
        let param = format!("{list}[{place}]");
        let id = string(call, "id");
        if id.is_empty() || id.len() > ID_LENGTH {
            return invalid(
                format!(
                    "Invalid '{param}.id': string too long. Expected a string with maximum length {ID_LENGTH}, but got a string with length {} instead.",
                    id.len()
                ),
                param + ".id",
                "string_above_max_length",
            );
        }
        if !ids.insert(id.clone()) {
            let message = format!("Duplicate value for 'tool_call_id' of '{id}' in message[{at}]");
            return invalid(message, param, "");
        }
        let kind = string(call, "type");
        let arguments = match kind.as_str() {
            "function" => "arguments",
            "custom" => "input",
            _ => {
                let message = format!(
                    "Invalid value: '{kind}'. Supported values are: 'function' and 'custom'."
                );
                return invalid(message, param + ".type", "invalid_value");
            }
        };
        let Some(called) = given(call, &kind) else {
            let message = format!("Missing required parameter: '{param}.{kind}'.");
            return invalid(message, param, "missing_required_parameter");
        };
        let name = string(called, "name");
        if !is_plain(&name) || name.len() > NAME_LENGTH {
            let message = format!(
                "Invalid '{param}.{kind}.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
            );
            return invalid(message, param, "invalid_value");
        }
        if given(called, arguments).is_none_or(|it| it.kind() != JsonKind::String) {
            let message = format!(
                "Invalid type for '{param}.{kind}.{arguments}': expected a string, but got something else instead."
            );
            return invalid(message, param, "invalid_type");
        }
    }
    if ids.is_empty() {
        let message = format!(
            "Invalid '{list}': empty array. Expected an array with minimum length 1, but got an empty array instead."
        );
        return invalid(message, list, "empty_array");
    }
    Ok(())
}

/// The rule of chat templates: one system message at the beginning, then user and assistant alternate.
///
/// Calls and their results do not count, as templates show them.
fn check_turns(messages: &[Json<'_>]) -> Result<(), BadRequest> {
    let mut user = true;
    for (at, message) in messages.iter().enumerate() {
        let role = string(*message, "role");
        match role.as_str() {
            "system" | "developer" if at == 0 => {}
            "system" | "developer" => {
                return invalid(
                    "System message must be at the beginning.".to_owned(),
                    String::new(),
                    "",
                );
            }
            "assistant" if given(*message, "tool_calls").is_some() => {}
            "user" | "assistant" => {
                if (role == "user") != user {
                    let message = "After the optional system message, conversation roles must alternate user/assistant/user/assistant/...";
                    return invalid(message.to_owned(), String::new(), "");
                }
                user = !user;
            }
            _ => {}
        }
    }
    Ok(())
}
