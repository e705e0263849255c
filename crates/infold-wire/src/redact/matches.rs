//! Replaces the matches of a search in the texts of a JSON value. All other bytes stay.

use std::ops::Range;

use infold_log::Role;

use super::escapes::{Unescaped, replace_at_levels};
use super::media::{blank_image, is_media_member, redacted_media, with_markers, without_texts};
use super::message::redacted_arguments;
use super::signatures::{is_thought, redacted_reasoning, without_signatures};
use super::structure::{
    DOCUMENTED, DOCUMENTED_IN_RECORDS, TOOL_DATA, contains, is_record_structure, is_structure,
};
use super::{FindMatches, RedactedMatches, redact_message};
use crate::edits::{splice, splice_json};
use crate::{Form, Item, Json, JsonError, JsonKind, Message, MessageError, quote};

/// Replaces the matches in the texts of a message.
///
/// Texts are searched with their escapes resolved, and so is JSON inside a text (arguments of calls, outputs of tools).
/// Reasoning with a match is removed completely, because it is signed; so are signatures beside a match.
pub fn redact_matches(
    message: &[u8],
    marker: &str,
    find: &mut FindMatches<'_>,
) -> Result<RedactedMatches, MessageError> {
    let read = Message::read(message)?;
    let mut replacer = MatchReplacer {
        role: read.role(),
        ..MatchReplacer::new(marker, find)
    };
    let mut bytes = replacer.value(read.json(), MatchScope::Structure);
    if read.form() == Form::Item(Item::Reasoning) && replacer.matches > 0 {
        bytes = Some(redact_message(message, marker)?);
    }
    Ok(replacer.finish(bytes))
}

/// Calls `take` with the texts of a message, except those by which messages are paired.
pub fn visit_texts(message: &[u8], take: &mut dyn FnMut(&str)) -> Result<(), MessageError> {
    let read = Message::read(message)?;
    let mut find = |text: &str| {
        take(text);
        Vec::new()
    };
    let mut replacer = MatchReplacer {
        counts_left: false,
        joins_members: false,
        ..MatchReplacer::new("", &mut find)
    };
    replacer.value(read.json(), MatchScope::Structure);
    Ok(())
}

/// Replaces the matches in the texts of a JSON value with the members of messages.
pub fn redact_json(
    json: &[u8],
    marker: &str,
    find: &mut FindMatches<'_>,
) -> Result<RedactedMatches, JsonError> {
    let mut replacer = MatchReplacer {
        joins_members: false,
        ..MatchReplacer::new(marker, find)
    };
    let bytes = replacer.value(Json::parse(json)?, MatchScope::Structure);
    Ok(replacer.finish(bytes))
}

/// Replaces the matches in any text, number or name of a member of a JSON value.
pub fn redact_data(
    json: &[u8],
    marker: &str,
    find: &mut FindMatches<'_>,
) -> Result<RedactedMatches, JsonError> {
    let mut replacer = MatchReplacer::new(marker, find);
    let json = Json::parse(json)?;
    let bytes = replacer.value(json, MatchScope::Data);
    let bytes = replacer.unless_spanned(json, bytes);
    Ok(replacer.finish(bytes))
}

/// Replaces the matches in a record of a transcript, or in a document that holds records.
///
/// The members that tie records together stay: ids, times, and the names, numbers and booleans of documented members. A
/// string equal to `placeholder`, quotes included, is a placeholder for a message that is stored elsewhere, and stays
/// too.
pub fn redact_record(
    json: &[u8],
    placeholder: &[u8],
    marker: &str,
    find: &mut FindMatches<'_>,
) -> Result<RedactedMatches, JsonError> {
    let mut replacer = MatchReplacer {
        placeholder: Some(placeholder),
        ..MatchReplacer::new(marker, find)
    };
    let bytes = replacer.value(Json::parse(json)?, MatchScope::Structure);
    Ok(replacer.finish(bytes))
}

/// Replaces the matches in a text, and in JSON that the text may hold.
pub fn redact_text(text: &str, marker: &str, find: &mut FindMatches<'_>) -> Option<String> {
    let quoted = quote(text);
    let quoted = Json::parse(quoted.as_bytes()).ok()?;
    let replaced = MatchReplacer::new(marker, find).string(quoted)?;
    let text = Json::parse(&replaced).ok()?.text()?.into_owned();
    Some(text)
}

/// Replaces the matches in a fragment of JSON: in its raw text, and with its escapes resolved once and more often.
pub fn redact_fragment(text: &str, marker: &str, find: &mut FindMatches<'_>) -> Option<String> {
    MatchReplacer::new(marker, find).at_levels(text, 0)
}

/// The part of a message that a value belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MatchScope {
    /// A member that providers document: its name and its numbers stay.
    Structure,
    /// Any other member: all of it is content except the ids by which messages may be paired.
    Unknown,
    /// The input or the output of a tool: all of it is content.
    Data,
}

struct MatchReplacer<'a, 'f> {
    marker: &'a str,
    find: &'a mut FindMatches<'f>,
    matches: usize,
    left: usize,
    /// Whether texts that messages are paired by are searched too, though not replaced.
    counts_left: bool,
    /// Whether names of members that are content are searched together with their values too.
    joins_members: bool,
    /// Set for a record of a transcript: the placeholder of a message.
    placeholder: Option<&'a [u8]>,
    /// The role of the searched text.
    role: Role,
    /// Whether a replacement broke a part of media, and no object around it was recognised as media yet.
    breaks_media: bool,
}

impl<'a, 'f> MatchReplacer<'a, 'f> {
    fn new(marker: &'a str, find: &'a mut FindMatches<'f>) -> MatchReplacer<'a, 'f> {
        MatchReplacer {
            marker,
            find,
            matches: 0,
            left: 0,
            counts_left: true,
            joins_members: true,
            placeholder: None,
            role: Role::User,
            breaks_media: false,
        }
    }

    fn finish(self, bytes: Option<Vec<u8>>) -> RedactedMatches {
        RedactedMatches {
            bytes,
            matches: self.matches,
            left: self.left,
        }
    }

    fn is_record(&self) -> bool {
        self.placeholder.is_some()
    }

    /// Returns whether a member is documented, so that its name and its numbers stay.
    fn is_documented(&self, name: &[u8]) -> bool {
        contains(DOCUMENTED, name) || self.is_record() && contains(DOCUMENTED_IN_RECORDS, name)
    }

    /// Returns the scope of the value of a member whose object has the scope `scope`.
    fn member_scope(&self, scope: MatchScope, name: &[u8]) -> MatchScope {
        let is_data = contains(TOOL_DATA, name) || self.is_record() && name == b"toolUseResult";
        if scope == MatchScope::Data || is_data {
            MatchScope::Data
        } else if scope == MatchScope::Structure && self.is_documented(name) {
            MatchScope::Structure
        } else {
            MatchScope::Unknown
        }
    }

    fn is_structure(&self, name: &[u8], value: Json<'_>) -> bool {
        match value.kind() {
            JsonKind::String => {
                is_structure(name) || self.is_record() && is_record_structure(name, value)
            }
            JsonKind::Array if self.is_record() => {
                let mut elements = value.elements();
                name.ends_with(b"_ids")
                    && elements.all(|element| element.kind() == JsonKind::String)
            }
            _ => false,
        }
    }

    /// Counts the matches in a value that stays.
    fn count_left(&mut self, value: Json<'_>) {
        if !self.counts_left {
            return;
        }
        match value.kind() {
            JsonKind::Array => value
                .elements()
                .for_each(|element| self.count_left(element)),
            _ => self.left += (self.find)(&value.text().unwrap_or_default()).len(),
        }
    }

    /// Returns the new bytes of a value; none if they stay.
    fn value(&mut self, json: Json<'_>, scope: MatchScope) -> Option<Vec<u8>> {
        match json.kind() {
            JsonKind::String => self.string(json),
            JsonKind::Number | JsonKind::Bool => self.scalar(json, scope),
            JsonKind::Array => {
                let mut edits = Vec::new();
                let mut lost_thought = false;
                for element in json.elements() {
                    let mut bytes = self.value(element, scope);
                    if is_thought(element) {
                        lost_thought |= bytes.is_some();
                    } else if lost_thought && scope != MatchScope::Data {
                        // The signature of a thought is on a later part.
                        let now = bytes.unwrap_or_else(|| element.bytes().to_vec());
                        bytes = Some(without_signatures(now));
                    }
                    edits.extend(bytes.map(|bytes| (element.range(), bytes)));
                }
                splice_json(json, edits)
            }
            JsonKind::Object => self.object(json, scope),
            JsonKind::Null => None,
        }
    }

    fn object(&mut self, json: Json<'_>, scope: MatchScope) -> Option<Vec<u8>> {
        let mut edits = Vec::new();
        let start = json.range().start;
        let kind = json.get("type").map(Json::name).unwrap_or_default();
        let breaks_outer = std::mem::take(&mut self.breaks_media);
        let mut removed_images = 0;
        for (key, value) in json.members() {
            let name = key.name();
            if scope != MatchScope::Data && self.is_structure(&name, value) {
                self.count_left(value);
                continue;
            }
            if scope != MatchScope::Structure || !self.is_documented(&name) {
                edits.extend(self.string(key).map(|bytes| (key.range(), bytes)));
            }
            let value_scope = self.member_scope(scope, &name);
            let mut bytes = if *name == *b"images" && value_scope == MatchScope::Structure {
                let kept = self.images(value);
                removed_images = kept.as_ref().map_or(0, |(_, removed)| *removed);
                kept.map(|(kept, _)| kept)
            } else if value_scope == MatchScope::Data && scope != MatchScope::Data {
                self.tool_data(&name, value)
            } else {
                self.value(value, value_scope)
            };
            self.breaks_media |= bytes.is_some() && is_media_member(&kind, &name);
            if bytes.is_some()
                && let Some(blank) = blank_image(&kind, &name)
            {
                bytes = Some(quote(&blank).into_bytes());
            }
            if matches!(&*name, b"functionResponse" | b"function_response") {
                bytes = bytes.map(|bytes| without_texts(bytes, self.marker));
            }
            let between = &json.bytes()[key.range().end - start..value.range().start - start];
            if value_scope != MatchScope::Structure && self.match_spans(key, between, value) {
                let is_json = *name == *b"arguments" && holds_json(value);
                let marker = if is_json && scope != MatchScope::Data {
                    redacted_arguments(self.marker)
                } else {
                    self.marker.to_owned()
                };
                bytes = Some(quote(&marker).into_bytes());
            }
            edits.extend(bytes.map(|bytes| (value.range(), bytes)));
        }
        let breaks_media = std::mem::replace(&mut self.breaks_media, breaks_outer);
        let mut changed = splice_json(json, edits)?;
        if breaks_media {
            let is_output = scope != MatchScope::Structure;
            let media = redacted_media(json, &kind, is_output, self.role, self.marker);
            if media.is_some() {
                return media;
            }
            self.breaks_media = true;
        }
        if scope == MatchScope::Data {
            return Some(changed);
        }
        if removed_images > 0 {
            changed = with_markers(changed, removed_images, self.marker);
        }
        Some(redacted_reasoning(json, self.marker).unwrap_or_else(|| without_signatures(changed)))
    }

    /// Returns the new bytes of the input or the output of a tool. Arguments that are JSON in a text stay JSON.
    fn tool_data(&mut self, name: &[u8], value: Json<'_>) -> Option<Vec<u8>> {
        let text = value
            .text()
            .filter(|_| self.joins_members && name == b"arguments");
        let inner = text
            .as_deref()
            .and_then(|text| Json::parse(text.as_bytes()).ok());
        let Some((text, inner)) = text.as_deref().zip(inner) else {
            let bytes = self.value(value, MatchScope::Data);
            return self.unless_spanned(value, bytes);
        };
        let bytes = self.value(inner, MatchScope::Data);
        let bytes = self.unless_spanned(inner, bytes)?;
        let whole = splice(text.as_bytes(), &[(inner.range(), bytes)]);
        Some(quote(&String::from_utf8_lossy(&whole)).into_bytes())
    }

    /// Replaces an object or a list as a whole if a match remains that begins in one of its values and ends in another. `bytes` are its
    /// new bytes, if it has any.
    fn unless_spanned(&mut self, value: Json<'_>, bytes: Option<Vec<u8>>) -> Option<Vec<u8>> {
        if !self.joins_members || !matches!(value.kind(), JsonKind::Object | JsonKind::Array) {
            return bytes;
        }
        let raw = String::from_utf8_lossy(bytes.as_deref().unwrap_or(value.bytes()));
        let spanning = [0, 1].map(|levels| {
            let text = Unescaped::new(&raw, levels);
            let found = (self.find)(text.as_str()).into_iter();
            let is_new = |range: &Range<usize>| !is_redacted(text.as_str(), range, self.marker);
            found.filter(is_new).count()
        });
        match spanning.into_iter().max() {
            Some(0) | None => bytes,
            Some(count) => {
                self.matches += count;
                Some(redacted_arguments(self.marker).into_bytes())
            }
        }
    }

    /// Removes the images with a match from those beside a message's text; returns the others, and the number of
    /// removed ones.
    fn images(&mut self, json: Json<'_>) -> Option<(Vec<u8>, usize)> {
        let all: Vec<Json<'_>> = json.elements().collect();
        let mut kept = all.clone();
        kept.retain(|image| self.value(*image, MatchScope::Structure).is_none());
        let removed = all.len() - kept.len();
        let kept: Vec<&[u8]> = kept.iter().map(|image| image.bytes()).collect();
        let kept = [b"[".as_slice(), &kept.join(&b","[..]), b"]"].concat();
        (removed > 0).then_some((kept, removed))
    }

    /// Returns whether a match begins in the name of a member and ends in its value, as `"password": "x"` may.
    fn match_spans(&mut self, key: Json<'_>, between: &[u8], value: Json<'_>) -> bool {
        if !self.joins_members || Some(value.bytes()) == self.placeholder {
            return false;
        }
        let (quotes, value) = match value.kind() {
            JsonKind::String => ("\"", value.text().unwrap_or_default()),
            JsonKind::Number | JsonKind::Bool => ("", String::from_utf8_lossy(value.bytes())),
            JsonKind::Object | JsonKind::Array | JsonKind::Null => return false,
        };
        let name = key.text().unwrap_or_default();
        let between = String::from_utf8_lossy(between);
        let member = format!("\"{name}\"{between}{quotes}{value}{quotes}");
        let value_start = member.len() - quotes.len() - value.len();
        let found = (self.find)(&member);
        let spans = |range: &&Range<usize>| range.start <= name.len() && range.end > value_start;
        let spanning = found.iter().filter(spans).count();
        self.matches += spanning;
        spanning > 0
    }

    /// Replaces a number or a boolean. In a documented member it stays.
    fn scalar(&mut self, json: Json<'_>, scope: MatchScope) -> Option<Vec<u8>> {
        if scope == MatchScope::Structure && !self.counts_left {
            return None;
        }
        let text = std::str::from_utf8(json.bytes()).ok()?;
        let found = (self.find)(text);
        if scope == MatchScope::Structure {
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
        if Some(json.bytes()) == self.placeholder {
            return None;
        }
        let text = json.text()?;
        if text.starts_with(['{', '['])
            && let Ok(inner) = Json::parse(text.as_bytes())
            && let Some(changed) = self.value(inner, MatchScope::Data)
        {
            let whole = splice(text.as_bytes(), &[(inner.range(), changed)]);
            // Matches that span several of the inner values are found in the text as a whole.
            let whole = quote(&String::from_utf8_lossy(&whole));
            let again = Json::parse(whole.as_bytes()).ok()?;
            return Some(self.plain_text(again).unwrap_or_else(|| whole.into_bytes()));
        }
        self.plain_text(json)
    }

    /// Searches a text with its escapes resolved, and escaped JSON in it.
    fn plain_text(&mut self, json: Json<'_>) -> Option<Vec<u8>> {
        let replaced = self.at_levels(json.inner()?, 1)?;
        Some(format!("\"{replaced}\"").into_bytes())
    }

    fn at_levels(&mut self, text: &str, first_level: usize) -> Option<String> {
        let marker = quote(self.marker);
        let marker = &marker[1..marker.len() - 1];
        replace_at_levels(text, first_level, &mut |text| {
            let found = (self.find)(text);
            self.matches += found.len();
            let with_marker = found.into_iter().map(|range| (range, marker.to_owned()));
            with_marker.collect()
        })
    }
}

/// Returns whether a match is in a marker, or in the form of redacted arguments.
fn is_redacted(text: &str, range: &Range<usize>, marker: &str) -> bool {
    let start = "[redacted e";
    let is_form = |text: &str| {
        let mut members = text.strip_prefix("{\"redacted\":\"").into_iter();
        members.any(|rest| rest.starts_with(start) && rest.ends_with("]\"}"))
    };
    let found = &text[range.clone()];
    // The name of a member whose value was already removed.
    let is_member = |rest: String| {
        let value = rest.split_once(':').map(|(_, value)| value);
        value.is_some_and(|value| !value.contains(char::is_alphanumeric))
    };
    marker.contains(found)
        || !marker.is_empty() && found.contains(marker) && is_member(found.replace(marker, ""))
        || is_form(text)
        || text[..range.start].rfind(start).is_some_and(|at| {
            text[at..]
                .find(']')
                .is_some_and(|end| at + end + 1 >= range.end)
        })
}

/// Returns whether a text is JSON.
fn holds_json(value: Json<'_>) -> bool {
    let text = value.text();
    text.is_some_and(|text| Json::parse(text.as_bytes()).is_ok())
}
