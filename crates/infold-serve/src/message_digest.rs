//! Digests of messages, by which conversations are recognised, and of a task's path.

use infold_log::{Role, Seq, Span};
use infold_store::{Log, LogError};
use infold_wire::digest::{self, Digest};
use infold_wire::{Message, MessageError, secrets};
use memchr::memmem;

/// The properties by which a message is recognised.
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

/// The messages of a path that have content, in order, with their digests.
#[derive(Debug, Default)]
pub(crate) struct DigestPath {
    path: Vec<Span>,
    digests: Vec<(Seq, Digest)>,
    pieces: OutputPieces,
}

/// The pieces of the model's last output, which may continue. They are joined once, at their present end.
#[derive(Debug, Default)]
struct OutputPieces {
    bodies: Vec<Vec<u8>>,
    /// The number of pieces with content.
    count: usize,
    /// Pieces were added since they were joined.
    has_grown: bool,
}

impl MessageDigest {
    /// Digests a message in the form in which it is stored.
    pub fn of(bytes: &[u8]) -> Result<MessageDigest, MessageError> {
        let message = Message::read(bytes)?;
        let role = message.role();
        Ok(MessageDigest {
            digest: digest::digest_of(&message),
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

/// Returns the digest of pieces of output together, in the form in which they are stored.
pub(crate) fn join_pieces(pieces: &[&[u8]], redacts: bool) -> Result<Option<Digest>, MessageError> {
    if redacts {
        let stored = secrets::joined_without_secrets(pieces);
        return digest::joined_digest(stored.iter().map(|piece| &**piece));
    }
    digest::joined_digest(pieces.iter().copied())
}

impl DigestPath {
    /// Returns the digests up to a message that ends its output: the beginning of a fork from there.
    pub fn up_to(&self, seq: Seq) -> DigestPath {
        let count = self.digests.partition_point(|(at, _)| *at <= seq);
        let path = self.path.iter().filter(|run| run.from() <= seq);
        let path = path.filter_map(|run| Span::new(run.from(), run.to().min(seq)));
        DigestPath {
            path: path.collect(),
            digests: self.digests[..count].to_vec(),
            pieces: OutputPieces::default(),
        }
    }

    /// Brings the digests up to date with the log and returns them. Reads only the messages appended since, unless the
    /// path changed before its end.
    pub fn follow(&mut self, log: &Log) -> Result<&[(Seq, Digest)], LogError> {
        if let Err(error) = self.extend(log) {
            // A part of the digests would pass for all of them.
            *self = DigestPath::default();
            return Err(error);
        }
        Ok(&self.digests)
    }

    fn extend(&mut self, log: &Log) -> Result<(), LogError> {
        let path = log.state().shown().path();
        if self.digests.is_empty() || !continues(&self.path, &path) {
            *self = DigestPath::default();
        }
        let known = self.path.last().map(|run| run.to());
        let new = path.iter().flat_map(|run| {
            let from = known.map_or(run.from(), |known| run.from().max(known.next()));
            Span::new(from, run.to())
        });
        for run in new {
            let DigestPath {
                digests, pieces, ..
            } = self;
            log.each_message(run, &mut |source, bytes| {
                let Some(seq) = source.seq() else {
                    return Ok(());
                };
                let bytes = &*log.without_secrets(bytes);
                let message = MessageDigest::of_stored(log, seq, bytes)?;
                if message.is_piece {
                    pieces.bodies.push(bytes.to_vec());
                } else {
                    pieces.join(log, digests)?;
                    *pieces = OutputPieces::default();
                }
                // The system prompt comes with every request, and may differ each time.
                let is_prompt = message.is_system && digests.is_empty();
                let Some(digest) = message.digest.filter(|_| !is_prompt) else {
                    return Ok(());
                };
                if message.is_piece {
                    if pieces.count > 0 {
                        digests.pop();
                    }
                    pieces.count += 1;
                    pieces.has_grown = !message.is_joined;
                }
                digests.push((seq, digest));
                Ok(())
            })?;
        }
        self.pieces.join(log, &mut self.digests)?;
        self.path = path;
        Ok(())
    }
}

impl OutputPieces {
    /// Replaces the digest of the last piece by that of all pieces together.
    fn join(&mut self, log: &Log, digests: &mut [(Seq, Digest)]) -> Result<(), LogError> {
        if std::mem::take(&mut self.has_grown)
            && self.count > 1
            && let Some((_, digest)) = digests.last_mut()
        {
            let pieces: Vec<&[u8]> = self.bodies.iter().map(Vec::as_slice).collect();
            let joined = join_pieces(&pieces, log.redacts());
            let joined = joined.map_err(|error| damaged(log, &error))?;
            *digest = joined.unwrap_or(*digest);
        }
        Ok(())
    }
}

/// Says whether a path begins with another one.
fn continues(before: &[Span], now: &[Span]) -> bool {
    let Some((last, rest)) = before.split_last() else {
        return true;
    };
    let same = now.len() > rest.len() && now[..rest.len()] == *rest;
    same && now
        .get(rest.len())
        .is_some_and(|run| run.from() == last.from() && run.to() >= last.to())
}
