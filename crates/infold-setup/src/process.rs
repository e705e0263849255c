//! Names one process for good: a process id alone is given to others after its end.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A process, by its id and the time of its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// The process id.
    pub pid: i32,
    /// The boot of the machine and the time since then, as the system counts it.
    pub started: String,
}

/// How long a process may take to end after each signal.
const GRACE: Duration = Duration::from_secs(5);

const PAUSE: Duration = Duration::from_millis(20);

impl ProcessIdentity {
    /// Returns the identity of the process that has an id now; one that has ended has none.
    pub fn of(pid: i32) -> Option<ProcessIdentity> {
        let started = start_time(pid)?;
        Some(ProcessIdentity { pid, started })
    }

    /// Returns whether this very process runs, not another one with its id.
    pub fn is_running(&self) -> bool {
        ProcessIdentity::of(self.pid).as_ref() == Some(self)
    }

    /// Ends the process; returns whether it has ended.
    ///
    /// The first signal lets a server finish its replies, the second one stops it, the third one cannot be ignored.
    pub fn stop(&self) -> bool {
        let Some(handle) = ProcessHandle::open(self) else {
            return true;
        };
        for signal in [Signal::TERM, Signal::TERM, Signal::KILL] {
            handle.send(self, signal);
            let end = Instant::now() + GRACE;
            while self.is_running() {
                if Instant::now() >= end {
                    break;
                }
                std::thread::sleep(PAUSE);
            }
            if !self.is_running() {
                return true;
            }
        }
        false
    }
}

/// Sends signals to one process, where the system can do that even if its id is given to another one meanwhile.
struct ProcessHandle {
    #[cfg(target_os = "linux")]
    descriptor: Option<std::os::fd::OwnedFd>,
}

impl ProcessHandle {
    #[cfg(target_os = "linux")]
    fn open(process: &ProcessIdentity) -> Option<ProcessHandle> {
        let pid = Pid::from_raw(process.pid)?;
        // Old kernels have no such descriptors.
        let descriptor =
            rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok();
        // The descriptor was opened first: if the process is the right one now, the descriptor is of it.
        process.is_running().then_some(ProcessHandle { descriptor })
    }

    #[cfg(not(target_os = "linux"))]
    fn open(process: &ProcessIdentity) -> Option<ProcessHandle> {
        process.is_running().then_some(ProcessHandle {})
    }

    fn send(&self, process: &ProcessIdentity, signal: Signal) {
        // A process that cannot be reached is seen by its still running.
        #[cfg(target_os = "linux")]
        if let Some(descriptor) = &self.descriptor {
            let _ = rustix::process::pidfd_send_signal(descriptor, signal);
            return;
        }
        if let Some(pid) = Pid::from_raw(process.pid)
            && process.is_running()
        {
            let _ = kill_process(pid, signal);
        }
    }
}

/// The boot and the start time of a process that has not ended; clock ticks start again with each boot.
#[cfg(target_os = "linux")]
fn start_time(pid: i32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program stands in parentheses and may hold any character.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    // A zombie has ended: nothing but its parent's wait is missing.
    let state = fields.next().filter(|state| !matches!(*state, "Z" | "X"));
    let ticks = state.and_then(|_| fields.nth(18))?;
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    Some(format!("{}:{ticks}", boot.trim()))
}

#[cfg(not(target_os = "linux"))]
fn start_time(pid: i32) -> Option<String> {
    let mut command = std::process::Command::new("ps");
    command.args(["-o", "stat=,lstart=", "-p", &pid.to_string()]);
    let output = command.env("LC_ALL", "C").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (state, started) = text.trim().split_once(char::is_whitespace)?;
    (!state.starts_with('Z')).then(|| started.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A process that ends with its test.
    struct Sleeping(Child);

    impl Sleeping {
        fn new() -> Sleeping {
            let mut command = Command::new("sleep");
            let child = command
                .arg("600")
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            Sleeping(child.spawn().expect("sleep"))
        }

        fn identity(&self) -> ProcessIdentity {
            let pid = i32::try_from(self.0.id()).expect("a process id");
            ProcessIdentity::of(pid).expect("it runs")
        }
    }

    impl Drop for Sleeping {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_process_is_stopped_and_known_to_have_ended() {
        let sleeping = Sleeping::new();
        let identity = sleeping.identity();
        assert!(identity.is_running());
        // Its parent waits for it later: until then it is a zombie.
        assert!(identity.stop());
        assert!(!identity.is_running());
        assert!(identity.stop());
    }

    #[test]
    fn another_process_with_the_same_id_is_left_alone() {
        let sleeping = Sleeping::new();
        let identity = sleeping.identity();
        let earlier = ProcessIdentity {
            started: format!("{}0", identity.started),
            ..identity.clone()
        };
        assert!(!earlier.is_running());
        assert!(earlier.stop());
        assert!(identity.is_running());
    }
}
