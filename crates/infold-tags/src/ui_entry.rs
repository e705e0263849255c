//! Entries of the list that an agent shows to a person.

use std::sync::Arc;

use infold_wire::{Json, JsonKind};

use crate::{TagId, TagKind, TaggedError, Ts};

/// One entry of the list that an agent shows to a person, with its original bytes.
///
/// Cloning shares the bytes.
#[derive(Clone, Debug)]
pub struct UiEntry {
    bytes: Arc<[u8]>,
    ts: Ts,
    created_fold: Option<(TagKind, TagId)>,
}

impl UiEntry {
    /// Reads one entry.
    pub fn parse(bytes: &[u8]) -> Result<UiEntry, TaggedError> {
        UiEntry::of(Json::parse(bytes)?)
    }

    /// Reads an entry from parsed JSON.
    pub fn of(json: Json<'_>) -> Result<UiEntry, TaggedError> {
        match json.kind() {
            JsonKind::Object => Ok(UiEntry {
                bytes: json.bytes().into(),
                ts: json.get("ts").map_or(Ts::Missing, Ts::of),
                created_fold: read_created_fold(json),
            }),
            found => Err(TaggedError::NotObject { found }),
        }
    }

    /// Returns the entry's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns when it was shown.
    pub fn ts(&self) -> Ts {
        self.ts
    }

    /// Returns the fold whose creation it announces, if it does.
    pub fn created_fold(&self) -> Option<(TagKind, &TagId)> {
        self.created_fold.as_ref().map(|(kind, id)| (*kind, id))
    }
}

fn read_created_fold(entry: Json<'_>) -> Option<(TagKind, TagId)> {
    let (kind, details, id) = match entry.get("say")?.text()?.as_ref() {
        "condense_context" => (TagKind::Summary, "contextCondense", "condenseId"),
        "sliding_window_truncation" => (TagKind::Window, "contextTruncation", "truncationId"),
        _ => return None,
    };
    Some((kind, TagId::of(entry.get(details)?.get(id)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_said_event_with_an_id_tells_of_a_fold() {
        let made = |text: &str| {
            let entry = UiEntry::parse(text.as_bytes()).unwrap();
            entry.created_fold().map(|(fold, id)| (fold, id.clone()))
        };
        let c1 = Some((TagKind::Summary, TagId::new("C1")));
        assert_eq!(
            made(r#"{"say":"condense_context","contextCondense":{"condenseId":"C1"}}"#),
            c1
        );
        assert_eq!(
            made(r#"{"say":"condense_context","contextCondense":{"condenseId":""}}"#),
            None
        );
        assert_eq!(
            made(r#"{"say":"condense_context","contextCondense":"C1"}"#),
            None
        );
        assert_eq!(
            made(r#"{"say":"text","contextCondense":{"condenseId":"C1"}}"#),
            None
        );
        assert_eq!(
            made(r#"{"ask":"condense_context","contextCondense":{"condenseId":"C1"}}"#),
            None
        );
    }
}
