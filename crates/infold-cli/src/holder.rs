use std::time::{Duration, Instant};

use infold_serve::request_release;
use infold_store::{OpenError, TaskError};

/// How long to wait for a server's answer.
const ANSWER: Duration = Duration::from_secs(5);

/// How long to keep asking for a task that a server lets go of and takes up again.
const FREE: Duration = Duration::from_secs(10);

/// How long to wait for another process that writes: most are done at once.
const BRIEF: Duration = Duration::from_secs(1);

/// How often to look.
const LOOK: Duration = Duration::from_millis(20);

/// Opens a task; if a server holds it, asks it to let go first; any other process is waited for a second.
///
/// The server takes the task up again with the next request.
pub fn released<T>(mut open: impl FnMut() -> Result<T, TaskError>) -> Result<T, TaskError> {
    let token = std::env::var("INFOLD_TOKEN").ok();
    let started = Instant::now();
    let until = started + FREE;
    let mut is_let_go = false;
    loop {
        let opened = open();
        let Err(TaskError::Open {
            task,
            source: OpenError::Held { holder },
        }) = &opened
        else {
            return opened;
        };
        if is_let_go && Instant::now() >= until {
            return opened;
        }
        match holder.as_ref().and_then(|holder| holder.address.as_deref()) {
            // On a busy machine the server may have taken the task up again before this process got to
            // it: then it is asked once more.
            Some(address) => is_let_go = request_release(address, *task, token.as_deref(), ANSWER),
            // The name of the holder is missing while the task changes hands.
            None => {
                std::thread::sleep(LOOK);
                if started.elapsed() < BRIEF {
                    continue;
                }
            }
        }
        if !is_let_go {
            return opened;
        }
    }
}
