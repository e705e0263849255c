//! Reads files of `NAME=value` lines, and keeps where values stand.

use std::ops::Range;

use serde_json::Value;

use crate::edit::SyntaxError;
use crate::text::bom;
use crate::tree::{Member, Node, NodeForm, NodeKind};

/// Parses a text.
pub(crate) fn parse(text: &str) -> Result<Node, SyntaxError> {
    let mut members = Vec::new();
    let mut at = bom(text);
    while at < text.len() {
        let stop = crate::text::line_stop(text, at);
        let line = &text[at..stop];
        let trimmed = line.trim_start();
        let mut next = stop;
        if !trimmed.is_empty() && !trimmed.starts_with('#') {
            let start = stop - trimmed.len();
            let (member, end) = assignment(text, start..stop)?;
            members.push(member);
            next = crate::text::line_stop(text, end);
        }
        at = text[next..]
            .find('\n')
            .map_or(text.len(), |end| next + end + 1);
    }
    let span = members
        .first()
        .map_or(text.len(), |first: &Member| first.start);
    let end = members
        .last()
        .map_or(text.len(), |last: &Member| last.value.span.end);
    Ok(Node {
        span: span..end,
        kind: NodeKind::Map(members, NodeForm::Block),
    })
}

/// Reads an assignment; returns it and where its value ends.
fn assignment(text: &str, line: Range<usize>) -> Result<(Member, usize), SyntaxError> {
    let body = &text[line.clone()];
    let Some(equals) = body.find('=') else {
        return Err(SyntaxError::at(
            text,
            line.start,
            "`NAME=value` is expected",
        ));
    };
    let name = body[..equals].trim();
    let name = name.strip_prefix("export ").map_or(name, str::trim);
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err(SyntaxError::at(
            text,
            line.start,
            "`NAME=value` is expected",
        ));
    }
    let rest = &body[equals + 1..];
    let start = line.start + equals + 1 + (rest.len() - rest.trim_start().len());
    let quote = text[start..].chars().next().filter(|c| "\"'`".contains(*c));
    let closed = quote.and_then(|quote| {
        let inner = start + 1;
        Some((inner, inner + text[inner..].find(quote)?))
    });
    let (span, value) = match closed {
        Some((inner, end)) => (start..end + 1, &text[inner..end]),
        None => {
            let rest = &text[start..line.end];
            let value = rest.find(" #").map_or(rest, |at| &rest[..at]).trim_end();
            (start..start + value.len(), value)
        }
    };
    let end = span.end;
    let member = Member {
        key: name.to_owned(),
        start: line.start,
        value: Node {
            span,
            kind: NodeKind::Scalar(Value::String(value.to_owned())),
        },
    };
    Ok((member, end))
}
