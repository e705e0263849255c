//! Creates tasks: for unknown conversations, and as forks of tasks that continued differently.

use std::num::NonZero;
use std::sync::{Condvar, Mutex, PoisonError};

use infold::setup::in_effect;
use infold_log::Seq;
use infold_log::steer::Target;
use infold_store::Metadata;
use uuid::Uuid;

use super::lookup::KnownPoint;
use super::placement::{Placement, placed};
use super::rewind::{FoldCopy, KeptContext, fold_again, folds_before, last_sent};
use super::{ConversationError, Core};
use crate::message_digest::DigestPath;
use crate::model_call::working_directory;
use crate::open_task::OpenTask;
use crate::parsed_request::ParsedRequest;
use crate::pool::TaskLease;
use crate::{ModelCall, locked};

/// The parts of a parent that its fork takes over.
pub(super) struct ForkStart {
    pub folds: Vec<FoldCopy>,
    pub path: DigestPath,
    /// The part of the layered state that the fork keeps.
    pub context: KeptContext,
}

/// The task source of tasks that the proxy makes.
pub(crate) const TASK_SOURCE: &str = "proxy";

/// The indexed name of a task whose conversation began elsewhere.
const PARTIAL_NAME: &str = "partial";

/// Lets a few threads at a time make tasks.
///
/// Of many conversations that begin at once, each then waits half as long on average as if all tasks were made side by side.
#[derive(Debug)]
pub(crate) struct CreationLimit {
    free: Mutex<usize>,
    freed: Condvar,
}

/// The permit to create a task, returned when it is dropped.
struct CreationPermit<'l>(&'l CreationLimit);

impl Default for CreationLimit {
    fn default() -> CreationLimit {
        // Two for each processor: creating a task sometimes waits for the disk.
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        CreationLimit {
            free: Mutex::new(2 * processors),
            freed: Condvar::new(),
        }
    }
}

impl CreationLimit {
    fn wait(&self) -> CreationPermit<'_> {
        let free = self.freed.wait_while(locked(&self.free), |free| *free == 0);
        *free.unwrap_or_else(PoisonError::into_inner) -= 1;
        CreationPermit(self)
    }
}

impl Drop for CreationPermit<'_> {
    fn drop(&mut self) {
        *locked(&self.0.free) += 1;
        self.0.freed.notify_one();
    }
}

impl Core {
    /// Makes a task for an unknown conversation.
    pub(super) fn create_task(
        &self,
        call: &ModelCall,
        parsed: &ParsedRequest,
    ) -> Result<(Placement, TaskLease), ConversationError> {
        let _permit = self.creation.wait();
        let name = parsed.name.as_ref();
        let name = name.map(|name| self.index.stored_name(name)).transpose()?;
        let name = name.as_ref();
        let mut metadata = Metadata {
            task_source: Some(TASK_SOURCE.to_owned()),
            task_id: name.map(|name| name.text().to_owned()),
            task_type: name.map(|name| name.task_type().to_owned()),
            agent: call.agent.clone(),
            cwd: working_directory(&call.body),
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
    pub(super) fn fork(
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

    /// Forks a task at a message; folds before it stay.
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
            start.context.show_again(&mut open.writer)?;
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
            context: KeptContext::of(parent.log(), seq)?,
        };
        let open = self.create_fork(parsed, parent.id, seq, start)?;
        for name in self.index.names_of(parent.id)? {
            self.index.name(&name, open.id)?;
        }
        Ok(open)
    }

    /// Says whether messages before a task's first one are not recorded.
    pub fn is_partial(&self, task: Uuid) -> Result<bool, ConversationError> {
        let names = self.index.names_of(task)?;
        Ok(names.iter().any(|name| name == PARTIAL_NAME))
    }
}

/// Sets provider, model and wire of a new task: its parent may have used another model, on another wire.
fn set_origin(parsed: &ParsedRequest, metadata: &mut Metadata) {
    metadata.llm_provider = Some(parsed.provider.clone());
    metadata.model = Some(parsed.model.clone()).filter(|model| !model.is_empty());
    metadata.wire = Some(parsed.wire.name().to_owned());
}
