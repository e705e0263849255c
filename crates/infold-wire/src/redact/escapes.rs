//! Replaces matches in a text whose escapes hide some of them: JSON may be inside texts that are inside JSON.

use std::borrow::Cow;
use std::ops::Range;

use crate::edits::splice;
use crate::scan::decode_escape;

/// The number of levels of escapes that are resolved.
const MAX_ESCAPE_LEVELS: usize = 16;

/// A match, and its replacement: a text without quotes, backslashes and control characters, so that it is the same at
/// every level.
pub(crate) type EscapedReplacement = (Range<usize>, String);

/// Replaces the matches after the escapes of `text` are resolved `first_level` times, and after each further time.
/// `None` if there are none.
pub(crate) fn replace_at_levels(
    text: &str,
    first_level: usize,
    find: &mut dyn FnMut(&str) -> Vec<EscapedReplacement>,
) -> Option<String> {
    let mut replaced: Option<String> = None;
    let mut unescaped = Unescaped::new(text, first_level);
    for level in first_level..first_level + MAX_ESCAPE_LEVELS {
        let found = find(&unescaped.text).into_iter();
        let edits: Vec<EscapedReplacement> = found
            .map(|(range, new)| (unescaped.original(&range), new))
            .collect();
        if !edits.is_empty() {
            let now = replaced.as_deref().unwrap_or(text);
            let spliced = splice(now.as_bytes(), &edits);
            let spliced = String::from_utf8_lossy(&spliced).into_owned();
            unescaped = Unescaped::new(replaced.insert(spliced), level);
        }
        if !unescaped.resolve() {
            break;
        }
    }
    replaced
}

/// A text whose escapes were resolved, with the original place of each byte.
pub(crate) struct Unescaped<'a> {
    text: Cow<'a, str>,
    /// For each time that escapes were resolved: the offsets behind each escape, in the result and in the text before.
    levels: Vec<Vec<(usize, usize)>>,
}

impl<'a> Unescaped<'a> {
    /// Resolves the escapes of a text, those of the result, and so on, `levels` times.
    pub fn new(text: &'a str, levels: usize) -> Unescaped<'a> {
        let mut unescaped = Unescaped {
            text: Cow::Borrowed(text),
            levels: Vec::new(),
        };
        for _ in 0..levels {
            unescaped.resolve();
        }
        unescaped
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Resolves the escapes once more; says whether there was one.
    fn resolve(&mut self) -> bool {
        let mut resolved = String::new();
        let mut offsets = Vec::new();
        let mut copied = 0;
        let mut at = 0;
        while let Some(found) = memchr::memchr(b'\\', &self.text.as_bytes()[at..]) {
            at += found;
            let Some((length, char)) = decode_escape(&self.text.as_bytes()[at..]) else {
                at += 1;
                continue;
            };
            resolved.push_str(&self.text[copied..at]);
            resolved.push(char.unwrap_or(char::REPLACEMENT_CHARACTER));
            at += length;
            copied = at;
            offsets.push((resolved.len(), at));
        }
        if offsets.is_empty() {
            return false;
        }
        resolved.push_str(&self.text[copied..]);
        self.text = Cow::Owned(resolved);
        self.levels.push(offsets);
        true
    }

    /// Returns the original range of a range of whole characters.
    pub fn original(&self, range: &Range<usize>) -> Range<usize> {
        let mut range = range.clone();
        for offsets in self.levels.iter().rev() {
            let before = |offset: usize| {
                let next = offsets.partition_point(|(resolved, _)| *resolved <= offset);
                let (resolved, original) = next.checked_sub(1).map_or((0, 0), |at| offsets[at]);
                original + (offset - resolved)
            };
            range = before(range.start)..before(range.end);
        }
        range
    }
}
