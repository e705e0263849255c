//! Filters the events of a response.

use super::{CallVerdict, FilterState, changed};
use crate::lookup::HeldCalls;
use crate::reply::growing_json::{pick, raw, token_count, with_members};
use crate::{Json, JsonKind};

pub(super) fn event(state: &mut FilterState, name: &[u8], json: Json<'_>) -> CallVerdict {
    let keys = "type response item output_index sequence_number";
    let [kind, response, item, index, sequence] = pick(keys, json);
    if let (None, Some(first)) = (state.next_sequence, sequence) {
        state.next_sequence = Some(token_count(Some(first)));
    }
    let kind = kind.map(Json::name);
    let kind = kind.as_deref().unwrap_or(name);
    let mut changes = Vec::new();
    match (kind, response) {
        (b"response.created" | b"response.in_progress" | b"response.queued", Some(response)) => {
            if !state.is_first() {
                return CallVerdict::Drop;
            }
            let [id, created] = response.pick(["id", "created_at"]);
            state.remember(id, created);
            if let Some(tools) = without_ours(state, response) {
                let response = with_members(response, &[("tools", Some(tools))]);
                changes.push(("response", Some(response)));
            }
        }
        (
            b"response.completed"
            | b"response.incomplete"
            | b"response.failed"
            | b"response.cancelled",
            Some(response),
        ) => {
            state.report(response.get("usage"));
            if state.holds_end() {
                return CallVerdict::Hold(raw(json));
            }
            let of_response = of_response(state, response);
            if let Some(response) = changed(response, &of_response) {
                changes.push(("response", Some(response)));
            }
        }
        _ => {
            if let Some(index) = index {
                let index = token_count(Some(index));
                match place(state, index, item) {
                    None => return CallVerdict::Drop,
                    Some(place) if place != index => {
                        changes.push(("output_index", Some(place.to_string())));
                    }
                    Some(_) => {}
                }
            }
            if let Some(item) = item.filter(|_| kind == b"response.output_item.done") {
                state.items.push(raw(item));
            }
        }
    }
    changes.extend(numbered(state, sequence));
    changed(json, &changes).map_or(CallVerdict::Pass, CallVerdict::Change)
}

/// Remembers the items of an event that are whole.
pub(super) fn remember_items(held: &mut HeldCalls, json: Json<'_>) {
    let [kind, item, index, response] = pick("type item output_index response", json);
    if kind.is_some_and(|kind| kind.is("response.output_item.done"))
        && let Some(item) = item
    {
        held.remember_item(token_count(index), item);
    }
    // The events at the end of a response.
    let is_over =
        kind.is_some_and(|kind| !kind.is("response.created") && !kind.is("response.in_progress"));
    let output = response
        .filter(|_| is_over)
        .and_then(|response| response.get("output"));
    for (index, item) in (0..).zip(output.into_iter().flat_map(Json::elements)) {
        if !held.knows_item(index) {
            held.remember_item(index, item);
        }
    }
}

/// Returns the index that an item has for the client; `None` if it is a call of ours.
fn place(state: &mut FilterState, index: u64, item: Option<Json<'_>>) -> Option<u64> {
    if let Some(place) = state.indexes.get(&index) {
        return *place;
    }
    let is_ours = state.held.holds_item_at(index, item);
    let place = (!is_ours).then_some(state.next_index);
    state.lookups += usize::from(is_ours);
    state.next_index += u64::from(!is_ours);
    state.indexes.insert(index, place);
    place
}

/// Sets the sequence number of a forwarded event; `None` if it has that already.
fn numbered(
    state: &mut FilterState,
    sequence: Option<Json<'_>>,
) -> Option<(&'static str, Option<String>)> {
    let sequence = token_count(Some(sequence?));
    let next = state.next_sequence.get_or_insert(sequence);
    let number = *next;
    *next += 1;
    (number != sequence).then(|| ("sequence_number", Some(number.to_string())))
}

/// Returns the rest of the end of a response for the client.
pub(super) fn end(state: &mut FilterState, json: Json<'_>, is_last: bool) -> Option<String> {
    let response = json.get("response")?;
    if !is_last {
        let output = output(state, response);
        state.items_before = output;
        state.items.clear();
        return None;
    }
    let of_response = of_response(state, response);
    let mut changes = Vec::new();
    if let Some(response) = changed(response, &of_response) {
        changes.push(("response", Some(response)));
    }
    changes.extend(numbered(state, json.get("sequence_number")));
    Some(changed(json, &changes).unwrap_or_else(|| raw(json)))
}

/// Returns all items for the client: those of the earlier rounds and of this one.
pub(in crate::lookup) fn output(state: &FilterState, response: Json<'_>) -> Vec<String> {
    let output = response.get("output").into_iter().flat_map(Json::elements);
    let output: Vec<Json<'_>> = output.collect();
    let mut items = state.items_before.clone();
    if output.is_empty() {
        // Some servers omit them at the end.
        items.extend(state.items.iter().cloned());
    } else {
        let left = output
            .into_iter()
            .filter(|item| !state.held.holds_item(*item));
        items.extend(left.map(raw));
    }
    items
}

/// Returns the members that differ for the client in the end of a response.
pub(in crate::lookup) fn of_response(
    state: &FilterState,
    response: Json<'_>,
) -> Vec<(&'static str, Option<String>)> {
    let mut changes = Vec::new();
    if let Some(tools) = without_ours(state, response) {
        changes.push(("tools", Some(tools)));
    }
    let held = response.get("output").into_iter().flat_map(Json::elements);
    let has_held = held.into_iter().any(|item| state.held.holds_item(item));
    if state.lookups > 0 || has_held || !state.is_first() {
        let items = output(state, response);
        changes.push(("output", Some(format!("[{}]", items.join(",")))));
    }
    if !state.is_first() {
        // A chain that the provider stores continues from its last response, which has the earlier messages.
        let previous = response.get("previous_response_id");
        if previous.is_none_or(Json::is_null) {
            changes.push(("id", state.id.clone()));
        }
        if state.created.is_some() {
            changes.push(("created_at", state.created.clone()));
        }
        let is_report = |usage: &Json<'_>| usage.kind() == JsonKind::Object;
        if response.get("usage").filter(is_report).is_some() {
            changes.push(("usage", state.summed_usage()));
        }
    }
    changes
}

/// Returns the tools that a response repeats, without ours; `None` if there are none of ours.
fn without_ours(state: &FilterState, response: Json<'_>) -> Option<String> {
    let tools = response.get("tools")?;
    let all: Vec<Json<'_>> = tools.elements().collect();
    let left = all.iter().filter(|tool| !state.held.offers(**tool));
    let left: Vec<String> = left.map(|tool| raw(*tool)).collect();
    (left.len() < all.len()).then(|| format!("[{}]", left.join(",")))
}
