//! Recognises the format of a transcript.

use super::record_reader::{LISTS, TranscriptLayout};
use super::{TranscriptFormat, format_names};
use crate::scan::{skip_space, string_end};
use crate::value_end::ValueEnd;
use crate::{Json, shorten};

/// The bytes of a transcript that are read to detect its format.
pub const PREFIX_BYTES: u64 = 256 << 10;

/// The number of records that are read.
const MAX_RECORDS: usize = 64;

/// The reason that the format of a transcript is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DetectError {
    /// The transcript is empty.
    #[error("nothing to read: the input is empty")]
    Empty,
    /// The transcript resembles no format.
    #[error("no known format: {saw} (known: {})", format_names())]
    Unknown {
        /// A description of the input.
        saw: String,
    },
}

/// Recognises a transcript by its beginning.
pub fn detect(prefix: &[u8]) -> Result<TranscriptFormat, DetectError> {
    detect_layout(prefix, None).map(|(format, _)| format)
}

/// Returns the format of a transcript, unless it is given, and its layout.
pub fn detect_layout(
    prefix: &[u8],
    given: Option<TranscriptFormat>,
) -> Result<(TranscriptFormat, TranscriptLayout), DetectError> {
    let text = prefix.strip_prefix(b"\xef\xbb\xbf").unwrap_or(prefix);
    let start = skip_space(text, 0);
    let text = &text[start..];
    match (text.first(), given) {
        (None, None) => Err(DetectError::Empty),
        (_, Some(TranscriptFormat::Aider)) => Ok((TranscriptFormat::Aider, TranscriptLayout::Text)),
        (Some(b'['), _) if holds_documents(&text[1..]) => detect_objects(&text[1..], given),
        (Some(b'['), _) => {
            let format = given.or_else(|| records_format(elements(text), true));
            let empty = text.get(skip_space(text, 1)) == Some(&b']');
            let format = format.or(empty.then_some(TranscriptFormat::OpenAi));
            let format =
                format.ok_or_else(|| unknown_records("an array", elements(text).next()))?;
            Ok((format, TranscriptLayout::Array))
        }
        (Some(b'{'), _) => detect_objects(text, given),
        (_, Some(format)) => Ok((format, TranscriptLayout::Lines)),
        _ if is_aider(text) => Ok((TranscriptFormat::Aider, TranscriptLayout::Text)),
        _ => {
            let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let saw = shorten(&String::from_utf8_lossy(line), 40);
            let saw = format!("it begins with `{saw}`, which is neither JSON nor aider's Markdown");
            Err(DetectError::Unknown { saw })
        }
    }
}

/// Returns whether the first element of an array is a whole conversation.
fn holds_documents(text: &[u8]) -> bool {
    let first = PartialObject::at(text, skip_space(text, 0)).0;
    LISTS.iter().any(|key| first.starts(key, b'['))
}

fn unknown_records(what: &str, first: Option<PartialObject<'_>>) -> DetectError {
    let names = first.map(|first| first.names()).unwrap_or_default();
    let saw = if names.is_empty() {
        format!("{what} of something that is no object")
    } else {
        format!("{what} of objects with {names}")
    };
    DetectError::Unknown { saw }
}

fn detect_objects(
    text: &[u8],
    given: Option<TranscriptFormat>,
) -> Result<(TranscriptFormat, TranscriptLayout), DetectError> {
    let (first, _) = PartialObject::at(text, skip_space(text, 0));
    let list = |key: &'static str| first.starts(key, b'[').then_some(key);
    let key = match given {
        None => LISTS.into_iter().find_map(list),
        Some(TranscriptFormat::OpenAi) => list("messages").or_else(|| list("traj")),
        Some(TranscriptFormat::Anthropic | TranscriptFormat::GeminiCli) => list("messages"),
        Some(TranscriptFormat::Gemini) => list("contents"),
        Some(TranscriptFormat::SweAgent) => Some("history"),
        Some(_) => None,
    };
    // A record of these never spans lines; a document may, and its list may come late.
    let is_document = key.is_some() || first.has("trajectory") && given.is_none();
    if !is_document {
        let lines = records_format(lines(text), false);
        let format = given
            .or(lines)
            .ok_or_else(|| unknown_records("lines", Some(first.clone())))?;
        return Ok((format, TranscriptLayout::Lines));
    }
    let inner = || {
        let list = first.value(key.unwrap_or_default()).unwrap_or_default();
        records_format(elements(list), false)
    };
    let named = || -> Option<TranscriptFormat> {
        match key {
            Some("contents") => Some(TranscriptFormat::Gemini),
            Some("messages") if first.has("sessionId") && first.has("startTime") => {
                Some(TranscriptFormat::GeminiCli)
            }
            Some("messages") if first.has("system") => Some(TranscriptFormat::Anthropic),
            Some("messages" | "traj") => inner().or(Some(TranscriptFormat::OpenAi)),
            _ => Some(TranscriptFormat::SweAgent),
        }
    };
    let format = given.or_else(named).unwrap_or(TranscriptFormat::OpenAi);
    let key = key.unwrap_or("history");
    Ok((format, TranscriptLayout::Objects(key)))
}

/// Returns the format of a record, if it can be of one only.
pub fn record_format(record: &[u8]) -> Option<TranscriptFormat> {
    let found = PartialObject::at(record, skip_space(record, 0))
        .0
        .format(false);
    found
        .filter(|(_, is_certain)| *is_certain)
        .map(|(format, _)| format)
}

/// Returns a member of the object that a transcript begins with, if it is a text.
pub fn read_member(prefix: &[u8], name: &str) -> Option<String> {
    let text = prefix.strip_prefix(b"\xef\xbb\xbf").unwrap_or(prefix);
    let text = PartialObject::at(text, skip_space(text, 0)).0.text(name);
    (!text.is_empty()).then_some(text)
}

/// Returns the format of the records at the start of a transcript; plain messages are OpenAI's.
fn records_format<'a>(
    records: impl Iterator<Item = PartialObject<'a>>,
    array: bool,
) -> Option<TranscriptFormat> {
    let mut plain = None;
    for record in records.take(MAX_RECORDS) {
        match record.format(array) {
            Some((format, true)) => return Some(format),
            Some((format, false)) => plain = plain.or(Some(format)),
            None => {}
        }
    }
    plain
}

fn is_aider(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n');
    lines.any(|line| line.starts_with(b"# aider chat started at") || line.starts_with(b"#### "))
}

/// Returns the elements of an array that may be cut off.
fn elements(text: &[u8]) -> impl Iterator<Item = PartialObject<'_>> {
    let mut at = 1;
    std::iter::from_fn(move || {
        at = skip_space(text, at);
        if text.get(at) == Some(&b',') {
            at = skip_space(text, at + 1);
        }
        match text.get(at) {
            None | Some(b']') => None,
            Some(_) => {
                let (members, end) = PartialObject::at(text, at);
                at = end;
                Some(members)
            }
        }
    })
}

/// Returns the lines of a text, of which the last may be cut off.
fn lines(text: &[u8]) -> impl Iterator<Item = PartialObject<'_>> {
    let lines = text.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.trim_ascii().is_empty());
    lines.map(|line| PartialObject::at(line, skip_space(line, 0)).0)
}

/// An object that may be cut off, and its last value with it.
#[derive(Clone, Default)]
struct PartialObject<'a> {
    members: Vec<(&'a [u8], &'a [u8])>,
    is_cut: bool,
}

impl<'a> PartialObject<'a> {
    /// Reads the value at `start`, and returns its end.
    fn at(text: &'a [u8], start: usize) -> (PartialObject<'a>, usize) {
        let whole = |at: usize| {
            ValueEnd::default()
                .feed(&text[at..])
                .map_or(text.len(), |end| at + end)
        };
        let over = ValueEnd::default().feed(&text[start..]);
        let end = over.map_or(text.len(), |end| start + end);
        let mut members = PartialObject {
            is_cut: over.is_none(),
            ..PartialObject::default()
        };
        if text.get(start) != Some(&b'{') {
            return (members, end.max(start + 1));
        }
        let mut at = skip_space(text, start + 1);
        while at < end && text[at] == b'"' {
            let name = at + 1..string_end(text, at);
            let colon = skip_space(text, name.end);
            if text.get(colon) != Some(&b':') {
                break;
            }
            let value = skip_space(text, colon + 1);
            if value >= end {
                break;
            }
            let over = whole(value).max(value + 1);
            members
                .members
                .push((&text[name.start..name.end - 1], &text[value..over]));
            at = skip_space(text, over);
            if text.get(at) != Some(&b',') {
                break;
            }
            at = skip_space(text, at + 1);
        }
        (members, end.max(start + 1))
    }

    fn value(&self, name: &str) -> Option<&'a [u8]> {
        let found = self.members.iter().find(|(key, _)| *key == name.as_bytes());
        found.map(|(_, value)| *value)
    }

    fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    fn starts(&self, name: &str, byte: u8) -> bool {
        self.value(name)
            .is_some_and(|value| value.first() == Some(&byte))
    }

    /// Returns a member's text, if it is a complete string.
    fn text(&self, name: &str) -> String {
        let json = self.value(name).and_then(|value| Json::parse(value).ok());
        json.and_then(|json| Some(json.text()?.into_owned()))
            .unwrap_or_default()
    }

    fn names(&self) -> String {
        let names = self
            .members
            .iter()
            .take(8)
            .map(|(name, _)| String::from_utf8_lossy(name));
        let names: Vec<String> = names
            .map(|name| format!("\"{}\"", shorten(&name, 24)))
            .collect();
        names.join(", ")
    }

    /// Returns the format of this record, and whether it can be of no other.
    fn format(&self, array: bool) -> Option<(TranscriptFormat, bool)> {
        let has_any = |names: &str| names.split(' ').any(|name| self.has(name));
        let is = |kind: &str, names: &str| names.split(' ').any(|name| name == kind);
        let kind = self.text("type");
        let role = self.text("role");
        if self.has("$set")
            || self.has("$rewindTo")
            || self.has("sessionId") && self.has("projectHash")
        {
            return Some((TranscriptFormat::GeminiCli, true));
        }
        if self.starts("payload", b'{') || self.has("record_type") {
            return Some((TranscriptFormat::Codex, true));
        }
        if has_any("parentUuid isSidechain leafUuid") || self.has("uuid") && self.has("sessionId") {
            return Some((TranscriptFormat::ClaudeCode, true));
        }
        let pi = kind == "session" && self.has("cwd") || kind == "message" && self.has("message");
        if pi {
            return Some((TranscriptFormat::Pi, true));
        }
        if self.starts("parts", b'[') {
            return Some((TranscriptFormat::Gemini, true));
        }
        if role.is_empty() {
            let cli = is(&kind, "user gemini info error warning");
            return match () {
                () if is(
                    &kind,
                    "function_call function_call_output reasoning local_shell_call",
                ) =>
                {
                    Some((TranscriptFormat::Codex, true))
                }
                () if cli && self.has("id") && self.has("content") => {
                    Some((TranscriptFormat::GeminiCli, true))
                }
                () if cli && self.has("message") => Some((TranscriptFormat::ClaudeCode, true)),
                // The type of a long message may be at its end only.
                () if self.is_cut && self.has("content") => Some((TranscriptFormat::OpenAi, false)),
                () => None,
            };
        }
        let blocks: Vec<String> = match self.value("content") {
            Some(content) if content.first() == Some(&b'[') => {
                elements(content).map(|block| block.text("type")).collect()
            }
            _ => Vec::new(),
        };
        let any = |names: &str| blocks.iter().any(|kind| is(kind, names));
        if kind == "message" && any("input_text output_text") {
            return Some((TranscriptFormat::Codex, true));
        }
        if has_any("condenseParent truncationParent condenseId truncationId")
            || array && self.value("ts").is_some_and(|ts| ts[0].is_ascii_digit())
        {
            return Some((TranscriptFormat::Roo, true));
        }
        if self.has("tool_calls") || is(&role, "tool function developer") || any("image_url") {
            return Some((TranscriptFormat::OpenAi, true));
        }
        if any("tool_use tool_result thinking image document") {
            return Some((TranscriptFormat::Anthropic, true));
        }
        is(&role, "system user assistant").then_some((TranscriptFormat::OpenAi, false))
    }
}
