//! Texts that were redacted, known by their lengths and digests: they are recognised wherever they occur in a later frame, whatever
//! stands around them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;

use infold_wire::Json;

use crate::redacted_digests::has_code;

/// Shorter texts occur by chance, and their digests could be guessed.
const MIN_BYTES: usize = 6;

/// Shorter texts occur in the prompts of other tasks by chance, unless they are codes.
const MIN_PROMPT_BYTES: usize = 12;

/// How many are kept of one redaction.
const MAX_VALUES: usize = 4096;

/// A redacted text, without the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedactedValue {
    /// How long it was.
    pub(crate) bytes: usize,
    /// Its rolling checksum: only texts with the same one are digested.
    pub(crate) sum: u32,
    pub(crate) digest: String,
    /// Whether a pattern found it in a frame and it is too distinctive to occur by chance: such a value is
    /// redacted in the frames of all tasks.
    pub(crate) is_of_prompt: bool,
}

impl RedactedValue {
    fn of(text: &str) -> RedactedValue {
        let bytes = text.as_bytes();
        RedactedValue {
            bytes: bytes.len(),
            sum: checksum(bytes),
            digest: digest(bytes),
            is_of_prompt: false,
        }
    }

    pub(crate) fn encode(&self) -> String {
        let RedactedValue {
            bytes, sum, digest, ..
        } = self;
        let prompt = if self.is_of_prompt {
            r#","prompt":true"#
        } else {
            ""
        };
        format!(r#"{{"bytes":{bytes},"sum":{sum},"digest":"{digest}"{prompt}}}"#)
    }

    pub(crate) fn decode(json: Json<'_>) -> Option<RedactedValue> {
        Some(RedactedValue {
            bytes: member_number(json, "bytes").filter(|bytes| *bytes > 0)?,
            sum: member_number(json, "sum")?,
            digest: json.get("digest")?.text()?.into_owned(),
            is_of_prompt: json.get("prompt").is_some_and(Json::is_true),
        })
    }
}

/// Reads the whole number that a member is.
pub(crate) fn member_number<T: std::str::FromStr>(json: Json<'_>, key: &str) -> Option<T> {
    let bytes = json.get(key)?.bytes();
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

fn digest(bytes: &[u8]) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("infold redacted value");
    hasher.update(bytes);
    hasher.finalize().to_hex()[..32].to_owned()
}

/// The base of the rolling checksum, a polynomial modulo 2³².
const BASE: u32 = 16_777_619;

pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    let add = |sum: u32, byte: &u8| sum.wrapping_mul(BASE).wrapping_add(u32::from(*byte));
    bytes.iter().fold(0, add)
}

/// Calls `visit` with the start and the checksum of each piece of a text that has this length.
pub(crate) fn each_window(text: &[u8], length: usize, mut visit: impl FnMut(usize, u32)) {
    let Some(first) = text.get(..length).filter(|first| !first.is_empty()) else {
        return;
    };
    let leaving = (1..length).fold(1u32, |power, _| power.wrapping_mul(BASE));
    let mut sum = checksum(first);
    for start in 0..=text.len() - length {
        if start > 0 {
            let gone = u32::from(text[start - 1]).wrapping_mul(leaving);
            let next = u32::from(text[start + length - 1]);
            sum = sum.wrapping_sub(gone).wrapping_mul(BASE).wrapping_add(next);
        }
        visit(start, sum);
    }
}

/// The texts of one redaction.
#[derive(Clone, Debug, Default)]
pub(crate) struct RedactedValues {
    /// The digests, by length and checksum.
    by_length: BTreeMap<usize, BTreeMap<u32, Vec<String>>>,
}

impl FromIterator<RedactedValue> for RedactedValues {
    fn from_iter<I: IntoIterator<Item = RedactedValue>>(values: I) -> RedactedValues {
        let mut all = RedactedValues::default();
        values.into_iter().for_each(|value| all.add(value));
        all
    }
}

impl RedactedValues {
    pub fn add(&mut self, value: RedactedValue) {
        let sums = self.by_length.entry(value.bytes).or_default();
        sums.entry(value.sum).or_default().push(value.digest);
    }

    pub fn is_empty(&self) -> bool {
        self.by_length.is_empty()
    }

    /// Returns where they stand in a text. Those that overlap are one range.
    pub fn find(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        for (length, sums) in &self.by_length {
            find_of_length(text.as_bytes(), *length, sums, &mut found);
        }
        apart(found)
    }
}

/// Sorts ranges; those that overlap become one.
pub(crate) fn apart(mut found: Vec<Range<usize>>) -> Vec<Range<usize>> {
    found.sort_unstable_by_key(|range| range.start);
    let mut apart: Vec<Range<usize>> = Vec::with_capacity(found.len());
    for range in found {
        match apart.last_mut().filter(|last| range.start < last.end) {
            Some(last) => last.end = last.end.max(range.end),
            None => apart.push(range),
        }
    }
    apart
}

fn find_of_length(
    text: &[u8],
    length: usize,
    sums: &BTreeMap<u32, Vec<String>>,
    found: &mut Vec<Range<usize>>,
) {
    each_window(text, length, |start, sum| {
        let range = start..start + length;
        if let Some(digests) = sums.get(&sum)
            && digests.contains(&digest(&text[range.clone()]))
        {
            found.push(range);
        }
    });
}

/// Collects the texts that a redaction finds.
#[derive(Default)]
pub(crate) struct FoundValues {
    /// Each text, and whether it was found in a frame by a pattern.
    values: RefCell<BTreeMap<String, bool>>,
    pub is_collecting: Cell<bool>,
    /// Whether the values found now were found in a frame by a pattern.
    pub is_in_prompt: Cell<bool>,
}

impl FoundValues {
    /// Collects the matches in a text, and returns them.
    pub fn collect(&self, text: &str, found: Vec<Range<usize>>) -> Vec<Range<usize>> {
        if self.is_collecting.get() {
            found
                .iter()
                .for_each(|range| self.add(&text[range.clone()]));
        }
        found
    }

    /// Adds a text, if it is long enough.
    pub fn add(&self, text: &str) {
        let mut values = self.values.borrow_mut();
        if text.len() >= MIN_BYTES && values.len() < MAX_VALUES {
            let is_in_prompt = self.is_in_prompt.get();
            *values.entry(text.to_owned()).or_default() |= is_in_prompt;
        }
    }

    /// Returns the values collected since the last call.
    pub fn take(&self) -> Vec<RedactedValue> {
        let values = self.values.take().into_iter();
        let values = values.map(|(text, is_in_prompt)| RedactedValue {
            is_of_prompt: is_in_prompt && (text.len() >= MIN_PROMPT_BYTES || has_code(&text)),
            ..RedactedValue::of(&text)
        });
        values.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_wherever_they_stand_and_nothing_else_is() {
        let known = ["hunter2-zzyzx", "größer", "zzyzx-more"];
        let values: RedactedValues = known.into_iter().map(RedactedValue::of).collect();
        assert_eq!(
            values.find("hunter2-zzyzx, grö größer hunter2-zzyz"),
            [0..13, 20..28]
        );
        // Two that overlap are one.
        assert_eq!(values.find("a hunter2-zzyzx-more, größer"), [2..20, 22..30]);
        assert!(values.find("short").is_empty() && values.find("").is_empty());
    }

    #[test]
    fn a_value_is_read_as_it_was_written() {
        let value = RedactedValue::of("hunter2-zzyzx");
        let written = value.encode();
        assert!(!written.contains("hunter2"));
        let json = Json::parse(written.as_bytes()).expect("JSON");
        assert_eq!(RedactedValue::decode(json), Some(value));
        let none = Json::parse(br#"{"bytes":0,"sum":1,"digest":""}"#).expect("JSON");
        assert_eq!(RedactedValue::decode(none), None);
    }
}
