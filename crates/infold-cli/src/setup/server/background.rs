//! A server in the background, for users without systemd: started, described and stopped.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use infold_setup::{ProcessIdentity, ServerRecord, SetupRecord, remove_file};
use serde_json::{Value, json};

use super::super::Context;
use super::{Listener, START, is_running};
use crate::config::with_tilde;
use crate::error::{CliError, CliResult};
use crate::output::{Output, note};
use crate::serve::DETACHED;

/// How many of the last lines of the log an error shows.
const SHOWN_LOG_LINES: usize = 5;

const PAUSE: Duration = Duration::from_millis(50);

/// Starts the server with these arguments, and waits until it answers.
///
/// The server waits until its process is recorded, and ends if setup is killed before: so none runs that
/// `--undo` does not know.
pub fn start(
    context: &Context<'_>,
    words: &[String],
    state: &mut SetupRecord,
    out: &mut Output,
) -> CliResult {
    // One that runs and does not answer would keep the port.
    stop(context.port, state);
    let log = context.state_file.with_file_name("serve.log");
    let known = state.servers.iter().find(|server| server.log == log);
    let is_log_new = known.map_or(!log.exists(), |server| server.is_log_new);
    state.servers.retain(|server| server.port != context.port);
    state.servers.push(ServerRecord {
        port: context.port,
        log: log.clone(),
        is_log_new,
        process: None,
    });
    super::record_tasks(context, state);
    state.save(&context.state_file).map_err(CliError::store)?;
    let written = std::fs::metadata(&log).map_or(0, |log| log.len());
    let process = match try_start(context, words, &log, state) {
        Ok(process) => process,
        Err(error) => {
            let lines = last_lines(&log, written);
            forget(context, state)?;
            let text = format!("the server did not start: {}{lines}", error.text());
            return Err(CliError::no(text));
        }
    };
    let name = with_tilde(log.display().to_string());
    out.result(
        &json!({"server": "started", "address": context.base, "pid": process.pid, "log": log.display().to_string()}),
        format!(
            "the server was started at {}, process {}, log {name}",
            context.base, process.pid
        ),
    )?;
    out.finish()?;
    note(
        out.is_json(),
        format!(
            "it does not survive a reboot: `{}` starts it again",
            start_command(context.port, state)
        ),
    );
    Ok(())
}

/// Removes a server that did not start from the record, and its log.
fn forget(context: &Context<'_>, state: &mut SetupRecord) -> CliResult {
    let (failed, others): (Vec<_>, Vec<_>) = std::mem::take(&mut state.servers)
        .into_iter()
        .partition(|server| server.port == context.port);
    state.servers = others;
    for server in failed {
        remove_log(&server, state)?;
    }
    state.save(&context.state_file).map_err(CliError::store)
}

/// Removes the log of a server, unless it was there before, or another server writes to it.
fn remove_log(server: &ServerRecord, state: &SetupRecord) -> CliResult {
    let mut others = state.servers.iter().filter(|one| one.port != server.port);
    if !server.is_log_new || others.any(|one| one.log == server.log) {
        return Ok(());
    }
    remove_file(&server.log, &[]).map_err(CliError::store)
}

fn try_start(
    context: &Context<'_>,
    words: &[String],
    log: &Path,
    state: &mut SetupRecord,
) -> CliResult<ProcessIdentity> {
    let mut child = spawn(context, words, log)
        .map_err(|error| CliError::store(format!("{}: {error}", log.display())))?;
    let started = record_and_release(context, &mut child, state)
        .and_then(|process| wait_for_answer(context.port, &mut child).map(|()| process));
    if started.is_err() {
        // It may have ended by itself.
        let _ = child.kill();
        let _ = child.wait();
    }
    started
}

/// Starts the process, which waits for a line on its standard input.
fn spawn(context: &Context<'_>, words: &[String], log: &Path) -> std::io::Result<Child> {
    let output = open_log(log)?;
    Command::new(std::env::current_exe()?)
        .args(words)
        .arg(DETACHED)
        .current_dir(&context.home)
        .stdin(Stdio::piped())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
}

fn open_log(log: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(0o600).open(log)
}

/// Records the process, then lets it go on.
fn record_and_release(
    context: &Context<'_>,
    child: &mut Child,
    state: &mut SetupRecord,
) -> CliResult<ProcessIdentity> {
    let ended = || CliError::no("its process has ended");
    let pid = i32::try_from(child.id()).map_err(CliError::store)?;
    let process = ProcessIdentity::of(pid).ok_or_else(ended)?;
    for server in &mut state.servers {
        if server.port == context.port {
            server.process = Some(process.clone());
        }
    }
    state.save(&context.state_file).map_err(CliError::store)?;
    let mut input = child.stdin.take().ok_or_else(ended)?;
    input.write_all(b"go\n").map_err(|_| ended())?;
    Ok(process)
}

/// Waits until the server answers, or its process has ended.
fn wait_for_answer(port: u16, child: &mut Child) -> CliResult {
    let end = Instant::now() + START;
    loop {
        let is_answered = is_running(port);
        // Looked at after the answer, which may have come from another server that took the port meanwhile.
        if let Some(status) = child.try_wait().map_err(CliError::store)? {
            return Err(CliError::no(format!("it ended with {status}")));
        }
        if is_answered {
            return Ok(());
        }
        if Instant::now() >= end {
            let seconds = START.as_secs();
            return Err(CliError::no(format!(
                "it did not answer at port {port} within {seconds} s"
            )));
        }
        std::thread::sleep(PAUSE);
    }
}

/// The last lines of a log that were written after its first bytes, as lines of an error.
fn last_lines(log: &Path, from: u64) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let from = usize::try_from(from).unwrap_or(usize::MAX);
    let text = String::from_utf8_lossy(text.get(from..).unwrap_or_default());
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let from = lines.len().saturating_sub(SHOWN_LOG_LINES);
    let line = |line: &&str| format!("\n  {}", crate::output::printable(line));
    lines[from..].iter().map(line).collect()
}

/// Stops the server at a port; returns whether setup had started it and it has ended.
pub fn stop(port: u16, state: &SetupRecord) -> bool {
    let process = state
        .server(port)
        .and_then(|server| server.process.as_ref());
    process.is_some_and(|process| process.is_running() && process.stop())
}

/// Stops the servers whose address no agent has any more, and removes their log.
pub fn stop_unused(state: &mut SetupRecord, state_file: &Path, out: &mut Output) -> CliResult {
    let is_used = |server: &ServerRecord| {
        let base = super::base(server.port);
        state.agents.iter().any(|agent| agent.base == base)
    };
    let unused: Vec<ServerRecord> = state
        .servers
        .iter()
        .filter(|one| !is_used(one))
        .cloned()
        .collect();
    for server in unused {
        let running = server
            .process
            .as_ref()
            .filter(|process| process.is_running());
        if let Some(process) = running
            && !process.stop()
        {
            let text = format!("the server, process {}, cannot be stopped", process.pid);
            return Err(CliError::store(text).hint("`infold setup --undo` tries it again"));
        }
        // The record goes last: after a kill it still names the log.
        remove_log(&server, state)?;
        state.servers.retain(|one| one.port != server.port);
        state.save(state_file).map_err(CliError::store)?;
        if let Some(process) = running {
            let base = super::base(server.port);
            out.result(
                &json!({"server": "stopped", "address": base, "pid": process.pid}),
                format!("{base}: the server is stopped, process {}", process.pid),
            )?;
        }
    }
    Ok(())
}

/// Describes the server at the port of the proxy: an object for scripts, and a line.
pub fn describe(
    context: &Context<'_>,
    state: &SetupRecord,
    listener: &CliResult<Listener>,
) -> (Value, String) {
    let base = &context.base;
    let server = state.server(context.port);
    let process = server.and_then(|server| server.process.as_ref());
    let own = process.filter(|process| process.is_running());
    match (listener, own, server) {
        (Ok(Listener::Infold), Some(process), Some(server)) => {
            let log = server.log.display().to_string();
            (
                json!({"server": "running", "address": base, "pid": process.pid, "log": log}),
                format!(
                    "running at {base}, process {}, log {}",
                    process.pid,
                    with_tilde(log.clone())
                ),
            )
        }
        (Ok(Listener::Infold), ..) => (
            json!({"server": "running", "address": base}),
            format!("running at {base}"),
        ),
        (Ok(Listener::Nobody), Some(process), _) => (
            json!({"server": "not running", "address": base, "pid": process.pid}),
            format!("process {} runs and does not answer at {base}", process.pid),
        ),
        (Ok(Listener::Nobody), None, _) => {
            let command = start_command(context.port, state);
            (
                json!({"server": "not running", "address": base, "command": command}),
                format!("not running at {base}; `{command}` starts it"),
            )
        }
        (Err(error), ..) => (
            json!({"server": "not running", "address": base, "detail": error.text()}),
            error.text().to_owned(),
        ),
    }
}

/// The command that starts the server: that of setup, if setup started it before.
pub fn start_command(port: u16, state: &SetupRecord) -> String {
    if state.server(port).is_none() && state.unit.is_none() {
        return "infold serve".to_owned();
    }
    let names: Vec<&str> = state.agents.iter().map(|one| one.agent.as_str()).collect();
    format!("infold setup --write {}", names.join(" "))
}
