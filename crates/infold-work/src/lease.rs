//! The lease on a task: claimed, kept alive while the task is carried out, and watched for requests to stop.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use infold_store::{ClaimRequest, Contexts, Lease, Registry, RegistryError, StopRequest};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

/// How things stand with a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// The lease is valid.
    Held,
    /// The lease is valid, and the task is to be stopped.
    Stop(StopRequest),
    /// Another worker has the task, or it is no longer to be carried out.
    Lost,
}

/// Keeps the lease on a task alive until it is dropped.
#[derive(Debug)]
pub struct LeaseKeeper {
    root: PathBuf,
    task: Uuid,
    owner: String,
    length: Duration,
    /// The thread ends when this is dropped.
    alive: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A lease is renewed so often in its time.
const RENEWALS_PER_LEASE: u32 = 3;

/// Returns a name that no other worker has.
pub fn new_owner(host: &str) -> String {
    format!("{host}:{}:{}", std::process::id(), Uuid::new_v4().simple())
}

/// Returns a request for a task.
pub fn claim_request(owner: &str, host: &str, length: Duration) -> ClaimRequest {
    let now = Timestamp::now();
    ClaimRequest {
        lease: Lease {
            owner: owner.to_owned(),
            until: after(now, length),
        },
        process_id: std::process::id(),
        hostname: host.to_owned(),
        now,
        per_user: None,
        task: None,
    }
}

/// Returns the time that lies so much later.
pub(crate) fn after(now: Timestamp, length: Duration) -> Timestamp {
    let length = SignedDuration::try_from(length).unwrap_or(SignedDuration::MAX);
    now.checked_add(length).unwrap_or(Timestamp::MAX)
}

impl LeaseKeeper {
    /// Starts to keep the lease that an owner has on a task.
    pub fn start(contexts: &Contexts, task: Uuid, owner: &str, length: Duration) -> LeaseKeeper {
        let (alive, ended) = mpsc::channel::<()>();
        let (root, name) = (contexts.root().to_owned(), owner.to_owned());
        let pause = length / RENEWALS_PER_LEASE;
        let thread = std::thread::spawn(move || {
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                // A registry that is busy now is tried again in time.
                let _ = renew(&root, task, &name, length);
            }
        });
        LeaseKeeper {
            root: contexts.root().to_owned(),
            task,
            owner: owner.to_owned(),
            length,
            alive: Some(alive),
            thread: Some(thread),
        }
    }

    /// The owner of the lease.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Renews the lease now, and says how things stand.
    pub fn renew(&self) -> Result<LeaseState, RegistryError> {
        renew(&self.root, self.task, &self.owner, self.length)
    }

    /// Records progress of the task: the count of attempts starts again.
    pub fn record_progress(&self) -> Result<(), RegistryError> {
        Registry::open(&self.root)?.reset_attempts(self.task, &self.owner)
    }
}

impl Drop for LeaseKeeper {
    fn drop(&mut self) {
        drop(self.alive.take());
        if let Some(thread) = self.thread.take() {
            // The thread does not panic; if it did, the panic was printed already.
            let _ = thread.join();
        }
    }
}

fn renew(
    root: &Path,
    task: Uuid,
    owner: &str,
    length: Duration,
) -> Result<LeaseState, RegistryError> {
    let lease = Lease {
        owner: owner.to_owned(),
        until: after(Timestamp::now(), length),
    };
    let entry = Registry::open(root)?.renew_lease(task, &lease)?;
    Ok(match entry.map(|entry| entry.stop) {
        None => LeaseState::Lost,
        Some(None) => LeaseState::Held,
        Some(Some(stop)) => LeaseState::Stop(stop),
    })
}
