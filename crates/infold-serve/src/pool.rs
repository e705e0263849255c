//! Owns the tasks that this server has open, and lends each to one user at a time.

mod slots;

use std::collections::{HashMap, HashSet};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use infold::Config;
use infold_store::{Contexts, OpenError, TaskError, UnsyncedFiles};
use uuid::Uuid;

use crate::background::BackgroundQueue;
use crate::locked;
use crate::metrics::Metrics;
use crate::open_task::OpenTask;
use crate::{ConversationError, request_release};
pub(crate) use slots::raise_descriptor_limit;
use slots::{PoolSlot, PoolState, max_closing};

/// The open tasks.
///
/// An open task is either in the pool or with the one lease that took it out, never in both places: the holder of the
/// lease appends, folds, records and syncs without any lock, in order.
///
/// Lock order: an opening lock (`Core::opening_lock`), then a permit to make a task (`CreationLimit`), then the lease of a task,
/// then the lease of a task that is forked from it, then the short mutexes of pool, index and rules. Nothing waits for a lease
/// while it holds one of those mutexes.
pub(crate) struct TaskPool {
    contexts: Contexts,
    config: Arc<Config>,
    background: BackgroundQueue,
    metrics: Arc<Metrics>,
    state: Mutex<PoolState>,
    /// Notified when a slot changes.
    changed: Condvar,
    /// Written files that are not forced onto the disk yet, by task.
    unsynced: Mutex<HashMap<Uuid, UnsyncedFiles>>,
    /// Tasks that were closed before their view could be written, for lack of descriptors or space.
    stale_views: Mutex<HashSet<Uuid>>,
}

/// Exclusive use of an open task. Dropping it gives the task back to the pool.
pub(crate) struct TaskLease {
    pool: Arc<TaskPool>,
    task: Option<Box<OpenTask>>,
}

/// The result of asking for a lease without waiting.
pub(crate) enum TryLease {
    Leased(TaskLease),
    /// Another user has it.
    Busy,
    /// The task is not open.
    Closed,
}

/// Descriptors of an open task beside its log: for its lock, its frames and its view.
const DESCRIPTORS_BESIDE_LOG: u64 = 3;

/// How long to wait for a task that another process holds: its commands are short, and a server releases it when asked.
const MAX_WAIT_FOR_TASK: Duration = Duration::from_secs(3);

/// The pause between two tries to open a task that another process holds: there is no notification when its file lock
/// is released.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// After this time without use a task is closed, so that other processes can have it.
pub(crate) const CLOSE_AFTER_IDLE: Duration = Duration::from_secs(60);

impl TaskPool {
    pub fn new(
        contexts: Contexts,
        config: Arc<Config>,
        background: BackgroundQueue,
        metrics: Arc<Metrics>,
    ) -> TaskPool {
        TaskPool {
            contexts,
            config,
            background,
            metrics,
            state: Mutex::default(),
            changed: Condvar::new(),
            unsynced: Mutex::default(),
            stale_views: Mutex::default(),
        }
    }

    /// Leases a task, opened if need be. Waits for other users, and asks another server that holds it to release it.
    pub fn lease(self: &Arc<Self>, task: Uuid) -> Result<TaskLease, TaskError> {
        let (mut since, mut has_asked) = (Instant::now(), false);
        loop {
            let (error, address) = match self.lease_in_process(task) {
                Err(TaskError::Open {
                    task,
                    source: OpenError::Held { holder },
                }) => {
                    let address = holder.as_ref().and_then(|holder| holder.address.clone());
                    let source = OpenError::Held { holder };
                    (TaskError::Open { task, source }, address)
                }
                leased => return leased,
            };
            let is_other = |address: &String| Some(address.as_str()) != self.contexts.address();
            if let Some(address) = address.filter(is_other)
                && !has_asked
            {
                has_asked = true;
                let token = self.config.serve.token.as_ref();
                let token = token.map(|set| set.value.reveal());
                if request_release(&address, task, token, MAX_WAIT_FOR_TASK) {
                    since = Instant::now();
                }
            } else if since.elapsed() >= MAX_WAIT_FOR_TASK {
                return Err(error);
            }
            std::thread::sleep(LOCK_POLL_INTERVAL);
        }
    }

    /// Leases a task unless another process holds it.
    pub fn lease_in_process(self: &Arc<Self>, task: Uuid) -> Result<TaskLease, TaskError> {
        let mut state = locked(&self.state);
        loop {
            if let Some(open) = state.take_idle(task) {
                return Ok(self.lease_of(open));
            }
            if state.slots.contains_key(&task) {
                state = self.wait(state, Duration::MAX);
            } else if let Some(rest) = state.reserved_for(task) {
                state = self.wait(state, rest);
            } else {
                break;
            }
        }
        state.slots.insert(task, PoolSlot::Busy { descriptors: 0 });
        drop(state);
        let (writer, _) = self
            .contexts
            .write(task)
            .inspect_err(|_| self.vacate(task))?;
        let mut open = Box::new(OpenTask::new(task, writer));
        open.descriptors = open.log().max_descriptors() + DESCRIPTORS_BESIDE_LOG;
        let mut state = locked(&self.state);
        open.prepared = state.prepared.remove(&task);
        let evicted = state.evict_for(open.descriptors);
        let descriptors = open.descriptors;
        state.slots.insert(task, PoolSlot::Busy { descriptors });
        drop(state);
        let lease = self.lease_of(open);
        self.close_soon(evicted);
        Ok(lease)
    }

    /// Leases a task that is open, without waiting.
    pub fn try_lease(self: &Arc<Self>, task: Uuid) -> TryLease {
        let mut state = locked(&self.state);
        match state.take_idle(task) {
            Some(open) => TryLease::Leased(self.lease_of(open)),
            None if state.slots.contains_key(&task) => TryLease::Busy,
            None => TryLease::Closed,
        }
    }

    /// Leases a task if it is open, waiting for other users; never opens it.
    pub fn lease_if_open(self: &Arc<Self>, task: Uuid) -> Option<TaskLease> {
        let mut state = locked(&self.state);
        loop {
            if let Some(open) = state.take_idle(task) {
                return Some(self.lease_of(open));
            }
            if !state.slots.contains_key(&task) {
                return None;
            }
            state = self.wait(state, Duration::MAX);
        }
    }

    /// Says whether a task is open, in use or not.
    pub fn is_open(&self, task: Uuid) -> bool {
        locked(&self.state).slots.contains_key(&task)
    }

    /// Says whether a lease of a task can be had without waiting or opening it.
    pub fn is_idle(&self, task: Uuid) -> bool {
        matches!(
            locked(&self.state).slots.get(&task),
            Some(PoolSlot::Idle(_))
        )
    }

    /// Closes a task as soon as its user is done, and leaves it to another process for a moment.
    pub fn release(&self, task: Uuid) {
        let deadline = Instant::now() + MAX_WAIT_FOR_TASK;
        let mut state = locked(&self.state);
        state.reserve(task);
        loop {
            if let Some(open) = state.take_idle(task) {
                drop(state);
                self.close(*open);
                return;
            }
            let rest = deadline.saturating_duration_since(Instant::now());
            if !state.slots.contains_key(&task) || rest.is_zero() {
                return;
            }
            state = self.wait(state, rest);
        }
    }

    /// Runs `work`, which needs the locks of several tasks, and releases tasks whose locks it needs.
    pub fn with_released<T>(
        &self,
        mut work: impl FnMut() -> Result<T, TaskError>,
    ) -> Result<T, TaskError> {
        let begin = Instant::now();
        loop {
            match work() {
                Err(TaskError::Open { task, .. })
                    if self.is_open(task) && begin.elapsed() < MAX_WAIT_FOR_TASK =>
                {
                    self.release(task);
                }
                done => return done,
            }
        }
    }

    /// Drops a task that is to be removed, without further writes.
    pub fn discard(&self, task: Uuid) {
        let open = locked(&self.state).take_idle(task);
        if open.is_some() {
            drop(open);
            self.vacate(task);
        }
    }

    /// Closes all tasks, waiting for their users for a while.
    pub fn close_all(&self) {
        let deadline = Instant::now() + MAX_WAIT_FOR_TASK;
        loop {
            let mut state = locked(&self.state);
            let next = state.slots.iter().find_map(|(id, slot)| match slot {
                PoolSlot::Idle(_) => Some(*id),
                PoolSlot::Busy { .. } => None,
            });
            if let Some(open) = next.and_then(|id| state.take_idle(id)) {
                drop(state);
                self.close(*open);
                continue;
            }
            let rest = deadline.saturating_duration_since(Instant::now());
            if state.slots.is_empty() || rest.is_zero() {
                break;
            }
            drop(self.wait(state, rest));
        }
        for task in std::mem::take(&mut *locked(&self.stale_views)) {
            // Opening a task writes its view. If it fails again, the next process does that.
            let _ = self.contexts.write(task);
        }
    }

    /// Closes the tasks that were not used for `idle` and have no exchange under way.
    pub fn close_idle(&self, idle: Duration) {
        let mut state = locked(&self.state);
        let old: Vec<Uuid> = state
            .slots
            .iter()
            .filter_map(|(id, slot)| match slot {
                PoolSlot::Idle(open) if open.used.elapsed() >= idle && !open.is_preparing => {
                    Some(*id)
                }
                _ => None,
            })
            .filter(|id| !state.exchanges.contains_key(id))
            .collect();
        let old = old
            .iter()
            .filter_map(|id| state.take_idle(*id).map(|open| *open));
        let old: Vec<OpenTask> = old.collect();
        drop(state);
        self.close_tasks(old);
    }

    /// Closes tasks, here and now.
    pub fn close_tasks(&self, tasks: Vec<OpenTask>) {
        for open in tasks {
            self.close(open);
        }
    }

    /// Closes a task that was taken out of its slot.
    fn close(&self, mut open: OpenTask) {
        if let Err(error) = self.settle(&mut open) {
            self.report(&error);
        }
        if !open.writer.has_current_view() {
            locked(&self.stale_views).insert(open.id);
            self.background.settle(open.id);
        }
        let (id, prepared) = (open.id, open.prepared.take());
        drop(open);
        if let Some(prepared) = prepared {
            locked(&self.state).keep_prepared(id, prepared);
        }
        self.vacate(id);
    }

    /// Has tasks closed in the background, or closes them here if too many wait for that already.
    fn close_soon(&self, tasks: Vec<OpenTask>) {
        let refused = self.background.close(tasks, max_closing());
        self.close_tasks(refused);
    }

    /// Notes that a task was written to, so that it is settled soon.
    pub fn wrote(&self, open: &mut OpenTask) {
        if !std::mem::replace(&mut open.is_unsettled, true) {
            self.background.settle(open.id);
        }
    }

    /// Brings the derived files of a task up to date, and notes the files that have to be synced.
    pub fn settle(&self, open: &mut OpenTask) -> Result<(), ConversationError> {
        if open.is_unsettled {
            open.writer.sync()?;
            self.contexts.settle(open.id, &open.writer)?;
            locked(&self.unsynced).insert(open.id, open.writer.unsynced_files());
            // Writes from here on are settled the next time.
            open.is_unsettled = false;
        }
        Ok(())
    }

    /// Settles a task in the background; returns the result.
    pub fn settle_if_idle(self: &Arc<Self>, task: Uuid) -> Result<Settling, ConversationError> {
        let mut open = match self.try_lease(task) {
            TryLease::Leased(open) => open,
            TryLease::Busy => return Ok(Settling::Busy),
            // Closing a task settles it, except for its view.
            TryLease::Closed if !locked(&self.stale_views).contains(&task) => {
                return Ok(Settling::Done);
            }
            // Opening a task writes its view.
            TryLease::Closed => match self.lease_in_process(task) {
                Ok(open) => open,
                Err(TaskError::Unknown { .. } | TaskError::Ended { .. }) => {
                    locked(&self.stale_views).remove(&task);
                    return Ok(Settling::Done);
                }
                Err(_) => return Ok(Settling::StaleView),
            },
        };
        self.settle(&mut open)?;
        if !open.writer.has_current_view() {
            return Ok(Settling::StaleView);
        }
        locked(&self.stale_views).remove(&task);
        Ok(Settling::Done)
    }

    /// Syncs the files of settled tasks to disk. Writers do not wait for it.
    pub fn force_to_disk(&self) -> Result<(), ConversationError> {
        let unsynced = std::mem::take(&mut *locked(&self.unsynced));
        let forced = UnsyncedFiles::force(self.contexts.root(), unsynced.values());
        if forced.is_err() {
            let mut again = locked(&self.unsynced);
            for (task, files) in unsynced {
                again.entry(task).or_insert(files);
            }
        }
        Ok(forced?)
    }

    /// Reports a failure of our own that no client sees.
    pub fn report(&self, error: &ConversationError) {
        self.metrics.failed("record");
        tracing::warn!(%error, "recording failed");
    }

    /// Counts an exchange of a task as under way.
    pub fn begin_exchange(&self, task: Uuid) {
        *locked(&self.state).exchanges.entry(task).or_default() += 1;
    }

    /// Counts an exchange of a task as ended.
    pub fn end_exchange(&self, task: Uuid) {
        let mut state = locked(&self.state);
        if let Some(count) = state.exchanges.get_mut(&task) {
            *count -= 1;
            if *count == 0 {
                state.exchanges.remove(&task);
            }
        }
    }

    /// Returns how many exchanges of a task are under way.
    pub fn exchanges(&self, task: Uuid) -> u32 {
        let state = locked(&self.state);
        state.exchanges.get(&task).copied().unwrap_or(0)
    }

    fn lease_of(self: &Arc<Self>, open: Box<OpenTask>) -> TaskLease {
        TaskLease {
            pool: Arc::clone(self),
            task: Some(open),
        }
    }

    fn put_back(&self, mut open: Box<OpenTask>) {
        open.used = Instant::now();
        let mut state = locked(&self.state);
        if state.reserved_for(open.id).is_some() {
            // Another process waits for the task; the slot stays busy until it is closed.
            drop(state);
            self.close_soon(vec![*open]);
            return;
        }
        state.slots.insert(open.id, PoolSlot::Idle(open));
        drop(state);
        self.changed.notify_all();
    }

    /// Frees the slot of a task that is no longer open.
    fn vacate(&self, task: Uuid) {
        locked(&self.state).slots.remove(&task);
        self.changed.notify_all();
    }

    /// Waits until a slot changes, at most so long.
    fn wait<'s>(
        &self,
        state: MutexGuard<'s, PoolState>,
        at_most: Duration,
    ) -> MutexGuard<'s, PoolState> {
        if at_most == Duration::MAX {
            let waited = self.changed.wait(state);
            return waited.unwrap_or_else(PoisonError::into_inner);
        }
        let waited = self.changed.wait_timeout(state, at_most);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// The result of settling a task in the background.
pub(crate) enum Settling {
    Done,
    /// Another user has the task.
    Busy,
    /// The view could not be written.
    StaleView,
}

impl TaskLease {
    /// Notes that the task was written to.
    pub fn wrote(&mut self) {
        let pool = Arc::clone(&self.pool);
        pool.wrote(self);
    }
}

impl Deref for TaskLease {
    type Target = OpenTask;

    fn deref(&self) -> &OpenTask {
        self.task
            .as_ref()
            .expect("a lease has its task until it is dropped")
    }
}

impl DerefMut for TaskLease {
    fn deref_mut(&mut self) -> &mut OpenTask {
        self.task
            .as_mut()
            .expect("a lease has its task until it is dropped")
    }
}

impl Drop for TaskLease {
    fn drop(&mut self) {
        let Some(open) = self.task.take() else {
            return;
        };
        if std::thread::panicking() {
            // The state in memory may be half changed; opening the task again reads it from disk.
            let id = open.id;
            drop(open);
            self.pool.vacate(id);
        } else {
            self.pool.put_back(open);
        }
    }
}

#[cfg(test)]
mod tests;
