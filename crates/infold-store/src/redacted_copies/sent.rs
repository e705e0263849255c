//! Messages that a client sent, and what they are known by.

use infold_log::Role;
use infold_wire::redact::visit_texts;
use infold_wire::{Message, MessageError, digest};

use crate::stored::Original;

/// Messages of a client, and what they are known by.
pub struct SentMessages {
    pub bodies: Vec<Vec<u8>>,
    pub digests: Vec<Original>,
    /// How many messages stand before the last one of the model.
    pub answered: usize,
}

impl SentMessages {
    pub fn read(bodies: Vec<Vec<u8>>) -> Result<SentMessages, MessageError> {
        let mut digests = Vec::with_capacity(bodies.len());
        let (mut answered, mut first_piece) = (0, None);
        for (at, body) in bodies.iter().enumerate() {
            let message = Message::read(body)?;
            if message.role() == Role::Assistant {
                answered = at;
            }
            // Pieces of one output are known by what they say together.
            digests.push(if digest::may_be_partial_output(&message) {
                let from = *first_piece.get_or_insert(at);
                digest::joined_digest(bodies[from..=at].iter().map(Vec::as_slice))?
            } else {
                first_piece = None;
                digest::digest_of(&message)
            });
        }
        Ok(SentMessages {
            bodies,
            digests,
            answered,
        })
    }

    /// Returns how many bytes of text a message has.
    pub fn text_bytes(&self, at: usize) -> usize {
        let mut bytes = 0;
        let counted = visit_texts(&self.bodies[at], &mut |text| bytes += text.len());
        counted.map_or(0, |()| bytes)
    }
}

/// Marks the pieces of an output that follow a redacted one: they are known by what all of them say together.
pub fn mark_following_pieces(
    messages: &[Vec<u8>],
    digests: &[Original],
    originals: &mut [Option<Original>],
) -> Result<(), MessageError> {
    let mut is_marked = false;
    for (at, message) in messages.iter().enumerate() {
        if !digest::may_be_partial_output(&Message::read(message)?) {
            is_marked = false;
            continue;
        }
        is_marked |= originals[at].is_some();
        if is_marked {
            originals[at].get_or_insert(digests[at]);
        }
    }
    Ok(())
}
