use std::sync::Arc;

use crate::{Fold, TagId, TaggedError, Ts};
use infold_wire::{Json, Kind};

/// One entry of the list an agent shows to a person, kept as the bytes it came in.
///
/// Cloning shares the bytes.
#[derive(Clone, Debug)]
pub struct UiEntry {
    bytes: Arc<[u8]>,
    ts: Ts,
    made: Option<(Fold, TagId)>,
}

impl UiEntry {
    /// Reads one entry.
    pub fn parse(bytes: &[u8]) -> Result<UiEntry, TaggedError> {
        UiEntry::of(Json::parse(bytes)?)
    }

    /// Reads an entry that has been found to be JSON.
    pub fn of(json: Json<'_>) -> Result<UiEntry, TaggedError> {
        match json.kind() {
            Kind::Object => Ok(UiEntry {
                bytes: json.bytes().into(),
                ts: json.get("ts").map_or(Ts::Missing, Ts::of),
                made: made(json),
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

    /// Returns the fold whose making it tells of, if it does.
    pub fn made(&self) -> Option<(Fold, &TagId)> {
        self.made.as_ref().map(|(fold, id)| (*fold, id))
    }
}

fn made(entry: Json<'_>) -> Option<(Fold, TagId)> {
    let (fold, details, id) = match entry.get("say")?.text()?.as_ref() {
        "condense_context" => (Fold::Summary, "contextCondense", "condenseId"),
        "sliding_window_truncation" => (Fold::Window, "contextTruncation", "truncationId"),
        _ => return None,
    };
    let id = TagId::of(entry.get(details)?.get(id)?)?;
    Some((fold, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_said_event_with_an_id_tells_of_a_fold() {
        let made = |text: &str| {
            let entry = UiEntry::parse(text.as_bytes()).unwrap();
            entry.made().map(|(fold, id)| (fold, id.clone()))
        };
        let c1 = Some((Fold::Summary, TagId::new("C1")));
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
