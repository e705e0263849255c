//! A process with everything that it starts, which ends with this process.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// A group of processes. Dropping it kills them all, and so does the end of this process, however it comes.
///
/// A group does not get signals that are sent to the group of this process, such as Ctrl-C in a terminal. So its
/// first member is a guard: a shell whose input ends with this process, and that then kills its group.
///
/// A process may leave its group (`setsid`). On Linux it is found by a variable of its environment, which it inherits
/// unless it clears that; it is killed when the group is dropped, but not by the guard.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    guard: Child,
    id: Pid,
    mark: String,
}

/// The variable by which the processes of a group are found.
const MARK_NAME: &str = "INFOLD_PROCESS_GROUP";

/// How long a process that was killed has to end before it is looked for again.
const PAUSE: Duration = Duration::from_millis(1);

/// How often processes that left the group are looked for: each may have started another one meanwhile.
const MAX_SEARCHES: usize = 100;

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
        // A process id is used again; the group's own is not while it lives.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}.{count}.{}", std::process::id(), guard.id());
        Ok(ProcessGroup { guard, id, mark })
    }

    /// Returns the variable that each process of the group must have in its environment.
    pub fn mark(&self) -> (&'static str, &str) {
        (MARK_NAME, &self.mark)
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
        let mark = format!("{MARK_NAME}={}", self.mark);
        for _ in 0..MAX_SEARCHES {
            let left = marked_processes(mark.as_bytes());
            if left.is_empty() {
                break;
            }
            for id in left {
                // It may have ended by itself.
                let _ = kill_process(id, Signal::KILL);
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// Returns the processes whose environment has a variable; none where the system does not tell.
fn marked_processes(variable: &[u8]) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let ids = entries.flatten().filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        Pid::from_raw(id).map(|id| (id, entry.path()))
    });
    let is_marked = |path: &std::path::Path| {
        // The environment of a process that has ended and is not waited for yet is empty.
        let environment = std::fs::read(path.join("environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|entry| entry == variable)
    };
    let marked = ids.filter(|(_, path)| is_marked(path));
    marked.map(|(id, _)| id).collect()
}
