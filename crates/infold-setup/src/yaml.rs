//! Reads YAML and keeps where values stand; inserts and removes lines of block mappings and lists.

use std::ops::Range;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::Value;

use crate::edit::{EditError, SyntaxError};
use crate::text::{Patch, begins_line, bom, insert_lines, line_start, line_stop, remove_lines};
use crate::tree::{Member, Node, NodeForm, NodeKind, PathStep};

/// The most levels of nesting that are accepted.
const MAX_DEPTH: usize = 64;

/// Parses a text of one document.
pub(crate) fn parse(text: &str) -> Result<Node, SyntaxError> {
    let skipped = bom(text);
    let body = &text[skipped..];
    let mut places: Vec<usize> = body.char_indices().map(|(at, _)| at + skipped).collect();
    places.push(text.len());
    let mut builder = YamlBuilder {
        text,
        open: Vec::new(),
        root: None,
    };
    let place = |index: usize| *places.get(index).unwrap_or(&text.len());
    let mut parser = Parser::new_from_str(body);
    while let Some(event) = parser.next_event() {
        let (event, span) = event
            .map_err(|error| SyntaxError::at(text, place(error.marker().index()), error.info()))?;
        builder.add(event, place(span.start.index())..place(span.end.index()))?;
    }
    Ok(builder.root.unwrap_or(Node {
        span: text.len()..text.len(),
        kind: NodeKind::Scalar(Value::Null),
    }))
}

struct YamlBuilder<'a> {
    text: &'a str,
    open: Vec<Open>,
    root: Option<Node>,
}

struct Open {
    start: usize,
    form: NodeForm,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Map(Vec<Member>, Option<(String, usize)>),
}

impl YamlBuilder<'_> {
    fn add(&mut self, event: Event<'_>, span: Range<usize>) -> Result<(), SyntaxError> {
        let piece = self.piece(&span)?;
        match event {
            Event::DocumentStart(_) if self.root.is_some() => {
                return Err(SyntaxError::at(
                    self.text,
                    span.start,
                    "a second document begins here, and only files of one are edited: merge the two, or move the second one to a file of its own",
                ));
            }
            Event::Scalar(text, style, ..) => {
                let is_null = style == ScalarStyle::Plain
                    && matches!(&*text, "" | "~" | "null" | "Null" | "NULL");
                let value = if is_null {
                    Value::Null
                } else {
                    Value::String(text.into_owned())
                };
                return self.put(Node {
                    span: span.start..span.start + scalar_len(piece, style),
                    kind: NodeKind::Scalar(value),
                });
            }
            Event::Alias(id) => {
                return self.put(Node {
                    span,
                    kind: NodeKind::Scalar(Value::String(format!("*{id}"))),
                });
            }
            Event::SequenceStart(..) => self.begin(&span, Content::List(Vec::new()))?,
            Event::MappingStart(..) => self.begin(&span, Content::Map(Vec::new(), None))?,
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(open) = self.open.pop() {
                    let kind = match open.content {
                        Content::List(items) => NodeKind::List(items, open.form),
                        Content::Map(members, _) => NodeKind::Map(members, open.form),
                    };
                    let end = match open.form {
                        // The event's span goes on over a comment behind the bracket.
                        NodeForm::Flow => span.start + 1,
                        NodeForm::Block => last_end(&kind).unwrap_or(open.start),
                    };
                    return self.put(Node {
                        span: open.start..end,
                        kind,
                    });
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, span: &Range<usize>, content: Content) -> Result<(), SyntaxError> {
        if self.open.len() > MAX_DEPTH {
            return Err(SyntaxError::at(
                self.text,
                span.start,
                "it is nested too deeply",
            ));
        }
        // The event of a block collection may begin at the bracket of its first item, but then it is empty. That of a
        // flow collection may go on over blanks and comments behind its bracket.
        let piece = self.piece(span)?;
        let value = without_properties(piece);
        let start = span.start + (piece.len() - value.len());
        let is_flow = value.starts_with(['{', '[']);
        self.open.push(Open {
            start: if is_flow { start } else { span.start },
            form: if is_flow {
                NodeForm::Flow
            } else {
                NodeForm::Block
            },
            content,
        });
        Ok(())
    }

    /// Returns the text of a span. All slices of the text are within spans that were checked here.
    fn piece(&self, span: &Range<usize>) -> Result<&str, SyntaxError> {
        let piece = self.text.get(span.clone());
        piece.ok_or_else(|| {
            let start = span.start.min(self.text.len());
            SyntaxError::at(self.text, start, "where this ends is not known")
        })
    }

    fn put(&mut self, node: Node) -> Result<(), SyntaxError> {
        self.piece(&node.span)?;
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.root = Some(node),
            Some(Content::List(items)) => items.push(node),
            Some(Content::Map(members, key)) => match key.take() {
                Some((key, start)) => {
                    if members.iter().any(|member| member.key == key) {
                        let reason = format!("the key `{key}` is there twice");
                        return Err(SyntaxError::at(self.text, start, reason));
                    }
                    members.push(Member {
                        key,
                        start,
                        value: node,
                    });
                }
                None => {
                    let text = match node.value() {
                        Value::String(text) => text,
                        other => other.to_string(),
                    };
                    *key = Some((text, node.span.start));
                }
            },
        }
        Ok(())
    }
}

/// Returns how many bytes a scalar takes: the parser's span goes on over a comment behind a closing quote.
fn scalar_len(text: &str, style: ScalarStyle) -> usize {
    let quote = match style {
        ScalarStyle::SingleQuoted => '\'',
        ScalarStyle::DoubleQuoted => '"',
        _ => return text.trim_end().len(),
    };
    let Some(inner) = without_properties(text).strip_prefix(quote) else {
        return text.trim_end().len();
    };
    let before = text.len() - inner.len();
    closing_quote(inner, quote).map_or(text.trim_end().len(), |at| before + at + 1)
}

/// Returns the text of a value without the anchor and the tag before it.
fn without_properties(text: &str) -> &str {
    let mut value = text;
    while value.starts_with(['&', '!']) {
        value = value.trim_start_matches(|c: char| !c.is_whitespace());
        value = value.trim_start();
    }
    value
}

/// Returns where the closing quote is in the text behind the opening one.
fn closing_quote(inner: &str, quote: char) -> Option<usize> {
    let mut chars = inner.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\\' && quote == '"' {
            chars.next();
        } else if c == quote {
            // Two single quotes are one in the text.
            if quote == '"' || chars.next_if(|(_, next)| *next == quote).is_none() {
                return Some(at);
            }
        }
    }
    None
}

/// Where the last value of a list or mapping ends.
fn last_end(kind: &NodeKind) -> Option<usize> {
    match kind {
        NodeKind::List(items, _) => items.last().map(|item| item.span.end),
        NodeKind::Map(members, _) => members.last().map(|member| {
            // A value that is left out may be said to stand on the next line.
            let end = member.value.span.end;
            if member.value.is_null() {
                end.min(member.start + member.key.len() + 1)
                    .max(member.start)
            } else {
                end
            }
        }),
        NodeKind::Scalar(_) => None,
    }
}

/// Inserts what a path misses as lines behind what is there.
pub(crate) fn insert(
    text: &str,
    parent: &Node,
    holder: Option<&Member>,
    path: &[PathStep],
    value: &Value,
    patch: &mut Patch,
) -> Result<(), EditError> {
    let (column, after) = match (&parent.kind, holder) {
        (NodeKind::Map(members, NodeForm::Block), _) if !members.is_empty() => {
            let column = members[0].start - line_start(text, members[0].start);
            (column, Some(stop(text, parent)))
        }
        (NodeKind::List(items, NodeForm::Block), _) if !items.is_empty() => {
            (dash(text, &items[0])?, Some(stop(text, parent)))
        }
        // A key whose value is left out.
        (NodeKind::Scalar(Value::Null), Some(member)) => {
            let column = member.start - line_start(text, member.start);
            (column + 2, Some(line_stop(text, member.start)))
        }
        (NodeKind::Scalar(Value::Null), None) => {
            let end = text.trim_end().len().max(bom(text));
            (0, (end > bom(text)).then(|| text_stop(text)))
        }
        _ => return Err(EditError::Shape(crate::edit::path_text(path))),
    };
    if after == Some(text.len()) && ends_in_block(text) {
        let reason = "a text in a block ends here without a line end: add one";
        return Err(SyntaxError::at(text, text.len(), reason).into());
    }
    let mut lines = Vec::new();
    render(path, value, column, &mut lines);
    insert_lines(text, after, &lines, patch);
    Ok(())
}

/// Returns whether the last value is a block of lines, to which a line end would be added.
fn ends_in_block(text: &str) -> bool {
    let mut is_block = false;
    let mut parser = Parser::new_from_str(&text[bom(text)..]);
    while let Some(Ok((event, _))) = parser.next_event() {
        if let Event::Scalar(_, style, ..) = event {
            is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
        }
    }
    is_block
}

/// The end of the last line of a text that holds comments alone.
fn text_stop(text: &str) -> usize {
    let end = text.strip_suffix('\n').unwrap_or(text);
    end.strip_suffix('\r').unwrap_or(end).len()
}

/// The end of the last line that a value takes.
fn stop(text: &str, node: &Node) -> usize {
    line_stop(text, node.span.end)
}

/// The column of the dash before an item.
fn dash(text: &str, item: &Node) -> Result<usize, EditError> {
    let line = line_start(text, item.span.start);
    text[line..item.span.start]
        .rfind('-')
        .ok_or_else(|| EditError::Shape("a list".to_owned()))
}

/// Removes the lines of a member of a block mapping.
pub(crate) fn remove_member(
    text: &str,
    members: &[Member],
    at: usize,
    patch: &mut Patch,
) -> Result<(), EditError> {
    let member = &members[at];
    let line = line_start(text, member.start);
    let lead = text[line..member.start].trim();
    if lead == "-" {
        // The first of an item: the next one comes to the dash, unless a comment is before it.
        let end = member.value.span.end;
        let next = members.get(at + 1).map(|next| next.start);
        let next = next.filter(|next| text[end..*next].trim().is_empty());
        patch.remove(member.start..next.unwrap_or(end));
        return Ok(());
    }
    if !lead.is_empty() {
        return Err(EditError::Shape(member.key.clone()));
    }
    let end = last_end(&NodeKind::Map(vec![member.clone()], NodeForm::Block));
    remove_lines(text, member.start..end.unwrap_or(member.start), patch);
    Ok(())
}

/// Replaces the only member of a block mapping with `{}`, which stands behind the key of the mapping if only white space
/// is between them.
pub(crate) fn empty_mapping(text: &str, member: &Member, patch: &mut Patch) {
    let end = last_end(&NodeKind::Map(vec![member.clone()], NodeForm::Block));
    let end = end.unwrap_or(member.value.span.end);
    let before = text[..member.start].trim_end();
    if before.ends_with(':') {
        patch.replace(before.len()..end, " {}");
    } else {
        patch.replace(member.start..end, "{}");
    }
}

/// Removes the lines of an item of a block list.
pub(crate) fn remove_item(text: &str, item: &Node, patch: &mut Patch) -> Result<(), EditError> {
    // The dash may have a line of its own.
    let before = text[..item.span.start].trim_end();
    let dash = before.strip_suffix('-').map(str::len);
    let dash = dash.filter(|dash| begins_line(text, *dash));
    let dash = dash.ok_or_else(|| EditError::Shape("an item of a list".to_owned()))?;
    remove_lines(text, dash..item.span.end, patch);
    Ok(())
}

/// Writes a value below a path of keys as lines.
fn render(path: &[PathStep], value: &Value, column: usize, lines: &mut Vec<String>) {
    let blank = " ".repeat(column);
    match path.split_first() {
        Some((PathStep::Key(key), [])) => member(key, value, column, lines),
        Some((PathStep::Key(key), rest)) => {
            lines.push(format!("{blank}{}:", scalar(key)));
            render(rest, value, column + 2, lines);
        }
        Some((PathStep::Entry(..), [])) => item(value, column, lines),
        Some((PathStep::Entry(key, text), rest)) => {
            lines.push(format!(
                "{blank}- {}: {}",
                scalar(key),
                Value::String(text.clone())
            ));
            render(rest, value, column + 2, lines);
        }
        None => {}
    }
}

fn member(key: &str, value: &Value, column: usize, lines: &mut Vec<String>) {
    let (blank, key) = (" ".repeat(column), scalar(key));
    match value {
        Value::Object(members) if !members.is_empty() => {
            lines.push(format!("{blank}{key}:"));
            for (name, inner) in members {
                member(name, inner, column + 2, lines);
            }
        }
        other => lines.push(format!("{blank}{key}: {}", inline(other))),
    }
}

fn item(value: &Value, column: usize, lines: &mut Vec<String>) {
    let mut inner = Vec::new();
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                member(name, value, column + 2, &mut inner);
            }
        }
        other => inner.push(format!("{}{}", " ".repeat(column + 2), inline(other))),
    }
    if let Some(first) = inner.first_mut() {
        first.replace_range(column..column + 1, "-");
    }
    lines.append(&mut inner);
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        other => crate::flow::render(other, None, "", ""),
    }
}

/// Writes a text plain if that means the same, else in double quotes: JSON texts are YAML too.
pub(crate) fn scalar(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-./:".contains(c))
        && !text.ends_with(':')
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "true" | "false" | "yes" | "no" | "on" | "off" | "null" | "y" | "n"
        );
    if is_plain {
        text.to_owned()
    } else {
        Value::String(text.to_owned()).to_string()
    }
}
