//! Finds or creates the task of a request, and records the new messages.

use std::borrow::Cow;
use std::sync::Mutex;

use infold_log::{Item, Past as _, Role, Seq, Span};
use infold_store::{Key, Log, TaskError};
use uuid::Uuid;

use super::lookup::KnownPoint;
use super::new_task::ForkStart;
use super::rewind::{KeptContext, folds_before, is_branch_unused, last_sent, rewind};
use super::{ConversationError, Core, MAX_INLINE_BYTES, OPENING_LOCKS};
use crate::message_digest::DigestPath;
use crate::open_task::{Continuation, OpenTask};
use crate::parsed_request::{ParsedRequest, bytes_digest};
use crate::pool::{TaskLease, TryLease};
use crate::{ConversationName, ModelCall, locked};

/// The place of a request in its task.
pub(crate) struct Placement {
    pub task: Uuid,
    /// The last message of the request.
    pub last: Seq,
}

/// Index rows that lead nowhere are dropped, and the search repeated this often.
const MAX_LOOKUPS: usize = 8;

impl Core {
    /// Finds or creates the task of a conversation, and records the new messages. The exchange counts as in progress
    /// from then on.
    pub fn place(
        &self,
        call: &ModelCall,
        parsed: &mut ParsedRequest,
    ) -> Result<(Placement, TaskLease), ConversationError> {
        let _opening = locked(self.opening_lock(parsed));
        let (placement, open) = self.find_or_create_task(call, parsed)?;
        self.pool.begin_exchange(placement.task);
        Ok((placement, open))
    }

    fn find_or_create_task(
        &self,
        call: &ModelCall,
        parsed: &mut ParsedRequest,
    ) -> Result<(Placement, TaskLease), ConversationError> {
        for _ in 0..MAX_LOOKUPS {
            let Some(point) = self.find_known_point(call, parsed)? else {
                break;
            };
            if self.recognise_copies(parsed, point)? {
                continue;
            }
            let point = self.find_shorter(parsed, point)?.unwrap_or(point);
            if let Some(placed) = self.continue_task(call, parsed, point)? {
                return Ok(placed);
            }
        }
        self.create_task(call, parsed)
    }

    /// Returns the lock under which conversations that begin like this one are placed.
    pub(super) fn opening_lock(&self, parsed: &ParsedRequest) -> &Mutex<()> {
        let first = parsed
            .messages
            .first()
            .map_or(0, |message| message.digest[0]);
        &self.opening_locks[usize::from(first) % OPENING_LOCKS]
    }

    /// Places a request that adds few bytes to an open task, without blocking. `None` in all other cases.
    pub fn place_inline(
        &self,
        call: &ModelCall,
        parsed: &ParsedRequest,
    ) -> Result<Option<(Placement, TaskLease)>, ConversationError> {
        // A request that names a task or a stored response by its id is placed in other ways.
        if parsed.params.previous.is_some() || parsed.name.as_ref().is_some_and(is_task_id) {
            return Ok(None);
        }
        let keys = parsed.messages.iter().map(|message| message.key);
        let Some((known, (task, seq))) = self.index.find_recent(keys) else {
            return Ok(None);
        };
        let last = parsed.messages[known - 1].index;
        let new = parsed.envelope.messages.iter().skip(last + 1);
        let new: u64 = new.map(|range| range.end - range.start).sum();
        let opening = self.opening_lock(parsed).try_lock();
        if new > MAX_INLINE_BYTES || opening.is_err() {
            return Ok(None);
        }
        let TryLease::Leased(mut open) = self.pool.try_lease(task) else {
            return Ok(None);
        };
        let point = KnownPoint {
            task,
            seq,
            known,
            is_named: false,
            is_foreign: false,
        };
        // Other tasks have to be examined too if the name differs or the conversation left this one.
        let has_name = |name: &ConversationName| open.names.contains(&name.key());
        if !parsed.name.as_ref().is_none_or(has_name) || !holds(&open, parsed, point)? {
            return Ok(None);
        }
        let is_repeated = parsed.name.is_none() && known == parsed.messages.len();
        let last = match open.continuation(seq)? {
            // Copies of redacted messages are looked for in other tasks.
            Continuation::Nothing if self.index.redacted()?.is_some() => return Ok(None),
            Continuation::Nothing => self.append(call, parsed, &mut open, known)?,
            Continuation::OffPath => return Ok(None),
            _ if is_repeated && is_unfolded(&open) => None,
            _ => return Ok(None),
        };
        self.pool.begin_exchange(task);
        Ok(Some(placed(open, last.unwrap_or(seq))))
    }

    /// Says whether a task is open, and known to have the name of a conversation.
    pub(super) fn has_name_in_memory(&self, task: Uuid, parsed: &ParsedRequest) -> bool {
        let Some(name) = &parsed.name else {
            return true;
        };
        match self.pool.try_lease(task) {
            TryLease::Leased(open) => open.names.contains(&name.key()),
            TryLease::Busy | TryLease::Closed => false,
        }
    }

    /// Continues a task, or a fork of it; returns `None` and drops the index rows if the task does not hold the indexed
    /// messages.
    fn continue_task(
        &self,
        call: &ModelCall,
        parsed: &ParsedRequest,
        mut point: KnownPoint,
    ) -> Result<Option<(Placement, TaskLease)>, ConversationError> {
        let mut open = match self.pool.lease(point.task) {
            Ok(open) => open,
            Err(TaskError::Unknown { .. }) => {
                self.index.forget(point.task, None)?;
                return Ok(None);
            }
            Err(TaskError::Ended { .. }) => {
                let log = self.contexts.read(point.task)?;
                let start = ForkStart {
                    folds: folds_before(&log, first_always_shown(&log, parsed, point)?)?,
                    path: DigestPath::default(),
                    context: kept_context(&log, point)?,
                };
                return self.fork(call, parsed, point, start).map(Some);
            }
            Err(error) => return Err(error.into()),
        };
        if !holds(&open, parsed, point)? {
            self.index.forget(point.task, Some(point.seq))?;
            return Ok(None);
        }
        let is_empty = open.log().state().shown().last().is_none();
        let continuation_at = |open: &OpenTask, seq| {
            if is_empty {
                Ok(Continuation::Nothing)
            } else {
                open.continuation(seq)
            }
        };
        let mut continuation = continuation_at(&open, point.seq)?;
        if continuation != Continuation::Nothing && self.catch_up(parsed, &mut open, &mut point)? {
            continuation = continuation_at(&open, point.seq)?;
        }
        let has_new = parsed.messages.len() > point.known;
        let has_exchange = self.pool.exchanges(point.task) > 0;
        let is_unused = match continuation {
            Continuation::OffPath => !has_exchange && is_branch_unused(&open, point.seq)?,
            Continuation::Unanswered => !has_exchange && open.is_unused_after(point.seq)?,
            continuation => continuation == Continuation::Reply,
        };
        if !point.is_foreign && continuation == Continuation::Nothing {
            let last = self.append(call, parsed, &mut open, point.known)?;
            return Ok(Some(placed(open, last.unwrap_or(point.seq))));
        }
        // An answered request comes again. As long as nothing is folded, whether it needs a fork is decided by its reply.
        let is_repeated = !has_new && continuation != Continuation::OffPath;
        if !point.is_foreign && is_repeated && is_unfolded(&open) {
            return Ok(Some(placed(open, point.seq)));
        }
        // No client continued from the following messages: this one has its own version of a reply, or repeats the
        // request. A rewind hides them, and loses nothing.
        if !point.is_foreign && (is_unused || point.is_named && !has_exchange) {
            let before = first_always_shown(open.log(), parsed, point)?;
            rewind(&mut open, point.seq, before)?;
            open.wrote();
            let last = self.append(call, parsed, &mut open, point.known)?;
            return Ok(Some(placed(open, last.unwrap_or(point.seq))));
        }
        let start = ForkStart {
            folds: folds_before(open.log(), first_always_shown(open.log(), parsed, point)?)?,
            path: open.path_up_to(point.seq)?,
            context: kept_context(open.log(), point)?,
        };
        // A reader of the fork then need not derive the rows that the parent's sidecar lacks.
        let _ = open.writer.save_index();
        drop(open);
        self.fork(call, parsed, point, start).map(Some)
    }

    /// Moves a point forward along messages that the task holds but the index does not: a crash may have come between
    /// log and index. Says whether the point moved.
    fn catch_up(
        &self,
        parsed: &ParsedRequest,
        open: &mut OpenTask,
        point: &mut KnownPoint,
    ) -> Result<bool, ConversationError> {
        let digests = open.digests()?;
        let from = digests.partition_point(|(seq, _)| *seq <= point.seq);
        let is_on_path = from
            .checked_sub(1)
            .is_some_and(|at| digests[at].0 == point.seq);
        let pairs = digests[from..].iter().zip(&parsed.messages[point.known..]);
        let same =
            pairs.take_while(|((_, digest), message)| is_on_path && *digest == message.digest);
        let rows: Vec<(Key, Seq)> = same
            .map(|((seq, _), message)| (message.key, *seq))
            .collect();
        let Some((_, last)) = rows.last() else {
            return Ok(false);
        };
        (point.seq, point.known) = (*last, point.known + rows.len());
        self.index.add(open, &rows)?;
        Ok(true)
    }

    /// Records the messages of a request after the first `known` with content; returns the last one.
    pub(super) fn append(
        &self,
        call: &ModelCall,
        parsed: &ParsedRequest,
        open: &mut TaskLease,
        known: usize,
    ) -> Result<Option<Seq>, ConversationError> {
        if let Some(name) = &parsed.name
            && !open.names.contains(&name.key())
        {
            let stored = self.index.stored_name(name)?;
            self.index.name(&stored.key(), open.id)?;
            open.names.push(name.key());
        }
        if parsed.messages.len() <= known {
            return Ok(None);
        }
        let from = match known.checked_sub(1) {
            Some(last) => parsed.messages[last].index + 1,
            None => parsed.envelope.leading,
        };
        let bodies: Vec<Cow<'_, [u8]>> = (from..parsed.message_count())
            .map(|index| parsed.message(call, index))
            .collect::<Result<_, _>>()?;
        let Some(span) = self.append_bodies(open, &bodies)? else {
            return Ok(None);
        };
        open.last_from_client = Some(span.to());
        let seq_of = |index: usize| Seq::new(span.from().get() + (index - from) as u64);
        let rows: Vec<(Key, Seq)> = parsed.messages[known..]
            .iter()
            .filter_map(|message| Some((message.key, seq_of(message.index)?)))
            .collect();
        self.index.add(open, &rows)?;
        open.wrote();
        if has_tool_results(open.log(), span)? {
            self.background.record_tools(open.id, span);
        }
        self.publish_messages(open.id, span);
        Ok(Some(span.to()))
    }

    /// Appends messages; copies of redacted messages are recorded as redacted.
    fn append_bodies(
        &self,
        open: &mut TaskLease,
        bodies: &[Cow<'_, [u8]>],
    ) -> Result<Option<Span>, ConversationError> {
        let Some(redacted) = self.index.redacted()? else {
            return Ok(open.writer.append(bodies)?);
        };
        let copies = self
            .contexts
            .redacted_copies(open.log(), &redacted, bodies)?;
        let Some(copies) = copies else {
            return Ok(open.writer.append(bodies)?);
        };
        let span = open.writer.append_copies(copies)?;
        self.index.set_redacted(open.id, open.log())?;
        Ok(span)
    }

    /// Publishes that messages were recorded.
    pub fn publish_messages(&self, task: Uuid, span: Span) {
        let json = format!(r#"{{"from":{},"to":{}}}"#, span.from(), span.to());
        self.publish(task, "message", json);
    }
}

pub(super) fn placed(open: TaskLease, last: Seq) -> (Placement, TaskLease) {
    let task = open.id;
    (Placement { task, last }, open)
}

/// Says whether a name may be the id of a task.
fn is_task_id(name: &ConversationName) -> bool {
    name.is_given() && name.text().parse::<Uuid>().is_ok()
}

/// Returns the key of a response that a provider stores.
pub(crate) fn response_key(id: &str) -> Key {
    bytes_digest(format!("response {id}").as_bytes())
}

/// Says whether a task really holds the indexed messages. After a power cut it may not.
fn holds(
    open: &OpenTask,
    parsed: &ParsedRequest,
    point: KnownPoint,
) -> Result<bool, ConversationError> {
    let Some(last) = open.log().state().last_seq() else {
        return Ok(point.known == 0);
    };
    if point.seq > last {
        return Ok(false);
    }
    let Some(message) = point.known.checked_sub(1).map(|at| parsed.messages[at]) else {
        return Ok(true);
    };
    Ok(open.digest_at(point.seq)? == Some(message.digest))
}

/// Returns the first message that no fold may hide: the messages that are sent last are always shown.
fn first_always_shown(
    log: &Log,
    parsed: &ParsedRequest,
    point: KnownPoint,
) -> Result<Seq, ConversationError> {
    if parsed.messages.len() > point.known {
        return Ok(point.seq.next());
    }
    last_sent(log, point.seq)
}

/// Says whether messages hold tool results.
fn has_tool_results(log: &Log, span: Span) -> Result<bool, ConversationError> {
    let mut requests = match span.from().prev() {
        Some(before) => log.record(before)?.sums.requests,
        None => 0,
    };
    for seq in span.seqs() {
        let record = log.record(seq)?;
        let is_request = record.sums.requests > requests;
        requests = record.sums.requests;
        if record.role == Role::Tool || record.role == Role::User && !is_request {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the layered state that a fork of a task keeps. A conversation that only begins alike gets none of it.
fn kept_context(log: &Log, point: KnownPoint) -> Result<KeptContext, ConversationError> {
    if point.is_foreign {
        return Ok(KeptContext::default());
    }
    KeptContext::of(log, point.seq)
}

/// Says whether a task shows all of its messages and nothing else.
pub(crate) fn is_unfolded(open: &OpenTask) -> bool {
    let shown = open.log().state().shown();
    let mut items = shown.items().iter();
    let is_folded = items.any(|item| matches!(item, Item::Fold(_)));
    !is_folded && shown.all_masks().next().is_none() && shown.notes().next().is_none()
}
