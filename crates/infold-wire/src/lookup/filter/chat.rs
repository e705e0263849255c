//! Chunks of a chat completion.

use super::{FilterState, Verdict, changed};
use crate::reply::growing_json::{
    array, first_choice, pick, raw, text_of, token_count, with_members,
};
use crate::{Json, JsonKind};

pub(super) fn event(state: &mut FilterState, json: Json<'_>) -> Verdict {
    let [id, created, choices, usage] = pick("id created choices usage", json);
    state.remember(id, created);
    state.report(usage);
    let mut changes = of_later_round(state, json);
    let Some(choice) = first_choice(choices) else {
        return match changed(json, &changes) {
            _ if state.holds_end() => Verdict::Hold(raw(json)),
            Some(data) => Verdict::Change(data),
            None => Verdict::Pass,
        };
    };
    let [delta, finish] = choice.pick(["delta", "finish_reason"]);
    let is_end = finish.is_some_and(|finish| !finish.is_null());
    let mut of_delta = Vec::new();
    if let Some(delta) = delta {
        if let Some(calls) = delta
            .get("tool_calls")
            .and_then(|it| filter_calls(state, it))
        {
            of_delta.push(("tool_calls", array(&calls)));
        }
        if state.held.holds_legacy_calls() && delta.get("function_call").is_some() {
            of_delta.push(("function_call", None));
        }
        if !state.is_first() && delta.get("role").is_some() {
            of_delta.push(("role", None));
        }
    }
    if let Some(delta) = delta.filter(|_| !of_delta.is_empty()) {
        let delta = with_members(delta, &of_delta);
        if !is_end && !says_something(Json::checked(delta.as_bytes())) {
            return Verdict::Drop;
        }
        let choice = with_members(choice, &[("delta", Some(delta))]);
        changes.push(("choices", Some(format!("[{choice}]"))));
    }
    if is_end && state.holds_end() {
        return Verdict::Hold(changed(json, &changes).unwrap_or_else(|| raw(json)));
    }
    changed(json, &changes).map_or(Verdict::Pass, Verdict::Change)
}

/// Returns whether a chunk begins a call whose name is not all there yet, and may become that of a look-up: such a call has to be
/// whole before it is known whose it is.
pub(super) fn begins_unnamed_call(state: &FilterState, json: Json<'_>) -> bool {
    let delta = first_choice(json.get("choices")).and_then(|choice| choice.get("delta"));
    let calls = delta.and_then(|delta| delta.get("tool_calls"));
    let mut calls = calls.into_iter().flat_map(Json::elements);
    calls.any(|call| {
        let [index, function] = call.pick(["index", "function"]);
        let is_known = match index.filter(|index| index.kind() == JsonKind::Number) {
            Some(index) => state.indexes.contains_key(&token_count(Some(index))),
            None => !state.ids.is_empty(),
        };
        let name = text_of(function.and_then(|function| function.get("name")));
        !is_known && state.held.may_become_lookup(&name.unwrap_or_default())
    })
}

/// Returns what is left of the last chunk, or of the usage behind it.
pub(super) fn end(state: &mut FilterState, json: Json<'_>, is_last: bool) -> Option<String> {
    let choice = first_choice(json.get("choices"));
    if !is_last {
        // What is said with the last chunk belongs to the reply.
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
    // Without a call for the client nothing is left that would have to be answered.
    let has_calls = state.indexes.values().any(Option::is_some);
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

/// Returns what is said differently in a later round: it has the id of the first, and the usage of all.
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

/// Returns whether a delta has anything for the client.
fn says_something(delta: Json<'_>) -> bool {
    delta
        .members()
        .any(|(_, value)| !value.is_null() && !matches!(value.bytes(), b"\"\"" | b"[]"))
}

/// Returns calls without those of our tools, and with indexes as if there were none; none if nothing changes.
fn filter_calls(state: &mut FilterState, calls: Json<'_>) -> Option<Vec<String>> {
    let mut is_changed = false;
    let mut left = Vec::new();
    for call in calls.elements() {
        let [index, id, function] = call.pick(["index", "id", "function"]);
        let name = text_of(function.and_then(|function| function.get("name")));
        let id = text_of(id);
        let index = match index.filter(|index| index.kind() == JsonKind::Number) {
            Some(index) => token_count(Some(index)),
            // Without an index, whoever has a name is another call.
            None if name.is_some() => state.ids.len() as u64,
            None => (state.ids.len() as u64).saturating_sub(1),
        };
        let known = state.indexes.contains_key(&index);
        // Some servers give all calls the same index: another id with a name is another call.
        let is_other = id.is_some() && name.is_some() && state.ids.get(&index) != id.as_ref();
        if !known || is_other {
            let at = state.calls;
            state.calls += 1;
            let name = name.as_deref().unwrap_or_default();
            let is_ours = state.held.holds_place(name, at);
            let place = (!is_ours).then(|| index.saturating_sub(state.lookups as u64));
            state.lookups += usize::from(is_ours);
            state.indexes.insert(index, place);
            state.ids.insert(index, id.unwrap_or_default());
        }
        match state.indexes.get(&index).copied().flatten() {
            Some(place) if place == index => left.push(raw(call)),
            Some(place) => {
                is_changed = true;
                left.push(with_members(call, &[("index", Some(place.to_string()))]));
            }
            None => is_changed = true,
        }
    }
    is_changed.then_some(left)
}
