//! What need not be done while somebody waits.

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use infold_log::Span;
use infold_store::{Loose, TaskError, Usage};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use crate::desk::{DeskError, IDLE, Inner, SOURCE, locked, tried};
use crate::held::Held;

/// Takes work to be done soon. Nobody ever waits for room: who puts something here has a task
/// locked that whoever does the work may want.
pub(crate) struct Later {
    jobs: Sender<Job>,
    waiting: Arc<AtomicUsize>,
    leaving: Arc<AtomicUsize>,
}

/// Work that waits.
pub(crate) struct Jobs {
    queue: Receiver<Job>,
    /// How much of it there is.
    waiting: Arc<AtomicUsize>,
    /// How many tasks wait to be closed.
    leaving: Arc<AtomicUsize>,
    /// When tasks should come to rest.
    resting: HashMap<Uuid, Instant>,
    /// What somebody was in the way of.
    put_off: Vec<Job>,
}

enum Job {
    /// What was written of a task should come to rest on the disk.
    Rest(Uuid),
    /// Messages came that may hold what tools gave back.
    Tools(Uuid, Span),
    /// A provider reported what a request took: what we counted for it, and the factor we used.
    Learn(Box<Usage>, (u64, f64)),
    /// Tasks are closed.
    Away(Vec<Arc<Mutex<Held>>>),
    /// A summary may soon be needed.
    Ahead(Uuid, Box<crate::ahead::Ahead>),
    /// Whoever put this wants to know when all before it is done.
    Tell(SyncSender<()>),
}

impl Job {
    fn is_tools_of(&self, task: Uuid) -> bool {
        matches!(self, Job::Tools(other, _) if *other == task)
    }
}

/// What came of bringing a task to rest.
enum Rest {
    Done,
    /// Another thread is at it.
    Busy,
    /// Its view could not be written.
    Behind,
}

/// Where so much waits, what nobody would miss is left out.
const MANY: usize = 8192;

/// So long somebody waits for all that is to be done.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often it is looked what should come to rest.
const LOOK: Duration = Duration::from_millis(250);

/// So long after it was written something comes to rest on the disk.
const REST: Duration = Duration::from_secs(1);

/// How often conversations are ended to which nothing came for long.
const END_IDLE_EVERY: Duration = Duration::from_secs(60);

/// So many of them are ended at a time.
const MAX_ENDED: u64 = 64;

/// So many hours after its last request a conversation has ended, unless the configuration says it.
const END_AFTER_HOURS: u64 = 24;

/// So long after it could not come to rest it is tried again.
const AGAIN: Duration = Duration::from_secs(10);

impl Later {
    /// A queue, and its other end.
    pub fn new() -> (Later, Jobs) {
        let (jobs, queue) = channel();
        let (waiting, leaving) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
        let other_end = Jobs {
            queue,
            waiting: Arc::clone(&waiting),
            leaving: Arc::clone(&leaving),
            resting: HashMap::new(),
            put_off: Vec::new(),
        };
        let later = Later {
            jobs,
            waiting,
            leaving,
        };
        (later, other_end)
    }

    /// Has a task come to rest on the disk.
    pub fn rest(&self, task: Uuid) {
        self.put(Job::Rest(task));
    }

    /// Has the results in messages recorded as uses of tools.
    pub fn tools(&self, task: Uuid, messages: Span) {
        self.put(Job::Tools(task, messages));
    }

    /// Has a report learned from.
    pub fn learn(&self, usage: Usage, counted: (u64, f64)) {
        self.offer(Job::Learn(Box::new(usage), counted));
    }

    /// Has tasks closed that nobody uses; gives them back if so many wait for that already that
    /// their files would be too many.
    pub fn away(&self, tasks: Vec<Arc<Mutex<Held>>>, most: usize) -> Vec<Arc<Mutex<Held>>> {
        if tasks.is_empty() || self.leaving.load(Relaxed) >= most {
            return tasks;
        }
        self.leaving.fetch_add(tasks.len(), Relaxed);
        self.put(Job::Away(tasks));
        Vec::new()
    }

    /// Has a summary written, if one may soon be needed.
    pub fn ahead(&self, task: Uuid, ahead: crate::ahead::Ahead) {
        self.offer(Job::Ahead(task, Box::new(ahead)));
    }

    /// Waits until all that was put before is done, but not for ever.
    pub fn catch_up(&self) {
        let (tell, told) = sync_channel(1);
        self.put(Job::Tell(tell));
        let _ = told.recv_timeout(PATIENCE);
    }

    fn put(&self, job: Job) {
        self.waiting.fetch_add(1, Relaxed);
        // Nobody is there any more: the server ends.
        let _ = self.jobs.send(job);
    }

    /// Puts what nobody would miss.
    fn offer(&self, job: Job) {
        if self.waiting.load(Relaxed) < MANY {
            self.put(job);
        }
    }
}

impl Jobs {
    /// Does the work, in a thread of its own, as long as the desk is there.
    pub fn start(self, desk: &Arc<Inner>) {
        let desk = Arc::downgrade(desk);
        let work = move || self.work(&desk);
        // Without it nothing is lost but counters and what could be learned.
        let _ = std::thread::Builder::new()
            .name("later".to_owned())
            .spawn(work);
    }

    fn work(mut self, desk: &Weak<Inner>) {
        let mut looked = Instant::now();
        // When it may be tried to bring something onto the disk.
        let mut forced = looked;
        let mut ended = None;
        loop {
            let job = self.queue.recv_timeout(LOOK);
            let Some(desk) = desk.upgrade() else { return };
            match job {
                Ok(job) => {
                    self.waiting.fetch_sub(1, Relaxed);
                    let left = self.try_one(&desk, job);
                    self.put_off.extend(left);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if looked.elapsed() < LOOK {
                continue;
            }
            looked = Instant::now();
            if let Err(error) = desk.whole_index() {
                desk.failed(&error.into());
            }
            for job in std::mem::take(&mut self.put_off) {
                let left = self.try_one(&desk, job);
                self.put_off.extend(left);
            }
            self.put_to_rest(&desk);
            desk.close_idle(IDLE);
            if ended.is_none_or(|ended: Instant| ended.elapsed() >= END_IDLE_EVERY) {
                ended = Some(looked);
                if let Err(error) = desk.end_idle() {
                    desk.failed(&error);
                }
            }
            if forced <= looked {
                forced = looked + REST;
                if let Err(error) = desk.force() {
                    desk.failed(&error);
                    forced = looked + AGAIN;
                }
            }
        }
    }

    /// Does a piece of work; gives it back if somebody is at its task. Whoever that is may take
    /// long, and all other tasks would wait.
    fn try_one(&mut self, desk: &Arc<Inner>, job: Job) -> Option<Job> {
        let done = match job {
            Job::Rest(task) => {
                let due = || Instant::now() + REST;
                self.resting.entry(task).or_insert_with(due);
                Ok(())
            }
            // What was put off comes first.
            Job::Tools(task, _) if self.put_off.iter().any(|job| job.is_tools_of(task)) => {
                return Some(job);
            }
            Job::Tools(task, messages) => match desk.record_tools(task, messages) {
                Ok(false) => return Some(job),
                done => done.map(drop),
            },
            Job::Learn(usage, counted) => desk.learn(&usage, counted),
            Job::Away(tasks) => {
                let count = tasks.len();
                desk.put_away(tasks);
                self.leaving.fetch_sub(count, Relaxed);
                Ok(())
            }
            Job::Ahead(task, ahead) => desk.look_ahead(task, *ahead),
            Job::Tell(tell) if !self.put_off.is_empty() => return Some(Job::Tell(tell)),
            Job::Tell(tell) => {
                let _ = tell.try_send(());
                Ok(())
            }
        };
        if let Err(error) = done {
            desk.failed(&error);
        }
        None
    }

    /// Brings tasks to rest for which it is time.
    fn put_to_rest(&mut self, desk: &Inner) {
        let now = Instant::now();
        let due = self.resting.iter().filter(|(_, due)| **due <= now);
        let due: Vec<Uuid> = due.map(|(task, _)| *task).collect();
        for task in due {
            match desk.put_to_rest(task) {
                Ok(Rest::Done) => drop(self.resting.remove(&task)),
                Ok(Rest::Busy) => {}
                Ok(Rest::Behind) => drop(self.resting.insert(task, now + AGAIN)),
                Err(error) => {
                    desk.failed(&error);
                    self.resting.insert(task, now + AGAIN);
                }
            }
        }
    }
}

impl Inner {
    /// Says that something of ours failed; nobody else notices.
    pub fn failed(&self, error: &DeskError) {
        self.metrics.failed("record");
        tracing::warn!(%error, "something could not be recorded");
    }

    /// Ends conversations to which nothing came for long. Those that come back go on.
    fn end_idle(&self) -> Result<(), DeskError> {
        let hours = self.config.serve.end_after.as_ref();
        let hours = hours.map_or(END_AFTER_HOURS, |set| set.value);
        let age = SignedDuration::from_hours(i64::try_from(hours).unwrap_or(i64::MAX));
        let Some(before) = Timestamp::now().checked_sub(age).ok().filter(|_| hours > 0) else {
            return Ok(());
        };
        let idle = self
            .contexts
            .with_registry(|rows| rows.idle(SOURCE, before, MAX_ENDED))?;
        for task in idle {
            if self.is_idle(task) && self.opened(task).is_none() && self.contexts.end_idle(task)? {
                self.metrics.tasks("ended");
            }
        }
        Ok(())
    }

    /// Brings what is derived of a task up to date, and notes what is to come onto the disk.
    fn put_to_rest(&self, task: Uuid) -> Result<Rest, DeskError> {
        let held = match self.opened(task) {
            Some(held) => held,
            // Opening a task writes its view.
            None if locked(&self.behind).contains(&task) => match self.try_open(task) {
                Ok(held) => held,
                Err(TaskError::Unknown { .. } | TaskError::Ended { .. }) => {
                    locked(&self.behind).remove(&task);
                    return Ok(Rest::Done);
                }
                Err(_) => return Ok(Rest::Behind),
            },
            // One that was closed since came to rest then.
            None => return Ok(Rest::Done),
        };
        let Some(mut held) = tried(&held) else {
            return Ok(Rest::Busy);
        };
        self.lay_down(&mut held)?;
        if !held.writer.has_current_view() {
            return Ok(Rest::Behind);
        }
        locked(&self.behind).remove(&task);
        Ok(Rest::Done)
    }

    /// Brings what is derived of a task up to date, and notes what is to come onto the disk.
    pub fn lay_down(&self, held: &mut Held) -> Result<(), DeskError> {
        if held.written {
            held.writer.sync()?;
            self.contexts.settle(held.id, &held.writer)?;
            locked(&self.loose).insert(held.id, held.writer.loose());
            // What is written from here on comes to rest with the next.
            held.written = false;
        }
        Ok(())
    }

    /// Brings onto the disk what tasks that came to rest have written. The disk takes its time; whoever writes need not wait for it.
    pub fn force(&self) -> Result<(), DeskError> {
        let loose = std::mem::take(&mut *locked(&self.loose));
        let forced = Loose::force(self.contexts.root(), loose.values());
        if forced.is_err() {
            let mut again = locked(&self.loose);
            for (task, loose) in loose {
                again.entry(task).or_insert(loose);
            }
        }
        Ok(forced?)
    }

    /// Learns from a report how a model counts.
    fn learn(&self, usage: &Usage, counted: (u64, f64)) -> Result<(), DeskError> {
        if infold::usage::forget_smaller_windows(&self.contexts, usage)? {
            self.forget_rule(&usage.provider, &usage.model);
        }
        let factor = infold::usage::learn(&self.contexts, usage, counted)?;
        self.learned(&usage.provider, &usage.model, factor);
        Ok(())
    }

    /// Records what tools gave back, as far as it is known what they were asked; says whether
    /// nobody was in the way.
    fn record_tools(&self, task: Uuid, messages: Span) -> Result<bool, DeskError> {
        let held = self.try_open(task)?;
        let Some(mut held) = tried(&held) else {
            return Ok(false);
        };
        if held.writer.record_tools(messages)? > 0 {
            self.wrote(&mut held);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_puts_something_never_waits_for_whoever_does_it() {
        let (later, jobs) = Later::new();
        let (tell, told) = sync_channel(1);
        std::thread::spawn(move || {
            for _ in 0..3 * MANY {
                later.rest(Uuid::nil());
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
            later.learn(usage, (1, 1.0));
            tell.send(later)
        });
        let later = told.recv_timeout(Duration::from_secs(20));
        assert!(later.is_ok(), "it waits");
        // Of what nobody would miss, nothing is added to so much.
        assert_eq!(jobs.queue.try_iter().count(), 3 * MANY);
    }
}
