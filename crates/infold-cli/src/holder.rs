use std::time::{Duration, Instant};

use infold_serve::ask_to_let_go;
use infold_store::{Holder, OpenError, TaskError};

/// How long to wait for a server's answer.
const ANSWER: Duration = Duration::from_secs(5);

/// How long a task that was let go of may take to be free.
const FREE: Duration = Duration::from_secs(2);

/// How often to look.
const LOOK: Duration = Duration::from_millis(20);

/// Opens a task; if a server holds it, asks it to let go first.
///
/// The server takes the task up again with the next request.
pub fn released<T>(mut open: impl FnMut() -> Result<T, TaskError>) -> Result<T, TaskError> {
    let opened = open();
    let Err(TaskError::Open {
        task,
        source:
            OpenError::Held {
                holder:
                    Some(Holder {
                        address: Some(address),
                        ..
                    }),
            },
    }) = &opened
    else {
        return opened;
    };
    let token = std::env::var("INFOLD_TOKEN").ok();
    if !ask_to_let_go(address, *task, token.as_deref(), ANSWER) {
        return opened;
    }
    let until = Instant::now() + FREE;
    loop {
        match open() {
            Err(TaskError::Open {
                source: OpenError::Held { .. },
                ..
            }) if Instant::now() < until => std::thread::sleep(LOOK),
            opened => return opened,
        }
    }
}
