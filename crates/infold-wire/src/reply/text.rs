//! JSON that grows: texts whose pieces come one by one, and objects they are put into.

use super::Delta;
use crate::{Json, Kind, quote};

/// What is told as soon as it is there.
pub type Hear<'a> = dyn FnMut(Delta) + 'a;

/// A JSON string that grows at its end.
///
/// The insides of its pieces are joined as they came, so what is not a character in one
/// piece (half of a surrogate pair) may be one with the next, or stays what it was.
#[derive(Clone, Debug, Default)]
pub struct Text {
    inner: String,
    /// How much of it has been told.
    told: usize,
    given: bool,
}

impl Text {
    /// Appends a piece, if it is a string.
    pub fn push(&mut self, piece: Json<'_>) {
        if piece.kind() == Kind::String {
            self.push_raw(&String::from_utf8_lossy(piece.bytes()));
        }
    }

    /// Appends a JSON string, quotes included.
    pub fn push_raw(&mut self, piece: &str) {
        self.given = true;
        self.inner.push_str(&piece[1..piece.len() - 1]);
    }

    /// Appends a piece and tells what is new to be shown.
    pub fn hear(&mut self, piece: Json<'_>, hear: &mut Hear<'_>, delta: fn(String) -> Delta) {
        self.push(piece);
        self.tell(hear, delta);
    }

    /// As [`Text::hear`], if there is a piece.
    pub fn hear_some(
        &mut self,
        piece: Option<Json<'_>>,
        hear: &mut Hear<'_>,
        delta: fn(String) -> Delta,
    ) {
        if let Some(piece) = piece {
            self.hear(piece, hear, delta);
        }
    }

    /// Tells what has not been told.
    pub fn tell(&mut self, hear: &mut Hear<'_>, delta: fn(String) -> Delta) {
        let new = &self.inner[self.told..];
        // Its other half may be the next piece.
        let new = &new[..new.len() - if ends_in_half(new.as_bytes()) { 6 } else { 0 }];
        if new.is_empty() {
            return;
        }
        self.told += new.len();
        let quoted = format!("\"{new}\"");
        let text = Json::checked(quoted.as_bytes()).text();
        hear(delta(text.unwrap_or_default().into_owned()));
    }

    /// Says whether a piece came, if only an empty one.
    pub fn is_given(&self) -> bool {
        self.given
    }

    /// Says whether there is no character in it.
    pub fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }

    /// Says whether it is this JSON string.
    pub fn is(&self, piece: Json<'_>) -> bool {
        piece.bytes().get(1..piece.bytes().len() - 1) == Some(self.inner.as_bytes())
    }

    /// The JSON string, quotes included.
    pub fn raw(&self) -> String {
        format!("\"{}\"", self.inner)
    }

    /// The JSON string if it has a character in it.
    pub fn some(&self) -> Option<String> {
        (!self.is_empty()).then(|| self.raw())
    }

    /// The text as an object, if that is what it holds: arguments of a call.
    ///
    /// A call without arguments has an empty object. A text that is none is put into one: what
    /// a model wrote is kept, and the message can be sent back.
    pub fn object(&self) -> String {
        let raw = self.raw();
        let text = unescaped(Json::checked(raw.as_bytes()));
        match Json::parse(text.as_bytes()) {
            Ok(json) if json.kind() == Kind::Object => text.trim().to_owned(),
            _ if text.trim().is_empty() => "{}".to_owned(),
            _ => crate::said::arguments(Some(Json::checked(raw.as_bytes()))).into_owned(),
        }
    }
}

/// Says whether the last escape is the first half of a surrogate pair.
fn ends_in_half(inner: &[u8]) -> bool {
    let Some((before, last)) = inner.split_last_chunk::<6>() else {
        return false;
    };
    let half = matches!(
        last,
        [
            b'\\',
            b'u',
            b'd' | b'D',
            b'8' | b'9' | b'a' | b'b' | b'A' | b'B',
            ..
        ]
    );
    let slashes = before.iter().rev().take_while(|byte| **byte == b'\\');
    half && slashes.count() % 2 == 0
}

/// The text of a string that holds JSON. A lone surrogate in it becomes an escape of that JSON.
fn unescaped(json: Json<'_>) -> String {
    let text = json.text().unwrap_or_default();
    if !text.contains(char::REPLACEMENT_CHARACTER) {
        return text.into_owned();
    }
    let mut out = String::with_capacity(text.len());
    for unit in char::decode_utf16(json.utf16().unwrap_or_default()) {
        match unit {
            Ok(char) => out.push(char),
            Err(lone) => out += &format!("\\u{:04x}", lone.unpaired_surrogate()),
        }
    }
    out
}

/// A JSON object with some members changed, left out or added; all others as they are.
pub fn changed(object: Json<'_>, changes: &[(&str, Option<String>)]) -> String {
    let mut out = String::with_capacity(object.bytes().len());
    let mut seen = vec![false; changes.len()];
    for (key, value) in object.members() {
        let at = changes.iter().position(|(name, _)| key.is(name));
        match at {
            None => member(&mut out, &raw(key), &raw(value)),
            Some(at) if !std::mem::replace(&mut seen[at], true) => {
                if let Some(value) = &changes[at].1 {
                    member(&mut out, &raw(key), value);
                }
            }
            Some(_) => {}
        }
    }
    for ((name, value), seen) in changes.iter().zip(seen) {
        if let (Some(value), false) = (value, seen) {
            member(&mut out, &quote(name), value);
        }
    }
    closed(out)
}

/// A JSON object of these members; those without a value are left out.
pub fn object(members: &[(&str, Option<String>)]) -> String {
    changed(Json::checked(b"{}"), members)
}

fn member(out: &mut String, key: &str, value: &str) {
    out.push(if out.is_empty() { '{' } else { ',' });
    crate::said::put(out, &[key, ":", value]);
}

fn closed(mut out: String) -> String {
    if out.is_empty() {
        out.push('{');
    }
    out.push('}');
    out
}

/// A JSON array; none if there is nothing in it.
pub fn array(items: &[String]) -> Option<String> {
    (!items.is_empty()).then(|| format!("[{}]", items.join(",")))
}

/// The bytes of a value, on one line: indentation is left out, which no string has in it.
pub fn raw(json: Json<'_>) -> String {
    let text = String::from_utf8_lossy(json.bytes());
    match text.contains(['\n', '\r']) {
        true => text.split(['\n', '\r']).map(str::trim_start).collect(),
        false => text.into_owned(),
    }
}

/// A number of tokens. What is no count is none, and no sum of counts overflows.
pub fn count(json: Option<Json<'_>>) -> u64 {
    const MOST: f64 = (1_u64 << 53) as f64;
    // The conversion makes nothing of less than nothing.
    json.and_then(Json::number).unwrap_or(0.0).min(MOST) as u64
}

/// The text of a member that says something.
pub fn word(json: Option<Json<'_>>) -> Option<String> {
    let text = json?.text()?.into_owned();
    (!text.is_empty()).then_some(text)
}
