//! Reads the words of a message that a person typed.

use infold_log::Role;
use infold_wire::tool_action::{MessageAction, message_actions};
use infold_wire::{Message, TypedTextFilter};

/// Appends the text that the user typed in a message: a request without the text that their agent injected, or the
/// reason of a rejected call. The filter must get the messages in order.
pub fn append_typed_text(typist: &mut TypedTextFilter, message: &Message<'_>, out: &mut String) {
    for deed in message_actions(message) {
        let typed = match &deed {
            MessageAction::Text(text) if message.role() == Role::User => typist.text(text),
            MessageAction::Result(given) => typist.result(&given.text),
            MessageAction::Text(_) | MessageAction::Call(_) => None,
        };
        if let Some(typed) = typed {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(&typed);
        }
    }
}
