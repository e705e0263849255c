//! Commands that are watched while they run.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs a command; returns its time, its processor time, and the most memory it had, in KiB.
pub fn run(line: &str) -> (f64, f64, u64) {
    let started = Instant::now();
    let script = format!("TIMEFORMAT='%U %S'; time {line} >/dev/null 2>/dev/null");
    let mut child = Command::new("bash")
        .args(["-c", &script])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("bash");
    let mut peak = 0;
    while child.try_wait().expect("a child").is_none() {
        peak = peak.max(highest(child.id()));
        std::thread::sleep(Duration::from_millis(5));
    }
    let took = started.elapsed().as_secs_f64();
    let said = child.wait_with_output().expect("a child").stderr;
    let said = String::from_utf8_lossy(&said);
    let seconds = said
        .split_whitespace()
        .filter_map(|word| word.parse::<f64>().ok());
    (took, seconds.sum(), peak)
}

/// The most memory that a process or its children had so far.
fn highest(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let own = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let below = children
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok());
    below.map(highest).max().unwrap_or(0).max(own.unwrap_or(0))
}
