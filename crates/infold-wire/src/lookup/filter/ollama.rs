//! Filters the lines of an Ollama reply.

use super::{CallVerdict, FilterState, changed};
use crate::Json;
use crate::lookup::calls::strip_list;
use crate::reply::growing_json::{array, object, pick, raw, with_members};

/// The counts in the last line: tokens and durations.
pub(in crate::lookup) const COUNTS: [&str; 6] = [
    "total_duration",
    "load_duration",
    "prompt_eval_count",
    "prompt_eval_duration",
    "eval_count",
    "eval_duration",
];

pub(super) fn event(state: &mut FilterState, json: Json<'_>) -> CallVerdict {
    let [message, done, created] = pick("message done created_at", json);
    state.remember(created, None);
    state.report(Some(Json::checked(counts(json).as_bytes())));
    let is_end = done.is_some_and(Json::is_true);
    let mut changes = Vec::new();
    let calls = message.and_then(|message| message.get("tool_calls"));
    if let (Some(message), Some(calls)) = (message, calls) {
        let (left, count) = strip_list(&state.held, calls);
        state.has_client_calls |= !left.is_empty();
        if left.len() < count {
            state.lookups += count - left.len();
            let message = with_members(message, &[("tool_calls", array(&left))]);
            if !is_end && !says_something(Json::checked(message.as_bytes())) {
                return CallVerdict::Drop;
            }
            changes.push(("message", Some(message)));
        }
    }
    if is_end && state.holds_end() {
        return CallVerdict::Hold(changed(json, &changes).unwrap_or_else(|| raw(json)));
    }
    if is_end && !state.is_first() {
        let summed = state.summed_usage().unwrap_or_default();
        let summed = summed_counts(&summed);
        changes.extend(summed);
    }
    changed(json, &changes).map_or(CallVerdict::Pass, CallVerdict::Change)
}

/// Returns the rest of the last line for the client.
pub(super) fn end(state: &mut FilterState, json: Json<'_>, is_last: bool) -> Option<String> {
    if is_last {
        if state.is_first() {
            return Some(raw(json));
        }
        let summed = state.summed_usage().unwrap_or_default();
        return Some(with_members(json, &summed_counts(&summed)));
    }
    // Text in the last line belongs to the reply.
    if !json.get("message").is_some_and(says_something) {
        return None;
    }
    let mut changes = vec![("done", Some("false".to_owned())), ("done_reason", None)];
    changes.extend(COUNTS.map(|name| (name, None)));
    Some(with_members(json, &changes))
}

/// Returns whether a message has content for the client.
fn says_something(message: Json<'_>) -> bool {
    message.members().any(|(name, value)| {
        !name.is("role") && !value.is_null() && !matches!(value.bytes(), b"\"\"" | b"[]")
    })
}

/// Returns the counts of a line as one object.
pub(in crate::lookup) fn counts(json: Json<'_>) -> String {
    object(&COUNTS.map(|name| (name, json.get(name).map(raw))))
}

/// Returns summed counts as changes of a line.
pub(in crate::lookup) fn summed_counts(summed: &str) -> Vec<(&'static str, Option<String>)> {
    let Ok(summed) = Json::parse(summed.as_bytes()) else {
        return Vec::new();
    };
    let counts = COUNTS.into_iter();
    counts
        .filter_map(|name| Some((name, Some(raw(summed.get(name)?)))))
        .collect()
}
