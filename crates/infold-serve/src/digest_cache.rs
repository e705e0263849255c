//! Digests of messages, by which conversations are recognised, and a cache of them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::Mutex;

use foldhash::quality::RandomState;
use infold_log::{Role, Seq};
use infold_store::{Log, LogError};
use infold_wire::digest::{self, Digest};
use infold_wire::{Message, MessageError, secrets};
use memchr::memmem;

use crate::{ConversationName, locked};

/// What is known of a message for recognising it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageDigest {
    /// The digest of its content; none if no client would send it back.
    pub digest: Option<Digest>,
    /// The model wrote it.
    pub is_reply: bool,
    /// It is a system prompt, or part of one.
    pub is_system: bool,
    /// It may be one of several pieces of the model's output.
    pub is_piece: bool,
    /// The digest includes the pieces before it, because one of them was redacted.
    pub is_joined: bool,
}

/// Digests of messages that were seen lately, by a hash of their bytes.
///
/// A client sends its whole history with every request, so almost all messages of a request were seen before.
#[derive(Debug, Default)]
pub(crate) struct DigestCache {
    /// Secrets are replaced before a message is digested, as they are before it is stored.
    redacts: bool,
    /// Two seeded 64-bit hashes form one 128-bit key.
    hashers: [RandomState; 2],
    generations: Mutex<Generations>,
}

/// Two maps: what is used again moves to the young one, and the old one is dropped when the young one is full.
#[derive(Debug, Default)]
struct Generations {
    young: HashMap<u128, MessageDigest, RandomState>,
    old: HashMap<u128, MessageDigest, RandomState>,
}

const MAX_DIGESTS_PER_GENERATION: usize = 32 << 10;

impl MessageDigest {
    /// Digests a message in the form in which it is stored.
    pub fn of(bytes: &[u8]) -> Result<MessageDigest, MessageError> {
        let message = Message::read(bytes)?;
        let role = message.role();
        Ok(MessageDigest {
            digest: digest::message_digest(bytes)?,
            is_reply: role == Role::Assistant,
            is_system: role == Role::System,
            is_piece: digest::may_be_partial_output(&message),
            is_joined: false,
        })
    }

    /// Digests a message of a log. A message that was redacted since keeps the digest of its original content, so that it is
    /// recognised when the client sends it again.
    pub fn of_stored(log: &Log, seq: Seq, bytes: &[u8]) -> Result<MessageDigest, LogError> {
        // A message that was stored before secrets were replaced is recognised without them.
        let bytes = &*log.without_secrets(bytes);
        let message = MessageDigest::of(bytes).map_err(|error| damaged(log, &error))?;
        // A redacted message holds a marker; pieces that follow a redacted one are marked in the log only.
        if !message.is_piece && memmem::find(bytes, b"[redacted e").is_none() {
            return Ok(message);
        }
        Ok(match log.redacted(seq)? {
            Some(digest) => MessageDigest {
                digest,
                is_joined: message.is_piece,
                ..message
            },
            None => message,
        })
    }
}

pub(crate) fn damaged(log: &Log, error: &MessageError) -> LogError {
    LogError::damaged(&log.dir().join("messages.jsonl"), 0, error.to_string())
}

impl DigestCache {
    pub fn new(redacts: bool) -> DigestCache {
        DigestCache {
            redacts,
            ..DigestCache::default()
        }
    }

    /// Returns a message in the form in which it is stored.
    pub fn stored_form<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let redacted = self
            .redacts
            .then(|| secrets::without_secrets(bytes))
            .flatten();
        redacted.map_or(Cow::Borrowed(bytes), Cow::Owned)
    }

    /// Returns a name in the form in which it is stored.
    pub fn stored_name(&self, name: ConversationName) -> ConversationName {
        if self.redacts && secrets::text_without_secrets(name.text()).is_some() {
            name.redacted()
        } else {
            name
        }
    }

    /// Returns the digest of pieces of output together.
    pub fn join(&self, pieces: &[&[u8]]) -> Result<Option<Digest>, MessageError> {
        join_pieces(pieces, self.redacts)
    }

    /// Returns the digest of a message.
    pub fn digest(&self, bytes: &[u8]) -> Result<MessageDigest, MessageError> {
        let [one, other] = &self.hashers;
        let key = u128::from(one.hash_one(bytes)) << 64 | u128::from(other.hash_one(bytes));
        if let Some(digest) = locked(&self.generations).get(key) {
            return Ok(digest);
        }
        let digest = MessageDigest::of(&self.stored_form(bytes))?;
        locked(&self.generations).insert(key, digest);
        Ok(digest)
    }
}

/// Returns the digest of pieces of output together, in the form in which they are stored.
pub(crate) fn join_pieces(pieces: &[&[u8]], redacts: bool) -> Result<Option<Digest>, MessageError> {
    if redacts {
        let stored = secrets::joined_without_secrets(pieces);
        return digest::joined_digest(stored.iter().map(|piece| &**piece));
    }
    digest::joined_digest(pieces.iter().copied())
}

impl Generations {
    fn get(&mut self, key: u128) -> Option<MessageDigest> {
        if let Some(digest) = self.young.get(&key) {
            return Some(*digest);
        }
        let digest = *self.old.get(&key)?;
        self.insert(key, digest);
        Some(digest)
    }

    fn insert(&mut self, key: u128, digest: MessageDigest) {
        if self.young.len() >= MAX_DIGESTS_PER_GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, digest);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// How long this thread has been running: others share the machine.
    fn spent() -> Duration {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let nanos = stat.split(' ').next().and_then(|nanos| nanos.parse().ok());
        Duration::from_nanos(nanos.unwrap_or(0))
    }

    #[test]
    fn a_message_is_looked_through_for_secrets_once() {
        let cache = DigestCache::new(true);
        let text = "the key to the house, ".repeat(400_000);
        let message = format!(r#"{{"role":"user","content":"{text}"}}"#);
        let took = || {
            let began = spent();
            let digest = cache.digest(message.as_bytes()).expect("it is a message");
            (digest, spent() - began)
        };
        let (first, again) = (took(), took());
        assert_eq!(first.0, again.0);
        assert!(again.1 * 4 < first.1, "{:?}, then {:?}", first.1, again.1);
    }
}
