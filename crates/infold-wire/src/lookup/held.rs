//! Decides which calls of a reply are held back.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use super::calls::HeldCall;
use super::{LookupNames, LookupTool};
use crate::reply::growing_json::text_of;
use crate::tool_list::qualified_name;
use crate::{Json, Wire};

/// Judges a call by the name of the tool and its arguments: an object, or a text with one. Returns the text for the
/// model if the call is refused.
pub type CallJudge = Arc<dyn Fn(&str, Option<Json<'_>>) -> Option<String> + Send + Sync>;

/// The reason that a call does not reach the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeldKind {
    /// The call is a look-up, which the proxy answers.
    Lookup(LookupTool),
    /// The call is refused, with this text for the model.
    Refused(String),
}

/// Decides which calls of a reply are held back: look-ups, and those that a judge refuses.
#[derive(Clone, Default)]
pub struct HeldCalls {
    names: Option<LookupNames>,
    judge: Option<CallJudge>,
    /// The calls of this round that are held back, by their place among all calls.
    held_places: HashSet<usize>,
    /// Whether an item of this round is held back, by its index.
    held_items: HashMap<u64, bool>,
}

impl fmt::Debug for HeldCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldCalls")
            .field("names", &self.names)
            .field("held_places", &self.held_places)
            .finish_non_exhaustive()
    }
}

impl HeldCalls {
    /// Holds back look-ups with these names, and calls that the judge refuses.
    pub fn new(names: Option<LookupNames>, judge: Option<CallJudge>) -> HeldCalls {
        HeldCalls {
            names,
            judge,
            ..HeldCalls::default()
        }
    }

    /// Returns whether calls of the deprecated functions are left out: a request under a policy for tools may not offer
    /// them.
    pub(super) fn holds_legacy_calls(&self) -> bool {
        self.judge.is_some()
    }

    /// Returns whether calls have to be complete before they can be classified.
    pub(super) fn has_judge(&self) -> bool {
        self.judge.is_some()
    }

    /// Returns the reason that a call is held back; `None` if it is not.
    pub(super) fn kind(&self, name: &str, arguments: Option<Json<'_>>) -> Option<HeldKind> {
        if let Some(tool) = self.lookup(name) {
            return Some(HeldKind::Lookup(tool));
        }
        let judge = self.judge.as_ref()?;
        judge(name, arguments).map(HeldKind::Refused)
    }

    fn lookup(&self, name: &str) -> Option<LookupTool> {
        self.names.as_ref()?.tool(name)
    }

    /// Remembers the calls of a round that are held back; `order` are the places at which they began, in the order of the message.
    pub(super) fn remember(&mut self, calls: &[HeldCall], order: &[usize]) {
        let places = calls.iter().map(|call| call.at);
        let places = places.map(|at| order.get(at).copied().unwrap_or(at));
        self.held_places.extend(places);
    }

    /// Records whether an item is held back, once it is complete.
    pub(super) fn remember_item(&mut self, index: u64, item: Json<'_>) {
        let is_held = self.holds_item(item);
        *self.held_items.entry(index).or_default() |= is_held;
    }

    /// Returns whether an item has been classified.
    pub(super) fn knows_item(&self, index: u64) -> bool {
        self.held_items.contains_key(&index)
    }

    /// Returns whether the item at an index is held back, which may not be whole yet.
    pub(super) fn holds_item_at(&self, index: u64, item: Option<Json<'_>>) -> bool {
        let known = self.held_items.get(&index).copied();
        known.unwrap_or_else(|| item.is_some_and(|item| self.holds_item(item)))
    }

    /// Returns whether the beginning of a name may become that of a look-up.
    pub(super) fn may_become_lookup(&self, start: &str) -> bool {
        let names = self.names.as_ref();
        names.is_some_and(|names| names.tool(start).is_none() && names.any_starts_with(start))
    }

    /// Forgets the calls of a round.
    pub(super) fn next_round(&mut self) {
        self.held_places.clear();
        self.held_items.clear();
    }

    /// Returns whether the call at a place of the reply is held back, by its name alone.
    pub(super) fn holds_place(&self, name: &str, at: usize) -> bool {
        self.lookup(name).is_some() || self.held_places.contains(&at)
    }

    /// Returns whether an element of a message is a call that is held back, on any wire. Each is judged separately: ids
    /// may be missing, or be the same.
    pub(super) fn holds(&self, element: Json<'_>) -> bool {
        let [kind, name, function, custom, camel, snake] = element.pick([
            "type",
            "name",
            "function",
            "custom",
            "functionCall",
            "function_call",
        ]);
        if camel.or(snake).is_some() {
            let mut calls = camel.into_iter().chain(snake);
            return calls.any(|call| {
                let [name, arguments] = call.pick(["name", "args"]);
                self.holds_call(name, arguments)
            });
        }
        if kind.is_some_and(|kind| kind.is("tool_use")) {
            return self.holds_call(name, element.get("input"));
        }
        // Some servers put the name beside the id.
        let is_flat = || name.is_some() && element.get("arguments").is_some();
        let Some(call) = function.or(custom).or_else(|| is_flat().then_some(element)) else {
            return false;
        };
        let [name, arguments, input] = call.pick(["name", "arguments", "input"]);
        self.holds_call(name, arguments.or(input))
    }

    /// Returns whether an output item is a call that is held back.
    pub(super) fn holds_item(&self, item: Json<'_>) -> bool {
        if !is_client_item(item.get("type")) {
            return false;
        }
        let arguments = item.get("arguments").or_else(|| item.get("input"));
        self.kind(&item_name(item), arguments).is_some()
    }

    fn holds_call(&self, name: Option<Json<'_>>, arguments: Option<Json<'_>>) -> bool {
        let name = name.and_then(Json::text).unwrap_or_default();
        self.kind(&name, arguments).is_some()
    }

    /// Returns whether an element of a response's echo of its tools is a look-up.
    pub(super) fn offers(&self, tool: Json<'_>) -> bool {
        let names = self.names.as_ref();
        names.is_some_and(|names| super::offer::is_ours(names, tool))
    }
}

/// Returns the name of the tool that an output item calls. A tool of the provider's own has the name of its call type,
/// and one that asks for approval that of its server.
pub(super) fn item_name(item: Json<'_>) -> String {
    let keys = ["type", "name", "namespace", "server_label"];
    let [kind, name, space, server] = item.pick(keys).map(text_of);
    let kind = kind.unwrap_or_default();
    match (name, space) {
        _ if kind == APPROVAL_REQUEST => format!("mcp__{}", server.unwrap_or_default()),
        (Some(name), Some(space)) => qualified_name(&space, &name),
        (Some(name), None) => name,
        (None, _) => kind.strip_suffix("_call").unwrap_or(&kind).to_owned(),
    }
}

/// The item by which a provider asks whether it may call a server.
pub(crate) const APPROVAL_REQUEST: &str = "mcp_approval_request";

/// Returns whether an output item of this type is a call that a client runs, or approves: all types except those that
/// providers are known to run.
pub(crate) fn is_client_item(kind: Option<Json<'_>>) -> bool {
    let hosted = [
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
        "tool_search_call",
    ];
    kind.is_some_and(|kind| {
        kind.is(APPROVAL_REQUEST)
            || kind.name().ends_with(b"_call") && !hosted.iter().any(|one| kind.is(one))
    })
}

/// Returns whether an event of a stream has a call, or a part of one, that a client would run.
pub(super) fn has_call(wire: Wire, json: Json<'_>) -> bool {
    let is_call = |element: Json<'_>| {
        let [kind, camel, snake] = element.pick(["type", "functionCall", "function_call"]);
        camel.or(snake).is_some() || kind.is_some_and(|kind| kind.is("tool_use"))
    };
    let has_any = |list: Option<Json<'_>>| {
        list.is_some_and(|it| it.elements().next().is_some() || it.members().next().is_some())
    };
    let any = |list: Option<Json<'_>>, of: &dyn Fn(Json<'_>) -> bool| {
        list.into_iter().flat_map(Json::elements).any(of)
    };
    match wire {
        Wire::Chat => any(json.get("choices"), &|choice| {
            let [delta, message] = choice.pick(["delta", "message"]);
            let mut said = delta.into_iter().chain(message);
            said.any(|said| {
                let [calls, legacy] = said.pick(["tool_calls", "function_call"]);
                has_any(calls) || legacy.is_some_and(|call| !call.is_null())
            })
        }),
        Wire::Responses => {
            let [item, response] = json.pick(["item", "response"]);
            let is_item = |item: Json<'_>| is_client_item(item.get("type"));
            let output = response.and_then(|response| response.get("output"));
            let kind = json.get("type").map(Json::name).unwrap_or_default();
            let is_part = kind.starts_with(b"response.function_call_arguments")
                || kind.starts_with(b"response.custom_tool_call_input");
            is_part || item.is_some_and(is_item) || any(output, &is_item)
        }
        Wire::Anthropic => {
            let [block, message] = json.pick(["content_block", "message"]);
            let content = message.and_then(|message| message.get("content"));
            block.is_some_and(is_call) || any(content, &is_call)
        }
        Wire::Gemini => any(json.get("candidates"), &|candidate| {
            let content = candidate.get("content");
            any(content.and_then(|content| content.get("parts")), &is_call)
        }),
        Wire::Ollama => has_any(json.get("message").and_then(|it| it.get("tool_calls"))),
    }
}
