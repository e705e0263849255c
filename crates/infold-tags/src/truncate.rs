//! Truncates a conversation: hides its oldest visible messages behind a marker.

use infold_wire::js;

use crate::{Millis, TagId, TagKind, Tagged};

/// A truncated conversation.
#[derive(Clone, Debug)]
pub struct Truncated {
    /// All messages, some of them newly tagged, and the marker.
    pub messages: Vec<Tagged>,
    /// The number of hidden messages according to the marker; zero without one.
    ///
    /// A double, as in JavaScript: with a fraction above 1 it exceeds the number of messages.
    pub reported: f64,
}

/// Hides the oldest visible messages behind a marker with the id `id`.
///
/// A message is visible if it is not a marker and no marker hides it; messages that a summary hides count as visible,
/// too. The first one always stays. Of the others `fraction` is hidden, rounded down to an even number; if that is
/// zero, nothing changes. The marker is put before the first visible message that stays, and is dated just before it,
/// or before `now` if that has no time.
pub fn truncate(messages: &[Tagged], fraction: f64, id: &TagId, now: Millis) -> Truncated {
    let visible: Vec<usize> = (0..messages.len())
        .filter(|at| is_visible(&messages[*at]))
        .collect();
    let share = ((visible.len() as f64 - 1.0) * fraction).floor();
    let count = share - share % 2.0;
    // An infinite fraction makes the count NaN, which hides nothing either.
    if count.is_nan() || count <= 0.0 {
        return Truncated {
            messages: messages.to_vec(),
            reported: 0.0,
        };
    }
    // A count beyond any index becomes the largest index, where there is no message.
    let stays = visible.get((count + 1.0) as usize).copied();
    let boundary = stays.unwrap_or(messages.len());
    let mut all = Vec::with_capacity(messages.len() + 1);
    all.extend_from_slice(&messages[..boundary]);
    for &at in visible.iter().skip(1).take_while(|at| **at < boundary) {
        all[at].tag(TagKind::Window, id);
    }
    let before = stays.and_then(|at| messages[at].ts().given());
    all.push(build_marker(count, id, before.unwrap_or(now)));
    all.extend_from_slice(&messages[boundary..]);
    Truncated {
        messages: all,
        reported: count,
    }
}

/// Says whether truncation counts a message as visible.
pub(crate) fn is_visible(message: &Tagged) -> bool {
    message.parent(TagKind::Window).is_none() && !message.is_stand_in(TagKind::Window)
}

fn build_marker(count: f64, id: &TagId, before: Millis) -> Tagged {
    let count = js::number(count);
    let ts = js::json_number(before.0 - 1.0);
    let text = format!(
        "{{\"role\":\"user\",\
         \"content\":\"[Sliding window truncation: {count} messages hidden to reduce context]\",\
         \"ts\":{ts},\"isTruncationMarker\":true,\"truncationId\":{}}}",
        id.json()
    );
    Tagged::parse(text.as_bytes()).expect("a marker is an object")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(count: usize) -> Vec<Tagged> {
        let message = |ts| Tagged::parse(format!(r#"{{"ts":{ts}}}"#).as_bytes()).unwrap();
        (0..count).map(message).collect()
    }

    #[test]
    fn nothing_to_hide_changes_nothing() {
        for (count, fraction) in [
            (0, 0.5),
            (1, 0.5),
            (4, 0.5),
            (9, 0.0),
            (9, -1.0),
            (9, f64::NAN),
        ] {
            let all = truncate(&plain(count), fraction, &TagId::new("t"), Millis(0.0));
            assert_eq!((all.messages.len(), all.reported), (count, 0.0));
        }
    }

    #[test]
    fn a_huge_fraction_hides_all_but_the_first() {
        let all = truncate(&plain(3), 1e30, &TagId::new("t"), Millis(10.0));
        let hidden = all
            .messages
            .iter()
            .filter(|m| m.parent(TagKind::Window).is_some());
        assert_eq!(hidden.count(), 2);
        let marker = String::from_utf8(all.messages[3].bytes().into_owned()).unwrap();
        assert!(marker.contains(": 2e+30 messages"), "{marker}");
        assert!(marker.contains("\"ts\":9,"), "{marker}");
    }

    #[test]
    fn a_negative_fraction_of_an_empty_list_adds_a_marker_as_in_roo_code() {
        let all = truncate(&[], -4.0, &TagId::new("t"), Millis(10.0));
        assert_eq!((all.messages.len(), all.reported), (1, 4.0));
    }
}
