//! Commands that are run on the side: bounded in time and in what they say.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// How a command ended.
#[derive(Debug)]
pub enum Ended {
    /// With exit code 0.
    Well {
        /// What it printed.
        stdout: Vec<u8>,
    },
    /// With another one, or killed.
    Badly {
        /// How.
        status: ExitStatus,
        /// What it complained about, the end of it.
        stderr: String,
    },
    /// It was stopped: its time was up.
    Hung,
    /// It was stopped: it printed too much.
    Endless,
}

/// A command for the shell, in a process group of its own.
pub fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).process_group(0);
    shell
}

/// What is kept of complaints.
const COMPLAINTS: usize = 64 << 10;

/// Runs a command to its end, or stops it with all it started; so it is too if we are killed.
///
/// `input` goes to its standard input; none leaves that as the command has it.
pub fn run(
    mut command: Command,
    input: Option<Vec<u8>>,
    most: u64,
    timeout: Duration,
) -> io::Result<Ended> {
    if input.is_some() {
        command.stdin(Stdio::piped());
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    // The guard is there before the command, which joins its process group: we may be killed at any moment.
    let guard = Guard::ready();
    if let Ok(guard) = &guard {
        command.process_group(guard.group());
    }
    let mut child = command.spawn()?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        // A command need not read what it is told.
        thread::spawn(move || drop(stdin.write_all(&input)));
    }
    let until = Instant::now() + timeout;
    let stdout = reading(child.stdout.take(), most + 1);
    let stderr = reading_end(child.stderr.take());
    let ended = wait(&mut child, &stdout, &stderr, most, until);
    if !matches!(ended, Ok(Ended::Well { .. } | Ended::Badly { .. })) {
        let group = guard.as_ref().map_or(child.id(), |guard| guard.0.id());
        stop(&mut child, group);
    }
    if let Ok(guard) = guard {
        guard.dismiss();
    }
    ended
}

/// A process that outlives ours only to end a command that would otherwise go on alone.
///
/// The command has a process group of its own, so what ends us, Ctrl-C too, does not reach it.
struct Guard(Child);

impl Guard {
    fn ready() -> io::Result<Guard> {
        // It waits for its input to end, which it does when we do, and ends its process group.
        let waits = shell("read -r _; kill -s KILL 0")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Guard(waits))
    }

    /// The process group that it ends.
    fn group(&self) -> i32 {
        // The system's own process ids are of this type.
        self.0.id().cast_signed()
    }

    fn dismiss(mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait(
    child: &mut Child,
    stdout: &mpsc::Receiver<Vec<u8>>,
    stderr: &mpsc::Receiver<Vec<u8>>,
    most: u64,
    until: Instant,
) -> io::Result<Ended> {
    let left = || until.saturating_duration_since(Instant::now());
    let Ok(stdout) = stdout.recv_timeout(left()) else {
        return Ok(Ended::Hung);
    };
    if stdout.len() as u64 > most {
        return Ok(Ended::Endless);
    }
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if left().is_zero() {
            return Ok(Ended::Hung);
        }
        thread::sleep(Duration::from_millis(2).min(left()));
    };
    if status.success() {
        return Ok(Ended::Well { stdout });
    }
    // Something it left running may hold its standard error open.
    let stderr = stderr
        .recv_timeout(Duration::from_millis(200))
        .unwrap_or_default();
    Ok(Ended::Badly {
        status,
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    })
}

/// Reads up to `most` bytes on a thread of its own.
fn reading<R: Read + Send + 'static>(from: Option<R>, most: u64) -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(from) = from {
            // What could be read counts.
            let _ = from.take(most).read_to_end(&mut bytes);
        }
        let _ = send.send(bytes);
    });
    receive
}

/// Reads everything on a thread of its own, so that nobody waits or breaks off writing, and
/// keeps the end of it.
fn reading_end<R: Read + Send + 'static>(from: Option<R>) -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let mut kept = Vec::new();
        let mut piece = [0; 8 << 10];
        if let Some(mut from) = from {
            while let Ok(read @ 1..) = from.read(&mut piece) {
                kept.extend_from_slice(&piece[..read]);
                if kept.len() > 2 * COMPLAINTS {
                    kept.drain(..kept.len() - COMPLAINTS);
                }
            }
        }
        let _ = send.send(kept);
    });
    receive
}

/// Ends a command and everything in its process group.
fn stop(child: &mut Child, group: u32) {
    let group = format!("-{group}");
    let _ = Command::new("kill")
        .args(["-KILL", "--", &group])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(command: &str) -> Ended {
        run(shell(command), None, 1 << 10, Duration::from_secs(20)).unwrap()
    }

    #[test]
    fn a_command_ends_with_whoever_started_it() {
        let mut guard = Guard::ready().unwrap();
        let mut command = shell("sleep 600");
        command.process_group(guard.group());
        let mut child = command.spawn().unwrap();
        // As if this process were killed right after it started the command.
        drop(guard.0.stdin.take());
        assert!(!child.wait().unwrap().success());
        guard.dismiss();
    }

    #[test]
    fn a_command_may_complain_at_length() {
        // One process, which would be killed for writing where nobody reads.
        let ended = ran(
            "exec awk 'BEGIN { for (i = 0; i < 40000; i++) print \"loading\" > \"/dev/stderr\"; print \"done\" }'",
        );
        assert!(
            matches!(&ended, Ended::Well { stdout } if stdout == b"done\n"),
            "{ended:?}"
        );
    }

    #[test]
    fn the_end_of_what_it_complains_of_is_kept() {
        let ended = ran(
            "exec awk 'BEGIN { for (i = 0; i < 40000; i++) print \"loading\" > \"/dev/stderr\"; print \"no model\" > \"/dev/stderr\"; exit 3 }'",
        );
        assert!(
            matches!(&ended, Ended::Badly { stderr, .. } if stderr.ends_with("no model\n")),
            "{ended:?}"
        );
    }
}
