//! Reads calls that do not reach the client, answers them, and takes them out of messages.

use std::collections::HashMap;

use super::held::{APPROVAL_REQUEST, CallJudge, HeldCalls, HeldKind, item_name};
use crate::client_call::{AnsweredCall, GivenArguments, given_arguments, join_results};
use crate::reply::growing_json::{array, raw, text_of, with_members};
use crate::tool_list::qualified_name;
use crate::{ContentBlock, Form, Json, JsonKind, Message, Wire, quote};

/// A call that does not reach the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldCall {
    /// The reason that the call is held back.
    pub kind: HeldKind,
    /// The name under which it was called.
    pub name: String,
    /// The call's id, if the wire has one.
    pub id: Option<String>,
    /// The arguments, as texts.
    pub arguments: Vec<(String, String)>,
    /// The number of calls of the client's tools before it in the reply.
    pub before: usize,
    /// The number of calls of all tools before it in the reply.
    pub(super) at: usize,
    /// The type of the call's item, on the wire of Responses.
    item: Option<String>,
}

/// The calls of a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplyCalls {
    /// Calls that do not reach the client.
    pub held: Vec<HeldCall>,
    /// The number of calls for the client.
    pub others: usize,
}

/// The result of a call beside calls of the client's tools: it is sent with their results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingResult {
    /// The number of results of the client's before it.
    pub before: usize,
    /// A message with this result alone.
    pub message: Vec<u8>,
}

/// Finds the calls in the messages of a reply.
pub fn find_calls(held: &HeldCalls, messages: &[Vec<u8>]) -> ReplyCalls {
    let mut found = ReplyCalls::default();
    let mut at = 0;
    let messages = messages
        .iter()
        .filter_map(|bytes| Message::read(bytes).ok());
    for message in messages {
        let json = message.json();
        if json
            .get("type")
            .is_some_and(|kind| kind.is(APPROVAL_REQUEST))
        {
            let name = item_name(json);
            match held.kind(&name, json.get("arguments")) {
                Some(kind) => found.held.push(HeldCall {
                    kind,
                    name,
                    id: text_of(json.get("id")),
                    arguments: Vec::new(),
                    before: found.others,
                    at,
                    item: Some(APPROVAL_REQUEST.to_owned()),
                }),
                None => found.others += 1,
            }
            at += 1;
            continue;
        }
        let given = given_arguments(&message);
        let blocks = ContentBlock::all(&message).into_iter();
        let calls = blocks.filter_map(|block| match block {
            ContentBlock::Call {
                id,
                name,
                arguments,
            } => Some((id, name, arguments)),
            _ => None,
        });
        for ((id, name, arguments), given) in calls.zip(given) {
            let [kind, space] = message.json().pick(["type", "namespace"]);
            let name = match space.and_then(Json::text) {
                Some(space) => qualified_name(&space, &name),
                None => name,
            };
            let kind_of_call = match given {
                GivenArguments::Hosted => None,
                GivenArguments::Client(given) => held.kind(&name, given),
            };
            match kind_of_call {
                Some(held) => found.held.push(HeldCall {
                    kind: held,
                    name,
                    id,
                    arguments,
                    before: found.others,
                    at,
                    item: kind.and_then(Json::text).map(|kind| kind.into_owned()),
                }),
                None => found.others += 1,
            }
            at += 1;
        }
    }
    found
}

/// The calls of a reply that a judge refuses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JudgedReply {
    /// The refused calls, each with the text for the model.
    pub refused: Vec<(HeldCall, String)>,
    /// The reply without them, if it has other calls.
    pub others: Option<Vec<Vec<u8>>>,
}

/// Judges the calls in the messages of a reply.
pub fn judge_reply(judge: CallJudge, messages: &[Vec<u8>]) -> JudgedReply {
    let mut held = HeldCalls::new(None, Some(judge));
    let calls = find_calls(&held, messages);
    held.remember(&calls.held, &[]);
    let others = (calls.others > 0).then(|| {
        let messages = messages.iter();
        messages.filter_map(|it| strip_calls(&held, it)).collect()
    });
    let refused = calls.held.into_iter().filter_map(|call| match &call.kind {
        HeldKind::Refused(told) => Some((call.clone(), told.clone())),
        HeldKind::Lookup(_) => None,
    });
    JudgedReply {
        refused: refused.collect(),
        others,
    }
}

/// Writes results as messages: one with all of them where the wire wants that, else one for each.
pub fn write_results(wire: Wire, results: &[(&HeldCall, Result<String, String>)]) -> Vec<Vec<u8>> {
    let written = results.iter().map(|(call, result)| {
        let answered = AnsweredCall {
            id: call.id.as_deref(),
            name: &call.name,
            item: call.item.as_deref(),
        };
        answered.write(wire, result)
    });
    join_results(wire, written.collect())
}

/// Returns a message of a reply without calls that are held back; none if nothing else is in it.
pub fn strip_calls(held: &HeldCalls, bytes: &[u8]) -> Option<Vec<u8>> {
    let Ok(message) = Message::read(bytes) else {
        return Some(bytes.to_vec());
    };
    let json = message.json();
    if let Form::Item(_) = message.form() {
        return (!held.holds_item(json)).then(|| bytes.to_vec());
    }
    let mut changes = Vec::new();
    for list in ["tool_calls", "content", "parts"] {
        let Some(value) = json.get(list).filter(|it| it.kind() == JsonKind::Array) else {
            continue;
        };
        let (left, count) = strip_list(held, value);
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

/// Returns the messages of a reply in which every call that is held back can be answered: with an id that no other call has, and with
/// arguments that can be sent back.
pub(super) fn with_own_ids(held: &HeldCalls, messages: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let read = || messages.iter().filter_map(|bytes| Json::parse(bytes).ok());
    let mut counts: HashMap<String, usize> = HashMap::new();
    for json in read() {
        let [item, calls, content] = json.pick(["call_id", "tool_calls", "content"]);
        let lists = calls.into_iter().chain(content).flat_map(Json::elements);
        let ids = lists.filter_map(|call| call.get("id")).chain(item);
        for id in ids.filter_map(|id| text_of(Some(id))) {
            *counts.entry(id).or_default() += 1;
        }
    }
    let mut number = 0;
    let mut fresh = |start: &str, id: Option<Json<'_>>| {
        let id = text_of(id).filter(|id| !id.is_empty());
        if id.is_some_and(|id| counts.get(&id) == Some(&1)) {
            return None;
        }
        number += 1;
        while counts.contains_key(&format!("{start}_infold_{number}")) {
            number += 1;
        }
        Some(quote(&format!("{start}_infold_{number}")))
    };
    let mut repaired = |bytes: &Vec<u8>| {
        let json = Json::parse(bytes).ok()?;
        let is_item = json
            .get("type")
            .is_some_and(|kind| kind.name().ends_with(b"_call"));
        if is_item {
            let id = json.get("call_id");
            let id = held.holds_item(json).then(|| fresh("call", id)).flatten()?;
            return Some(with_members(json, &[("call_id", Some(id))]).into_bytes());
        }
        let (name, list, start) = match json.get("tool_calls") {
            Some(calls) => ("tool_calls", calls, "call"),
            None => ("content", json.get("content")?, "toolu"),
        };
        let elements = list.elements().map(|call| {
            if !held.holds(call) {
                return raw(call);
            }
            let mut changes = Vec::new();
            // Ollama's calls have no ids.
            let is_numbered = start == "toolu" || call.get("type").is_some();
            if let Some(id) = is_numbered.then(|| fresh(start, call.get("id"))).flatten() {
                changes.push(("id", Some(id)));
            }
            let input = call.get("input");
            if start == "toolu" && input.is_none_or(|input| input.kind() != JsonKind::Object) {
                changes.push(("input", Some("{}".to_owned())));
            }
            with_members(call, &changes)
        });
        let elements: Vec<String> = elements.collect();
        (!elements.is_empty()).then(|| {
            let list = format!("[{}]", elements.join(","));
            with_members(json, &[(name, Some(list))]).into_bytes()
        })
    };
    let all = messages.iter();
    all.map(|bytes| repaired(bytes).unwrap_or_else(|| bytes.clone()))
        .collect()
}

/// Returns the elements of a list that are not held back, and how many there were.
pub(super) fn strip_list(held: &HeldCalls, list: Json<'_>) -> (Vec<String>, usize) {
    let all: Vec<Json<'_>> = list.elements().collect();
    let left = all.iter().filter(|element| !held.holds(**element));
    (left.map(|element| raw(*element)).collect(), all.len())
}
