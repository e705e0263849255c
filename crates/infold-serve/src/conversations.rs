//! Recognises conversations, records them and folds them to fit.

mod lookup;
mod copies;
mod rewind;
mod placement;
mod new_task;
mod fit;
mod context;
mod recall;
mod unrecorded;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use infold::{Config, Connector, ManageError};
use infold_log::Size;
use infold_store::{AppendError, Contexts, LogError, RegistryError, StepError, TaskError, Writer};
use infold_wire::envelope::is_prompt;
use infold_wire::redact::redact_data;
use infold_wire::request::blank_credentials;
use infold_wire::tokens::{Encoding, count};
use quick_cache::sync::Cache;
use uuid::Uuid;

use crate::background::BackgroundQueue;
use crate::checkpoints::WorkspaceCheckpoints;
use crate::conversation_index::ConversationIndex;
use crate::live_events::{LiveEvent, LiveEvents};
use crate::metrics::Metrics;
use crate::model_rules::ModelRules;
use crate::parsed_request::ParsedRequest;
use crate::pool::{self, TaskLease, TaskPool};
use crate::request_cache::DigestCache;
use crate::search_worker;
use crate::tool_policy::ToolPolicy;
use crate::{ConversationName, Exchange, ModelCall, OutgoingBody};
pub(crate) use context::{BuiltContext, InjectedContext};
pub(crate) use fit::{Fitted, RequestAdditions, fold_due, is_slow, tokens_up_to};
use new_task::CreationLimit;
pub(crate) use new_task::TASK_SOURCE;
pub(crate) use placement::{Placement, is_unfolded, response_key};
pub(crate) use recall::may_recall;
pub(crate) use rewind::{fold_over, last_sent, rewind};

/// All conversations of a contexts directory.
///
/// Methods read and write files: they are called from threads that may block.
#[derive(Clone)]
pub struct Conversations {
    pub(crate) core: Arc<Core>,
}

/// The state that all exchanges share. None of it has to survive a restart.
pub(crate) struct Core {
    pub contexts: Contexts,
    /// Set when the search index must not be filled any more; locked while it is being filled.
    pub is_search_ended: Arc<Mutex<bool>>,
    pub config: Arc<Config>,
    pub metrics: Arc<Metrics>,
    pub events: LiveEvents,
    pub background: BackgroundQueue,
    /// Finds the task of a conversation.
    pub index: ConversationIndex,
    /// The fold rules of each model.
    pub rules: Arc<ModelRules>,
    /// The open tasks.
    pub pool: Arc<TaskPool>,
    pub digests: DigestCache,
    frames: FrameCache,
    /// The tools that models may see; `None` shows all.
    pub tool_policy: Option<ToolPolicy>,
    /// Keeps the files of a workspace, if one is configured.
    pub checkpoints: Option<Arc<WorkspaceCheckpoints>>,
    /// The providers and models that refused the tools for looking up hidden messages.
    pub lookups_refused: Mutex<BTreeSet<(String, String)>>,
    /// Conversations that begin alike are placed one after another.
    opening_locks: [Mutex<()>; OPENING_LOCKS],
    creation: CreationLimit,
}

const OPENING_LOCKS: usize = 64;

/// A cache of frames (instructions and tools), because clients send the same ones with each request.
pub(crate) struct FrameCache {
    /// The tokens of instructions and tools, by a hash of their bytes.
    tokens: Cache<u128, u64>,
    /// The hash of the frame that was last recorded, by task.
    recorded: Cache<Uuid, u128>,
}

const MAX_CACHED_FRAMES: usize = 4096;

/// Shorter session names are replaced only where they stand alone.
const MIN_DISTINCT_NAME_BYTES: usize = 6;

/// A call that was accepted and can be sent.
pub struct AcceptedCall {
    /// The request to send.
    pub outgoing: OutgoingBody,
    /// Records the reply.
    pub exchange: Exchange,
}

/// The progress of a call.
pub(crate) enum CallStage {
    Received,
    Parsed(Box<ParsedRequest>),
    /// The task of the call is known, and its new messages are recorded.
    Placed(Box<Exchange>),
    /// The call can be sent.
    Ready(OutgoingBody, Box<Exchange>),
}

/// Counting the tokens of this many bytes takes about a millisecond, which an async thread can afford.
pub(crate) const MAX_INLINE_BYTES: u64 = 16 << 10;

/// Whether the calling thread may block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocking {
    /// The calling thread is async and must not block.
    Forbidden,
    Allowed,
}

/// The reason that a call could not be recorded or folded. It is then forwarded unchanged.
#[derive(Debug, thiserror::Error)]
pub enum ConversationError {
    /// The request cannot be recorded: the provider will report the error, if there is one.
    #[error("{0}")]
    Request(String),
    /// The policy for tools forbids it, or cannot be applied to it.
    #[error("{0}")]
    Policy(String),
    /// Something that should hold does not.
    #[error("{0}")]
    Internal(String),
    /// A task could not be opened.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// A message was refused.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// A step was refused.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The conversation could not be folded.
    #[error(transparent)]
    Manage(#[from] ManageError),
    /// A log could not be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The conversation index could not be read or written.
    #[error(transparent)]
    Index(#[from] RegistryError),
    /// The request's body could not be read back.
    #[error("the request's body could not be read: {0}")]
    Body(#[from] std::io::Error),
}

impl Conversations {
    /// Opens the conversations of a contexts directory.
    pub fn new(
        contexts: Contexts,
        config: Arc<Config>,
        connector: Connector,
    ) -> Result<Conversations, TaskError> {
        pool::raise_descriptor_limit();
        let redacts = contexts.redacts() || config.redact.value;
        let contexts = contexts.redacting(redacts);
        let (background, worker) = BackgroundQueue::new();
        let metrics: Arc<Metrics> = Arc::default();
        let pool = TaskPool::new(
            contexts.clone(),
            Arc::clone(&config),
            background.clone(),
            Arc::clone(&metrics),
        );
        let rules = ModelRules::new(contexts.clone(), Arc::clone(&config), connector);
        let core = Arc::new(Core {
            index: ConversationIndex::open(&contexts)?,
            rules: Arc::new(rules),
            pool: Arc::new(pool),
            digests: DigestCache::new(redacts),
            frames: FrameCache::default(),
            tool_policy: config
                .tools
                .as_ref()
                .map(|set| ToolPolicy::new(Arc::clone(&set.policy))),
            checkpoints: config
                .serve
                .checkpoints
                .as_ref()
                .map(|set| Arc::new(WorkspaceCheckpoints::new(&contexts, set.value.clone()))),
            lookups_refused: Mutex::default(),
            events: LiveEvents::default(),
            opening_locks: std::array::from_fn(|_| Mutex::new(())),
            creation: CreationLimit::default(),
            is_search_ended: Arc::default(),
            contexts,
            config,
            metrics,
            background,
        });
        worker.start(&core);
        search_worker::start(&core);
        Ok(Conversations { core })
    }

    /// Returns the contexts directory.
    pub fn contexts(&self) -> &Contexts {
        &self.core.contexts
    }

    /// Returns the counters of the server.
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.core.metrics)
    }

    /// Returns where live events are published.
    pub fn events(&self) -> LiveEvents {
        self.core.events.clone()
    }

    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.core.config)
    }

    /// Writes to a task. The server opens the task if it is not open yet.
    pub fn with<T>(&self, task: Uuid, work: impl FnOnce(&mut Writer) -> T) -> Result<T, TaskError> {
        let mut open = self.core.pool.lease(task)?;
        let done = work(&mut open.writer);
        open.wrote();
        Ok(done)
    }

    /// Runs work that needs the locks of several tasks, and releases those that are open in this server.
    pub fn with_released<T>(
        &self,
        work: impl FnMut() -> Result<T, TaskError>,
    ) -> Result<T, TaskError> {
        self.core.pool.with_released(work)
    }

    /// Closes a task, so that another process can have it.
    pub fn release(&self, task: Uuid) {
        self.core.pool.release(task);
        self.core.write_out();
    }

    /// Closes all tasks.
    pub fn close(&self) {
        *crate::locked(&self.core.is_search_ended) = true;
        self.core.background.drain();
        self.core.pool.close_all();
        self.core.write_out();
    }

    /// Recognises the conversation of a call, records its new messages, and folds it if that is due.
    pub fn accept(&self, call: &ModelCall) -> Result<AcceptedCall, ConversationError> {
        match self.advance(call, CallStage::Received, Blocking::Allowed)? {
            CallStage::Ready(outgoing, exchange) => Ok(AcceptedCall {
                outgoing,
                exchange: *exchange,
            }),
            _ => Err(ConversationError::Internal(
                "a call was not completed".to_owned(),
            )),
        }
    }

    /// Advances a call until it is ready, or as far as it goes without blocking.
    pub(crate) fn advance(
        &self,
        call: &ModelCall,
        stage: CallStage,
        blocking: Blocking,
    ) -> Result<CallStage, ConversationError> {
        let may_block = blocking == Blocking::Allowed;
        let mut parsed = match stage {
            CallStage::Received if may_block || call.body.is_short() => self.parse(call)?,
            CallStage::Parsed(parsed) => parsed,
            CallStage::Placed(exchange) => {
                let open = self.core.pool.lease(exchange.task())?;
                return self.fit(call, exchange, open, blocking);
            }
            stage => return Ok(stage),
        };
        let (placement, open) = if may_block {
            self.core.place(call, &mut parsed)?
        } else {
            match self.core.place_inline(call, &parsed)? {
                Some(placed) => placed,
                None => return Ok(CallStage::Parsed(parsed)),
            }
        };
        let exchange = Exchange::new(Arc::clone(&self.core), *parsed, &placement);
        self.fit(call, Box::new(exchange), open, blocking)
    }

    fn parse(&self, call: &ModelCall) -> Result<Box<ParsedRequest>, ConversationError> {
        if !self.core.config.context_storage.enabled.value {
            return Err(ConversationError::Request(
                "recording is switched off".to_owned(),
            ));
        }
        let parsed = ParsedRequest::read(call, &self.core.digests)?;
        if parsed.messages.is_empty() {
            return Err(ConversationError::Request(
                "it has no message with content".to_owned(),
            ));
        }
        Ok(Box::new(parsed))
    }

    fn fit(
        &self,
        call: &ModelCall,
        mut exchange: Box<Exchange>,
        open: TaskLease,
        blocking: Blocking,
    ) -> Result<CallStage, ConversationError> {
        match exchange.begin(call, open, blocking) {
            Ok(Some(outgoing)) => Ok(CallStage::Ready(outgoing, exchange)),
            Ok(None) => Ok(CallStage::Placed(exchange)),
            Err(error) => {
                exchange.publish_failure(&error.to_string());
                Err(error)
            }
        }
    }
}

impl Default for FrameCache {
    fn default() -> FrameCache {
        FrameCache {
            tokens: Cache::new(MAX_CACHED_FRAMES),
            recorded: Cache::new(MAX_CACHED_FRAMES),
        }
    }
}

impl Core {
    /// Publishes a live event of a task.
    pub fn publish(&self, task: Uuid, name: &'static str, json: String) {
        self.events.publish(LiveEvent { task, name, json });
    }

    /// Returns the size of a request's frame.
    pub fn frame_size(
        &self,
        call: &ModelCall,
        parsed: &ParsedRequest,
    ) -> Result<Size, ConversationError> {
        let mut size = Size::default();
        for range in parsed.frame_ranges() {
            let bytes = call.body.part(range)?;
            let key = self.digests.prefixes.hasher.hash(&bytes);
            let cached = self.frames.tokens.get(&key);
            size.tokens += cached.unwrap_or_else(|| {
                let tokens = count(Encoding::O200k, &String::from_utf8_lossy(&bytes));
                self.frames.tokens.insert(key, tokens);
                tokens
            });
        }
        let messages = parsed
            .envelope
            .messages
            .iter()
            .skip(parsed.envelope.leading);
        let messages: u64 = messages.map(|range| range.end - range.start).sum();
        size.bytes = call.body.len() - messages;
        Ok(size)
    }

    /// Records the frame of a request if it changed; credentials are blanked.
    pub fn record_frame(
        &self,
        call: &ModelCall,
        parsed: &ParsedRequest,
        open: &mut TaskLease,
    ) -> Result<(), ConversationError> {
        if self.frames.recorded.get(&open.id) == Some(parsed.frame) {
            return Ok(());
        }
        let mut members = Vec::new();
        for (name, range) in &parsed.envelope.members {
            members.push((name.as_str(), call.body.part(range)?));
        }
        let leading = &parsed.envelope.messages[..parsed.envelope.leading];
        if let (Some(first), Some(last)) = (leading.first(), leading.last()) {
            let bytes = call.body.part(&(first.start..last.end))?;
            let list = [b"[", &*bytes, b"]"].concat();
            members.push(("messages", Cow::Owned(list)));
        }
        for (name, bytes) in &mut members {
            // Prompts are recorded unchanged.
            if !is_prompt(name) {
                // The name counts too: a member of the request itself may be a credential.
                let name = infold_wire::quote(name);
                let whole =
                    blank_credentials(&format!("{{{name}:{}}}", String::from_utf8_lossy(bytes)));
                let value = whole.get(name.len() + 2..whole.len() - 1).unwrap_or("null");
                *bytes = Cow::Owned(value.to_owned().into_bytes());
            }
        }
        self.redact_session(parsed, &mut members)?;
        let members: Vec<(&str, &[u8])> = members.iter().map(|(name, it)| (*name, &**it)).collect();
        let redacted = self.index.redacted()?;
        open.writer
            .frame_without(call.wire, &members, redacted.as_ref())?;
        open.wrote();
        self.frames.recorded.insert(open.id, parsed.frame);
        Ok(())
    }

    /// Replaces the name of a session in the parameters of a request, if it was redacted in a task.
    fn redact_session(
        &self,
        parsed: &ParsedRequest,
        members: &mut [(&str, Cow<'_, [u8]>)],
    ) -> Result<(), ConversationError> {
        let Some(session) = &parsed.params.session else {
            return Ok(());
        };
        let name = ConversationName::Session(session.clone());
        let stored = self.index.stored_name(&name)?;
        if stored == name {
            return Ok(());
        }
        // A short name may occur in other texts by chance.
        let is_distinct = session.len() >= MIN_DISTINCT_NAME_BYTES;
        let mut find = |text: &str| {
            let found = text.match_indices(session.as_str());
            let found = found.filter(|_| is_distinct || text == session);
            found.map(|(at, found)| at..at + found.len()).collect()
        };
        let is_parameter =
            |name: &str| !is_prompt(name) && !matches!(name, "model" | "tools" | "tool_choice");
        for (_, bytes) in members.iter_mut().filter(|(name, _)| is_parameter(name)) {
            let redacted = redact_data(bytes, stored.text(), &mut find);
            if let Ok(Some(redacted)) = redacted.map(|redacted| redacted.bytes) {
                *bytes = Cow::Owned(redacted);
            }
        }
        Ok(())
    }

    /// Writes the conversation index, and syncs the writes of closed tasks to disk.
    fn write_out(&self) {
        if let Err(error) = self.index.flush() {
            self.pool.report(&error.into());
        }
        if let Err(error) = self.pool.force_to_disk() {
            self.pool.report(&error);
        }
    }
}
