//! The newest text, unchanged: of all messages, or of the user alone.

use infold_log::Role;

use super::count_tokens;
use crate::ParsedSession;

/// The bytes of a long text that are read for each token of the budget: a token seldom has more.
const MAX_TOKEN_BYTES: usize = 32;

/// Returns the newest text of the folded messages, as much as fits into `budget` tokens. `covers` are the indexes of
/// these messages in the session.
pub fn truncation(parsed: &ParsedSession, covers: &[usize], budget: u64) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut room = budget;
    for place in covers.iter().rev() {
        let text = parsed.messages[*place].text();
        let end = ending(&text, room.saturating_sub(1));
        room = room.saturating_sub(count_tokens(end) + 1);
        texts.push(end.to_owned());
        if end.len() < text.len() {
            break;
        }
    }
    texts.reverse();
    texts.join("\n").trim().to_owned()
}

/// Returns the texts of the user in these messages, the newest first, as much as fits into `budget` tokens.
pub fn requests(parsed: &ParsedSession, covers: &[usize], budget: u64) -> String {
    let mut texts: Vec<&str> = Vec::new();
    let mut room = budget;
    for place in covers.iter().rev() {
        let message = &parsed.messages[*place];
        let text = message.words.text.trim();
        if message.role != Role::User || text.is_empty() {
            continue;
        }
        let front = beginning(text, room.saturating_sub(1));
        room = room.saturating_sub(count_tokens(front) + 1);
        texts.push(front);
        if front.len() < text.len() {
            break;
        }
    }
    texts.join("\n").trim().to_owned()
}

/// Returns the longest end of a text with at most `max_tokens` tokens, by binary search.
fn ending(text: &str, max_tokens: u64) -> &str {
    let from = text
        .len()
        .saturating_sub(max_tokens as usize * MAX_TOKEN_BYTES);
    let text = &text[text.ceil_char_boundary(from)..];
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let cut = starts.partition_point(|start| count_tokens(&text[*start..]) > max_tokens);
    starts.get(cut).map_or("", |start| &text[*start..])
}

/// Returns the longest beginning of a text with at most `max_tokens` tokens, by binary search.
fn beginning(text: &str, max_tokens: u64) -> &str {
    let text = &text[..text.floor_char_boundary(max_tokens as usize * MAX_TOKEN_BYTES)];
    let ends: Vec<usize> = text
        .char_indices()
        .map(|(at, c)| at + c.len_utf8())
        .collect();
    let cut = ends.partition_point(|end| count_tokens(&text[..*end]) <= max_tokens);
    cut.checked_sub(1).map_or("", |last| &text[..ends[last]])
}
