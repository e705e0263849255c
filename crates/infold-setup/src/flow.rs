//! Inserts members into mappings between brackets (JSON, and the flow style of YAML), and removes them. All other bytes
//! of the file stay as they are.

use std::ops::Range;

use serde_json::Value;

use crate::edit::{Around, Syntax};
use crate::json;
use crate::text::{Patch, begins_line, indent, line_end, line_stop};
use crate::tree::{Node, NodeKind};

/// Inserts a member at the end of a mapping; returns the text that was put around it, which a removal takes away.
pub(crate) fn insert(
    syntax: Syntax,
    text: &str,
    map: &Node,
    key: &str,
    value: &Value,
    patch: &mut Patch,
) -> Around {
    let key = Value::String(key.to_owned());
    let outer = indent(text, map.span.start).to_owned();
    let NodeKind::Map(members, _) = &map.kind else {
        return Around::default();
    };
    let newline = line_end(text);
    let Some(last) = members.last() else {
        return insert_first(text, map, &outer, &format!("{key}"), value, patch);
    };
    let stop = last.value.span.end;
    let comma = comma_after(syntax, text, stop);
    // The member is put behind a trailing comma that is there already, and behind a comment on the same line.
    let behind = comma.map_or(stop, |at| at + 1);
    let closing_bracket = map.span.end - 1;
    let end_of_line = line_stop(text, behind);
    let before_last = &text[map.span.start..last.start];
    let is_multi_line = begins_line(text, last.start) && before_last.contains('\n');
    let (at, prefix, inner) = if is_multi_line {
        let at = if end_of_line < closing_bracket {
            end_of_line
        } else {
            behind
        };
        let inner = indent(text, last.start).to_owned();
        (at, format!("{newline}{inner}"), Some(inner))
    } else {
        (behind, " ".to_owned(), None)
    };
    let unit = inner
        .as_deref()
        .map(|inner| indent_unit(inner, &outer).to_owned());
    let body = render(
        value,
        inner.as_deref(),
        unit.as_deref().unwrap_or("  "),
        newline,
    );
    let suffix = if comma.is_some() { "," } else { "" };
    if comma.is_none() {
        patch.insert(stop, ",");
    }
    patch.insert(at, format!("{prefix}{key}: {body}{suffix}"));
    Around {
        prefix,
        suffix: String::new(),
    }
}

/// Inserts the first member of a mapping.
fn insert_first(
    text: &str,
    map: &Node,
    outer: &str,
    key: &str,
    value: &Value,
    patch: &mut Patch,
) -> Around {
    let newline = line_end(text);
    let closing_bracket = map.span.end - 1;
    // The member is put behind comments in the empty mapping.
    let inside = &text[map.span.start + 1..closing_bracket];
    let at = map.span.start + 1 + inside.trim_end().len();
    let unit = if outer.contains('\t') { "\t" } else { "  " };
    let inner = format!("{outer}{unit}");
    let prefix = format!("{newline}{inner}");
    let suffix = if text[at..closing_bracket].contains('\n') {
        String::new()
    } else {
        format!("{newline}{outer}")
    };
    let body = render(value, Some(&inner), unit, newline);
    patch.insert(at, format!("{prefix}{key}: {body}{suffix}"));
    Around { prefix, suffix }
}

/// Removes a member of a mapping or an item of a list, with the comma that is no longer needed, and `around`, the text
/// that an insertion put around it. `parts` has the places of all members or items.
pub(crate) fn remove(
    syntax: Syntax,
    text: &str,
    parts: &[Range<usize>],
    index: usize,
    around: &Around,
    patch: &mut Patch,
) {
    let Range { mut start, mut end } = parts[index].clone();
    if let Some(comma) = comma_after(syntax, text, end) {
        if comma == end {
            end += 1;
            // The next one on the line comes to the place of this one.
            if index == 0 && parts.len() > 1 && !begins_line(text, start) {
                let rest = &text[end..];
                end += rest.len() - rest.trim_start_matches(' ').len();
            }
        } else {
            patch.remove(comma..comma + 1);
        }
    } else if index > 0
        && let Some(comma) = comma_after(syntax, text, parts[index - 1].end)
    {
        patch.remove(comma..comma + 1);
    }
    let is_alone = parts.len() == 1;
    // The line ends may have been converted since.
    let forms = [&around.prefix, &around.suffix].map(|text| line_end_forms(text));
    let is_before = |form: &&String| !form.is_empty() && text[..start].ends_with(*form);
    let prefix = forms[0].iter().find(is_before);
    if let Some(prefix) = prefix {
        start -= prefix.len();
        let suffix = forms[1].iter().find(|form| text[end..].starts_with(*form));
        if let Some(suffix) = suffix.filter(|_| is_alone) {
            end += suffix.len();
        }
    } else if begins_line(text, start) {
        start -= indent(text, start).len();
        start = text[..start].strip_suffix('\n').map_or(start, str::len);
        start = text[..start].strip_suffix('\r').map_or(start, str::len);
    } else if index > 0 && index + 1 == parts.len() {
        start = text[..start].trim_end_matches(' ').len();
    }
    patch.remove(start..end);
}

/// Returns a text with each kind of line ends, the longer one first.
fn line_end_forms(text: &str) -> [String; 2] {
    let short = text.replace("\r\n", "\n");
    [short.replace('\n', "\r\n"), short]
}

/// Writes a value: each member on a line of its own if an indentation is given, else all on one line. `unit` is what
/// one level adds to the indentation.
pub(crate) fn render(value: &Value, indent: Option<&str>, unit: &str, newline: &str) -> String {
    match (value, indent) {
        (Value::Object(members), Some(indent)) if !members.is_empty() => {
            let inner = format!("{indent}{unit}");
            let line = |(key, value): (&String, &Value)| {
                let value = render(value, Some(&inner), unit, newline);
                format!("{newline}{inner}{}: {value}", Value::String(key.clone()))
            };
            let lines: Vec<String> = members.iter().map(line).collect();
            format!("{{{}{newline}{indent}}}", lines.join(","))
        }
        (Value::Object(members), _) => {
            let pair = |(key, value): (&String, &Value)| {
                format!(
                    "{}: {}",
                    Value::String(key.clone()),
                    render(value, None, unit, newline)
                )
            };
            format!(
                "{{{}}}",
                members.iter().map(pair).collect::<Vec<_>>().join(", ")
            )
        }
        (Value::Array(items), _) => {
            let items = items.iter().map(|item| render(item, None, unit, newline));
            format!("[{}]", items.collect::<Vec<_>>().join(", "))
        }
        (other, _) => other.to_string(),
    }
}

/// Returns the position of the comma behind a value, if there is one.
fn comma_after(syntax: Syntax, text: &str, stop: usize) -> Option<usize> {
    let at = match syntax {
        Syntax::Json => json::skip(text, stop),
        _ => skip_with_hashes(text, stop),
    };
    text[at..].starts_with(',').then_some(at)
}

/// Returns where the next token begins, behind white space and comments that begin with `#`.
fn skip_with_hashes(text: &str, mut at: usize) -> usize {
    loop {
        let rest = &text[at..];
        at += rest.len() - rest.trim_start().len();
        if !text[at..].starts_with('#') {
            return at;
        }
        at = line_stop(text, at);
    }
}

/// Returns what one level of nesting adds to the indentation; two spaces if that is unknown.
fn indent_unit<'a>(inner: &'a str, outer: &str) -> &'a str {
    match inner.strip_prefix(outer) {
        Some(unit) if !unit.is_empty() => unit,
        _ => "  ",
    }
}
