//! Reads calls of the tools, answers them, and takes them out of messages.

use super::{LookupNames, LookupTool};
use crate::reply::growing_json::{array, object, raw, with_members};
use crate::{ContentBlock, Form, Json, JsonKind, Message, Wire, quote};

/// A call of one of the tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupCall {
    /// The tool.
    pub tool: LookupTool,
    /// The name under which it was called.
    pub name: String,
    /// Its id, where the wire has one.
    pub id: Option<String>,
    /// Its arguments, as texts.
    pub arguments: Vec<(String, String)>,
    /// How many calls of the client's tools stand before it in the reply.
    pub before: usize,
}

/// The calls of a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LookupCalls {
    /// Calls of our tools.
    pub lookups: Vec<LookupCall>,
    /// How many calls are for the client.
    pub others: usize,
}

/// The result of a call that stands beside calls of the client's: it goes where their results are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingResult {
    /// How many results of the client's come before it.
    pub before: usize,
    /// A message with this result alone.
    pub message: Vec<u8>,
}

/// Finds the calls in the messages of a reply.
pub fn find_calls(names: &LookupNames, messages: &[Vec<u8>]) -> LookupCalls {
    let mut found = LookupCalls::default();
    let messages = messages
        .iter()
        .filter_map(|bytes| Message::read(bytes).ok());
    for message in messages {
        for block in ContentBlock::all(&message) {
            let ContentBlock::Call {
                id,
                name,
                arguments,
            } = block
            else {
                continue;
            };
            match names.tool(&name) {
                Some(tool) => found.lookups.push(LookupCall {
                    tool,
                    name,
                    id,
                    arguments,
                    before: found.others,
                }),
                None => found.others += 1,
            }
        }
    }
    found
}

/// Writes results as messages: one with all of them where the wire wants that, else one for each.
pub fn write_results(
    wire: Wire,
    results: &[(&LookupCall, Result<String, String>)],
) -> Vec<Vec<u8>> {
    let written = results
        .iter()
        .map(|(call, result)| write_result(wire, call, result.as_ref()));
    let written: Vec<String> = written.collect();
    let messages = match wire {
        Wire::Anthropic => vec![format!(
            r#"{{"role":"user","content":[{}]}}"#,
            written.join(",")
        )],
        Wire::Gemini => vec![format!(
            r#"{{"role":"user","parts":[{}]}}"#,
            written.join(",")
        )],
        Wire::Chat | Wire::Responses | Wire::Ollama => written,
    };
    messages.into_iter().map(String::into_bytes).collect()
}

fn write_result(wire: Wire, call: &LookupCall, result: Result<&String, &String>) -> String {
    let failed = result.is_err().then(|| "true".to_owned());
    let (Ok(text) | Err(text)) = result;
    let text = Some(quote(text));
    let (id, name) = (call.id.as_deref().map(quote), Some(quote(&call.name)));
    let string = |text: &str| Some(quote(text));
    match wire {
        Wire::Chat => object(&[
            ("role", string("tool")),
            ("tool_call_id", id),
            ("content", text),
        ]),
        Wire::Ollama => object(&[
            ("role", string("tool")),
            ("tool_name", name),
            ("tool_call_id", id),
            ("content", text),
        ]),
        Wire::Responses => object(&[
            ("type", string("function_call_output")),
            ("call_id", id),
            ("output", text),
        ]),
        Wire::Anthropic => object(&[
            ("type", string("tool_result")),
            ("tool_use_id", id),
            ("content", text),
            ("is_error", failed),
        ]),
        Wire::Gemini => {
            let member = if failed.is_some() { "error" } else { "output" };
            let response = Some(object(&[(member, text)]));
            let answer = object(&[("id", id), ("name", name), ("response", response)]);
            object(&[("functionResponse", Some(answer))])
        }
    }
}

/// Returns a message of a reply without calls of our tools; none if nothing else is in it.
pub fn strip_calls(names: &LookupNames, bytes: &[u8]) -> Option<Vec<u8>> {
    let Ok(message) = Message::read(bytes) else {
        return Some(bytes.to_vec());
    };
    let json = message.json();
    if let Form::Item(_) = message.form() {
        return (!is_call_item(names, json)).then(|| bytes.to_vec());
    }
    let mut changes = Vec::new();
    for list in ["tool_calls", "content", "parts"] {
        let Some(value) = json.get(list).filter(|it| it.kind() == JsonKind::Array) else {
            continue;
        };
        let (left, count) = strip_list(names, value);
        if left.len() < count {
            changes.push((list, array(&left)));
        }
    }
    if changes.is_empty() {
        return Some(bytes.to_vec());
    }
    let is_gone = |list: &str| {
        changes
            .iter()
            .any(|(name, left)| *name == list && left.is_none())
    };
    let content = json.get("content").filter(|content| !content.is_blank());
    if is_gone("content") || is_gone("parts") || is_gone("tool_calls") && content.is_none() {
        return None;
    }
    Some(with_members(json, &changes).into_bytes())
}

/// Returns the elements of a list that are no calls of our tools, and how many there were.
pub(super) fn strip_list(names: &LookupNames, list: Json<'_>) -> (Vec<String>, usize) {
    let all: Vec<Json<'_>> = list.elements().collect();
    let left = all.iter().filter(|element| !is_call(names, **element));
    (left.map(|element| raw(*element)).collect(), all.len())
}

/// Returns whether an element of a message is a call of one of our tools, on any wire.
pub(super) fn is_call(names: &LookupNames, element: Json<'_>) -> bool {
    let [kind, name, function, gemini] = element.pick(["type", "name", "function", "functionCall"]);
    if let Some(call) = function.or(gemini) {
        return names.has(call.get("name"));
    }
    kind.is_some_and(|kind| kind.is("tool_use")) && names.has(name)
}

/// Returns whether an output item is a call of one of our tools.
pub(super) fn is_call_item(names: &LookupNames, item: Json<'_>) -> bool {
    let [kind, name] = item.pick(["type", "name"]);
    kind.is_some_and(|kind| kind.is("function_call")) && names.has(name)
}
