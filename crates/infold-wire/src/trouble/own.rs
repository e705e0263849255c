//! What an error says itself, as opposed to what it quotes.

use std::ops::Range;

/// How much of a message is its own: what stands further in was sent to the provider, not said by it.
const MOST: usize = 1 << 10;

/// Quotes within quotes deeper than this are taken for plain text.
const DEPTH: usize = 8;

/// Members whose text is the error of another, wrapped in this one.
const WRAPS: [&str; 7] = [
    "error", "message", "msg", "detail", "details", "raw", "reason",
];

/// Returns the beginning of a message without what it quotes.
///
/// In doubt a text is its own: what opens and never closes, single words, which are names
/// of parameters, and what is quoted as the error of another.
pub(super) fn own(text: &str) -> String {
    let mut own = String::new();
    let mut from = 0;
    for quote in quotes(text) {
        own.push_str(&text[from..quote.start]);
        from = quote.end;
    }
    own.push_str(&text[from..]);
    own.truncate(own.floor_char_boundary(MOST));
    own
}

/// Where a text quotes, in order; the outermost quotes only.
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
            None if open.len() < DEPTH && opens(text, at, end) => open.push((at, mark)),
            None => {}
        }
    }
    found
}

/// Says whether a mark may begin a quote: an apostrophe does not, nor does a mark of closing.
fn opens(text: &str, at: usize, end: usize) -> bool {
    let before = text[..at].trim_end_matches('\\').chars().next_back();
    let after = text[end..].chars().next();
    before.is_none_or(|c| !c.is_alphanumeric()) && after.is_some_and(|c| !c.is_whitespace())
}

/// Says whether what stands between two marks is somebody else's.
fn is_quote(text: &str, start: usize, end: usize) -> bool {
    let whole = start == 0 && end == text.len();
    !whole && text[start..end].contains(char::is_whitespace) && !wraps(&text[..start])
}

/// Says whether the error of another comes next: `'message': `, `error: `.
fn wraps(before: &str) -> bool {
    let space = |c: char| c == '\\' || c.is_whitespace();
    let Some(name) = before.trim_end_matches(space).strip_suffix([':', '=']) else {
        return false;
    };
    let name = name.trim_end_matches(space);
    let bare = name.trim_end_matches(['"', '\'', '\\']);
    // "Invalid message: …" is about what was sent.
    match bare.len() < name.len() {
        true => WRAPS.iter().any(|wraps| bare.ends_with(wraps)),
        false => name.ends_with("error") || name.ends_with("exception"),
    }
}
