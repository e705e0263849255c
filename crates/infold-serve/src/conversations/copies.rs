//! Recognises replies that a client sends back in another form than any that is digested alike.

use infold_log::{Past as _, Role, Seq};
use infold_store::{Log, TaskError};
use infold_wire::digest::{self, Digest};
use infold_wire::{Message, Wire};

use super::lookup::KnownPoint;
use super::{ConversationError, Core};
use crate::message_digest::{damaged, join_pieces};
use crate::open_task::OpenTask;
use crate::parsed_request::{ParsedRequest, RequestMessage};

/// The number of messages of a reply that are compared as one.
const MAX_JOINED: usize = 32;

impl Core {
    /// Recognises replies behind a known point that have the same content as those of the task: texts of a response
    /// that the client joined, and calls whose ids a client of Ollama dropped. Says whether there were any; then more
    /// of the conversation is known.
    pub(super) fn recognise_copies(
        &self,
        parsed: &mut ParsedRequest,
        point: KnownPoint,
    ) -> Result<bool, ConversationError> {
        let has_copies = matches!(parsed.wire, Wire::Responses | Wire::Ollama);
        let is_reply = |message: &RequestMessage| message.is_reply;
        // A reply follows the known part, or the messages that were sent when that part was recorded.
        let next = parsed.messages.get(point.known..).unwrap_or_default();
        if !has_copies || parsed.params.previous.is_some() || !next.iter().any(is_reply) {
            return Ok(false);
        }
        let mut open = match self.pool.lease(point.task) {
            Ok(open) => open,
            Err(TaskError::Unknown { .. } | TaskError::Ended { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let digests = open.digests()?;
        let from = digests.partition_point(|(seq, _)| *seq <= point.seq);
        let is_on_path = from
            .checked_sub(1)
            .is_none_or(|at| digests[at].0 == point.seq);
        if !is_on_path {
            return Ok(false);
        }
        let stored = digests[from..].to_vec();
        let read = read_as_stored(&open, &stored, parsed.wire, next)?;
        let Some(read) = read else {
            return Ok(false);
        };
        let mut messages = parsed.messages[..point.known].to_vec();
        messages.extend(read);
        parsed.replace_messages(&messages);
        Ok(true)
    }
}

/// Returns messages of a request with the digests of those of the log that have the same content; `None` if they have
/// these already.
fn read_as_stored(
    open: &OpenTask,
    mut stored: &[(Seq, Digest)],
    wire: Wire,
    sent: &[RequestMessage],
) -> Result<Option<Vec<RequestMessage>>, ConversationError> {
    let mut read = Vec::with_capacity(sent.len());
    let mut has_copies = false;
    for message in sent {
        let count = match stored.first() {
            Some((_, digest)) if *digest == message.digest => 1,
            Some(_) if message.is_reply => copied_count(open.log(), stored, wire, message.digest)?,
            _ => 0,
        };
        if count == 0 {
            // From here on the conversation is another one.
            stored = &[];
            read.push(*message);
            continue;
        }
        let (copied, rest) = stored.split_at(count);
        stored = rest;
        for (_, digest) in copied {
            has_copies |= *digest != message.digest;
            read.push(RequestMessage {
                digest: *digest,
                ..*message
            });
        }
    }
    Ok(has_copies.then_some(read))
}

/// Returns how many of the next messages of a log together have the content of a reply; zero if they do not.
fn copied_count(
    log: &Log,
    stored: &[(Seq, Digest)],
    wire: Wire,
    sent: Digest,
) -> Result<usize, ConversationError> {
    let max_count = if wire == Wire::Ollama { 1 } else { MAX_JOINED };
    let mut bodies: Vec<Vec<u8>> = Vec::new();
    for (seq, _) in stored.iter().take(max_count) {
        if log.record(*seq)?.role != Role::Assistant {
            break;
        }
        bodies.push(log.without_secrets(&log.message(*seq)?).into_owned());
        let is_same = if wire == Wire::Ollama {
            let message = Message::read(&bodies[0]).map_err(|error| damaged(log, &error))?;
            digest::digest_without_ids(&message) == Some(sent)
        } else {
            let pieces: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
            let joined = join_pieces(&pieces, log.redacts());
            joined.map_err(|error| damaged(log, &error))? == Some(sent)
        };
        if is_same {
            return Ok(bodies.len());
        }
    }
    Ok(0)
}
