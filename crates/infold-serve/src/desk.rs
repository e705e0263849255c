//! Where conversations are recognised, kept and folded.

mod open;
mod recent;
mod index;
mod spot;
mod back;
mod settle;
mod fold;
mod unrecorded;
mod frames;
mod rules;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};

use infold::{Config, ManageError, Switchboard};
use infold_store::{
    AppendError, Chains, Contexts, LogError, Loose, RegistryError, StepError, TaskError, Writer,
};
use uuid::Uuid;

use crate::held::Held;
use crate::later::Later;
use crate::metrics::Metrics;
use crate::news::{Change, News};
use crate::seen::Seen;
use crate::told::Told;
use crate::{Call, Exchange, Outgoing};
pub(crate) use back::{in_the_way, last_sent, rewind};
pub(crate) use fold::{Fitted, due, is_slow, tokens_up_to};
use frames::Frames;
pub(crate) use open::IDLE;
use open::Opened;
use recent::{Recent, Waiting};
use rules::Rules;
pub(crate) use rules::{Rule, long_context_name};
pub(crate) use settle::{SOURCE, Settled, is_unfolded, response_key};

/// Where conversations are recognised, kept and folded.
///
/// All of its methods read and write files: they are called from threads that may block, but for
/// what nobody has to wait for.
#[derive(Clone)]
pub struct Desk {
    pub(crate) inner: Arc<Inner>,
}

/// What all that work at a desk share. Nothing of it would be missed after a restart.
pub(crate) struct Inner {
    pub contexts: Contexts,
    pub config: Arc<Config>,
    pub switchboard: Switchboard,
    pub metrics: Arc<Metrics>,
    pub news: News,
    pub later: Later,
    chains: Mutex<Chains>,
    opened: Mutex<Opened>,
    /// Where those wait who want a task that somebody is opening.
    door: Condvar,
    rules: Mutex<Rules>,
    pub seen: Seen,
    recent: Recent,
    waiting: Mutex<Waiting>,
    /// Tasks that were closed before their view could be written, for lack of descriptors or space.
    pub behind: Mutex<HashSet<Uuid>>,
    /// What is to come onto the disk.
    pub loose: Mutex<HashMap<Uuid, Loose>>,
    frames: Mutex<Frames>,
    /// Exchanges under way, by task.
    under_way: Mutex<HashMap<Uuid, u32>>,
    /// Conversations that begin alike are looked at one after another.
    turns: [Mutex<()>; TURNS],
}

const TURNS: usize = 64;

/// What came of looking at a call.
pub struct Taken {
    /// What to send.
    pub outgoing: Outgoing,
    /// What is to become of the reply.
    pub exchange: Exchange,
}

/// How far a call has come.
pub(crate) enum Stage {
    /// It was not looked at.
    Unread,
    /// It is known what it says.
    Read(Box<Told>),
    /// It is known which task it belongs to, and what is new is kept.
    Settled(Box<Exchange>),
    /// It can be sent.
    Taken(Outgoing, Box<Exchange>),
}

/// To count the tokens of so many bytes takes about a millisecond: that can be done on the spot.
pub(crate) const LITTLE: u64 = 16 << 10;

/// Whether there is time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Nothing is done that somebody else would have to wait for.
    Hasty,
    /// Whatever has to be done is done.
    Patient,
}

/// Why a call could not be kept or folded. It is passed on untouched then.
#[derive(Debug, thiserror::Error)]
pub enum DeskError {
    /// The request is none that could be kept: whoever it is meant for will say what is wrong with it, if anything is.
    #[error("{0}")]
    Request(String),
    /// Something that should hold does not.
    #[error("{0}")]
    Own(String),
    /// A task could not be had.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// A message is none.
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
    /// The index of conversations could not be read or written.
    #[error(transparent)]
    Chains(#[from] RegistryError),
    /// The request's body could not be read back.
    #[error("the request's body could not be read: {0}")]
    Body(#[from] std::io::Error),
}

impl Desk {
    /// Opens a desk over a contexts directory.
    pub fn new(
        contexts: Contexts,
        config: Arc<Config>,
        switchboard: Switchboard,
    ) -> Result<Desk, TaskError> {
        open::raise_limit();
        let redacts = contexts.redacts() || config.redact.value;
        let contexts = contexts.redacting(redacts);
        let chains = index::open(&contexts)?;
        let (later, jobs) = Later::new();
        let seen = Seen::new(redacts);
        let inner = Arc::new(Inner {
            contexts,
            config,
            switchboard,
            metrics: Arc::default(),
            news: News::default(),
            later,
            chains: Mutex::new(chains),
            opened: Mutex::default(),
            door: Condvar::new(),
            rules: Mutex::default(),
            seen,
            recent: Recent::default(),
            waiting: Mutex::default(),
            behind: Mutex::default(),
            loose: Mutex::default(),
            frames: Mutex::default(),
            under_way: Mutex::default(),
            turns: std::array::from_fn(|_| Mutex::new(())),
        });
        jobs.start(&inner);
        Ok(Desk { inner })
    }

    /// The tasks.
    pub fn contexts(&self) -> &Contexts {
        &self.inner.contexts
    }

    /// What is counted here.
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.inner.metrics)
    }

    /// Where it tells of what happens.
    pub fn news(&self) -> News {
        self.inner.news.clone()
    }

    /// How it was set up.
    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.inner.config)
    }

    /// Does something to a task that this server holds, or takes for it.
    pub fn with<T>(&self, task: Uuid, work: impl FnOnce(&mut Writer) -> T) -> Result<T, TaskError> {
        let held = self.inner.open(task)?;
        let mut held = locked(&held);
        let done = work(&mut held.writer);
        self.inner.wrote(&mut held);
        Ok(done)
    }

    /// Does something that needs the locks of several tasks, those let go of first that this server holds.
    pub fn released<T>(&self, work: impl FnMut() -> Result<T, TaskError>) -> Result<T, TaskError> {
        self.inner.released(work)
    }

    /// Lets go of a task, so that another process can have it.
    pub fn release(&self, task: Uuid) {
        self.inner.release(task);
    }

    /// Lets go of all tasks.
    pub fn close(&self) {
        self.inner.close();
    }

    /// Recognises the conversation, keeps what is new of it, and folds it if that is due.
    pub fn take(&self, call: &Call) -> Result<Taken, DeskError> {
        match self.carry(call, Stage::Unread, Pace::Patient)? {
            Stage::Taken(outgoing, exchange) => Ok(Taken {
                outgoing,
                exchange: *exchange,
            }),
            _ => Err(DeskError::Own("a call was left half way".to_owned())),
        }
    }

    /// Carries a call on: to the end, or as far as nobody has to wait for it.
    pub(crate) fn carry(
        &self,
        call: &Call,
        mut stage: Stage,
        pace: Pace,
    ) -> Result<Stage, DeskError> {
        let patient = pace == Pace::Patient;
        loop {
            stage = match stage {
                Stage::Unread if patient || call.body.is_short() => Stage::Read(self.read(call)?),
                Stage::Read(told) if patient || self.inner.is_near(&told) => {
                    Stage::Settled(Box::new(self.settle(call, *told)?))
                }
                Stage::Settled(mut exchange) => match exchange.begin(call, pace) {
                    Ok(Some(outgoing)) => Stage::Taken(outgoing, exchange),
                    Ok(None) => return Ok(Stage::Settled(exchange)),
                    Err(error) => {
                        exchange.tell_failure(&error.to_string());
                        return Err(error);
                    }
                },
                stage => return Ok(stage),
            }
        }
    }

    fn read(&self, call: &Call) -> Result<Box<Told>, DeskError> {
        if !self.inner.config.context_storage.enabled.value {
            return Err(DeskError::Request("nothing is to be recorded".to_owned()));
        }
        let told = Told::read(call, &self.inner.seen)?;
        if told.said.is_empty() {
            return Err(DeskError::Request("nobody says anything in it".to_owned()));
        }
        Ok(Box::new(told))
    }

    fn settle(&self, call: &Call, mut told: Told) -> Result<Exchange, DeskError> {
        let settled = self.inner.settle(call, &mut told)?;
        Ok(Exchange::new(self.inner.clone(), told, settled))
    }
}

impl Inner {
    /// The index of conversations, but for what waits.
    pub fn chains(&self) -> MutexGuard<'_, Chains> {
        locked(&self.chains)
    }

    /// Notes that a task was written to, so that it comes to rest on the disk.
    pub fn wrote(&self, held: &mut Held) {
        if !std::mem::replace(&mut held.written, true) {
            self.later.rest(held.id);
        }
    }

    /// Tells whoever watches.
    pub fn tell(&self, task: Uuid, what: &'static str, json: String) {
        self.news.tell(Change { task, what, json });
    }

    /// Says whether a task is open, and nobody is at it.
    pub fn is_at_hand(&self, task: Uuid) -> bool {
        let held = self.opened(task);
        held.is_some_and(|held| tried(&held).is_some())
    }

    /// Says whether no exchange of a task is under way.
    pub fn is_idle(&self, task: Uuid) -> bool {
        self.count_under_way(task) == 0
    }

    /// How many exchanges of a task are under way.
    pub fn count_under_way(&self, task: Uuid) -> u32 {
        locked(&self.under_way).get(&task).copied().unwrap_or(0)
    }

    /// One more exchange of a task is under way, or one less.
    pub fn under_way(&self, task: Uuid, more: bool) {
        let mut all = locked(&self.under_way);
        let count = all.entry(task).or_default();
        *count = match more {
            true => *count + 1,
            false => count.saturating_sub(1),
        };
        if *count == 0 {
            all.remove(&task);
        }
    }
}

/// Locks, also what somebody left in a panic: all behind these locks is checked when it is used.
pub(crate) fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks, unless somebody has it locked.
pub(crate) fn tried<T: ?Sized>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(left)) => Some(left.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
