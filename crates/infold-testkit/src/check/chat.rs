//! Checks a chat request as OpenAI does.

use std::collections::BTreeSet;

use infold_wire::{Json, JsonKind};

use super::{given, string};
use crate::dialect::BadRequest;

const ROLES: [&str; 6] = [
    "system",
    "assistant",
    "user",
    "function",
    "tool",
    "developer",
];

pub(super) fn check(body: Json<'_>) -> Result<(), BadRequest> {
    if given(body, "model").is_none() {
        return Err(BadRequest::new(
            "you must provide a model parameter",
            "",
            "",
        ));
    }
    let Some(messages) = given(body, "messages") else {
        let message = "Missing required parameter: 'messages'.";
        return Err(BadRequest::new(
            message,
            "messages",
            "missing_required_parameter",
        ));
    };
    for name in ["messages", "tools"] {
        let empty = |list: Json<'_>| list.elements().next().is_none();
        if given(body, name).is_some_and(empty) {
            let message = format!(
                "Invalid '{name}': empty array. Expected an array with minimum length 1, but got an empty array instead."
            );
            return Err(BadRequest::new(message, name, "empty_array"));
        }
    }
    choice(body)?;
    rounds(messages)
}

/// A tool that must be called is one of those there are.
fn choice(body: Json<'_>) -> Result<(), BadRequest> {
    let Some(choice) = given(body, "tool_choice") else {
        return Ok(());
    };
    let Some(tools) = given(body, "tools") else {
        let message = "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.";
        return Err(BadRequest::new(message, "tool_choice", ""));
    };
    let name = |tool: Json<'_>| tool.get("function").map(|it| string(it, "name"));
    let wanted = (choice.kind() == JsonKind::Object)
        .then(|| name(choice))
        .flatten();
    match wanted {
        Some(wanted)
            if !tools
                .elements()
                .any(|it| name(it).as_ref() == Some(&wanted)) =>
        {
            let message = format!("Tool choice '{wanted}' not found in 'tools' parameter.");
            Err(BadRequest::new(message, "tool_choice", ""))
        }
        _ => Ok(()),
    }
}

/// Each call is followed by its result, and each result follows its call.
fn rounds(messages: Json<'_>) -> Result<(), BadRequest> {
    let mut open = BTreeSet::new();
    let mut called_at = None;
    for (at, message) in messages.elements().enumerate() {
        let role = string(message, "role");
        if !ROLES.contains(&role.as_str()) {
            let message = format!(
                "Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."
            );
            return Err(BadRequest::new(
                message,
                format!("messages[{at}].role"),
                "invalid_value",
            ));
        }
        if role == "tool" {
            let id = string(message, "tool_call_id");
            if !open.remove(&id) {
                let message = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.";
                return Err(BadRequest::new(
                    message,
                    format!("messages.[{at}].role"),
                    "",
                ));
            }
            continue;
        }
        unanswered(&open, called_at)?;
        let calls = given(message, "tool_calls")
            .into_iter()
            .flat_map(Json::elements);
        open = calls.map(|call| string(call, "id")).collect();
        called_at = Some(at);
        let otherwise = ["function_call", "refusal", "audio"];
        let otherwise = otherwise.iter().any(|it| given(message, it).is_some());
        let speaks = otherwise || !open.is_empty();
        if given(message, "content").is_none() && !(role == "assistant" && speaks) {
            let message = "Invalid value for 'content': expected a string, got null.";
            return Err(BadRequest::new(
                message,
                format!("messages.[{at}].content"),
                "",
            ));
        }
    }
    unanswered(&open, called_at)
}

fn unanswered(open: &BTreeSet<String>, at: Option<usize>) -> Result<(), BadRequest> {
    if open.is_empty() {
        return Ok(());
    }
    let ids: Vec<_> = open.iter().map(String::as_str).collect();
    let ids = ids.join(", ");
    let message = format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {ids}"
    );
    let at = at.unwrap_or_default();
    Err(BadRequest::new(
        message,
        format!("messages.[{at}].role"),
        "",
    ))
}
