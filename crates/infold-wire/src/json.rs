use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr;
use serde_json::value::RawValue;

use crate::scan::{scan, space, string_end};

/// One JSON value, kept as the bytes it came in.
///
/// Only [`Json::parse`] makes one, so its text is valid JSON and valid UTF-8.
/// Nothing is decoded until asked for: lone surrogates, duplicate keys and
/// numbers of any size stay what they were.
#[derive(Clone, Copy)]
pub struct Json<'a> {
    whole: &'a [u8],
    start: usize,
    end: usize,
}

/// What kind of value a [`Json`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `{…}`
    Object,
    /// `[…]`
    Array,
    /// `"…"`
    String,
    /// A number.
    Number,
    /// `true` or `false`
    Bool,
    /// `null`
    Null,
}

/// Why a text is not JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// A byte that is not UTF-8.
    #[error("invalid UTF-8 at byte {at}")]
    Utf8 {
        /// Offset of the first bad byte.
        at: usize,
    },
    /// The grammar is broken.
    #[error("not JSON: {reason}")]
    Grammar {
        /// What the parser says, with its position.
        reason: String,
    },
}

impl<'a> Json<'a> {
    /// Checks that `text` is one JSON value (white space around it aside) and returns it.
    pub fn parse(text: &'a [u8]) -> Result<Json<'a>, JsonError> {
        Json::parse_members(text, |_, _| {})
    }

    /// As [`Json::parse`]; also calls `member` for each member of an object, on the way.
    ///
    /// What it was called with counts only if the whole text turns out to be JSON.
    pub fn parse_members(
        text: &'a [u8],
        mut member: impl FnMut(Json<'a>, Json<'a>),
    ) -> Result<Json<'a>, JsonError> {
        let utf8 = std::str::from_utf8(text).map_err(|error| JsonError::Utf8 {
            at: error.valid_up_to(),
        })?;
        let start = space(text, 0);
        let part = |(start, end)| Json {
            whole: text,
            start,
            end,
        };
        let scanned = scan(text, start, &mut |key, value| {
            member(part(key), part(value))
        });
        if let Some(end) = scanned.filter(|end| space(text, *end) == text.len()) {
            return Ok(part((start, end)));
        }
        let raw: &RawValue = serde_json::from_str(utf8).map_err(|error| JsonError::Grammar {
            reason: error.to_string(),
        })?;
        // Deeper than the scanner goes: found again, one by one.
        let json = part((start, start + raw.get().len()));
        json.members().for_each(|(key, value)| member(key, value));
        Ok(json)
    }

    /// Returns the value that fills `text`, which an earlier parse has found to be one.
    pub(crate) fn checked(text: &'a [u8]) -> Json<'a> {
        Json {
            whole: text,
            start: 0,
            end: text.len(),
        }
    }

    /// Returns the value's own bytes.
    pub fn bytes(self) -> &'a [u8] {
        &self.whole[self.start..self.end]
    }

    /// Returns where the value stands in the text that was parsed.
    pub fn range(self) -> Range<usize> {
        self.start..self.end
    }

    /// Returns what kind of value this is.
    pub fn kind(self) -> Kind {
        match self.whole[self.start] {
            b'{' => Kind::Object,
            b'[' => Kind::Array,
            b'"' => Kind::String,
            b't' | b'f' => Kind::Bool,
            b'n' => Kind::Null,
            _ => Kind::Number,
        }
    }

    /// Returns an object's members in order, duplicates included; none if it is not an object.
    pub fn members(self) -> impl Iterator<Item = (Json<'a>, Json<'a>)> + use<'a> {
        let mut at = self.inside(Kind::Object);
        std::iter::from_fn(move || {
            let key = self.item(&mut at)?;
            // Past the colon.
            at = space(self.whole, at) + 1;
            let value = self.item(&mut at)?;
            self.past_comma(&mut at);
            Some((key, value))
        })
    }

    /// Returns an array's elements in order; none if it is not an array.
    pub fn elements(self) -> impl Iterator<Item = Json<'a>> + use<'a> {
        let mut at = self.inside(Kind::Array);
        std::iter::from_fn(move || {
            let element = self.item(&mut at)?;
            self.past_comma(&mut at);
            Some(element)
        })
    }

    /// Returns the member named `key`. Of duplicates the last one counts, as in JavaScript.
    pub fn get(self, key: &str) -> Option<Json<'a>> {
        self.members()
            .filter(|(name, _)| name.is(key))
            .last()
            .map(|(_, value)| value)
    }

    /// Returns the members with these names, in one pass over the object.
    pub fn pick<const N: usize>(self, keys: [&str; N]) -> [Option<Json<'a>>; N] {
        let mut found = [None; N];
        for (name, value) in self.members() {
            let name = name.name();
            if let Some(at) = keys.iter().position(|key| *name == *key.as_bytes()) {
                found[at] = Some(value);
            }
        }
        found
    }

    /// Says whether a string has nothing but white space in it. Other values are blank too.
    pub fn is_blank(self) -> bool {
        let first = self.whole[self.start..self.end].get(1);
        // Most texts show at once that they are not.
        if self.kind() == Kind::String
            && first.is_some_and(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
        {
            return false;
        }
        self.text().is_none_or(|text| text.trim().is_empty())
    }

    /// Says whether this is the string `text`, however it is escaped.
    pub fn is(self, text: &str) -> bool {
        let bytes = self.bytes();
        if bytes.first() != Some(&b'"') {
            return false;
        }
        let inner = &bytes[1..bytes.len() - 1];
        // Escapes only make a text longer.
        inner == text.as_bytes()
            || inner.len() > text.len()
                && memchr(b'\\', inner).is_some()
                && self.text().as_deref() == Some(text)
    }

    /// Returns a short string's bytes, escapes resolved, for comparing; nothing if it is no string.
    pub fn name(self) -> Cow<'a, [u8]> {
        let bytes = self.bytes();
        if bytes.first() != Some(&b'"') {
            return Cow::Borrowed(&[]);
        }
        let inner = &bytes[1..bytes.len() - 1];
        match inner.contains(&b'\\') {
            true => Cow::Owned(self.text().unwrap_or_default().into_owned().into_bytes()),
            false => Cow::Borrowed(inner),
        }
    }

    /// Returns a string's text; what is not a character (a lone surrogate) becomes U+FFFD.
    pub fn text(self) -> Option<Cow<'a, str>> {
        let inner = self.inner()?;
        if memchr(b'\\', inner.as_bytes()).is_none() {
            return Some(Cow::Borrowed(inner));
        }
        let mut text = String::with_capacity(inner.len());
        self.chunks(|chunk| text.push_str(chunk));
        Some(Cow::Owned(text))
    }

    /// Returns a string's UTF-16 units, lone surrogates included.
    pub fn utf16(self) -> Option<Vec<u16>> {
        Some(units(self.inner()?).collect())
    }

    /// Returns how many UTF-16 units a string has; any other value has none.
    pub(crate) fn utf16_len(self) -> usize {
        let inner = self.inner().unwrap_or_default();
        match inner.is_ascii() && memchr(b'\\', inner.as_bytes()).is_none() {
            true => inner.len(),
            false => units(inner).count(),
        }
    }

    /// Calls `take` with what a string says, bit by bit; a lone surrogate becomes U+FFFD.
    pub(crate) fn chunks(self, mut take: impl FnMut(&str)) {
        let mut rest = self.inner().unwrap_or_default();
        while let Some(at) = memchr(b'\\', rest.as_bytes()) {
            take(&rest[..at]);
            // Almost all there are, without the detour over UTF-16.
            let plain = match rest.as_bytes().get(at + 1) {
                Some(b'n') => "\n",
                Some(b't') => "\t",
                Some(b'"') => "\"",
                Some(b'\\') => "\\",
                _ => "",
            };
            if !plain.is_empty() {
                take(plain);
                rest = &rest[at + 2..];
                continue;
            }
            // Escapes come in rows, and a pair of surrogates is two.
            let end = escapes_end(rest, at);
            let units = units(&rest[at..end]);
            for unit in char::decode_utf16(units) {
                let char = unit.unwrap_or(char::REPLACEMENT_CHARACTER);
                take(char.encode_utf8(&mut [0; 4]));
            }
            rest = &rest[end..];
        }
        take(rest);
    }

    /// Says whether a string is a URL that holds the data itself.
    pub(crate) fn is_data_url(self) -> bool {
        self.inner().is_some_and(|inner| inner.starts_with("data:"))
    }

    /// The inside of a string.
    fn inner(self) -> Option<&'a str> {
        let inner =
            (self.kind() == Kind::String).then(|| &self.whole[self.start + 1..self.end - 1])?;
        Some(std::str::from_utf8(inner).expect("parse checked that the text is UTF-8"))
    }

    /// Starts at the value itself.
    pub(crate) fn cursor(self) -> Cursor<'a> {
        Cursor {
            text: self.whole,
            at: self.start,
        }
    }

    /// Returns a number as JavaScript would hold it.
    pub fn number(self) -> Option<f64> {
        let text = (self.kind() == Kind::Number).then(|| self.bytes())?;
        std::str::from_utf8(text).ok()?.parse().ok()
    }

    /// Says whether this is `true`.
    pub fn is_true(self) -> bool {
        self.bytes() == b"true"
    }

    /// Says whether this is `false`.
    pub fn is_false(self) -> bool {
        self.bytes() == b"false"
    }

    /// Says whether this is `null`.
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    fn inside(self, kind: Kind) -> usize {
        if self.kind() == kind {
            self.start + 1
        } else {
            self.end
        }
    }

    /// Reads the value at `at`, which may be preceded by space; none at the closing bracket.
    fn item(self, at: &mut usize) -> Option<Json<'a>> {
        let start = space(self.whole, *at);
        if start >= self.end || matches!(self.whole[start], b'}' | b']') {
            return None;
        }
        let end = value_end(self.whole, start);
        *at = end;
        Some(Json {
            whole: self.whole,
            start,
            end,
        })
    }

    fn past_comma(self, at: &mut usize) {
        let next = space(self.whole, *at);
        *at = if self.whole.get(next) == Some(&b',') {
            next + 1
        } else {
            next
        };
    }
}

/// A place in a JSON text, moved over its values one by one: each byte is looked at once.
pub(crate) struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Passes a value and returns it.
    pub fn value(&mut self) -> Json<'a> {
        let (whole, start) = (self.text, self.at);
        self.at = value_end(whole, start);
        let end = self.at;
        Json { whole, start, end }
    }

    /// Passes an object; `member` is called at each of its values and must pass it.
    pub fn object(&mut self, mut member: impl FnMut(&[u8], &mut Cursor<'a>)) {
        if !self.enter(b'{') {
            return;
        }
        while !self.leave(b'}') {
            let name = self.value().name();
            // Past the colon.
            self.at = space(self.text, space(self.text, self.at) + 1);
            member(&name, self);
        }
    }

    /// Passes an array; `element` is called at each of its values and must pass it.
    pub fn array(&mut self, mut element: impl FnMut(&mut Cursor<'a>)) {
        if !self.enter(b'[') {
            return;
        }
        while !self.leave(b']') {
            element(self);
        }
    }

    /// Goes into a value that starts with this bracket, or past any other.
    fn enter(&mut self, bracket: u8) -> bool {
        let there = self.text.get(self.at) == Some(&bracket);
        match there {
            true => self.at += 1,
            false => drop(self.value()),
        }
        there
    }

    /// Goes to the next value, or past the closing bracket.
    fn leave(&mut self, bracket: u8) -> bool {
        self.at = space(self.text, self.at);
        if self.text.get(self.at) == Some(&b',') {
            self.at = space(self.text, self.at + 1);
        }
        let over = self.text.get(self.at).is_none_or(|byte| *byte == bracket);
        self.at += usize::from(over);
        over
    }
}

impl std::fmt::Debug for Json<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.bytes()))
    }
}

/// Returns `text` as a JSON string, quotes included.
pub fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Finds the end of the value that starts at `start`. The grammar is known to hold.
fn value_end(text: &[u8], start: usize) -> usize {
    match text[start] {
        b'"' => string_end(text, start),
        b'{' | b'[' => {
            let mut depth = 0usize;
            let mut at = start;
            while let Some(&byte) = text.get(at) {
                match byte {
                    b'"' => {
                        at = string_end(text, at);
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => {
                        depth -= 1;
                        if depth == 0 {
                            return at + 1;
                        }
                    }
                    _ => {}
                }
                at += 1;
            }
            text.len()
        }
        _ => {
            let rest = &text[start..];
            let end = rest
                .iter()
                .position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r'));
            start + end.unwrap_or(rest.len())
        }
    }
}

/// Where the escapes that follow each other from `at` on end.
fn escapes_end(inner: &str, mut at: usize) -> usize {
    let bytes = inner.as_bytes();
    while bytes.get(at) == Some(&b'\\') {
        at += match bytes.get(at + 1) {
            Some(b'u') => 6,
            _ => 2,
        };
    }
    at
}

/// The UTF-16 units of the inside of a JSON string.
fn units(inner: &str) -> impl Iterator<Item = u16> + '_ {
    let mut chars = inner.chars();
    let mut second = None;
    std::iter::from_fn(move || {
        if let Some(unit) = second.take() {
            return Some(unit);
        }
        let first = chars.next()?;
        if first != '\\' {
            let mut pair = [0u16; 2];
            let encoded = first.encode_utf16(&mut pair);
            second = encoded.get(1).copied();
            return Some(encoded[0]);
        }
        Some(match chars.next()? {
            'b' => 8,
            'f' => 12,
            'n' => 10,
            'r' => 13,
            't' => 9,
            'u' => (0..4).fold(0u16, |unit, _| {
                let digit = chars.next().and_then(|c| c.to_digit(16)).unwrap_or(0);
                // Four hexadecimal digits fill a u16 exactly.
                unit << 4 | digit as u16
            }),
            other => other as u16,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order_their_duplicates_and_their_bytes() {
        let text = br#" { "a" : [1, {"b":"}\""}] ,"a":1e999, "\u0061": "x" } "#;
        let json = Json::parse(text).unwrap();
        let seen: Vec<_> = json
            .members()
            .map(|(k, v)| format!("{k:?}={v:?}"))
            .collect();
        assert_eq!(
            seen,
            [r#""a"=[1, {"b":"}\""}]"#, r#""a"=1e999"#, r#""\u0061"="x""#]
        );
        assert!(json.get("a").unwrap().is("x"));
        let inner = json.members().next().unwrap().1;
        assert_eq!(&text[inner.range()], br#"[1, {"b":"}\""}]"#);
        assert_eq!(inner.elements().count(), 2);
    }

    #[test]
    fn lone_surrogates_survive_and_read_as_replacement_characters() {
        let json = Json::parse(br#""a\ud83d b \ud83d\ude80""#).unwrap();
        assert_eq!(json.text().unwrap(), "a\u{fffd} b 🚀");
        assert_eq!(json.utf16().unwrap()[1], 0xd83d);
    }

    #[test]
    fn what_is_not_json_is_refused_with_its_place() {
        assert_eq!(
            Json::parse(b"{\"a\":\xff}").unwrap_err(),
            JsonError::Utf8 { at: 5 }
        );
        let error = Json::parse(b"{\"a\":01}").unwrap_err();
        assert!(error.to_string().contains("column"), "{error}");
        assert!(Json::parse(b"").is_err());
        assert!(Json::parse(b"{} {}").is_err());
    }

    #[test]
    fn empty_containers_have_nothing_in_them() {
        assert_eq!(Json::parse(b"{ }").unwrap().members().count(), 0);
        assert_eq!(Json::parse(b"[ ]").unwrap().elements().count(), 0);
        assert_eq!(Json::parse(b"7").unwrap().elements().count(), 0);
    }
}
