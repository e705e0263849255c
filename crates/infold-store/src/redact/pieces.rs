//! Pieces of one output, of which some are redacted.

use infold_wire::{Message, MessageError, digest};

/// Consecutive messages that a client may send as pieces of one output: they are recognised by their joined
/// content, which cannot be computed any more once one of them is redacted. So each from there on is marked
/// with the digest of the content up to it.
#[derive(Default)]
pub struct Pieces {
    bodies: Vec<Vec<u8>>,
    is_marked: bool,
}

impl Pieces {
    /// Returns the digest of the next message, if it is to be marked.
    pub fn original(
        &mut self,
        body: &[u8],
        is_gone: bool,
    ) -> Result<Option<Option<digest::Digest>>, MessageError> {
        if !digest::may_be_partial_output(&Message::read(body)?) {
            *self = Pieces::default();
            return Ok(if is_gone {
                Some(digest::message_digest(body)?)
            } else {
                None
            });
        }
        self.bodies.push(body.to_vec());
        self.is_marked |= is_gone;
        Ok(if self.is_marked {
            Some(digest::joined_digest(
                self.bodies.iter().map(Vec::as_slice),
            )?)
        } else {
            None
        })
    }
}
