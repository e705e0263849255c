//! Filters the chunks of a chat completion.

use super::{CallVerdict, FilterState, changed};
use crate::reply::chat_calls::CallPlaces;
use crate::reply::growing_json::{
    array, first_choice, pick, raw, text_of, token_count, with_members,
};
use crate::{Json, JsonKind};

pub(super) fn event(state: &mut FilterState, json: Json<'_>) -> CallVerdict {
    let [id, created, choices, usage] = pick("id created choices usage", json);
    state.remember(id, created);
    state.report(usage);
    let mut changes = of_later_round(state, json);
    let has_choices = choices.is_some_and(|choices| choices.elements().next().is_some());
    let Some(choice) = first_choice(choices) else {
        return match changed(json, &changes) {
            // Under a policy for tools a request may not ask for other choices.
            _ if has_choices && state.held.has_judge() => CallVerdict::Drop,
            _ if state.holds_end() => CallVerdict::Hold(raw(json)),
            Some(data) => CallVerdict::Change(data),
            None => CallVerdict::Pass,
        };
    };
    let [delta, message, finish] = choice.pick(["delta", "message", "finish_reason"]);
    let is_end = finish.is_some_and(|finish| !finish.is_null());
    let is_whole = delta.is_none();
    let mut of_said = Vec::new();
    if let Some(said) = delta.or(message) {
        let calls = said.get("tool_calls").filter(|calls| !calls.is_null());
        if let Some(calls) = calls.and_then(|it| filter_calls(state, it, is_whole)) {
            of_said.push(("tool_calls", array(&calls)));
        }
        if state.held.holds_legacy_calls() && said.get("function_call").is_some() {
            of_said.push(("function_call", None));
        }
        if !state.is_first() && said.get("role").is_some() {
            of_said.push(("role", None));
        }
    }
    let mut of_choice = Vec::new();
    if let Some(said) = delta.or(message).filter(|_| !of_said.is_empty()) {
        let said = with_members(said, &of_said);
        if !is_end && !says_something(Json::checked(said.as_bytes())) {
            return CallVerdict::Drop;
        }
        of_choice.push((if is_whole { "message" } else { "delta" }, Some(said)));
    }
    if state.held.has_judge() && delta.is_some() && message.is_some() {
        of_choice.push(("message", None));
    }
    let is_alone = choices.is_none_or(|choices| choices.elements().count() == 1);
    if !of_choice.is_empty() || state.held.has_judge() && !is_alone {
        let choice = with_members(choice, &of_choice);
        changes.push(("choices", Some(format!("[{choice}]"))));
    }
    if is_end && state.holds_end() {
        return CallVerdict::Hold(changed(json, &changes).unwrap_or_else(|| raw(json)));
    }
    changed(json, &changes).map_or(CallVerdict::Pass, CallVerdict::Change)
}

/// Returns whether a chunk begins a call with an incomplete name that may become that of a look-up: such a call has to
/// be complete before it is assigned.
pub(super) fn begins_unnamed_call(state: &FilterState, json: Json<'_>) -> bool {
    let delta = first_choice(json.get("choices")).and_then(|choice| choice.get("delta"));
    let calls = delta.and_then(|delta| delta.get("tool_calls"));
    let mut calls = calls.into_iter().flat_map(Json::elements);
    calls.any(|call| {
        let name = text_of(
            call.get("function")
                .and_then(|function| function.get("name")),
        );
        let is_known = state.places.find(call).is_some();
        !is_known && state.held.may_become_lookup(&name.unwrap_or_default())
    })
}

/// Finds the places of the calls of a chunk.
pub(super) fn place_calls(places: &mut CallPlaces, json: Json<'_>) {
    let Some(choice) = first_choice(json.get("choices")) else {
        return;
    };
    let [delta, message] = choice.pick(["delta", "message"]);
    let calls = delta.or(message).and_then(|said| said.get("tool_calls"));
    for call in calls.into_iter().flat_map(Json::elements) {
        places.place(call, delta.is_none());
    }
}

/// Returns the rest of the last chunk, or of the usage behind it, for the client.
pub(super) fn end(state: &mut FilterState, json: Json<'_>, is_last: bool) -> Option<String> {
    let choice = first_choice(json.get("choices"));
    if !is_last {
        // Text in the last chunk belongs to the reply.
        let choice = choice?;
        let delta = choice.get("delta")?;
        if !says_something(delta) {
            return None;
        }
        let choice = with_members(choice, &[("finish_reason", Some("null".to_owned()))]);
        let usage = json.get("usage").map(|_| "null".to_owned());
        let changes = [("choices", Some(format!("[{choice}]"))), ("usage", usage)];
        return Some(with_members(json, &changes));
    }
    let mut changes = of_later_round(state, json);
    // Without a call for the client there is no call to be answered.
    let has_calls = state.has_client_calls;
    if let Some(choice) = choice.filter(|_| !has_calls) {
        let stops = choice
            .get("finish_reason")
            .is_some_and(|it| it.is("tool_calls"));
        if stops {
            let stop = Some("\"stop\"".to_owned());
            let choice = with_members(choice, &[("finish_reason", stop)]);
            changes.push(("choices", Some(format!("[{choice}]"))));
        }
    }
    Some(changed(json, &changes).unwrap_or_else(|| raw(json)))
}

/// Returns the changed members of a later round: the id of the first round, and the usage of all.
fn of_later_round(state: &FilterState, json: Json<'_>) -> Vec<(&'static str, Option<String>)> {
    if state.is_first() {
        return Vec::new();
    }
    let mut changes = vec![("id", state.id.clone())];
    if state.created.is_some() {
        changes.push(("created", state.created.clone()));
    }
    let is_report = |usage: &Json<'_>| usage.kind() == JsonKind::Object;
    if json.get("usage").filter(is_report).is_some() {
        changes.push(("usage", state.summed_usage()));
    }
    changes
}

/// Returns whether a delta has content for the client.
fn says_something(delta: Json<'_>) -> bool {
    delta
        .members()
        .any(|(_, value)| !value.is_null() && !matches!(value.bytes(), b"\"\"" | b"[]"))
}

/// Returns calls without those of our tools, and with indexes as if there were none; `None` if nothing changes.
fn filter_calls(state: &mut FilterState, calls: Json<'_>, is_whole: bool) -> Option<Vec<String>> {
    // Calls that are not a list cannot be judged.
    let mut is_changed = state.held.has_judge() && calls.kind() != JsonKind::Array;
    let mut left = Vec::new();
    for call in calls.elements() {
        let [index, function] = call.pick(["index", "function"]);
        let index = index.filter(|index| index.kind() == JsonKind::Number);
        let index = index.map(|index| token_count(Some(index)));
        let at = state.places.place(call, is_whole);
        if at == state.call_indexes.len() {
            let name = text_of(function.and_then(|function| function.get("name")));
            let is_ours = state.held.holds_place(&name.unwrap_or_default(), at);
            let own = index.unwrap_or(at as u64);
            let place = (!is_ours).then(|| own.saturating_sub(state.lookups as u64));
            state.lookups += usize::from(is_ours);
            state.has_client_calls |= !is_ours;
            state.call_indexes.push(place);
        }
        match (state.call_indexes[at], index) {
            (Some(place), Some(index)) if place != index => {
                is_changed = true;
                left.push(with_members(call, &[("index", Some(place.to_string()))]));
            }
            (Some(_), _) => left.push(raw(call)),
            (None, _) => is_changed = true,
        }
    }
    is_changed.then_some(left)
}
