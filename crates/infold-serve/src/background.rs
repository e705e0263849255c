//! Work that no request waits for: settling and closing tasks, records of tools, learning from reported usage,
//! prefetched summaries.

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use infold_log::Span;
use infold_store::{OpenError, TaskError, Usage};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use crate::ConversationError;
use crate::conversations::{Core, TASK_SOURCE};
use crate::open_task::OpenTask;
use crate::pool::{CLOSE_AFTER_IDLE, Settling, TryLease};
use crate::prefetch::PrefetchJob;

/// Takes background jobs. It is unbounded: the thread that adds a job may hold the lease that the worker waits for.
#[derive(Clone)]
pub(crate) struct BackgroundQueue {
    jobs: Sender<Job>,
    queued: Arc<AtomicUsize>,
    closing: Arc<AtomicUsize>,
}

/// Runs the jobs in a thread of its own.
pub(crate) struct BackgroundWorker {
    queue: Receiver<Job>,
    queued: Arc<AtomicUsize>,
    /// The number of tasks that wait to be closed.
    closing: Arc<AtomicUsize>,
    /// When tasks are to be settled.
    settle_at: HashMap<Uuid, Instant>,
    /// Jobs deferred because their task was leased.
    deferred: Vec<Job>,
}

enum Job {
    /// Settle a task after writes.
    Settle(Uuid),
    /// Record the tool results in new messages.
    RecordTools(Uuid, Span),
    /// Learn from the usage that a provider reported, given the tokens that we counted and the factor that we used.
    Learn(Box<Usage>, (u64, f64)),
    Close(Vec<OpenTask>),
    Prefetch(Uuid, Box<PrefetchJob>),
    /// Answer when all jobs before this one are done.
    Barrier(SyncSender<()>),
}

impl Job {
    fn records_tools_of(&self, task: Uuid) -> bool {
        matches!(self, Job::RecordTools(other, _) if *other == task)
    }
}

/// The queue length from which on optional jobs are dropped.
const MAX_QUEUED_FOR_OPTIONAL: usize = 8192;

/// How long [`BackgroundQueue::drain`] waits.
const MAX_DRAIN_WAIT: Duration = Duration::from_secs(5);

/// The interval at which the worker looks for due work.
const TICK: Duration = Duration::from_millis(250);

/// The time from a write to settling the task.
const SETTLE_AFTER: Duration = Duration::from_secs(1);

/// The time from a failed try to settling the task again.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// The interval at which long idle conversations are looked for.
const END_IDLE_INTERVAL: Duration = Duration::from_secs(60);

/// The number of idle conversations that are ended at a time.
const MAX_ENDED_AT_ONCE: u64 = 64;

/// After this many hours without a request a conversation has ended, unless configured otherwise.
const END_AFTER_HOURS: u64 = 24;

impl BackgroundQueue {
    /// Returns a queue and its worker, which does nothing until it is started.
    pub fn new() -> (BackgroundQueue, BackgroundWorker) {
        let (jobs, queue) = channel();
        let (queued, closing) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
        let worker = BackgroundWorker {
            queue,
            queued: Arc::clone(&queued),
            closing: Arc::clone(&closing),
            settle_at: HashMap::new(),
            deferred: Vec::new(),
        };
        let queue = BackgroundQueue {
            jobs,
            queued,
            closing,
        };
        (queue, worker)
    }

    /// Settles a task soon.
    pub fn settle(&self, task: Uuid) {
        self.add(Job::Settle(task));
    }

    /// Records the tool results in new messages.
    pub fn record_tools(&self, task: Uuid, messages: Span) {
        self.add(Job::RecordTools(task, messages));
    }

    /// Learns from the usage that a provider reported.
    pub fn learn(&self, usage: Usage, counted: (u64, f64)) {
        self.add_optional(Job::Learn(Box::new(usage), counted));
    }

    /// Closes tasks; returns them if `max_closing` of them wait for that already.
    pub fn close(&self, tasks: Vec<OpenTask>, max_closing: usize) -> Vec<OpenTask> {
        if tasks.is_empty() || self.closing.load(Relaxed) >= max_closing {
            return tasks;
        }
        self.closing.fetch_add(tasks.len(), Relaxed);
        self.add(Job::Close(tasks));
        Vec::new()
    }

    /// Has a summary written that may soon be needed.
    pub fn prefetch(&self, task: Uuid, job: PrefetchJob) {
        self.add_optional(Job::Prefetch(task, Box::new(job)));
    }

    /// Waits until all jobs added before are done, but not for ever.
    pub fn drain(&self) {
        let (done, is_done) = sync_channel(1);
        self.add(Job::Barrier(done));
        let _ = is_done.recv_timeout(MAX_DRAIN_WAIT);
    }

    fn add(&self, job: Job) {
        self.queued.fetch_add(1, Relaxed);
        // Without a worker the server is ending.
        let _ = self.jobs.send(job);
    }

    /// Adds a job that can be dropped when there are too many.
    fn add_optional(&self, job: Job) {
        if self.queued.load(Relaxed) < MAX_QUEUED_FOR_OPTIONAL {
            self.add(job);
        }
    }
}

impl BackgroundWorker {
    /// Starts the worker's thread, which ends with `core`.
    pub fn start(self, core: &Arc<Core>) {
        let core = Arc::downgrade(core);
        // Without the thread only counters and learned values are lost.
        let _ = std::thread::Builder::new()
            .name("background".to_owned())
            .spawn(move || self.run(&core));
    }

    fn run(mut self, core: &Weak<Core>) {
        let mut last_tick = Instant::now();
        let mut force_at = last_tick;
        let mut last_end: Option<Instant> = None;
        loop {
            let job = self.queue.recv_timeout(TICK);
            let Some(core) = core.upgrade() else { return };
            match job {
                Ok(job) => {
                    self.queued.fetch_sub(1, Relaxed);
                    let deferred = self.try_job(&core, job);
                    self.deferred.extend(deferred);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if last_tick.elapsed() < TICK {
                continue;
            }
            last_tick = Instant::now();
            if let Err(error) = core.index.flush() {
                core.pool.report(&error.into());
            }
            for job in std::mem::take(&mut self.deferred) {
                let deferred = self.try_job(&core, job);
                self.deferred.extend(deferred);
            }
            self.settle_due(&core);
            core.pool.close_idle(CLOSE_AFTER_IDLE);
            if last_end.is_none_or(|last| last.elapsed() >= END_IDLE_INTERVAL) {
                last_end = Some(last_tick);
                if let Err(error) = core.end_idle_conversations() {
                    core.pool.report(&error);
                }
            }
            if force_at <= last_tick {
                force_at = last_tick + SETTLE_AFTER;
                if let Err(error) = core.pool.force_to_disk() {
                    core.pool.report(&error);
                    force_at = last_tick + RETRY_AFTER;
                }
            }
        }
    }

    /// Does a job; returns it if its task is leased, so that other tasks do not wait for it.
    fn try_job(&mut self, core: &Arc<Core>, job: Job) -> Option<Job> {
        let done = match job {
            Job::Settle(task) => {
                let due = || Instant::now() + SETTLE_AFTER;
                self.settle_at.entry(task).or_insert_with(due);
                Ok(())
            }
            // Deferred records come first.
            Job::RecordTools(task, _)
                if self.deferred.iter().any(|job| job.records_tools_of(task)) =>
            {
                return Some(job);
            }
            Job::RecordTools(task, messages) => match core.record_tools(task, messages) {
                Ok(false) => return Some(job),
                done => done.map(drop),
            },
            Job::Learn(usage, counted) => core.rules.learn(&usage, counted),
            Job::Close(tasks) => {
                let count = tasks.len();
                core.pool.close_tasks(tasks);
                self.closing.fetch_sub(count, Relaxed);
                Ok(())
            }
            Job::Prefetch(task, job) => core.start_prefetch(task, *job),
            Job::Barrier(done) if !self.deferred.is_empty() => return Some(Job::Barrier(done)),
            Job::Barrier(done) => {
                let _ = done.try_send(());
                Ok(())
            }
        };
        if let Err(error) = done {
            core.pool.report(&error);
        }
        None
    }

    /// Settles the tasks that are due.
    fn settle_due(&mut self, core: &Core) {
        let now = Instant::now();
        let due = self.settle_at.iter().filter(|(_, due)| **due <= now);
        let due: Vec<Uuid> = due.map(|(task, _)| *task).collect();
        for task in due {
            match core.pool.settle_if_idle(task) {
                Ok(Settling::Done) => drop(self.settle_at.remove(&task)),
                Ok(Settling::Busy) => {}
                Ok(Settling::StaleView) => drop(self.settle_at.insert(task, now + RETRY_AFTER)),
                Err(error) => {
                    core.pool.report(&error);
                    self.settle_at.insert(task, now + RETRY_AFTER);
                }
            }
        }
    }
}

impl Core {
    /// Ends conversations without requests for long. One that comes back is reopened.
    fn end_idle_conversations(&self) -> Result<(), ConversationError> {
        let hours = self.config.serve.end_after.as_ref();
        let hours = hours.map_or(END_AFTER_HOURS, |set| set.value);
        let age = SignedDuration::from_hours(i64::try_from(hours).unwrap_or(i64::MAX));
        let Some(before) = Timestamp::now().checked_sub(age).ok().filter(|_| hours > 0) else {
            return Ok(());
        };
        let idle = self
            .contexts
            .with_registry(|rows| rows.idle(TASK_SOURCE, before, MAX_ENDED_AT_ONCE))?;
        for task in idle {
            let is_unused = self.pool.exchanges(task) == 0 && !self.pool.is_open(task);
            if is_unused && self.contexts.end_idle(task)? {
                self.metrics.tasks("ended");
            }
        }
        Ok(())
    }

    /// Records the tool results in messages whose calls are known; says whether the task could be leased.
    fn record_tools(&self, task: Uuid, messages: Span) -> Result<bool, ConversationError> {
        let mut open = match self.pool.try_lease(task) {
            TryLease::Leased(open) => open,
            TryLease::Busy => return Ok(false),
            TryLease::Closed => match self.pool.lease_in_process(task) {
                // A command has the task open, such as one that redacts.
                Err(TaskError::Open {
                    source: OpenError::Held { .. },
                    ..
                }) => return Ok(false),
                leased => leased?,
            },
        };
        if open.writer.record_tools(messages)? > 0 {
            open.wrote();
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_puts_something_never_waits_for_whoever_does_it() {
        let (queue, worker) = BackgroundQueue::new();
        let (tell, told) = sync_channel(1);
        std::thread::spawn(move || {
            for _ in 0..3 * MAX_QUEUED_FOR_OPTIONAL {
                queue.settle(Uuid::nil());
            }
            let usage = Usage {
                provider: String::new(),
                model: String::new(),
                tokens: 1,
                cached: 0,
                output: 0,
                frame: 0,
                cost: 0,
                purpose: infold_store::Purpose::Reply,
            };
            queue.learn(usage, (1, 1.0));
            tell.send(queue)
        });
        let queue = told.recv_timeout(Duration::from_secs(20));
        assert!(queue.is_ok(), "it waits");
        // An optional job is not added to a queue of this length.
        assert_eq!(worker.queue.try_iter().count(), 3 * MAX_QUEUED_FOR_OPTIONAL);
    }
}
