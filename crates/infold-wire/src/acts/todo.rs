use std::borrow::Cow;

use crate::{Json, Kind};

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Todo {
    /// What is to be done.
    pub text: String,
    /// How far it is.
    pub state: State,
}

/// How far a thing to do is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not begun.
    Open,
    /// Under way.
    Doing,
    /// Finished, or given up.
    Done,
}

/// No list of things to do is longer.
const MOST: usize = 100;

/// Reads a list of things to do: objects with a status, or Markdown with boxes.
pub fn read(list: Json<'_>) -> Vec<Todo> {
    match list.kind() {
        Kind::String => read_text(&list.text().unwrap_or_default()),
        _ => list.elements().filter_map(read_item).take(MOST).collect(),
    }
}

/// Reads lines such as `- [x] done`, `[-] under way` and `[ ] open`.
pub fn read_text(text: &str) -> Vec<Todo> {
    let lines = text.lines().filter_map(|line| {
        let line = line.trim_start_matches(['-', '*', ' ', '\t']);
        let mut rest = line.strip_prefix('[')?.chars();
        let state = match rest.next()? {
            ' ' => State::Open,
            'x' | 'X' => State::Done,
            _ => State::Doing,
        };
        let text = rest.as_str().strip_prefix(']')?.trim();
        (!text.is_empty()).then(|| todo(text, state))
    });
    lines.take(MOST).collect()
}

fn read_item(item: Json<'_>) -> Option<Todo> {
    if item.kind() == Kind::String {
        return Some(todo(&item.text()?, State::Open));
    }
    let text = ["content", "step", "text", "title", "description", "task"]
        .iter()
        .find_map(|key| item.get(key)?.text())?;
    let status = item.get("status").or_else(|| item.get("state"));
    let status = status.and_then(Json::text).unwrap_or(Cow::Borrowed(""));
    let state = match &*status {
        "completed" | "done" | "cancelled" | "canceled" => State::Done,
        "in_progress" | "in-progress" | "inProgress" | "doing" => State::Doing,
        _ => State::Open,
    };
    Some(todo(&text, state))
}

fn todo(text: &str, state: State) -> Todo {
    Todo {
        text: crate::shorten(text, 200),
        state,
    }
}
