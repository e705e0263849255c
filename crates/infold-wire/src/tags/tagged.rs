//! A message that may carry tags.

use std::borrow::Cow;
use std::sync::Arc;

use infold_log::Cause;

use super::{TagId, Ts, splice};
use crate::{Json, JsonError, JsonKind, js};

/// A message that may carry tags, with its original bytes.
///
/// Its tags and its time are read once, by [`Tagged::parse`]. Tagging and
/// untagging change no other byte, and untagging reverts tagging.
/// Cloning shares the bytes. Arrays of two are indexed by [`TagKind`].
#[derive(Clone, Debug)]
pub struct Tagged {
    // The fields that folding reads of every message are here and not in the body:
    // a pass over a long list then touches no memory but the list's own.
    body: Arc<TaggedBody>,
    parents: [Option<TagId>; 2],
    /// Tags that differ from those in the bytes.
    changed: [bool; 2],
    /// Tags that were removed at some time.
    removed: [bool; 2],
    /// The kind of the tag that was added last.
    added_last: TagKind,
    stand_in: [bool; 2],
    role: TaggedRole,
    ts: Ts,
}

/// The two kinds of fold that have tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagKind {
    /// `condenseParent` hides a message behind the summary with that `condenseId`.
    Summary,
    /// `truncationParent` hides a message behind the marker with that `truncationId`.
    Window,
}

/// The role of a message, as far as folding distinguishes roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaggedRole {
    /// `"user"`
    User,
    /// `"assistant"`
    Assistant,
    /// Any other value, or none.
    Other,
}

/// The reason that some bytes are not a message, or not a list of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaggedError {
    /// The bytes are not JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A message that is JSON, but not an object.
    #[error("a message is an object, not {found:?}")]
    NotObject {
        /// The kind of the value.
        found: JsonKind,
    },
    /// A list that is JSON, but not an array.
    #[error("a list of messages is an array, not {found:?}")]
    NotList {
        /// The kind of the value.
        found: JsonKind,
    },
}

/// The fields of a message that folding seldom reads.
#[derive(Debug)]
struct TaggedBody {
    bytes: Box<[u8]>,
    ids: [Option<TagId>; 2],
}

impl TagKind {
    /// Both, in the order of the tags in a message.
    pub const ALL: [TagKind; 2] = [TagKind::Summary, TagKind::Window];

    /// Returns the name of the tag that hides a message behind this kind of fold.
    pub fn tag_name(self) -> &'static str {
        match self {
            TagKind::Summary => "condenseParent",
            TagKind::Window => "truncationParent",
        }
    }

    pub(super) fn other(self) -> TagKind {
        TagKind::ALL[1 - self as usize]
    }
}

impl From<Cause> for TagKind {
    fn from(cause: Cause) -> TagKind {
        match cause {
            Cause::Summary => TagKind::Summary,
            Cause::Window => TagKind::Window,
        }
    }
}

impl From<TagKind> for Cause {
    fn from(kind: TagKind) -> Cause {
        match kind {
            TagKind::Summary => Cause::Summary,
            TagKind::Window => Cause::Window,
        }
    }
}

impl Tagged {
    /// Reads one message.
    pub fn parse(bytes: &[u8]) -> Result<Tagged, TaggedError> {
        Tagged::of(Json::parse(bytes)?)
    }

    /// Reads a JSON array of messages.
    pub fn parse_list(bytes: &[u8]) -> Result<Vec<Tagged>, TaggedError> {
        let list = Json::parse(bytes)?;
        match list.kind() {
            JsonKind::Array => list.elements().map(Tagged::of).collect(),
            found => Err(TaggedError::NotList { found }),
        }
    }

    /// Reads a message from parsed JSON.
    pub fn of(json: Json<'_>) -> Result<Tagged, TaggedError> {
        const SUMMARY: usize = TagKind::Summary as usize;
        const WINDOW: usize = TagKind::Window as usize;
        let found = json.kind();
        if found != JsonKind::Object {
            return Err(TaggedError::NotObject { found });
        }
        let (mut role, mut ts) = (TaggedRole::Other, Ts::Missing);
        let (mut stand_in, mut ids, mut parents) = ([false; 2], [None, None], [None, None]);
        // In order, so that of duplicates the last one counts.
        for (key, value) in json.members() {
            match &*key.text().unwrap_or_default() {
                "role" => role = TaggedRole::of(value),
                "ts" => ts = Ts::of(value),
                "isSummary" => stand_in[SUMMARY] = js::is_truthy(value),
                "isTruncationMarker" => stand_in[WINDOW] = js::is_truthy(value),
                "condenseId" => ids[SUMMARY] = TagId::of(value),
                "truncationId" => ids[WINDOW] = TagId::of(value),
                "condenseParent" => parents[SUMMARY] = TagId::of(value),
                "truncationParent" => parents[WINDOW] = TagId::of(value),
                _ => {}
            }
        }
        Ok(Tagged {
            body: Arc::new(TaggedBody {
                bytes: json.bytes().into(),
                ids,
            }),
            parents,
            changed: [false; 2],
            removed: [false; 2],
            added_last: TagKind::Window,
            stand_in,
            role,
            ts,
        })
    }

    /// Returns the bytes of the message with its current tags.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        let mut bytes = Cow::Borrowed(&*self.body.bytes);
        for kind in TagKind::ALL {
            if self.removed[kind as usize] {
                bytes = splice::remove_member(&bytes, kind.tag_name()).into();
            }
        }
        // New members are written in the order in which they were set, as in JavaScript.
        for kind in [self.added_last.other(), self.added_last] {
            let new = self.parent(kind).filter(|_| self.changed[kind as usize]);
            if let Some(id) = new {
                bytes = splice::set_member(&bytes, kind.tag_name(), id.json()).into();
            }
        }
        bytes
    }

    /// Returns its role.
    pub fn role(&self) -> TaggedRole {
        self.role
    }

    /// Returns its time.
    pub fn ts(&self) -> Ts {
        self.ts
    }

    /// Returns its content: a string or a list of blocks.
    pub fn content(&self) -> Option<Json<'_>> {
        self.member("content")
    }

    /// Returns a member of the message as it came, without later changes of its tags.
    pub fn member(&self, name: &str) -> Option<Json<'_>> {
        Json::checked(&self.body.bytes).get(name)
    }

    /// Returns the fold that hides the message, if that fold's stand-in is present.
    pub fn parent(&self, kind: TagKind) -> Option<&TagId> {
        self.parents[kind as usize].as_ref()
    }

    /// Says whether the message is flagged as a stand-in: `isSummary` or `isTruncationMarker`.
    pub fn is_stand_in(&self, kind: TagKind) -> bool {
        self.stand_in[kind as usize]
    }

    /// Returns the fold that the message represents: it is flagged as a stand-in and has an id.
    pub fn stands_for(&self, kind: TagKind) -> Option<&TagId> {
        let id = self.body.ids[kind as usize].as_ref();
        id.filter(|_| self.is_stand_in(kind))
    }

    /// Hides the message behind the fold `id`.
    pub fn tag(&mut self, kind: TagKind, id: &TagId) {
        if self.parent(kind).is_none() {
            self.added_last = kind;
        }
        self.parents[kind as usize] = Some(id.clone());
        self.changed[kind as usize] = true;
    }

    /// Removes the tag of this kind, even an empty one.
    pub fn untag(&mut self, kind: TagKind) {
        self.removed[kind as usize] = true;
        self.parents[kind as usize] = None;
        self.changed[kind as usize] = true;
    }

    /// Returns the message without its tags.
    pub(crate) fn untagged(&self) -> Tagged {
        let mut bare = self.clone();
        for kind in TagKind::ALL {
            if bare.parent(kind).is_some() {
                bare.untag(kind);
            }
        }
        bare
    }

    /// Returns the tags it has, in the order of its bytes.
    pub(crate) fn tags(&self) -> Vec<TagKind> {
        let has = |kind: &TagKind| self.parent(*kind).is_some();
        let mut tags: Vec<TagKind> = TagKind::ALL.into_iter().filter(has).collect();
        if tags.len() > 1 {
            let bytes = self.bytes();
            tags.sort_by_key(|kind| {
                let mut keys = Json::checked(&bytes).members();
                keys.position(|(key, _)| key.is(kind.tag_name()))
            });
        }
        tags
    }
}

impl TaggedRole {
    fn of(value: Json<'_>) -> TaggedRole {
        match value.text().as_deref() {
            Some("user") => TaggedRole::User,
            Some("assistant") => TaggedRole::Assistant,
            _ => TaggedRole::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ODD: &str = r#"{ "role":"user" , "x\ud83d":"\ud83d", "ts" : 1e400, "n":12345678901234567890123,
        "n":0.10, "content":[ ], "ünknown" : { "truncationParent":"deep" } }"#;

    fn message(text: &str) -> Tagged {
        Tagged::parse(text.as_bytes()).unwrap()
    }

    fn text(message: &Tagged) -> String {
        String::from_utf8(message.bytes().into_owned()).unwrap()
    }

    #[test]
    fn tagging_changes_no_other_byte() {
        let id = TagId::new("t \"1\"");
        let mut tagged = message(ODD);
        tagged.tag(TagKind::Window, &id);
        let tag = r#","truncationParent":"t \"1\"""#;
        assert_eq!(text(&tagged), ODD.replace("} }", &format!("}}{tag} }}")));
        assert_eq!(tagged.parent(TagKind::Window), Some(&id));
        assert_eq!(tagged.parent(TagKind::Summary), None);
    }

    #[test]
    fn untagging_restores_the_bytes() {
        for (first, second) in [
            (TagKind::Summary, TagKind::Window),
            (TagKind::Window, TagKind::Summary),
        ] {
            let mut kept = message(ODD);
            kept.tag(first, &TagId::new("a"));
            kept.tag(second, &TagId::new("b"));
            let mut stored = message(&text(&kept));
            for message in [&mut kept, &mut stored] {
                message.untag(first);
                message.untag(second);
                assert_eq!(text(message), ODD);
            }
        }
    }

    #[test]
    fn tags_stand_in_the_order_in_which_they_were_set() {
        for (first, second) in [
            (TagKind::Summary, TagKind::Window),
            (TagKind::Window, TagKind::Summary),
        ] {
            let mut kept = message(ODD);
            kept.tag(first, &TagId::new("a"));
            let mut stored = message(&text(&kept));
            for message in [&mut kept, &mut stored] {
                message.tag(second, &TagId::new("b"));
                assert_eq!(message.tags(), [first, second]);
            }
            assert_eq!(text(&kept), text(&stored));
            kept.untag(first);
            kept.tag(first, &TagId::new("c"));
            assert_eq!(kept.tags(), [second, first]);
        }
    }

    #[test]
    fn the_last_of_duplicate_members_counts() {
        let twice =
            message(r#"{"isSummary":true,"condenseId":"a","condenseId":"b","ts":1,"ts":2}"#);
        assert_eq!(twice.stands_for(TagKind::Summary), Some(&TagId::new("b")));
        assert_eq!(twice.ts().given().unwrap().0, 2.0);
        let taken_back = message(r#"{"truncationParent":"a","truncationParent":""}"#);
        assert_eq!(taken_back.parent(TagKind::Window), None);
    }

    #[test]
    fn an_id_without_its_flag_stands_for_nothing() {
        let plain = message(r#"{"condenseId":"a","isSummary":0,"truncationId":"b"}"#);
        assert_eq!(plain.stands_for(TagKind::Summary), None);
        assert_eq!(plain.stands_for(TagKind::Window), None);
        assert!(message(r#"{"isTruncationMarker":"yes"}"#).is_stand_in(TagKind::Window));
    }

    #[test]
    fn what_is_not_a_message_is_refused() {
        let error = Tagged::parse(b"[]").unwrap_err();
        assert_eq!(error.to_string(), "a message is an object, not Array");
        let error = Tagged::parse_list(b"{}").unwrap_err();
        assert_eq!(
            error.to_string(),
            "a list of messages is an array, not Object"
        );
        assert!(matches!(Tagged::parse(b"{"), Err(TaggedError::Json(_))));
    }
}
