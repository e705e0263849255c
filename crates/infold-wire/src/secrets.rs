//! Finds secrets in JSON, and replaces them by markers.
//!
//! Strings are searched decoded, so that no escape hides anything, and with the name of their member,
//! which many rules need. JSON in a string, such as the arguments of a call or a part of a text, is searched
//! with its own escapes resolved too. Long base64 is skipped.
//!
//! ```
//! use infold_wire::secrets;
//!
//! let key = ["AKIA", "QYLPMN5HHHFPZAM2"].concat();
//! let message = format!(r#"{{"role":"user","content":"it is \u0041{}"}}"#, &key[1..]);
//! let without = secrets::without_secrets(message.as_bytes());
//! let expected = r#"{"role":"user","content":"it is [redacted:aws-access-token]"}"#;
//! assert_eq!(without.as_deref(), Some(expected.as_bytes()));
//! ```

use std::borrow::Cow;
use std::ops::Range;

pub use infold_secrets::contains_marker;
pub use infold_secrets::rule_count;
use infold_secrets::{Finding, find, marker};

use crate::edits::{ByteEdit, splice, splice_json};
use crate::redact::{EscapedReplacement, Unescaped, replace_at_levels};
use crate::{Json, JsonKind, quote};

/// A secret that was found, with no more of it than its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSecret {
    /// The rule that it matches.
    pub rule: &'static str,
    /// The secret's start: four characters at most, and a quarter of it.
    pub start: String,
    /// The number of characters of the secret.
    pub chars: usize,
}

/// Returns JSON with its secrets replaced by markers, all other bytes unchanged; `None` if it has no secrets, or is not
/// JSON.
///
/// Signed thinking with a secret in it is removed completely: the provider would refuse a changed one.
pub fn without_secrets(json: &[u8]) -> Option<Vec<u8>> {
    let parsed = Json::parse(json).ok()?;
    let changed = SecretReplacer::default().value(parsed, "")?;
    Some(splice(json, &[(parsed.range(), changed)]))
}

/// Replaces the secrets in messages that make up one, such as the chunks of a streamed reply.
pub fn joined_without_secrets<'a>(messages: &[&'a [u8]]) -> Vec<Cow<'a, [u8]>> {
    let alone = |one: &&'a [u8]| without_secrets(one).map_or(Cow::Borrowed(*one), Cow::Owned);
    let mut all: Vec<Cow<'a, [u8]>> = messages.iter().map(alone).collect();
    if all.iter().all(|message| Json::parse(message).is_ok()) {
        SecretReplacer::default().replace_across(&mut all, |message| {
            message.get("parts").map(text_ranges).unwrap_or_default()
        });
    }
    all
}

/// Returns any text with its secrets replaced by markers: JSON, a fragment of it, or no JSON at all.
pub fn fragment_without_secrets(text: &[u8]) -> Option<Vec<u8>> {
    match Json::parse(text) {
        Ok(_) => without_secrets(text),
        Err(_) => SecretReplacer::default().fragment(text),
    }
}

/// Returns a plain text with its secrets replaced by markers; none if it has none.
pub fn text_without_secrets(text: &str) -> Option<String> {
    SecretReplacer::default().at_levels(text, 0, "")
}

/// Returns the secrets in any text: JSON, a fragment of it, or no JSON at all.
pub fn find_secrets(text: &[u8]) -> Vec<FoundSecret> {
    let mut redaction = SecretReplacer::default();
    match Json::parse(text) {
        Ok(json) => redaction.value(json, ""),
        Err(_) => redaction.fragment(text),
    };
    redaction.found
}

/// Returns the secrets that end behind an offset, in a text that is not JSON.
pub fn find_secrets_after(text: &[u8], offset: usize) -> Vec<FoundSecret> {
    let found = find(text).into_iter();
    let found = found.filter(|one| one.range.end > offset);
    found.map(|one| FoundSecret::of(&one, text)).collect()
}

impl FoundSecret {
    fn of(finding: &Finding, text: &[u8]) -> FoundSecret {
        let secret = String::from_utf8_lossy(&text[finding.range.clone()]);
        let chars = secret.chars().count();
        let visible = secret.chars().take(4.min(chars / 4));
        FoundSecret {
            rule: finding.rule,
            // Control characters would act on a terminal.
            start: visible
                .map(|c| if c.is_control() { '?' } else { c })
                .collect(),
            chars,
        }
    }
}

/// The number of times that a text is searched: once a secret is replaced, its neighbour may match.
const MAX_PASSES: usize = 4;

/// Replaces secrets, and collects them.
#[derive(Default)]
struct SecretReplacer {
    found: Vec<FoundSecret>,
}

impl SecretReplacer {
    /// Returns a value without its secrets; none if it has none. `name` is that of its member.
    fn value(&mut self, json: Json<'_>, name: &str) -> Option<Vec<u8>> {
        match json.kind() {
            JsonKind::Object => self.object(json),
            JsonKind::Array => self.array(json, name),
            JsonKind::String => self.string(json, name),
            JsonKind::Number | JsonKind::Bool | JsonKind::Null => None,
        }
    }

    /// Searches a text that is not JSON as a whole, and may not be UTF-8.
    fn fragment(&mut self, text: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(text.len());
        let mut is_changed = false;
        for chunk in text.utf8_chunks() {
            let changed = self.at_levels(chunk.valid(), 0, "");
            is_changed |= changed.is_some();
            out.extend_from_slice(changed.as_deref().unwrap_or(chunk.valid()).as_bytes());
            out.extend_from_slice(chunk.invalid());
        }
        is_changed.then_some(out)
    }

    fn object(&mut self, json: Json<'_>) -> Option<Vec<u8>> {
        let mut edits = Vec::new();
        for (key, value) in json.members() {
            let changed = self.string(key, "");
            edits.extend(changed.map(|changed| (key.range(), changed)));
            let changed = self.value(value, &String::from_utf8_lossy(&key.name()));
            edits.extend(changed.map(|changed| (value.range(), changed)));
        }
        splice_json(json, edits)
    }

    fn array(&mut self, json: Json<'_>, name: &str) -> Option<Vec<u8>> {
        let mut edits = Vec::new();
        let mut kept: Vec<Cow<'_, [u8]>> = Vec::new();
        let mut removed_rule = None;
        for element in json.elements() {
            let before = self.found.len();
            match self.value(element, name) {
                Some(_) if is_signed(element) => {
                    removed_rule = removed_rule.or(Some(self.found[before].rule));
                }
                Some(changed) => {
                    edits.push((element.range(), changed.clone()));
                    kept.push(Cow::Owned(changed));
                }
                None => kept.push(Cow::Borrowed(element.bytes())),
            }
        }
        let Some(rule) = removed_rule else {
            let changed = splice_json(json, edits);
            let mut whole = [changed.map_or(Cow::Borrowed(json.bytes()), Cow::Owned)];
            self.replace_across(&mut whole, text_ranges);
            let [whole] = whole;
            return match whole {
                Cow::Owned(changed) => Some(changed),
                Cow::Borrowed(_) => None,
            };
        };
        if kept.is_empty() {
            // A message must not be empty.
            let kind = json.elements().any(|one| one.get("type").is_some());
            let kind = if kind { r#""type":"text","# } else { "" };
            let text = quote(&marker(rule));
            kept.push(format!(r#"{{{kind}"text":{text}}}"#).into_bytes().into());
        }
        Some([b"[".as_slice(), &kept.join(&b","[..]), b"]"].concat())
    }

    /// Replaces secrets that begin in one text and end in a later one: the chunks of a streamed reply may
    /// be stored as they came.
    fn replace_across(
        &mut self,
        all: &mut [Cow<'_, [u8]>],
        texts: fn(Json<'_>) -> Vec<Range<usize>>,
    ) {
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
        let mut edits: Vec<Vec<ByteEdit>> = vec![Vec::new(); all.len()];
        for one in find(joined.as_bytes()) {
            let first = ends.partition_point(|end| *end <= one.range.start);
            if one.range.end <= ends[first] {
                // The match is within one text, which was searched with its name.
                continue;
            }
            self.found.push(FoundSecret::of(&one, joined.as_bytes()));
            let mut new = marker(one.rule).into_bytes();
            for text in first..ends.len() {
                let start = if text == 0 { 0 } else { ends[text - 1] };
                if start >= one.range.end {
                    break;
                }
                let from = one.range.start.saturating_sub(start);
                let to = one.range.end.min(ends[text]) - start;
                let (at, literal) = &places[text];
                let inner = Json::checked(&all[*at][literal.clone()]).inner();
                let range = Unescaped::new(inner.unwrap_or_default(), 1).original(&(from..to));
                let start = literal.start + 1;
                let range = start + range.start..start + range.end;
                edits[*at].push((range, std::mem::take(&mut new)));
            }
        }
        for (bytes, edits) in all.iter_mut().zip(edits) {
            if !edits.is_empty() {
                *bytes = Cow::Owned(splice(bytes, &edits));
            }
        }
    }

    fn string(&mut self, json: Json<'_>, name: &str) -> Option<Vec<u8>> {
        let changed = self.at_levels(json.inner()?, 1, name)?;
        Some(format!("\"{changed}\"").into_bytes())
    }

    /// Replaces the secrets after the escapes of a text are resolved `first_level` times, and after each further time.
    fn at_levels(&mut self, text: &str, first_level: usize, name: &str) -> Option<String> {
        let mut changed: Option<String> = None;
        for _ in 0..MAX_PASSES {
            let current = changed.as_deref().unwrap_or(text);
            let mut find = |text: &str| self.in_text(text, name);
            let Some(next) = replace_at_levels(current, first_level, &mut find) else {
                break;
            };
            changed = Some(next);
        }
        changed
    }

    fn in_text(&mut self, text: &str, name: &str) -> Vec<EscapedReplacement> {
        if is_blob(text) {
            return Vec::new();
        }
        let with_name = if name.is_empty() {
            Cow::Borrowed(text)
        } else {
            Cow::Owned(format!("{name}\": \"{text}"))
        };
        let before = with_name.len() - text.len();
        let mut found = find(with_name.as_bytes());
        // A secret within the name is found when the name is searched.
        found.retain(|one| one.range.end > before);
        for one in &mut found {
            one.range.start = one.range.start.max(before);
            self.found.push(FoundSecret::of(one, with_name.as_bytes()));
        }
        let found = found.into_iter();
        let in_text = |range: Range<usize>| range.start - before..range.end - before;
        found
            .map(|one| (in_text(one.range), marker(one.rule)))
            .collect()
    }
}

/// Returns the ranges of the texts of blocks, which read as one text.
fn text_ranges(blocks: Json<'_>) -> Vec<Range<usize>> {
    let text = |block: Json<'_>| {
        let [text, thought] = block.pick(["text", "thought"]);
        let text = text.filter(|text| text.kind() == JsonKind::String)?;
        (!thought.is_some_and(Json::is_true)).then(|| text.range())
    };
    blocks.elements().filter_map(text).collect()
}

/// Returns whether a text is base64, such as an image.
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

fn is_signed(block: Json<'_>) -> bool {
    let [kind, signature, thought, mark] =
        block.pick(["type", "signature", "thought", "thoughtSignature"]);
    let is_thinking = kind.is_some_and(|kind| kind.is("thinking") || kind.is("reasoning.text"));
    let is_string = |json: Option<Json<'_>>| json.is_some_and(|it| it.kind() == JsonKind::String);
    is_thinking && is_string(signature) || thought.is_some_and(Json::is_true) && is_string(mark)
}

#[cfg(test)]
mod tests;
