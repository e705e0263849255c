//! Reads and writes Roo Code's history: Anthropic messages, with folds as tags.

use std::collections::HashSet;

use infold_log::{Cause, Role, Span};

use super::neutral::join_texts;
use super::{FormatReader, ReaderOutput, TranscriptEntry};
use crate::tags::{TagFold, TagId, TagKind, Tagged, from_tags, to_tags};
use crate::{Json, Message, quote};

/// Reads messages without their tags, and at the end the folds that the tags describe.
#[derive(Default)]
pub struct RooReader {
    /// All entries, reduced to their tags.
    array: Vec<Tagged>,
    /// The folds whose stand-ins were read.
    folds: HashSet<(bool, TagId)>,
    /// The texts of the stand-ins, in order.
    said: Vec<(TagId, bool, Role, String)>,
    tagged: bool,
}

impl FormatReader for RooReader {
    fn record(&mut self, text: &[u8], output: &mut ReaderOutput<'_>) -> Result<(), String> {
        let message = Message::parse(text).map_err(|error| error.to_string())?;
        let tagged = Tagged::of(message.json()).map_err(|error| error.to_string())?;
        self.array.push(skeleton(&tagged)?);
        let stands =
            |kind: TagKind| Some((kind == TagKind::Window, tagged.stands_for(kind)?.clone()));
        let fold = TagKind::ALL.into_iter().find_map(stands);
        self.tagged |= fold.is_some();
        if let Some((window, id)) = fold
            && self.folds.insert((window, id.clone()))
        {
            let text = message.content().map(join_texts).unwrap_or_default();
            self.said.push((id, window, message.role(), text));
            return Ok(());
        }
        let time = message.json().get("ts").and_then(Json::number);
        let time = time.filter(|time| *time > 0.0).map(|time| time as u64);
        let mut bare = tagged;
        for kind in bare.tags() {
            bare.untag(kind);
        }
        output.message(bare.bytes().into_owned(), time);
        Ok(())
    }

    fn finish(&mut self, output: &mut ReaderOutput<'_>) {
        let array = std::mem::take(&mut self.array);
        if !self.tagged {
            return;
        }
        for fold in from_tags(&array).folds {
            let Some(covers) = fold.covers else { continue };
            let window = TagKind::from(fold.cause) == TagKind::Window;
            let mut said = self.said.iter();
            let Some((.., role, text)) =
                said.find(|(id, kind, ..)| *id == fold.id && *kind == window)
            else {
                continue;
            };
            output.entries.push(TranscriptEntry::Fold {
                cause: fold.cause,
                covers,
                role: *role,
                text: text.clone(),
            });
        }
    }
}

/// A record as Roo Code has it, with a time and these tags.
pub fn record(text: &str, tags: &[(TagKind, TagId)], time: u64) -> Vec<u8> {
    let mut text = text.to_owned();
    let json = Json::parse(text.as_bytes()).ok();
    if json.is_none_or(|json| json.get("ts").is_none()) {
        text.truncate(text.trim_end().len() - 1);
        text.push_str(&format!(",\"ts\":{time}}}"));
    }
    match Tagged::parse(text.as_bytes()) {
        Ok(mut tagged) if !tags.is_empty() => {
            tags.iter().for_each(|(kind, id)| tagged.tag(*kind, id));
            tagged.bytes().into_owned()
        }
        _ => text.into_bytes(),
    }
}

/// An element of a tagged array: a message and its tags, or a stand-in.
#[derive(Clone, Debug)]
pub enum Slot {
    /// The next message.
    Message(Vec<(TagKind, TagId)>),
    /// A stand-in for messages.
    StandIn(Vec<u8>),
}

/// Plans an array of `messages` messages with these folds as tags.
pub fn slots(messages: usize, folds: &[TagFold]) -> Vec<Slot> {
    let Ok(untagged) = Tagged::parse(b"{}") else {
        return Vec::new();
    };
    let array = to_tags(&vec![untagged; messages], folds);
    let slot = |entry: &Tagged| {
        let stands = TagKind::ALL.into_iter().any(|kind| entry.is_stand_in(kind));
        let tags = entry.tags().into_iter();
        if stands {
            return Slot::StandIn(entry.bytes().into_owned());
        }
        let tags = tags.filter_map(|kind| Some((kind, entry.parent(kind)?.clone())));
        Slot::Message(tags.collect())
    };
    array.iter().map(slot).collect()
}

/// A fold made elsewhere, to be written as tags.
pub fn fold(
    id: &str,
    cause: Cause,
    covers: Span,
    stand_in: &[(Role, String)],
    time: u64,
) -> Option<TagFold> {
    let (role, text) = match stand_in {
        [] => (Role::Assistant, String::new()),
        [(role, text)] => (*role, text.clone()),
        [(role, _), ..] => {
            let texts: Vec<&str> = stand_in.iter().map(|(_, text)| text.as_str()).collect();
            (*role, texts.join("\n\n"))
        }
    };
    let (flag, name) = names(cause.into());
    let (role, text, quoted) = (role.wire_name(), quote(&text), quote(id));
    let stand_in = format!(
        r#"{{"role":"{role}","content":{text},"ts":{time},"{flag}":true,"{name}":{quoted}}}"#
    );
    let stand_in = Tagged::parse(stand_in.as_bytes()).ok()?;
    Some(TagFold::new(TagId::new(id), cause, covers, stand_in))
}

fn names(kind: TagKind) -> (&'static str, &'static str) {
    match kind {
        TagKind::Summary => ("isSummary", "condenseId"),
        TagKind::Window => ("isTruncationMarker", "truncationId"),
    }
}

/// Returns an entry with the same tags and no content.
fn skeleton(tagged: &Tagged) -> Result<Tagged, String> {
    let mut text = String::from("{");
    let mut member = |name: &str, value: &str| {
        let comma = if text.len() > 1 { "," } else { "" };
        text.push_str(&format!("{comma}\"{name}\":{value}"));
    };
    for kind in TagKind::ALL {
        if let Some(id) = tagged.stands_for(kind) {
            let (flag, name) = names(kind);
            member(flag, "true");
            member(name, id.json());
        }
    }
    for kind in tagged.tags() {
        if let Some(id) = tagged.parent(kind) {
            member(kind.tag_name(), id.json());
        }
    }
    text.push('}');
    Tagged::parse(text.as_bytes()).map_err(|error| error.to_string())
}
