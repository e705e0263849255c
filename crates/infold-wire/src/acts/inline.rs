//! Calls that stand in the text: tags as Cline writes them, edit blocks as aider writes them.

use std::borrow::Cow;

use super::{Act, Called, Deed, todo};
use crate::shorten;

/// Tools that are called by a tag of their name.
const TAGS: [&str; 10] = [
    "read_file",
    "write_to_file",
    "replace_in_file",
    "apply_diff",
    "insert_content",
    "execute_command",
    "search_files",
    "list_files",
    "update_todo_list",
    "new_task",
];
const SEARCH: &str = "<<<<<<< SEARCH";
const REPLACE: &str = ">>>>>>> REPLACE";

/// Pushes what an assistant's text says, and what it calls.
pub fn split<'a>(text: Cow<'a, str>, out: &mut Vec<Deed<'a>>) {
    if text.contains(SEARCH) && !text.contains("<diff>") {
        let (said, calls) = edit_blocks(&text);
        out.push(Deed::Said(Cow::Owned(said)));
        out.extend(calls.into_iter().map(Deed::Called));
        return;
    }
    let mut calls = Vec::new();
    let mut said = String::new();
    let mut rest = &*text;
    while let Some((at, name, inner, end)) = next_tag(rest) {
        said.push_str(&rest[..at]);
        calls.push(tagged(name, inner));
        rest = &rest[end..];
    }
    if calls.is_empty() {
        out.push(Deed::Said(text));
        return;
    }
    said.push_str(rest);
    out.push(Deed::Said(Cow::Owned(said)));
    out.extend(calls.into_iter().map(Deed::Called));
}

/// The next known tag with its closing one: where it starts, its name, its inside, where it ends.
fn next_tag(text: &str) -> Option<(usize, &'static str, &str, usize)> {
    let mut from = 0;
    while let Some(found) = text[from..].find('<') {
        let at = from + found;
        let inner = &text[at + 1..];
        let name = TAGS.iter().find(|tag| {
            inner
                .strip_prefix(**tag)
                .is_some_and(|rest| rest.starts_with('>'))
        });
        if let Some(name) = name {
            let inside = &inner[name.len() + 1..];
            let close = format!("</{name}>");
            // Without its end it is talk of a tag, and so is all that follows.
            let length = inside.find(&close)?;
            let end = at + name.len() + 2 + length + close.len();
            return Some((at, name, &inside[..length], end));
        }
        from = at + 1;
    }
    None
}

fn tagged(name: &str, inside: &str) -> Called {
    let part = |tag: &str| {
        let (_, rest) = inside.split_once(&format!("<{tag}>"))?;
        let (part, _) = rest.split_once(&format!("</{tag}>"))?;
        Some(part.trim())
    };
    let path = || part("path").map(|path| shorten(path, 300));
    let act = match (name, path()) {
        ("read_file", Some(path)) => Act::Read(path),
        ("write_to_file", Some(path)) => Act::Write(path),
        ("replace_in_file" | "apply_diff" | "insert_content", Some(path)) => Act::Edit(path),
        ("execute_command", _) => Act::Run(shorten(part("command").unwrap_or_default(), 1000)),
        ("update_todo_list", _) => Act::Todos(todo::read_text(part("todos").unwrap_or_default())),
        (_, path) => match part("regex").or(part("file_pattern")) {
            Some(what) => Act::Search {
                what: shorten(what, 200),
                path,
            },
            None => Act::Other(path.unwrap_or_else(|| shorten(inside, 120))),
        },
    };
    let text = ["content", "diff", "command", "regex"]
        .iter()
        .filter_map(|tag| part(tag));
    Called {
        id: None,
        name: name.to_owned(),
        acts: vec![act],
        text: text.collect::<Vec<_>>().join("\n"),
    }
}

/// Takes the edit blocks out of a text. The line before a block, or before its fence, names the file.
fn edit_blocks(text: &str) -> (String, Vec<Called>) {
    let mut said = String::new();
    let mut calls: Vec<Called> = Vec::new();
    let mut inside: Option<Called> = None;
    let mut named = "";
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
            inside = Some(Called {
                id: None,
                name: "edit".to_owned(),
                acts: vec![Act::Edit(shorten(named, 300))],
                text: String::new(),
            });
            continue;
        }
        let fence = line.trim_start().starts_with("```");
        if !fence && !line.trim().is_empty() {
            named = line.trim().trim_matches(['`', '*', ':']);
        }
        if !fence {
            said.push_str(line);
            said.push('\n');
        }
    }
    calls.extend(inside);
    (said, calls)
}
