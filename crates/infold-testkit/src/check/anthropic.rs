//! Checks a request as Anthropic does.

use std::collections::BTreeSet;

use infold_wire::{Json, JsonKind};

use super::{given, string};
use crate::Seen;
use crate::dialect::BadRequest;

pub(super) fn check(body: Json<'_>, seen: &Seen, alternate: bool) -> Result<(), BadRequest> {
    if seen.header("anthropic-version").is_none() {
        return wrong("anthropic-version: header is required");
    }
    for name in ["model", "max_tokens", "messages"] {
        if given(body, name).is_none() {
            return wrong(format!("{name}: Field required"));
        }
    }
    let marks = marks(body, 0);
    if marks > 4 {
        return wrong(format!(
            "A maximum of 4 blocks with cache_control may be provided. Found {marks}."
        ));
    }
    let messages: Vec<_> = given(body, "messages")
        .into_iter()
        .flat_map(Json::elements)
        .collect();
    choice(body)?;
    roles(&messages, alternate)?;
    for (at, message) in messages.iter().enumerate() {
        content(at, *message, at + 1 == messages.len())?;
    }
    rounds(&messages)
}

fn wrong<T>(message: impl Into<String>) -> Result<T, BadRequest> {
    Err(BadRequest::new(message, "", ""))
}

/// How many cache markers there are.
fn marks(json: Json<'_>, depth: usize) -> usize {
    if depth > 100 {
        return 0;
    }
    let members = json.members().map(|(name, value)| {
        // Arguments and results of tools may hold any member.
        if name.is("input") || name.is("input_schema") {
            return 0;
        }
        if name.is("cache_control") && !value.is_null() {
            1
        } else {
            marks(value, depth + 1)
        }
    });
    let members: usize = members.sum();
    members
        + json
            .elements()
            .map(|it| marks(it, depth + 1))
            .sum::<usize>()
}

fn choice(body: Json<'_>) -> Result<(), BadRequest> {
    let wanted = given(body, "tool_choice").map(|it| string(it, "name"));
    let Some(wanted) = wanted.filter(|name| !name.is_empty()) else {
        return Ok(());
    };
    let tools = given(body, "tools").into_iter().flat_map(Json::elements);
    if tools
        .map(|it| string(it, "name"))
        .any(|name| name == wanted)
    {
        Ok(())
    } else {
        wrong(format!("Tool '{wanted}' not found in provided tools"))
    }
}

fn roles(messages: &[Json<'_>], alternate: bool) -> Result<(), BadRequest> {
    let mut last = String::new();
    for (at, message) in messages.iter().enumerate() {
        let role = string(*message, "role");
        match role.as_str() {
            "user" | "assistant" => {}
            // Claude Code puts some in the middle.
            "system" => continue,
            _ => {
                return wrong(format!(
                    "messages.{at}.role: Input should be 'user' or 'assistant'"
                ));
            }
        }
        if last.is_empty() && role != "user" {
            return wrong("messages: first message must use the \"user\" role");
        }
        if alternate && role == last {
            return wrong(format!(
                "messages: roles must alternate between \"user\" and \"assistant\", but found multiple \"{role}\" roles in a row"
            ));
        }
        last = role;
    }
    if last.is_empty() {
        wrong("messages: at least one message is required")
    } else {
        Ok(())
    }
}

fn content(at: usize, message: Json<'_>, last: bool) -> Result<(), BadRequest> {
    let Some(content) = given(message, "content") else {
        return wrong(format!("messages.{at}.content: Field required"));
    };
    let assistant = string(message, "role") == "assistant";
    let empty = match content.kind() {
        JsonKind::String => content.bytes() == b"\"\"",
        _ => content.elements().next().is_none(),
    };
    if empty && !(last && assistant) {
        return wrong(format!(
            "messages.{at}: all messages must have non-empty content except for the optional final assistant message"
        ));
    }
    let blocks = content.elements();
    let mut texts = blocks.filter(|block| string(*block, "type") == "text");
    if texts.any(|text| string(text, "text").is_empty()) {
        return wrong("messages: text content blocks must be non-empty");
    }
    let ending = match content.kind() {
        JsonKind::String => content.text().unwrap_or_default().into_owned(),
        _ => content
            .elements()
            .last()
            .map(|it| string(it, "text"))
            .unwrap_or_default(),
    };
    if last && assistant && ending.ends_with(char::is_whitespace) {
        return wrong("messages: final assistant content cannot end with trailing whitespace");
    }
    Ok(())
}

/// Each call is answered in the very next message, and only there.
fn rounds(messages: &[Json<'_>]) -> Result<(), BadRequest> {
    let mut open = BTreeSet::new();
    for (at, message) in messages.iter().enumerate() {
        let blocks: Vec<_> = given(*message, "content")
            .into_iter()
            .flat_map(Json::elements)
            .collect();
        for (place, block) in blocks.iter().enumerate() {
            if string(*block, "type") != "tool_result" {
                continue;
            }
            let id = string(*block, "tool_use_id");
            if !open.remove(&id) {
                return wrong(format!(
                    "messages.{at}.content.{place}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
                ));
            }
        }
        if !open.is_empty() {
            return unanswered(at - 1, &open);
        }
        let calls = blocks
            .iter()
            .filter(|block| string(**block, "type") == "tool_use");
        open = calls.map(|call| string(*call, "id")).collect();
    }
    if open.is_empty() {
        Ok(())
    } else {
        unanswered(messages.len() - 1, &open)
    }
}

fn unanswered(at: usize, open: &BTreeSet<String>) -> Result<(), BadRequest> {
    let ids: Vec<_> = open.iter().map(String::as_str).collect();
    let ids = ids.join(", ");
    wrong(format!(
        "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    ))
}
