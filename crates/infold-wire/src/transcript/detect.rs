use super::records::{LISTS, Layout};
use super::walk::Walk;
use super::{Format, names};
use crate::scan::{space, string_end};
use crate::{Json, shorten};

/// How much of a transcript is looked at to recognise it.
pub const PREFIX: u64 = 256 << 10;

/// How many records are looked at.
const LOOK: usize = 64;

/// Why nobody knows what a transcript is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DetectError {
    /// There is nothing in it.
    #[error("nothing to read: the input is empty")]
    Empty,
    /// It is like nothing we know.
    #[error("no known format: {saw} (known: {})", names())]
    Unknown {
        /// What was seen.
        saw: String,
    },
}

/// Recognises a transcript by how it begins.
pub fn detect(prefix: &[u8]) -> Result<Format, DetectError> {
    survey(prefix, None).map(|(format, _)| format)
}

/// Says what a transcript is, and how it is laid out.
pub fn survey(prefix: &[u8], given: Option<Format>) -> Result<(Format, Layout), DetectError> {
    let text = prefix.strip_prefix(b"\xef\xbb\xbf").unwrap_or(prefix);
    let start = space(text, 0);
    let text = &text[start..];
    match (text.first(), given) {
        (None, None) => Err(DetectError::Empty),
        (_, Some(Format::Aider)) => Ok((Format::Aider, Layout::Text)),
        (Some(b'['), _) if holds_documents(&text[1..]) => objects(&text[1..], given),
        (Some(b'['), _) => {
            let format = given.or_else(|| of_records(elements(text), true));
            let empty = text.get(space(text, 1)) == Some(&b']');
            let format = format.or(empty.then_some(Format::OpenAi));
            let format = format.ok_or_else(|| unknown("an array", elements(text).next()))?;
            Ok((format, Layout::Array))
        }
        (Some(b'{'), _) => objects(text, given),
        (_, Some(format)) => Ok((format, Layout::Lines)),
        _ => match is_aider(text) {
            true => Ok((Format::Aider, Layout::Text)),
            false => {
                let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
                let saw = shorten(&String::from_utf8_lossy(line), 40);
                let saw =
                    format!("it begins with `{saw}`, which is neither JSON nor aider's Markdown");
                Err(DetectError::Unknown { saw })
            }
        },
    }
}

/// Says whether the first element of an array is a whole conversation.
fn holds_documents(text: &[u8]) -> bool {
    let first = Members::at(text, space(text, 0)).0;
    LISTS.iter().any(|key| first.starts(key, b'['))
}

fn unknown(what: &str, first: Option<Members<'_>>) -> DetectError {
    let names = first.map(|first| first.names()).unwrap_or_default();
    let saw = match names.is_empty() {
        true => format!("{what} of something that is no object"),
        false => format!("{what} of objects with {names}"),
    };
    DetectError::Unknown { saw }
}

fn objects(text: &[u8], given: Option<Format>) -> Result<(Format, Layout), DetectError> {
    let (first, _) = Members::at(text, space(text, 0));
    let list = |key: &'static str| first.starts(key, b'[').then_some(key);
    let key = match given {
        None => LISTS.into_iter().find_map(list),
        Some(Format::OpenAi) => list("messages").or_else(|| list("traj")),
        Some(Format::Anthropic | Format::GeminiCli) => list("messages"),
        Some(Format::Gemini) => list("contents"),
        Some(Format::SweAgent) => Some("history"),
        Some(_) => None,
    };
    // A record of these never spans lines; a document may, and may keep its list for later.
    let document = key.is_some() || first.has("trajectory") && given.is_none();
    if !document {
        let lines = of_records(lines(text), false);
        let format = given
            .or(lines)
            .ok_or_else(|| unknown("lines", Some(first.clone())))?;
        return Ok((format, Layout::Lines));
    }
    let inner = || {
        let list = first.value(key.unwrap_or_default()).unwrap_or_default();
        of_records(elements(list), false)
    };
    let named = || -> Option<Format> {
        match key {
            Some("contents") => Some(Format::Gemini),
            Some("messages") if first.has("sessionId") && first.has("startTime") => {
                Some(Format::GeminiCli)
            }
            Some("messages") if first.has("system") => Some(Format::Anthropic),
            Some("messages" | "traj") => inner().or(Some(Format::OpenAi)),
            _ => Some(Format::SweAgent),
        }
    };
    let format = given.or_else(named).unwrap_or(Format::OpenAi);
    let key = key.unwrap_or("history");
    Ok((format, Layout::Objects(key)))
}

/// Says what a record is of, if it can be of one format only.
pub fn kind_of(record: &[u8]) -> Option<Format> {
    let found = Members::at(record, space(record, 0)).0.format(false);
    found.filter(|(_, sure)| *sure).map(|(format, _)| format)
}

/// A member of the object that a transcript begins with, if it is a text.
pub fn member(prefix: &[u8], name: &str) -> Option<String> {
    let text = prefix.strip_prefix(b"\xef\xbb\xbf").unwrap_or(prefix);
    let text = Members::at(text, space(text, 0)).0.text(name);
    (!text.is_empty()).then_some(text)
}

/// What the records at the start of a transcript are; plain messages are OpenAI's.
fn of_records<'a>(records: impl Iterator<Item = Members<'a>>, array: bool) -> Option<Format> {
    let mut plain = None;
    for record in records.take(LOOK) {
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

/// The elements of an array that may be cut off.
fn elements(text: &[u8]) -> impl Iterator<Item = Members<'_>> {
    let mut at = 1;
    std::iter::from_fn(move || {
        at = space(text, at);
        if text.get(at) == Some(&b',') {
            at = space(text, at + 1);
        }
        match text.get(at) {
            None | Some(b']') => None,
            Some(_) => {
                let (members, end) = Members::at(text, at);
                at = end;
                Some(members)
            }
        }
    })
}

/// The lines of a text, of which the last may be cut off.
fn lines(text: &[u8]) -> impl Iterator<Item = Members<'_>> {
    let lines = text.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.trim_ascii().is_empty());
    lines.map(|line| Members::at(line, space(line, 0)).0)
}

/// The members of an object that may be cut off, which leaves its last value cut off, too.
#[derive(Clone, Default)]
struct Members<'a> {
    found: Vec<(&'a [u8], &'a [u8])>,
    /// Its end was not seen.
    cut: bool,
}

impl<'a> Members<'a> {
    /// Reads the value at `start`, and says where it ends.
    fn at(text: &'a [u8], start: usize) -> (Members<'a>, usize) {
        let whole = |at: usize| {
            Walk::default()
                .feed(&text[at..])
                .map_or(text.len(), |end| at + end)
        };
        let over = Walk::default().feed(&text[start..]);
        let end = over.map_or(text.len(), |end| start + end);
        let mut members = Members {
            cut: over.is_none(),
            ..Members::default()
        };
        if text.get(start) != Some(&b'{') {
            return (members, end.max(start + 1));
        }
        let mut at = space(text, start + 1);
        while at < end && text[at] == b'"' {
            let name = at + 1..string_end(text, at);
            let colon = space(text, name.end);
            if text.get(colon) != Some(&b':') {
                break;
            }
            let value = space(text, colon + 1);
            if value >= end {
                break;
            }
            let over = whole(value).max(value + 1);
            members
                .found
                .push((&text[name.start..name.end - 1], &text[value..over]));
            at = space(text, over);
            if text.get(at) != Some(&b',') {
                break;
            }
            at = space(text, at + 1);
        }
        (members, end.max(start + 1))
    }

    fn value(&self, name: &str) -> Option<&'a [u8]> {
        let found = self.found.iter().find(|(key, _)| *key == name.as_bytes());
        found.map(|(_, value)| *value)
    }

    fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    fn starts(&self, name: &str, byte: u8) -> bool {
        self.value(name)
            .is_some_and(|value| value.first() == Some(&byte))
    }

    /// A member's text, if it is one and whole.
    fn text(&self, name: &str) -> String {
        let json = self.value(name).and_then(|value| Json::parse(value).ok());
        json.and_then(|json| Some(json.text()?.into_owned()))
            .unwrap_or_default()
    }

    fn names(&self) -> String {
        let names = self
            .found
            .iter()
            .take(8)
            .map(|(name, _)| String::from_utf8_lossy(name));
        let names: Vec<String> = names
            .map(|name| format!("\"{}\"", shorten(&name, 24)))
            .collect();
        names.join(", ")
    }

    /// What this record is of, and whether it could be of nothing else.
    fn format(&self, array: bool) -> Option<(Format, bool)> {
        let kind = self.text("type");
        let role = self.text("role");
        if self.has("$set")
            || self.has("$rewindTo")
            || self.has("sessionId") && self.has("projectHash")
        {
            return Some((Format::GeminiCli, true));
        }
        if self.starts("payload", b'{') || self.has("record_type") {
            return Some((Format::Codex, true));
        }
        let claude = ["parentUuid", "isSidechain", "leafUuid"]
            .iter()
            .any(|key| self.has(key));
        if claude || self.has("uuid") && self.has("sessionId") {
            return Some((Format::ClaudeCode, true));
        }
        let pi = kind == "session" && self.has("cwd") || kind == "message" && self.has("message");
        if pi {
            return Some((Format::Pi, true));
        }
        if self.starts("parts", b'[') {
            return Some((Format::Gemini, true));
        }
        if role.is_empty() {
            let items = [
                "function_call",
                "function_call_output",
                "reasoning",
                "local_shell_call",
            ];
            let cli = ["user", "gemini", "info", "error", "warning"].contains(&kind.as_str());
            return match () {
                () if items.contains(&kind.as_str()) => Some((Format::Codex, true)),
                () if cli && self.has("id") && self.has("content") => {
                    Some((Format::GeminiCli, true))
                }
                () if cli && self.has("message") => Some((Format::ClaudeCode, true)),
                // A long message may say only at its end whose it is.
                () if self.cut && self.has("content") => Some((Format::OpenAi, false)),
                () => None,
            };
        }
        let blocks: Vec<String> = match self.value("content") {
            Some(content) if content.first() == Some(&b'[') => {
                elements(content).map(|block| block.text("type")).collect()
            }
            _ => Vec::new(),
        };
        let any = |known: &[&str]| blocks.iter().any(|kind| known.contains(&kind.as_str()));
        if kind == "message" && any(&["input_text", "output_text"]) {
            return Some((Format::Codex, true));
        }
        let tags = [
            "condenseParent",
            "truncationParent",
            "condenseId",
            "truncationId",
        ];
        if tags.iter().any(|tag| self.has(tag))
            || array && self.value("ts").is_some_and(|ts| ts[0].is_ascii_digit())
        {
            return Some((Format::Roo, true));
        }
        if self.has("tool_calls")
            || matches!(role.as_str(), "tool" | "function" | "developer")
            || any(&["image_url"])
        {
            return Some((Format::OpenAi, true));
        }
        if any(&["tool_use", "tool_result", "thinking", "image", "document"]) {
            return Some((Format::Anthropic, true));
        }
        matches!(role.as_str(), "system" | "user" | "assistant").then_some((Format::OpenAi, false))
    }
}
