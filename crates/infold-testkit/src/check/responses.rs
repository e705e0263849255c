//! Checks a Responses request as OpenAI does.

use std::collections::HashSet;

use infold_wire::{Json, JsonKind};

use super::{given, string};
use crate::dialect::BadRequest;

pub(super) fn check(body: Json<'_>) -> Result<(), BadRequest> {
    for name in ["model", "input"] {
        if given(body, name).is_none() {
            let message = format!("Missing required parameter: '{name}'.");
            return Err(BadRequest::new(message, name, "missing_required_parameter"));
        }
    }
    let input = given(body, "input").filter(|it| it.kind() == JsonKind::Array);
    let Some(input) = input else {
        return Ok(());
    };
    let mut calls = HashSet::new();
    let mut open = HashSet::new();
    for (at, item) in input.elements().enumerate() {
        let kind = string(item, "type");
        let id = string(item, "call_id");
        match kind.as_str() {
            "function_call" | "custom_tool_call" | "local_shell_call" => {
                calls.insert(id.clone());
                open.insert(id);
            }
            "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
                if !calls.contains(&id) {
                    let message =
                        format!("No tool call found for function call output with call_id {id}.");
                    return Err(BadRequest::new(message, "input", ""));
                }
                open.remove(&id);
            }
            "message" | "" => role(at, item)?,
            _ => {}
        }
    }
    let mut open: Vec<_> = open.into_iter().collect();
    open.sort();
    match open.first() {
        Some(id) => {
            let message = format!("No tool output found for function call {id}.");
            Err(BadRequest::new(message, "input", ""))
        }
        None => Ok(()),
    }
}

fn role(at: usize, item: Json<'_>) -> Result<(), BadRequest> {
    let role = string(item, "role");
    if !["system", "assistant", "user", "developer"].contains(&role.as_str()) {
        let message = format!(
            "Invalid value: '{role}'. Supported values are: 'assistant', 'system', 'developer', and 'user'."
        );
        return Err(BadRequest::new(
            message,
            format!("input[{at}]"),
            "invalid_value",
        ));
    }
    if given(item, "content").is_none() {
        let message = format!("Missing required parameter: 'input[{at}].content'.");
        let code = "missing_required_parameter";
        return Err(BadRequest::new(
            message,
            format!("input[{at}].content"),
            code,
        ));
    }
    Ok(())
}
