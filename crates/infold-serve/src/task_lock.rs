//! Waits for the lock of a task: a server that holds it is asked to release it.

use std::time::{Duration, Instant};

use infold_store::{OpenError, TaskError};

use crate::request_release;

/// The time limit for a server's answer.
const SERVER_TIMEOUT: Duration = Duration::from_secs(5);

/// The time limit for retries while a server releases the task and takes it again.
const RELEASED_TIMEOUT: Duration = Duration::from_secs(10);

/// The time limit for another command: most end at once.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(1);

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Opens a task; asks a server that holds it to release it, and waits a second for any other process.
///
/// The server takes the task again with the next request. `token` is for a server that requires one.
pub fn acquire_task<T>(
    token: Option<&str>,
    mut open: impl FnMut() -> Result<T, TaskError>,
) -> Result<T, TaskError> {
    let started = Instant::now();
    let mut is_released = false;
    loop {
        let opened = open();
        let Err(TaskError::Open {
            task,
            source: OpenError::Held { holder },
        }) = &opened
        else {
            return opened;
        };
        if is_released && started.elapsed() >= RELEASED_TIMEOUT {
            return opened;
        }
        match holder.as_ref().and_then(|holder| holder.address.as_deref()) {
            // On a busy machine the server may have taken the task again before this process opened it: then it is
            // asked once more.
            Some(address) => {
                is_released = request_release(address, *task, token, SERVER_TIMEOUT);
            }
            // The lock names no holder while it changes hands.
            None => {
                std::thread::sleep(POLL_INTERVAL);
                if started.elapsed() < COMMAND_TIMEOUT {
                    continue;
                }
            }
        }
        if !is_released {
            return opened;
        }
    }
}
