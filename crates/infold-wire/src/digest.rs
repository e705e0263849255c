//! Digests of messages, normalised, and of conversations.
//!
//! A client rewrites a reply before it sends it back: members in another order, reasoning left
//! out, cache markers moved, a text as a block. The digest of a message stays the same through all of
//! this, and changes with its content.
//!
//! ```
//! use infold_wire::digest::{chain_digest, empty_chain, message_digest};
//!
//! let one = message_digest(br#"{"role":"user","content":"hello"}"#)?;
//! let other = message_digest(br#"{"content":[{"type":"text","text":"hello\n"}],"role":"user"}"#)?;
//! assert_eq!(one, other);
//! let conversation = one.into_iter().fold(empty_chain(), chain_digest);
//! assert_ne!(conversation, empty_chain());
//! # Ok::<(), infold_wire::MessageError>(())
//! ```

mod writer;

use std::collections::HashSet;

use infold_log::Role;

use crate::message::{Form, Item};
use crate::neutral::{NeutralBlock, NeutralMessage};
use crate::{Json, Message, MessageError};

use writer::DigestWriter;

/// The digest of a message, or of a chain of them.
pub type Digest = [u8; 16];

/// Returns the digest of a conversation without messages. It changes when the normal form does.
pub const fn empty_chain() -> Digest {
    *b"infold normal 1\0"
}

/// Returns the chain digest of a conversation with one more message.
pub fn chain_digest(before: Digest, next: Digest) -> Digest {
    let mut both = [0; 32];
    both[..16].copy_from_slice(&before);
    both[16..].copy_from_slice(&next);
    writer::truncate_hash(&blake3::hash(&both))
}

/// Returns the digest of a message: equal for a reply as it was recorded and as its client sends it back. `None` if it
/// is empty, or has only reasoning.
///
/// It covers the role; texts without surrounding white space; calls and results with their ids, names and values;
/// images; blocks of unknown types.
pub fn message_digest(message: &[u8]) -> Result<Option<Digest>, MessageError> {
    joined_digest([message])
}

/// Returns the digest of messages that make up one, with the role of the first.
pub fn joined_digest<'a>(
    messages: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Option<Digest>, MessageError> {
    let mut writer: Option<DigestWriter> = None;
    for message in messages {
        write_message(&Message::read(message)?, &mut writer);
    }
    Ok(writer.and_then(DigestWriter::finish))
}

/// Returns the digest of a message that was read.
pub fn digest_of(message: &Message<'_>) -> Option<Digest> {
    let mut writer = None;
    write_message(message, &mut writer);
    writer.and_then(DigestWriter::finish)
}

/// Returns the digest of a JSON value: members in any order, numbers and texts in any notation.
pub fn value_digest(value: Json<'_>) -> Digest {
    let mut writer = DigestWriter::new(b'v', value.bytes().len());
    writer.value(value, |_, _| false);
    writer.finish().unwrap_or_default()
}

/// Returns the digest that a message has if its calls have no ids.
pub fn digest_without_ids(message: &Message<'_>) -> Option<Digest> {
    let mut neutral = NeutralMessage::of(message);
    for block in &mut neutral.blocks {
        if let NeutralBlock::Call(id, ..) = block {
            *id = NO_ID.into();
        }
    }
    let mut writer = None;
    write_neutral(&neutral, message, &mut writer);
    writer.and_then(DigestWriter::finish)
}

/// The id of a call that has none.
const NO_ID: &str = "\"\"";

fn write_message(message: &Message<'_>, writer: &mut Option<DigestWriter>) {
    if message.form() == Form::Item(Item::Reasoning) {
        return;
    }
    write_neutral(&NeutralMessage::of(message), message, writer);
}

fn write_neutral(
    neutral: &NeutralMessage<'_>,
    message: &Message<'_>,
    writer: &mut Option<DigestWriter>,
) {
    let role = match neutral.role {
        Role::System => b's',
        Role::Assistant => b'a',
        Role::User | Role::Tool => b'u',
    };
    let writer = writer.get_or_insert_with(|| DigestWriter::new(role, message.bytes().len()));
    write_blocks(&neutral.blocks, message.form(), writer);
}

/// Returns whether a message may be one of several that make up an output.
///
/// Some clients of Gemini send each chunk of a streamed reply back as a message.
pub fn may_be_partial_output(message: &Message<'_>) -> bool {
    message.form() == Form::Content && message.role() == Role::Assistant
}

fn write_blocks(blocks: &[NeutralBlock<'_>], form: Form, writer: &mut DigestWriter) {
    // Gemini's clients keep the ids of calls or drop them; order and names distinguish calls.
    let has_ids = form != Form::Content;
    let mut results = HashSet::new();
    for block in blocks {
        match block {
            // One of its clients sends results twice.
            NeutralBlock::Result { .. } if !has_ids && !results.insert(block) => {}
            NeutralBlock::Text(text) => writer.text(checked(text)),
            NeutralBlock::Thinking(..) => {}
            NeutralBlock::Call(id, name, arguments) => {
                writer.tag(b'c');
                if has_ids {
                    writer.string(checked(id));
                }
                writer.string(checked(name));
                writer.value(checked(arguments), |_, _| false);
            }
            NeutralBlock::Result {
                id,
                name,
                content,
                failed,
            } => {
                writer.tag(if *failed { b'f' } else { b'r' });
                let by_id = has_ids && id != NO_ID;
                writer.string(checked(if by_id { id } else { name }));
                match &content[..] {
                    [NeutralBlock::Text(text)] if form == Form::Content => {
                        write_object_or_text(text, writer)
                    }
                    content => write_blocks(content, form, writer),
                }
                writer.tag(b'e');
            }
            NeutralBlock::Image(kind, data) => {
                writer.tag(b'i');
                writer.string(checked(kind));
                writer.string(checked(data));
            }
            NeutralBlock::Link(url) => {
                writer.tag(b'l');
                writer.string(checked(url));
            }
            NeutralBlock::Other(raw) => write_unknown(checked(raw), form, writer),
        }
    }
}

/// Returns a value of a message, which was parsed before.
fn checked(raw: &str) -> Json<'_> {
    Json::checked(raw.as_bytes())
}

/// Writes the text of a Gemini result; if it is that of an object, as the object.
fn write_object_or_text(text: &str, writer: &mut DigestWriter) {
    let inner = checked(text).text().unwrap_or_default();
    let is_object = inner.starts_with(['{', '[']);
    match Json::parse(inner.as_bytes()).ok().filter(|_| is_object) {
        Some(object) => writer.value(object, |_, _| false),
        None => writer.text(checked(text)),
    }
}

/// Members of a block that a client may drop or a provider adds.
const VOLATILE_MEMBERS: &str = "citations annotations signature thoughtSignature thought_signature";

fn write_unknown(block: Json<'_>, form: Form, writer: &mut DigestWriter) {
    let kind = block.get("type").map(Json::name).unwrap_or_default();
    if matches!(
        &*kind,
        b"redacted_thinking" | b"reasoning" | b"reasoning_text"
    ) {
        return;
    }
    writer.tag(b'o');
    // The service names its items; a client that does not let it store them drops the ids.
    // A reference is nothing but its id.
    let drops_ids = matches!(form, Form::Item(_)) && *kind != *b"item_reference";
    writer.value(block, |name, depth| {
        let mut volatile = VOLATILE_MEMBERS.split_ascii_whitespace();
        name == b"cache_control"
            || depth == 0
                && (volatile.any(|member| member.as_bytes() == name)
                    || drops_ids && matches!(name, b"id" | b"status"))
    });
}

#[cfg(test)]
mod tests;
