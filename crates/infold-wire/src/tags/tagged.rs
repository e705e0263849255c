use std::borrow::Cow;
use std::sync::Arc;

use infold_log::Cause;

use super::{TagId, Ts, splice};
use crate::{Json, JsonError, Kind, js};

/// A message that may carry tags, kept as the bytes it came in.
///
/// Its tags and its time are read once, by [`Tagged::parse`]. Tagging and
/// untagging change no other byte, and untagging takes back what tagging did.
/// Cloning shares the bytes.
#[derive(Clone, Debug)]
pub struct Tagged {
    // What folding asks of every message lies here and not in the body: going
    // through a long list then touches no memory but the list's own.
    body: Arc<Body>,
    parents: [Option<TagId>; 2],
    /// Which tags are no longer as the bytes have them, which of them were taken away at
    /// some time, and which was put there last.
    changed: [bool; 2],
    cut: [bool; 2],
    last: Fold,
    stand_in: [bool; 2],
    role: Role,
    ts: Ts,
}

/// The two kinds of fold that have tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// Hidden by `condenseParent`, stood for by the summary with that `condenseId`.
    Summary,
    /// Hidden by `truncationParent`, stood for by the marker with that `truncationId`.
    Window,
}

/// Who said a message, as far as folding cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// `"user"`
    User,
    /// `"assistant"`
    Assistant,
    /// Anything else, or nothing.
    Other,
}

/// Why some bytes are not a message, or not a list of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaggedError {
    /// The bytes are not JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A message that is JSON, but not an object.
    #[error("a message is an object, not {found:?}")]
    NotObject {
        /// What it is.
        found: Kind,
    },
    /// A list that is JSON, but not an array.
    #[error("a list of messages is an array, not {found:?}")]
    NotList {
        /// What it is.
        found: Kind,
    },
}

/// What is seldom asked for.
#[derive(Debug)]
struct Body {
    bytes: Box<[u8]>,
    ids: [Option<TagId>; 2],
}

impl Fold {
    /// Both, in the order of the tags in a message.
    pub const ALL: [Fold; 2] = [Fold::Summary, Fold::Window];

    /// Returns the name of the tag that hides a message behind this kind of fold.
    pub fn tag_name(self) -> &'static str {
        match self {
            Fold::Summary => "condenseParent",
            Fold::Window => "truncationParent",
        }
    }

    pub(super) fn other(self) -> Fold {
        match self {
            Fold::Summary => Fold::Window,
            Fold::Window => Fold::Summary,
        }
    }
}

impl From<Cause> for Fold {
    fn from(cause: Cause) -> Fold {
        match cause {
            Cause::Summary => Fold::Summary,
            Cause::Window => Fold::Window,
        }
    }
}

impl From<Fold> for Cause {
    fn from(fold: Fold) -> Cause {
        match fold {
            Fold::Summary => Cause::Summary,
            Fold::Window => Cause::Window,
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
            Kind::Array => list.elements().map(Tagged::of).collect(),
            found => Err(TaggedError::NotList { found }),
        }
    }

    /// Reads a message that has been found to be JSON.
    pub fn of(json: Json<'_>) -> Result<Tagged, TaggedError> {
        match json.kind() {
            Kind::Object => Ok(Read::of(json).message(json)),
            found => Err(TaggedError::NotObject { found }),
        }
    }

    /// Returns the message as it is now, tags included.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        let mut bytes = Cow::Borrowed(&*self.body.bytes);
        for fold in Fold::ALL
            .into_iter()
            .filter(|fold| self.cut[*fold as usize])
        {
            bytes = splice::cut(&bytes, fold.tag_name()).into();
        }
        // New members stand in the order in which they were set, as in JavaScript.
        for fold in [self.last.other(), self.last] {
            let new = self.parent(fold).filter(|_| self.changed[fold as usize]);
            if let Some(id) = new {
                bytes = splice::put(&bytes, fold.tag_name(), id.json()).into();
            }
        }
        bytes
    }

    /// Returns who said it.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns when it was said.
    pub fn ts(&self) -> Ts {
        self.ts
    }

    /// Returns what was said: a string or a list of blocks.
    pub fn content(&self) -> Option<Json<'_>> {
        self.member("content")
    }

    /// Returns a member of the message as it came, without later changes of its tags.
    pub fn member(&self, name: &str) -> Option<Json<'_>> {
        Json::checked(&self.body.bytes).get(name)
    }

    /// Returns the fold that hides it, if that fold's stand-in is present.
    pub fn parent(&self, fold: Fold) -> Option<&TagId> {
        self.parents[fold as usize].as_ref()
    }

    /// Says whether it is flagged as a stand-in: `isSummary` or `isTruncationMarker`.
    pub fn is_stand_in(&self, fold: Fold) -> bool {
        self.stand_in[fold as usize]
    }

    /// Returns the fold it stands for: it is flagged as a stand-in and has an id.
    pub fn stands_for(&self, fold: Fold) -> Option<&TagId> {
        match self.is_stand_in(fold) {
            true => self.body.ids[fold as usize].as_ref(),
            false => None,
        }
    }

    /// Hides the message behind the fold `id`.
    pub fn tag(&mut self, fold: Fold, id: &TagId) {
        self.set(fold, Some(id.clone()));
    }

    /// Takes the tag away, even an empty one.
    pub fn untag(&mut self, fold: Fold) {
        self.set(fold, None);
    }

    /// The tags it has, in the order of its bytes.
    pub(crate) fn tags(&self) -> Vec<Fold> {
        let has = |fold: &Fold| self.parent(*fold).is_some();
        let mut tags: Vec<Fold> = Fold::ALL.into_iter().filter(has).collect();
        if tags.len() > 1 {
            let bytes = self.bytes();
            let place = |fold: &Fold| {
                let mut keys = Json::checked(&bytes).members();
                keys.position(|(key, _)| key.is(fold.tag_name()))
            };
            tags.sort_by_key(place);
        }
        tags
    }

    fn set(&mut self, fold: Fold, parent: Option<TagId>) {
        match parent {
            Some(_) if self.parent(fold).is_none() => self.last = fold,
            Some(_) => {}
            None => self.cut[fold as usize] = true,
        }
        self.parents[fold as usize] = parent;
        self.changed[fold as usize] = true;
    }
}

/// The members of a message that matter here, while it is read.
struct Read {
    role: Role,
    ts: Ts,
    stand_in: [bool; 2],
    ids: [Option<TagId>; 2],
    parents: [Option<TagId>; 2],
}

impl Read {
    fn of(object: Json<'_>) -> Read {
        let mut read = Read {
            role: Role::Other,
            ts: Ts::Missing,
            stand_in: [false; 2],
            ids: [None, None],
            parents: [None, None],
        };
        // In order, so that of duplicates the last one counts.
        for (key, value) in object.members() {
            read.member(&key.text().unwrap_or_default(), value);
        }
        read
    }

    fn member(&mut self, key: &str, value: Json<'_>) {
        const SUMMARY: usize = Fold::Summary as usize;
        const WINDOW: usize = Fold::Window as usize;
        match key {
            "role" => self.role = Role::of(value),
            "ts" => self.ts = Ts::of(value),
            "isSummary" => self.stand_in[SUMMARY] = js::is_truthy(value),
            "isTruncationMarker" => self.stand_in[WINDOW] = js::is_truthy(value),
            "condenseId" => self.ids[SUMMARY] = TagId::of(value),
            "truncationId" => self.ids[WINDOW] = TagId::of(value),
            "condenseParent" => self.parents[SUMMARY] = TagId::of(value),
            "truncationParent" => self.parents[WINDOW] = TagId::of(value),
            _ => {}
        }
    }

    fn message(self, object: Json<'_>) -> Tagged {
        Tagged {
            body: Arc::new(Body {
                bytes: object.bytes().into(),
                ids: self.ids,
            }),
            parents: self.parents,
            changed: [false; 2],
            cut: [false; 2],
            last: Fold::Window,
            stand_in: self.stand_in,
            role: self.role,
            ts: self.ts,
        }
    }
}

impl Role {
    fn of(value: Json<'_>) -> Role {
        match value.text().as_deref() {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            _ => Role::Other,
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
        tagged.tag(Fold::Window, &id);
        let tag = r#","truncationParent":"t \"1\"""#;
        assert_eq!(text(&tagged), ODD.replace("} }", &format!("}}{tag} }}")));
        assert_eq!(tagged.parent(Fold::Window), Some(&id));
        assert_eq!(tagged.parent(Fold::Summary), None);
    }

    #[test]
    fn untagging_restores_the_bytes() {
        for (first, second) in [(Fold::Summary, Fold::Window), (Fold::Window, Fold::Summary)] {
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
        for (first, second) in [(Fold::Summary, Fold::Window), (Fold::Window, Fold::Summary)] {
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
        assert_eq!(twice.stands_for(Fold::Summary), Some(&TagId::new("b")));
        assert_eq!(twice.ts().given().unwrap().0, 2.0);
        let taken_back = message(r#"{"truncationParent":"a","truncationParent":""}"#);
        assert_eq!(taken_back.parent(Fold::Window), None);
    }

    #[test]
    fn an_id_without_its_flag_stands_for_nothing() {
        let plain = message(r#"{"condenseId":"a","isSummary":0,"truncationId":"b"}"#);
        assert_eq!(plain.stands_for(Fold::Summary), None);
        assert_eq!(plain.stands_for(Fold::Window), None);
        assert!(message(r#"{"isTruncationMarker":"yes"}"#).is_stand_in(Fold::Window));
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
