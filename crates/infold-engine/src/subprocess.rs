//! Runs commands with limits on their time and output.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The way in which a command ended.
#[derive(Debug)]
pub enum CommandEnd {
    /// The command ended with exit code 0.
    Succeeded {
        /// The standard output.
        stdout: Vec<u8>,
    },
    /// The command ended with another exit code, or was killed.
    Failed {
        /// The exit status.
        status: ExitStatus,
        /// The end of its standard error.
        stderr: String,
    },
    /// The command was stopped at its time limit.
    TimedOut,
    /// The command was stopped because it printed too much.
    TooMuchOutput,
}

/// Returns a command for the shell, in a process group of its own.
pub fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).process_group(0);
    shell
}

/// The most bytes of standard error that are kept.
const MAX_STDERR_BYTES: usize = 64 << 10;

/// Runs a command to its end, or stops it with all its child processes; it is also stopped if this process is killed.
///
/// `input` is written to its standard input; without it standard input is that of the command.
pub fn run(
    mut command: Command,
    input: Option<Vec<u8>>,
    max_output_bytes: u64,
    timeout: Duration,
) -> io::Result<CommandEnd> {
    if input.is_some() {
        command.stdin(Stdio::piped());
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    // The guard starts before the command, which joins its process group: this process may be killed at any moment.
    let guard = KillGuard::ready();
    if let Ok(guard) = &guard {
        command.process_group(guard.group());
    }
    let mut child = command.spawn()?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        // A command need not read its input.
        thread::spawn(move || drop(stdin.write_all(&input)));
    }
    let until = Instant::now() + timeout;
    let stdout = read_start(child.stdout.take(), max_output_bytes + 1);
    let stderr = read_end(child.stderr.take());
    let ended = wait(&mut child, &stdout, &stderr, max_output_bytes, until);
    if !matches!(
        ended,
        Ok(CommandEnd::Succeeded { .. } | CommandEnd::Failed { .. })
    ) {
        let group = guard.as_ref().map_or(child.id(), |guard| guard.0.id());
        stop(&mut child, group);
    }
    if let Ok(guard) = guard {
        guard.dismiss();
    }
    ended
}

/// A process that outlives this one only to kill a command that would otherwise continue alone.
///
/// The command has a process group of its own, so a signal that ends this process, Ctrl-C too, does not reach it.
struct KillGuard(Child);

impl KillGuard {
    fn ready() -> io::Result<KillGuard> {
        // Its input ends when this process does; then it kills its process group.
        let waits = shell("read -r _; kill -s KILL 0")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(KillGuard(waits))
    }

    /// Returns the process group that it kills.
    fn group(&self) -> i32 {
        // Process ids of the system have this type.
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
    max_output_bytes: u64,
    until: Instant,
) -> io::Result<CommandEnd> {
    let left = || until.saturating_duration_since(Instant::now());
    let Ok(stdout) = stdout.recv_timeout(left()) else {
        return Ok(CommandEnd::TimedOut);
    };
    if stdout.len() as u64 > max_output_bytes {
        return Ok(CommandEnd::TooMuchOutput);
    }
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if left().is_zero() {
            return Ok(CommandEnd::TimedOut);
        }
        thread::sleep(Duration::from_millis(2).min(left()));
    };
    if status.success() {
        return Ok(CommandEnd::Succeeded { stdout });
    }
    // A background process of the command may hold its standard error open.
    let stderr = stderr
        .recv_timeout(Duration::from_millis(200))
        .unwrap_or_default();
    Ok(CommandEnd::Failed {
        status,
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    })
}

/// Reads up to `max_bytes` on a thread of its own.
fn read_start<R: Read + Send + 'static>(
    from: Option<R>,
    max_bytes: u64,
) -> mpsc::Receiver<Vec<u8>> {
    on_thread(from, move |from, bytes| {
        // An error ends the output; the bytes before it count.
        let _ = from.take(max_bytes).read_to_end(bytes);
    })
}

/// Reads everything on a thread of its own, so that the command never blocks or fails on writing, and keeps the end of
/// it.
fn read_end<R: Read + Send + 'static>(from: Option<R>) -> mpsc::Receiver<Vec<u8>> {
    on_thread(from, |mut from, end| {
        let mut chunk = [0; 8 << 10];
        while let Ok(read @ 1..) = from.read(&mut chunk) {
            end.extend_from_slice(&chunk[..read]);
            if end.len() > 2 * MAX_STDERR_BYTES {
                end.drain(..end.len() - MAX_STDERR_BYTES);
            }
        }
    })
}

fn on_thread<R: Send + 'static>(
    from: Option<R>,
    read: impl FnOnce(R, &mut Vec<u8>) + Send + 'static,
) -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(from) = from {
            read(from, &mut bytes);
        }
        let _ = send.send(bytes);
    });
    receive
}

/// Kills a command and everything in its process group.
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

    fn ran(command: &str) -> CommandEnd {
        run(shell(command), None, 1 << 10, Duration::from_secs(20)).unwrap()
    }

    #[test]
    fn a_command_ends_with_whoever_started_it() {
        let mut guard = KillGuard::ready().unwrap();
        let mut command = shell("sleep 600");
        command.process_group(guard.group());
        let mut child = command.spawn().unwrap();
        // Simulates that this process is killed right after it started the command.
        drop(guard.0.stdin.take());
        assert!(!child.wait().unwrap().success());
        guard.dismiss();
    }

    #[test]
    fn a_command_may_complain_at_length() {
        // A single process, which would be killed for writing into a closed pipe.
        let ended = ran(
            "exec awk 'BEGIN { for (i = 0; i < 40000; i++) print \"loading\" > \"/dev/stderr\"; print \"done\" }'",
        );
        assert!(
            matches!(&ended, CommandEnd::Succeeded { stdout } if stdout == b"done\n"),
            "{ended:?}"
        );
    }

    #[test]
    fn the_end_of_what_it_complains_of_is_kept() {
        let ended = ran(
            "exec awk 'BEGIN { for (i = 0; i < 40000; i++) print \"loading\" > \"/dev/stderr\"; print \"no model\" > \"/dev/stderr\"; exit 3 }'",
        );
        assert!(
            matches!(&ended, CommandEnd::Failed { stderr, .. } if stderr.ends_with("no model\n")),
            "{ended:?}"
        );
    }
}
