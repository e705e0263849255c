//! Reads JSON with comments and trailing commas, and keeps where values stand.

use serde_json::Value;

use crate::edit::SyntaxError;
use crate::text::bom;
use crate::tree::{Member, Node, NodeForm, NodeKind};

/// No configuration is nested deeper.
const MAX_DEPTH: usize = 64;

/// Parses a text.
pub(crate) fn parse(text: &str) -> Result<Node, SyntaxError> {
    let mut parser = JsonParser {
        text,
        at: bom(text),
    };
    parser.skip()?;
    let node = parser.value(0)?;
    parser.skip()?;
    if parser.at < text.len() {
        return Err(parser.error("there is more behind the value"));
    }
    Ok(node)
}

/// Returns where the next thing begins that is neither white space nor a comment.
pub(crate) fn skip(text: &str, at: usize) -> usize {
    let mut parser = JsonParser { text, at };
    match parser.skip() {
        Ok(()) => parser.at,
        Err(_) => text.len(),
    }
}

struct JsonParser<'a> {
    text: &'a str,
    at: usize,
}

impl JsonParser<'_> {
    fn error(&self, reason: impl Into<String>) -> SyntaxError {
        SyntaxError::at(self.text, self.at.min(self.text.len()), reason)
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip(&mut self) -> Result<(), SyntaxError> {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
            self.at += blank;
            let rest = self.rest();
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                let Some(end) = rest.find("*/") else {
                    return Err(self.error("the comment does not end"));
                };
                self.at += end + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, SyntaxError> {
        if depth > MAX_DEPTH {
            return Err(self.error("it is nested too deeply"));
        }
        let start = self.at;
        let kind = match self.rest().as_bytes().first() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => NodeKind::Scalar(Value::String(self.string()?)),
            Some(_) => self.word()?,
            None => return Err(self.error("a value is missing")),
        };
        Ok(Node {
            span: start..self.at,
            kind,
        })
    }

    fn object(&mut self, depth: usize) -> Result<NodeKind, SyntaxError> {
        let mut members = Vec::new();
        self.at += 1;
        loop {
            self.skip()?;
            if self.take('}') {
                return Ok(NodeKind::Map(members, NodeForm::Flow));
            }
            let start = self.at;
            if !self.rest().starts_with('"') {
                return Err(self.error("a key in double quotes or `}` is expected"));
            }
            let key = self.string()?;
            self.skip()?;
            if !self.take(':') {
                return Err(self.error("`:` is expected"));
            }
            self.skip()?;
            let value = self.value(depth + 1)?;
            members.push(Member { key, start, value });
            self.skip()?;
            if !self.take(',') && !self.rest().starts_with('}') {
                return Err(self.error("`,` or `}` is expected"));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<NodeKind, SyntaxError> {
        let mut items = Vec::new();
        self.at += 1;
        loop {
            self.skip()?;
            if self.take(']') {
                return Ok(NodeKind::List(items, NodeForm::Flow));
            }
            items.push(self.value(depth + 1)?);
            self.skip()?;
            if !self.take(',') && !self.rest().starts_with(']') {
                return Err(self.error("`,` or `]` is expected"));
            }
        }
    }

    fn take(&mut self, c: char) -> bool {
        let is_there = self.rest().starts_with(c);
        self.at += usize::from(is_there);
        is_there
    }

    fn string(&mut self) -> Result<String, SyntaxError> {
        let bytes = self.text.as_bytes();
        let mut end = self.at + 1;
        while let Some(byte) = bytes.get(end) {
            match byte {
                b'\\' => end += 2,
                b'"' => break,
                b'\n' => return Err(self.error("the text does not end on its line")),
                _ => end += 1,
            }
        }
        let Some(raw) = self.text.get(self.at..end + 1) else {
            return Err(self.error("the text does not end"));
        };
        let text = serde_json::from_str(raw).map_err(|error| self.error(error.to_string()))?;
        self.at = end + 1;
        Ok(text)
    }

    fn word(&mut self) -> Result<NodeKind, SyntaxError> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        let rest = self.rest();
        let word = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
        let value = serde_json::from_str(word).map_err(|_| self.error("a value is expected"))?;
        self.at += word.len();
        Ok(NodeKind::Scalar(value))
    }
}
