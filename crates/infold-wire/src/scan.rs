use memchr::{memchr, memchr2};

/// Reads one JSON value that starts at `start` and returns where it ends.
///
/// Calls `member` with the bounds of the key and the value of each member of the
/// outermost object. None if the grammar is broken, or nested deeper than 128
/// levels: the general parser then says what is wrong, or reads it after all.
///
/// One pass, because it runs for every message that is appended.
pub fn scan(
    text: &[u8],
    start: usize,
    member: &mut impl FnMut((usize, usize), (usize, usize)),
) -> Option<usize> {
    let mut open = Open::default();
    let mut at = start;
    let mut key = (0, 0);
    let mut value = 0;
    loop {
        at = space(text, at);
        if open.is_outermost_object() {
            value = at;
        }
        match *text.get(at)? {
            bracket @ (b'{' | b'[') => {
                let inside = space(text, at + 1);
                let close = if bracket == b'{' { b'}' } else { b']' };
                if *text.get(inside)? == close {
                    at = inside + 1;
                } else {
                    open.push(bracket == b'{')?;
                    at = inside;
                    if bracket == b'{' {
                        at = name(text, at, &open, &mut key)?;
                    }
                    continue;
                }
            }
            b'"' => at = string(text, at)?,
            b'-' | b'0'..=b'9' => at = number(text, at)?,
            _ => at = literal(text, at)?,
        }
        loop {
            let Some(object) = open.last() else {
                return Some(at);
            };
            if open.is_outermost_object() {
                member(key, (value, at));
            }
            at = space(text, at);
            match (object, *text.get(at)?) {
                (true, b',') => {
                    at = name(text, space(text, at + 1), &open, &mut key)?;
                    break;
                }
                (false, b',') => {
                    at += 1;
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

/// The brackets that are open: whether each is an object's.
#[derive(Default)]
struct Open {
    objects: u128,
    depth: u32,
}

impl Open {
    fn push(&mut self, object: bool) -> Option<()> {
        (self.depth < 128).then_some(())?;
        self.objects = self.objects << 1 | u128::from(object);
        self.depth += 1;
        Some(())
    }

    fn pop(&mut self) {
        self.objects >>= 1;
        self.depth -= 1;
    }

    fn last(&self) -> Option<bool> {
        (self.depth > 0).then_some(self.objects & 1 == 1)
    }

    fn is_outermost_object(&self) -> bool {
        self.depth == 1 && self.objects & 1 == 1
    }
}

/// Skips white space.
pub fn space(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// Reads a member's name and the colon after it.
fn name(text: &[u8], at: usize, open: &Open, key: &mut (usize, usize)) -> Option<usize> {
    (*text.get(at)? == b'"').then_some(())?;
    let end = string(text, at)?;
    if open.depth == 1 {
        *key = (at, end);
    }
    let colon = space(text, end);
    (*text.get(colon)? == b':').then_some(colon + 1)
}

fn string(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at = plain(text, at);
        match *text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at = escape(text, at)?,
            _ => return None,
        }
    }
}

/// Skips characters of a string that need no second look.
///
/// Most strings are short, or lines of code with escapes between them: eight bytes at a time. In a
/// long one a vector search finds the end, and a loop the compiler turns into vectors
/// looks for what must not be in it.
fn plain(text: &[u8], start: usize) -> usize {
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

/// Returns where a string ends that is known to be one.
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
    // Quotes are rarer than escapes: one is the end unless it is escaped itself, by a row of
    // backslashes of which every second one is.
    while let Some(found) = memchr(b'"', &text[at..]) {
        let quote = at + found;
        let slashes = text[start + 1..quote].iter().rev();
        if slashes.take_while(|byte| **byte == b'\\').count() % 2 == 0 {
            return quote + 1;
        }
        at = quote + 1;
    }
    text.len()
}

fn escape(text: &[u8], at: usize) -> Option<usize> {
    match *text.get(at + 1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(at + 2),
        b'u' => {
            let digits = text.get(at + 2..at + 6)?;
            digits.iter().all(u8::is_ascii_hexdigit).then_some(at + 6)
        }
        _ => None,
    }
}

fn number(text: &[u8], mut at: usize) -> Option<usize> {
    at += usize::from(text[at] == b'-');
    at = match *text.get(at)? {
        b'0' => at + 1,
        _ => digits(text, at)?,
    };
    if text.get(at) == Some(&b'.') {
        at = digits(text, at + 1)?;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        at += 1 + usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        at = digits(text, at)?;
    }
    Some(at)
}

fn digits(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    while text.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    (at > start).then_some(at)
}

fn literal(text: &[u8], at: usize) -> Option<usize> {
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
        let end = scan(text.as_bytes(), space(text.as_bytes(), 0), &mut |_, _| {});
        end.is_some_and(|end| space(text.as_bytes(), end) == text.len())
    }

    fn general(text: &str) -> bool {
        serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

        /// What is JSON, and what is not, is no matter of opinion.
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

        /// No byte of a text is skipped that should be looked at.
        #[test]
        fn plain_stops_where_a_plain_loop_stops(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let stop = bytes.iter().position(|byte| *byte < 0x20 || matches!(byte, b'"' | b'\\'));
            prop_assert_eq!(plain(&bytes, 0), stop.unwrap_or(bytes.len()));
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
