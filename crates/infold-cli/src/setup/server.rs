//! The server that agents are pointed at: whether it runs, and how it is started and stopped.

mod background;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use infold_setup::{SetupRecord, TasksRecord, missing_directories, remove_file};
use serde_json::json;

use super::Context;
use crate::error::{CliError, CliResult};
use crate::output::{Output, note};

pub use background::{describe, start_command, stop_unused};

/// The program that listens at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// Nothing.
    Nobody,
    /// A server of Infold.
    Infold,
}

/// How long a server on this machine may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long a server may take to start.
const START: Duration = Duration::from_secs(10);

/// The address of the proxy at a port.
pub fn base(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

/// Returns the program that listens at a port; an error if it is not Infold.
pub fn probe(port: u16) -> CliResult<Listener> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let Ok(stream) = TcpStream::connect_timeout(&address, PATIENCE) else {
        return Ok(Listener::Nobody);
    };
    if is_infold(stream, port) {
        return Ok(Listener::Infold);
    }
    Err(
        CliError::usage(format!("port {port} is used by another program")).hint(format!(
            "--port {} takes another one; nothing was changed",
            port.wrapping_add(1)
        )),
    )
}

fn is_infold(mut stream: TcpStream, port: u16) -> bool {
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let request = format!("GET / HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n");
    let mut answer = Vec::new();
    let sent = stream.write_all(request.as_bytes());
    let _ = sent.and_then(|()| stream.take(64 << 10).read_to_end(&mut answer).map(|_| ()));
    String::from_utf8_lossy(&answer).contains("\r\n\r\ninfold is running")
}

/// Whether the configuration that the server reads when it starts was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerConfig {
    /// It is as the server has read it.
    Unchanged,
    /// The server has to start again to read it.
    Changed,
}

/// Starts the server: by systemd if it runs for the user, else in the background.
pub fn start(
    context: &Context<'_>,
    server_config: ServerConfig,
    state: &mut SetupRecord,
    out: &mut Output,
) -> CliResult {
    let is_changed = server_config == ServerConfig::Changed;
    // Another setup may have started one before it freed the lock.
    let mut listener = probe(context.port)?;
    if listener == Listener::Infold
        && is_changed
        && !context.args.no_service
        && background::stop(context.port, state)
    {
        listener = probe(context.port)?;
    }
    if listener == Listener::Infold {
        if is_changed {
            note(
                out.is_json(),
                "the server reads where to send requests when it starts: start it again",
            );
        }
        return out.result(
            &json!({"server": "running", "address": context.base}),
            format!("the server is running at {}", context.base),
        );
    }
    let words = serve_words(context);
    let shown: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
    let command = shown.join(" ");
    if context.args.no_service {
        let text = format!("start the server, and keep it running: infold {command}");
        return out.result(
            &json!({"server": "not started", "command": format!("infold {command}")}),
            text,
        );
    }
    if !has_systemd() {
        return background::start(context, &words, state, out);
    }
    let unit = unit_file(context);
    if state.unit.is_none() && unit.exists() {
        let text = format!(
            "{} is not of setup, and was left as it is; start it (systemctl --user start infold), or run: infold {command}",
            unit.display()
        );
        return out.result(
            &json!({"server": "not started", "command": format!("infold {command}")}),
            text,
        );
    }
    if state.unit.is_none() {
        state.unit = Some(unit.clone());
        state.unit_directories = missing_directories(&unit);
        let wants = wants_directory(&unit);
        // Enabling makes it.
        if !wants.exists() {
            state.unit_directories.push(wants);
        }
        record_tasks(context, state);
        state.save(&context.state_file).map_err(CliError::store)?;
        write_unit(&unit, &words).map_err(|error| {
            CliError::store(format!("{}: {error}", unit.display()))
                .hint("--no-service leaves it out")
        })?;
    }
    let done = systemctl(&["daemon-reload"]) && systemctl(&["enable", "--now", "infold.service"]);
    if !done || !answers(context.port) {
        let what = if done {
            "systemd started the server, and it does not answer"
        } else {
            "systemd did not start the server"
        };
        return Err(CliError::no(what).hint(format!(
            "`systemctl --user status infold` says why; or run: infold {command}"
        )));
    }
    out.result(
        &json!({"server": "started", "unit": unit.display().to_string()}),
        format!("the server was started by systemd: {}", unit.display()),
    )
}

/// Waits until a server that was just started answers.
fn answers(port: u16) -> bool {
    let end = Instant::now() + START;
    while !is_running(port) {
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    true
}

/// A word as a shell takes it.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=".contains(c);
    if word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Stops the server and removes its unit, if setup installed it.
pub fn remove(state: &mut SetupRecord, state_file: &Path, out: &mut Output) -> CliResult {
    let Some(unit) = state.unit.take() else {
        return Ok(());
    };
    if !systemctl(&["disable", "--now", "infold.service"]) {
        note(out.is_json(), "systemd did not stop the server");
    }
    // Where systemd could not be asked, the link that starts the unit is still there.
    let link = wants_directory(&unit).join("infold.service");
    if std::fs::read_link(&link).is_ok_and(|target| target == unit) {
        remove_file(&link, &[]).map_err(CliError::store)?;
    }
    let directories = std::mem::take(&mut state.unit_directories);
    remove_file(&unit, &directories).map_err(CliError::store)?;
    systemctl(&["daemon-reload"]);
    state.save(state_file).map_err(CliError::store)?;
    let object = json!({"unit": unit.display().to_string(), "undone": "removed"});
    out.result(
        &object,
        format!("{}: removed, the server is stopped", unit.display()),
    )
}

/// Records that the server will make the directory of tasks.
fn record_tasks(context: &Context<'_>, state: &mut SetupRecord) {
    if state.tasks.is_none() && !context.tasks.exists() {
        let mut directories = missing_directories(&context.tasks);
        directories.push(context.tasks.clone());
        state.tasks = Some(TasksRecord {
            root: context.tasks.clone(),
            directories,
        });
    }
}

/// Removes the directory of tasks that the server made, if no task was ever in it.
pub fn remove_tasks(state: &mut SetupRecord, state_file: &Path) -> CliResult {
    let Some(tasks) = &state.tasks else {
        return Ok(());
    };
    let entries = std::fs::read_dir(&tasks.root).into_iter().flatten();
    let entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    if entries.iter().all(|entry| is_empty_part(entry)) {
        for entry in entries {
            // A directory that a task came into meanwhile stays, and so do those around it.
            let _ = std::fs::remove_file(&entry).or_else(|_| std::fs::remove_dir(&entry));
        }
        for directory in tasks.directories.iter().rev() {
            let _ = std::fs::remove_dir(directory);
        }
    }
    state.tasks = None;
    state.save(state_file).map_err(CliError::store)
}

/// Returns whether a part of a directory of tasks holds no task: an index, or an empty directory.
fn is_empty_part(path: &Path) -> bool {
    if path.is_dir() {
        return std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("tasks.db") || name.starts_with("chains.db")
}

/// Returns whether a server of Infold answers.
pub fn is_running(port: u16) -> bool {
    matches!(probe(port), Ok(Listener::Infold))
}

/// The arguments that start the server.
fn serve_words(context: &Context<'_>) -> Vec<String> {
    let mut words = context.global.clone();
    if let Some(config) = &context.named_config {
        words.extend(["--config".to_owned(), config.display().to_string()]);
    }
    words.push("serve".to_owned());
    if let Some(port) = context.args.port {
        words.extend(["--port".to_owned(), port.to_string()]);
    }
    words
}

fn unit_file(context: &Context<'_>) -> PathBuf {
    context.with_surroundings(|at| at.config("systemd/user/infold.service"))
}

/// The directory with the links to the units that are started with the session of the user.
fn wants_directory(unit: &Path) -> PathBuf {
    unit.with_file_name("default.target.wants")
}

fn write_unit(unit: &Path, words: &[String]) -> std::io::Result<()> {
    let program = std::env::current_exe()?;
    let program = unit_word(&program.display().to_string(), true);
    let words: Vec<String> = words.iter().map(|word| unit_word(word, false)).collect();
    let text = format!(
        "[Unit]\nDescription=Infold, a proxy between agents and their models\n\n[Service]\nExecStart={program} {}\nRestart=on-failure\n\n[Install]\nWantedBy=default.target\n",
        words.join(" ")
    );
    if let Some(parent) = unit.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(unit, text)
}

/// Systemd reads % and $ as the beginning of a variable, and words in quotes as one.
fn unit_word(word: &str, is_quoted: bool) -> String {
    let is_quoted = is_quoted || word.contains(|c: char| c.is_whitespace() || "\"'\\;".contains(c));
    let word = word.replace('%', "%%").replace('$', "$$");
    if is_quoted {
        format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        word
    }
}

fn has_systemd() -> bool {
    systemctl(&["show-environment"])
}

fn systemctl(words: &[&str]) -> bool {
    let mut command = Command::new("systemctl");
    command.arg("--user").args(words);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
