//! Reads TOML and keeps where values stand; inserts and removes lines of tables.

use std::ops::Range;

use serde_json::Value;

use crate::edit::{Around, EditError, Found, SyntaxError, path_text};
use crate::text::{Patch, bom, insert_lines, line_stop, remove_lines};
use crate::tree::{Form, Member, Node, NodeKind, Step, set_in};

/// No configuration is nested deeper.
const MAX_DEPTH: usize = 64;

/// The tables and values of a text, in order.
#[derive(Debug, Default)]
pub(crate) struct Document {
    tables: Vec<Table>,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Table {
    path: Vec<Step>,
    start: usize,
    /// One of several of this name, `[[name]]`.
    is_element: bool,
}

#[derive(Debug)]
struct Entry {
    /// The index of its table; none for what stands before all tables.
    table: Option<usize>,
    /// From the root.
    path: Vec<Step>,
    start: usize,
    value: Node,
}

/// Parses a text.
pub(crate) fn parse(text: &str) -> Result<Document, SyntaxError> {
    let mut parser = Parser {
        text,
        at: bom(text),
    };
    let mut document = Document::default();
    loop {
        parser.blank_lines()?;
        if parser.at >= text.len() {
            return Ok(document);
        }
        let start = parser.at;
        if parser.rest().starts_with('[') {
            let table = parser.table(start)?;
            let is_known = |other: &Table| other.path == table.path && !other.is_element;
            if !table.is_element && document.tables.iter().any(is_known) {
                let reason = format!("the table [{}] is there twice", path_text(&table.path));
                return Err(SyntaxError::at(text, start, reason));
            }
            document.tables.push(table);
        } else {
            let keys = parser.keys()?;
            parser.expect('=')?;
            parser.spaces();
            let value = parser.value(0)?;
            let table = document.tables.len().checked_sub(1);
            let mut path = table.map_or(Vec::new(), |at| document.tables[at].path.clone());
            path.extend(keys);
            let is_known = |other: &Entry| other.table == table && other.path == path;
            if document.entries.iter().any(is_known) {
                let reason = format!("the key `{}` is there twice", path_text(&path));
                return Err(SyntaxError::at(text, start, reason));
            }
            document.entries.push(Entry {
                table,
                path,
                start,
                value,
            });
        }
        parser.line_is_over()?;
    }
}

impl Document {
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
    fn node(&self, path: &[Step]) -> Option<&Node> {
        let plain = |entry: &&Entry| {
            let is_element = |at: usize| self.tables[at].is_element;
            !entry.table.is_some_and(is_element) && path.starts_with(&entry.path)
        };
        let entry = self.entries.iter().rev().find(plain)?;
        entry.value.find(&path[entry.path.len()..])
    }

    /// Finds what is at a path.
    pub fn find(&self, path: &[Step]) -> Found {
        match self.node(path) {
            Some(node) => Found::Node(node.clone()),
            None => match find_in(&self.value(), path) {
                Some(value) => Found::Spread(value.clone()),
                None => Found::Nothing,
            },
        }
    }

    /// Inserts a value where nothing is.
    pub fn insert(
        &self,
        text: &str,
        path: &[Step],
        value: &Value,
        patch: &mut Patch,
    ) -> Result<Around, EditError> {
        let (last, parents) = path.split_last().ok_or(EditError::Shape(String::new()))?;
        let inside_value = |entry: &Entry| path.starts_with(&entry.path);
        if self.entries.iter().any(inside_value) {
            return Err(EditError::Shape(path_text(parents)));
        }
        if let Value::Object(members) = value {
            let lines = table_lines(path, members.iter());
            return Ok(append_table(text, lines, patch));
        }
        let key = match last {
            Step::Key(key) => key,
            Step::Entry(..) => return Err(EditError::Shape(path_text(path))),
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
        path: &[Step],
        around: &Around,
        patch: &mut Patch,
    ) -> Result<(), EditError> {
        let shape = || EditError::Shape(path_text(path));
        let single = self.entries.iter().find(|entry| entry.path == path);
        if let Some(entry) = single {
            let others = |other: &&Entry| other.table == entry.table && other.path != path;
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
    let body = text[bom(text)..].trim_end_matches(['\r', '\n']);
    let mut around = Around {
        prefix: String::new(),
        suffix: "table".to_owned(),
    };
    if text.len() > bom(text) {
        around.prefix = end.to_owned();
        lines.insert(0, String::new());
    }
    let _ = body;
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
    path: &[Step],
    members: impl Iterator<Item = (&'a String, &'a Value)>,
) -> Vec<String> {
    let names: Vec<String> = path
        .iter()
        .map(|step| match step {
            Step::Key(key) => quoted(key),
            Step::Entry(_, text) => quoted(text),
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

fn find_in<'a>(value: &'a Value, path: &[Step]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Entry(..) => None,
    })
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn error(&self, reason: impl Into<String>) -> SyntaxError {
        SyntaxError::at(self.text, self.at.min(self.text.len()), reason)
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn spaces(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t']).len();
    }

    fn comment(&mut self) {
        self.spaces();
        if self.rest().starts_with('#') {
            self.at = line_stop(self.text, self.at);
        }
    }

    fn blank_lines(&mut self) -> Result<(), SyntaxError> {
        loop {
            self.comment();
            let rest = self.rest();
            let end = rest
                .strip_prefix("\r\n")
                .or_else(|| rest.strip_prefix('\n'));
            match end {
                Some(left) => self.at = self.text.len() - left.len(),
                None => return Ok(()),
            }
        }
    }

    fn line_is_over(&mut self) -> Result<(), SyntaxError> {
        self.comment();
        let rest = self.rest();
        if rest.is_empty() || rest.starts_with('\n') || rest.starts_with("\r\n") {
            return Ok(());
        }
        Err(self.error("the line should end here"))
    }

    fn expect(&mut self, c: char) -> Result<(), SyntaxError> {
        self.spaces();
        if !self.rest().starts_with(c) {
            return Err(self.error(format!("`{c}` is expected")));
        }
        self.at += 1;
        Ok(())
    }

    fn table(&mut self, start: usize) -> Result<Table, SyntaxError> {
        let is_element = self.rest().starts_with("[[");
        self.at += if is_element { 2 } else { 1 };
        let path = self.keys()?;
        self.expect(']')?;
        if is_element {
            self.expect(']')?;
        }
        Ok(Table {
            path,
            start,
            is_element,
        })
    }

    fn keys(&mut self) -> Result<Vec<Step>, SyntaxError> {
        let mut keys = Vec::new();
        loop {
            self.spaces();
            keys.push(Step::Key(self.key()?));
            self.spaces();
            if !self.rest().starts_with('.') {
                return Ok(keys);
            }
            self.at += 1;
        }
    }

    fn key(&mut self) -> Result<String, SyntaxError> {
        let rest = self.rest();
        if rest.starts_with(['"', '\'']) {
            return self.string();
        }
        let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let key = &rest[..rest.find(|c| !is_bare(c)).unwrap_or(rest.len())];
        if key.is_empty() {
            return Err(self.error("a key is expected"));
        }
        self.at += key.len();
        Ok(key.to_owned())
    }

    fn value(&mut self, depth: usize) -> Result<Node, SyntaxError> {
        if depth > MAX_DEPTH {
            return Err(self.error("it is nested too deeply"));
        }
        let start = self.at;
        let kind = match self.rest().as_bytes().first() {
            Some(b'"' | b'\'') => NodeKind::Scalar(Value::String(self.string()?)),
            Some(b'[') => self.list(depth)?,
            Some(b'{') => self.inline_table(depth)?,
            _ => NodeKind::Scalar(Value::String(self.word()?)),
        };
        Ok(Node {
            span: start..self.at,
            kind,
        })
    }

    fn list(&mut self, depth: usize) -> Result<NodeKind, SyntaxError> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.blank_lines()?;
            if self.rest().starts_with(']') {
                self.at += 1;
                return Ok(NodeKind::List(items, Form::Flow));
            }
            items.push(self.value(depth + 1)?);
            self.blank_lines()?;
            if self.rest().starts_with(',') {
                self.at += 1;
            } else if !self.rest().starts_with(']') {
                return Err(self.error("`,` or `]` is expected"));
            }
        }
    }

    fn inline_table(&mut self, depth: usize) -> Result<NodeKind, SyntaxError> {
        self.at += 1;
        let mut members = Vec::new();
        loop {
            self.blank_lines()?;
            if self.rest().starts_with('}') {
                self.at += 1;
                return Ok(NodeKind::Map(members, Form::Flow));
            }
            let start = self.at;
            let keys: Vec<String> = self
                .keys()?
                .into_iter()
                .map(|step| match step {
                    Step::Key(key) | Step::Entry(_, key) => key,
                })
                .collect();
            self.expect('=')?;
            self.spaces();
            let value = self.value(depth + 1)?;
            members.push(Member {
                key: keys.join("."),
                start,
                value,
            });
            self.blank_lines()?;
            if self.rest().starts_with(',') {
                self.at += 1;
            } else if !self.rest().starts_with('}') {
                return Err(self.error("`,` or `}` is expected"));
            }
        }
    }

    fn word(&mut self) -> Result<String, SyntaxError> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "+-_.:".contains(c);
        let rest = self.rest();
        let word = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
        let begins_well = word.starts_with(|c: char| c.is_ascii_digit() || "+-".contains(c));
        if !begins_well && !matches!(word, "true" | "false" | "inf" | "nan") {
            return Err(self.error("a value is expected: texts stand in quotes"));
        }
        self.at += word.len();
        // A date may be followed by a time.
        let time = self.rest().strip_prefix(' ').unwrap_or_default();
        let time = &time[..time.find(|c| !is_part(c)).unwrap_or(time.len())];
        if word.len() == 10 && word.matches('-').count() == 2 && time.contains(':') {
            self.at += 1 + time.len();
            return Ok(format!("{word} {time}"));
        }
        Ok(word.to_owned())
    }

    fn string(&mut self) -> Result<String, SyntaxError> {
        let rest = self.rest();
        let quote = &rest[..1];
        let is_long = rest.starts_with(&quote.repeat(3));
        let mark = if is_long {
            quote.repeat(3)
        } else {
            quote.to_owned()
        };
        let inner = self.at + mark.len();
        let range = self.string_end(inner, &mark, quote == "\"", is_long)?;
        let raw = &self.text[range.clone()];
        let text = if quote == "'" {
            raw.to_owned()
        } else {
            unescaped(raw)
        };
        self.at = range.end + mark.len();
        let first = text
            .strip_prefix("\r\n")
            .or_else(|| text.strip_prefix('\n'));
        Ok(match first {
            Some(rest) if is_long => rest.to_owned(),
            _ => text,
        })
    }

    fn string_end(
        &self,
        inner: usize,
        mark: &str,
        escapes: bool,
        is_long: bool,
    ) -> Result<Range<usize>, SyntaxError> {
        let bytes = self.text.as_bytes();
        let mut at = inner;
        while at < bytes.len() {
            match bytes[at] {
                b'\\' if escapes => at += 2,
                b'\n' if !is_long => break,
                _ if self.text.is_char_boundary(at) && self.text[at..].starts_with(mark) => {
                    // Up to two more quotes may belong to the text.
                    let quotes = self.text[at..]
                        .bytes()
                        .take_while(|byte| *byte == mark.as_bytes()[0]);
                    let more = if is_long {
                        quotes.count().saturating_sub(3).min(2)
                    } else {
                        0
                    };
                    return Ok(inner..at + more);
                }
                _ => at += 1,
            }
        }
        Err(self.error("the text does not end"))
    }
}

/// A basic text with its escapes read; what is no escape stays.
fn unescaped(raw: &str) -> String {
    let mut out = String::new();
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some(kind @ ('u' | 'U')) => {
                let digits: String = chars
                    .by_ref()
                    .take(if kind == 'u' { 4 } else { 8 })
                    .collect();
                let code = u32::from_str_radix(&digits, 16)
                    .ok()
                    .and_then(char::from_u32);
                out.push(code.unwrap_or('\u{fffd}'));
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}
