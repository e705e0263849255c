//! Adds the tools to a request, and the results of their calls.

use std::ops::Range;

use crate::envelope::list_name;
use crate::message::block_is;
use crate::reply::growing_json::{raw, with_members};
use crate::request_options::RequestOptions;
use crate::tools::{ToolChoice, convert_tools, write_tool_choice};
use crate::{Json, JsonKind, Message, Wire, quote, splice_unordered};

/// A tool that is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupTool {
    /// Finds messages by their words.
    Search,
    /// Reads messages in full.
    Recall,
}

/// The names under which the tools are offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupNames {
    search: String,
    recall: String,
}

/// The tools of one request, with those that are offered beside the client's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupOffer {
    /// The names under which the tools are offered.
    pub names: LookupNames,
    /// The new value of `tools`.
    pub tools: String,
    /// The client's own value of `tools`, if it has any tool.
    own: Option<String>,
}

/// The prefix of a name that the client uses for a tool of its own.
const OTHER_PREFIX: &str = "infold_";

/// The tools, in Anthropic's form. `{search}` and `{recall}` are placeholders for their names.
const TOOLS: &str = r#"[{"name":"{search}","description":"Finds earlier messages of this conversation by their words, also those that were summarised or hidden and that you no longer see: decisions, values, paths, errors, commands and their results. Best match first, each with its number and the lines that match.","input_schema":{"type":"object","properties":{"query":{"type":"string","description":"Words, \"a phrase\", -excluded, prefix*; names and paths as they were written"},"limit":{"type":"integer","description":"The number of hits, at most 50; 10 if it is left out"}},"required":["query"]}},{"name":"{recall}","description":"Reads earlier messages of this conversation in full as they were, also those that were summarised or hidden, by their numbers; or a fold: its text and all it stands for.","input_schema":{"type":"object","properties":{"range":{"type":"string","description":"A message (12), a range (12..40, 12-40, 12..), or a fold (e7)"},"offset":{"type":"integer","description":"Skips so many characters of the first message, where an earlier result was cut"}},"required":["range"]}}]"#;

impl LookupTool {
    /// Returns the canonical name of the tool.
    pub fn name(self) -> &'static str {
        match self {
            LookupTool::Search => "search_history",
            LookupTool::Recall => "recall",
        }
    }
}

impl LookupNames {
    /// Chooses names that no tool of the client has; none if it has all that could be chosen.
    pub fn beside(own: &[String]) -> Option<LookupNames> {
        let named = |prefix: &str| LookupNames {
            search: format!("{prefix}{}", LookupTool::Search.name()),
            recall: format!("{prefix}{}", LookupTool::Recall.name()),
        };
        let is_free = |names: &LookupNames| own.iter().all(|name| names.tool(name).is_none());
        ["", OTHER_PREFIX].map(named).into_iter().find(is_free)
    }

    /// Returns the name of the tool that reads messages.
    pub fn recall(&self) -> &str {
        &self.recall
    }

    /// Returns whether one of the names begins so.
    pub(super) fn any_starts_with(&self, start: &str) -> bool {
        self.search.starts_with(start) || self.recall.starts_with(start)
    }

    /// Returns the tool that is offered under a name.
    pub fn tool(&self, name: &str) -> Option<LookupTool> {
        if name == self.search {
            return Some(LookupTool::Search);
        }
        (name == self.recall).then_some(LookupTool::Recall)
    }

    /// Returns whether a JSON string is one of the names.
    fn has(&self, name: Option<Json<'_>>) -> bool {
        let name = name.and_then(Json::text);
        name.is_some_and(|name| self.tool(&name).is_some())
    }
}

impl LookupOffer {
    /// About how many bytes the tools add to a request.
    pub const BYTES: u64 = TOOLS.len() as u64;

    /// Offers the tools in a request; `None` if that would change the meaning of the client's request, or be refused.
    ///
    /// `member` returns the JSON of a member of the request, if there is one. The tools are put behind the client's
    /// own, so that they are at the same place in each request.
    pub fn new(wire: Wire, member: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> Option<LookupOffer> {
        let options = RequestOptions::read(wire, member);
        let names = LookupNames::beside(&options.tool_names)?;
        let mut flag = |name: &str, holds: &dyn Fn(Json<'_>) -> bool| {
            let bytes = member(name);
            let json = bytes.as_deref().and_then(|bytes| Json::parse(bytes).ok());
            json.is_some_and(|json| !json.is_null() && holds(json))
        };
        let many = |json: Json<'_>| json.number().is_some_and(|count| count > 1.0);
        let refused = match wire {
            // Functions are the predecessors of tools, and are not mixed with them.
            Wire::Chat => flag("functions", &|_| true) || flag("n", &many),
            // The reply does not come with the response.
            Wire::Responses => flag("background", &|json| json.is_true()),
            Wire::Gemini => {
                let has_functions = |json: Json<'_>| function_list(json).is_some();
                let is_json = |json: Json<'_>| {
                    json.get("responseMimeType")
                        .is_some_and(|kind| !kind.is("text/plain"))
                };
                let candidates = |json: Json<'_>| json.get("candidateCount").is_some_and(many);
                let config = "generationConfig";
                // Tools are part of a cached content; functions beside the provider's own tools, or JSON alone, are
                // refused.
                flag("cachedContent", &|_| true)
                    || flag(config, &candidates)
                    || !flag("tools", &has_functions)
                        && (!options.tool_names.is_empty() || flag(config, &is_json))
            }
            Wire::Anthropic | Wire::Ollama => false,
        };
        let is_alone = options.tool_names.is_empty();
        let choice = match wire {
            Wire::Gemini => "toolConfig",
            _ => "tool_choice",
        };
        // The model would be able to call only our tools.
        if refused || is_alone && flag(choice, &|choice| is_forced(wire, choice)) {
            return None;
        }
        let own = member("tools").filter(|_| !is_alone);
        let own = own.and_then(|own| String::from_utf8(own).ok());
        let ours = TOOLS
            .replace("{search}", &names.search)
            .replace("{recall}", &names.recall);
        let ours = convert_tools(Json::parse(ours.as_bytes()).ok()?, wire).ok()?;
        let tools = match &own {
            Some(own) => added(wire, own, &ours)?,
            None => ours,
        };
        Some(LookupOffer { names, tools, own })
    }
}

/// Returns a request with more messages at its end.
///
/// The last request of a turn does not offer the tools any more. If the client has none of its own, the request keeps
/// them but forbids calls: a conversation with calls is refused without tools.
pub fn write_follow_up(
    wire: Wire,
    body: &[u8],
    messages: &[Vec<u8>],
    last_offer: Option<&LookupOffer>,
) -> Option<Vec<u8>> {
    let json = Json::parse(body).ok()?;
    let list = json.get(list_name(wire)).filter(|list| !list.is_null());
    let is_conversation = |it: Json<'_>| !it.is_null();
    let is_stored =
        wire == Wire::Responses && json.get("conversation").is_some_and(is_conversation);
    let mut more: Vec<&str> = Vec::new();
    for message in messages
        .iter()
        .filter(|message| !is_stored || is_answer(message))
    {
        more.push(std::str::from_utf8(message).ok()?);
    }
    let more = more.join(",");
    let mut edits = vec![match list {
        // The provider stores the earlier messages.
        Some(list) if is_stored => (list.range(), format!("[{more}]")),
        Some(list) if list.kind() == JsonKind::Array => {
            let is_empty = list.elements().next().is_none();
            let comma = if is_empty { "" } else { "," };
            let end = list.range().end - 1;
            (end..end, format!("{comma}{more}"))
        }
        // Responses takes a text for the message of a user, or nothing.
        Some(text) if wire == Wire::Responses && text.kind() == JsonKind::String => {
            let text = raw(text);
            let first = format!(r#"{{"type":"message","role":"user","content":{text}}}"#);
            (list?.range(), format!("[{first},{more}]"))
        }
        None if wire == Wire::Responses => {
            let end = json.range().end - 1;
            (end..end, format!(r#","input":[{more}]"#))
        }
        _ => return None,
    }];
    edits.extend(last_offer.map(|offer| withdrawal(wire, json, offer)));
    Some(splice_unordered(body, edits))
}

/// Returns a request that does not offer the tools.
///
/// If the client has none of its own, and the conversation has calls, the request keeps them but forbids calls.
pub fn withdraw_offer(wire: Wire, body: &[u8], offer: &LookupOffer) -> Option<Vec<u8>> {
    let json = Json::parse(body).ok()?;
    let mut messages = json.get(list_name(wire))?.elements();
    let has_calls = messages.any(|message| {
        let message = Message::read(message.bytes());
        message.is_ok_and(|message| !message.calls().is_empty())
    });
    if offer.own.is_none() && !has_calls {
        return Some(with_members(json, &[("tools", None)]).into_bytes());
    }
    let edit = withdrawal(wire, json, offer);
    Some(splice_unordered(body, vec![edit]))
}

/// Returns the edit of a request by which it offers the client's tools alone, or says that none is to be called.
fn withdrawal(wire: Wire, json: Json<'_>, offer: &LookupOffer) -> (Range<usize>, String) {
    let (name, value) = match &offer.own {
        Some(own) => ("tools", own.clone()),
        None if wire == Wire::Ollama => ("tools", "[]".to_owned()),
        None if wire == Wire::Gemini => ("toolConfig", write_tool_choice(ToolChoice::None, wire)),
        None => ("tool_choice", write_tool_choice(ToolChoice::None, wire)),
    };
    let end = json.range().end - 1;
    match json.get(name) {
        Some(old) => (old.range(), value),
        None => (end..end, format!(",{}:{value}", quote(name))),
    }
}

/// Returns whether an item of a response answers a call.
fn is_answer(item: &[u8]) -> bool {
    let kind = Json::parse(item).ok().and_then(|item| item.get("type"));
    let kind = kind.map(Json::name).unwrap_or_default();
    kind.ends_with(b"_output") || &*kind == b"mcp_approval_response"
}

/// Returns whether a choice demands a call.
fn is_forced(wire: Wire, choice: Json<'_>) -> bool {
    match wire {
        Wire::Chat | Wire::Responses => !choice.is("auto") && !choice.is("none"),
        Wire::Anthropic => !block_is(choice, "auto") && !block_is(choice, "none"),
        Wire::Gemini => {
            let config = choice.get("functionCallingConfig");
            let mode = config.and_then(|config| config.get("mode"));
            mode.is_some_and(|mode| mode.is("ANY"))
        }
        Wire::Ollama => false,
    }
}

/// Returns the list of function declarations of Gemini's tools, the first there is.
fn function_list(tools: Json<'_>) -> Option<Json<'_>> {
    let single = (tools.kind() == JsonKind::Object).then_some(tools);
    tools.elements().chain(single).find_map(|tool| {
        let [camel, snake] = tool.pick(["functionDeclarations", "function_declarations"]);
        camel.or(snake)
    })
}

/// Returns the client's tools with ours behind them.
fn added(wire: Wire, own: &str, ours: &str) -> Option<String> {
    let json = Json::parse(own.as_bytes()).ok()?;
    let ours = Json::parse(ours.as_bytes()).ok()?;
    let (list, ours) = match wire {
        // Some of its servers take one list of functions only.
        Wire::Gemini => (function_list(json)?, function_list(ours)?),
        _ => (json, ours),
    };
    if list.kind() != JsonKind::Array {
        return None;
    }
    let ours: Vec<String> = ours.elements().map(raw).collect();
    let comma = if list.elements().next().is_some() {
        ","
    } else {
        ""
    };
    let end = list.range().end - 1;
    let edit = (end..end, format!("{comma}{}", ours.join(",")));
    String::from_utf8(splice_unordered(own.as_bytes(), vec![edit])).ok()
}

/// Returns whether an element of a response's echo of its tools is one of ours.
pub(super) fn is_ours(names: &LookupNames, tool: Json<'_>) -> bool {
    block_is(tool, "function") && names.has(tool.get("name"))
}
