//! A disk of its own for a run, and the `infold` command on it, with a time limit.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::shim::{Mode, Shim};

/// The command under test, and what all runs of it share.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) binary: PathBuf,
    pub(crate) shim: Shim,
    /// The configuration that names the scripted model.
    pub(crate) config: PathBuf,
}

/// A directory for one run: faults are applied to `disk`, and the output of the run is beside it.
#[derive(Debug)]
pub(crate) struct Sandbox {
    root: TempDir,
}

/// How a command ended.
#[derive(Debug, Default)]
pub(crate) struct FinishedCommand {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) is_late: bool,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

/// A command that takes longer hangs. Nothing here takes a second, on a machine that has nothing else to do.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(60);

impl Sandbox {
    /// An empty one, in memory if that can be.
    pub(crate) fn new() -> io::Result<Sandbox> {
        let memory = Path::new("/dev/shm");
        let mut builder = tempfile::Builder::new();
        builder.prefix("infold-disk-");
        let root = if memory.is_dir() {
            builder.tempdir_in(memory).or_else(|_| builder.tempdir())
        } else {
            builder.tempdir()
        };
        let sandbox = Sandbox { root: root? };
        for name in ["contexts", "tmp", "home"] {
            fs::create_dir_all(sandbox.disk().join(name))?;
        }
        Ok(sandbox)
    }

    /// Returns a sandbox with a copy of these contexts.
    pub(crate) fn copy_of(contexts: &Path) -> io::Result<Sandbox> {
        let sandbox = Sandbox::new()?;
        copy_tree(contexts, &sandbox.contexts())?;
        Ok(sandbox)
    }

    pub(crate) fn disk(&self) -> PathBuf {
        self.root.path().join("disk")
    }

    pub(crate) fn contexts(&self) -> PathBuf {
        self.disk().join("contexts")
    }

    /// A file that is not on the disk.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Runs a command with JSON output to its end.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, program: &Program, args: &[S]) -> FinishedCommand {
        self.run_with(program, args, None, None)
    }

    /// Runs a command with input and with the shim.
    pub(crate) fn run_with<S: AsRef<OsStr>>(
        &self,
        program: &Program,
        args: &[S],
        input: Option<&Path>,
        mode: Option<Mode>,
    ) -> FinishedCommand {
        let mut command = self.command(program, mode);
        command.arg("--json").args(args);
        let (out, err) = (self.beside("out"), self.beside("err"));
        let started = (|| {
            let input = match input {
                Some(path) => Stdio::from(File::open(path)?),
                None => Stdio::null(),
            };
            command
                .stdin(input)
                .stdout(File::create(&out)?)
                .stderr(File::create(&err)?)
                .spawn()
        })();
        let ended = started.and_then(|mut child| wait(&mut child, TIME_LIMIT));
        let read = |path| fs::read(path).unwrap_or_default();
        let mut ran = FinishedCommand {
            out: read(&out),
            err: String::from_utf8_lossy(&read(&err)).into_owned(),
            ..FinishedCommand::default()
        };
        match ended {
            Ok(Some(status)) => (ran.code, ran.signal) = (status.code(), status.signal()),
            Ok(None) => ran.is_late = true,
            Err(error) => ran.err += &format!("not started: {error}"),
        }
        ran
    }

    /// A command in this sandbox, and nothing of our environment.
    pub(crate) fn command(&self, program: &Program, mode: Option<Mode>) -> Command {
        let mut command = Command::new(&program.binary);
        command
            .env_clear()
            .env("INFOLD_CONTEXTS", self.contexts())
            .env("INFOLD_CONFIG", &program.config)
            .env("INFOLD_SUMMARIZER", "extractive")
            .env("HOME", self.disk().join("home"))
            .env("TMPDIR", self.disk().join("tmp"))
            .env("PATH", "/usr/bin:/bin")
            .env("NO_COLOR", "1")
            .current_dir(self.root.path());
        if let Some(mode) = mode {
            let log = self.calls();
            program.shim.load(&mut command, &self.disk(), &log, mode);
        }
        if self.boot().exists() {
            program.shim.boot(&mut command, &self.boot());
        }
        command
    }

    /// The file that replaces the boot id of the machine, if it exists.
    pub(crate) fn boot(&self) -> PathBuf {
        self.beside("boot")
    }

    /// The file that the shim writes.
    pub(crate) fn calls(&self) -> PathBuf {
        self.beside("calls")
    }
}

/// Waits for a process, and ends it if it takes too long.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begin.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_micros(500));
    }
}

impl FinishedCommand {
    pub(crate) fn is_ok(&self) -> bool {
        self.code == Some(0)
    }

    /// Returns its output as JSON objects, one a line.
    pub(crate) fn objects(&self) -> Vec<Value> {
        let text = String::from_utf8_lossy(&self.out);
        let lines = text.lines();
        lines
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// The error and the hint that it ended with.
    pub(crate) fn failure(&self) -> Option<(String, String)> {
        let mut lines = self.err.lines().rev();
        let found = lines.find_map(|line| {
            let value: Value = serde_json::from_str(line).ok()?;
            value.get("error").is_some().then_some(value)
        })?;
        let text = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
        Some((text("error"), text("hint")))
    }

    /// How it ended, in a few words.
    pub(crate) fn ending(&self) -> String {
        let how = match (self.is_late, self.code, self.signal) {
            (true, ..) => "still runs after a minute".to_owned(),
            (_, Some(code), _) => format!("exit {code}"),
            (_, _, Some(signal)) => format!("signal {signal}"),
            _ => "did not start".to_owned(),
        };
        match self.failure() {
            Some((error, hint)) => format!("{how}: {error} ({hint})"),
            None => {
                let last = self.err.lines().last().unwrap_or_default();
                format!("{how} {last}").trim_end().to_owned()
            }
        }
    }
}

/// Copies a directory with all that is in it.
pub(crate) fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let there = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &there)?;
        } else {
            fs::copy(entry.path(), &there)?;
        }
    }
    fs::set_permissions(to, fs::metadata(from)?.permissions())
}
