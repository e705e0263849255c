//! Removes calls that are held back, such as look-ups, from replies that come as one body and not as a stream, and
//! joins the bodies of all rounds into one.

use super::calls::strip_list;
use super::filter::{FilterState, ReplyFilter, changed};
use super::filter::{ollama_counts, response_changes, response_output, summed_counts};
use crate::reply::growing_json::{array, first_choice, raw, with_members};
use crate::{Json, JsonKind, Wire};

/// The members of a message whose texts are those of all rounds, joined.
const TEXT_MEMBERS: [&str; 5] = [
    "content",
    "reasoning_content",
    "reasoning",
    "thinking",
    "refusal",
];

impl ReplyFilter {
    /// Returns whether a body that is not a reply may contain a part of a look-up: it is incomplete JSON, or has a call
    /// that is held back.
    pub fn may_hold_lookup(&self, body: &[u8]) -> bool {
        let Ok(json) = Json::parse(body) else {
            return true;
        };
        let (wire, held) = (self.wire, &self.state.held);
        let calls = call_list(wire, json).into_iter().flat_map(Json::elements);
        calls.into_iter().any(|call| match wire {
            Wire::Responses => held.holds_item(call),
            _ => held.holds(call),
        })
    }

    /// Ends a round that another one follows: the content of its body is remembered for the client.
    pub fn next_body(&mut self, body: &[u8]) {
        if let Ok(json) = Json::parse(body) {
            let (wire, state) = (self.wire, &mut self.state);
            read_body(wire, state, json);
            state.items_before = joined_content(wire, state, json);
            state.next_round();
        }
    }

    /// Returns the body for the client: that of the last round, with the content of all rounds.
    pub fn last_body(&mut self, body: &[u8]) -> Vec<u8> {
        let Ok(json) = Json::parse(body) else {
            return body.to_vec();
        };
        let (wire, state) = (self.wire, &mut self.state);
        read_body(wire, state, json);
        let changes = match wire {
            Wire::Responses => response_changes(state, json),
            _ if state.is_first()
                && state.lookups == 0
                && !has_unjudged_calls(state, wire, json) =>
            {
                Vec::new()
            }
            Wire::Chat => chat_changes(state, json),
            Wire::Anthropic => anthropic_changes(state, json),
            Wire::Gemini => gemini_changes(state, json),
            Wire::Ollama => ollama_changes(state, json),
        };
        changed(json, &changes).map_or_else(|| body.to_vec(), String::into_bytes)
    }
}

/// Updates the state with a body: its id, its usage, and the number of calls that are held back.
fn read_body(wire: Wire, state: &mut FilterState, json: Json<'_>) {
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
    let (left, count) = match call_list(wire, json) {
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

/// Returns whether a reply of the wire chat has calls in forms that are not judged by the policy, and so are removed:
/// calls of deprecated functions, in other choices, in deltas, or outside of a list.
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

/// Returns whether an element that is left in the list is a call, which the client has to answer.
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

/// Returns the object that contains the list of calls: the message of Chat or Ollama, Gemini's content, else the body.
fn message(wire: Wire, json: Json<'_>) -> Option<Json<'_>> {
    match wire {
        Wire::Chat => first_choice(json.get("choices"))?.get("message"),
        Wire::Ollama => json.get("message"),
        Wire::Gemini => first_choice(json.get("candidates"))?.get("content"),
        Wire::Anthropic | Wire::Responses => Some(json),
    }
}

/// Returns the list that contains calls.
fn call_list(wire: Wire, json: Json<'_>) -> Option<Json<'_>> {
    let name = match wire {
        Wire::Chat | Wire::Ollama => "tool_calls",
        Wire::Anthropic => "content",
        Wire::Gemini => "parts",
        Wire::Responses => "output",
    };
    message(wire, json)?.get(name)
}

/// Returns the content of all rounds so far for the client: blocks, parts or items; for Chat and Ollama the texts, in
/// the order of [`TEXT_MEMBERS`].
fn joined_content(wire: Wire, state: &FilterState, json: Json<'_>) -> Vec<String> {
    match wire {
        Wire::Responses => response_output(state, json),
        Wire::Anthropic | Wire::Gemini => {
            let mut all = state.items_before.clone();
            if let Some(list) = call_list(wire, json) {
                all.extend(strip_list(&state.held, list).0);
            }
            all
        }
        Wire::Chat | Wire::Ollama => {
            let message = message(wire, json);
            let before = |at: usize| state.items_before.get(at).cloned().unwrap_or_default();
            let joined = TEXT_MEMBERS.iter().enumerate().map(|(at, name)| {
                let text = message.and_then(|message| message.get(name));
                let text = text.filter(|text| text.kind() == JsonKind::String);
                before(at) + &text.map(string_content).unwrap_or_default()
            });
            joined.collect()
        }
    }
}

/// Returns the content of a JSON string without its quotes, with its escapes, so that several can be joined.
fn string_content(text: Json<'_>) -> String {
    let text = raw(text);
    text[1..text.len() - 1].to_owned()
}

/// Returns the message of a chat or of Ollama with the texts of all rounds, and without calls of ours.
fn joined_message(wire: Wire, state: &FilterState, json: Json<'_>) -> Option<String> {
    let message = message(wire, json)?;
    let texts = joined_content(wire, state, json);
    let mut changes: Vec<(&str, Option<String>)> = Vec::new();
    for (name, text) in TEXT_MEMBERS.iter().zip(texts) {
        if !text.is_empty() {
            changes.push((name, Some(format!("\"{text}\""))));
        }
    }
    if let Some(list) = call_list(wire, json) {
        let (left, count) = strip_list(&state.held, list);
        // Under a policy, only a list of judged calls may remain.
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

/// Returns the members of a body that change, with their new values.
fn chat_changes(state: &FilterState, json: Json<'_>) -> Vec<(&'static str, Option<String>)> {
    let mut changes = id_and_usage_changes(state, json, "id", "usage");
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

/// Returns the members of a body that change, with their new values.
fn anthropic_changes(state: &FilterState, json: Json<'_>) -> Vec<(&'static str, Option<String>)> {
    let mut changes = id_and_usage_changes(state, json, "id", "usage");
    let blocks = joined_content(Wire::Anthropic, state, json);
    changes.push(("content", Some(format!("[{}]", blocks.join(",")))));
    let stops = json.get("stop_reason").is_some_and(|it| it.is("tool_use"));
    if stops && !state.has_client_calls {
        changes.push(("stop_reason", Some("\"end_turn\"".to_owned())));
    }
    changes
}

/// Returns the members of a body that change, with their new values.
fn gemini_changes(state: &FilterState, json: Json<'_>) -> Vec<(&'static str, Option<String>)> {
    let mut changes = id_and_usage_changes(state, json, "responseId", "usageMetadata");
    if let Some(candidate) = first_choice(json.get("candidates")) {
        let parts = array(&joined_content(Wire::Gemini, state, json));
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

/// Returns the members of a body that change, with their new values.
fn ollama_changes(state: &FilterState, json: Json<'_>) -> Vec<(&'static str, Option<String>)> {
    let mut changes = vec![("message", joined_message(Wire::Ollama, state, json))];
    if !state.is_first() {
        changes.extend(summed_counts(&state.summed_usage().unwrap_or_default()));
    }
    changes
}

/// Returns the changed members of the body of a later round: the id of the first round, and the usage of all; nothing
/// for the first round.
fn id_and_usage_changes(
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
