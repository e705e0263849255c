//! The tools that every task has: they read its history, and steer it.

use infold::layers::change_state;
use infold::layers::model::{Author, Change, Field, LayerItem, PHASES, Transitions};
use infold_log::Seq;
use infold_serve::mcp::History;
use infold_store::{Contexts, Writer};
use infold_wire::lookup::LookupNames;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::round::Finish;

/// The tool that ends a task.
pub(crate) const DONE: &str = "done";
/// The tool that reads messages.
pub(crate) const RECALL: &str = "recall";
const SEARCH: &str = "search_history";
const PIN: &str = "pin";
const SET_PHASE: &str = "set_phase";

/// The names of the tools that every task has. A tool of an MCP server with one of these names is offered by another.
pub const NAMES: [&str; 5] = [RECALL, SEARCH, PIN, SET_PHASE, DONE];

/// Returns whether a tool reads the history.
pub(crate) fn is_lookup(name: &str) -> bool {
    name == RECALL || name == SEARCH
}

/// The most steps of a plan that are recorded: all requests from then on contain the plan.
const MAX_PLAN_ITEMS: usize = 50;

/// Returns the definitions of the built-in tools, in the form of the chat wire.
pub(crate) fn definitions() -> Vec<Value> {
    let text = |about: &str| json!({"type": "string", "description": about});
    let number = |about: &str| json!({"type": "integer", "description": about});
    let plan = json!({"type": "array", "items": {"type": "string"}, "description": "The steps of your plan, if it is new or changed"});
    let phase =
        json!({"type": "string", "enum": PHASES, "description": "The phase that begins now"});
    let failed = json!({"type": "boolean", "description": "True if the task could not be done"});
    vec![
        define(
            RECALL,
            "Reads messages in full as they were, also those that were shortened, summarised or hidden, by their numbers.",
            json!({"range": text("A message (12), a range (12..40), or a fold (e7)"),
                "offset": number("Skips so many characters of the first message, where an earlier result was cut")}),
            &["range"],
        ),
        define(
            SEARCH,
            "Finds earlier messages of this task by their words, also hidden ones. Best match first, with the numbers that `recall` takes.",
            json!({"query": text("Words, \"a phrase\", -excluded, prefix*; names and paths as they were written"),
                "limit": number("The number of hits, at most 50")}),
            &["query"],
        ),
        define(
            PIN,
            "Keeps a message in view from now on: it is not folded away.",
            json!({"seq": number("The number of the message")}),
            &["seq"],
        ),
        define(
            SET_PHASE,
            "Says which phase of the task begins, and what the plan is. Some tools are offered in some phases only.",
            json!({"phase": phase, "plan": plan}),
            &["phase"],
        ),
        define(
            DONE,
            "Ends the task. Call it once, when the task is done and checked, or cannot be done.",
            json!({"summary": text("What was achieved, how it was checked, and what is left"), "failed": failed}),
            &["summary"],
        ),
    ]
}

fn define(name: &str, about: &str, properties: Value, required: &[&str]) -> Value {
    json!({"type": "function", "function": {
        "name": name,
        "description": about,
        "parameters": {"type": "object", "properties": properties, "required": required},
    }})
}

/// The context in which the built-in tools run.
pub(crate) struct BuiltInTools<'a> {
    /// The contexts directory of the task.
    pub contexts: &'a Contexts,
    /// The task.
    pub task: Uuid,
    /// The phases, and which phase may follow which.
    pub transitions: &'a Transitions,
}

impl BuiltInTools<'_> {
    /// Runs a call of one of them; an error is returned to the model.
    pub fn call(&self, writer: &mut Writer, name: &str, arguments: &str) -> Result<String, String> {
        let arguments = read_arguments(name, arguments)?;
        match name {
            RECALL | SEARCH => self.look_up(writer, name, arguments),
            PIN => pin(writer, &arguments),
            SET_PHASE => self.set_phase(writer, &arguments),
            _ => end(&arguments),
        }
    }

    fn look_up(
        &self,
        writer: &mut Writer,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<String, String> {
        // Readers of the history read the files, so the index must be written first.
        writer.save_index().map_err(|error| error.to_string())?;
        let names = LookupNames::beside(&[]).ok_or("there is no history")?;
        let history = History::of_conversation(self.contexts.clone(), self.task, names);
        let found = history.call(name, arguments);
        found
            .unwrap_or_else(|| unreachable!("the history has its tools"))
            .map_err(|failure| failure.to_string())
    }

    fn set_phase(
        &self,
        writer: &mut Writer,
        arguments: &Map<String, Value>,
    ) -> Result<String, String> {
        let phase = required_text(arguments, "phase")?;
        let mut changes = vec![Change::Set(Field::Phase, vec![LayerItem::new(phase)])];
        if let Some(plan) = arguments.get("plan").filter(|plan| !plan.is_null()) {
            let items = plan.as_array().ok_or("`plan` is a list of texts")?;
            let items = items.iter().take(MAX_PLAN_ITEMS);
            let items: Option<Vec<LayerItem>> = items
                .map(|item| item.as_str().map(LayerItem::new))
                .collect();
            let items = items.ok_or("`plan` is a list of texts")?;
            changes.push(Change::Set(Field::Plan, items));
        }
        change_state(writer, Author::Model, &changes, self.transitions)
            .map_err(|error| error.to_string())?;
        Ok(format!("The phase is {phase} now."))
    }
}

fn pin(writer: &mut Writer, arguments: &Map<String, Value>) -> Result<String, String> {
    let seq = arguments.get("seq").and_then(Value::as_u64);
    let seq = seq
        .and_then(Seq::new)
        .ok_or("`seq` is the number of a message")?;
    writer.pin(seq).map_err(|error| error.to_string())?;
    Ok(format!("Message {seq} stays in view."))
}

fn end(arguments: &Map<String, Value>) -> Result<String, String> {
    let summary = required_text(arguments, "summary")?;
    if summary.trim().is_empty() {
        return Err("`summary` is empty: say what was achieved".to_owned());
    }
    Ok("The task ends here.".to_owned())
}

/// Returns how a successful call of `done` with these arguments ends the task.
pub(crate) fn finish_of(arguments: &str) -> Finish {
    let arguments = read_arguments(DONE, arguments).unwrap_or_default();
    let summary = required_text(&arguments, "summary").unwrap_or_default();
    Finish {
        summary: summary.to_owned(),
        failed: arguments.get("failed").and_then(Value::as_bool) == Some(true),
    }
}

fn required_text<'a>(arguments: &'a Map<String, Value>, name: &str) -> Result<&'a str, String> {
    let text = arguments.get(name).and_then(Value::as_str);
    text.ok_or_else(|| format!("`{name}` is missing: it is a text"))
}

fn read_arguments(tool: &str, arguments: &str) -> Result<Map<String, Value>, String> {
    if arguments.trim().is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_str(arguments).map_err(|error| {
        format!("the arguments of `{tool}` are not a JSON object ({error}); write them again")
    })
}
