//! A JSON value that keeps its original bytes.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr;
use serde_json::value::RawValue;

use crate::scan::{decode_escape, scan, skip_space, string_end};

/// One JSON value, with its original bytes.
///
/// Only [`Json::parse`] makes one, so its text is valid JSON and valid UTF-8. Strings are decoded on request: lone
/// surrogates, duplicate keys and numbers of any size are preserved.
#[derive(Clone, Copy)]
pub struct Json<'a> {
    whole: &'a [u8],
    start: usize,
    end: usize,
}

/// The type of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonKind {
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

/// The reason that a text is not JSON.
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
        /// The parser's message, with its position.
        reason: String,
    },
}

impl<'a> Json<'a> {
    /// Checks that `text` is one JSON value (white space around it aside) and returns it.
    pub fn parse(text: &'a [u8]) -> Result<Json<'a>, JsonError> {
        Json::parse_members(text, |_, _| {})
    }

    /// Like [`Json::parse`]; also calls `member` for each member of an object while parsing.
    ///
    /// The members are valid only if the whole text turns out to be JSON.
    pub fn parse_members(
        text: &'a [u8],
        mut member: impl FnMut(Json<'a>, Json<'a>),
    ) -> Result<Json<'a>, JsonError> {
        let utf8 = std::str::from_utf8(text).map_err(|error| JsonError::Utf8 {
            at: error.valid_up_to(),
        })?;
        let start = skip_space(text, 0);
        let part = |(start, end)| Json {
            whole: text,
            start,
            end,
        };
        let scanned = scan(text, start, &mut |key, value| {
            member(part(key), part(value))
        });
        if let Some(end) = scanned.filter(|end| skip_space(text, *end) == text.len()) {
            return Ok(part((start, end)));
        }
        let raw: &RawValue = serde_json::from_str(utf8).map_err(|error| JsonError::Grammar {
            reason: error.to_string(),
        })?;
        // The value is nested deeper than the scanner goes, so its members are read once more.
        let json = part((start, start + raw.get().len()));
        json.members().for_each(|(key, value)| member(key, value));
        Ok(json)
    }

    /// Returns the value that fills `text`, which must be valid JSON: parsed before, or written by the caller.
    pub fn checked(text: &'a [u8]) -> Json<'a> {
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

    /// Returns the value's range in the text that was parsed.
    pub fn range(self) -> Range<usize> {
        self.start..self.end
    }

    /// Returns the type of this value.
    pub fn kind(self) -> JsonKind {
        match self.whole[self.start] {
            b'{' => JsonKind::Object,
            b'[' => JsonKind::Array,
            b'"' => JsonKind::String,
            b't' | b'f' => JsonKind::Bool,
            b'n' => JsonKind::Null,
            _ => JsonKind::Number,
        }
    }

    /// Returns an object's members in order, duplicates included; none if it is not an object.
    pub fn members(self) -> impl Iterator<Item = (Json<'a>, Json<'a>)> + use<'a> {
        let mut inside = self.enter(JsonKind::Object);
        std::iter::from_fn(move || {
            let cursor = inside.as_mut()?;
            if cursor.leave(b'}') {
                inside = None;
                return None;
            }
            let key = cursor.value();
            cursor.skip_colon();
            Some((key, cursor.value()))
        })
    }

    /// Returns an array's elements in order; none if it is not an array.
    pub fn elements(self) -> impl Iterator<Item = Json<'a>> + use<'a> {
        let mut inside = self.enter(JsonKind::Array);
        std::iter::from_fn(move || {
            let cursor = inside.as_mut()?;
            if cursor.leave(b']') {
                inside = None;
                return None;
            }
            Some(cursor.value())
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

    /// Returns whether a string has nothing but white space in it, or the value is not a string.
    pub fn is_blank(self) -> bool {
        let first = self.whole[self.start..self.end].get(1);
        // The first byte of most texts rules it out.
        if self.kind() == JsonKind::String
            && first.is_some_and(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
        {
            return false;
        }
        self.text().is_none_or(|text| text.trim().is_empty())
    }

    /// Returns whether the value is the string `text`, with any escapes.
    pub fn is(self, text: &str) -> bool {
        let Some(inner) = self.inner_bytes() else {
            return false;
        };
        // Escapes only make a text longer.
        inner == text.as_bytes()
            || inner.len() > text.len()
                && memchr(b'\\', inner).is_some()
                && self.text().as_deref() == Some(text)
    }

    /// Returns a short string's bytes, escapes resolved, for comparing; empty if it is not a string.
    pub fn name(self) -> Cow<'a, [u8]> {
        let inner = self.inner_bytes().unwrap_or_default();
        if inner.contains(&b'\\') {
            Cow::Owned(self.text().unwrap_or_default().into_owned().into_bytes())
        } else {
            Cow::Borrowed(inner)
        }
    }

    /// Returns a string's text; a lone surrogate, which is not a character, becomes U+FFFD.
    pub fn text(self) -> Option<Cow<'a, str>> {
        let inner = self.inner()?;
        if memchr(b'\\', inner.as_bytes()).is_none() {
            return Some(Cow::Borrowed(inner));
        }
        let mut text = String::with_capacity(inner.len());
        self.for_each_chunk(|chunk| text.push_str(chunk));
        Some(Cow::Owned(text))
    }

    /// Returns a string's UTF-16 units, lone surrogates included.
    pub fn utf16(self) -> Option<Vec<u16>> {
        self.inner()?;
        let mut units = Vec::new();
        self.decode(|decoded| match decoded {
            Ok(chunk) => units.extend(chunk.encode_utf16()),
            Err(surrogate) => units.push(surrogate),
        });
        Some(units)
    }

    /// Returns how many UTF-16 units a string has; any other value has none.
    pub(crate) fn utf16_len(self) -> usize {
        let inner = self.inner().unwrap_or_default();
        if inner.is_ascii() && memchr(b'\\', inner.as_bytes()).is_none() {
            return inner.len();
        }
        let mut count = 0;
        self.decode(|decoded| count += decoded.map_or(1, |chunk| chunk.encode_utf16().count()));
        count
    }

    /// Calls `take` with a string's text in chunks; a lone surrogate becomes U+FFFD.
    pub(crate) fn for_each_chunk(self, mut take: impl FnMut(&str)) {
        self.decode(|decoded| take(decoded.unwrap_or("\u{fffd}")));
    }

    /// Calls `take` with a string's text in chunks, and with each lone surrogate.
    pub(crate) fn decode(self, mut take: impl FnMut(Result<&str, u16>)) {
        let mut rest = self.inner().unwrap_or_default();
        while let Some(at) = memchr(b'\\', rest.as_bytes()) {
            take(Ok(&rest[..at]));
            let escape = decode_escape(&rest.as_bytes()[at..]);
            let (length, decoded) = escape.unwrap_or((1, Ok('\\')));
            match decoded {
                Ok(char) => take(Ok(char.encode_utf8(&mut [0; 4]))),
                Err(surrogate) => take(Err(surrogate)),
            }
            rest = &rest[at + length..];
        }
        take(Ok(rest));
    }

    /// Returns whether a string is a URL that holds the data itself.
    pub(crate) fn is_data_url(self) -> bool {
        self.inner().is_some_and(|inner| inner.starts_with("data:"))
    }

    /// Returns a string literal without its quotes.
    pub(crate) fn inner(self) -> Option<&'a str> {
        let inner = self.inner_bytes()?;
        Some(std::str::from_utf8(inner).expect("parse checked that the text is UTF-8"))
    }

    fn inner_bytes(self) -> Option<&'a [u8]> {
        let is_string = self.bytes().first() == Some(&b'"');
        is_string.then(|| &self.whole[self.start + 1..self.end - 1])
    }

    pub(crate) fn cursor(self) -> Cursor<'a> {
        Cursor {
            text: self.whole,
            at: self.start,
        }
    }

    /// Returns a number as JavaScript would hold it.
    pub fn number(self) -> Option<f64> {
        let text = (self.kind() == JsonKind::Number).then(|| self.bytes())?;
        std::str::from_utf8(text).ok()?.parse().ok()
    }

    /// Returns whether this is `true`.
    pub fn is_true(self) -> bool {
        self.bytes() == b"true"
    }

    /// Returns whether this is `false`.
    pub fn is_false(self) -> bool {
        self.bytes() == b"false"
    }

    /// Returns whether this is `null`.
    pub fn is_null(self) -> bool {
        self.kind() == JsonKind::Null
    }

    /// Returns a cursor behind the opening bracket of a value of this type.
    fn enter(self, kind: JsonKind) -> Option<Cursor<'a>> {
        let (text, at) = (self.whole, self.start + 1);
        (self.kind() == kind).then_some(Cursor { text, at })
    }
}

/// A position in a JSON text that moves over its values one by one, so that each byte is read once.
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
            self.skip_colon();
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

    fn skip_colon(&mut self) {
        self.at = skip_space(self.text, skip_space(self.text, self.at) + 1);
    }

    /// Moves into a value that starts with this bracket, or behind any other.
    fn enter(&mut self, bracket: u8) -> bool {
        let is_entered = self.text.get(self.at) == Some(&bracket);
        if is_entered {
            self.at += 1;
        } else {
            self.value();
        }
        is_entered
    }

    /// Moves to the next value, or behind the closing bracket; returns whether that was it.
    fn leave(&mut self, bracket: u8) -> bool {
        self.at = skip_space(self.text, self.at);
        if self.text.get(self.at) == Some(&b',') {
            self.at = skip_space(self.text, self.at + 1);
        }
        let is_closed = self.text.get(self.at).is_none_or(|byte| *byte == bracket);
        self.at += usize::from(is_closed);
        is_closed
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

/// Finds the end of the value that starts at `start`, in text that was parsed before.
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
            let ends =
                |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
            start + rest.iter().position(ends).unwrap_or(rest.len())
        }
    }
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
