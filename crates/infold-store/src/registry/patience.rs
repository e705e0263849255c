//! How long to wait while another process writes to the registry.

use std::thread;
use std::time::Duration;

use super::error::is_busy;

/// How long to wait while another process writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// How long SQLite itself waits for a lock, each time.
    pub(crate) timeout: Duration,
    /// The pauses between one attempt and the next.
    pub(super) pauses: [Duration; 3],
}

impl Default for Patience {
    /// Five seconds in all; a write takes milliseconds.
    fn default() -> Patience {
        Patience {
            timeout: Duration::from_secs(1),
            pauses: [50, 200, 750].map(Duration::from_millis),
        }
    }
}

impl Patience {
    /// Makes an attempt, and up to three more while the database is busy.
    ///
    /// SQLite's own waiting is not enough: where waiting could lead to a deadlock,
    /// it answers "busy" at once.
    pub(crate) fn wait_for<T>(
        self,
        mut attempt: impl FnMut() -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        for pause in self.pauses {
            match attempt() {
                Err(error) if is_busy(&error) => thread::sleep(pause),
                done => return done,
            }
        }
        attempt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    const NONE: Patience = Patience {
        timeout: Duration::ZERO,
        pauses: [Duration::ZERO; 3],
    };

    fn failure(code: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
    }

    #[test]
    fn three_busy_answers_are_borne() {
        let mut answers = [
            Ok("done"),
            Err(ffi::SQLITE_BUSY),
            Err(ffi::SQLITE_LOCKED),
            Err(ffi::SQLITE_BUSY),
        ]
        .into_iter()
        .collect::<Vec<_>>();
        let answer = NONE.wait_for(|| answers.pop().expect("four attempts").map_err(failure));
        assert_eq!(answer.unwrap(), "done");
    }

    #[test]
    fn a_fourth_is_the_answer() {
        let mut attempts = 0;
        let answer = NONE.wait_for(|| {
            attempts += 1;
            Err::<(), _>(failure(ffi::SQLITE_BUSY))
        });
        assert!(is_busy(&answer.unwrap_err()));
        assert_eq!(attempts, 4);
    }

    #[test]
    fn other_errors_are_not_tried_again() {
        let mut attempts = 0;
        let answer = NONE.wait_for(|| {
            attempts += 1;
            Err::<(), _>(failure(ffi::SQLITE_FULL))
        });
        assert!(answer.is_err());
        assert_eq!(attempts, 1);
    }
}
