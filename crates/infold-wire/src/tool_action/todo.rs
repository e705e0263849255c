//! Reads the todo lists of agents.

use std::borrow::Cow;

use crate::{Json, JsonKind};

/// One item of a todo list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Todo {
    /// The item's description.
    pub text: String,
    /// The item's progress.
    pub state: TodoState,
}

/// The progress of a todo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TodoState {
    /// The item has not begun.
    Open,
    /// The item is in progress.
    Doing,
    /// The item is finished, or given up.
    Done,
}

/// Longer lists are cut off.
const MAX_TODOS: usize = 100;

/// Reads a todo list: objects with a status, or Markdown with boxes.
pub fn read(list: Json<'_>) -> Vec<Todo> {
    match list.kind() {
        JsonKind::String => read_text(&list.text().unwrap_or_default()),
        _ => list
            .elements()
            .filter_map(read_item)
            .take(MAX_TODOS)
            .collect(),
    }
}

/// Reads lines such as `- [x] done`, `[-] under way` and `[ ] open`.
pub fn read_text(text: &str) -> Vec<Todo> {
    let lines = text.lines().filter_map(|line| {
        let line = line.trim_start_matches(['-', '*', ' ', '\t']);
        let mut rest = line.strip_prefix('[')?.chars();
        let state = match rest.next()? {
            ' ' => TodoState::Open,
            'x' | 'X' => TodoState::Done,
            _ => TodoState::Doing,
        };
        let text = rest.as_str().strip_prefix(']')?.trim();
        (!text.is_empty()).then(|| todo(text, state))
    });
    lines.take(MAX_TODOS).collect()
}

fn read_item(item: Json<'_>) -> Option<Todo> {
    if item.kind() == JsonKind::String {
        return Some(todo(&item.text()?, TodoState::Open));
    }
    let text = ["content", "step", "text", "title", "description", "task"]
        .iter()
        .find_map(|key| item.get(key)?.text())?;
    let status = item.get("status").or_else(|| item.get("state"));
    let status = status.and_then(Json::text).unwrap_or(Cow::Borrowed(""));
    let state = match &*status {
        "completed" | "done" | "cancelled" | "canceled" => TodoState::Done,
        "in_progress" | "in-progress" | "inProgress" | "doing" => TodoState::Doing,
        _ => TodoState::Open,
    };
    Some(todo(&text, state))
}

fn todo(text: &str, state: TodoState) -> Todo {
    Todo {
        text: crate::shorten(text, 200),
        state,
    }
}
