//! Finds the elements of a text: known tags at the places where agents put them, each with its closing tag.

use memchr::{memchr_iter, memmem};

use super::code_fences::CodeFences;
use super::markers::{ELEMENTS, ElementContent};

/// The mark for omitted text in an excerpt.
const GAP: &str = "\n…\n";
/// A longer tag does not count.
const MAX_TAG_BYTES: usize = 1000;

/// An element: where it starts and ends in the text, and its inside.
#[derive(Clone, Copy, Debug)]
pub struct TextElement<'a> {
    pub at: usize,
    pub end: usize,
    pub name: &'static str,
    pub content: ElementContent,
    pub inside: &'a str,
    pub has_attributes: bool,
    /// Whether the element starts a line. One that does not counts only directly behind another.
    pub starts_line: bool,
}

/// A known tag.
struct Tag {
    at: usize,
    end: usize,
    /// The index of its name in [`ELEMENTS`].
    name: usize,
    is_closing: bool,
    /// Whether only blanks precede the tag on its line.
    starts_line: bool,
    /// Whether only blanks, or another tag, follow the tag on its line.
    ends_line: bool,
    is_quoted: bool,
}

/// Returns the elements of `text` in order. One may lie inside of another.
///
/// A tag in the middle of a sentence is only mentioned, and so is one that is never closed, one in quotes, and an
/// element in a code fence.
pub fn find_elements(text: &str) -> Vec<TextElement<'_>> {
    let tags = find_tags(text);
    if tags.is_empty() {
        return Vec::new();
    }
    let fences = CodeFences::of(text);
    let mut next = vec![ClosingTags::default(); ELEMENTS.len()];
    let mut out = Vec::new();
    // Backwards, so that the closing tags behind an opening one are known when it is read.
    for (index, tag) in tags.iter().enumerate().rev() {
        let next = &mut next[tag.name];
        if tag.is_closing {
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
        let close = next.nearest(is_block);
        if tag.starts_line && is_block {
            next.opened_before_own_line = true;
        }
        let Some(close) = close.map(|close| &tags[close]) else {
            out.extend(cut_off(text, tag).filter(|_| is_block));
            continue;
        };
        let closes_block = is_block && close.starts_line;
        // Some agents put a block directly behind the last word; people type a blank before it.
        let is_glued = !text[..tag.at].ends_with([' ', '\t']) && closes_block;
        let follows_tag = text[..tag.at].ends_with('>');
        let is_placed = tag.starts_line || is_glued || follows_tag;
        if tag.is_quoted || !is_placed || fences.hold(tag.at, close.end) {
            continue;
        }
        let (name, content) = ELEMENTS[tag.name];
        out.push(TextElement {
            at: tag.at,
            end: close.end,
            name,
            content,
            inside: &text[tag.end..close.at],
            has_attributes: text[tag.at..tag.end].contains('='),
            starts_line: tag.starts_line || is_glued,
        });
    }
    out.reverse();
    out
}

/// Returns the element at the start of a text, if an excerpt left out its end.
fn cut_off<'a>(text: &'a str, tag: &Tag) -> Option<TextElement<'a>> {
    let (name, content) = ELEMENTS[tag.name];
    if tag.at > 0 || !matches!(content, ElementContent::Context | ElementContent::Reminder) {
        return None;
    }
    let gap = memmem::find(text.as_bytes(), GAP.as_bytes())?;
    Some(TextElement {
        at: 0,
        end: gap + GAP.len(),
        name,
        content,
        inside: &text[tag.end..gap],
        has_attributes: text[tag.at..tag.end].contains('='),
        starts_line: true,
    })
}

/// The nearest closing tags of one name.
#[derive(Clone, Copy, Default)]
struct ClosingTags {
    /// The nearest that ends its line.
    close: Option<usize>,
    /// The nearest closing tag with a line of its own.
    own_line: Option<usize>,
    /// Whether another element of the name starts before the latter.
    opened_before_own_line: bool,
}

impl ClosingTags {
    /// Returns the closing tag of an opening one.
    ///
    /// An agent that puts the opening tag on a separate line does the same with the closing one; any other closing tag
    /// is quoted inside, unless the element would include the text between two elements.
    fn nearest(self, is_block: bool) -> Option<usize> {
        match self.own_line {
            Some(own_line) if is_block && !self.opened_before_own_line => Some(own_line),
            _ => self.close,
        }
    }
}

fn find_tags(text: &str) -> Vec<Tag> {
    let bytes = text.as_bytes();
    memchr_iter(b'<', bytes)
        .filter_map(|at| {
            let is_closing = bytes.get(at + 1) == Some(&b'/');
            let name_at = at + 1 + usize::from(is_closing);
            let (name, end) = known_tag(text, name_at, is_closing)?;
            let line = text[..at].trim_end_matches([' ', '\t']);
            let rest = text[end..].trim_start_matches([' ', '\t']);
            let quotes = ['`', '"', '\'', '“', '‘'];
            Some(Tag {
                at,
                end,
                name,
                is_closing,
                starts_line: line.is_empty() || line.ends_with('\n'),
                ends_line: rest.is_empty() || rest.starts_with(['\n', '\r', '<']),
                is_quoted: text[..at].ends_with(quotes),
            })
        })
        .collect()
}

/// Returns the index of the known name at `at`, and the end of its tag.
fn known_tag(text: &str, at: usize, is_closing: bool) -> Option<(usize, usize)> {
    let rest = &text.as_bytes()[at..];
    if !rest.first()?.is_ascii_alphabetic() {
        return None;
    }
    let length = rest.iter().take(64).position(|byte| !is_name_byte(*byte))?;
    let name = &rest[..length];
    let row = ELEMENTS.iter().position(|(known, _)| {
        known.as_bytes() == name
            || known.len() > length
                && known.as_bytes()[length] == b' '
                && rest.starts_with(known.as_bytes())
    })?;
    let after = ELEMENTS[row].0.len();
    let end = match rest.get(after)? {
        b'>' => after + 1,
        b' ' | b'\n' if !is_closing => {
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

/// Returns whether a byte may be part of an element's name.
pub fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}
