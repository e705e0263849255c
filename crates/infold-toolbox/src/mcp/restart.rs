//! Decides when an MCP server that failed may be started again.

use std::time::{Duration, Instant};

/// Counts the failures of a server in a row. The wait before the next start doubles with each failure, and after
/// [`MAX_FAILURES`] the server is given up, so that a broken server does not cost a start with every call.
#[derive(Debug, Default)]
pub struct RestartPolicy {
    failures: u32,
    last_failure: Option<Instant>,
}

/// Why a server is not started now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartRefusal {
    /// The server may be started again after this time.
    Wait(Duration),
    /// The server failed too often in a row, and is never started again.
    GivenUp,
}

/// The number of failures in a row after which a server is not started again.
pub const MAX_FAILURES: u32 = 10;

/// The longest wait between two starts.
const MAX_WAIT: Duration = Duration::from_secs(60);

impl RestartPolicy {
    /// Records a failure: the server did not start, ended by itself, or was stopped because it did not answer.
    pub fn failed(&mut self, now: Instant) {
        self.failures += 1;
        self.last_failure = Some(now);
    }

    /// Records that the server answered a call, which resets the count of failures. A successful start does not: a
    /// server that starts and then dies would otherwise be started for ever.
    pub fn worked(&mut self) {
        self.failures = 0;
    }

    /// Returns whether the server may be started now: at once after the first failure, then after 1 s, 2 s, 4 s … up to
    /// 60 s.
    pub fn check(&self, now: Instant) -> Result<(), RestartRefusal> {
        if self.failures >= MAX_FAILURES {
            return Err(RestartRefusal::GivenUp);
        }
        let (Some(last), 2..) = (self.last_failure, self.failures) else {
            return Ok(());
        };
        let wait = Duration::from_secs(1 << (self.failures - 2)).min(MAX_WAIT);
        let left = wait.saturating_sub(now.saturating_duration_since(last));
        if left.is_zero() {
            Ok(())
        } else {
            Err(RestartRefusal::Wait(left))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_end() {
        let start = Instant::now();
        let mut policy = RestartPolicy::default();
        assert_eq!(policy.check(start), Ok(()));
        policy.failed(start);
        assert_eq!(policy.check(start), Ok(()), "one failure may be chance");
        let mut waits = Vec::new();
        loop {
            policy.failed(start);
            match policy.check(start) {
                Err(RestartRefusal::Wait(wait)) => waits.push(wait.as_secs()),
                refused => {
                    assert_eq!(refused, Err(RestartRefusal::GivenUp));
                    break;
                }
            }
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn the_wait_ends_and_work_forgives() {
        let start = Instant::now();
        let mut policy = RestartPolicy::default();
        policy.failed(start);
        policy.failed(start);
        assert_eq!(policy.check(start + Duration::from_secs(1)), Ok(()));
        policy.failed(start);
        assert!(policy.check(start + Duration::from_secs(1)).is_err());
        policy.worked();
        assert_eq!(policy.check(start), Ok(()));
    }
}
