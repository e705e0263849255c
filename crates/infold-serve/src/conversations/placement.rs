//! Finds or creates the task of a request, and records what is new of it.

use std::borrow::Cow;
use std::sync::Mutex;

use infold::setup::in_effect;
use infold_log::steer::Target;
use infold_log::{Item, Past as _, Role, Seq, Span};
use infold_store::{Key, Log, Metadata, TaskError};
use uuid::Uuid;

use super::lookup::KnownPoint;
use super::rewind::{FoldCopy, fold_again, folds_before, is_branch_unused, last_sent, rewind};
use super::{ConversationError, Core, OPENING_LOCKS};
use crate::digest_path::DigestPath;
use crate::open_task::{Continuation, OpenTask};
use crate::parsed_request::{ParsedRequest, bytes_digest};
use crate::pool::TaskLease;
use crate::{ModelCall, agent, locked};

/// Where a request stands in its task.
pub(crate) struct Placement {
    pub task: Uuid,
    /// The last message of the request.
    pub last: Seq,
}

/// What a fork takes over from its parent.
struct ForkStart {
    folds: Vec<FoldCopy>,
    path: DigestPath,
}

/// The task source of tasks that the proxy makes.
pub(crate) const TASK_SOURCE: &str = "proxy";

/// The indexed name of a task whose conversation began elsewhere.
const PARTIAL_NAME: &str = "partial";

/// Index rows that lead nowhere are dropped, and the search repeated this often.
const MAX_LOOKUPS: usize = 8;

impl Core {
    /// Finds the task of a conversation or makes one, and records what is new. The exchange counts as under way from then on.
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

    /// Continues a task, or a fork of it; returns none if the task does not hold what the index says, and drops those rows.
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
        // No client went on from what follows in the task: this one has its own version of a reply, or asks again. A rewind
        // hides that, and loses nothing.
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
        };
        // A reader of the fork then need not derive what the parent's sidecar misses.
        let _ = open.writer.save_index();
        drop(open);
        self.fork(call, parsed, point, start).map(Some)
    }

    /// Moves a point further along what the task holds than the index knew: a crash may have come between log and index. Says
    /// whether it moved.
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

    /// Makes a task for an unknown conversation.
    fn create_task(
        &self,
        call: &ModelCall,
        parsed: &ParsedRequest,
    ) -> Result<(Placement, TaskLease), ConversationError> {
        let name = parsed.name.as_ref();
        let name = name.map(|name| self.index.stored_name(name)).transpose()?;
        let name = name.as_ref();
        let mut metadata = Metadata {
            task_source: Some(TASK_SOURCE.to_owned()),
            task_id: name.map(|name| name.text().to_owned()),
            task_type: name.map(|name| name.task_type().to_owned()),
            agent: call.agent.clone(),
            cwd: agent::directory(&call.body),
            ..Metadata::default()
        };
        set_origin(parsed, &mut metadata);
        let model = metadata.model.as_deref();
        metadata.in_effect = in_effect(&self.config, model, metadata.context_length);
        let task = self.contexts.create(metadata)?;
        self.metrics.tasks("made");
        self.publish(task, "task", r#"{"how":"new"}"#.to_owned());
        // If earlier messages are only at the provider, the conversation is never folded.
        let is_partial = parsed.params.previous.is_some();
        let open = self.or_remove(task, self.pool.lease(task).map_err(Into::into))?;
        self.begin_task(call, parsed, open, 0, is_partial)
    }

    /// Records the first messages of a task's own.
    fn begin_task(
        &self,
        call: &ModelCall,
        parsed: &ParsedRequest,
        mut open: TaskLease,
        known: usize,
        is_partial: bool,
    ) -> Result<(Placement, TaskLease), ConversationError> {
        let task = open.id;
        let begin = || {
            if is_partial {
                self.index.name(PARTIAL_NAME, task)?;
            }
            let last = self.append(call, parsed, &mut open, known)?;
            let last = last.or(open.log().state().shown().last());
            Ok(placed(open, last.unwrap_or(Seq::FIRST)))
        };
        self.or_remove(task, begin())
    }

    /// Removes a new task if its first use failed: its request passes untouched, and comes again with the next one.
    fn or_remove<T>(
        &self,
        task: Uuid,
        used: Result<T, ConversationError>,
    ) -> Result<T, ConversationError> {
        used.inspect_err(|_| {
            self.pool.discard(task);
            let removed = self.contexts.unmake(task).map_err(ConversationError::from);
            let forgotten = self
                .index
                .forget(task, None)
                .map_err(ConversationError::from);
            if let Err(error) = removed.and(forgotten) {
                self.pool.report(&error);
            }
        })
    }

    /// Continues an earlier point of a task in a fork of it.
    fn fork(
        &self,
        call: &ModelCall,
        parsed: &ParsedRequest,
        point: KnownPoint,
        start: ForkStart,
    ) -> Result<(Placement, TaskLease), ConversationError> {
        let is_partial = self.is_partial(point.task)?;
        let open = self.create_fork(parsed, point.task, point.seq, start)?;
        let (mut placement, open) = self.begin_task(call, parsed, open, point.known, is_partial)?;
        placement.last = placement.last.max(point.seq);
        Ok((placement, open))
    }

    /// Forks a task at a message; folds of what comes before it stay.
    fn create_fork(
        &self,
        parsed: &ParsedRequest,
        parent: Uuid,
        seq: Seq,
        start: ForkStart,
    ) -> Result<TaskLease, ConversationError> {
        let at = Some(Target::Message(seq.get()));
        let task = self
            .contexts
            .fork_as(parent, at, |metadata| set_origin(parsed, metadata))?;
        self.metrics.tasks("forked");
        self.publish(task, "task", format!(r#"{{"how":"fork","of":"{parent}"}}"#));
        let begin = || -> Result<TaskLease, ConversationError> {
            let mut open = self.pool.lease(task)?;
            fold_again(&mut open.writer, start.folds)?;
            open.path = start.path;
            open.wrote();
            Ok(open)
        };
        self.or_remove(task, begin())
    }

    /// Forks the task of an exchange at its request.
    pub fn fork_at(
        &self,
        parsed: &ParsedRequest,
        parent: &mut OpenTask,
        seq: Seq,
    ) -> Result<TaskLease, ConversationError> {
        let _ = parent.writer.save_index();
        let start = ForkStart {
            folds: folds_before(parent.log(), last_sent(parent.log(), seq)?)?,
            path: parent.path_up_to(seq)?,
        };
        let open = self.create_fork(parsed, parent.id, seq, start)?;
        for name in self.index.names_of(parent.id)? {
            self.index.name(&name, open.id)?;
        }
        Ok(open)
    }

    /// Records the messages of a request after the first `known` with content; returns the last one.
    fn append(
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
        let Some(span) = open.writer.append(&bodies)? else {
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

    /// Publishes that messages were recorded.
    pub fn publish_messages(&self, task: Uuid, span: Span) {
        let json = format!(r#"{{"from":{},"to":{}}}"#, span.from(), span.to());
        self.publish(task, "message", json);
    }

    /// Says whether what came before a task's first message is not recorded.
    pub fn is_partial(&self, task: Uuid) -> Result<bool, ConversationError> {
        let names = self.index.names_of(task)?;
        Ok(names.iter().any(|name| name == PARTIAL_NAME))
    }
}

fn placed(open: TaskLease, last: Seq) -> (Placement, TaskLease) {
    let task = open.id;
    (Placement { task, last }, open)
}

/// Sets provider, model and wire of a new task: what it continues may have been asked of another model, on another wire.
fn set_origin(parsed: &ParsedRequest, metadata: &mut Metadata) {
    metadata.llm_provider = Some(parsed.provider.clone());
    metadata.model = Some(parsed.model.clone()).filter(|model| !model.is_empty());
    metadata.wire = Some(parsed.wire.name().to_owned());
}

/// Returns the key of a response that a provider stores.
pub(crate) fn response_key(id: &str) -> Key {
    bytes_digest(format!("response {id}").as_bytes())
}

/// Says whether a task really holds what the index says. After a power cut it may not.
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

/// Returns the first message that no fold may hide: what is sent last is always shown.
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

/// Says whether a task shows all of its messages and nothing else.
pub(crate) fn is_unfolded(open: &OpenTask) -> bool {
    let shown = open.log().state().shown();
    let mut items = shown.items().iter();
    let is_folded = items.any(|item| matches!(item, Item::Fold(_)));
    !is_folded && shown.all_masks().next().is_none() && shown.notes().next().is_none()
}
