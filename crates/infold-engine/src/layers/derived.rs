//! The parts of a layered state that are derived from the log: the last turns, summaries, tool results, failures, the
//! plan.

use infold_layers::{Attribute, Field, LayerItem, LayerState};
use infold_log::{Cause, EventId, Past as _, Role, Seq, Shown};
use infold_store::{Log, LogError, What, iso};
use infold_wire::tool_action::{MessageAction, Todo, TodoState, ToolAction, message_actions};
use infold_wire::tool_use::{RecordedResult, tool_calls, tool_results};
use infold_wire::{Message, append_words};

/// The number of messages from the end that are searched.
const MAX_MESSAGES: u64 = 400;
/// Larger messages are passed over.
const MAX_MESSAGE_BYTES: u64 = 1 << 20;
/// The number of tool results that become observations.
const MAX_OBSERVATIONS: usize = 20;
/// The number of failed tool results that become failures.
const MAX_FAILURES: usize = 5;
/// More of a result is not shown.
const MAX_OBSERVATION_BYTES: usize = 4000;
/// More of a turn is not shown.
const MAX_TURN_BYTES: usize = 4000;

/// The items found by reading the log backwards, newest first.
#[derive(Default)]
struct DerivedItems {
    turns: Vec<LayerItem>,
    observations: Vec<LayerItem>,
    failures: Vec<LayerItem>,
    plan: Option<Vec<LayerItem>>,
    /// Results whose calls, which name the tool, are still to come.
    pending: Vec<(RecordedResult, u64)>,
}

/// Adds the derived entries of the log to a state: at most `turns` of the last turns, summaries in force, results of
/// tools.
pub fn fill(
    state: &mut LayerState,
    log: &Log,
    shown: &Shown,
    turns: usize,
) -> Result<(), LogError> {
    let mut found = DerivedItems::default();
    let mut left = MAX_MESSAGES;
    'path: for run in shown.path().into_iter().rev() {
        for seq in run.seqs().rev() {
            if left == 0 {
                break 'path;
            }
            left -= 1;
            look(log, seq, turns, &mut found)?;
        }
    }
    let oldest_first = |mut items: Vec<LayerItem>| {
        items.reverse();
        items
    };
    state.extend(Field::RecentTurns, oldest_first(found.turns));
    state.extend(Field::Observations, oldest_first(found.observations));
    state.extend(Field::Failures, oldest_first(found.failures));
    state.extend(Field::Summaries, summaries(log, shown)?);
    if state.items(Field::Plan).is_empty() {
        state.extend(Field::Plan, found.plan.unwrap_or_default());
    }
    Ok(())
}

fn look(log: &Log, seq: Seq, turns: usize, found: &mut DerivedItems) -> Result<(), LogError> {
    let record = log.record(seq)?;
    let before = match seq.prev() {
        Some(before) => log.record(before)?.sums.bytes,
        None => 0,
    };
    if record.sums.bytes.saturating_sub(before) > MAX_MESSAGE_BYTES {
        return Ok(());
    }
    let bytes = log.message(seq)?;
    let Ok(message) = Message::read(&bytes) else {
        return Ok(());
    };
    let results = tool_results(&message);
    for call in tool_calls(&message) {
        let answers = |(result, _): &(RecordedResult, u64)| result.id == call.id;
        if let Some(at) = found.pending.iter().position(answers) {
            let (result, time) = found.pending.remove(at);
            found.observe(&call.tool, &result, time);
        }
    }
    if found.plan.is_none() {
        found.plan = todos(&message).map(plan);
    }
    let role = record.role;
    if results.is_empty() && found.turns.len() < turns && role != Role::System {
        let mut words = String::new();
        append_words(&message, &mut words);
        if !words.trim().is_empty() {
            let text = cut(words.trim(), MAX_TURN_BYTES);
            let turn = LayerItem::new(text).with(Attribute::Role, role.wire_name());
            found.turns.push(turn);
        }
    }
    for result in results.into_iter().rev() {
        if result.tool.is_empty() {
            found.pending.push((result, record.time));
        } else {
            let tool = result.tool.clone();
            found.observe(&tool, &result, record.time);
        }
    }
    Ok(())
}

impl DerivedItems {
    fn observe(&mut self, tool: &str, result: &RecordedResult, time: u64) {
        let text = cut(result.text.trim(), MAX_OBSERVATION_BYTES);
        if text.is_empty() {
            return;
        }
        let mut item = LayerItem::new(text)
            .with(Attribute::Tool, tool)
            .with(Attribute::Timestamp, iso(time));
        item.time = Some(time);
        // Each result is shown once: the last failed ones as failures, all others as observations.
        if result.failed && self.failures.len() < MAX_FAILURES {
            self.failures.push(item);
        } else if self.observations.len() < MAX_OBSERVATIONS {
            self.observations.push(item);
        }
    }
}

/// The beginning and the end of a text that is longer than `max_bytes`.
fn cut(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(max_bytes * 3 / 4);
    let tail = text.ceil_char_boundary(text.len() - max_bytes / 4);
    format!("{}\n[…]\n{}", &text[..head], &text[tail..])
}

/// The todo list that a message sets, if it sets one.
fn todos(message: &Message<'_>) -> Option<Vec<Todo>> {
    message_actions(message)
        .into_iter()
        .find_map(|action| match action {
            MessageAction::Call(call) => call.actions.into_iter().find_map(|action| match action {
                ToolAction::Todos(todos) => Some(todos),
                _ => None,
            }),
            _ => None,
        })
}

fn plan(todos: Vec<Todo>) -> Vec<LayerItem> {
    let step = |todo: Todo| {
        let status = match todo.state {
            TodoState::Open => "pending",
            TodoState::Doing => "in_progress",
            TodoState::Done => "completed",
        };
        LayerItem::new(todo.text).with(Attribute::Status, status)
    };
    todos.into_iter().map(step).collect()
}

/// The summaries that are shown, without their headings.
fn summaries(log: &Log, shown: &Shown) -> Result<Vec<LayerItem>, LogError> {
    let mut items = Vec::new();
    let folds = shown.items().iter();
    let folds = folds.filter_map(|item| match item {
        infold_log::Item::Fold(fold) if fold.cause == Cause::Summary => Some(fold.id),
        _ => None,
    });
    let ids: Vec<EventId> = folds.collect();
    for id in ids {
        if let What::Fold(fold) = log.event(id)?.what {
            let texts: Vec<&str> = fold
                .stand_in
                .iter()
                .map(|(_, text)| text.as_str())
                .collect();
            let text = texts.join("\n\n");
            let body = text.split_once("\n\n").map_or(&*text, |(_, body)| body);
            let source = format!("messages {}", fold.span);
            items.push(LayerItem::new(body).with(Attribute::Source, source));
        }
    }
    Ok(items)
}
