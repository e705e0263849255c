//! Finds the elements of a text: known tags that stand where an agent puts them, each with its closing tag.

use memchr::{memchr_iter, memmem};

use super::fences::Fences;
use super::table::{ELEMENTS, Holds};

/// What stands in an excerpt for what was left out.
const GAP: &str = "\n…\n";
/// A longer tag is none.
const MAX_TAG_BYTES: usize = 1000;

/// An element: where it starts and ends in the text, and what is inside.
#[derive(Clone, Copy, Debug)]
pub struct Element<'a> {
    pub at: usize,
    pub end: usize,
    pub name: &'static str,
    pub holds: Holds,
    pub inside: &'a str,
    /// Whether it starts where a line starts. One that does not counts only right behind another.
    pub starts_line: bool,
}

/// A known tag.
struct Tag {
    at: usize,
    end: usize,
    row: usize,
    closes: bool,
    /// Only blanks stand before it on its line,
    starts_line: bool,
    /// and only blanks, or another tag, behind it.
    ends_line: bool,
    /// It does not stand in quotes.
    bare: bool,
}

/// Returns the elements of `text` in order. One may lie inside of another.
///
/// A tag in the middle of a sentence is talk of it, and so is one that is never closed, one in quotes, and an
/// element that lies in a code fence.
pub fn elements(text: &str) -> Vec<Element<'_>> {
    let tags = tags(text);
    if tags.is_empty() {
        return Vec::new();
    }
    let fences = Fences::of(text);
    let mut next = vec![Next::default(); ELEMENTS.len()];
    let mut out = Vec::new();
    // From the back, so that the closing tags behind an opening one are known when it is met.
    for (index, tag) in tags.iter().enumerate().rev() {
        let next = &mut next[tag.row];
        if tag.closes {
            if tag.ends_line {
                next.close = Some(index);
                if tag.starts_line {
                    next.own_line = Some(index);
                    next.opened_before_own_line = false;
                }
            }
            continue;
        }
        let is_block = tag.ends_line
            && text[tag.end..]
                .trim_start_matches([' ', '\t'])
                .starts_with(['\n', '\r']);
        let close = next.close_of(is_block);
        if tag.starts_line && is_block {
            next.opened_before_own_line = true;
        }
        let Some(close) = close.map(|close| &tags[close]) else {
            out.extend(torn(text, tag).filter(|_| is_block));
            continue;
        };
        let closes_block = is_block && close.starts_line;
        // Some put a block right behind the last word; people put a blank there.
        let glued = !text[..tag.at].ends_with([' ', '\t']) && closes_block;
        if !tag.bare || !(tag.starts_line || glued || follows_tag(text, tag.at)) {
            continue;
        }
        if fences.hold(tag.at, close.end) {
            continue;
        }
        let (_, name, holds) = ELEMENTS[tag.row];
        out.push(Element {
            at: tag.at,
            end: close.end,
            name,
            holds,
            inside: &text[tag.end..close.at],
            starts_line: tag.starts_line || glued,
        });
    }
    out.reverse();
    out
}

/// An element that a text starts with, and whose end an excerpt has left out.
fn torn<'a>(text: &'a str, tag: &Tag) -> Option<Element<'a>> {
    let (_, name, holds) = ELEMENTS[tag.row];
    if tag.at > 0 || !matches!(holds, Holds::Context | Holds::Reminder) {
        return None;
    }
    let gap = memmem::find(text.as_bytes(), GAP.as_bytes())?;
    Some(Element {
        at: 0,
        end: gap + GAP.len(),
        name,
        holds,
        inside: &text[tag.end..gap],
        starts_line: true,
    })
}

/// The closing tags of one name that lie behind the place that was reached.
#[derive(Clone, Copy, Default)]
struct Next {
    /// The nearest that ends its line,
    close: Option<usize>,
    /// and the nearest that has a line of its own.
    own_line: Option<usize>,
    /// Whether another element of the name starts before the latter.
    opened_before_own_line: bool,
}

impl Next {
    /// An agent that puts the opening tag on a line of its own does the same with the closing one; what closes
    /// it otherwise is quoted in it. But not at the price of what lies between two elements.
    fn close_of(self, is_block: bool) -> Option<usize> {
        match self.own_line {
            Some(own_line) if is_block && !self.opened_before_own_line => Some(own_line),
            _ => self.close,
        }
    }
}

fn follows_tag(text: &str, at: usize) -> bool {
    text[..at].ends_with('>')
}

fn tags(text: &str) -> Vec<Tag> {
    let bytes = text.as_bytes();
    memchr_iter(b'<', bytes)
        .filter_map(|at| {
            let closes = bytes.get(at + 1) == Some(&b'/');
            let name_at = at + 1 + usize::from(closes);
            let (row, end) = known(text, name_at, closes)?;
            let line = text[..at].trim_end_matches([' ', '\t']);
            let rest = text[end..].trim_start_matches([' ', '\t']);
            let quotes = ['`', '"', '\'', '“', '‘'];
            Some(Tag {
                at,
                end,
                row,
                closes,
                starts_line: line.is_empty() || line.ends_with('\n'),
                ends_line: rest.is_empty() || rest.starts_with(['\n', '\r', '<']),
                bare: !text[..at].ends_with(quotes),
            })
        })
        .collect()
}

/// The row of the name at `at`, and where its tag ends.
fn known(text: &str, at: usize, closes: bool) -> Option<(usize, usize)> {
    let rest = &text.as_bytes()[at..];
    if !rest.first()?.is_ascii_alphabetic() {
        return None;
    }
    let length = rest.iter().take(64).position(|byte| !is_name(*byte))?;
    let name = &rest[..length];
    let row = ELEMENTS.iter().position(|(_, known, _)| {
        known.as_bytes() == name
            || known.len() > length
                && known.as_bytes()[length] == b' '
                && rest.starts_with(known.as_bytes())
    })?;
    let after = ELEMENTS[row].1.len();
    let end = match rest.get(after)? {
        b'>' => after + 1,
        b' ' | b'\n' if !closes => {
            let attributes = &rest[after..rest.len().min(after + MAX_TAG_BYTES)];
            let end = attributes
                .iter()
                .position(|byte| matches!(byte, b'<' | b'>'))?;
            if attributes[end] == b'<' || !attributes[..end].contains(&b'=') {
                return None;
            }
            after + end + 1
        }
        _ => return None,
    };
    Some((row, at + end))
}

pub fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}
