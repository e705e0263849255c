//! The digests by which copies of redacted texts are recognised.

use std::collections::HashMap;
use std::ops::Range;

use infold_log::EventId;
use infold_wire::digest::{self, Digest};
use infold_wire::{Json, JsonKind};
use uuid::Uuid;

use crate::redacted_lines::{LineIndex, RedactedLine, UnspacedText};
use crate::redacted_values::{RedactedValue, RedactedValues};

/// Shorter texts occur by chance, and their digests could be guessed.
const MIN_CONTENT_BYTES: usize = 6;

/// How many objects that hold nothing but a result may stand around it.
const MAX_ENVELOPES: usize = 4;

/// Texts of at least this size are not repeated by chance.
pub(crate) const MIN_DISTINCT_BYTES: usize = 24;

/// Shorter words with a digit are numbers and the like.
const MIN_CODE_BYTES: usize = 6;

/// The digests of all redactions in a contexts directory, and their events.
#[derive(Clone, Debug, Default)]
pub struct RedactedDigests {
    events: HashMap<Digest, Vec<EventKey>>,
    lines: LineIndex<EventKey>,
    of_prompts: RedactedValues,
}

/// The redactions of one task, each with its event.
#[derive(Clone, Debug, Default)]
pub struct TaskRedactions {
    /// Digests of messages, of their contents, and of names.
    pub(crate) digests: Vec<(Digest, EventId)>,
    /// Lines of texts.
    pub(crate) lines: Vec<(RedactedLine, EventId)>,
    /// Texts of frames that are known in all tasks.
    pub(crate) of_prompts: Vec<(RedactedValue, EventId)>,
}

impl TaskRedactions {
    /// Says whether nothing was redacted.
    pub fn is_empty(&self) -> bool {
        self.digests.is_empty() && self.lines.is_empty() && self.of_prompts.is_empty()
    }
}

/// A task, and one of its events.
pub(crate) type EventKey = (Uuid, EventId);

impl RedactedDigests {
    pub(crate) fn add(&mut self, digest: Digest, of: EventKey) {
        self.events.entry(digest).or_default().push(of);
    }

    pub(crate) fn add_line(&mut self, line: RedactedLine, of: EventKey) {
        self.lines.add(line, of);
    }

    pub(crate) fn add_of_prompt(&mut self, value: RedactedValue) {
        self.of_prompts.add(value);
    }

    /// Says whether nothing was redacted.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.lines.is_empty() && self.of_prompts.is_empty()
    }

    pub(crate) fn of(&self, digest: &Digest) -> &[EventKey] {
        self.events.get(digest).map_or(&[], Vec::as_slice)
    }

    /// Calls `take` with the events that contain the digest of a text, of some of its lines, or of another form
    /// of it.
    pub(crate) fn each_of_text(&self, text: &str, take: &mut dyn FnMut(EventKey)) {
        for digest in known_digests(text) {
            self.of(&digest).iter().copied().for_each(&mut *take);
        }
        self.lines.find(text, &mut |_, of| take(*of));
    }

    /// Returns the positions in a text of a frame that were redacted in the frames of any task.
    pub(crate) fn find_of_prompts(&self, text: &str) -> Vec<Range<usize>> {
        self.of_prompts.find(text)
    }

    pub(crate) fn knows_prompts(&self) -> bool {
        !self.of_prompts.is_empty()
    }
}

/// Returns the digest by which a text of a redacted message is recognised; none if it is too short for that, or was redacted before.
///
/// White space does not count. JSON is known by its value, and the result of a tool without the object that some APIs put around it.
pub(crate) fn content_digest(text: &str) -> Option<Digest> {
    let text = text.trim();
    if text.len() < MIN_CONTENT_BYTES || text.starts_with("[redacted e") {
        return None;
    }
    if let Some(json) = structured(text) {
        let json = without_envelopes(json);
        return match json.text() {
            Some(inner) => content_digest(&inner),
            None if is_redacted(json) => None,
            None => Some(digest::value_digest(json)),
        };
    }
    let text = UnspacedText::new(text).text;
    (text.len() >= MIN_CONTENT_BYTES).then(|| keyed("infold redacted form", &text))
}

/// Returns the digests by which a text may be known: the one that is kept today, and the one of earlier redactions.
pub(crate) fn known_digests(text: &str) -> impl Iterator<Item = Digest> {
    let earlier = text.trim();
    let is_kept = earlier.len() >= MIN_CONTENT_BYTES && !earlier.starts_with("[redacted e");
    let earlier = is_kept.then(|| keyed("infold redacted content", earlier));
    content_digest(text).into_iter().chain(earlier)
}

/// Returns the digest by which a part of a message is compared with others, however short it is; none if it says nothing.
pub(crate) fn part_digest(text: &str) -> Option<Digest> {
    content_digest(text).or_else(|| {
        let text = UnspacedText::new(text).text;
        let is_said = !text.is_empty() && !text.contains("[redactede");
        is_said.then(|| keyed("infold redacted form", &text))
    })
}

/// Returns whether a text is too distinctive to be repeated by chance.
pub(crate) fn is_distinct(text: &str) -> bool {
    text.len() >= MIN_DISTINCT_BYTES || has_code(text)
}

/// Says whether a text holds a word with a digit, as passwords, numbers and keys are.
pub(crate) fn has_code(text: &str) -> bool {
    let is_code = |word: &str| {
        word.len() >= MIN_CODE_BYTES && word.contains(|char: char| char.is_ascii_digit())
    };
    text.split_whitespace().any(is_code)
}

/// Returns the object or list that a text is in JSON.
pub(crate) fn structured(text: &str) -> Option<Json<'_>> {
    if !text.starts_with(['{', '[']) {
        return None;
    }
    Json::parse(text.as_bytes()).ok()
}

/// Returns a result without the objects that some APIs put around it.
fn without_envelopes(mut json: Json<'_>) -> Json<'_> {
    for _ in 0..MAX_ENVELOPES {
        let mut members = json.members();
        let (Some((name, value)), None) = (members.next(), members.next()) else {
            break;
        };
        let is_envelope = matches!(&*name.name(), b"output" | b"result" | b"error");
        if !is_envelope
            || !matches!(
                value.kind(),
                JsonKind::String | JsonKind::Object | JsonKind::Array
            )
        {
            break;
        }
        json = value;
    }
    json
}

/// Returns whether arguments are the remains of redacted ones.
fn is_redacted(json: Json<'_>) -> bool {
    let left = json.get("redacted").and_then(Json::text);
    left.is_some_and(|left| left.starts_with("[redacted e"))
}

fn keyed(context: &str, text: &str) -> Digest {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    hasher.update(text.as_bytes());
    let mut digest = Digest::default();
    digest.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_is_the_same_in_every_form() {
        let forms: [&[&str]; 3] = [
            &[
                "the key  is\nhunter2",
                "the key is hunter2\r\n",
                r#"{"output":"the key is hunter2"}"#,
                r#"{"error": "the key is hunter2"}"#,
            ],
            &[
                r#"{"a":1,"key":"x"}"#,
                r#" {"key": "\u0078", "a": 1.0}"#,
                r#"{"output":{"a":1,"key":"x"}}"#,
                r#"{"result":"{\"a\":1,\"key\":\"x\"}"}"#,
            ],
            &[r#"{"output":12345678}"#],
        ];
        let digests = forms.map(|forms| {
            let digests: Vec<_> = forms.iter().map(|form| content_digest(form)).collect();
            assert!(digests[0].is_some() && digests.iter().all(|digest| *digest == digests[0]));
            digests[0]
        });
        assert!(digests[0] != digests[1] && digests[1] != digests[2]);
    }

    #[test]
    fn what_is_short_or_redacted_has_no_digest() {
        for text in [
            "",
            "hello",
            "h  e llo",
            "{}",
            "[redacted e12] or so",
            r#"{"redacted":"[redacted e1]"}"#,
            r#"{"output":"ok"}"#,
        ] {
            assert_eq!(content_digest(text), None, "{text}");
        }
    }

    #[test]
    fn everyday_words_are_not_distinct() {
        for text in ["ok", "yes, go on please", "option 2", "10 of 12"] {
            assert!(!is_distinct(text), "{text}");
        }
        for text in ["hunter2", "it is 4711-0815", "twenty-four letters or more"] {
            assert!(is_distinct(text), "{text}");
        }
    }
}
