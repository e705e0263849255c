//! The slots of the task pool: who has which task, and which is closed to make room.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use infold::manage::PreparedFold;
use uuid::Uuid;

use crate::open_task::OpenTask;

#[derive(Default)]
pub(super) struct PoolState {
    pub slots: HashMap<Uuid, PoolSlot>,
    /// The time until which a task is reserved for the process that asked for it.
    reserved_until: HashMap<Uuid, Instant>,
    /// Prefetched summaries of tasks that were closed since. Each one knows whether it still applies.
    pub prepared: HashMap<Uuid, PreparedFold>,
    /// The number of exchanges in progress by task.
    pub exchanges: HashMap<Uuid, u32>,
}

pub(super) enum PoolSlot {
    Idle(Box<OpenTask>),
    /// The task is leased, being opened or being closed; with its number of descriptors.
    Busy {
        descriptors: u64,
    },
}

/// The most descriptors for open tasks: those of 128 tasks that continue no other.
const MAX_DESCRIPTORS: u64 = 1024;

/// The fewest descriptors for open tasks: those of four tasks.
const MIN_DESCRIPTORS: u64 = 32;

/// The time for which a task is reserved for another process that asked for it: without this, requests in quick
/// succession would never let it in.
const RESERVATION: Duration = Duration::from_millis(150);

/// The time for which the check that a task's lock file is still ours stays valid.
const CLAIM_CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// The number of cached prefetched summaries of closed tasks.
const MAX_PREPARED_SUMMARIES: usize = 256;

/// Returns how many descriptors open tasks may have: a third of the limit, the rest is for connections.
fn descriptor_budget() -> u64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let third = limit.current.map_or(MAX_DESCRIPTORS, |limit| limit / 3);
    third.clamp(MIN_DESCRIPTORS, MAX_DESCRIPTORS)
}

/// Raises the limit of file descriptors as far as this process may.
pub(crate) fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // If this fails, fewer tasks and connections can be open.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    );
}

/// Returns how many tasks may wait to be closed: their files stay open until then.
pub(super) fn max_closing() -> usize {
    const DESCRIPTORS_PER_CLOSING_TASK: u64 = 32;
    (descriptor_budget() / DESCRIPTORS_PER_CLOSING_TASK) as usize
}

impl PoolState {
    /// Takes an idle task out of its slot, which is busy from then on.
    pub fn take_idle(&mut self, task: Uuid) -> Option<Box<OpenTask>> {
        let slot = self.slots.get_mut(&task)?;
        let PoolSlot::Idle(open) = &*slot else {
            return None;
        };
        let descriptors = open.descriptors;
        let PoolSlot::Idle(open) = std::mem::replace(slot, PoolSlot::Busy { descriptors }) else {
            return None;
        };
        let was_checked = open.used.elapsed() < CLAIM_CHECK_INTERVAL;
        if !was_checked && !open.writer.claim().holds() {
            // A person removed the task's files or its lock: further writes would be lost, or clash with another
            // writer.
            self.slots.remove(&task);
            return None;
        }
        Some(open)
    }

    pub fn reserve(&mut self, task: Uuid) {
        let now = Instant::now();
        self.reserved_until.retain(|_, until| now < *until);
        self.reserved_until.insert(task, now + RESERVATION);
    }

    /// Returns the remaining time for which a task is reserved for another process.
    pub fn reserved_for(&self, task: Uuid) -> Option<Duration> {
        let until = self.reserved_until.get(&task)?;
        let rest = until.saturating_duration_since(Instant::now());
        (!rest.is_zero()).then_some(rest)
    }

    pub fn keep_prepared(&mut self, task: Uuid, prepared: PreparedFold) {
        if self.prepared.len() >= MAX_PREPARED_SUMMARIES {
            self.prepared.clear();
        }
        self.prepared.insert(task, prepared);
    }

    /// Takes out idle tasks, least recently used first, until `more` descriptors are free.
    pub fn evict_for(&mut self, more: u64) -> Vec<OpenTask> {
        let budget = descriptor_budget();
        let mut used: u64 = self.slots.values().map(PoolSlot::descriptors).sum();
        let mut evicted = Vec::new();
        if used + more <= budget {
            return evicted;
        }
        let idle = self.slots.iter().filter_map(|(id, slot)| match slot {
            PoolSlot::Idle(open) => Some((open.used, *id)),
            PoolSlot::Busy { .. } => None,
        });
        let mut idle: Vec<(Instant, Uuid)> = idle.collect();
        idle.sort_unstable();
        for (_, id) in idle {
            // Evict some more than needed, so that not every newcomer has to look through all tasks.
            if used + more <= budget - budget / 8 {
                break;
            }
            if let Some(open) = self.take_idle(id) {
                used -= open.descriptors;
                evicted.push(*open);
            }
        }
        evicted
    }
}

impl PoolSlot {
    fn descriptors(&self) -> u64 {
        match self {
            PoolSlot::Idle(open) => open.descriptors,
            PoolSlot::Busy { descriptors } => *descriptors,
        }
    }
}
