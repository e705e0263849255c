//! What a message says, whoever writes it down.
//!
//! A client sends a reply back in its own hand: members in another order, reasoning left
//! out, cache markers moved, a text as a block. The digest of a message is that of what is
//! said: it stays the same through all of this, and nothing else.
//!
//! ```
//! use infold_wire::normal::{chain, digest, root};
//!
//! let one = digest(br#"{"role":"user","content":"hello"}"#)?;
//! let other = digest(br#"{"content":[{"type":"text","text":"hello\n"}],"role":"user"}"#)?;
//! assert_eq!(one, other);
//! let conversation = one.into_iter().fold(root(), chain);
//! assert_ne!(conversation, root());
//! # Ok::<(), infold_wire::MessageError>(())
//! ```

mod ink;

use std::collections::HashSet;

use infold_log::Role;

use crate::message::{Form, Item};
use crate::said::{Block, Said};
use crate::{Json, Kind, Message, MessageError};

use ink::Ink;

/// The digest of a message, or of a chain of them.
pub type Digest = [u8; 16];

/// The chain that no message is in. Its words change when the normal form does.
pub const fn root() -> Digest {
    *b"infold normal 1\0"
}

/// The chain that goes on with a message.
pub fn chain(before: Digest, next: Digest) -> Digest {
    let mut both = [0; 32];
    both[..16].copy_from_slice(&before);
    both[16..].copy_from_slice(&next);
    ink::short(&blake3::hash(&both))
}

/// The digest of what a message says: equal for a reply as it was recorded and as its client
/// sends it back. None if it says nothing that comes back: reasoning alone, or nothing.
///
/// What counts: who speaks; texts, white space around them aside; calls and results with
/// their ids, names and values; images; blocks that nobody knows.
pub fn digest(message: &[u8]) -> Result<Option<Digest>, MessageError> {
    joined([message])
}

/// The digest of what messages say together, the first of which says who speaks.
pub fn joined<'a>(
    messages: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Option<Digest>, MessageError> {
    let mut ink: Option<Ink> = None;
    for message in messages {
        let message = Message::read(message)?;
        if message.form() == Form::Item(Item::Reasoning) {
            continue;
        }
        let said = Said::of(&message);
        let role = match said.role {
            Role::System => b's',
            Role::Assistant => b'a',
            Role::User | Role::Tool => b'u',
        };
        let ink = ink.get_or_insert_with(|| Ink::new(role, message.bytes().len()));
        put(&said.blocks, message.form(), ink);
    }
    Ok(ink.and_then(Ink::dry))
}

/// Says whether a message may be one of several that make up what a model said.
///
/// A client of Gemini that was answered in pieces sends each of them back as a message.
pub fn is_piece(message: &Message<'_>) -> bool {
    message.form() == Form::Content && message.role() == Role::Assistant
}

fn put(blocks: &[Block<'_>], form: Form, ink: &mut Ink) {
    // Gemini's clients keep the ids of calls or drop them; order and names tell calls apart.
    let has_ids = form != Form::Content;
    let mut results = HashSet::new();
    for block in blocks {
        match block {
            // One of its clients sends results twice.
            Block::Result { .. } if !has_ids && !results.insert(block) => {}
            Block::Text(text) => ink.text(string(text)),
            Block::Thinking(..) => {}
            Block::Call(id, name, arguments) => {
                ink.tag(b'c');
                if has_ids {
                    ink.string(string(id));
                }
                ink.string(string(name));
                ink.value(string(arguments), |_, _| false);
            }
            Block::Result {
                id,
                name,
                content,
                failed,
            } => {
                ink.tag(if *failed { b'f' } else { b'r' });
                let by_id = has_ids && id != "\"\"";
                ink.string(string(if by_id { id } else { name }));
                match &content[..] {
                    [Block::Text(text)] if form == Form::Content => object_or_text(text, ink),
                    content => put(content, form, ink),
                }
                ink.tag(b'e');
            }
            Block::Image(kind, data) => {
                ink.tag(b'i');
                ink.string(string(kind));
                ink.string(string(data));
            }
            Block::Link(url) => {
                ink.tag(b'l');
                ink.string(string(url));
            }
            Block::Other(raw) => other(string(raw), form, ink),
        }
    }
}

/// A value that was part of a message, so it has been parsed.
fn string(raw: &str) -> Json<'_> {
    Json::checked(raw.as_bytes())
}

/// Gemini's results are objects; one of more than a text is here as the text of it.
fn object_or_text(text: &str, ink: &mut Ink) {
    let inner = string(text).text().unwrap_or_default();
    let is_object = inner.starts_with(['{', '[']);
    match Json::parse(inner.as_bytes()).ok().filter(|_| is_object) {
        Some(object) => ink.value(object, |_, _| false),
        None => ink.text(string(text)),
    }
}

/// Members of a block that a client may drop or a provider adds.
const MARKS: [&[u8]; 5] = [
    b"citations",
    b"annotations",
    b"signature",
    b"thoughtSignature",
    b"thought_signature",
];

/// A block of which nothing is known but that it is one.
fn other(block: Json<'_>, form: Form, ink: &mut Ink) {
    let kind = block.get("type").filter(|kind| kind.kind() == Kind::String);
    let kind = kind.map(Json::name).unwrap_or_default();
    if matches!(
        &*kind,
        b"redacted_thinking" | b"reasoning" | b"reasoning_text"
    ) {
        return;
    }
    ink.tag(b'o');
    let is_mark =
        |name: &[u8], depth| name == b"cache_control" || depth == 0 && MARKS.contains(&name);
    // The service names its items; a client that does not let it keep them drops the names.
    // A reference is nothing but the name.
    match form {
        Form::Item(_) if *kind != *b"item_reference" => ink.value(block, |name, depth| {
            is_mark(name, depth) || depth == 0 && matches!(name, b"id" | b"status")
        }),
        _ => ink.value(block, is_mark),
    }
}

#[cfg(test)]
mod tests;
