//! Reads tool calls inside text: tags as Cline writes them, edit blocks as aider writes them.

use std::borrow::Cow;

use super::{MessageAction, ToolAction, ToolCall, todo};
use crate::shorten;

/// Tools that are called by a tag of their name.
const TAGS: &str = "read_file write_to_file replace_in_file apply_diff insert_content \
    execute_command search_files list_files update_todo_list new_task";
const SEARCH: &str = "<<<<<<< SEARCH";
const REPLACE: &str = ">>>>>>> REPLACE";

/// Splits an assistant's text into its words and its calls.
pub fn split<'a>(text: Cow<'a, str>, out: &mut Vec<MessageAction<'a>>) {
    if text.contains(SEARCH) && !text.contains("<diff>") {
        let (words, calls) = edit_blocks(&text);
        out.push(MessageAction::Text(Cow::Owned(words)));
        out.extend(calls.into_iter().map(MessageAction::Call));
        return;
    }
    let mut calls = Vec::new();
    let mut words = String::new();
    let mut rest = &*text;
    while let Some((at, name, inner, end)) = next_tag(rest) {
        words.push_str(&rest[..at]);
        calls.push(read_element(name, inner));
        rest = &rest[end..];
    }
    if calls.is_empty() {
        out.push(MessageAction::Text(text));
        return;
    }
    words.push_str(rest);
    out.push(MessageAction::Text(Cow::Owned(words)));
    out.extend(calls.into_iter().map(MessageAction::Call));
}

/// Returns the next known element: its start, its name, its content, its end.
fn next_tag(text: &str) -> Option<(usize, &'static str, &str, usize)> {
    let mut from = 0;
    while let Some(found) = text[from..].find('<') {
        let at = from + found;
        let inner = &text[at + 1..];
        let name = TAGS.split_whitespace().find(|tag| {
            inner
                .strip_prefix(tag)
                .is_some_and(|rest| rest.starts_with('>'))
        });
        if let Some(name) = name {
            let inside = &inner[name.len() + 1..];
            let close = format!("</{name}>");
            // Without its end a tag is only mentioned, and so are all that follow.
            let length = inside.find(&close)?;
            let end = at + name.len() + 2 + length + close.len();
            return Some((at, name, &inside[..length], end));
        }
        from = at + 1;
    }
    None
}

fn read_element(name: &str, inside: &str) -> ToolCall {
    let part = |tag: &str| {
        let (_, rest) = inside.split_once(&format!("<{tag}>"))?;
        let (part, _) = rest.split_once(&format!("</{tag}>"))?;
        Some(part.trim())
    };
    let path = || part("path").map(|path| shorten(path, 300));
    let action = match (name, path()) {
        ("read_file", Some(path)) => ToolAction::Read(path),
        ("write_to_file", Some(path)) => ToolAction::Write(path),
        ("replace_in_file" | "apply_diff" | "insert_content", Some(path)) => ToolAction::Edit(path),
        ("execute_command", _) => {
            ToolAction::Run(shorten(part("command").unwrap_or_default(), 1000))
        }
        ("update_todo_list", _) => {
            ToolAction::Todos(todo::read_text(part("todos").unwrap_or_default()))
        }
        (_, path) => match part("regex").or(part("file_pattern")) {
            Some(what) => ToolAction::Search {
                what: shorten(what, 200),
                path,
            },
            None => ToolAction::Other(path.unwrap_or_else(|| shorten(inside, 120))),
        },
    };
    let text = ["content", "diff", "command", "regex"]
        .iter()
        .filter_map(|tag| part(tag));
    ToolCall {
        id: None,
        name: name.to_owned(),
        actions: vec![action],
        text: text.collect::<Vec<_>>().join("\n"),
    }
}

/// Takes the edit blocks out of a text. The line before a block, or before its fence, names the file.
fn edit_blocks(text: &str) -> (String, Vec<ToolCall>) {
    let mut words = String::new();
    let mut calls: Vec<ToolCall> = Vec::new();
    let mut inside: Option<ToolCall> = None;
    let mut file = "";
    for line in text.lines() {
        if let Some(call) = &mut inside {
            if line.starts_with(REPLACE) {
                calls.extend(inside.take());
            } else {
                call.text.push_str(line);
                call.text.push('\n');
            }
            continue;
        }
        if line.starts_with(SEARCH) {
            inside = Some(ToolCall {
                id: None,
                name: "edit".to_owned(),
                actions: vec![ToolAction::Edit(shorten(file, 300))],
                text: String::new(),
            });
            continue;
        }
        let is_fence = line.trim_start().starts_with("```");
        if !is_fence && !line.trim().is_empty() {
            file = line.trim().trim_matches(['`', '*', ':']);
        }
        if !is_fence {
            words.push_str(line);
            words.push('\n');
        }
    }
    calls.extend(inside);
    (words, calls)
}
