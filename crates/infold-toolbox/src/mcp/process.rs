//! The process of a server.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::output::OutputBuffer;
use crate::process_group::ProcessGroup;

/// How a process is started.
#[derive(Clone, Debug)]
pub struct ProcessSettings {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// All variables of its environment.
    pub environment: Vec<(OsString, OsString)>,
    pub directory: Option<PathBuf>,
}

/// A process that runs. Dropping it kills it with all that it started.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    stderr: Arc<Mutex<OutputBuffer>>,
    reading: JoinHandle<()>,
    _group: ProcessGroup,
}

/// How much of standard error is kept.
const MAX_STDERR_BYTES: usize = 4 << 10;

/// How long a process has to end after its input is closed.
const MAX_END_TIME: Duration = Duration::from_secs(2);

/// How long the last words of a process that ended are waited for.
const MAX_LAST_WORDS_TIME: Duration = Duration::from_millis(500);

impl ServerProcess {
    pub fn start(
        settings: &ProcessSettings,
    ) -> io::Result<(ServerProcess, ChildStdout, ChildStdin)> {
        let (program, arguments) = settings
            .command
            .split_first()
            .ok_or_else(|| io::Error::other("the command is empty"))?;
        let group = ProcessGroup::new()?;
        let (mark_name, mark) = group.mark();
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(
                settings
                    .environment
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .env(mark_name, mark)
            .process_group(group.id())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(directory) = &settings.directory {
            command.current_dir(directory);
        }
        let mut child = command.spawn()?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::Error::other("a process without pipes"));
        };
        let buffer = Arc::new(Mutex::new(OutputBuffer::new(MAX_STDERR_BYTES)));
        let process = ServerProcess {
            child,
            reading: tokio::spawn(read_stderr(stderr, Arc::clone(&buffer))),
            stderr: buffer,
            _group: group,
        };
        Ok((process, stdout, stdin))
    }

    /// Returns the beginning and the end of the standard error of the process. If it has just ended, waits
    /// briefly for the rest.
    pub async fn last_words(&mut self) -> String {
        let _ = timeout(MAX_LAST_WORDS_TIME, &mut self.reading).await;
        let mut buffer = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let buffer = std::mem::replace(&mut *buffer, OutputBuffer::new(0));
        buffer.into_text().trim().to_owned()
    }

    /// Waits briefly for the process to end by itself, then kills its remaining processes.
    pub async fn end(mut self) {
        let _ = timeout(MAX_END_TIME, self.child.wait()).await;
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// Reads standard error to its end, so that the process never blocks on it.
async fn read_stderr(mut stderr: ChildStderr, buffer: Arc<Mutex<OutputBuffer>>) {
    let mut chunk = vec![0; 8 << 10];
    while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
        let mut buffer = buffer.lock().unwrap_or_else(PoisonError::into_inner);
        buffer.push(&chunk[..read]);
    }
}
