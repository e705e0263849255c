//! Filters the chunks of a Gemini reply.

use super::{CallVerdict, FilterState, changed};
use crate::Json;
use crate::lookup::calls::strip_list;
use crate::reply::growing_json::{array, first_choice, pick, raw, with_members};

pub(super) fn event(state: &mut FilterState, json: Json<'_>) -> CallVerdict {
    let [id, candidates, usage] = pick("responseId candidates usageMetadata", json);
    state.remember(id, None);
    state.report(usage);
    let mut changes = of_later_round(state, json);
    let Some(candidate) = first_choice(candidates) else {
        return match changed(json, &changes) {
            _ if state.holds_end() => CallVerdict::Hold(raw(json)),
            Some(data) => CallVerdict::Change(data),
            None => CallVerdict::Pass,
        };
    };
    let [content, finish] = candidate.pick(["content", "finishReason"]);
    let is_end = finish.is_some_and(|finish| !finish.is_null());
    let parts = content.and_then(|content| content.get("parts"));
    if let (Some(content), Some(parts)) = (content, parts) {
        let (left, count) = strip_list(&state.held, parts);
        let calls = left.iter().any(|part| {
            let part = Json::checked(part.as_bytes());
            let [camel, snake] = part.pick(["functionCall", "function_call"]);
            camel.or(snake).is_some()
        });
        state.has_client_calls |= calls;
        if left.len() < count {
            state.lookups += count - left.len();
            if left.is_empty() && !is_end {
                return CallVerdict::Drop;
            }
            let content = with_members(content, &[("parts", array(&left))]);
            let candidate = with_members(candidate, &[("content", Some(content))]);
            changes.push(("candidates", Some(format!("[{candidate}]"))));
        }
    }
    if is_end && state.holds_end() {
        return CallVerdict::Hold(changed(json, &changes).unwrap_or_else(|| raw(json)));
    }
    changed(json, &changes).map_or(CallVerdict::Pass, CallVerdict::Change)
}

/// Returns the rest of the last chunk for the client.
pub(super) fn end(state: &mut FilterState, json: Json<'_>, is_last: bool) -> Option<String> {
    if is_last {
        let changes = of_later_round(state, json);
        return Some(changed(json, &changes).unwrap_or_else(|| raw(json)));
    }
    // Text in the last chunk belongs to the reply.
    let candidate = first_choice(json.get("candidates"))?;
    let parts = candidate.get("content")?.get("parts")?;
    parts.elements().next()?;
    let changes = [("finishReason", None), ("finishMessage", None)];
    let candidate = with_members(candidate, &changes);
    Some(with_members(
        json,
        &[("candidates", Some(format!("[{candidate}]")))],
    ))
}

/// Returns the changed members of a later round: the id of the first round, and the usage of all.
fn of_later_round(state: &FilterState, json: Json<'_>) -> Vec<(&'static str, Option<String>)> {
    let mut changes = Vec::new();
    if state.is_first() {
        return changes;
    }
    if json.get("responseId").is_some() {
        changes.push(("responseId", state.id.clone()));
    }
    if json.get("usageMetadata").is_some() {
        changes.push(("usageMetadata", state.summed_usage()));
    }
    changes
}
