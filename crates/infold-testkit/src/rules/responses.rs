//! The rules of the Responses API for items.

use std::collections::{BTreeMap, HashMap, HashSet};

use infold_wire::{Json, JsonKind};

use super::seal::is_sealed;
use super::{bookkeeping, given, has_parts_of, string};
use crate::dialect::BadRequest;
use crate::reply_request::listed;

const ID_LENGTH: usize = 64;

/// A call of a kind that is new: it goes on in the background, whatever is said meanwhile.
const ROBOT: &str = "robot call";

/// How many items later it must have its output.
const BACKGROUND_ITEMS: usize = 24;

/// Calls, the items that answer them, and their names in errors.
const PAIRS: [(&str, &str, &str); 8] = [
    ("function_call", "function_call_output", "function call"),
    (
        "custom_tool_call",
        "custom_tool_call_output",
        "custom tool call",
    ),
    (
        "local_shell_call",
        "local_shell_call_output",
        "local shell call",
    ),
    ("shell_call", "shell_call_output", "shell call"),
    ("computer_call", "computer_call_output", "computer call"),
    (
        "apply_patch_call",
        "apply_patch_call_output",
        "apply patch call",
    ),
    ("tool_search_call", "tool_search_output", "tool search call"),
    ("robot_call", "robot_call_output", ROBOT),
];

/// Items of the model that belong to no pair.
const SINGLE_ITEMS: [&str; 8] = [
    "web_search_call",
    "file_search_call",
    "image_generation_call",
    "code_interpreter_call",
    "mcp_list_tools",
    "mcp_call",
    "mcp_approval_request",
    "compaction",
];

/// How ids of items begin, where the provider insists on it.
const ID_PREFIXES: [(&str, &str); 6] = [
    ("function_call", "fc"),
    ("reasoning", "rs"),
    ("custom_tool_call", "ctc"),
    ("mcp_call", "mcp"),
    ("mcp_approval_request", "mcpr"),
    ("web_search_call", "ws"),
];

#[derive(Default)]
struct ItemOrder {
    ids: HashSet<String>,
    /// Kinds of calls by their ids.
    calls: HashMap<String, &'static str>,
    /// Calls without an output: their names in errors, and their positions.
    open: BTreeMap<String, (&'static str, usize)>,
    /// Approval requests, and their answers.
    approvals: BTreeMap<String, Option<bool>>,
}

pub(super) fn check(body: Json<'_>, alternate: bool) -> Result<(), BadRequest> {
    let items = listed(body, "input");
    let mut walk = ItemOrder::default();
    for (at, item) in items.iter().enumerate() {
        if item.kind() == JsonKind::String {
            continue;
        }
        if let Some(name) = bookkeeping(*item) {
            let param = format!("input[{at}].{name}");
            let message = format!("Unknown parameter: '{param}'.");
            return Err(BadRequest::new(message, param, "unknown_parameter"));
        }
        walk.check_id(at, *item)?;
        let kind = string(*item, "type");
        match kind.as_str() {
            "" | "message" => walk.message(at, *item)?,
            "reasoning" => follows(*item, items.get(at + 1).copied())?,
            "mcp_approval_response" => walk.approve(*item)?,
            _ => walk.item(at, &kind, *item)?,
        }
    }
    if alternate {
        check_turns(&items)?;
    }
    let late = |name: &str, at: usize| name != ROBOT || at + BACKGROUND_ITEMS < items.len();
    let mut open = walk.open.iter();
    if let Some((id, (name, _))) = open.find(|(_, (name, at))| late(name, *at)) {
        return refuse(format!("No tool output found for {name} {id}."));
    }
    if let Some((id, _)) = walk.approvals.iter().find(|(_, said)| said.is_none()) {
        return refuse(format!(
            "MCP approval requests do not have an approval: {id}"
        ));
    }
    Ok(())
}

fn refuse<T>(message: impl Into<String>) -> Result<T, BadRequest> {
    Err(BadRequest::new(message, "input", ""))
}

/// The rule of templates behind a server: user and assistant alternate.
///
/// Items of the model in a row are one message of the assistant, which does not count if it calls anything.
fn check_turns(items: &[Json<'_>]) -> Result<(), BadRequest> {
    let is_model = |item: &Json<'_>| is_output(*item) || string(*item, "type") == "reasoning";
    let calls = |item: &Json<'_>| {
        let kind = string(*item, "type");
        let called = PAIRS
            .iter()
            .any(|(call, _, _)| *call == kind && kind != "robot_call");
        called || kind == "mcp_approval_request"
    };
    let mut user = true;
    for run in items.chunk_by(|one, next| is_model(one) && is_model(next)) {
        let speaker = run.iter().find(|item| !string(**item, "role").is_empty());
        let Some(speaker) = speaker.filter(|_| !run.iter().any(calls)) else {
            continue;
        };
        if (string(*speaker, "role") != "assistant") != user {
            return refuse(
                "After the optional system message, conversation roles must alternate user/assistant/user/assistant/...",
            );
        }
        user = !user;
    }
    Ok(())
}

/// Whether an item is the model's own.
fn is_output(item: Json<'_>) -> bool {
    let kind = string(item, "type");
    let called = PAIRS.iter().any(|(call, _, _)| *call == kind);
    let speaks = ["", "message"].contains(&kind.as_str()) && string(item, "role") == "assistant";
    let reports = kind == "robot_call_output";
    called || speaks || reports || SINGLE_ITEMS.contains(&kind.as_str())
}

/// A reasoning item is unchanged, and followed by the item that it belongs to.
fn follows(item: Json<'_>, next: Option<Json<'_>>) -> Result<(), BadRequest> {
    let id = string(item, "id");
    let sealed = string(item, "encrypted_content");
    if !sealed.is_empty() && !is_sealed(&id, &sealed) {
        let message = format!(
            "The encrypted content {sealed} could not be verified. Reason: Encrypted content could not be decrypted or parsed."
        );
        return Err(BadRequest::new(message, "", "invalid_encrypted_content"));
    }
    if next.is_none_or(|next| !is_output(next)) {
        return refuse(format!(
            "Item '{id}' of type 'reasoning' was provided without its required following item."
        ));
    }
    Ok(())
}

impl ItemOrder {
    /// Ids are unique, short, begin as they should, and name the reasoning that led to the item.
    fn check_id(&mut self, at: usize, item: Json<'_>) -> Result<(), BadRequest> {
        for name in ["id", "call_id"] {
            let id = string(item, name);
            if id.len() > ID_LENGTH {
                let param = format!("input[{at}].{name}");
                let message = format!(
                    "Invalid '{param}': string too long. Expected a string with maximum length {ID_LENGTH}, but got a string with length {} instead.",
                    id.len()
                );
                return Err(BadRequest::new(message, param, "string_above_max_length"));
            }
        }
        let (id, kind) = (string(item, "id"), string(item, "type"));
        if id.is_empty() {
            return Ok(());
        }
        let prefix = ID_PREFIXES.iter().find(|(name, _)| *name == kind);
        if let Some((_, prefix)) = prefix
            && !id.starts_with(prefix)
        {
            let param = format!("input[{at}].id");
            let message =
                format!("Invalid '{param}': '{id}'. Expected an ID that begins with '{prefix}'.");
            return Err(BadRequest::new(message, param, "invalid_value"));
        }
        if let Some((_, reasoning)) = id.split_once("-rs_") {
            let reasoning = format!("rs_{reasoning}");
            if !self.ids.contains(&reasoning) {
                return refuse(format!(
                    "Item '{id}' of type '{kind}' was provided without its required 'reasoning' item: '{reasoning}'."
                ));
            }
        }
        if !self.ids.insert(id.clone()) {
            return refuse(format!(
                "Duplicate item found with id {id}. Remove duplicate items from your input and try again."
            ));
        }
        Ok(())
    }

    fn message(&mut self, at: usize, item: Json<'_>) -> Result<(), BadRequest> {
        let role = string(item, "role");
        let allowed: &[&str] = match role.as_str() {
            "assistant" => &["output_text", "refusal"],
            _ => &["input_text", "input_image", "input_file"],
        };
        if let Err((place, kind)) = has_parts_of(item, "content", allowed) {
            let param = format!("input[{at}].content[{place}]");
            let message = format!(
                "Invalid value: '{kind}'. Supported values are: '{}'.",
                allowed.join("', '")
            );
            return Err(BadRequest::new(message, param, "invalid_value"));
        }
        // The model's own text may be among its calls; other text ends its turn. A robot call continues.
        let mut open = self.open.iter();
        if role != "assistant"
            && let Some((id, (name, _))) = open.find(|(_, (name, _))| *name != ROBOT)
        {
            return refuse(format!("No tool output found for {name} {id}."));
        }
        Ok(())
    }

    fn approve(&mut self, item: Json<'_>) -> Result<(), BadRequest> {
        let id = string(item, "approval_request_id");
        let said = item.get("approve").is_some_and(Json::is_true);
        match self.approvals.get_mut(&id) {
            Some(answer) if answer.is_none() => {
                *answer = Some(said);
                Ok(())
            }
            Some(_) => refuse(format!(
                "Duplicate MCP approval response for approval request {id}."
            )),
            None => refuse(format!("No MCP approval request found with id {id}.")),
        }
    }

    fn item(&mut self, at: usize, kind: &str, item: Json<'_>) -> Result<(), BadRequest> {
        let id = string(item, "call_id");
        if let Some((_, _, name)) = PAIRS.iter().find(|(call, _, _)| *call == kind) {
            // A search that the server ran itself has no id.
            if kind == "tool_search_call" && id.is_empty() {
                return Ok(());
            }
            if id.is_empty() || self.calls.insert(id.clone(), name).is_some() {
                return refuse(format!("Duplicate or missing call_id of a {name}: '{id}'."));
            }
            self.open.insert(id, (name, at));
            return Ok(());
        }
        if let Some((_, _, name)) = PAIRS.iter().find(|(_, output, _)| *output == kind) {
            if kind == "tool_search_output" && id.is_empty() {
                return Ok(());
            }
            if self.calls.get(&id) != Some(name) {
                return refuse(format!(
                    "No tool call found for {name} output with call_id {id}."
                ));
            }
            if self.open.remove(&id).is_none() {
                return refuse(format!("Duplicate tool output found for {name} {id}."));
            }
            return Ok(());
        }
        match kind {
            "mcp_approval_request" => {
                self.approvals.insert(string(item, "id"), None);
                Ok(())
            }
            "mcp_call" => {
                let id =
                    given(item, "approval_request_id").map(|_| string(item, "approval_request_id"));
                match id {
                    Some(id) if self.approvals.get(&id) != Some(&Some(true)) => refuse(format!(
                        "MCP call {} was not approved: no approval of approval request {id} comes before it.",
                        string(item, "id")
                    )),
                    _ => Ok(()),
                }
            }
            _ if SINGLE_ITEMS.contains(&kind) => Ok(()),
            _ => {
                let message =
                    format!("Invalid value: '{kind}'. Supported values are those of input items.");
                Err(BadRequest::new(
                    message,
                    format!("input[{at}]"),
                    "invalid_value",
                ))
            }
        }
    }
}
