//! Parses TOML with the position of each key and value, so that an edit can leave all other bytes as they are.
//!
//! Only the structure is interpreted: numbers, booleans and dates are kept as their texts.

use std::ops::Range;

use serde_json::Value;

use super::{TomlDocument, TomlEntry, TomlTable};
use crate::edit::{SyntaxError, path_text};
use crate::text::{bom, line_stop};
use crate::tree::{Member, Node, NodeForm, NodeKind, PathStep};

/// No configuration is nested deeper.
const MAX_DEPTH: usize = 64;

/// Parses a text.
pub(crate) fn parse(text: &str) -> Result<TomlDocument, SyntaxError> {
    let mut parser = TomlParser {
        text,
        at: bom(text),
    };
    let mut document = TomlDocument::default();
    loop {
        parser.skip_blank_lines()?;
        if parser.at >= text.len() {
            return Ok(document);
        }
        let start = parser.at;
        if parser.rest().starts_with('[') {
            let table = parser.parse_table(start)?;
            let is_same = |other: &TomlTable| other.path == table.path && !other.is_element;
            if !table.is_element && document.tables.iter().any(is_same) {
                let reason = format!("the table [{}] is there twice", path_text(&table.path));
                return Err(SyntaxError::at(text, start, reason));
            }
            document.tables.push(table);
        } else {
            let keys = parser.parse_dotted_key()?;
            parser.expect('=')?;
            parser.skip_spaces();
            let value = parser.parse_value(0)?;
            let table = document.tables.len().checked_sub(1);
            let mut path = table.map_or(Vec::new(), |at| document.tables[at].path.clone());
            path.extend(keys);
            let is_same = |other: &TomlEntry| other.table == table && other.path == path;
            if document.entries.iter().any(is_same) {
                let reason = format!("the key `{}` is there twice", path_text(&path));
                return Err(SyntaxError::at(text, start, reason));
            }
            document.entries.push(TomlEntry {
                table,
                path,
                start,
                value,
            });
        }
        parser.expect_line_end()?;
    }
}

struct TomlParser<'a> {
    text: &'a str,
    /// The position of the next byte.
    at: usize,
}

impl<'a> TomlParser<'a> {
    fn error(&self, reason: impl Into<String>) -> SyntaxError {
        SyntaxError::at(self.text, self.at.min(self.text.len()), reason)
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_spaces(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t']).len();
    }

    /// Skips spaces and a comment, up to the end of the line.
    fn skip_comment(&mut self) {
        self.skip_spaces();
        if self.rest().starts_with('#') {
            self.at = line_stop(self.text, self.at);
        }
    }

    /// Skips lines that are empty or have a comment only, and the spaces after them.
    fn skip_blank_lines(&mut self) -> Result<(), SyntaxError> {
        loop {
            self.skip_comment();
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

    /// Checks that nothing but a comment follows on the line.
    fn expect_line_end(&mut self) -> Result<(), SyntaxError> {
        self.skip_comment();
        let rest = self.rest();
        if rest.is_empty() || rest.starts_with('\n') || rest.starts_with("\r\n") {
            return Ok(());
        }
        Err(self.error("the line should end here"))
    }

    /// Reads a character, and the spaces before it.
    fn expect(&mut self, c: char) -> Result<(), SyntaxError> {
        self.skip_spaces();
        if !self.rest().starts_with(c) {
            return Err(self.error(format!("`{c}` is expected")));
        }
        self.at += 1;
        Ok(())
    }

    /// Parses the head of a table, such as `[a.b]`, or of an element of an array of tables, such as `[[a.b]]`.
    fn parse_table(&mut self, start: usize) -> Result<TomlTable, SyntaxError> {
        let is_element = self.rest().starts_with("[[");
        self.at += if is_element { 2 } else { 1 };
        let path = self.parse_dotted_key()?;
        self.expect(']')?;
        if is_element {
            self.expect(']')?;
        }
        Ok(TomlTable {
            path,
            start,
            is_element,
        })
    }

    /// Parses the keys of a path, such as `a."b c".d`.
    fn parse_dotted_key(&mut self) -> Result<Vec<PathStep>, SyntaxError> {
        let mut keys = Vec::new();
        loop {
            self.skip_spaces();
            keys.push(PathStep::Key(self.parse_key()?));
            self.skip_spaces();
            if !self.rest().starts_with('.') {
                return Ok(keys);
            }
            self.at += 1;
        }
    }

    fn parse_key(&mut self) -> Result<String, SyntaxError> {
        let rest = self.rest();
        if rest.starts_with(['"', '\'']) {
            return self.parse_string();
        }
        let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let key = &rest[..rest.find(|c| !is_bare(c)).unwrap_or(rest.len())];
        if key.is_empty() {
            return Err(self.error("a key is expected"));
        }
        self.at += key.len();
        Ok(key.to_owned())
    }

    fn parse_value(&mut self, depth: usize) -> Result<Node, SyntaxError> {
        if depth > MAX_DEPTH {
            return Err(self.error("it is nested too deeply"));
        }
        let start = self.at;
        let kind = match self.rest().as_bytes().first() {
            Some(b'"' | b'\'') => NodeKind::Scalar(Value::String(self.parse_string()?)),
            Some(b'[') => self.parse_list(depth)?,
            Some(b'{') => self.parse_inline_table(depth)?,
            _ => NodeKind::Scalar(Value::String(self.parse_bare_value()?)),
        };
        Ok(Node {
            span: start..self.at,
            kind,
        })
    }

    fn parse_list(&mut self, depth: usize) -> Result<NodeKind, SyntaxError> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.skip_blank_lines()?;
            if self.rest().starts_with(']') {
                self.at += 1;
                return Ok(NodeKind::List(items, NodeForm::Flow));
            }
            items.push(self.parse_value(depth + 1)?);
            self.skip_blank_lines()?;
            if self.rest().starts_with(',') {
                self.at += 1;
            } else if !self.rest().starts_with(']') {
                return Err(self.error("`,` or `]` is expected"));
            }
        }
    }

    fn parse_inline_table(&mut self, depth: usize) -> Result<NodeKind, SyntaxError> {
        self.at += 1;
        let mut members = Vec::new();
        loop {
            self.skip_blank_lines()?;
            if self.rest().starts_with('}') {
                self.at += 1;
                return Ok(NodeKind::Map(members, NodeForm::Flow));
            }
            let start = self.at;
            let keys: Vec<String> = self
                .parse_dotted_key()?
                .into_iter()
                .map(|step| match step {
                    PathStep::Key(key) | PathStep::Entry(_, key) => key,
                })
                .collect();
            self.expect('=')?;
            self.skip_spaces();
            let value = self.parse_value(depth + 1)?;
            members.push(Member {
                key: keys.join("."),
                start,
                value,
            });
            self.skip_blank_lines()?;
            if self.rest().starts_with(',') {
                self.at += 1;
            } else if !self.rest().starts_with('}') {
                return Err(self.error("`,` or `}` is expected"));
            }
        }
    }

    /// Parses a value without quotes: a number, a boolean or a date.
    fn parse_bare_value(&mut self) -> Result<String, SyntaxError> {
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

    /// Parses a string in double or single quotes, or in three of them.
    fn parse_string(&mut self) -> Result<String, SyntaxError> {
        let rest = self.rest();
        let quote = &rest[..1];
        let is_long = rest.starts_with(&quote.repeat(3));
        let mark = if is_long {
            quote.repeat(3)
        } else {
            quote.to_owned()
        };
        let inner = self.at + mark.len();
        let range = self.find_string_end(inner, &mark, quote == "\"", is_long)?;
        let raw = &self.text[range.clone()];
        let text = if quote == "'" {
            raw.to_owned()
        } else {
            unescape(raw)
        };
        self.at = range.end + mark.len();
        // A line break right after the opening delimiter of a multi-line string does not belong to it.
        let without_break = text
            .strip_prefix("\r\n")
            .or_else(|| text.strip_prefix('\n'));
        Ok(match without_break {
            Some(rest) if is_long => rest.to_owned(),
            _ => text,
        })
    }

    /// Returns the range of a string without its delimiters; `inner` is its start, and `mark` its delimiter.
    fn find_string_end(
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

/// Returns a string with its escapes replaced. An unknown escape gives the escaped character.
fn unescape(raw: &str) -> String {
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
