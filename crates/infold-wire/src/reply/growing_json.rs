//! Builds JSON strings whose chunks come one by one, and the objects that hold them.

use super::ReplyDelta;
use crate::scan::ends_in_escape;
use crate::{Json, JsonKind, quote};

/// Called with each delta as it arrives.
pub type OnDelta<'a> = dyn FnMut(ReplyDelta) + 'a;

/// A JSON string that grows at its end.
///
/// The contents of its chunks are joined unchanged, so half of a surrogate pair at the end of one chunk may become a
/// character with the next.
#[derive(Clone, Debug, Default)]
pub struct GrowingText {
    inner: String,
    /// The bytes that have been reported.
    reported: usize,
    has_chunk: bool,
}

impl GrowingText {
    /// Appends a chunk, if it is a string.
    pub fn push(&mut self, chunk: Json<'_>) {
        if chunk.kind() == JsonKind::String {
            self.push_raw(&String::from_utf8_lossy(chunk.bytes()));
        }
    }

    /// Appends a JSON string, quotes included.
    pub fn push_raw(&mut self, chunk: &str) {
        self.has_chunk = true;
        self.inner.push_str(&chunk[1..chunk.len() - 1]);
    }

    /// Appends a chunk, if there is one, and reports the new text.
    pub fn grow<'a>(
        &mut self,
        chunk: impl Into<Option<Json<'a>>>,
        on_delta: &mut OnDelta<'_>,
        delta: fn(String) -> ReplyDelta,
    ) {
        if let Some(chunk) = chunk.into() {
            self.push(chunk);
            self.report(on_delta, delta);
        }
    }

    /// Reports the text that has not been reported.
    pub fn report(&mut self, on_delta: &mut OnDelta<'_>, delta: fn(String) -> ReplyDelta) {
        let new = &self.inner[self.reported..];
        // Its other half may be in the next chunk.
        let new = &new[..new.len() - if ends_in_half(new.as_bytes()) { 6 } else { 0 }];
        if new.is_empty() {
            return;
        }
        self.reported += new.len();
        let quoted = format!("\"{new}\"");
        let text = Json::checked(quoted.as_bytes()).text();
        on_delta(delta(text.unwrap_or_default().into_owned()));
    }

    /// Returns whether a chunk came, if only an empty one.
    pub fn has_chunk(&self) -> bool {
        self.has_chunk
    }

    /// Returns whether it has no characters.
    pub fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }

    /// Returns whether the text is this JSON string.
    pub fn is(&self, chunk: Json<'_>) -> bool {
        chunk.bytes().get(1..chunk.bytes().len() - 1) == Some(self.inner.as_bytes())
    }

    /// Returns the JSON string, quotes included.
    pub fn raw(&self) -> String {
        format!("\"{}\"", self.inner)
    }

    /// Returns the JSON string, unless it is empty.
    pub fn non_empty(&self) -> Option<String> {
        (!self.is_empty()).then(|| self.raw())
    }

    /// Returns the arguments of a call: the object in the text, or an empty one.
    ///
    /// A text that is no object is put into one, so that the message can be sent back.
    pub fn object(&self) -> String {
        let raw = self.raw();
        let text = unescaped(Json::checked(raw.as_bytes()));
        match Json::parse(text.as_bytes()) {
            Ok(json) if json.kind() == JsonKind::Object => text.trim().to_owned(),
            _ if text.trim().is_empty() => "{}".to_owned(),
            _ => crate::neutral::arguments_object(Some(Json::checked(raw.as_bytes()))).into_owned(),
        }
    }
}

/// Returns whether the last escape is the first half of a surrogate pair.
fn ends_in_half(inner: &[u8]) -> bool {
    let Some((before, last)) = inner.split_last_chunk::<6>() else {
        return false;
    };
    let [slash, letter, first, second, ..] = *last;
    let is_half =
        [slash, letter] == *b"\\u" && b"dD".contains(&first) && b"89abAB".contains(&second);
    is_half && !ends_in_escape(before)
}

/// Returns the text of a string that holds JSON. A lone surrogate in it becomes an escape of that JSON.
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

/// Returns an object with some members changed, left out or added; all others unchanged.
pub fn with_members(object: Json<'_>, changes: &[(&str, Option<String>)]) -> String {
    let mut out = String::with_capacity(object.bytes().len());
    let mut seen = vec![false; changes.len()];
    for (key, value) in object.members() {
        let at = changes.iter().position(|(name, _)| key.is(name));
        match at {
            None => push_member(&mut out, &raw(key), &raw(value)),
            Some(at) if !std::mem::replace(&mut seen[at], true) => {
                if let Some(value) = &changes[at].1 {
                    push_member(&mut out, &raw(key), value);
                }
            }
            Some(_) => {}
        }
    }
    for ((name, value), seen) in changes.iter().zip(seen) {
        if let (Some(value), false) = (value, seen) {
            push_member(&mut out, &quote(name), value);
        }
    }
    if out.is_empty() {
        out.push('{');
    }
    out + "}"
}

/// Returns an object of these members; those without a value are left out.
pub fn object(members: &[(&str, Option<String>)]) -> String {
    with_members(Json::checked(b"{}"), members)
}

fn push_member(out: &mut String, key: &str, value: &str) {
    out.push(if out.is_empty() { '{' } else { ',' });
    crate::neutral::push_all(out, &[key, ":", value]);
}

/// Returns an array; none if it is empty.
pub fn array(items: &[String]) -> Option<String> {
    (!items.is_empty()).then(|| format!("[{}]", items.join(",")))
}

/// Returns the bytes of a value on one line, without indentation; strings have no bare line breaks.
pub fn raw(json: Json<'_>) -> String {
    let text = String::from_utf8_lossy(json.bytes());
    if text.contains(['\n', '\r']) {
        text.split(['\n', '\r']).map(str::trim_start).collect()
    } else {
        text.into_owned()
    }
}

/// Returns a number of tokens, zero for any other value; no sum of such numbers overflows.
pub fn token_count(json: Option<Json<'_>>) -> u64 {
    const MAX_TOKENS: f64 = (1_u64 << 53) as f64;
    // The conversion turns negative numbers into zero.
    json.and_then(Json::number).unwrap_or(0.0).min(MAX_TOKENS) as u64
}

/// Returns the text of a member that is a string, and not empty.
pub fn text_of(json: Option<Json<'_>>) -> Option<String> {
    let text = json?.text()?.into_owned();
    (!text.is_empty()).then_some(text)
}

/// Returns the choice or candidate with the index 0.
pub fn first_choice(choices: Option<Json<'_>>) -> Option<Json<'_>> {
    choices.into_iter().flat_map(Json::elements).find(|choice| {
        let index = choice.get("index").and_then(Json::number);
        index.is_none_or(|index| index == 0.0)
    })
}

/// Returns the values of these members, whose names have blanks between them.
pub fn pick<'a, const N: usize>(names: &str, object: Json<'a>) -> [Option<Json<'a>>; N] {
    let mut names = names.split(' ');
    object.pick([(); N].map(|()| names.next().unwrap_or_default()))
}
