//! The table of tools.

use infold::layers::model::{PHASES, STATUSES};
use infold::step::Step;
use infold_log::Seq;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::arguments::ToolArguments;
use super::{History, ToolFailure, recall, search, state, view};

/// One tool.
pub struct McpTool {
    pub name: &'static str,
    /// The description for the model.
    pub about: &'static str,
    pub parameters: &'static [ToolParameter],
    /// Whether it changes a conversation.
    pub writes: bool,
    run: fn(&History, &ToolArguments) -> Result<String, ToolFailure>,
}

/// An argument of a tool.
pub struct ToolParameter {
    name: &'static str,
    about: &'static str,
    /// The JSON type of the argument.
    kind: &'static str,
    /// The values that it can have; none if it can have any.
    values: &'static [&'static str],
    is_required: bool,
}

const fn text(name: &'static str, about: &'static str) -> ToolParameter {
    ToolParameter {
        name,
        about,
        kind: "string",
        values: &[],
        is_required: false,
    }
}

const fn number(name: &'static str, about: &'static str) -> ToolParameter {
    ToolParameter {
        kind: "integer",
        ..text(name, about)
    }
}

/// A list of texts.
const fn list(name: &'static str, about: &'static str) -> ToolParameter {
    ToolParameter {
        kind: "array",
        ..text(name, about)
    }
}

/// Returns an argument with a fixed set of values.
const fn choice(
    name: &'static str,
    values: &'static [&'static str],
    about: &'static str,
) -> ToolParameter {
    ToolParameter {
        values,
        ..text(name, about)
    }
}

const fn required(parameter: ToolParameter) -> ToolParameter {
    ToolParameter {
        is_required: true,
        ..parameter
    }
}

const TASK: ToolParameter = text(
    "task",
    "A conversation, by the beginning of its id; this one if it is left out",
);

/// All tools.
#[rustfmt::skip]
static TOOLS: &[McpTool] = &[
    McpTool { name: "search_history", run: search::search, writes: false,
        about: "Finds earlier messages by their words, also those that were summarised or hidden and that you no longer see: decisions, values, paths, errors, commands and their results. Best match first, each with its number and the lines that match.",
        parameters: &[required(text("query", "Words, \"a phrase\", -excluded, prefix*; names and paths as they were written")),
            number("limit", "The number of hits, at most 50; 10 if it is left out"),
            text("task", "A conversation, by the beginning of its id, or `all`; this one if it is left out")] },
    McpTool { name: "recall", run: recall::recall, writes: false,
        about: "Reads messages in full as they were, also those that were summarised or hidden, by their numbers; or a fold: its text and all it stands for.",
        parameters: &[required(text("range", "A message (12), a range (12..40, 12-40, 12..), or a fold (e7)")), TASK,
            number("offset", "Skips so many characters of the first message, where an earlier result was cut")] },
    McpTool { name: "list_conversations", run: search::list, writes: false,
        about: "Lists the recorded conversations that can be searched, newest first: id, status, time, agent, directory, and what each is about.",
        parameters: &[number("limit", "The number of conversations, at most 50"), number("from", "The first of them, counted from 1")] },
    McpTool { name: "view", run: view::view, writes: false,
        about: "Shows what the model currently sees of a conversation, a line for each message; each fold names the messages it hides, which recall reads.",
        parameters: &[TASK, number("from", "The first line, counted from 1, where an earlier result was cut")] },
    McpTool { name: "get_state", run: state::get_state, writes: false,
        about: "Shows the state that is kept of the task: rules, goal, phase, permissions, what is remembered, the plan.",
        parameters: &[text("field", "One field, such as facts or plan; all if it is left out"),
            number("from", "The first item of the field, counted from 1, where an earlier result was cut"), TASK] },
    McpTool { name: "set_phase", run: state::set_phase, writes: true,
        about: "Says which phase of its work the task is in. Which tools you are shown may depend on it.",
        parameters: &[required(choice("phase", &PHASES, "The phase that begins")), TASK] },
    McpTool { name: "remember", run: state::remember, writes: true,
        about: "Keeps something that was learned or decided, so that it is known later, when the messages that say it are no longer in view.",
        parameters: &[required(text("text", "What to remember, understandable by itself")),
            choice("kind", &state::KIND_NAMES, "What it is; a fact if it is left out"),
            text("source", "Where a fact, decision, milestone, preference or project_knowledge comes from"),
            text("name", "The name of a variable, a defined term, a skill, template, checklist or procedure"), TASK] },
    McpTool { name: "set_plan", run: state::set_plan, writes: true,
        about: "Sets the steps of the plan, all of them in order. Steps that stay keep their status, new ones are pending.",
        parameters: &[required(list("steps", "The steps, a short text each")), TASK] },
    McpTool { name: "mark_step", run: state::mark_step, writes: true,
        about: "Says how far a step of the plan is.",
        parameters: &[required(number("step", "The number of the step, counted from 1")),
            choice("status", &STATUSES, "How far it is; completed if it is left out"), TASK] },
    McpTool { name: "pin", run: pin, writes: true,
        about: "Keeps a message, with the calls and results that belong to it, in view from now on: it is not folded away.",
        parameters: &[required(number("seq", "The number of the message")), TASK] },
    McpTool { name: "note", run: note, writes: true,
        about: "Adds a short text to every view from now on, such as a decision or a constraint that must not be forgotten.",
        parameters: &[required(text("text", "The text")), TASK] },
];

/// The longest note in characters: it is part of every later request.
const MAX_NOTE_CHARS: usize = 4000;

fn pin(history: &History, arguments: &ToolArguments) -> Result<String, ToolFailure> {
    let seq = arguments.number("seq", 1)?.and_then(Seq::new);
    let seq = seq.ok_or_else(|| ToolFailure::new("`seq` is missing"))?;
    history.take("pin", arguments, &Step::Pin { seq })
}

fn note(history: &History, arguments: &ToolArguments) -> Result<String, ToolFailure> {
    let text = arguments.required("text")?;
    if text.trim().is_empty() {
        return Err(ToolFailure::new("the note is empty"));
    }
    if text.chars().nth(MAX_NOTE_CHARS).is_some() {
        let text = format!("the note has more than {MAX_NOTE_CHARS} characters");
        return Err(
            ToolFailure::new(text).hint("every request would carry it: say it in fewer words")
        );
    }
    history.take("note", arguments, &Step::Note { text })
}

impl History {
    /// The tools that this history offers.
    pub(super) fn tools(&self) -> impl Iterator<Item = &'static McpTool> {
        let writes = self.steps.is_some();
        TOOLS.iter().filter(move |tool| writes || !tool.writes)
    }

    /// Calls a tool; none if there is no such tool.
    pub fn call(
        &self,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Option<Result<String, ToolFailure>> {
        let tool = TOOLS.iter().find(|tool| tool.name == name)?;
        if tool.writes && self.steps.is_none() {
            let text = format!("`{name}` is off: this server only reads");
            return Some(Err(ToolFailure::new(text)));
        }
        let known = tool.parameters.iter().map(|it| it.name);
        // Tools that are offered to a conversation work on that conversation alone.
        let known = known.filter(|name| self.offered.is_none() || *name != TASK.name);
        let known: Vec<&str> = known.collect();
        let arguments = ToolArguments::new(arguments, &known);
        Some(arguments.and_then(|arguments| (tool.run)(self, &arguments)))
    }

    fn take(
        &self,
        tool: &str,
        arguments: &ToolArguments,
        step: &Step,
    ) -> Result<String, ToolFailure> {
        self.take_on(self.task(tool, arguments)?, step)
    }

    /// Takes a step on a task.
    pub(super) fn take_on(&self, task: Uuid, step: &Step) -> Result<String, ToolFailure> {
        match &self.steps {
            Some(steps) => steps(task, step),
            None => Err(ToolFailure::new("this server only reads")),
        }
    }
}

impl McpTool {
    /// The JSON Schema of its arguments.
    pub fn schema(&self) -> Map<String, Value> {
        let properties: Map<String, Value> = self
            .parameters
            .iter()
            .map(|it| (it.name.to_owned(), it.schema()))
            .collect();
        let required: Vec<&str> = self
            .parameters
            .iter()
            .filter(|it| it.is_required)
            .map(|it| it.name)
            .collect();
        let mut schema = Map::new();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), properties.into());
        if !required.is_empty() {
            schema.insert("required".to_owned(), required.into());
        }
        schema
    }
}

impl ToolParameter {
    fn schema(&self) -> Value {
        let mut schema = json!({"type": self.kind, "description": self.about});
        if self.kind == "array" {
            schema["items"] = json!({"type": "string"});
        }
        if !self.values.is_empty() {
            schema["enum"] = self.values.into();
        }
        schema
    }
}
