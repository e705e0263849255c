//! Keeps the search index up to date with the logs, in a thread of its own: no request waits for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use infold_store::{Contexts, Durability, RegistryError, TaskError};

use crate::conversations::Core;
use crate::locked;

/// The interval at which the logs are checked.
const INTERVAL: Duration = Duration::from_secs(1);
/// The time for which the index is filled at once.
const SLICE: Duration = Duration::from_millis(250);
/// Checking the logs takes at most one part in this many of the time, however many tasks there are.
const MAX_SHARE: u32 = 20;

/// Starts the thread, which ends with `core`.
pub(crate) fn start(core: &Arc<Core>) {
    // A separate registry: a server that ends while the index is filled can close its own databases.
    let contexts = Contexts::new(core.contexts.root(), Durability::Never);
    let core = Arc::downgrade(core);
    // Without this thread the index is filled when a search runs.
    let _ = std::thread::Builder::new()
        .name("search".to_owned())
        .spawn(move || {
            let mut is_reported = false;
            let mut pause = INTERVAL;
            loop {
                std::thread::sleep(pause);
                let Some(ended) = core.upgrade().map(|core| Arc::clone(&core.is_search_ended))
                else {
                    return;
                };
                // A server that ends takes this lock and so waits until the index is not being filled.
                let ended = locked(&ended);
                if *ended {
                    return;
                }
                let started = Instant::now();
                match contexts.fill_search_index(started + SLICE) {
                    Ok(coverage) => {
                        let is_behind = coverage.searched_bytes < coverage.total_bytes;
                        let took = started.elapsed();
                        // While there is work, it takes half of the time.
                        pause = if is_behind && took >= SLICE {
                            took
                        } else {
                            INTERVAL.max(took * MAX_SHARE)
                        };
                        is_reported = false;
                    }
                    Err(error) => {
                        pause = INTERVAL * 10;
                        let is_expected = matches!(
                            error,
                            TaskError::Registry(
                                RegistryError::Full { .. }
                                    | RegistryError::ReadOnly { .. }
                                    | RegistryError::Busy { .. }
                            )
                        );
                        if !is_expected
                            && !is_reported
                            && let Some(core) = core.upgrade()
                        {
                            core.pool.report(&error.into());
                            is_reported = true;
                        }
                    }
                }
            }
        });
}
