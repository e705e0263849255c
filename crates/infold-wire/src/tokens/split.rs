//! Splits a text into pieces, whose bytes are then merged.
//!
//! Each encoding defines its pieces by a regular expression. These scanners split where
//! it would, including where it would backtrack, and read each byte at most a few times.

use super::char_class::Class;

/// A text to be split.
#[derive(Clone, Copy)]
pub struct SplitText<'a> {
    /// Valid UTF-8.
    pub bytes: &'a [u8],
    /// Whether the text is complete.
    pub whole: bool,
}

/// The end of a piece, or `None` if that depends on the next text.
pub type End = Option<usize>;

impl SplitText<'_> {
    #[inline(always)]
    fn class(self, at: usize) -> Option<(Class, usize)> {
        Class::at(self.bytes, at)
    }

    /// Returns an end that is certain only if the text is complete.
    fn cut(self, end: usize) -> End {
        (self.whole || end < self.bytes.len()).then_some(end)
    }

    /// Skips the characters that `is` holds for.
    #[inline(always)]
    fn run(self, mut at: usize, is: impl Fn(Class) -> bool) -> usize {
        while let Some((class, next)) = self.class(at)
            && is(class)
        {
            at = next;
        }
        at
    }
}

/// Returns where the piece that starts at `start`, which is in the text, ends for o200k_base.
#[inline]
pub fn o200k(text: SplitText<'_>, start: usize) -> End {
    let (first, second) = text.class(start)?;
    match first {
        Class::Upper | Class::Lower | Class::Letter => return word(text, start),
        Class::Number => return number(text, start),
        Class::Newline => return space(text, start),
        Class::Other | Class::Mark | Class::Space => {}
    }
    let Some((next, _)) = text.class(second) else {
        return text.whole.then_some(second);
    };
    if next.is_letter() || next == Class::Mark {
        if first != Class::Mark {
            return word(text, second);
        }
        return after_mark(text, second);
    }
    if first == Class::Mark {
        // A mark is a separate word.
        return contraction(text, second);
    }
    if first == Class::Space && !(text.bytes[start] == b' ' && next.is_sign()) {
        space(text, start)
    } else {
        signs(text, second, b"\r\n/")
    }
}

/// Returns where the piece that starts at `start`, which is in the text, ends for cl100k_base.
#[inline]
pub fn cl100k(text: SplitText<'_>, start: usize) -> End {
    let (first, second) = text.class(start)?;
    if text.bytes[start] == b'\'' {
        let end = contraction(text, start)?;
        if end > start {
            return Some(end);
        }
    }
    match first {
        Class::Upper | Class::Lower | Class::Letter => {
            return text.cut(text.run(second, Class::is_letter));
        }
        Class::Number => return number(text, start),
        Class::Newline => return space_to_the_end(text, start),
        Class::Other | Class::Mark | Class::Space => {}
    }
    let Some((next, _)) = text.class(second) else {
        return text.whole.then_some(second);
    };
    if next.is_letter() {
        return text.cut(text.run(second, Class::is_letter));
    }
    if first == Class::Space && !(text.bytes[start] == b' ' && next.is_sign()) {
        space_to_the_end(text, start)
    } else {
        signs(text, second, b"\r\n")
    }
}

/// A word from its first letter or mark on: `U*L+` or else `U+L*`, and a contraction.
fn word(text: SplitText<'_>, start: usize) -> End {
    let (upper, caseless) = upper_run(text, start);
    let end = text.run(upper, is_lower);
    if end > upper {
        return contraction(text, end);
    }
    text.cut(upper)?;
    // No lower case follows: the word ends with the last letter that may count as one.
    contraction(text, caseless.unwrap_or(upper))
}

/// A word after a mark, which leads it if a word of lower case follows and is one if not.
fn after_mark(text: SplitText<'_>, second: usize) -> End {
    let (upper, caseless) = upper_run(text, second);
    let lower = text.run(upper, is_lower);
    if lower > upper {
        return contraction(text, lower);
    }
    text.cut(upper)?;
    match caseless {
        Some(end) => contraction(text, end),
        None => Some(second),
    }
}

/// The end of `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*`, and of the last in it that lower case has too.
fn upper_run(text: SplitText<'_>, mut at: usize) -> (usize, Option<usize>) {
    let mut caseless = None;
    while let Some((class, next)) = text.class(at) {
        match class {
            Class::Letter | Class::Mark => caseless = Some(next),
            Class::Upper => {}
            _ => break,
        }
        at = next;
    }
    (at, caseless)
}

fn is_lower(class: Class) -> bool {
    matches!(class, Class::Lower | Class::Letter | Class::Mark)
}

/// Skips `(?i:'s|'t|'re|'ve|'m|'ll|'d)`, if it is there.
#[inline(always)]
fn contraction(text: SplitText<'_>, at: usize) -> End {
    match text.bytes.get(at) {
        Some(b'\'') => after_apostrophe(text, at),
        Some(_) => Some(at),
        None => text.whole.then_some(at),
    }
}

fn after_apostrophe(text: SplitText<'_>, at: usize) -> End {
    let lower = |by: usize| text.bytes.get(at + by).map(u8::to_ascii_lowercase);
    match (lower(1), lower(2)) {
        (None, _) => text.whole.then_some(at),
        (Some(b's' | b't' | b'm' | b'd'), _) => Some(at + 2),
        (Some(b'r' | b'v' | b'l' | 0xc5), None) => text.whole.then_some(at),
        (Some(b'r' | b'v'), Some(b'e')) => Some(at + 3),
        (Some(b'l'), Some(b'l')) => Some(at + 3),
        // A long s is an s to a regular expression that ignores case.
        (Some(0xc5), Some(0xbf)) => Some(at + 3),
        _ => Some(at),
    }
}

/// `\p{N}{1,3}`
fn number(text: SplitText<'_>, mut at: usize) -> End {
    for _ in 0..3 {
        match text.class(at) {
            Some((Class::Number, next)) => at = next,
            Some(_) => return Some(at),
            None => return text.whole.then_some(at),
        }
    }
    Some(at)
}

/// `[^\s\p{L}\p{N}]*` and then any of `tail`.
fn signs(text: SplitText<'_>, start: usize, tail: &[u8]) -> End {
    let mut at = text.run(start, Class::is_sign);
    while text.bytes.get(at).is_some_and(|byte| tail.contains(byte)) {
        at += 1;
    }
    text.cut(at)
}

/// `\s*[\r\n]+|\s+(?!\S)|\s+`
fn space(text: SplitText<'_>, start: usize) -> End {
    let run = SpaceRun::at(text, start);
    text.cut(run.end)?;
    if let Some(end) = run.newline {
        return Some(end);
    }
    run.without_last(text, start)
}

/// `\s++$|\s*[\r\n]|\s+(?!\S)|\s`
fn space_to_the_end(text: SplitText<'_>, start: usize) -> End {
    let run = SpaceRun::at(text, start);
    text.cut(run.end)?;
    match run.newline {
        _ if run.end == text.bytes.len() => Some(run.end),
        Some(end) => Some(end),
        None => run.without_last(text, start),
    }
}

/// A run of white space.
struct SpaceRun {
    /// The end of its last line break.
    newline: Option<usize>,
    /// The start of its last character.
    last: usize,
    end: usize,
}

impl SpaceRun {
    fn at(text: SplitText<'_>, start: usize) -> SpaceRun {
        let mut run = SpaceRun {
            newline: None,
            last: start,
            end: start,
        };
        while let Some((class, next)) = text.class(run.end)
            && class.is_space()
        {
            run.last = run.end;
            run.end = next;
            if class == Class::Newline {
                run.newline = Some(next);
            }
        }
        run
    }

    /// The last space before a word belongs to the word, unless it is the only one.
    fn without_last(&self, text: SplitText<'_>, start: usize) -> End {
        let alone = self.last == start || self.end == text.bytes.len();
        Some(if alone { self.end } else { self.last })
    }
}
