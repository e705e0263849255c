//! Selects the messages from the last summary on.

use infold_wire::js;

use crate::{Millis, TagKind, Tagged, TaggedRole};

/// Returns the messages from the last summary on, or all if there is none.
///
/// Some providers require a user message first. So unless the summary is one, the
/// very first message precedes it if it is from the user, else a generic user message,
/// dated just before the very first message, or `now` if that has no time or zero.
pub fn since_last_summary(messages: &[Tagged], now: Millis) -> Vec<Tagged> {
    let is_summary = |message: &Tagged| message.is_stand_in(TagKind::Summary);
    let Some(last) = messages.iter().rposition(is_summary) else {
        return messages.to_vec();
    };
    let mut since = Vec::with_capacity(messages.len() - last + 1);
    if messages[last].role() != TaggedRole::User {
        since.push(opening_message(&messages[0], now));
    }
    since.extend_from_slice(&messages[last..]);
    since
}

/// Returns the user message that precedes the summary: the first message of all if it is one, else a generic one.
fn opening_message(first: &Tagged, now: Millis) -> Tagged {
    if first.role() == TaggedRole::User {
        return first.clone();
    }
    let ts = js::json_number(first.ts().nonzero().map_or(now.0, |ts| ts.0 - 1.0));
    let text = format!(
        r#"{{"role":"user","content":"Please continue from the following summary:","ts":{ts}}}"#
    );
    Tagged::parse(text.as_bytes()).expect("an opening is an object")
}
