//! The rules of the templates behind Ollama.

use infold_wire::{Json, JsonKind};

use super::{bookkeeping, given, refuse, string};
use crate::dialect::BadRequest;
use crate::reply_request::listed;

/// Ollama itself takes almost anything; these are the rules of the templates behind it.
pub(super) fn check(body: Json<'_>) -> Result<(), BadRequest> {
    let mut open: Vec<(String, String)> = Vec::new();
    for (at, message) in listed(body, "messages").into_iter().enumerate() {
        let role = string(message, "role");
        if let Some(name) = bookkeeping(message) {
            return refuse(format!("json: unknown field \"{name}\" in messages[{at}]"));
        }
        if given(message, "content").is_some_and(|it| it.kind() != JsonKind::String) {
            return refuse(
                "json: cannot unmarshal array into Go struct field ChatRequest.messages.content of type string",
            );
        }
        if role == "tool" {
            let (id, name) = (
                string(message, "tool_call_id"),
                string(message, "tool_name"),
            );
            let found = open.iter().position(|(open_id, open_name)| {
                if id.is_empty() {
                    *open_name == name
                } else {
                    *open_id == id
                }
            });
            let Some(found) = found else {
                return refuse(format!(
                    "template: messages[{at}]: a tool message must follow the call that it answers"
                ));
            };
            open.remove(found);
            continue;
        }
        unanswered(&open)?;
        let calls = listed(message, "tool_calls").into_iter();
        let calls = calls.map(|call| {
            let name = given(call, "function").map(|it| string(it, "name"));
            (string(call, "id"), name.unwrap_or_default())
        });
        open = calls.collect();
        let silent = string(message, "content").is_empty()
            && given(message, "images").is_none()
            && given(message, "thinking").is_none();
        if silent && open.is_empty() {
            return refuse(format!(
                "template: messages[{at}]: a message must say something"
            ));
        }
    }
    unanswered(&open)
}

fn unanswered(open: &[(String, String)]) -> Result<(), BadRequest> {
    match open.first() {
        None => Ok(()),
        Some((id, name)) => refuse(format!(
            "template: the call of `{name}` ({id}) must be followed by its tool message"
        )),
    }
}
