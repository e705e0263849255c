//! Finds lines in a text and replaces pieces of it, so that all other bytes stay. Places are byte offsets.

use std::ops::Range;

/// Replacements of pieces of a text, collected in any order and applied at once, so that all offsets refer to the
/// original text. The pieces must not overlap.
#[derive(Debug, Default)]
pub(crate) struct Patch(Vec<(Range<usize>, String)>);

impl Patch {
    pub fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.0.push((at..at, text.into()));
    }

    pub fn replace(&mut self, range: Range<usize>, text: impl Into<String>) {
        self.0.push((range, text.into()));
    }

    pub fn remove(&mut self, range: Range<usize>) {
        self.0.push((range, String::new()));
    }

    /// Returns the new text; `None` if the pieces overlap or are not in the text.
    pub fn apply(mut self, text: &str) -> Option<String> {
        // The sort must be stable: texts inserted at the same place keep their order.
        self.0.sort_by_key(|(range, _)| (range.start, range.end));
        let mut out = String::with_capacity(text.len() + 64);
        let mut from = 0;
        for (range, new) in &self.0 {
            out.push_str(text.get(from..range.start)?);
            out.push_str(new);
            from = range.end;
        }
        out.push_str(text.get(from..)?);
        Some(out)
    }
}

/// Returns the line end of a text: that of its first line, or `\n` if it has only one line.
pub(crate) fn line_end(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// Returns where the line that contains `at` begins. The first line begins behind a byte order mark.
pub(crate) fn line_start(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    start.max(bom(text))
}

/// Returns where the line that contains `at` ends: the place before its line end.
pub(crate) fn line_stop(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let stop = rest.find('\n').map_or(text.len(), |end| at + end);
    if stop > at && text[..stop].ends_with('\r') {
        stop - 1
    } else {
        stop
    }
}

/// Returns the spaces and tabs at the beginning of the line that contains `at`; none of them stand behind `at`.
pub(crate) fn indent(text: &str, at: usize) -> &str {
    let line = text.get(line_start(text, at)..at).unwrap_or_default();
    let blank = line.len() - line.trim_start_matches([' ', '\t']).len();
    &line[..blank]
}

/// Returns whether only spaces and tabs stand between the beginning of the line and `at`.
pub(crate) fn begins_line(text: &str, at: usize) -> bool {
    indent(text, at).len() == at - line_start(text, at)
}

/// Returns the length of the byte order mark of a text; 0 if it has none.
pub(crate) fn bom(text: &str) -> usize {
    if text.starts_with('\u{feff}') { 3 } else { 0 }
}

/// Returns the line and the column of a place, both counted from 1. A column is a character, not a byte.
pub(crate) fn position(text: &str, at: usize) -> (usize, usize) {
    let before = &text[bom(text).min(at)..at];
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (line, before[start..].chars().count() + 1)
}

/// Inserts whole lines behind the line that ends at `after` (the place before its line end), or before all lines if
/// `after` is `None`.
///
/// If the last line of the text has no line end, the last line of the new text has none either.
pub(crate) fn insert_lines(text: &str, after: Option<usize>, lines: &[String], patch: &mut Patch) {
    // A text may mix line ends: the new lines get that of the line before them.
    let end = match after.map(|stop| &text[stop..]) {
        Some(rest) if rest.starts_with("\r\n") => "\r\n",
        Some(rest) if rest.starts_with('\n') => "\n",
        _ => line_end(text),
    };
    let joined = lines.join(end);
    match after {
        Some(stop) if stop > bom(text) => patch.insert(stop, format!("{end}{joined}")),
        _ if text.len() == bom(text) => patch.insert(text.len(), format!("{joined}{end}")),
        _ => patch.insert(bom(text), format!("{joined}{end}")),
    }
}

/// Removes all lines that a range touches, with their line ends.
pub(crate) fn remove_lines(text: &str, range: Range<usize>, patch: &mut Patch) {
    let start = line_start(text, range.start);
    let stop = line_stop(text, range.end);
    let after = match text[stop..].find('\n') {
        Some(end) => stop + end + 1,
        None => stop,
    };
    if after == stop && start > bom(text) {
        // The last line has no line end. The line before it loses its own, so that the text still ends without one.
        let before = text[..start].strip_suffix('\n').unwrap_or(&text[..start]);
        let before = before.strip_suffix('\r').unwrap_or(before);
        patch.remove(before.len()..stop);
    } else {
        patch.remove(start..after);
    }
}
