//! Titles of conversations: the first words that a person typed.

use infold_log::Role;

use crate::tool_action::{MessageAction, message_actions};
use crate::{Message, TypedTextFilter};

const MAX_TITLE_CHARS: usize = 80;

/// Returns the title of the conversation that begins with a message; none if no person typed any of it.
///
/// The typist must get the messages in order.
pub fn title_of(typist: &mut TypedTextFilter, message: &Message<'_>) -> Option<String> {
    match message.role() {
        Role::User => {}
        Role::Assistant => {
            typist.reply();
            return None;
        }
        _ => return None,
    }
    message_actions(message)
        .into_iter()
        .find_map(|deed| match deed {
            MessageAction::Text(text) => shorten_title(&typist.text(&text)?),
            MessageAction::Result(_) | MessageAction::Call(_) => None,
        })
}

fn shorten_title(text: &str) -> Option<String> {
    let mut title = String::new();
    for word in text.split_whitespace() {
        let length = title.chars().count() + word.chars().count() + 1;
        if length > MAX_TITLE_CHARS {
            if title.is_empty() {
                title.extend(word.chars().take(MAX_TITLE_CHARS - 1));
            }
            title.push('…');
            break;
        }
        if !title.is_empty() {
            title.push(' ');
        }
        title.push_str(word);
    }
    (!title.is_empty()).then_some(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title(message: &str) -> Option<String> {
        let message = Message::parse(message.as_bytes()).expect("a message");
        title_of(&mut TypedTextFilter::default(), &message)
    }

    #[test]
    fn it_is_the_first_thing_that_was_typed() {
        let reminder = r#"{"role":"user","content":[{"type":"text","text":"<system-reminder>be good</system-reminder>"},{"type":"text","text":"Fix the\n  parser"}]}"#;
        assert_eq!(title(reminder).as_deref(), Some("Fix the parser"));
        let only = r#"{"role":"user","content":"<system-reminder>be good</system-reminder>"}"#;
        assert_eq!(title(only), None);
        assert_eq!(
            title(r#"{"role":"system","content":"You are good."}"#),
            None
        );
    }

    #[test]
    fn it_is_short() {
        let long = format!(
            r#"{{"role":"user","content":"{}"}}"#,
            "some words ".repeat(50)
        );
        let title_of_long = title(&long).expect("a title");
        assert!(title_of_long.chars().count() <= MAX_TITLE_CHARS);
        assert!(title_of_long.ends_with("words…") || title_of_long.ends_with("some…"));
        let one = format!(r#"{{"role":"user","content":"{}"}}"#, "ab".repeat(500));
        assert_eq!(
            title(&one).map(|one| one.chars().count()),
            Some(MAX_TITLE_CHARS)
        );
    }
}
