//! The newest text, unchanged: of all messages, or of the user alone.

use infold_log::Role;

use super::count_tokens;
use crate::ParsedSession;

/// A token seldom has more bytes: of a long text only this much is read for each token.
const MAX_TOKEN_BYTES: usize = 32;

/// Returns the newest text of these messages, as much as fits into `budget` tokens.
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
        let said = &parsed.messages[*place];
        let text = said.words.text.trim();
        if said.role != Role::User || text.is_empty() {
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

/// Returns the longest end of a text with at most `most` tokens.
fn ending(text: &str, most: u64) -> &str {
    let far = text.len().saturating_sub(most as usize * MAX_TOKEN_BYTES);
    let near = &text[text.ceil_char_boundary(far)..];
    let starts: Vec<usize> = near.char_indices().map(|(at, _)| at).collect();
    let cut = starts.partition_point(|start| count_tokens(&near[*start..]) > most);
    starts.get(cut).map_or("", |start| &near[*start..])
}

/// Returns the longest beginning of a text with at most `most` tokens.
fn beginning(text: &str, most: u64) -> &str {
    let near = &text[..text.floor_char_boundary(most as usize * MAX_TOKEN_BYTES)];
    let ends: Vec<usize> = near
        .char_indices()
        .map(|(at, c)| at + c.len_utf8())
        .collect();
    let cut = ends.partition_point(|end| count_tokens(&near[..*end]) <= most);
    cut.checked_sub(1).map_or("", |last| &near[..ends[last]])
}
