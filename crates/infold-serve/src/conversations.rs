//! Recognises conversations, records them and folds them to fit.

mod lookup;
mod rewind;
mod placement;
mod fit;
mod recall;
mod unrecorded;
mod frames;

use std::sync::{Arc, Mutex};

use infold::{Config, Connector, ManageError};
use infold_store::{AppendError, Contexts, LogError, RegistryError, StepError, TaskError, Writer};
use uuid::Uuid;

use crate::background::BackgroundQueue;
use crate::conversation_index::ConversationIndex;
use crate::digest_cache::DigestCache;
use crate::live_events::{LiveEvent, LiveEvents};
use crate::metrics::Metrics;
use crate::model_rules::ModelRules;
use crate::parsed_request::ParsedRequest;
use crate::pool::{self, TaskLease, TaskPool};
use crate::search_worker;
use crate::{Exchange, ModelCall, OutgoingBody};
pub(crate) use fit::{Fitted, fold_due, is_slow, tokens_up_to};
use frames::FrameCache;
pub(crate) use placement::{Placement, TASK_SOURCE, is_unfolded, response_key};
pub(crate) use recall::may_recall;
pub(crate) use rewind::{fold_over, last_sent, rewind};

/// All conversations of a contexts directory.
///
/// Methods read and write files: they are called from threads that may block.
#[derive(Clone)]
pub struct Conversations {
    pub(crate) core: Arc<Core>,
}

/// What all exchanges share. Nothing in it would be missed after a restart.
pub(crate) struct Core {
    pub contexts: Contexts,
    pub config: Arc<Config>,
    pub metrics: Arc<Metrics>,
    pub events: LiveEvents,
    pub background: BackgroundQueue,
    /// What finds a task.
    pub index: ConversationIndex,
    /// How to fold for a model.
    pub rules: Arc<ModelRules>,
    /// Who owns open tasks.
    pub pool: Arc<TaskPool>,
    pub digests: DigestCache,
    frames: FrameCache,
    /// Conversations that begin alike are placed one after another.
    opening_locks: [Mutex<()>; OPENING_LOCKS],
}

const OPENING_LOCKS: usize = 64;

/// What came of a call before it is sent.
pub struct AcceptedCall {
    /// The request to send.
    pub outgoing: OutgoingBody,
    /// Records the reply.
    pub exchange: Exchange,
}

/// How far a call has come.
pub(crate) enum CallStage {
    Received,
    Parsed(Box<ParsedRequest>),
    /// Its task is known, and new messages are recorded.
    Placed(Box<Exchange>),
    /// It can be sent.
    Ready(OutgoingBody, Box<Exchange>),
}

/// Counting the tokens of this many bytes takes about a millisecond, which an async thread can afford.
pub(crate) const MAX_INLINE_BYTES: u64 = 16 << 10;

/// Whether the calling thread may block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocking {
    /// It is an async thread: wait for nothing.
    Forbidden,
    Allowed,
}

/// Why a call could not be recorded or folded. It is passed on untouched then.
#[derive(Debug, thiserror::Error)]
pub enum ConversationError {
    /// The request cannot be recorded: the provider will say what is wrong with it, if anything is.
    #[error("{0}")]
    Request(String),
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
            events: LiveEvents::default(),
            opening_locks: std::array::from_fn(|_| Mutex::new(())),
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

    /// Writes to a task, which the server takes for that if it has it not open.
    pub fn with<T>(&self, task: Uuid, work: impl FnOnce(&mut Writer) -> T) -> Result<T, TaskError> {
        let mut open = self.core.pool.lease(task)?;
        let done = work(&mut open.writer);
        open.wrote();
        Ok(done)
    }

    /// Runs work that needs the locks of several tasks, and releases those that are open here.
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
        self.core.background.drain();
        self.core.pool.close_all();
        self.core.write_out();
    }

    /// Recognises the conversation of a call, records what is new, and folds it if that is due.
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
        let parsed = match stage {
            CallStage::Received if may_block || call.body.is_short() => self.parse(call)?,
            CallStage::Parsed(parsed) => parsed,
            CallStage::Placed(exchange) => {
                let open = self.core.pool.lease(exchange.task())?;
                return self.fit(call, exchange, open, blocking);
            }
            stage => return Ok(stage),
        };
        if !may_block && !self.core.can_place_inline(&parsed) {
            return Ok(CallStage::Parsed(parsed));
        }
        let mut parsed = *parsed;
        let (placement, open) = self.core.place(call, &mut parsed)?;
        let exchange = Exchange::new(Arc::clone(&self.core), parsed, &placement);
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

impl Core {
    /// Publishes a live event of a task.
    pub fn publish(&self, task: Uuid, name: &'static str, json: String) {
        self.events.publish(LiveEvent { task, name, json });
    }

    /// Writes the conversation index, and forces onto the disk what closed tasks wrote.
    fn write_out(&self) {
        if let Err(error) = self.index.flush() {
            self.pool.report(&error.into());
        }
        if let Err(error) = self.pool.force_to_disk() {
            self.pool.report(&error);
        }
    }
}
