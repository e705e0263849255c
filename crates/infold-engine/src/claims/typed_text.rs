//! Reads the words of a message that a person typed.

use infold_log::Role;
use infold_wire::acts::{Deed, deeds};
use infold_wire::{Message, Typist};

/// Appends what the user typed in a message: a request without what their agent injected, or the reason why a call was
/// rejected. The typist must see the messages in order.
pub fn append_typed_text(typist: &mut Typist, message: &Message<'_>, out: &mut String) {
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
