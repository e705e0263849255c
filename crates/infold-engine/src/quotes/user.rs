//! The words of a message that a person typed.

use infold_log::Role;
use infold_wire::acts::{Deed, deeds};
use infold_wire::{Message, Typist};

/// Appends what the user typed in a message: all of a request but what their agent put in, and why a call was turned
/// down. The typist sees the messages in order.
pub fn user_words(typist: &mut Typist, message: &Message<'_>, out: &mut String) {
    for deed in deeds(message) {
        let typed = match &deed {
            Deed::Said(text) if message.role() == Role::User => typist.text(text),
            Deed::Given(given) => typist.result(&given.text),
            Deed::Said(_) | Deed::Called(_) => None,
        };
        if let Some(typed) = typed {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(&typed);
        }
    }
}
