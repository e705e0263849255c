//! A task that this server has open, with its cached state.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::Instant;

use infold::manage::PreparedFold;
use infold_log::{Past as _, Role, Seq, Span};
use infold_store::{Log, LogError, ToolsShownLine, Writer};
use infold_wire::digest::Digest;
use uuid::Uuid;

use crate::conversations::BuiltContext;
use crate::message_digest::DigestPath;
use crate::message_digest::{MessageDigest, damaged, join_pieces};

/// A task that this server writes to.
#[derive(Debug)]
pub(crate) struct OpenTask {
    pub id: Uuid,
    pub writer: Writer,
    /// The digests of its messages, as far as they were read.
    pub path: DigestPath,
    /// The known names of the task in the conversation index.
    pub names: Vec<String>,
    /// A prefetched summary.
    pub prepared: Option<PreparedFold>,
    /// A summary is being written for it.
    pub is_preparing: bool,
    /// A provider refused it folded and accepted it as the client wrote it.
    pub fold_refused: bool,
    /// The tools that the model was shown last, if known.
    pub tools_shown: Option<ToolsShownLine>,
    /// The documents of its layered state that requests showed last.
    pub context: Option<BuiltContext>,
    /// The last message that a client sent: later ones were added by a person.
    pub last_from_client: Option<Seq>,
    /// Something was written that is not settled yet.
    pub is_unsettled: bool,
    /// The number of batches of rows that the conversation index got since the task was opened.
    pub indexed_batches: u32,
    /// The number of file descriptors that the task may need.
    pub descriptors: u64,
    /// When it was last used.
    pub used: Instant,
    /// Digests of messages that were read lately.
    recent: RefCell<VecDeque<(Seq, MessageDigest)>>,
}

/// The number of cached digests: the next request is compared with the last messages.
const MAX_RECENT_DIGESTS: usize = 8;

/// The messages that follow a given message on its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Continuation {
    /// Nothing with content: the message is the tip.
    Nothing,
    /// Output of the model, and no more.
    Reply,
    /// The client's answer to that reply, and no further reply.
    Unanswered,
    /// More than that.
    More,
    /// A rewind hid the message.
    OffPath,
}

impl OpenTask {
    /// Returns a task that was opened just now.
    pub fn new(id: Uuid, writer: Writer) -> OpenTask {
        OpenTask {
            id,
            writer,
            path: DigestPath::default(),
            names: Vec::new(),
            prepared: None,
            is_preparing: false,
            fold_refused: false,
            tools_shown: None,
            context: None,
            last_from_client: None,
            is_unsettled: false,
            indexed_batches: 0,
            descriptors: 0,
            used: Instant::now(),
            recent: RefCell::default(),
        }
    }

    /// Returns the task's log.
    pub fn log(&self) -> &Log {
        self.writer.log()
    }

    fn digest(&self, seq: Seq) -> Result<MessageDigest, LogError> {
        let recent = self.recent.borrow();
        if let Some((_, digest)) = recent.iter().find(|(other, _)| *other == seq) {
            return Ok(*digest);
        }
        drop(recent);
        let digest = MessageDigest::of_stored(self.log(), seq, &self.log().message(seq)?)?;
        self.remember(seq, digest);
        Ok(digest)
    }

    /// Remembers the digest of a message.
    pub fn remember(&self, seq: Seq, digest: MessageDigest) {
        let mut recent = self.recent.borrow_mut();
        if recent.len() >= MAX_RECENT_DIGESTS {
            recent.pop_front();
        }
        recent.push_back((seq, digest));
    }

    /// Returns the messages of the path that have content, with their digests.
    pub fn digests(&mut self) -> Result<&[(Seq, Digest)], LogError> {
        self.path.follow(self.writer.log())
    }

    /// Returns the kind of messages that follow a message.
    pub fn continuation(&self, seq: Seq) -> Result<Continuation, LogError> {
        let path = self.log().state().shown().path();
        if !path.iter().any(|run| run.holds(seq)) {
            return Ok(Continuation::OffPath);
        }
        let mut continuation = Continuation::Nothing;
        for next in seqs_after(&path, seq) {
            if self.log().record(next)?.role != Role::Assistant {
                continuation = Continuation::Unanswered;
            } else if continuation == Continuation::Unanswered {
                return Ok(Continuation::More);
            } else if self.digest(next)?.digest.is_some() {
                continuation = Continuation::Reply;
            }
        }
        Ok(continuation)
    }

    /// Says whether no client continued from the messages after `seq`: a reply that was not taken up, or a question of
    /// the client that was not answered. Messages that a person added do not count as unused.
    pub fn is_unused_after(&self, seq: Seq) -> Result<bool, LogError> {
        Ok(match self.continuation(seq)? {
            Continuation::Reply => true,
            Continuation::Unanswered => {
                self.last_from_client.is_some()
                    && self.last_from_client == self.log().state().shown().last()
            }
            Continuation::Nothing | Continuation::More | Continuation::OffPath => false,
        })
    }

    /// Returns the digests of the next messages with content after one.
    pub fn digests_after(&mut self, seq: Seq, count: usize) -> Result<Vec<Digest>, LogError> {
        let digests = self.digests()?;
        let from = digests.partition_point(|(at, _)| *at <= seq);
        let next = digests[from..].iter().take(count);
        Ok(next.map(|(_, digest)| *digest).collect())
    }

    /// Returns the digests up to a message, for a fork from there.
    pub fn path_up_to(&self, seq: Seq) -> Result<DigestPath, LogError> {
        if self.digest(seq)?.is_piece {
            // The messages behind it may be pieces of the same output.
            return Ok(DigestPath::default());
        }
        Ok(self.path.up_to(seq))
    }

    /// Returns the digest of a message, or of the pieces of output that it ends.
    pub fn digest_at(&self, seq: Seq) -> Result<Option<Digest>, LogError> {
        let log = self.log();
        let last = self.digest(seq)?;
        if !last.is_piece || last.is_joined {
            return Ok(last.digest);
        }
        let mut pieces = vec![log.message(seq)?];
        for seq in seqs_before(log.state().shown().path(), seq) {
            if !self.digest(seq)?.is_piece {
                break;
            }
            pieces.push(log.message(seq)?);
        }
        if pieces.len() == 1 {
            return Ok(last.digest);
        }
        let pieces: Vec<&[u8]> = pieces.iter().rev().map(Vec::as_slice).collect();
        join_pieces(&pieces, log.redacts()).map_err(|error| damaged(log, &error))
    }
}

/// Returns the messages of a path before one, last first.
fn seqs_before(path: Vec<Span>, seq: Seq) -> impl Iterator<Item = Seq> {
    let runs = path.into_iter().rev();
    runs.flat_map(|run| run.seqs().rev())
        .filter(move |other| *other < seq)
}

/// Returns the messages of a path after one.
fn seqs_after(path: &[Span], seq: Seq) -> impl Iterator<Item = Seq> {
    let runs = path.iter().filter(move |run| run.to() > seq);
    runs.flat_map(|run| run.seqs())
        .filter(move |next| *next > seq)
}
