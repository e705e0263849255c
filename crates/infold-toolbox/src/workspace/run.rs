//! The tool `run`: a command in the workspace.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::process::Command;
use tokio::time::{Instant, timeout, timeout_at};

use super::Workspace;
use crate::arguments::CallArguments;
use crate::failure::CallProblem;
use crate::output::OutputBuffer;
use crate::process_group::ProcessGroup;

/// The arguments of the tool.
const ARGUMENTS: &[&str] = &["command", "timeout"];

/// A command that prints this many times more than is kept is stopped.
const MAX_OUTPUT_FACTOR: u64 = 16;

/// How long the rest of an output is waited for once the command has ended. What it left running may hold the pipe open.
const MAX_DRAIN_TIME: Duration = Duration::from_millis(500);

pub async fn run(workspace: &Workspace, arguments: CallArguments) -> Result<String, CallProblem> {
    let arguments = arguments.only(ARGUMENTS)?;
    let command = arguments.text("command")?;
    if command.trim().is_empty() {
        return Err(CallProblem::new("`command` is empty"));
    }
    if command.contains('\0') {
        return Err(CallProblem::new("`command` has a zero byte"));
    }
    let limits = &workspace.limits;
    let time_limit = match arguments.count("timeout")? {
        Some(seconds) => Duration::from_secs(seconds).min(limits.max_command_timeout),
        None => limits.command_timeout,
    };
    let mut output = OutputBuffer::new(limits.max_result_bytes);
    let end = RunningCommand::start(workspace, command)
        .map_err(|error| CallProblem::new(format!("the command cannot be started: {error}")))?
        .finish(&mut output, Instant::now() + time_limit)
        .await;
    let text = output.into_text();
    let reason = match end {
        ToolCommandEnd::Exited(status) if status.success() => {
            return Ok(if text.is_empty() {
                "(no output)".to_owned()
            } else {
                text
            });
        }
        ToolCommandEnd::Exited(status) => failed_status(status),
        ToolCommandEnd::TimedOut => format!(
            "stopped after {} seconds, with all that it started: give it a longer `timeout` (at most {}), or a smaller task",
            time_limit.as_secs_f64(),
            limits.max_command_timeout.as_secs()
        ),
        ToolCommandEnd::TooMuchOutput => {
            "stopped, as it printed too much: redirect its output to a file".to_owned()
        }
        ToolCommandEnd::Lost(error) => format!("the command was lost: {error}"),
    };
    Err(CallProblem {
        reason,
        output: Some(text),
    })
}

fn failed_status(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// How a command ended.
enum ToolCommandEnd {
    Exited(ExitStatus),
    TimedOut,
    TooMuchOutput,
    Lost(io::Error),
}

/// A command that runs. Dropping it kills it with all that it started.
struct RunningCommand {
    child: tokio::process::Child,
    output: pipe::Receiver,
    max_output_bytes: u64,
    /// Dropped last, because it also ends the processes that the command left running.
    _group: ProcessGroup,
}

impl RunningCommand {
    fn start(workspace: &Workspace, command: &str) -> io::Result<RunningCommand> {
        // Use one pipe for both, so that output and errors keep their order.
        let (reader, writer) = io::pipe()?;
        let group = ProcessGroup::new()?;
        let (mark_name, mark) = group.mark();
        let child = Command::new("/bin/sh")
            .arg("-c")
            .arg(command)
            .current_dir(workspace.root.path())
            .env_clear()
            .envs(
                workspace
                    .environment
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .env(mark_name, mark)
            .process_group(group.id())
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .kill_on_drop(true)
            .spawn()?;
        Ok(RunningCommand {
            child,
            output: pipe::Receiver::from_owned_fd(reader.into())?,
            max_output_bytes: MAX_OUTPUT_FACTOR
                .saturating_mul(workspace.limits.max_result_bytes as u64),
            _group: group,
        })
    }

    /// Reads the output until the command ends, or is to be stopped.
    async fn finish(mut self, output: &mut OutputBuffer, until: Instant) -> ToolCommandEnd {
        let mut chunk = vec![0; 64 << 10];
        let mut is_open = true;
        let status = loop {
            let next = async {
                tokio::select! {
                    read = self.output.read(&mut chunk), if is_open => CommandStep::Output(read),
                    status = self.child.wait() => CommandStep::Exit(status),
                }
            };
            match timeout_at(until, next).await {
                Err(_) => return ToolCommandEnd::TimedOut,
                Ok(CommandStep::Exit(Ok(status))) => break status,
                Ok(CommandStep::Exit(Err(error))) => return ToolCommandEnd::Lost(error),
                Ok(CommandStep::Output(Ok(0) | Err(_))) => is_open = false,
                Ok(CommandStep::Output(Ok(read))) => output.push(&chunk[..read]),
            }
            if output.total_bytes() > self.max_output_bytes {
                return ToolCommandEnd::TooMuchOutput;
            }
        };
        let drain = async {
            while is_open && output.total_bytes() <= self.max_output_bytes {
                match self.output.read(&mut chunk).await {
                    Ok(0) | Err(_) => is_open = false,
                    Ok(read) => output.push(&chunk[..read]),
                }
            }
        };
        let _ = timeout(MAX_DRAIN_TIME, drain).await;
        ToolCommandEnd::Exited(status)
    }
}

/// The next event of a running command.
enum CommandStep {
    Output(io::Result<usize>),
    Exit(io::Result<ExitStatus>),
}
