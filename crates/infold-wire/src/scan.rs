//! Scans JSON text in one pass: checks its grammar and finds where values end.

use memchr::{memchr, memchr2};

use crate::brackets::BracketStack;

/// Reads one JSON value that starts at `start` and returns its end.
///
/// Calls `member` with the bounds of the key and the value of each member of the outermost object. `None` if the
/// grammar is broken, or nested deeper than 128 levels: the general parser then reports the error, or reads it after
/// all.
///
/// One pass, because it runs for every message that is appended.
pub fn scan(
    text: &[u8],
    start: usize,
    member: &mut impl FnMut((usize, usize), (usize, usize)),
) -> Option<usize> {
    let mut open = BracketStack::<2>::new();
    let mut at = start;
    let mut key = (0, 0);
    let mut value = 0;
    loop {
        at = skip_space(text, at);
        if is_outermost_object(&open) {
            value = at;
        }
        match *text.get(at)? {
            bracket @ (b'{' | b'[') => {
                let inside = skip_space(text, at + 1);
                let close = if bracket == b'{' { b'}' } else { b']' };
                if *text.get(inside)? == close {
                    at = inside + 1;
                } else {
                    open.push(bracket == b'{')?;
                    at = inside;
                    if bracket == b'{' {
                        at = skip_name(text, at, &open, &mut key)?;
                    }
                    continue;
                }
            }
            b'"' => at = skip_string(text, at)?,
            b'-' | b'0'..=b'9' => at = skip_number(text, at)?,
            _ => at = skip_literal(text, at)?,
        }
        loop {
            if open.depth() == 0 {
                return Some(at);
            }
            if is_outermost_object(&open) {
                member(key, (value, at));
            }
            at = skip_space(text, at);
            match (open.in_object(), *text.get(at)?) {
                (in_object, b',') => {
                    at += 1;
                    if in_object {
                        at = skip_name(text, skip_space(text, at), &open, &mut key)?;
                    }
                    break;
                }
                (true, b'}') | (false, b']') => {
                    open.pop();
                    at += 1;
                }
                _ => return None,
            }
        }
    }
}

fn is_outermost_object(open: &BracketStack<2>) -> bool {
    open.depth() == 1 && open.in_object()
}

/// Returns the offset of the first byte at or after `at` that is not white space.
pub fn skip_space(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// Skips a member's name and the colon after it; keeps the bounds of the name in `key`.
fn skip_name(
    text: &[u8],
    at: usize,
    open: &BracketStack<2>,
    key: &mut (usize, usize),
) -> Option<usize> {
    (*text.get(at)? == b'"').then_some(())?;
    let end = skip_string(text, at)?;
    if open.depth() == 1 {
        *key = (at, end);
    }
    let colon = skip_space(text, end);
    (*text.get(colon)? == b':').then_some(colon + 1)
}

fn skip_string(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at = skip_unescaped(text, at);
        match *text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += decode_escape(&text[at..])?.0,
            _ => return None,
        }
    }
}

/// Returns the offset of the next quote, backslash or control character.
///
/// Most strings are short, or lines of code with escapes between them: they are read eight bytes at a
/// time. In a long one a vector search finds the end, and a loop that the compiler vectorises looks for
/// control characters.
fn skip_unescaped(text: &[u8], start: usize) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGHS: u64 = ONES << 7;
    let mut at = start;
    for _ in 0..6 {
        let Some(eight) = text.get(at..).and_then(|rest| rest.first_chunk::<8>()) else {
            break;
        };
        let word = u64::from_le_bytes(*eight);
        let quote = word ^ (ONES * b'"' as u64);
        let slash = word ^ (ONES * b'\\' as u64);
        // A byte that is zero, or below 0x20, borrows from its highest bit. Bytes from
        // 0x80 on have that bit themselves and are left out by the last mask.
        let found = quote.wrapping_sub(ONES) & !quote
            | slash.wrapping_sub(ONES) & !slash
            | word.wrapping_sub(ONES * 0x20) & !word;
        let found = found & HIGHS;
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let rest = text.get(at..).unwrap_or_default();
    let rest = &rest[..memchr2(b'"', b'\\', rest).unwrap_or(rest.len())];
    let control = |byte: &u8| *byte < 0x20;
    if rest.iter().fold(false, |found, byte| found | control(byte)) {
        return at + rest.iter().position(control).unwrap_or(rest.len());
    }
    at + rest.len()
}

/// Returns where a valid string literal ends.
pub fn string_end(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    // Keys and ids are short: for them a plain loop beats a vector search.
    for byte in text[at..].iter().take(12) {
        match byte {
            b'"' => return at + 1,
            b'\\' => break,
            _ => at += 1,
        }
    }
    find_closing_quote(text, start + 1, at).unwrap_or(text.len())
}

/// Returns the offset behind the quote that closes the string whose content begins at `start`, searching from `at`.
///
/// Quotes are rarer than escapes, so the search is for quotes: one closes the string unless the number of backslashes
/// right before it is odd.
pub fn find_closing_quote(text: &[u8], start: usize, mut at: usize) -> Option<usize> {
    while let Some(found) = memchr(b'"', &text[at..]) {
        let quote = at + found;
        if !ends_in_escape(&text[start..quote]) {
            return Some(quote + 1);
        }
        at = quote + 1;
    }
    None
}

/// Returns whether the byte after `content` is escaped.
pub fn ends_in_escape(content: &[u8]) -> bool {
    let backslashes = content.iter().rev();
    backslashes.take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// Decodes the escape at the start of `rest`: its length in bytes, and its character or lone surrogate. `None` if it is
/// not a valid escape.
#[inline]
pub fn decode_escape(rest: &[u8]) -> Option<(usize, Result<char, u16>)> {
    let char = match *rest.get(1)? {
        byte @ (b'"' | b'\\' | b'/') => char::from(byte),
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'u' => return decode_unicode_escape(rest),
        _ => return None,
    };
    Some((2, Ok(char)))
}

fn decode_unicode_escape(rest: &[u8]) -> Option<(usize, Result<char, u16>)> {
    let unit = |at: usize| {
        let digits = rest.get(at..at + 6)?.strip_prefix(b"\\u")?;
        let mut digits = digits.iter().map(|digit| char::from(*digit).to_digit(16));
        // Four hexadecimal digits fill a u16 exactly.
        digits.try_fold(0_u16, |unit, digit| Some(unit << 4 | digit? as u16))
    };
    let units = std::iter::once(unit(0)?).chain(unit(6));
    Some(match char::decode_utf16(units).next()? {
        Ok(char) => (6 * char.len_utf16(), Ok(char)),
        Err(lone) => (6, Err(lone.unpaired_surrogate())),
    })
}

fn skip_number(text: &[u8], mut at: usize) -> Option<usize> {
    at += usize::from(text[at] == b'-');
    at = match *text.get(at)? {
        b'0' => at + 1,
        _ => skip_digits(text, at)?,
    };
    if text.get(at) == Some(&b'.') {
        at = skip_digits(text, at + 1)?;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        at += 1 + usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        at = skip_digits(text, at)?;
    }
    Some(at)
}

fn skip_digits(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    while text.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    (at > start).then_some(at)
}

fn skip_literal(text: &[u8], at: usize) -> Option<usize> {
    let words: [&[u8]; 3] = [b"true", b"false", b"null"];
    let rest = text.get(at..)?;
    let word = words.into_iter().find(|word| rest.starts_with(word))?;
    Some(at + word.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn accepts(text: &str) -> bool {
        let end = scan(
            text.as_bytes(),
            skip_space(text.as_bytes(), 0),
            &mut |_, _| {},
        );
        end.is_some_and(|end| skip_space(text.as_bytes(), end) == text.len())
    }

    fn general(text: &str) -> bool {
        serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

        /// The scanner accepts the same texts as serde_json.
        #[test]
        fn the_general_parser_agrees(text in r#"([\[\]{}:,"\\ eE+.0-9tfn-]|true|false|null|"[a-z]*"|"\\\\u[0-9a-fg]{4}"|"é\n?🚀"|\{"k":|-?0?[0-9.]+(e[+-]?[0-9]*)?|,"[a-zé]{0,12}":){0,12}"#) {
            prop_assert_eq!(accepts(&text), general(&text), "{}", text);
        }

        /// Broken in one place, JSON is mostly no longer JSON; both see the same.
        #[test]
        fn the_general_parser_agrees_on_small_breaks(at in any::<prop::sample::Index>(), byte in 0_u8..128) {
            let good = r#" {"a":[1,-2.5e+3,true,null,{"b\\\"\u00e9":"x yz long enough for eight"}],"c":"","d":{}} "#;
            let mut bytes = good.as_bytes().to_vec();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let text = String::from_utf8(bytes).expect("ASCII");
            prop_assert_eq!(accepts(&text), general(&text), "{}", text);
        }

        /// No relevant byte of a text is skipped.
        #[test]
        fn plain_stops_where_a_plain_loop_stops(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let stop = bytes.iter().position(|byte| *byte < 0x20 || matches!(byte, b'"' | b'\\'));
            prop_assert_eq!(skip_unescaped(&bytes, 0), stop.unwrap_or(bytes.len()));
        }
    }

    #[test]
    fn members_of_the_outermost_object_are_named() {
        let text = r#"{"a":{"x":1} , "b" :[2,{"y":3}],"a":"z"}"#;
        let mut seen = Vec::new();
        scan(text.as_bytes(), 0, &mut |key, value| {
            seen.push((&text[key.0..key.1], &text[value.0..value.1]));
        });
        assert_eq!(
            seen,
            [
                ("\"a\"", r#"{"x":1}"#),
                ("\"b\"", r#"[2,{"y":3}]"#),
                ("\"a\"", "\"z\"")
            ]
        );
    }
}
