//! Takes calls of our tools out of replies that come as one body, and makes one of several.

use super::calls::strip_list;
use super::filter::{FilterState, ReplyFilter, changed};
use super::filter::{ollama_counts, response_changes, response_output, summed_counts};
use crate::reply::growing_json::{array, first_choice, raw, with_members};
use crate::{Json, JsonKind, Wire};

/// Texts of a message that are joined from round to round.
const TEXTS: [&str; 5] = [
    "content",
    "reasoning_content",
    "reasoning",
    "thinking",
    "refusal",
];

impl ReplyFilter {
    /// Returns whether a body that is no reply may hold some of a look-up: it breaks off, or has a call of one.
    pub fn may_hold_lookup(&self, body: &[u8]) -> bool {
        let Ok(json) = Json::parse(body) else {
            return true;
        };
        let (wire, held) = (self.wire, &self.state.held);
        let calls = list(wire, json).into_iter().flat_map(Json::elements);
        calls.into_iter().any(|call| match wire {
            Wire::Responses => held.holds_item(call),
            _ => held.holds(call),
        })
    }

    /// Begins the next round: the content of this body is kept for the client.
    pub fn next_body(&mut self, body: &[u8]) {
        if let Ok(json) = Json::parse(body) {
            let (wire, state) = (self.wire, &mut self.state);
            hear(wire, state, json);
            state.items_before = pieces(wire, state, json);
            state.next_round();
        }
    }

    /// Returns the body for the client: that of the last round, with the content of all rounds.
    pub fn last_body(&mut self, body: &[u8]) -> Vec<u8> {
        let Ok(json) = Json::parse(body) else {
            return body.to_vec();
        };
        let (wire, state) = (self.wire, &mut self.state);
        hear(wire, state, json);
        let changes = match wire {
            Wire::Responses => response_changes(state, json),
            _ if state.is_first()
                && state.lookups == 0
                && !has_unjudged_calls(state, wire, json) =>
            {
                Vec::new()
            }
            Wire::Chat => chat(state, json),
            Wire::Anthropic => anthropic(state, json),
            Wire::Gemini => gemini(state, json),
            Wire::Ollama => ollama(state, json),
        };
        changed(json, &changes).map_or_else(|| body.to_vec(), String::into_bytes)
    }
}

/// Reads the state from a body, and counts its calls of our tools.
fn hear(wire: Wire, state: &mut FilterState, json: Json<'_>) {
    let (id, created, usage) = match wire {
        Wire::Chat => ("id", "created", "usage"),
        Wire::Responses => ("id", "created_at", "usage"),
        Wire::Anthropic => ("id", "", "usage"),
        Wire::Gemini => ("responseId", "", "usageMetadata"),
        Wire::Ollama => ("created_at", "", ""),
    };
    state.remember(json.get(id), json.get(created));
    if wire == Wire::Ollama {
        state.report(Some(Json::checked(ollama_counts(json).as_bytes())));
    } else {
        state.report(json.get(usage));
    }
    let (left, count) = match list(wire, json) {
        Some(list) if wire == Wire::Responses => {
            let ours = list.elements().filter(|item| state.held.holds_item(*item));
            (Vec::new(), ours.count())
        }
        Some(list) => strip_list(&state.held, list),
        None => (Vec::new(), 0),
    };
    state.lookups = count - left.len().min(count);
    state.has_client_calls = left
        .iter()
        .any(|one| is_client_call(wire, Json::checked(one.as_bytes())));
}

/// Returns whether a chat has calls in forms that are left out: deprecated functions, calls in other choices, or
/// outside of a list.
fn has_unjudged_calls(state: &FilterState, wire: Wire, json: Json<'_>) -> bool {
    if wire != Wire::Chat || !state.held.has_judge() {
        return false;
    }
    let choices = json.get("choices").into_iter().flat_map(Json::elements);
    let message = message(wire, json);
    choices.count() > 1
        || first_choice(json.get("choices")).is_some_and(|choice| choice.get("delta").is_some())
        || message.is_some_and(|message| {
            let [legacy, calls] = message.pick(["function_call", "tool_calls"]);
            let is_list = calls.is_none_or(|it| it.is_null() || it.kind() == JsonKind::Array);
            legacy.is_some() || !is_list
        })
}

fn is_client_call(wire: Wire, element: Json<'_>) -> bool {
    match wire {
        Wire::Chat | Wire::Ollama => true,
        Wire::Gemini => {
            let [camel, snake] = element.pick(["functionCall", "function_call"]);
            camel.or(snake).is_some()
        }
        Wire::Anthropic => crate::message::block_is(element, "tool_use"),
        Wire::Responses => false,
    }
}

/// The message of a chat completion, or of Ollama's; Gemini's content.
fn message(wire: Wire, json: Json<'_>) -> Option<Json<'_>> {
    match wire {
        Wire::Chat => first_choice(json.get("choices"))?.get("message"),
        Wire::Ollama => json.get("message"),
        Wire::Gemini => first_choice(json.get("candidates"))?.get("content"),
        Wire::Anthropic | Wire::Responses => Some(json),
    }
}

/// Returns the list that contains calls.
fn list(wire: Wire, json: Json<'_>) -> Option<Json<'_>> {
    let name = match wire {
        Wire::Chat | Wire::Ollama => "tool_calls",
        Wire::Anthropic => "content",
        Wire::Gemini => "parts",
        Wire::Responses => "output",
    };
    message(wire, json)?.get(name)
}

/// Returns the content of a round for the client, behind that of the rounds before: blocks, parts or items; of a chat
/// and of Ollama the texts, in the order of their names.
fn pieces(wire: Wire, state: &FilterState, json: Json<'_>) -> Vec<String> {
    match wire {
        Wire::Responses => response_output(state, json),
        Wire::Anthropic | Wire::Gemini => {
            let mut all = state.items_before.clone();
            if let Some(list) = list(wire, json) {
                all.extend(strip_list(&state.held, list).0);
            }
            all
        }
        Wire::Chat | Wire::Ollama => {
            let message = message(wire, json);
            let before = |at: usize| state.items_before.get(at).cloned().unwrap_or_default();
            let joined = TEXTS.iter().enumerate().map(|(at, name)| {
                let text = message.and_then(|message| message.get(name));
                let text = text.filter(|text| text.kind() == JsonKind::String);
                before(at) + &text.map(inner).unwrap_or_default()
            });
            joined.collect()
        }
    }
}

/// The inside of a JSON string, as it came.
fn inner(text: Json<'_>) -> String {
    let text = raw(text);
    text[1..text.len() - 1].to_owned()
}

/// Returns the message of a chat or of Ollama with the texts of all rounds, and without calls of ours.
fn joined_message(wire: Wire, state: &FilterState, json: Json<'_>) -> Option<String> {
    let message = message(wire, json)?;
    let texts = pieces(wire, state, json);
    let mut changes: Vec<(&str, Option<String>)> = Vec::new();
    for (name, text) in TEXTS.iter().zip(texts) {
        if !text.is_empty() {
            changes.push((name, Some(format!("\"{text}\""))));
        }
    }
    if let Some(list) = list(wire, json) {
        let (left, count) = strip_list(&state.held, list);
        let is_list = list.is_null() || list.kind() == JsonKind::Array;
        if left.len() < count || state.held.has_judge() && !is_list {
            changes.push(("tool_calls", array(&left)));
        }
    }
    if state.held.holds_legacy_calls() && message.get("function_call").is_some() {
        changes.push(("function_call", None));
    }
    Some(with_members(message, &changes))
}

fn chat(state: &FilterState, json: Json<'_>) -> Vec<(&'static str, Option<String>)> {
    let mut changes = of_later_round(state, json, "id", "usage");
    if state.created.is_some() && !state.is_first() {
        changes.push(("created", state.created.clone()));
    }
    if let Some(choice) = first_choice(json.get("choices")) {
        let mut of_choice = vec![("message", joined_message(Wire::Chat, state, json))];
        let stops = choice
            .get("finish_reason")
            .is_some_and(|it| it.is("tool_calls"));
        if stops && !state.has_client_calls {
            of_choice.push(("finish_reason", Some("\"stop\"".to_owned())));
        }
        if state.held.has_judge() {
            of_choice.push(("delta", None));
        }
        let choice = with_members(choice, &of_choice);
        changes.push(("choices", Some(format!("[{choice}]"))));
    }
    changes
}

fn anthropic(state: &FilterState, json: Json<'_>) -> Vec<(&'static str, Option<String>)> {
    let mut changes = of_later_round(state, json, "id", "usage");
    let blocks = pieces(Wire::Anthropic, state, json);
    changes.push(("content", Some(format!("[{}]", blocks.join(",")))));
    let stops = json.get("stop_reason").is_some_and(|it| it.is("tool_use"));
    if stops && !state.has_client_calls {
        changes.push(("stop_reason", Some("\"end_turn\"".to_owned())));
    }
    changes
}

fn gemini(state: &FilterState, json: Json<'_>) -> Vec<(&'static str, Option<String>)> {
    let mut changes = of_later_round(state, json, "responseId", "usageMetadata");
    if let Some(candidate) = first_choice(json.get("candidates")) {
        let parts = array(&pieces(Wire::Gemini, state, json));
        let content = match candidate.get("content") {
            Some(content) => with_members(content, &[("parts", parts)]),
            None => format!(
                r#"{{"role":"model","parts":{}}}"#,
                parts.unwrap_or_else(|| "[]".to_owned())
            ),
        };
        let candidate = with_members(candidate, &[("content", Some(content))]);
        changes.push(("candidates", Some(format!("[{candidate}]"))));
    }
    changes
}

fn ollama(state: &FilterState, json: Json<'_>) -> Vec<(&'static str, Option<String>)> {
    let mut changes = vec![("message", joined_message(Wire::Ollama, state, json))];
    if !state.is_first() {
        changes.extend(summed_counts(&state.summed_usage().unwrap_or_default()));
    }
    changes
}

/// Returns the changed members of a later round: the id of the first round, and the usage of all.
fn of_later_round(
    state: &FilterState,
    json: Json<'_>,
    id: &'static str,
    usage: &'static str,
) -> Vec<(&'static str, Option<String>)> {
    let mut changes = Vec::new();
    if state.is_first() {
        return changes;
    }
    if json.get(id).is_some() {
        changes.push((id, state.id.clone()));
    }
    if json
        .get(usage)
        .is_some_and(|it| it.kind() == JsonKind::Object)
    {
        changes.push((usage, state.summed_usage()));
    }
    changes
}
