//! Secrets in JSON: where they stand, and the same JSON without them.
//!
//! Strings are looked at decoded, so that no escape hides anything, and with the name of the
//! member that they are the value of, which many rules want. A string that holds JSON itself, as
//! the arguments of a call do, is looked at as JSON too. Long base64 is passed over.
//!
//! ```
//! use infold_wire::secrets;
//!
//! let key = ["AKIA", "QYLPMN5HHHFPZAM2"].concat();
//! let message = format!(r#"{{"role":"user","content":"it is \u0041{}"}}"#, &key[1..]);
//! let without = secrets::redacted(message.as_bytes());
//! let expected = r#"{"role":"user","content":"it is [redacted:aws-access-token]"}"#;
//! assert_eq!(without.as_deref(), Some(expected.as_bytes()));
//! ```

use std::borrow::Cow;
use std::ops::Range;

use infold_secrets::{Finding, MAX_PASSES, find, marker};
pub use infold_secrets::{redacted as redacted_text, rule_count};

use crate::{Json, Kind, quote};

/// A secret that was found, without saying it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The rule that it matches.
    pub rule: &'static str,
    /// Its beginning, four characters at most and a quarter of it.
    pub start: String,
    /// How many characters it has.
    pub chars: usize,
}

/// Returns JSON with its secrets replaced by markers, all other bytes as they are; nothing if it has none, or
/// is no JSON.
///
/// Thinking that a provider signed goes whole if there is a secret in it: altered it would be refused.
pub fn redacted(json: &[u8]) -> Option<Vec<u8>> {
    let parsed = Json::parse(json).ok()?;
    let changed = Redaction::default().value(parsed, "")?;
    Some(spliced(json, &[(parsed.range(), changed)]))
}

/// The same of messages that make up one, such as a reply that came in pieces.
pub fn redacted_together<'a>(pieces: &[&'a [u8]]) -> Vec<Cow<'a, [u8]>> {
    let alone = |piece: &&'a [u8]| redacted(piece).map_or(Cow::Borrowed(*piece), Cow::Owned);
    let mut all: Vec<Cow<'a, [u8]>> = pieces.iter().map(alone).collect();
    if all.iter().all(|piece| Json::parse(piece).is_ok()) {
        Redaction::default().across(&mut all, |message| {
            message.get("parts").map(texts_of).unwrap_or_default()
        });
    }
    all
}

/// Returns any text with its secrets replaced by markers: JSON, a piece of it, or no JSON at all.
pub fn fragment_without_secrets(text: &[u8]) -> Option<Vec<u8>> {
    match Json::parse(text) {
        Ok(_) => redacted(text),
        Err(_) => Redaction::default().fragment(text),
    }
}

/// Where strings may stand in a text that is not JSON as a whole.
fn literals(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + memchr::memchr(b'"', &text[at..])?;
        at = crate::scan::string_end(text, start);
        (at <= text.len()).then_some(start..at)
    })
}

/// Returns the secrets in any text: JSON, a piece of it, or no JSON at all.
pub fn found(text: &[u8]) -> Vec<Found> {
    let mut redaction = Redaction::default();
    match Json::parse(text) {
        Ok(json) => redaction.value(json, ""),
        Err(_) => redaction.fragment(text),
    };
    redaction.found
}

/// Returns the secrets in a text that is no JSON which end behind an offset.
pub fn found_from(text: &[u8], from: usize) -> Vec<Found> {
    let found = find(text).into_iter();
    let found = found.filter(|one| one.range.end > from);
    found.map(|one| Found::of(&one, text)).collect()
}

impl Found {
    fn of(finding: &Finding, text: &[u8]) -> Found {
        let secret = String::from_utf8_lossy(&text[finding.range.clone()]);
        let chars = secret.chars().count();
        let visible = secret.chars().take(4.min(chars / 4));
        Found {
            rule: finding.rule,
            // A terminal must not obey it.
            start: visible
                .map(|c| if c.is_control() { '?' } else { c })
                .collect(),
            chars,
        }
    }
}

/// A part of some bytes, and what comes in its place.
type Change = (Range<usize>, Vec<u8>);

#[derive(Default)]
struct Redaction {
    found: Vec<Found>,
}

impl Redaction {
    /// A value without its secrets; nothing if it has none. `name` is that of its member.
    fn value(&mut self, json: Json<'_>, name: &str) -> Option<Vec<u8>> {
        match json.kind() {
            Kind::Object => self.object(json),
            Kind::Array => self.array(json, name),
            Kind::String => self.string(json, name),
            Kind::Number | Kind::Bool | Kind::Null => None,
        }
    }

    /// A text that is not JSON as a whole: what may be strings in it, then all of it.
    fn fragment(&mut self, text: &[u8]) -> Option<Vec<u8>> {
        let mut changes = Vec::new();
        for range in literals(text) {
            let literal = &text[range.clone()];
            let changed = match Json::parse(literal) {
                Ok(literal) => self.value(literal, ""),
                Err(_) => self.torn(literal),
            };
            changes.extend(changed.map(|changed| (range, changed)));
        }
        let decoded = (!changes.is_empty()).then(|| spliced(text, &changes));
        let text = decoded.as_deref().unwrap_or(text);
        let found = find(text);
        let rest = found.iter().map(|one| Found::of(one, text));
        self.found.extend(rest);
        if found.is_empty() {
            return decoded;
        }
        let markers = found.into_iter();
        let markers = markers.map(|one| (one.range, marker(one.rule).into_bytes()));
        Some(spliced(text, &markers.collect::<Vec<_>>()))
    }

    /// A string that ends before its quote, maybe within an escape.
    fn torn(&mut self, literal: &[u8]) -> Option<Vec<u8>> {
        const MAX_ESCAPE_BYTES: usize = 12;
        (0..=MAX_ESCAPE_BYTES.min(literal.len())).find_map(|cut| {
            let (whole, rest) = literal.split_at(literal.len() - cut);
            let closed = [whole, b"\""].concat();
            let mut changed = self.value(Json::parse(&closed).ok()?, "")?;
            changed.pop();
            changed.extend_from_slice(rest);
            Some(changed)
        })
    }

    fn object(&mut self, json: Json<'_>) -> Option<Vec<u8>> {
        let mut changes = Vec::new();
        for (key, value) in json.members() {
            let changed = self.string(key, "");
            changes.extend(changed.map(|changed| (key.range(), changed)));
            let changed = self.value(value, &String::from_utf8_lossy(&key.name()));
            changes.extend(changed.map(|changed| (value.range(), changed)));
        }
        changed(json, changes)
    }

    fn array(&mut self, json: Json<'_>, name: &str) -> Option<Vec<u8>> {
        let mut changes = Vec::new();
        let mut removed = Vec::new();
        for element in json.elements() {
            let before = self.found.len();
            if let Some(changed) = self.value(element, name) {
                match is_signed(element) {
                    false => changes.push((element.range(), changed)),
                    true => removed.push((element.range(), self.found[before].rule)),
                }
            }
        }
        let Some((_, rule)) = removed.first() else {
            let changed = changed(json, changes);
            let mut whole = [changed.map_or(Cow::Borrowed(json.bytes()), Cow::Owned)];
            self.across(&mut whole, texts_of);
            let [whole] = whole;
            return match whole {
                Cow::Owned(changed) => Some(changed),
                Cow::Borrowed(_) => None,
            };
        };
        let kept = json.elements().filter(|element| {
            let range = element.range();
            !removed.iter().any(|(removed, _)| *removed == range)
        });
        let kept = kept.map(|element| {
            let change = changes.iter().find(|(at, _)| *at == element.range());
            change.map_or(element.bytes(), |(_, bytes)| bytes)
        });
        let mut kept: Vec<Cow<'_, [u8]>> = kept.map(Cow::Borrowed).collect();
        if kept.is_empty() {
            // A message must say something.
            let kind = json.elements().any(|one| one.get("type").is_some());
            let kind = if kind { r#""type":"text","# } else { "" };
            let text = quote(&marker(rule));
            kept.push(format!(r#"{{{kind}"text":{text}}}"#).into_bytes().into());
        }
        Some([b"[".as_slice(), &kept.join(&b","[..]), b"]"].concat())
    }

    /// Replaces what begins in one text and ends in another that follows it: a reply that came in
    /// pieces may be kept in pieces.
    fn across(&mut self, all: &mut [Cow<'_, [u8]>], texts: fn(Json<'_>) -> Vec<Range<usize>>) {
        let mut places = Vec::new();
        let (mut joined, mut ends) = (String::new(), Vec::new());
        for (at, bytes) in all.iter().enumerate() {
            for range in texts(Json::checked(bytes)) {
                let text = Json::checked(&bytes[range.clone()]).text();
                joined.push_str(&text.unwrap_or_default());
                ends.push(joined.len());
                places.push((at, range));
            }
        }
        if places.len() < 2 {
            return;
        }
        let mut changes: Vec<Vec<Change>> = vec![Vec::new(); all.len()];
        for one in find(joined.as_bytes()) {
            let first = ends.partition_point(|end| *end <= one.range.start);
            if one.range.end <= ends[first] {
                // It was looked at alone, and with its name.
                continue;
            }
            self.found.push(Found::of(&one, joined.as_bytes()));
            let mut new = marker(one.rule).into_bytes();
            for text in first..ends.len() {
                let start = if text == 0 { 0 } else { ends[text - 1] };
                if start >= one.range.end {
                    break;
                }
                let from = one.range.start.saturating_sub(start);
                let to = one.range.end.min(ends[text]) - start;
                let (at, literal) = &places[text];
                let offset = literal.start;
                let range = from..to;
                let inner = escaped(&all[*at][literal.clone()], std::slice::from_ref(&range));
                let inner = inner[0].start + offset..inner[0].end + offset;
                changes[*at].push((inner, std::mem::take(&mut new)));
            }
        }
        for (bytes, changes) in all.iter_mut().zip(changes) {
            if !changes.is_empty() {
                *bytes = Cow::Owned(spliced(bytes, &changes));
            }
        }
    }

    fn string(&mut self, json: Json<'_>, name: &str) -> Option<Vec<u8>> {
        let mut changed = self.nested(json);
        for _ in 0..MAX_PASSES {
            let literal = changed.as_deref().unwrap_or(json.bytes());
            let current = Json::checked(literal);
            let text = current.text().unwrap_or_default();
            let found = self.in_text(&text, name);
            if found.is_empty() {
                break;
            }
            let ranges: Vec<Range<usize>> = found.iter().map(|one| one.range.clone()).collect();
            let ranges = escaped(literal, &ranges);
            let markers = found.iter().map(|one| marker(one.rule).into_bytes());
            let changes: Vec<_> = ranges.into_iter().zip(markers).collect();
            changed = Some(spliced(literal, &changes));
        }
        changed
    }

    /// A string that holds JSON, without the secrets in that.
    fn nested(&mut self, json: Json<'_>) -> Option<Vec<u8>> {
        let text = json.text()?;
        if !text.trim_start().starts_with(['{', '[']) || !text.contains('"') {
            return None;
        }
        let inner = Json::parse(text.as_bytes()).ok()?;
        let changed = self.value(inner, "")?;
        let changed = spliced(text.as_bytes(), &[(inner.range(), changed)]);
        Some(quote(&String::from_utf8_lossy(&changed)).into_bytes())
    }

    fn in_text(&mut self, text: &str, name: &str) -> Vec<Finding> {
        if is_blob(text) {
            return Vec::new();
        }
        let with_name = match name.is_empty() {
            true => Cow::Borrowed(text),
            false => Cow::Owned(format!("{name}\": \"{text}")),
        };
        let before = with_name.len() - text.len();
        let mut found = find(with_name.as_bytes());
        // What lies in the name alone is found with the name.
        found.retain(|one| one.range.end > before);
        for one in &mut found {
            one.range.start = one.range.start.max(before);
            self.found.push(Found::of(one, with_name.as_bytes()));
            one.range = one.range.start - before..one.range.end - before;
        }
        found
    }
}

/// Where the texts of blocks stand, which a reader takes for one text.
fn texts_of(blocks: Json<'_>) -> Vec<Range<usize>> {
    let text = |block: Json<'_>| {
        let [text, thought] = block.pick(["text", "thought"]);
        let text = text.filter(|text| text.kind() == Kind::String)?;
        (!thought.is_some_and(Json::is_true)).then(|| text.range())
    };
    blocks.elements().filter_map(text).collect()
}

/// Says whether a text is an image or the like: base64 is not looked into.
fn is_blob(text: &str) -> bool {
    /// Longer than any token, and shorter than any picture.
    const MIN_BLOB_BYTES: usize = 1024;
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    if text.len() < MIN_BLOB_BYTES {
        return false;
    }
    let data = match text.strip_prefix("data:") {
        Some(url) => url.split_once(";base64,").map_or(text, |(_, data)| data),
        None => text,
    };
    data.bytes().all(is_base64)
}

/// Says whether a block is thinking that its provider signed.
fn is_signed(block: Json<'_>) -> bool {
    let [kind, signature, thought, mark] =
        block.pick(["type", "signature", "thought", "thoughtSignature"]);
    let is_thinking = kind.is_some_and(|kind| kind.is("thinking") || kind.is("reasoning.text"));
    let is_string = |json: Option<Json<'_>>| json.is_some_and(|it| it.kind() == Kind::String);
    is_thinking && is_string(signature) || thought.is_some_and(Json::is_true) && is_string(mark)
}

/// A value whose parts changed; nothing if none did.
fn changed(json: Json<'_>, changes: Vec<Change>) -> Option<Vec<u8>> {
    let start = json.range().start;
    let changes: Vec<_> = changes
        .into_iter()
        .map(|(range, bytes)| (range.start - start..range.end - start, bytes))
        .collect();
    (!changes.is_empty()).then(|| spliced(json.bytes(), &changes))
}

fn spliced(bytes: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut end = 0;
    for (range, new) in changes {
        out.extend_from_slice(&bytes[end..range.start]);
        out.extend_from_slice(new);
        end = range.end;
    }
    out.extend_from_slice(&bytes[end..]);
    out
}

/// Where ranges of a string's text, in order, stand in its literal.
fn escaped(literal: &[u8], ranges: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut steps = Steps {
        literal,
        at: 1,
        text: 0,
    };
    let place = |range: &Range<usize>| {
        let start = steps.to(range.start);
        start..steps.to(range.end)
    };
    ranges.iter().map(place).collect()
}

/// A walk along a literal and its text.
struct Steps<'a> {
    literal: &'a [u8],
    at: usize,
    text: usize,
}

impl Steps<'_> {
    /// Goes on to an offset in the text; returns that in the literal.
    fn to(&mut self, text: usize) -> usize {
        while self.text < text {
            let rest = &self.literal[self.at..];
            let plain = memchr::memchr(b'\\', rest).unwrap_or(rest.len());
            let plain = plain.min(text - self.text);
            if plain > 0 {
                (self.at, self.text) = (self.at + plain, self.text + plain);
                continue;
            }
            let (literal, text) = escape(rest);
            (self.at, self.text) = (self.at + literal, self.text + text);
        }
        self.at
    }
}

/// How long an escape is, and what it stands for.
fn escape(rest: &[u8]) -> (usize, usize) {
    let unit = |at: usize| {
        let is_unit = rest.get(at..at + 2) == Some(b"\\u");
        let digits = rest.get(at + 2..at + 6).filter(|_| is_unit)?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    match (unit(0), unit(6)) {
        (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (12, 4),
        (Some(first), _) => (
            6,
            char::from_u32(u32::from(first)).map_or(3, char::len_utf8),
        ),
        (None, _) => (2, 1),
    }
}

#[cfg(test)]
mod tests;
