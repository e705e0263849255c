//! Anthropic's rules for the order of messages and blocks.

use std::collections::{BTreeMap, HashSet};

use infold_wire::{Json, JsonKind};

use super::seal::is_sealed;
use super::{given, is_plain, refuse, string, unknown_member};
use crate::dialect::BadRequest;
use crate::reply_request::listed;

/// How many messages later a background tool must have reported.
const BACKGROUND_MESSAGES: usize = 8;

const USER_BLOCKS: [&str; 6] = [
    "text",
    "image",
    "document",
    "search_result",
    "tool_result",
    "container_upload",
];

const RESULT_BLOCKS: [&str; 5] = [
    "text",
    "image",
    "document",
    "search_result",
    "tool_reference",
];

/// Assistant blocks that belong to no pair.
const SINGLE_BLOCKS: [&str; 5] = [
    "text",
    "thinking",
    "redacted_thinking",
    "container_upload",
    "compaction",
];

/// The tools that a server runs, and the results they get.
const SERVER_RESULTS: [(&str, &str); 7] = [
    ("web_search", "web_search_tool_result"),
    ("web_fetch", "web_fetch_tool_result"),
    ("code_execution", "code_execution_tool_result"),
    ("bash_code_execution", "bash_code_execution_tool_result"),
    (
        "text_editor_code_execution",
        "text_editor_code_execution_tool_result",
    ),
    ("tool_search_tool_bm25", "tool_search_tool_result"),
    ("tool_search_tool_regex", "tool_search_tool_result"),
];

/// A use that a server runs, without its result so far.
struct OpenUse {
    message: usize,
    name: String,
    result: String,
    /// Its result may come after further user messages.
    background: bool,
}

#[derive(Default)]
struct AnthropicOrder {
    ids: HashSet<String>,
    open: BTreeMap<String, OpenUse>,
    /// Whether the calls of the newest assistant message come from code that the server runs.
    programmatic: bool,
}

pub(super) fn check(body: Json<'_>) -> Result<(), BadRequest> {
    let messages = listed(body, "messages");
    let mut walk = AnthropicOrder::default();
    for (at, message) in messages.iter().enumerate() {
        if let Some(name) = unknown_member(*message, &["role", "content"]) {
            return refuse(format!(
                "messages.{at}.{name}: Extra inputs are not permitted"
            ));
        }
        let blocks: Vec<_> = given(*message, "content")
            .into_iter()
            .flat_map(Json::elements)
            .collect();
        let next = messages.get(at + 1).map(|next| string(*next, "role"));
        let before = at
            .checked_sub(1)
            .map(|before| string(messages[before], "role"));
        match string(*message, "role").as_str() {
            "assistant" => walk.assistant(at, &blocks)?,
            "user" => walk.user(at, *message, &blocks)?,
            _ => place_system(at, before.as_deref(), next.as_deref())?,
        }
    }
    end(&messages, &walk)?;
    if given(body, "thinking").is_some_and(|it| string(it, "type") != "disabled") {
        first_thought(&messages)?;
    }
    Ok(())
}

/// A later system message follows a user message, and an assistant message or nothing follows it.
fn place_system(at: usize, before: Option<&str>, next: Option<&str>) -> Result<(), BadRequest> {
    if before != Some("user") || !matches!(next, None | Some("assistant")) {
        return refuse(format!(
            "messages.{at}: a `system` message must immediately follow a `user` message and be followed by an `assistant` message or end the conversation"
        ));
    }
    Ok(())
}

/// A conversation ends with the user, or with a turn that the server paused.
fn end(messages: &[Json<'_>], walk: &AnthropicOrder) -> Result<(), BadRequest> {
    let last = messages.last().map(|last| string(*last, "role"));
    if last.as_deref() == Some("assistant") && walk.open.is_empty() {
        return refuse(
            "This model does not support assistant message prefill. The conversation must end with a user message.",
        );
    }
    Ok(())
}

/// With thinking, the calls that were just answered come after a thought.
fn first_thought(messages: &[Json<'_>]) -> Result<(), BadRequest> {
    let mut newest = messages.iter().enumerate().rev();
    let found = newest.find(|(_, message)| string(**message, "role") == "assistant");
    let Some((at, message)) = found else {
        return Ok(());
    };
    let kinds: Vec<_> = listed(*message, "content")
        .iter()
        .map(|block| string(*block, "type"))
        .collect();
    let Some(first) = kinds.first() else {
        return Ok(());
    };
    let thinks = first == "thinking" || first == "redacted_thinking";
    if kinds.iter().any(|kind| kind == "tool_use") && !thinks {
        return refuse(format!(
            "messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{first}`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`."
        ));
    }
    Ok(())
}

impl AnthropicOrder {
    fn assistant(&mut self, at: usize, blocks: &[Json<'_>]) -> Result<(), BadRequest> {
        self.programmatic = false;
        for (place, block) in blocks.iter().enumerate() {
            let kind = string(*block, "type");
            let here = format!("messages.{at}.content.{place}");
            match kind.as_str() {
                "text" => check_text(*block)?,
                "thinking" | "redacted_thinking" => {
                    self.check_thought(&here, &kind, *block)?;
                }
                _ if kind.ends_with("tool_use") => self.add_use(at, &here, &kind, *block)?,
                _ if kind.ends_with("_tool_result") => self.close_use(&here, &kind, *block)?,
                _ if SINGLE_BLOCKS.contains(&kind.as_str()) => {}
                _ => return unknown_block(&here, &kind),
            }
        }
        Ok(())
    }

    fn add_use(
        &mut self,
        at: usize,
        here: &str,
        kind: &str,
        block: Json<'_>,
    ) -> Result<(), BadRequest> {
        let (id, name) = (string(block, "id"), string(block, "name"));
        if !is_plain(&id) || id.len() > 64 {
            return refuse(format!(
                "{here}.{kind}.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
            ));
        }
        if !is_plain(&name) || name.len() > 128 {
            return refuse(format!(
                "{here}.{kind}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            ));
        }
        if given(block, "input").is_none_or(|input| input.kind() != JsonKind::Object) {
            return refuse(format!(
                "{here}.{kind}.input: Input should be a valid dictionary"
            ));
        }
        if !self.ids.insert(id.clone()) {
            return refuse("messages: `tool_use` ids must be unique");
        }
        if kind == "tool_use" {
            let caller = given(block, "caller").map(|caller| string(caller, "tool_id"));
            let Some(caller) = caller.filter(|caller| !caller.is_empty()) else {
                return Ok(());
            };
            self.programmatic = true;
            if self.open.contains_key(&caller) {
                return Ok(());
            }
            return refuse(format!(
                "{here}.tool_use.caller.tool_id: no `server_tool_use` block with id `{caller}` is running before this block"
            ));
        }
        let result = match kind {
            "server_tool_use" => {
                let mut known = SERVER_RESULTS.iter();
                let known = known.find(|(use_name, _)| *use_name == name);
                let Some((_, result)) = known else {
                    return refuse(format!(
                        "{here}.server_tool_use.name: unknown tool `{name}`"
                    ));
                };
                (*result).to_owned()
            }
            "mcp_tool_use" | "robot_tool_use" => kind.replace("_use", "_result"),
            _ => return unknown_block(here, kind),
        };
        let open = OpenUse {
            message: at,
            name,
            result,
            background: kind == "robot_tool_use",
        };
        self.open.insert(id, open);
        Ok(())
    }

    fn close_use(&mut self, here: &str, kind: &str, block: Json<'_>) -> Result<(), BadRequest> {
        let known = SERVER_RESULTS.iter().any(|(_, result)| *result == kind);
        if !known && !["mcp_tool_result", "robot_tool_result"].contains(&kind) {
            return unknown_block(here, kind);
        }
        if given(block, "content").is_none() {
            return refuse(format!("{here}.{kind}.content: Field required"));
        }
        let id = string(block, "tool_use_id");
        match self.open.remove(&id) {
            Some(open) if open.result == kind => Ok(()),
            _ => {
                let using = match kind {
                    "mcp_tool_result" => "mcp_tool_use",
                    "robot_tool_result" => "robot_tool_use",
                    _ => "server_tool_use",
                };
                refuse(format!(
                    "{here}: unexpected `tool_use_id` found in `{kind}` blocks: {id}. Each `{kind}` block must have a corresponding `{using}` block before it."
                ))
            }
        }
    }

    fn user(
        &mut self,
        at: usize,
        message: Json<'_>,
        blocks: &[Json<'_>],
    ) -> Result<(), BadRequest> {
        let mut answered = HashSet::new();
        let mut said = given(message, "content").is_some_and(|it| it.kind() == JsonKind::String);
        if said && string(message, "content").trim().is_empty() {
            return refuse("messages: text content blocks must contain non-whitespace text");
        }
        for (place, block) in blocks.iter().enumerate() {
            let kind = string(*block, "type");
            let here = format!("messages.{at}.content.{place}");
            match kind.as_str() {
                "tool_result" => {
                    let id = string(*block, "tool_use_id");
                    if said {
                        return refuse(format!(
                            "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {id}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
                            at.saturating_sub(1)
                        ));
                    }
                    if !answered.insert(id.clone()) {
                        return refuse(format!(
                            "messages.{at}.content: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"
                        ));
                    }
                    check_result(&here, *block)?;
                    continue;
                }
                "text" => check_text(*block)?,
                "image" | "document" if given(*block, "source").is_none() => {
                    return refuse(format!("{here}.{kind}.source: Field required"));
                }
                _ if USER_BLOCKS.contains(&kind.as_str()) => {}
                _ => return unknown_block(&here, &kind),
            }
            said = true;
        }
        if self.programmatic && said {
            return refuse(format!(
                "messages.{at}: a response to programmatic tool calls must contain only `tool_result` blocks"
            ));
        }
        self.still_open(at, said || answered.is_empty())
    }

    fn check_thought(&self, here: &str, kind: &str, block: Json<'_>) -> Result<(), BadRequest> {
        if given(block, "cache_control").is_some() {
            return refuse(format!(
                "{here}.{kind}.cache_control: Extra inputs are not permitted"
            ));
        }
        let (text, signature) = match kind {
            "thinking" => (string(block, "thinking"), string(block, "signature")),
            _ => {
                let data = string(block, "data");
                let (text, signature) = data.split_once('.').unwrap_or_default();
                (text.to_owned(), signature.to_owned())
            }
        };
        if is_sealed(&text, &signature) {
            return Ok(());
        }
        let member = if kind == "thinking" {
            "signature"
        } else {
            "data"
        };
        refuse(format!("{here}: Invalid `{member}` in `{kind}` block"))
    }

    /// A user message with more than results ends the running tools of the server.
    fn still_open(&self, at: usize, said: bool) -> Result<(), BadRequest> {
        let late = |open: &OpenUse| {
            if open.background {
                at > open.message + BACKGROUND_MESSAGES
            } else {
                said
            }
        };
        let Some((id, open)) = self.open.iter().find(|(_, open)| late(open)) else {
            return Ok(());
        };
        refuse(format!(
            "messages.{}: `{}` tool use with id `{id}` was found without a corresponding `{}` block",
            open.message, open.name, open.result
        ))
    }
}

fn check_text(block: Json<'_>) -> Result<(), BadRequest> {
    if let Some(name) = super::bookkeeping(block) {
        return refuse(format!(
            "messages: text.{name}: Extra inputs are not permitted"
        ));
    }
    if string(block, "text").trim().is_empty() {
        return refuse("messages: text content blocks must contain non-whitespace text");
    }
    Ok(())
}

fn check_result(here: &str, block: Json<'_>) -> Result<(), BadRequest> {
    for (place, part) in listed(block, "content").into_iter().enumerate() {
        let kind = string(part, "type");
        if part.kind() == JsonKind::String {
            continue;
        }
        if !RESULT_BLOCKS.contains(&kind.as_str()) {
            return unknown_block(&format!("{here}.tool_result.content.{place}"), &kind);
        }
        if kind == "text" && string(part, "text").is_empty() {
            return refuse("messages: text content blocks must be non-empty");
        }
    }
    let failed = block.get("is_error").is_some_and(Json::is_true);
    let empty = given(block, "content").is_none_or(|content| match content.kind() {
        JsonKind::Array => content.elements().next().is_none(),
        _ => content.is_blank(),
    });
    if failed && empty {
        return refuse(format!(
            "{here}.tool_result: content cannot be empty if `is_error` is true"
        ));
    }
    Ok(())
}

fn unknown_block<T>(here: &str, kind: &str) -> Result<T, BadRequest> {
    refuse(format!(
        "{here}: Input tag '{kind}' found using 'type' does not match any of the expected tags"
    ))
}
