//! The digests of the messages on a task's path, kept up to date as the log grows.

use infold_log::{Seq, Span};
use infold_store::{Log, LogError};
use infold_wire::digest::Digest;

use crate::digest_cache::{MessageDigest, damaged, join_pieces};

/// The messages of a path that have content, in order, with their digests.
#[derive(Debug, Default)]
pub(crate) struct DigestPath {
    path: Vec<Span>,
    digests: Vec<(Seq, Digest)>,
    pieces: OutputPieces,
}

/// The pieces of the model's last output, which may go on. They are joined once, at their present end.
#[derive(Debug, Default)]
struct OutputPieces {
    bodies: Vec<Vec<u8>>,
    /// How many of them have content.
    count: usize,
    /// Some came since they were joined.
    has_grown: bool,
}

impl DigestPath {
    /// Returns the part up to a message that ends its output: what a fork from there begins with.
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

    /// Brings the digests up to date with the log and returns them. Reads only what was appended since, unless the path
    /// changed before its end.
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
