use crate::{Fold, Millis, Role, Tagged};
use infold_wire::js;

/// Returns the messages from the last summary on, or all if there is none.
///
/// From a summary that no user said, the list begins with the very first
/// message if the user said that, else with a generic user message: some
/// providers insist on one. It is dated just before the very first message, or
/// `now` if that has no time or zero.
pub fn since_last_summary(messages: &[Tagged], now: Millis) -> Vec<Tagged> {
    let last = messages
        .iter()
        .rposition(|message| message.is_stand_in(Fold::Summary));
    let Some(last) = last else {
        return messages.to_vec();
    };
    let mut since = Vec::with_capacity(messages.len() - last + 1);
    if messages[last].role() != Role::User {
        since.push(opening(&messages[0], now));
    }
    since.extend_from_slice(&messages[last..]);
    since
}

fn opening(first: &Tagged, now: Millis) -> Tagged {
    if first.role() == Role::User {
        return first.clone();
    }
    let ts = first.ts().nonzero().map_or(now.0, |ts| ts.0 - 1.0);
    let text = format!(
        "{{\"role\":\"user\",\"content\":\"Please continue from the following summary:\",\
         \"ts\":{}}}",
        js::json_number(ts)
    );
    Tagged::parse(text.as_bytes()).expect("an opening is an object")
}
