//! Decides which calls of a reply are held back.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use super::calls::HeldCall;
use super::{LookupNames, LookupTool};
use crate::tool_list::qualified_name;
use crate::{Json, Wire};

/// Judges a call by the name of the tool and its arguments: an object, or a text with one. Returns what the model is told if it is
/// refused.
pub type CallJudge = Arc<dyn Fn(&str, Option<Json<'_>>) -> Option<String> + Send + Sync>;

/// Why a call does not reach the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeldKind {
    /// It is a look-up, which the proxy answers.
    Lookup(LookupTool),
    /// It is refused, and this is what the model is told.
    Refused(String),
}

/// Which calls of a reply are held back: look-ups, and those that a judge refuses.
#[derive(Clone, Default)]
pub struct HeldCalls {
    names: Option<LookupNames>,
    judge: Option<CallJudge>,
    /// The calls of this round that are refused, by id, and all that are held back, by their place among all calls.
    refused_ids: HashSet<String>,
    held_places: HashSet<usize>,
}

impl fmt::Debug for HeldCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldCalls")
            .field("names", &self.names)
            .field("refused_ids", &self.refused_ids)
            .finish_non_exhaustive()
    }
}

impl HeldCalls {
    /// Holds back look-ups under these names, and what the judge refuses.
    pub fn new(names: Option<LookupNames>, judge: Option<CallJudge>) -> HeldCalls {
        HeldCalls {
            names,
            judge,
            ..HeldCalls::default()
        }
    }

    /// Returns whether calls in the form of the predecessors of tools are left out: nobody who is judged may offer them.
    pub(super) fn holds_legacy_calls(&self) -> bool {
        self.judge.is_some()
    }

    /// Returns whether calls have to be whole before it is known whether they are held back.
    pub(super) fn has_judge(&self) -> bool {
        self.judge.is_some()
    }

    /// Returns why a call is held back; none if it is not.
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

    /// Remembers the calls of a round that are held back.
    pub(super) fn remember(&mut self, calls: &[HeldCall]) {
        for call in calls {
            self.held_places.insert(call.at);
            if matches!(call.kind, HeldKind::Refused(_)) {
                self.refused_ids.extend(call.id.clone());
            }
        }
    }

    /// Returns whether the beginning of a name may become that of a look-up.
    pub(super) fn may_become_lookup(&self, start: &str) -> bool {
        let names = self.names.as_ref();
        names.is_some_and(|names| names.tool(start).is_none() && names.any_starts_with(start))
    }

    /// Forgets the calls of a round.
    pub(super) fn next_round(&mut self) {
        self.refused_ids.clear();
        self.held_places.clear();
    }

    /// Returns whether the call at a place of the reply is held back, of which only the name is known yet.
    pub(super) fn holds_place(&self, name: &str, at: usize) -> bool {
        self.lookup(name).is_some() || self.held_places.contains(&at)
    }

    /// Returns whether an element of a message is a call that is held back, on any wire.
    pub(super) fn holds(&self, element: Json<'_>) -> bool {
        let [kind, name, function, custom, gemini] =
            element.pick(["type", "name", "function", "custom", "functionCall"]);
        if let Some(call) = gemini {
            // It comes whole, and mostly without an id.
            let [name, arguments] = call.pick(["name", "args"]);
            return self.holds_whole(name, arguments);
        }
        let (name, arguments) = match function.or(custom) {
            Some(call) => {
                let [name, arguments, input] = call.pick(["name", "arguments", "input"]);
                (name, arguments.or(input))
            }
            None if kind.is_some_and(|kind| kind.is("tool_use")) => (name, element.get("input")),
            None => return false,
        };
        self.holds_call(name, element.get("id"), arguments)
    }

    /// Returns whether an output item is a call that is held back.
    pub(super) fn holds_item(&self, item: Json<'_>) -> bool {
        let [kind, name, space, id] = item.pick(["type", "name", "namespace", "call_id"]);
        let arguments = item.get("arguments").or_else(|| item.get("input"));
        if !is_client_item(kind) {
            return false;
        }
        match (space.and_then(Json::text), name.and_then(Json::text)) {
            (Some(space), Some(name)) => {
                let name = crate::quote(&qualified_name(&space, &name));
                self.holds_call(Some(Json::checked(name.as_bytes())), id, arguments)
            }
            (None, None) => {
                // A tool of the provider's own is named by the type of its calls.
                let kind = kind.and_then(Json::text).unwrap_or_default();
                let name = crate::quote(kind.strip_suffix("_call").unwrap_or(&kind));
                self.holds_call(Some(Json::checked(name.as_bytes())), id, arguments)
            }
            _ => self.holds_call(name, id, arguments),
        }
    }

    fn holds_call(
        &self,
        name: Option<Json<'_>>,
        id: Option<Json<'_>>,
        arguments: Option<Json<'_>>,
    ) -> bool {
        let id = id.and_then(Json::text).filter(|id| !id.is_empty());
        match id {
            Some(id) => {
                let name = name.and_then(Json::text);
                name.is_some_and(|name| self.lookup(&name).is_some())
                    || self.refused_ids.contains(&*id)
            }
            None => self.holds_whole(name, arguments),
        }
    }

    fn holds_whole(&self, name: Option<Json<'_>>, arguments: Option<Json<'_>>) -> bool {
        let name = name.and_then(Json::text);
        name.is_some_and(|name| self.kind(&name, arguments).is_some())
    }

    /// Returns whether an element of a response's echo of its tools is a look-up.
    pub(super) fn offers(&self, tool: Json<'_>) -> bool {
        let names = self.names.as_ref();
        names.is_some_and(|names| super::offer::is_ours(names, tool))
    }
}

/// Returns whether an output item of this type is a call that a client runs.
pub(crate) fn is_client_item(kind: Option<Json<'_>>) -> bool {
    let kinds = [
        "function_call",
        "custom_tool_call",
        "local_shell_call",
        "shell_call",
        "apply_patch_call",
        "computer_call",
    ];
    kind.is_some_and(|kind| kinds.iter().any(|one| kind.is(one)))
}

/// Returns whether an event of a stream has a call, or a part of one, that a client would run.
pub(super) fn has_call(wire: Wire, json: Json<'_>) -> bool {
    let is_call = |element: Json<'_>| {
        let [kind, function] = element.pick(["type", "functionCall"]);
        function.is_some() || kind.is_some_and(|kind| kind.is("tool_use"))
    };
    let has_any = |list: Option<Json<'_>>| list.is_some_and(|it| it.elements().next().is_some());
    let any = |list: Option<Json<'_>>, of: &dyn Fn(Json<'_>) -> bool| {
        list.into_iter().flat_map(Json::elements).any(of)
    };
    match wire {
        Wire::Chat => any(json.get("choices"), &|choice| {
            let [delta, message] = choice.pick(["delta", "message"]);
            let said = delta.or(message);
            said.is_some_and(|said| {
                let [calls, legacy] = said.pick(["tool_calls", "function_call"]);
                has_any(calls) || legacy.is_some_and(|call| !call.is_null())
            })
        }),
        Wire::Responses => {
            let [item, response] = json.pick(["item", "response"]);
            let is_item = |item: Json<'_>| is_client_item(item.get("type"));
            let output = response.and_then(|response| response.get("output"));
            item.is_some_and(is_item) || any(output, &is_item)
        }
        Wire::Anthropic => json.get("content_block").is_some_and(is_call),
        Wire::Gemini => any(json.get("candidates"), &|candidate| {
            let content = candidate.get("content");
            any(content.and_then(|content| content.get("parts")), &is_call)
        }),
        Wire::Ollama => has_any(json.get("message").and_then(|it| it.get("tool_calls"))),
    }
}
