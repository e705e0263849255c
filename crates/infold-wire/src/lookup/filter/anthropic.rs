//! Filters the events of an Anthropic stream: removes the calls that are held back (look-ups and refused calls),
//! renumbers the blocks that follow, and makes one message of several rounds.

use super::{CallVerdict, FilterState, changed};
use crate::Json;
use crate::lookup::calls::strip_list;
use crate::message::block_is;
use crate::reply::growing_json::{pick, raw, text_of, token_count, with_members};

/// Decides on an event; `name` is that of the stream, for data without a `type`.
pub(super) fn event(state: &mut FilterState, name: &[u8], json: Json<'_>) -> CallVerdict {
    let [kind, message, index, block, usage] = pick("type message index content_block usage", json);
    let kind = kind.map(Json::name);
    match kind.as_deref().unwrap_or(name) {
        b"message_start" => {
            state.remember(message.and_then(|message| message.get("id")), None);
            state.report(message.and_then(|message| message.get("usage")));
            let content = message.and_then(|message| message.get("content"));
            if let (Some(message), Some(content)) = (message, content) {
                let blocks = content
                    .elements()
                    .filter(|block| block_is(*block, "tool_use"));
                state.calls += blocks.count();
                let (left, count) = strip_list(&state.held, content);
                // The start of a later round is dropped below, so only that of the first is changed.
                if left.len() < count && state.is_first() {
                    state.lookups += count - left.len();
                    let content = Some(format!("[{}]", left.join(",")));
                    let message = with_members(message, &[("content", content)]);
                    return CallVerdict::Change(with_members(json, &[("message", Some(message))]));
                }
            }
            // The client sees one message, which the first round has begun.
            if state.is_first() {
                CallVerdict::Pass
            } else {
                CallVerdict::Drop
            }
        }
        b"content_block_start" => {
            let call = block.filter(|block| block_is(*block, "tool_use"));
            let is_call = call.is_some();
            // Only the name of the call is known, because its input comes in later events. A call that was judged by
            // its input is recognised by its place among the calls of the round.
            let name = text_of(call.and_then(|call| call.get("name"))).unwrap_or_default();
            let is_ours = is_call && state.held.holds_place(&name, state.calls);
            state.calls += usize::from(is_call);
            let place = (!is_ours).then_some(state.next_index);
            state.lookups += usize::from(is_ours);
            state.has_client_calls |= is_call && !is_ours;
            state.next_index += u64::from(!is_ours);
            state.indexes.insert(token_count(index), place);
            at_its_place(state, json, index)
        }
        b"content_block_delta" | b"content_block_stop" => at_its_place(state, json, index),
        b"message_delta" => {
            state.report(usage);
            // Another round may follow, so the client does not get the stop reason yet.
            if state.holds_end() {
                return CallVerdict::Hold(raw(json));
            }
            changed(json, &of_later_round(state)).map_or(CallVerdict::Pass, CallVerdict::Change)
        }
        b"message_stop" if state.holds_end() => CallVerdict::Hold(raw(json)),
        _ => CallVerdict::Pass,
    }
}

/// Gives an event of a block the index that the block has for the client, or drops it if the block is held back.
fn at_its_place(state: &FilterState, json: Json<'_>, index: Option<Json<'_>>) -> CallVerdict {
    let index = token_count(index);
    match state.indexes.get(&index).copied() {
        Some(None) => CallVerdict::Drop,
        Some(Some(place)) if place != index => {
            CallVerdict::Change(with_members(json, &[("index", Some(place.to_string()))]))
        }
        Some(Some(_)) | None => CallVerdict::Pass,
    }
}

/// Returns what the client gets of an event that was held back at the end of a round: nothing unless the round is the
/// last.
pub(super) fn end(state: &mut FilterState, json: Json<'_>, is_last: bool) -> Option<String> {
    if !is_last {
        return None;
    }
    let Some(delta) = json.get("delta") else {
        return Some(raw(json));
    };
    let mut changes = of_later_round(state);
    // All calls were held back. With `tool_use` the client would look for a call that it did not get.
    let calls = delta.get("stop_reason").is_some_and(|it| it.is("tool_use"));
    if calls && !state.has_client_calls {
        let stop = Some("\"end_turn\"".to_owned());
        changes.push(("delta", Some(with_members(delta, &[("stop_reason", stop)]))));
    }
    Some(changed(json, &changes).unwrap_or_else(|| raw(json)))
}

/// Returns the changes to the end of a message that has several rounds: the usage of all of them.
fn of_later_round(state: &FilterState) -> Vec<(&'static str, Option<String>)> {
    if state.is_first() {
        Vec::new()
    } else {
        vec![("usage", state.summed_usage())]
    }
}
