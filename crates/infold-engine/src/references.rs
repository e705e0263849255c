//! Finds references in a text: identifiers, paths and values that later messages may refer to.
//!
//! A **reference** is a word of at least four characters with inner structure: `camelCase`, `snake_case`, `kebab-case`,
//! `dotted.name`, `a::path`, letters with digits, `CAPITALS`; a path, a file name, a URL, an e-mail address; a number, date or
//! version of at least three digits; or a plain word in quotes. A leading `this.` or `self.` is not part of it.
//! Plain words are no references: they are language, and every text has them. Words outside of ASCII are none either, for
//! want of the inner structure, nor are encoded bytes such as base64, which are data.

use std::collections::HashMap;

/// A longer path or scoped name is data rather than a reference.
const MAX_REFERENCE_BYTES: usize = 160;
/// The same for a name without a slash.
const MAX_NAME_BYTES: usize = 64;
/// Mixed letters and digits of at least this length are encoded bytes; shorter ones may be a name.
const MIN_DATA_BYTES: usize = 32;

// The classes of bytes, as bits: the bits of a run tell of which classes it has bytes.
const LOWER: u8 = 1;
const UPPER: u8 = 2;
const DIGIT: u8 = 4;
const UNDER: u8 = 8;
const DASH: u8 = 16;
const DOT: u8 = 32;
const SLASH: u8 = 64;
const AT: u8 = 128;
const WORD: u8 = LOWER | UPPER | DIGIT | UNDER;

/// The class of each byte; zero for bytes that end a run, which includes all bytes outside of ASCII.
const CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = match byte as u8 {
            b'a'..=b'z' => LOWER,
            b'A'..=b'Z' => UPPER,
            b'0'..=b'9' => DIGIT,
            b'_' => UNDER,
            b'-' => DASH,
            b'.' => DOT,
            b'/' => SLASH,
            b'@' => AT,
            _ => 0,
        };
        byte += 1;
    }
    table
}

/// Calls `found` with each reference in `text`, in order; a reference that occurs twice is reported twice.
pub fn for_each<'a>(text: &'a str, mut found: impl FnMut(&'a str)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if CLASS[bytes[at] as usize] & WORD == 0 {
            at += 1;
            continue;
        }
        let run = WordRun::read(bytes, at);
        at = run.end;
        if run.end - run.start < 3 {
            continue;
        }
        if let Some(end) = run.data_end(bytes) {
            at = end;
            continue;
        }
        if let Some((start, end)) = run.reference(bytes) {
            found(&text[start..end]);
        }
    }
}

/// Returns the references of `text` in order; a reference that occurs twice is returned twice.
pub fn all(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    for_each(text, |reference| out.push(reference));
    out
}

/// A run of words joined by `-`, `.`, `/`, `@` and `::`, or a URL. It is a candidate for a reference.
struct WordRun {
    start: usize,
    end: usize,
    /// The classes of its bytes.
    flags: u8,
    /// Whether an upper-case letter follows a lower-case one.
    has_case_change: bool,
    /// Whether it contains `::` or `://`.
    has_colons: bool,
}

impl WordRun {
    /// Reads the run that starts with the word byte at `from`.
    fn read(bytes: &[u8], from: usize) -> WordRun {
        let mut run = WordRun {
            start: from,
            end: from,
            flags: 0,
            has_case_change: false,
            has_colons: false,
        };
        let mut at = from;
        let mut last = 0;
        let class = |at: usize| bytes.get(at).map_or(0, |byte| CLASS[*byte as usize]);
        loop {
            let this = class(at);
            if this & WORD != 0 {
                run.has_case_change |= this == UPPER && last == LOWER;
            } else if this == 0 || class(at + 1) & WORD == 0 {
                let rest = &bytes[at.min(bytes.len())..];
                if rest.starts_with(b"://") && run.flags == LOWER {
                    run.has_colons = true;
                    at += rest
                        .iter()
                        .position(|byte| url_ends(*byte))
                        .unwrap_or(rest.len());
                    break;
                }
                if !(rest.starts_with(b"::") && class(at + 2) & WORD != 0) {
                    break;
                }
                run.has_colons = true;
                at += 2;
                last = 0;
                continue;
            }
            run.flags |= this;
            last = this;
            at += 1;
        }
        run.end = at;
        run.widen(bytes);
        run
    }

    /// Returns the end of the encoded bytes that the run begins; `None` if it is not encoded bytes.
    fn data_end(&self, bytes: &[u8]) -> Option<usize> {
        let is_data = |byte: &u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'_' | b'-')
        };
        if bytes.get(self.end) != Some(&b'+') && self.end - self.start < MIN_DATA_BYTES {
            return None;
        }
        let rest = &bytes[self.start..];
        let length = rest
            .iter()
            .position(|byte| !is_data(byte))
            .unwrap_or(rest.len());
        let data = &rest[..length];
        let class = |byte: &u8| CLASS[*byte as usize];
        let flags = data.iter().fold(0, |flags, byte| flags | class(byte));
        // In encoded bytes capitals, small letters and digits alternate; in a long identifier they form words.
        let changes = data
            .windows(2)
            .filter(|two| class(&two[0]) != class(&two[1]))
            .count();
        let is_mixed = flags & (LOWER | UPPER | DIGIT) == LOWER | UPPER | DIGIT;
        (length >= MIN_DATA_BYTES && is_mixed && changes * 3 > length)
            .then_some(self.start + length)
    }

    /// Extends the run over the `/`, `./`, `~/` or `../` before a path, or the `@` before a scoped package name.
    fn widen(&mut self, bytes: &[u8]) {
        let before = |start: usize, byte: u8| start > 0 && bytes[start - 1] == byte;
        // The slash of a closing tag, as in `</div>`, begins no path.
        let is_tag = self.start >= 2 && bytes[self.start - 2] == b'<';
        if before(self.start, b'/') && !is_tag {
            self.start -= 1;
            self.flags |= SLASH;
            while before(self.start, b'.') || before(self.start, b'~') {
                self.start -= 1;
            }
        } else if before(self.start, b'@') && self.flags & SLASH != 0 {
            self.start -= 1;
        }
    }

    /// Returns the range of the reference in the run; `None` if the run is plain language, or too long to be a reference.
    fn reference(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        let (mut start, mut end) = (self.start, self.end);
        let before = start.checked_sub(1).map(|at| bytes[at]);
        if before == Some(b'\\') && matches!(bytes[start], b'n' | b't' | b'r') {
            // The letter belongs to an escape such as `\n`, not to the name after it.
            return WordRun::read(bytes, start + 1).reference(bytes);
        }
        // The same for `\u003c`, which has five characters after the backslash.
        if before == Some(b'\\') && is_unicode_escape(&bytes[start..end]) {
            return WordRun::read(bytes, start + 5).reference(bytes);
        }
        // A colour code of terminal output would otherwise be letters with digits.
        if matches!(before, Some(b'[' | b';')) && is_colour(&bytes[start..end]) {
            return None;
        }
        let whole = &bytes[start..end];
        // A URL or scoped name: punctuation at its end belongs to the sentence around it.
        if self.has_colons {
            while end > start && matches!(bytes[end - 1], b'.' | b',' | b';' | b':') {
                end -= 1;
            }
            return (end - start <= MAX_REFERENCE_BYTES).then_some((start, end));
        }
        for prefix in [&b"this."[..], b"self."] {
            if whole.starts_with(prefix) {
                start += prefix.len();
                return WordRun::read(bytes, start).reference(bytes);
            }
        }
        let flags = self.flags;
        // Without letters it is a number, date or version. A longer row of digits is data.
        if flags & (LOWER | UPPER) == 0 {
            let digits = whole.iter().filter(|byte| byte.is_ascii_digit()).count();
            return ((3..=20).contains(&digits) && whole.len() <= 32).then_some((start, end));
        }
        if whole.len() < 4 || whole.len() > MAX_REFERENCE_BYTES {
            return None;
        }
        let named = if flags & SLASH != 0 {
            is_path(whole, flags)
        } else {
            whole.len() <= MAX_NAME_BYTES && self.is_name(bytes, whole)
        };
        named.then_some((start, end))
    }

    /// Says whether a run without a slash has the inner structure of a name, or is in quotes.
    fn is_name(&self, bytes: &[u8], whole: &[u8]) -> bool {
        let flags = self.flags;
        let inner = flags & UNDER != 0
            && whole[1..whole.len() - 1]
                .iter()
                .any(|byte| CLASS[*byte as usize] == UNDER);
        self.has_case_change
            || inner
            || flags & (DASH | DOT | AT) != 0
            || flags & DIGIT != 0
            || flags & LOWER == 0
            || self.is_quoted(bytes)
    }

    fn is_quoted(&self, bytes: &[u8]) -> bool {
        let before = self.start.checked_sub(1).map(|at| bytes[at]);
        before.is_some_and(|byte| matches!(byte, b'"' | b'\'' | b'`'))
            && before == bytes.get(self.end).copied()
    }
}

/// Says whether a run with a slash is a path: `and/or` is plain language.
fn is_path(whole: &[u8], flags: u8) -> bool {
    let slashes = whole.iter().filter(|byte| **byte == b'/').count();
    let rooted = matches!(whole[0], b'/' | b'~' | b'.');
    slashes >= 2 || flags & (DOT | UNDER | DASH | DIGIT) != 0 || rooted && whole.len() >= 5
}

/// Says whether a run starts with the rest of a terminal's escape sequence, such as the `31m` of `ESC[31m`.
fn is_colour(whole: &[u8]) -> bool {
    let digits = whole
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    digits > 0 && whole.get(digits) == Some(&b'm')
}

/// Says whether a run starts with the rest of an escaped character, such as the `u003c` of `\u003c`.
fn is_unicode_escape(whole: &[u8]) -> bool {
    whole.first() == Some(&b'u')
        && whole
            .get(1..5)
            .is_some_and(|code| code.iter().all(u8::is_ascii_hexdigit))
}

fn url_ends(byte: u8) -> bool {
    byte <= b' ' || byte >= 0x80 || b"\"'`<>()[]{}|\\^".contains(&byte)
}

/// Finds given references in texts, each only as whole words: `b.rs` is found in `a/b.rs`, not in `ab.rs`.
///
/// The references are looked up by their first word, so the time depends on the text and hardly on their number.
pub struct ReferenceFinder {
    /// Indices into `wanted`, by the first word of the references.
    by_word: HashMap<Box<[u8]>, Vec<usize>>,
    wanted: Vec<Box<str>>,
}

impl ReferenceFinder {
    /// Returns a finder of these references. A reference without a letter, digit or `_` is never found.
    pub fn new<'a>(wanted: impl IntoIterator<Item = &'a str>) -> ReferenceFinder {
        let mut finder = ReferenceFinder {
            by_word: HashMap::new(),
            wanted: Vec::new(),
        };
        for text in wanted {
            let index = finder.wanted.len();
            finder.wanted.push(text.into());
            if let Some((from, to)) = words(text.as_bytes()).next() {
                let word = text.as_bytes()[from..to].into();
                finder.by_word.entry(word).or_default().push(index);
            }
        }
        finder
    }

    /// Returns the position of a reference among those given to [`ReferenceFinder::new`]; `None` if it was not given.
    pub fn index(&self, wanted: &str) -> Option<usize> {
        let (from, to) = words(wanted.as_bytes()).next()?;
        let same = self.by_word.get(&wanted.as_bytes()[from..to])?;
        same.iter()
            .copied()
            .find(|index| *self.wanted[*index] == *wanted)
    }

    /// Calls `found` for each occurrence in `text`, with the index of the reference that occurs.
    pub fn find(&self, text: &str, mut found: impl FnMut(usize)) {
        let bytes = text.as_bytes();
        if self.by_word.is_empty() {
            return;
        }
        for (from, to) in words(bytes) {
            let Some(candidates) = self.by_word.get(&bytes[from..to]) else {
                continue;
            };
            for index in candidates {
                if self.occurs_at(*index, bytes, from) {
                    found(*index);
                }
            }
        }
    }

    /// Says whether a reference occurs in `bytes` such that its first word is at `from`.
    fn occurs_at(&self, index: usize, bytes: &[u8], from: usize) -> bool {
        let wanted = self.wanted[index].as_bytes();
        let lead = words(wanted).next().map_or(0, |(start, _)| start);
        let Some(start) = from.checked_sub(lead) else {
            return false;
        };
        let end = start + wanted.len();
        bytes.get(start..end) == Some(wanted)
            && bytes
                .get(end)
                .is_none_or(|byte| CLASS[*byte as usize] & WORD == 0)
    }
}

/// Returns the ranges of the words: runs of letters, digits and `_`.
fn words(bytes: &[u8]) -> impl Iterator<Item = (usize, usize)> + '_ {
    let is_word = |byte: &u8| CLASS[*byte as usize] & WORD != 0;
    let mut at = 0;
    std::iter::from_fn(move || {
        let from = at + bytes[at..].iter().position(is_word)?;
        let length = bytes[from..].iter().position(|byte| !is_word(byte));
        at = length.map_or(bytes.len(), |length| from + length);
        Some((from, at))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_have_structure_and_language_has_none() {
        let text = "Please rename getUser in src/app.ts (see https://a.dev/x?y=1.) and/or MAX_SIZE, built-in `accent`; \
            it's e.g. 42, 250 or 2024-05-25, v1.2.3, self.total_count, this.foo, crate::seq::Seq, a@b.io, HAT017, 中文 名字";
        assert_eq!(
            all(text),
            [
                "getUser",
                "src/app.ts",
                "https://a.dev/x?y=1",
                "MAX_SIZE",
                "built-in",
                "accent",
                "250",
                "2024-05-25",
                "v1.2.3",
                "total_count",
                "crate::seq::Seq",
                "a@b.io",
                "HAT017"
            ]
        );
    }

    #[test]
    fn paths_keep_their_front() {
        assert_eq!(
            all("cd /usr/lib && cat ./a.txt ~/x/y ../up/z @scope/pkg.js"),
            ["/usr/lib", "./a.txt", "~/x/y", "../up/z", "@scope/pkg.js"]
        );
    }

    #[test]
    fn data_is_not_a_name() {
        assert!(all(&"a1".repeat(1000)).is_empty());
        assert!(all(&"/".repeat(1000)).is_empty());
        assert!(all("\u{1b}[38;5;242mtext \\nType").is_empty());
        assert!(all("").is_empty());
    }

    #[test]
    fn a_word_is_found_whole_or_not_at_all() {
        let finder = ReferenceFinder::new(["b.rs", "/a/b.rs", "x_y"]);
        let found = |text: &str| {
            let mut out = Vec::new();
            finder.find(text, |index| out.push(index));
            out
        };
        assert_eq!(found("see src/a/b.rs, or b.rss"), [1, 0]);
        assert_eq!(found("ab.rs x_y2 x_y"), [2]);
        assert!(found("").is_empty());
    }
}
