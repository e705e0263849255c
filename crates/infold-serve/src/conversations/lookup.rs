//! Finds the point in a task up to which a conversation is known.

use infold_log::Seq;
use infold_store::TaskError;
use infold_wire::Wire;
use uuid::Uuid;

use super::placement::response_key;
use super::{ConversationError, Core};
use crate::model_call::GIVEN_PREFIX;
use crate::open_task::Continuation;
use crate::parsed_request::ParsedRequest;
use crate::{ConversationName, ModelCall};

/// A point in a task up to which a conversation is known.
#[derive(Clone, Copy)]
pub(super) struct KnownPoint {
    pub task: Uuid,
    pub seq: Seq,
    /// The number of the request's messages that are known.
    pub known: usize,
    /// The name in the client's configuration is that of this task, so the task may be rewound.
    pub is_named: bool,
    /// The client's configuration gives a name, and the task was given another one: it is not written to.
    pub is_foreign: bool,
}

/// The number of tasks with the same beginning that are examined.
const MAX_CANDIDATES: usize = 16;

impl Core {
    /// Finds the point up to which a conversation is known.
    pub(super) fn find_known_point(
        &self,
        call: &ModelCall,
        parsed: &mut ParsedRequest,
    ) -> Result<Option<KnownPoint>, ConversationError> {
        if let Some(ConversationName::Given(name)) = &parsed.name
            && let Some(point) = self.point_in_named_task(name, parsed)?
        {
            return Ok(Some(point));
        }
        if let Some(previous) = parsed.params.previous.clone()
            && call.wire == Wire::Responses
        {
            return self.point_after_response(&previous, parsed);
        }
        let is_given = parsed.name.as_ref().is_some_and(ConversationName::is_given);
        let keys = parsed.keys();
        if let Some((known, (task, seq))) = self.index.find_recent(keys.iter().copied())
            && self.has_name_in_memory(task, parsed)
        {
            return Ok(Some(KnownPoint {
                task,
                seq,
                known,
                is_named: is_given,
                is_foreign: false,
            }));
        }
        let Some(found) = self.index.find(&keys)? else {
            return Ok(None);
        };
        let mut best: Option<KnownPoint> = None;
        for (task, seq) in found.places.into_iter().take(MAX_CANDIDATES) {
            let mut point = KnownPoint {
                task,
                seq,
                known: found.known,
                is_named: false,
                is_foreign: false,
            };
            let Some(name) = &parsed.name else {
                return Ok(Some(point));
            };
            let names = self.index.names_of(task)?;
            if name.is_among(&names) {
                point.is_named = is_given;
                return Ok(Some(point));
            }
            point.is_foreign = is_given && names.iter().any(|name| is_given_key(name));
            if best.is_none_or(|best| best.is_foreign && !point.is_foreign) {
                best = Some(point);
            }
        }
        Ok(best)
    }

    /// Finds a task that has a few messages less of the conversation than `point`, but no others after them.
    ///
    /// Two conversations may begin with the same messages. If the task of `point` has gone on in another way or has
    /// another name, continuing there would need a fork; a task that ends with the messages of this conversation is the
    /// better match.
    pub(super) fn find_shorter(
        &self,
        parsed: &ParsedRequest,
        point: KnownPoint,
    ) -> Result<Option<KnownPoint>, ConversationError> {
        /// The most messages that the shorter conversation may lack: a question and tool results.
        const MAX_FEWER_MESSAGES: usize = 4;
        let is_repeated = parsed.name.is_none() && point.known == parsed.messages.len();
        if point.known == 0 || is_repeated || !point.is_foreign && self.ends_at(point)? {
            return Ok(None);
        }
        let is_given = parsed.name.as_ref().is_some_and(ConversationName::is_given);
        let least = point.known.saturating_sub(MAX_FEWER_MESSAGES).max(1);
        for known in (least..point.known).rev() {
            if !parsed.messages[..known]
                .iter()
                .any(|message| message.is_reply)
            {
                break;
            }
            let Some(found) = self.index.find(&[parsed.messages[known - 1].key])? else {
                continue;
            };
            for (task, seq) in found.places.into_iter().take(MAX_CANDIDATES) {
                let names = self.index.names_of(task)?;
                let is_own = parsed
                    .name
                    .as_ref()
                    .is_some_and(|name| name.is_among(&names));
                // A named conversation continues only tasks of its name, an unnamed one no task with a given name.
                if !is_own && (parsed.name.is_some() || names.iter().any(|name| is_given_key(name)))
                {
                    continue;
                }
                let point = KnownPoint {
                    task,
                    seq,
                    known,
                    is_named: is_own && is_given,
                    is_foreign: false,
                };
                if self.ends_at(point)? {
                    return Ok(Some(point));
                }
            }
        }
        Ok(None)
    }

    /// Says whether a task has nothing with content beyond a point.
    fn ends_at(&self, point: KnownPoint) -> Result<bool, ConversationError> {
        let open = match self.pool.lease(point.task) {
            Ok(open) => open,
            Err(TaskError::Unknown { .. } | TaskError::Ended { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let is_there = open.log().state().last_seq() >= Some(point.seq);
        Ok(is_there && open.continuation(point.seq)? == Continuation::Nothing)
    }

    /// Finds the point in a task that is named by its id, unless it holds another conversation.
    fn point_in_named_task(
        &self,
        name: &str,
        parsed: &ParsedRequest,
    ) -> Result<Option<KnownPoint>, ConversationError> {
        let Ok(task) = name.parse::<Uuid>() else {
            return Ok(None);
        };
        if self.contexts.place(task).is_none() {
            return Ok(None);
        }
        let mut open = self.pool.lease(task)?;
        let digests = open.digests()?;
        let pairs = digests.iter().zip(&parsed.messages);
        let same = pairs.take_while(|((_, digest), message)| *digest == message.digest);
        let known = same.count();
        let seq = match known.checked_sub(1) {
            Some(last) => digests[last].0,
            // The task has at most a system prompt: the conversation begins in it.
            None if digests.is_empty() => {
                let last = open.log().state().shown().last();
                last.unwrap_or(Seq::FIRST)
            }
            None => return Ok(None),
        };
        Ok(Some(KnownPoint {
            task,
            seq,
            known,
            is_named: true,
            is_foreign: false,
        }))
    }

    /// Finds the point after a response that the provider stores, and to which the request refers by its id.
    fn point_after_response(
        &self,
        id: &str,
        parsed: &mut ParsedRequest,
    ) -> Result<Option<KnownPoint>, ConversationError> {
        let found = self.index.find(&[response_key(id)])?;
        let Some((task, seq)) = found.and_then(|found| found.places.first().copied()) else {
            return Ok(None);
        };
        let mut open = match self.pool.lease(task) {
            Ok(open) => open,
            Err(TaskError::Unknown { .. } | TaskError::Ended { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let before = open.digests()?.iter().take_while(|(at, _)| *at <= seq);
        parsed.continue_from(before.map(|(_, digest)| *digest));
        Ok(Some(KnownPoint {
            task,
            seq,
            known: 0,
            is_named: false,
            is_foreign: false,
        }))
    }
}

fn is_given_key(name: &str) -> bool {
    name.starts_with(GIVEN_PREFIX)
}
