//! Removes the quotations from an error message.

use std::ops::Range;

/// The most bytes of a message that can be the provider's own words: text further in was sent to the provider.
const MAX_MESSAGE_BYTES: usize = 1 << 10;

/// Quotations nested deeper are plain text.
const MAX_QUOTE_DEPTH: usize = 8;

/// Members whose text is another service's error, wrapped in this one.
const WRAPPERS: &str = "error message msg detail details raw reason";

/// Returns the beginning of a message without its quotations.
///
/// In doubt a text is no quotation: a quote that never closes, single words, which are names of parameters, and quoted
/// errors of other services.
pub(super) fn without_quotes(text: &str) -> String {
    let mut own = String::new();
    let mut from = 0;
    for quote in quotes(text) {
        own.push_str(&text[from..quote.start]);
        from = quote.end;
    }
    own.push_str(&text[from..]);
    own.truncate(own.floor_char_boundary(MAX_MESSAGE_BYTES));
    own
}

/// Returns the outermost quotations of a text, in order.
fn quotes(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut open: Vec<(usize, char)> = Vec::new();
    for (at, mark) in text.char_indices() {
        let closes = match mark {
            '"' | '\'' | '`' | '“' | '«' => mark,
            '”' => '“',
            '»' => '«',
            _ => continue,
        };
        let end = at + mark.len_utf8();
        let place = open.iter().rposition(|(_, other)| *other == closes);
        let ends = text[end..]
            .chars()
            .next()
            .is_none_or(|c| !c.is_alphanumeric());
        match place.filter(|_| ends && !matches!(mark, '“' | '«')) {
            Some(place) => {
                let start = open[place].0;
                open.truncate(place);
                if is_quote(text, start, end) {
                    let inside = found.partition_point(|quote| quote.start < start);
                    found.truncate(inside);
                    found.push(start..end);
                }
            }
            None if open.len() < MAX_QUOTE_DEPTH && opens(text, at, end) => open.push((at, mark)),
            None => {}
        }
    }
    found
}

/// Returns whether a mark may open a quotation: an apostrophe does not, nor does a closing mark.
fn opens(text: &str, at: usize, end: usize) -> bool {
    let before = text[..at].trim_end_matches('\\').chars().next_back();
    let after = text[end..].chars().next();
    before.is_none_or(|c| !c.is_alphanumeric()) && after.is_some_and(|c| !c.is_whitespace())
}

/// Returns whether the text between two marks is a quotation.
fn is_quote(text: &str, start: usize, end: usize) -> bool {
    let whole = start == 0 && end == text.len();
    !whole && text[start..end].contains(char::is_whitespace) && !wraps_error(&text[..start])
}

/// Returns whether another service's error comes next: `'message': `, `error: `.
fn wraps_error(before: &str) -> bool {
    let space = |c: char| c == '\\' || c.is_whitespace();
    let Some(name) = before.trim_end_matches(space).strip_suffix([':', '=']) else {
        return false;
    };
    let name = name.trim_end_matches(space);
    let bare = name.trim_end_matches(['"', '\'', '\\']);
    // "Invalid message: …" quotes the request.
    if bare.len() < name.len() {
        WRAPPERS.split(' ').any(|wrapper| bare.ends_with(wrapper))
    } else {
        name.ends_with("error") || name.ends_with("exception")
    }
}
