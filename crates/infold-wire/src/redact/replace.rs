//! Replaces the matches of a search in the texts of a JSON value. All other bytes stay.

use std::ops::Range;

use super::{Find, Redacted, redact_message};
use crate::{Form, Item, Json, JsonError, Kind, Message, MessageError, quote};

/// Replaces what is found in the texts of a message.
///
/// Texts are searched as they read, whatever their escapes; JSON inside a text (arguments of calls, outputs of tools) is searched inside too.
/// Reasoning that holds a match goes whole, because it is signed; so do signatures beside a match.
pub fn redact_matches(
    message: &[u8],
    marker: &str,
    find: &mut Find<'_>,
) -> Result<Redacted, MessageError> {
    let read = Message::read(message)?;
    let mut walk = Walk::new(marker, find);
    let bytes = walk.value(read.json(), Place::Structure);
    let whole = matches!(read.form(), Form::Item(Item::Reasoning)) && walk.matches > 0;
    let bytes = match whole {
        true => Some(redact_message(message, marker)?),
        false => bytes,
    };
    Ok(walk.redacted(bytes))
}

/// Shows all that a message says, text by text; not what it is paired by.
pub fn texts(message: &[u8], take: &mut dyn FnMut(&str)) -> Result<(), MessageError> {
    let read = Message::read(message)?;
    let mut find = |text: &str| {
        take(text);
        Vec::new()
    };
    let mut walk = Walk {
        counts_left: false,
        joins_members: false,
        ..Walk::new("", &mut find)
    };
    walk.value(read.json(), Place::Structure);
    Ok(())
}

/// Replaces what is found in the texts of a JSON value that is made up like messages are.
pub fn redact_json(json: &[u8], marker: &str, find: &mut Find<'_>) -> Result<Redacted, JsonError> {
    let mut walk = Walk {
        joins_members: false,
        ..Walk::new(marker, find)
    };
    let bytes = walk.value(Json::parse(json)?, Place::Structure);
    Ok(walk.redacted(bytes))
}

/// Replaces what is found in any text, number or name of a member of a JSON value.
pub fn redact_data(json: &[u8], marker: &str, find: &mut Find<'_>) -> Result<Redacted, JsonError> {
    let mut walk = Walk::new(marker, find);
    let bytes = walk.value(Json::parse(json)?, Place::Data);
    Ok(walk.redacted(bytes))
}

/// Replaces what is found in a record of a transcript, or in a document that holds records.
///
/// What agents tie records together by stays: ids, times, and the names, numbers and booleans of members that they document.
/// A string that is `hole`, quotes included, stands for a message that is kept elsewhere, and stays too.
pub fn redact_record(
    json: &[u8],
    hole: &[u8],
    marker: &str,
    find: &mut Find<'_>,
) -> Result<Redacted, JsonError> {
    let mut walk = Walk {
        record: Some(Record { hole }),
        ..Walk::new(marker, find)
    };
    let bytes = walk.value(Json::parse(json)?, Place::Structure);
    Ok(walk.redacted(bytes))
}

/// Replaces what is found in a text; in JSON that the text may be, too.
pub fn redact_text(text: &str, marker: &str, find: &mut Find<'_>) -> Option<String> {
    let mut walk = Walk::new(marker, find);
    let quoted = quote(text);
    let replaced = walk.string(Json::parse(quoted.as_bytes()).ok()?)?;
    let text = Json::parse(&replaced).ok()?.text()?.into_owned();
    Some(text)
}

/// How often the escapes of a text are resolved: JSON stands in texts that stand in JSON.
const MAX_ESCAPE_LEVELS: usize = 4;

/// Replaces what is found in a piece of JSON that need not be whole: in the text as it stands, and as it reads once the escapes
/// in it are resolved, and those in that.
pub fn redact_fragment(text: &str, marker: &str, find: &mut Find<'_>) -> Option<String> {
    let (replaced, _) = replace_at_levels(text, 0, marker, find)?;
    Some(replaced)
}

/// Replaces what is found after the escapes of `text` are resolved `first_level` times, and after each further time.
/// Returns the new text and the number of matches.
fn replace_at_levels(
    text: &str,
    first_level: usize,
    marker: &str,
    find: &mut Find<'_>,
) -> Option<(String, usize)> {
    let mut replaced: Option<String> = None;
    let mut matches = 0;
    for level in first_level..first_level + MAX_ESCAPE_LEVELS {
        let now = replaced.as_deref().unwrap_or(text);
        let resolved = resolve_escapes(now, level);
        let found = find(&resolved.text);
        matches += found.len();
        let is_last = !resolved.text.contains('\\');
        if !found.is_empty() {
            replaced = Some(resolved.replace(now, &found, marker));
        }
        if is_last {
            break;
        }
    }
    Some((replaced?, matches))
}

/// A text whose escapes are resolved.
struct Resolved {
    text: String,
    /// Where each byte of it, and its end, stand in the text that it was made of.
    places: Vec<usize>,
}

/// Resolves the escapes of a text, those of the result, and so on, `levels` times.
fn resolve_escapes(text: &str, levels: usize) -> Resolved {
    let mut resolved = Resolved {
        text: text.to_owned(),
        places: (0..=text.len()).collect(),
    };
    for _ in 0..levels {
        let mut next = Resolved {
            text: String::with_capacity(resolved.text.len()),
            places: Vec::with_capacity(resolved.places.len()),
        };
        let mut at = 0;
        while at < resolved.text.len() {
            let (length, char) = unescape(&resolved.text[at..]);
            let place = resolved.places[at];
            next.places
                .extend(std::iter::repeat_n(place, char.len_utf8()));
            next.text.push(char);
            at += length;
        }
        next.places.push(text.len());
        resolved = next;
    }
    resolved
}

impl Resolved {
    /// Puts the marker where ranges of this text stand in `original`, the text that it was made of.
    fn replace(&self, original: &str, ranges: &[Range<usize>], marker: &str) -> String {
        let mut out = String::with_capacity(original.len());
        let mut copied = 0;
        for range in ranges {
            out.push_str(&original[copied..self.places[range.start]]);
            out.push_str(marker);
            copied = self.places[range.end];
        }
        out.push_str(&original[copied..]);
        out
    }
}

/// The next character, escaped or not, and how many bytes it takes.
fn unescape(rest: &str) -> (usize, char) {
    let plain = rest.chars().next().unwrap_or_default();
    if plain != '\\' {
        return (plain.len_utf8(), plain);
    }
    match rest.as_bytes().get(1) {
        Some(b'u') => match escaped_unit(rest) {
            Some(escaped) => escaped,
            None => (1, plain),
        },
        Some(b'n') => (2, '\n'),
        Some(b't') => (2, '\t'),
        Some(b'r') => (2, '\r'),
        Some(b'b') => (2, '\u{8}'),
        Some(b'f') => (2, '\u{c}'),
        Some(byte @ (b'"' | b'\\' | b'/')) => (2, char::from(*byte)),
        _ => (1, plain),
    }
}

/// The character that `\uXXXX`, or a pair of them, stands for.
fn escaped_unit(rest: &str) -> Option<(usize, char)> {
    let unit = |at: usize| {
        let digits = rest.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let pair = std::iter::once(unit(0)?).chain(unit(6));
    Some(match char::decode_utf16(pair).next() {
        Some(Ok(char)) => (6 * char.len_utf16(), char),
        _ => (6, char::REPLACEMENT_CHARACTER),
    })
}

/// Members whose texts are what a provider signed or encrypted.
const SIGNATURES: [&[u8]; 4] = [
    b"signature",
    b"thoughtSignature",
    b"thought_signature",
    b"encrypted_content",
];

/// Members that hold whatever a tool takes or gives.
const DATA: [&[u8]; 8] = [
    b"input",
    b"args",
    b"result",
    b"arguments",
    b"response",
    b"output",
    b"action",
    b"operation",
];

/// Members of messages, blocks, parts and items that providers document. Whoever adds others puts content into them, so their names
/// and numbers are searched like texts.
const DOCUMENTED: &str = "\
    action annotations approval_request_id approve args arguments audio behavior cache_control call_id caller \
    citations cited_text code codeExecutionResult code_execution_result command container_id content context \
    created_at custom data detail displayName document_index document_title enabled encrypted_content encrypted_index \
    end_block_index end_char_index end_index end_page_number env environment error error_code executableCode \
    executable_code expires_at file fileData fileUri file_data file_id file_uri filename format fps function \
    functionCall functionResponse function_call function_response id image_url images index inlineData inline_data \
    input input_audio isError is_error language logprobs media_type mimeType mime_type name operation outcome output \
    parts phase queries reasoning reasoning_content reasoning_details refusal response result results role \
    server_label server_name signature source start_index status summary text thinking thought thoughtSignature \
    thought_signature title tool_calls ttl type url videoMetadata";

fn is_documented(name: &[u8]) -> bool {
    is_listed(DOCUMENTED, name)
}

fn is_listed(names: &str, name: &[u8]) -> bool {
    let mut names = names.split_ascii_whitespace();
    names.any(|listed| listed.as_bytes() == name)
}

/// Members of records, and of documents that hold records, beside those of messages: all that a transcript is read by, and what
/// agents count and switch in them.
const OF_RECORDS: &str = "\
    $rewindTo $set base_instructions branch cache_creation_input_tokens cache_read_input_tokens cli_version \
    compactMetadata condenseId condenseParent contents cwd description durationMs firstKeptEntryId firstKeptEntryIndex \
    git gitBranch history info input_tokens instructions isApiErrorMessage isCompactSummary isMeta isSidechain \
    isSnapshotUpdate isSummary isTruncationMarker isVisibleInTranscriptOnly kind lastUpdated leafUuid level \
    logicalParentUuid message messages model originator output_tokens parentId parentToolUseID parentUuid payload \
    projectHash record_type requestId say sessionId sourceToolAssistantUUID sourceToolUseID startTime stop_reason subject \
    subtype system systemInstruction system_instruction thinkingSignature thoughts timestamp toolCallId toolCalls toolName \
    toolUseID toolUseResult tool_call_id tool_call_ids tool_use_id traj trajectory truncationId truncationParent ts usage \
    userType uuid version";

/// How a record of a transcript differs from a message.
#[derive(Clone, Copy)]
struct Record<'a> {
    /// The string that stands for a message that is kept elsewhere.
    hole: &'a [u8],
}

/// Where a value stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In a member that providers document: its name and its numbers stay.
    Structure,
    /// In a member that they do not: all of it is content but what messages may be paired by.
    Unknown,
    /// In something that a tool takes or gives: all of it is content.
    Data,
}

struct Walk<'a, 'f> {
    marker: &'a str,
    find: &'a mut Find<'f>,
    /// Set if this is a record of a transcript.
    record: Option<Record<'a>>,
    matches: usize,
    left: usize,
    /// What messages are paired by is searched too, though not replaced.
    counts_left: bool,
    /// Names of members that are content are searched together with their values too.
    joins_members: bool,
}

impl<'a, 'f> Walk<'a, 'f> {
    fn new(marker: &'a str, find: &'a mut Find<'f>) -> Walk<'a, 'f> {
        Walk {
            marker,
            find,
            record: None,
            matches: 0,
            left: 0,
            counts_left: true,
            joins_members: true,
        }
    }

    fn redacted(self, bytes: Option<Vec<u8>>) -> Redacted {
        Redacted {
            bytes,
            matches: self.matches,
            left: self.left,
        }
    }

    /// Says whether a member is documented, so that its name and its numbers stay.
    fn knows(&self, name: &[u8]) -> bool {
        is_documented(name) || self.record.is_some() && is_listed(OF_RECORDS, name)
    }

    /// Where the value of a member stands whose object stands at `place`.
    fn inside(&self, place: Place, name: &[u8]) -> Place {
        let is_data = DATA.contains(&name) || self.record.is_some() && name == b"toolUseResult";
        if place == Place::Data || is_data {
            Place::Data
        } else if place == Place::Structure && self.knows(name) {
            Place::Structure
        } else {
            Place::Unknown
        }
    }

    /// Says whether a member says what its object is or belongs to.
    fn is_structure(&self, name: &[u8], value: Json<'_>) -> bool {
        match value.kind() {
            Kind::String if self.record.is_some() => {
                is_structure(name) || is_structure_of_record(name, value)
            }
            Kind::String => is_structure(name),
            Kind::Array if self.record.is_some() => {
                let mut elements = value.elements();
                name.ends_with(b"_ids") && elements.all(|one| one.kind() == Kind::String)
            }
            _ => false,
        }
    }

    /// Counts the matches in a member that stays.
    fn leave(&mut self, value: Json<'_>) {
        if !self.counts_left {
            return;
        }
        match value.kind() {
            Kind::Array => value.elements().for_each(|one| self.leave(one)),
            _ => self.left += (self.find)(&value.text().unwrap_or_default()).len(),
        }
    }

    /// The new bytes of a value; none if they stay.
    fn value(&mut self, json: Json<'_>, place: Place) -> Option<Vec<u8>> {
        match json.kind() {
            Kind::String => self.string(json),
            Kind::Number | Kind::Bool => self.scalar(json, place),
            Kind::Array => {
                let mut edits = Edits::new(json);
                for element in json.elements() {
                    edits.put(element.range(), self.value(element, place));
                }
                edits.done()
            }
            Kind::Object => self.object(json, place),
            Kind::Null => None,
        }
    }

    fn object(&mut self, json: Json<'_>, place: Place) -> Option<Vec<u8>> {
        let mut edits = Edits::new(json);
        let start = json.range().start;
        for (key, value) in json.members() {
            let name = key.name();
            if place != Place::Data && self.is_structure(&name, value) {
                self.leave(value);
                continue;
            }
            let inside = self.inside(place, &name);
            if place != Place::Structure || !self.knows(&name) {
                edits.put(key.range(), self.string(key));
            }
            let new = self.value(value, inside);
            let between = &json.bytes()[key.range().end - start..value.range().start - start];
            let new = match inside != Place::Structure && self.spans(key, between, value) {
                true => Some(quote(self.marker).into_bytes()),
                false => new,
            };
            edits.put(value.range(), new);
        }
        let changed = edits.done()?;
        if place == Place::Data {
            return Some(changed);
        }
        match reasoning(json) {
            Some(Reasoning::Block) => Some(text_block(self.marker)),
            Some(Reasoning::Part) => Some(text_part(self.marker)),
            Some(Reasoning::Detail) => Some(detail(self.marker)),
            None => Some(unsigned(changed)),
        }
    }

    /// Says whether something is found that begins in the name of a member and ends in its value, as `"password": "x"` may be.
    fn spans(&mut self, key: Json<'_>, between: &[u8], value: Json<'_>) -> bool {
        let is_hole = self
            .record
            .is_some_and(|record| value.bytes() == record.hole);
        let (quotes, said) = match value.kind() {
            Kind::String => ("\"", value.text().unwrap_or_default()),
            Kind::Number | Kind::Bool => ("", String::from_utf8_lossy(value.bytes())),
            Kind::Object | Kind::Array | Kind::Null => return false,
        };
        if is_hole || !self.joins_members {
            return false;
        }
        let name = key.text().unwrap_or_default();
        let between = String::from_utf8_lossy(between);
        let text = format!("\"{name}\"{between}{quotes}{said}{quotes}");
        let value_start = text.len() - quotes.len() - said.len();
        let found = (self.find)(&text);
        let spans = |range: &&Range<usize>| range.start <= name.len() && range.end > value_start;
        let spanning = found.iter().filter(spans).count();
        self.matches += spanning;
        spanning > 0
    }

    /// A number or a boolean. In a documented member it counts or places something, and stays.
    fn scalar(&mut self, json: Json<'_>, place: Place) -> Option<Vec<u8>> {
        if place == Place::Structure && !self.counts_left {
            return None;
        }
        let text = std::str::from_utf8(json.bytes()).ok()?;
        let found = (self.find)(text);
        if place == Place::Structure {
            self.left += found.len();
            return None;
        }
        if found.is_empty() {
            return None;
        }
        self.matches += found.len();
        Some(quote(self.marker).into_bytes())
    }

    fn string(&mut self, json: Json<'_>) -> Option<Vec<u8>> {
        if self
            .record
            .is_some_and(|record| json.bytes() == record.hole)
        {
            return None;
        }
        let text = json.text()?;
        if text.starts_with(['{', '['])
            && let Ok(inner) = Json::parse(text.as_bytes())
            && let Some(inner) = self.value(inner, Place::Data)
        {
            let mut whole = text.clone().into_owned().into_bytes();
            let start = text.len() - text.trim_start().len();
            let end = text.trim_end().len();
            whole.splice(start..end, inner);
            // What the search finds across the values inside is found in the text as it now reads.
            let whole = quote(&String::from_utf8_lossy(&whole));
            let again = Json::parse(whole.as_bytes()).ok()?;
            return Some(self.plain(again).unwrap_or_else(|| whole.into_bytes()));
        }
        self.plain(json)
    }

    /// A text that is searched as it reads, and as escaped JSON in it reads.
    fn plain(&mut self, json: Json<'_>) -> Option<Vec<u8>> {
        let raw = std::str::from_utf8(json.bytes()).ok()?;
        let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
        let marker = quote(self.marker);
        let marker = &marker[1..marker.len() - 1];
        let (replaced, matches) = replace_at_levels(inner, 1, marker, self.find)?;
        self.matches += matches;
        Some(format!("\"{replaced}\"").into_bytes())
    }
}

/// Says whether a member says what a message is, not what it says.
fn is_structure(name: &[u8]) -> bool {
    matches!(name, b"role" | b"type" | b"name" | b"tool_name" | b"status")
        || name == b"id"
        || name.ends_with(b"_id")
}

/// The same of a record of a transcript: its ids, and when it was written.
fn is_structure_of_record(name: &[u8], value: Json<'_>) -> bool {
    let is_id = name == b"uuid"
        || [b"Id".as_slice(), b"ID", b"Uuid", b"UUID"]
            .iter()
            .any(|end| name.ends_with(end));
    let is_time = matches!(name, b"timestamp" | b"startTime" | b"lastUpdated")
        && value.text().is_some_and(|text| is_timestamp(&text));
    is_id || is_time || matches!(name, b"subtype" | b"record_type" | b"toolName")
}

/// Says whether a text looks like a time in ISO 8601, and so says nothing else.
fn is_timestamp(text: &str) -> bool {
    let is_of_time = |byte: u8| byte.is_ascii_digit() || b"-:.+ TZ".contains(&byte);
    text.starts_with(|char: char| char.is_ascii_digit())
        && (10..=40).contains(&text.len())
        && text.contains('-')
        && text.bytes().all(is_of_time)
}

enum Reasoning {
    /// A block of a content.
    Block,
    /// A part of a Gemini content.
    Part,
    /// An entry of `reasoning_details`.
    Detail,
}

/// What kind of reasoning an object is, if it is one that its provider signed.
fn reasoning(json: Json<'_>) -> Option<Reasoning> {
    let [kind, thought, text] = json.pick(["type", "thought", "summary"]);
    let kind = kind.map(Json::name).unwrap_or_default();
    match &*kind {
        b"thinking" | b"redacted_thinking" => Some(Reasoning::Block),
        // An item is handled whole; a block has no summary.
        b"reasoning" if text.is_none() => Some(Reasoning::Block),
        kind if kind.starts_with(b"reasoning.") => Some(Reasoning::Detail),
        _ if thought.is_some_and(Json::is_true) => Some(Reasoning::Part),
        _ => None,
    }
}

pub(super) fn text_block(marker: &str) -> Vec<u8> {
    format!(r#"{{"type":"text","text":{}}}"#, quote(marker)).into_bytes()
}

pub(super) fn text_part(marker: &str) -> Vec<u8> {
    format!(r#"{{"text":{}}}"#, quote(marker)).into_bytes()
}

fn detail(marker: &str) -> Vec<u8> {
    format!(r#"{{"type":"reasoning.text","text":{}}}"#, quote(marker)).into_bytes()
}

/// An object without signatures, which no longer fit what is left.
fn unsigned(object: Vec<u8>) -> Vec<u8> {
    let Ok(json) = Json::parse(&object) else {
        return object;
    };
    let is_signature = |key: &Json<'_>| SIGNATURES.contains(&&*key.name());
    if !json.members().any(|(key, _)| is_signature(&key)) {
        return object;
    }
    let kept = json.members().filter(|(key, _)| !is_signature(key));
    let kept = kept.map(|(key, value)| [key.bytes(), b":", value.bytes()].concat());
    let kept: Vec<Vec<u8>> = kept.collect();
    [b"{".as_slice(), &kept.join(&b","[..]), b"}"].concat()
}

/// New bytes for parts of a value.
struct Edits<'a> {
    json: Json<'a>,
    out: Vec<u8>,
    /// What was copied so far, counted as the value's range is.
    copied: usize,
    is_changed: bool,
}

impl<'a> Edits<'a> {
    fn new(json: Json<'a>) -> Edits<'a> {
        Edits {
            json,
            out: Vec::new(),
            copied: json.range().start,
            is_changed: false,
        }
    }

    fn put(&mut self, range: Range<usize>, bytes: Option<Vec<u8>>) {
        let Some(bytes) = bytes else {
            return;
        };
        self.copy_to(range.start);
        self.out.extend(bytes);
        self.copied = range.end;
        self.is_changed = true;
    }

    fn copy_to(&mut self, end: usize) {
        let start = self.json.range().start;
        let bytes = &self.json.bytes()[self.copied - start..end - start];
        self.out.extend_from_slice(bytes);
    }

    fn done(mut self) -> Option<Vec<u8>> {
        if !self.is_changed {
            return None;
        }
        self.copy_to(self.json.range().end);
        Some(self.out)
    }
}
