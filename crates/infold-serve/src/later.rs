//! What need not be done while somebody waits.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use infold_log::{Past as _, Role, Seq, Span};
use infold_store::{Log, LogError, Usage};
use infold_wire::uses::{self, Came, Made};
use infold_wire::{Message, quote};
use uuid::Uuid;

use crate::desk::{DeskError, Inner, locked};
use crate::held::Held;

/// Takes work to be done soon.
pub(crate) struct Later {
    jobs: SyncSender<Job>,
}

/// Work that waits.
pub(crate) struct Jobs {
    queue: Receiver<Job>,
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

/// Whoever brings more waits.
const MOST: usize = 8192;

/// So long somebody waits for all that is to be done.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often it is looked what should come to rest.
const LOOK: Duration = Duration::from_millis(250);

/// So long after it was written something comes to rest on the disk.
const REST: Duration = Duration::from_secs(1);

impl Later {
    /// A queue, and its other end.
    pub fn new() -> (Later, Jobs) {
        let (jobs, queue) = sync_channel(MOST);
        (Later { jobs }, Jobs { queue })
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
        self.put(Job::Learn(Box::new(usage), counted));
    }

    /// Has tasks closed that nobody uses.
    pub fn away(&self, tasks: Vec<Arc<Mutex<Held>>>) {
        if !tasks.is_empty() {
            self.put(Job::Away(tasks));
        }
    }

    /// Has a summary written, if one may soon be needed.
    pub fn ahead(&self, task: Uuid, ahead: crate::ahead::Ahead) {
        self.put(Job::Ahead(task, Box::new(ahead)));
    }

    /// Waits until all that was put before is done, but not for ever.
    pub fn catch_up(&self) {
        let (tell, told) = sync_channel(1);
        self.put(Job::Tell(tell));
        let _ = told.recv_timeout(PATIENCE);
    }

    fn put(&self, job: Job) {
        // Nobody is there any more: the server ends.
        let _ = self.jobs.send(job);
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

    fn work(self, desk: &Weak<Inner>) {
        let mut resting: HashMap<Uuid, Instant> = HashMap::new();
        let mut looked = Instant::now();
        loop {
            let job = self.queue.recv_timeout(LOOK);
            let Some(desk) = desk.upgrade() else { return };
            let task = match job {
                Ok(Job::Rest(task)) => {
                    resting.entry(task).or_insert_with(Instant::now);
                    Ok(())
                }
                Ok(Job::Tools(task, messages)) => desk.record_tools(task, messages),
                Ok(Job::Learn(usage, counted)) => desk.learn(&usage, counted),
                Ok(Job::Away(tasks)) => {
                    desk.put_away(tasks);
                    Ok(())
                }
                Ok(Job::Ahead(task, ahead)) => desk.look_ahead(task, *ahead),
                Ok(Job::Tell(tell)) => {
                    let _ = tell.try_send(());
                    Ok(())
                }
                Err(RecvTimeoutError::Timeout) => Ok(()),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if let Err(error) = task {
                desk.failed(&error);
            }
            if looked.elapsed() < LOOK {
                continue;
            }
            looked = Instant::now();
            let due = |since: &Instant| since.elapsed() >= REST;
            let ready: Vec<Uuid> = resting
                .iter()
                .filter(|(_, since)| due(since))
                .map(|(task, _)| *task)
                .collect();
            for task in ready {
                resting.remove(&task);
                if let Err(error) = desk.put_to_rest(task) {
                    desk.failed(&error);
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

    /// Brings what was written of a task onto the disk, and its counters up to date.
    fn put_to_rest(&self, task: Uuid) -> Result<(), DeskError> {
        // One that was closed since came to rest then.
        let Some(held) = self.opened(task) else {
            return Ok(());
        };
        let mut held = locked(&held);
        self.lay_down(&mut held)?;
        let files = held.writer.files()?;
        // The disk takes its time, and nobody need wait for it.
        drop(held);
        for file in files {
            file.sync_data()?;
        }
        Ok(())
    }

    /// Brings what is derived of a task up to date.
    pub fn lay_down(&self, held: &mut Held) -> Result<(), DeskError> {
        if std::mem::take(&mut held.written) {
            held.writer.sync()?;
            self.contexts.settle(held.id, &held.writer)?;
        }
        Ok(())
    }

    /// Learns from a report how a model counts.
    fn learn(&self, usage: &Usage, counted: (u64, f64)) -> Result<(), DeskError> {
        let factor = infold::usage::learn(&self.contexts, usage, counted)?;
        self.learned(&usage.provider, &usage.model, factor);
        Ok(())
    }

    /// Records what tools gave back, as far as it is known what they were asked.
    fn record_tools(&self, task: Uuid, messages: Span) -> Result<(), DeskError> {
        let held = self.open(task)?;
        let mut held = locked(&held);
        let mut records = Vec::new();
        for seq in messages.seqs() {
            let log = held.log();
            if log.record(seq)?.role == Role::Assistant {
                continue;
            }
            let bytes = log.message(seq)?;
            let Ok(message) = Message::parse(&bytes) else {
                continue;
            };
            for came in uses::came(&message) {
                if let Some((made, since)) = asked(log, seq, &came)? {
                    let took = log.record(seq)?.time.saturating_sub(since);
                    records.push(record(&made, &came, took));
                }
            }
        }
        for record in records {
            let taken = held.writer.tool(record.as_bytes());
            taken.map_err(|error| DeskError::Own(error.to_string()))?;
        }
        Ok(())
    }
}

/// The call that a result answers, and when it was made.
fn asked(log: &Log, seq: Seq, came: &Came) -> Result<Option<(Made, u64)>, LogError> {
    /// Results follow their calls closely.
    const LOOK_BACK: usize = 64;
    let path = log.state().shown().path();
    let before = path.iter().rev().flat_map(|run| run.seqs().rev());
    let before = before.filter(|other| *other < seq).take(LOOK_BACK);
    for other in before {
        let record = log.record(other)?;
        if record.role != Role::Assistant {
            continue;
        }
        let bytes = log.message(other)?;
        let made = Message::parse(&bytes).map(|message| uses::made(&message));
        let found = made
            .unwrap_or_default()
            .into_iter()
            .find(|made| match came.id.is_empty() {
                true => made.tool == came.tool,
                false => made.id == came.id,
            });
        if let Some(made) = found {
            return Ok(Some((made, record.time)));
        }
    }
    Ok(None)
}

/// A record of a tool that was used, as `tools.jsonl` has it.
fn record(made: &Made, came: &Came, took: u64) -> String {
    let (tool, args, text) = (quote(&made.tool), &made.args, quote(&came.text));
    let (member, status) = match came.failed {
        true => ("error", "error"),
        false => ("result", "success"),
    };
    format!(
        r#"{{"tool":{tool},"args":{args},"{member}":{text},"status":"{status}","duration_ms":{took}}}"#
    )
}
