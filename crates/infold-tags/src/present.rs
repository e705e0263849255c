use std::collections::HashSet;

use crate::{Fold, TagId, Tagged};

/// Returns the messages that would be sent.
///
/// Left out is what a present stand-in hides. Every stand-in in the list
/// counts, hidden or not; markers themselves are sent.
pub fn effective(messages: &[Tagged]) -> Vec<Tagged> {
    let present = Present::among(messages);
    let is_hidden = |message| Fold::ALL.iter().any(|fold| present.hide(message, *fold));
    let shown = messages.iter().filter(|message| !is_hidden(message));
    shown.cloned().collect()
}

/// Returns the messages without the tags that point to no present stand-in.
///
/// A message that has such a tag also loses an empty one; any other message
/// stays as it is.
pub fn untag_orphans(messages: &[Tagged]) -> Vec<Tagged> {
    let mut messages = messages.to_vec();
    untag_in_place(&mut messages);
    messages
}

/// Does the same in place, and returns how many messages that changed.
pub(crate) fn untag_in_place(messages: &mut [Tagged]) -> usize {
    let present = Present::among(messages);
    let changed = messages
        .iter_mut()
        .filter_map(|message| present.untag(message));
    changed.count()
}

/// The folds whose stand-ins are in a list of messages.
struct Present {
    ids: [HashSet<TagId>; 2],
}

impl Present {
    fn among(messages: &[Tagged]) -> Present {
        let of = |fold| messages.iter().filter_map(move |m| m.stands_for(fold));
        Present {
            ids: Fold::ALL.map(|fold| of(fold).cloned().collect()),
        }
    }

    /// Takes the tags that are not live from a message with an orphan among them.
    fn untag(&self, message: &mut Tagged) -> Option<()> {
        let dead = Fold::ALL.map(|fold| !self.hide(message, fold));
        let is_orphan = |fold: &Fold| dead[*fold as usize] && message.parent(*fold).is_some();
        Fold::ALL.iter().find(|fold| is_orphan(fold))?;
        for fold in Fold::ALL.into_iter().filter(|fold| dead[*fold as usize]) {
            message.untag(fold);
        }
        Some(())
    }

    /// Says whether one of these folds, of this kind, hides the message.
    fn hide(&self, message: &Tagged, fold: Fold) -> bool {
        let parent = message.parent(fold);
        parent.is_some_and(|id| self.ids[fold as usize].contains(id))
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
    fn a_live_tag_stays_where_it_stood_and_the_dead_one_goes() {
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
