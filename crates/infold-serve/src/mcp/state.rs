//! Tools with which a model reads and changes the layered state of its task: the phase, remembered items, the plan.

use infold::config::nearest;
use infold::layers::model::{
    Attribute, Author, Change, ChangeError, Field, LayerItem, LayerState, STATUSES, Writers,
};
use infold::layers::{item_line, nearest_field, read_state};
use infold::step::Step;
use uuid::Uuid;

use super::arguments::ToolArguments;
use super::history::MAX_RESULT_CHARS;
use super::{History, ToolFailure};

/// The kinds that can be remembered, and the field of each.
const KINDS: [(&str, Field); 12] = [
    ("fact", Field::Facts),
    ("decision", Field::Decisions),
    ("milestone", Field::Milestones),
    ("definition", Field::Definitions),
    ("preference", Field::Preferences),
    ("project_knowledge", Field::ProjectKnowledge),
    ("skill", Field::Skills),
    ("template", Field::Templates),
    ("checklist", Field::Checklists),
    ("procedure", Field::Procedures),
    ("variable", Field::WorkingVariables),
    ("hypothesis", Field::Hypotheses),
];
/// The names of [`KINDS`], for the schema.
pub const KIND_NAMES: [&str; KINDS.len()] = {
    let mut names = [""; KINDS.len()];
    let mut at = 0;
    while at < KINDS.len() {
        names[at] = KINDS[at].0;
        at += 1;
    }
    names
};

/// The longest text that is remembered, and the longest step of a plan.
const MAX_ITEM_CHARS: usize = 4000;
/// The most steps of a plan.
const MAX_STEPS: usize = 100;

/// `get_state`
pub fn get_state(history: &History, arguments: &ToolArguments) -> Result<String, ToolFailure> {
    let field = arguments.text("field")?;
    let field = field.map(|name| find_field(&name)).transpose()?;
    let from = arguments.number("from", 1)?.unwrap_or(1);
    if from > 1 && field.is_none() {
        return Err(ToolFailure::new("`from` counts the items of a `field`"));
    }
    let task = history.task("get_state", arguments)?;
    Ok(state_text(&read(history, task)?, field, from))
}

/// `set_phase`
pub fn set_phase(history: &History, arguments: &ToolArguments) -> Result<String, ToolFailure> {
    let phase = LayerItem::new(arguments.required("phase")?.trim());
    let change = Change::Set(Field::Phase, vec![phase]);
    history.change("set_phase", arguments, vec![change])
}

/// `remember`
pub fn remember(history: &History, arguments: &ToolArguments) -> Result<String, ToolFailure> {
    let text = checked_text("text", arguments.required("text")?)?;
    let kind = arguments.text("kind")?;
    let field = kind.as_deref().map_or(Ok(Field::Facts), field_of_kind)?;
    let mut item = LayerItem::new(text);
    for attribute in [Attribute::Source, Attribute::Name] {
        let name = attribute.name();
        if let Some(value) = arguments.text(name)? {
            if !field.attributes().contains(&attribute) {
                let kind = kind.as_deref().unwrap_or("fact");
                let text = format!("a {kind} has no `{name}`");
                return Err(ToolFailure::new(text).hint("say it in the text"));
            }
            item = item.with(attribute, checked_text(name, value)?);
        }
    }
    if field == Field::WorkingVariables && item.attribute(Attribute::Name).is_none() {
        return Err(ToolFailure::new("a variable needs a `name`"));
    }
    let task = history.task("remember", arguments)?;
    let state = read(history, task)?;
    if state.items(field).contains(&item) {
        return Ok(format!("it is remembered already, in {}\n", field.path()));
    }
    history.change_task(task, vec![Change::Add(field, item)])
}

/// `set_plan`
pub fn set_plan(history: &History, arguments: &ToolArguments) -> Result<String, ToolFailure> {
    let steps = arguments.texts("steps")?;
    if steps.len() > MAX_STEPS {
        let text = format!("the plan has {} steps, more than {MAX_STEPS}", steps.len());
        return Err(ToolFailure::new(text).hint("put several into one"));
    }
    let steps: Result<Vec<String>, ToolFailure> = steps
        .into_iter()
        .map(|step| checked_text("steps", step))
        .collect();
    let task = history.task("set_plan", arguments)?;
    let before = read(history, task)?;
    let step = |text: String| {
        // A step that stays in the plan keeps its state.
        let same = before.items(Field::Plan).iter().find(|it| it.text == text);
        let fresh = || LayerItem::new(text.clone()).with(Attribute::Status, STATUSES[0]);
        same.cloned().unwrap_or_else(fresh)
    };
    let steps = steps?.into_iter().map(step).collect();
    let said = history.change_task(task, vec![Change::Set(Field::Plan, steps)])?;
    with_plan(history, task, &said)
}

/// `mark_step`
pub fn mark_step(history: &History, arguments: &ToolArguments) -> Result<String, ToolFailure> {
    let step = arguments.number("step", 1)?;
    let step = step.ok_or_else(|| ToolFailure::new("`step` is missing"))?;
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    let status = arguments.text("status")?;
    let status = status.unwrap_or_else(|| "completed".to_owned());
    let task = history.task("mark_step", arguments)?;
    if read(history, task)?.items(Field::Plan).is_empty() {
        return Err(ToolFailure::new("there is no plan").hint("set_plan makes one"));
    }
    let said = history.change_task(task, vec![Change::Mark(Field::Plan, step, status)])?;
    with_plan(history, task, &said)
}

impl History {
    fn change(
        &self,
        tool: &str,
        arguments: &ToolArguments,
        changes: Vec<Change>,
    ) -> Result<String, ToolFailure> {
        self.change_task(self.task(tool, arguments)?, changes)
    }

    fn change_task(&self, task: Uuid, changes: Vec<Change>) -> Result<String, ToolFailure> {
        let step = Step::State {
            author: Author::Model,
            changes,
        };
        Ok(self.take_on(task, &step)? + "\n")
    }
}

fn read(history: &History, task: Uuid) -> Result<LayerState, ToolFailure> {
    let log = history.contexts.read(task)?;
    Ok(read_state(&log, log.state().shown())?)
}

fn with_plan(history: &History, task: Uuid, said: &str) -> Result<String, ToolFailure> {
    let state = read(history, task)?;
    Ok(format!(
        "{said}{}",
        state_text(&state, Some(Field::Plan), 1)
    ))
}

/// A text that says something, and not too much.
fn checked_text(name: &str, text: String) -> Result<String, ToolFailure> {
    if text.trim().is_empty() {
        return Err(ToolFailure::new(format!("`{name}` is empty")));
    }
    if text.chars().nth(MAX_ITEM_CHARS).is_some() {
        let text = format!("`{name}` has more than {MAX_ITEM_CHARS} characters");
        return Err(ToolFailure::new(text).hint("say it in fewer words"));
    }
    Ok(text)
}

fn field_of_kind(kind: &str) -> Result<Field, ToolFailure> {
    let plain = kind.trim();
    let named = KINDS
        .into_iter()
        .find(|(name, field)| *name == plain || field.name() == plain);
    if let Some((_, field)) = named {
        return Ok(field);
    }
    if let Some(field) = meant_field(plain).filter(|it| it.writers() == Writers::People) {
        return Err(ToolFailure::new(ChangeError::Forbidden(field).to_string())
            .hint("ask the user, who sets it with `infold state`"));
    }
    let known = format!("`kind` is one of {}", KIND_NAMES.join(", "));
    let shown = infold_wire::shorten(plain, 60);
    let failure = ToolFailure::new(format!("{known}, not `{shown}`"));
    Err(match nearest(plain, KIND_NAMES) {
        Some(near) => failure.hint(&format!("did you mean `{near}`?")),
        None => failure,
    })
}

/// The field that a name or the name of one of its items means: `policy` means `system.policies`.
fn meant_field(name: &str) -> Option<Field> {
    let plural = match name.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{name}s"),
    };
    Field::find(name).or_else(|| Field::find(&plural))
}

fn find_field(name: &str) -> Result<Field, ToolFailure> {
    let kind = KINDS.into_iter().find(|(kind, _)| *kind == name.trim());
    let found = kind.map(|(_, field)| field);
    found.or_else(|| meant_field(name.trim())).ok_or_else(|| {
        let failure = ToolFailure::new(format!("no field `{}`", infold_wire::shorten(name, 60)));
        match nearest_field(name) {
            Some(near) => failure.hint(&format!("did you mean `{}`?", near.name())),
            None => failure.hint("without `field` all are shown"),
        }
    })
}

/// Returns the items of a state, or of one field from an item on, as many as fit.
fn state_text(state: &LayerState, only: Option<Field>, from: u64) -> String {
    let (mut out, mut used) = (String::new(), 0);
    let fields = state
        .fields()
        .filter(|(field, _)| only.is_none_or(|only| only == *field));
    for (field, items) in fields {
        out += &format!("{}\n", field.path());
        let skipped = usize::try_from(from - 1).unwrap_or(usize::MAX);
        for (at, item) in items.iter().enumerate().skip(skipped) {
            let line = infold_wire::shorten(&item_line(item), MAX_ITEM_CHARS);
            used += line.chars().count();
            if used > MAX_RESULT_CHARS {
                let (name, next) = (field.name(), at + 1);
                return out + &format!("… cut; the rest: `field` {name}, `from` {next}\n");
            }
            out += &if field.is_list() {
                format!("  {} {line}\n", at + 1)
            } else {
                format!("  {line}\n")
            };
        }
    }
    match (out.is_empty(), only) {
        (false, _) => out,
        (true, Some(field)) => format!("{} is empty\n", field.path()),
        (true, None) => "the state is empty\n".to_owned(),
    }
}
