//! Commands that are watched while they run.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The duration of a command, and its peak memory.
pub struct Watched {
    /// The time from start to end, in seconds.
    #[allow(dead_code)]
    pub elapsed: f64,
    /// The processor time, in seconds.
    #[allow(dead_code)]
    pub processor: f64,
    /// The most memory of a process, in KiB, with the pages of its program file that it used.
    pub peak: u64,
    /// The peak memory without pages of files, which the system shares and may drop. It is read every few milliseconds.
    #[allow(dead_code)]
    pub own: u64,
}

/// Runs a command.
pub fn run(line: &str) -> Watched {
    let started = Instant::now();
    let script = format!("TIMEFORMAT='%U %S'; time {line} >/dev/null 2>/dev/null");
    let mut child = Command::new("bash")
        .args(["-c", &script])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("bash");
    let (mut peak, mut own) = (0, 0);
    while child.try_wait().expect("a child").is_none() {
        peak = peak.max(highest(child.id(), "VmHWM:"));
        own = own.max(highest(child.id(), "RssAnon:"));
        std::thread::sleep(Duration::from_millis(5));
    }
    let elapsed = started.elapsed().as_secs_f64();
    let said = child.wait_with_output().expect("a child").stderr;
    let said = String::from_utf8_lossy(&said);
    let seconds = said
        .split_whitespace()
        .filter_map(|word| word.parse::<f64>().ok());
    Watched {
        elapsed,
        processor: seconds.sum(),
        peak,
        own,
    }
}

/// Returns the largest value of a figure over a process and its children.
fn highest(pid: u32, figure: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(figure));
    let own = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let below = children
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok());
    below
        .map(|pid| highest(pid, figure))
        .max()
        .unwrap_or(0)
        .max(own.unwrap_or(0))
}
