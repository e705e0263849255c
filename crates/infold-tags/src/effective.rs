//! Determines the messages that would be sent, and removes tags without a stand-in.

use std::collections::HashSet;

use crate::{TagId, TagKind, Tagged};

/// Returns the messages that would be sent: those that no present stand-in hides.
///
/// Every stand-in in the list counts, hidden or not; markers themselves are sent.
pub fn effective(messages: &[Tagged]) -> Vec<Tagged> {
    let present = PresentFolds::among(messages);
    let is_hidden = |message| TagKind::ALL.iter().any(|kind| present.hide(message, *kind));
    let shown = messages.iter().filter(|message| !is_hidden(message));
    shown.cloned().collect()
}

/// Returns the messages without the tags that refer to no present stand-in.
///
/// A message with such a tag also loses its empty tags; any other message stays unchanged.
pub fn untag_orphans(messages: &[Tagged]) -> Vec<Tagged> {
    let mut messages = messages.to_vec();
    untag_in_place(&mut messages);
    messages
}

/// Like [`untag_orphans`], but changes the messages in place, and returns how many changed.
pub(crate) fn untag_in_place(messages: &mut [Tagged]) -> usize {
    let present = PresentFolds::among(messages);
    let changed = messages.iter_mut().map(|message| present.untag(message));
    changed.filter(|changed| *changed).count()
}

/// The ids of the folds whose stand-ins are in a list of messages, by kind.
struct PresentFolds([HashSet<TagId>; 2]);

impl PresentFolds {
    /// Collects the folds of a list.
    fn among(messages: &[Tagged]) -> PresentFolds {
        PresentFolds(TagKind::ALL.map(|kind| {
            let ids = messages.iter().filter_map(|m| m.stands_for(kind));
            ids.cloned().collect()
        }))
    }

    /// Removes the tags of a message that do not hide it, if one of them refers to a missing stand-in. Returns whether
    /// one does.
    fn untag(&self, message: &mut Tagged) -> bool {
        let ineffective = TagKind::ALL
            .into_iter()
            .filter(|kind| !self.hide(message, *kind));
        let ineffective: Vec<TagKind> = ineffective.collect();
        let has_orphan = ineffective
            .iter()
            .any(|kind| message.parent(*kind).is_some());
        if has_orphan {
            ineffective.into_iter().for_each(|kind| message.untag(kind));
        }
        has_orphan
    }

    /// Says whether the tag of this kind hides a message.
    fn hide(&self, message: &Tagged, kind: TagKind) -> bool {
        let parent = message.parent(kind);
        parent.is_some_and(|id| self.0[kind as usize].contains(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(messages: &[Tagged]) -> Vec<String> {
        let text = |m: &Tagged| String::from_utf8(m.bytes().into_owned()).unwrap();
        messages.iter().map(text).collect()
    }

    #[test]
    fn a_tag_with_a_stand_in_keeps_its_place_and_one_without_is_removed() {
        let list = br#"[{"a":1,"truncationParent":"gone","condenseParent":"C1","z":2},
            {"isSummary":true,"condenseId":"C1","condenseParent":"","truncationParent":"gone"},
            {"condenseParent":"","n":1.0}]"#;
        assert_eq!(
            texts(&untag_orphans(&Tagged::parse_list(list).unwrap())),
            [
                r#"{"a":1,"condenseParent":"C1","z":2}"#,
                r#"{"isSummary":true,"condenseId":"C1"}"#,
                r#"{"condenseParent":"","n":1.0}"#,
            ]
        );
    }

    #[test]
    fn ids_are_compared_after_decoding() {
        let list = br#"[{"condenseParent":"\u0043\ud83d"},{"condenseParent":"C\ufffd"},
            {"isSummary":1,"condenseId":"C\ud83d"}]"#;
        let shown = effective(&Tagged::parse_list(list).unwrap());
        assert_eq!(texts(&shown)[0], r#"{"condenseParent":"C\ufffd"}"#);
        assert_eq!(shown.len(), 2);
    }
}
