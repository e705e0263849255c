//! The newest text as it was: of everything, or of the user alone.

use infold_log::Role;

use super::super::Material;
use super::size;

/// A token has seldom more bytes: only so much of a long text is looked at for each token.
const MAX_TOKEN_BYTES: usize = 32;

/// The newest text of these messages, as much as has so many tokens.
pub fn truncation(material: &Material, covers: &[usize], budget: u64) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut room = budget;
    for place in covers.iter().rev() {
        let text = material.messages[*place].text();
        let end = ending(&text, room.saturating_sub(1));
        room = room.saturating_sub(size(end) + 1);
        texts.push(end.to_owned());
        if end.len() < text.len() {
            break;
        }
    }
    texts.reverse();
    texts.join("\n").trim().to_owned()
}

/// What the user said in these messages, the newest first, as much as has so many tokens.
pub fn requests(material: &Material, covers: &[usize], budget: u64) -> String {
    let mut texts: Vec<&str> = Vec::new();
    let mut room = budget;
    for place in covers.iter().rev() {
        let said = &material.messages[*place];
        let text = said.words.said.trim();
        if said.role != Role::User || text.is_empty() {
            continue;
        }
        let front = beginning(text, room.saturating_sub(1));
        room = room.saturating_sub(size(front) + 1);
        texts.push(front);
        if front.len() < text.len() {
            break;
        }
    }
    texts.join("\n").trim().to_owned()
}

/// The longest end of a text that has at most so many tokens.
fn ending(text: &str, most: u64) -> &str {
    let far = text.len().saturating_sub(most as usize * MAX_TOKEN_BYTES);
    let near = &text[text.ceil_char_boundary(far)..];
    let starts: Vec<usize> = near.char_indices().map(|(at, _)| at).collect();
    let cut = starts.partition_point(|start| size(&near[*start..]) > most);
    starts.get(cut).map_or("", |start| &near[*start..])
}

/// The longest beginning of a text that has at most so many tokens.
fn beginning(text: &str, most: u64) -> &str {
    let near = &text[..text.floor_char_boundary(most as usize * MAX_TOKEN_BYTES)];
    let ends: Vec<usize> = near
        .char_indices()
        .map(|(at, c)| at + c.len_utf8())
        .collect();
    let cut = ends.partition_point(|end| size(&near[..*end]) <= most);
    cut.checked_sub(1).map_or("", |last| &near[..ends[last]])
}
