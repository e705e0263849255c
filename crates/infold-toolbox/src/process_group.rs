//! A process with everything that it starts, which ends with this process.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

/// A group of processes. Dropping it kills them all, and so does the end of this process, however it comes.
///
/// A group does not get signals that are sent to the group of this process, such as Ctrl-C in a terminal. So its
/// first member is a guard: a shell whose input ends with this process, and that then kills its group.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    guard: Child,
    id: Pid,
}

impl ProcessGroup {
    /// Starts a group with its guard alone.
    pub fn new() -> io::Result<ProcessGroup> {
        let mut guard = Command::new("/bin/sh")
            .args(["-c", "read -r _; kill -s KILL 0"])
            .env_clear()
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let Some(id) = Pid::from_raw(guard.id().cast_signed()) else {
            let _ = guard.kill();
            return Err(io::Error::other("a process without an id"));
        };
        Ok(ProcessGroup { guard, id })
    }

    /// Returns the id by which a command joins the group.
    pub fn id(&self) -> i32 {
        self.id.as_raw_nonzero().get()
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // The guard is not waited for before, so no other process can have its id.
        let _ = kill_process_group(self.id, Signal::KILL);
        let _ = self.guard.wait();
    }
}
