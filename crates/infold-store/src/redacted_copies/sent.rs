//! Messages that a client sent, and the keys by which they are recognised.

use infold_log::{Role, Seq};
use infold_wire::digest::Digest;
use infold_wire::redact::{message_parts, visit_texts};
use infold_wire::{Message, MessageError, digest};

use crate::redacted_digests::{MIN_DISTINCT_BYTES, has_code, part_digest};
use crate::stored::Original;

/// Messages with so many bytes around their texts hold images or the like, which are not repeated by chance.
const MIN_MEDIA_BYTES: usize = 512;

/// Messages of a client, and the keys by which they are recognised.
pub struct SentMessages {
    pub bodies: Vec<Vec<u8>>,
    pub digests: Vec<Original>,
    /// The number of messages before the last one of the model.
    pub answered: usize,
}

/// The digests by which a message is recognised.
#[derive(Clone, Debug, Default)]
pub struct MessageKey {
    pub seq: Option<Seq>,
    pub digest: Original,
    /// The digests and lengths of its parts, whatever their ids and their API.
    pub parts: Vec<(Digest, usize)>,
}

/// How much a text or a message says.
#[derive(Clone, Copy, Debug)]
pub struct Weight {
    pub bytes: usize,
    /// Whether the text is too distinctive to be repeated by chance.
    pub is_distinct: bool,
}

impl Weight {
    pub fn of(text: &str) -> Weight {
        Weight {
            bytes: text.len(),
            is_distinct: crate::redacted_digests::is_distinct(text),
        }
    }
}

impl MessageKey {
    pub fn of(message: &[u8], digest: Original) -> MessageKey {
        let parts = message_parts(message).unwrap_or_default().into_iter();
        let parts = parts.filter_map(|part| Some((part_digest(part.text())?, part.text().len())));
        MessageKey {
            seq: None,
            digest,
            parts: parts.collect(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.digest.is_none()
    }

    /// Returns how many bytes of it stand in one of the others too; none if nothing does.
    pub fn shared_bytes(&self, others: &[&MessageKey]) -> Option<usize> {
        let is_same = |other: &&MessageKey| self.digest.is_some() && self.digest == other.digest;
        let is_whole = others.iter().any(is_same);
        let is_shared = |part: &&(Digest, usize)| {
            let mut parts = others.iter().flat_map(|other| &other.parts);
            is_whole || parts.any(|(digest, _)| *digest == part.0)
        };
        let shared: Vec<usize> = self
            .parts
            .iter()
            .filter(is_shared)
            .map(|part| part.1)
            .collect();
        (is_whole || !shared.is_empty()).then(|| shared.iter().sum())
    }
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
            // Pieces of one output are recognised by their joined content.
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

    /// Returns whether a message was answered: then the client repeats it from its history.
    pub fn is_old(&self, at: usize) -> bool {
        at < self.answered
    }

    /// Returns how much a message says.
    pub fn weight(&self, at: usize) -> Weight {
        let (mut bytes, mut is_code) = (0, false);
        let counted = visit_texts(&self.bodies[at], &mut |text| {
            bytes += text.len();
            is_code |= has_code(text);
        });
        if counted.is_err() {
            bytes = 0;
        }
        let has_media = self.bodies[at].len().saturating_sub(bytes) >= MIN_MEDIA_BYTES;
        Weight {
            bytes,
            is_distinct: bytes >= MIN_DISTINCT_BYTES || is_code || has_media,
        }
    }

    /// Returns the key of a message.
    pub fn key(&self, at: usize) -> MessageKey {
        MessageKey::of(&self.bodies[at], self.digests[at])
    }

    /// Returns the key of the nearest message with content before one, if one was sent.
    pub fn key_before(&self, at: usize) -> Option<MessageKey> {
        let before = (0..at).rev().find(|at| self.digests[*at].is_some());
        before.map(|before| self.key(before))
    }

    /// The same of the nearest one behind it.
    pub fn key_behind(&self, at: usize) -> Option<MessageKey> {
        let mut behind = at + 1..self.bodies.len();
        let behind = behind.find(|at| self.digests[*at].is_some());
        behind.map(|behind| self.key(behind))
    }
}

/// Marks the pieces of an output that follow a redacted one: they are recognised by the joined content of all
/// of them.
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
