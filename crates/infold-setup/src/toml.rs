//! Reads TOML and keeps where values stand; inserts and removes lines of tables.

mod parser;

pub(crate) use parser::parse;

use serde_json::Value;

use crate::edit::{Around, EditError, FoundKey, path_text};
use crate::text::{Patch, bom, insert_lines, line_stop, remove_lines};
use crate::tree::{Node, PathStep, set_in};

/// The tables and values of a text, in order.
#[derive(Debug, Default)]
pub(crate) struct TomlDocument {
    tables: Vec<TomlTable>,
    entries: Vec<TomlEntry>,
}

#[derive(Debug)]
struct TomlTable {
    path: Vec<PathStep>,
    start: usize,
    /// One of several of this name, `[[name]]`.
    is_element: bool,
}

#[derive(Debug)]
struct TomlEntry {
    /// The index of its table; none for what stands before all tables.
    table: Option<usize>,
    /// From the root.
    path: Vec<PathStep>,
    start: usize,
    value: Node,
}

impl TomlDocument {
    /// Returns the values without their places; of the tables of a list, the last.
    pub fn value(&self) -> Value {
        let mut root = Value::Object(serde_json::Map::new());
        for table in &self.tables {
            if find_in(&root, &table.path).is_none() {
                set_in(
                    &mut root,
                    &table.path,
                    &Value::Object(serde_json::Map::new()),
                );
            }
        }
        for entry in &self.entries {
            set_in(&mut root, &entry.path, &entry.value.value());
        }
        root
    }

    /// Returns the one value at a path, if it was written as one.
    fn node(&self, path: &[PathStep]) -> Option<&Node> {
        let plain = |entry: &&TomlEntry| {
            let is_element = |at: usize| self.tables[at].is_element;
            !entry.table.is_some_and(is_element) && path.starts_with(&entry.path)
        };
        let entry = self.entries.iter().rev().find(plain)?;
        entry.value.find(&path[entry.path.len()..])
    }

    /// Finds what is at a path.
    pub fn find(&self, path: &[PathStep]) -> FoundKey {
        match self.node(path) {
            Some(node) => FoundKey::Node(node.clone()),
            None => match find_in(&self.value(), path) {
                Some(value) => FoundKey::Spread(value.clone()),
                None => FoundKey::Nothing,
            },
        }
    }

    /// Inserts a value where nothing is.
    pub fn insert(
        &self,
        text: &str,
        path: &[PathStep],
        value: &Value,
        patch: &mut Patch,
    ) -> Result<Around, EditError> {
        let (last, parents) = path.split_last().ok_or(EditError::Shape(String::new()))?;
        let inside_value = |entry: &TomlEntry| path.starts_with(&entry.path);
        if self.entries.iter().any(inside_value) {
            return Err(EditError::Shape(path_text(parents)));
        }
        if let Value::Object(members) = value {
            let lines = table_lines(path, members.iter());
            return Ok(append_table(text, lines, patch));
        }
        let key = match last {
            PathStep::Key(key) => key,
            PathStep::Entry(..) => return Err(EditError::Shape(path_text(path))),
        };
        let line = vec![format!("{} = {}", quoted(key), literal(value))];
        let table = self
            .tables
            .iter()
            .rposition(|table| table.path == parents && !table.is_element);
        if parents.is_empty() || table.is_some() {
            let ours = self.entries.iter().rev().find(|entry| entry.table == table);
            let after = match (ours, table) {
                (Some(entry), _) => Some(line_stop(text, entry.value.span.end)),
                (None, Some(at)) => Some(line_stop(text, self.tables[at].start)),
                (None, None) => None,
            };
            insert_lines(text, after, &line, patch);
            return Ok(Around::default());
        }
        let lines = table_lines(parents, std::iter::once((key, value)));
        Ok(append_table(text, lines, patch))
    }

    /// Removes a value, or a table with these members and no others.
    pub fn remove(
        &self,
        text: &str,
        path: &[PathStep],
        around: &Around,
        patch: &mut Patch,
    ) -> Result<(), EditError> {
        let shape = || EditError::Shape(path_text(path));
        let single = self.entries.iter().find(|entry| entry.path == path);
        if let Some(entry) = single {
            let others = |other: &&TomlEntry| other.table == entry.table && other.path != path;
            let table = entry
                .table
                .filter(|_| self.entries.iter().filter(others).count() == 0);
            // A table that was made for this value goes with it.
            return match table.filter(|_| !around.suffix.is_empty()) {
                Some(table) => self.remove_table(text, table, around, patch),
                None => {
                    remove_lines(text, entry.start..entry.value.span.end, patch);
                    Ok(())
                }
            };
        }
        let table = self
            .tables
            .iter()
            .rposition(|table| table.path == path)
            .ok_or_else(shape)?;
        self.remove_table(text, table, around, patch)
    }

    fn remove_table(
        &self,
        text: &str,
        table: usize,
        around: &Around,
        patch: &mut Patch,
    ) -> Result<(), EditError> {
        let start = self.tables[table].start;
        let last = self
            .entries
            .iter()
            .rev()
            .find(|entry| entry.table == Some(table));
        let end = last.map_or(start, |entry| entry.value.span.end);
        // The blank line before it is ours, too.
        let before = text[..start].strip_suffix('\n');
        let before = before.map(|text| text.strip_suffix('\r').unwrap_or(text));
        let has_blank = before.is_some_and(|text| text.ends_with('\n'));
        let start = match before {
            Some(before) if has_blank && !around.prefix.is_empty() => before.len(),
            _ => start,
        };
        remove_lines(text, start..end, patch);
        Ok(())
    }
}

/// Puts a table behind all else, after a blank line.
fn append_table(text: &str, mut lines: Vec<String>, patch: &mut Patch) -> Around {
    let end = crate::text::line_end(text);
    let mut around = Around {
        prefix: String::new(),
        suffix: "table".to_owned(),
    };
    if text.len() > bom(text) {
        around.prefix = end.to_owned();
        lines.insert(0, String::new());
    }
    let last = text
        .strip_suffix('\n')
        .map(|text| text.strip_suffix('\r').unwrap_or(text));
    match last {
        // Behind the last line, and before its line end.
        Some(last) if last.len() > bom(text) => insert_lines(text, Some(last.len()), &lines, patch),
        // The text is one line end.
        Some(_) => patch.insert(text.len(), format!("{}{end}", lines[1..].join(end))),
        None => insert_lines(text, Some(text.len()), &lines, patch),
    }
    if last.is_some_and(|last| last.len() <= bom(text)) {
        around.prefix.clear();
    }
    around
}

fn table_lines<'a>(
    path: &[PathStep],
    members: impl Iterator<Item = (&'a String, &'a Value)>,
) -> Vec<String> {
    let names: Vec<String> = path
        .iter()
        .map(|step| match step {
            PathStep::Key(key) => quoted(key),
            PathStep::Entry(_, text) => quoted(text),
        })
        .collect();
    let mut lines = vec![format!("[{}]", names.join("."))];
    lines.extend(members.map(|(key, value)| format!("{} = {}", quoted(key), literal(value))));
    lines
}

/// JSON texts, numbers, truth values and lists of them are TOML too.
pub(crate) fn literal(value: &Value) -> String {
    crate::flow::render(value, None, "", "")
}

fn quoted(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.chars().all(is_bare) {
        key.to_owned()
    } else {
        Value::String(key.to_owned()).to_string()
    }
}

fn find_in<'a>(value: &'a Value, path: &[PathStep]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, step| match step {
        PathStep::Key(key) => value.get(key),
        PathStep::Entry(..) => None,
    })
}
