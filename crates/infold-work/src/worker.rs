//! The worker: claims tasks and gives each to a process of its own.

use std::io;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use infold::config::WorkConfig;
use infold_store::{Contexts, Return, TaskError};
use rustix::process::{Pid, Signal, kill_process};
use uuid::Uuid;

use crate::RunEnd;
use crate::lease::{claim_request, new_owner};

/// How a worker works.
#[derive(Clone, Debug)]
pub struct WorkerSettings {
    /// How many tasks at a time.
    pub concurrency: usize,
    /// Whether to end when the queue is empty.
    pub once: bool,
    /// The name of this machine.
    pub host: String,
}

/// Something that happens to a worker.
#[derive(Debug)]
pub enum WorkerEvent<'a> {
    /// A task was claimed and its process started.
    Started {
        /// The task.
        task: Uuid,
        /// The process.
        pid: u32,
    },
    /// The process of a task ended.
    Ended {
        /// The task.
        task: Uuid,
        /// How.
        status: ExitStatus,
    },
    /// The process of a task ended without giving it back, or attempts were made in vain.
    GivenUp {
        /// The task.
        task: Uuid,
        /// The end of the task.
        end: &'a RunEnd,
    },
    /// The queue cannot be used, or no process started; it is tried again.
    Problem {
        /// Why.
        error: &'a WorkerError,
    },
    /// The worker was asked to end, and waits for its processes.
    Stopping,
}

/// Claims tasks and gives each to a process of its own.
pub struct Worker<'a> {
    /// The contexts directory.
    pub contexts: &'a Contexts,
    /// The section `work` of the configuration.
    pub config: &'a WorkConfig,
    /// How it works.
    pub settings: WorkerSettings,
    /// Starts the process of a task, which has the lease of this owner.
    pub spawn: &'a dyn Fn(Uuid, &str, u32) -> io::Result<Child>,
    /// Returns whether the process was asked to end.
    pub is_stopped: &'a dyn Fn() -> bool,
}

struct TaskProcess {
    task: Uuid,
    owner: String,
    attempts: u32,
    child: Child,
}

/// Whether a worker has to look again.
enum WorkState {
    GoesOn,
    Done,
}

/// Why a worker ended, or waits.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// A process could not be started.
    #[error("the process of task {task} could not be started: {source}")]
    Spawn {
        /// The task.
        task: Uuid,
        /// Why.
        source: io::Error,
    },
    /// The tasks could not be read or written.
    #[error(transparent)]
    Task(#[from] TaskError),
}

/// How often a worker looks at its processes and at the queue.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How long it waits after a problem.
const PROBLEM_PAUSE: Duration = Duration::from_secs(2);

impl Worker<'_> {
    /// Works until it is asked to end, or, once, until there is nothing to do.
    ///
    /// A problem, such as a full disk, ends it only if it works once, or never had a queue. A task whose process ended
    /// meanwhile is claimed again when its lease expires.
    pub fn run(&self, on_event: &mut dyn FnMut(WorkerEvent<'_>)) -> Result<(), WorkerError> {
        let mut processes: Vec<TaskProcess> = Vec::new();
        let mut is_stopping = false;
        let mut ends_with_problem = true;
        loop {
            let worked = self.work(&mut processes, &mut is_stopping, on_event);
            match worked {
                Ok(WorkState::Done) => return Ok(()),
                Ok(WorkState::GoesOn) => {
                    ends_with_problem = self.settings.once;
                    std::thread::sleep(POLL_INTERVAL);
                }
                Err(error) if ends_with_problem => return Err(error),
                Err(error) => {
                    on_event(WorkerEvent::Problem { error: &error });
                    std::thread::sleep(PROBLEM_PAUSE);
                }
            }
        }
    }

    /// Looks at the processes once, and claims as many tasks as there is room for.
    fn work(
        &self,
        processes: &mut Vec<TaskProcess>,
        is_stopping: &mut bool,
        on_event: &mut dyn FnMut(WorkerEvent<'_>),
    ) -> Result<WorkState, WorkerError> {
        self.reap(processes, on_event)?;
        if (self.is_stopped)() && !*is_stopping {
            *is_stopping = true;
            on_event(WorkerEvent::Stopping);
            for process in &*processes {
                // A process that has just ended is reaped next.
                let _ = kill_process(Pid::from_child(&process.child), Signal::TERM);
            }
        }
        if *is_stopping && processes.is_empty() {
            return Ok(WorkState::Done);
        }
        let mut has_work = true;
        while !*is_stopping && has_work && processes.len() < self.settings.concurrency {
            match self.claim(on_event)? {
                Some(process) => {
                    on_event(WorkerEvent::Started {
                        task: process.task,
                        pid: process.child.id(),
                    });
                    processes.push(process);
                }
                None => has_work = false,
            }
        }
        if self.settings.once && !has_work && processes.is_empty() {
            return Ok(WorkState::Done);
        }
        Ok(WorkState::GoesOn)
    }

    /// Claims the next task, if there is one, and starts its process.
    fn claim(
        &self,
        on_event: &mut dyn FnMut(WorkerEvent<'_>),
    ) -> Result<Option<TaskProcess>, WorkerError> {
        loop {
            let owner = new_owner(&self.settings.host);
            let mut request = claim_request(&owner, &self.settings.host, self.config.lease());
            request.per_user = self.config.per_user.as_ref().map(|set| set.value);
            let claimed = self.contexts.with_registry(|rows| rows.claim(&request))?;
            let Some(entry) = claimed else {
                return Ok(None);
            };
            let (task, attempts) = (entry.uuid, entry.attempts);
            if attempts > self.config.max_attempts() {
                let error = format!("given up: {} attempts, and none went on", attempts - 1);
                let end = RunEnd::Failed { error };
                end.conclude_unopened(self.contexts, task, &owner)?;
                on_event(WorkerEvent::GivenUp { task, end: &end });
                continue;
            }
            let spawned = (self.spawn)(task, &owner, attempts);
            let child = spawned.map_err(|source| {
                // The process did nothing, so the task goes to the next worker. If the registry cannot be
                // written, its lease expires.
                let back = Return::Queued;
                let _ = self
                    .contexts
                    .with_registry(|rows| rows.give_back(task, &owner, &back));
                WorkerError::Spawn { task, source }
            })?;
            return Ok(Some(TaskProcess {
                task,
                owner,
                attempts,
                child,
            }));
        }
    }

    /// Takes leave of processes that ended. One that was killed did not give its task back.
    fn reap(
        &self,
        processes: &mut Vec<TaskProcess>,
        on_event: &mut dyn FnMut(WorkerEvent<'_>),
    ) -> Result<(), WorkerError> {
        let mut at = 0;
        while at < processes.len() {
            // A process whose state cannot be read is checked again later.
            let Ok(Some(status)) = processes[at].child.try_wait() else {
                at += 1;
                continue;
            };
            let process = processes.swap_remove(at);
            on_event(WorkerEvent::Ended {
                task: process.task,
                status,
            });
            self.recover(&process, status, on_event)?;
        }
        Ok(())
    }

    /// Queues a task again whose process died, or fails it after too many attempts.
    fn recover(
        &self,
        process: &TaskProcess,
        status: ExitStatus,
        on_event: &mut dyn FnMut(WorkerEvent<'_>),
    ) -> Result<(), WorkerError> {
        let task = process.task;
        let entry = self.contexts.with_registry(|rows| rows.queue_entry(task))?;
        let is_left = entry.as_ref().is_some_and(|entry| {
            let lease = entry.lease.as_ref();
            lease.is_some_and(|lease| lease.owner == process.owner)
        });
        let Some(entry) = entry.filter(|_| is_left) else {
            return Ok(());
        };
        let error = format!("its process ended unexpectedly ({status})");
        // The task may have made progress before the process died; its attempts were reset then.
        let attempts = entry.attempts.min(process.attempts);
        let end = RunEnd::failed_attempt(error, attempts, self.config);
        on_event(WorkerEvent::GivenUp { task, end: &end });
        end.conclude_unopened(self.contexts, task, &process.owner)?;
        Ok(())
    }
}
