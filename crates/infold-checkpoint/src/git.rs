//! The `git` command, with nothing of the user's configuration.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::error::CheckpointError;
use crate::lock::ERRORS_AT;

/// Runs `git` on one shadow repository.
#[derive(Debug)]
pub(crate) struct Git {
    program: PathBuf,
    directory: PathBuf,
    /// The file of the lock of the repository. Git writes its errors to it, so that the lock lasts as long as git does,
    /// whatever becomes of this process.
    lock: File,
}

/// The oldest supported version of git, because of `repack --geometric` with its repairs.
const OLDEST: (u32, u32) = (2, 34);
const MAX_ERROR_BYTES: usize = 16 << 10;
const OLDEST_NAME: &str = "2.34";

/// Settings passed to each command, which override the repository's own configuration.
const CONFIGURATION: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.fsmonitor=false",
    "core.protectNTFS=false",
    "core.protectHFS=false",
    "core.logAllRefUpdates=false",
    "core.quotePath=true",
    // Larger files are streamed and not held in memory.
    "core.bigFileThreshold=32m",
    "gc.auto=0",
    "maintenance.auto=false",
    "pack.threads=1",
    "pack.writeReverseIndex=false",
    "repack.writeBitmaps=false",
    "fastimport.unpackLimit=0",
    "transfer.unpackLimit=0",
];

impl Git {
    pub fn new(program: &Path, directory: &Path, lock: File) -> Git {
        Git {
            program: program.to_owned(),
            directory: directory.to_owned(),
            lock,
        }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns a command on the repository.
    pub fn command<I, S>(&self, arguments: I) -> Result<Command, CheckpointError>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let mut command = bare_command(&self.program);
        let mut directory = OsString::from("--git-dir=");
        directory.push(&self.directory);
        command.arg(directory);
        for setting in CONFIGURATION {
            command.args(["-c", setting]);
        }
        command.arg("--literal-pathspecs").args(arguments);
        let lock = self
            .lock
            .try_clone()
            .map_err(|error| CheckpointError::io("opened again", &self.directory, error))?;
        command.stderr(Stdio::from(lock));
        Ok(command)
    }

    /// Runs a command and returns its output.
    pub fn read<I, S>(&self, doing: &'static str, arguments: I) -> Result<Vec<u8>, CheckpointError>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let mut command = self.command(arguments)?;
        let output = command
            .output()
            .map_err(|error| cannot_start(&self.program, error))?;
        if !output.status.success() {
            return Err(self.failed(doing));
        }
        Ok(output.stdout)
    }

    /// Starts a command.
    pub fn spawn(&self, command: &mut Command) -> Result<Child, CheckpointError> {
        command
            .spawn()
            .map_err(|error| cannot_start(&self.program, error))
    }

    /// Returns an error with the error output of a command.
    pub fn failed(&self, doing: &'static str) -> CheckpointError {
        let mut text = vec![0; MAX_ERROR_BYTES];
        let read = self.lock.read_at(&mut text, ERRORS_AT).unwrap_or(0);
        text.truncate(read);
        let _ = self.lock.set_len(ERRORS_AT);
        let _ = (&self.lock).seek(SeekFrom::Start(ERRORS_AT));
        failure(doing, &text, &self.directory)
    }
}

fn failure(doing: &'static str, stderr: &[u8], directory: &Path) -> CheckpointError {
    let text = String::from_utf8_lossy(stderr);
    let complaints = [
        "No space left on device",
        "Out of diskspace",
        "Disk quota exceeded",
    ];
    let is_said = complaints.iter().any(|complaint| text.contains(complaint));
    // On a full disk there may be no place to say so.
    if is_said || text.is_empty() && is_full(directory) {
        return CheckpointError::Full {
            action: "written",
            path: directory.to_owned(),
        };
    }
    let mut lines = text.lines().filter(|line| {
        !line.trim().is_empty() && !line.starts_with("hint:") && !line.contains("crash report")
    });
    let said = lines.next().unwrap_or("it gave no reason").to_owned();
    CheckpointError::Git { doing, said }
}

fn is_full(directory: &Path) -> bool {
    rustix::fs::statvfs(directory).is_ok_and(|disk| disk.f_bavail == 0)
}

/// Returns a command with an environment that says nothing but where programs are.
fn bare_command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear();
    for name in ["PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "TMPDIR"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_DEFAULT_HASH", "sha1")
        .env("GIT_DEFAULT_REF_FORMAT", "files")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .current_dir("/");
    command
}

/// Fails if git is missing or too old.
pub(crate) fn check_version(program: &Path) -> Result<(), CheckpointError> {
    let output = bare_command(program)
        .arg("version")
        .output()
        .map_err(|error| cannot_start(program, error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.trim().trim_start_matches("git version ");
    let mut numbers = version
        .split(['.', ' ', '-'])
        .map_while(|part| part.parse::<u32>().ok());
    let found = (numbers.next(), numbers.next());
    match found {
        (Some(major), Some(minor)) if (major, minor) >= OLDEST => Ok(()),
        _ => Err(CheckpointError::GitTooOld {
            found: version.chars().take(40).collect(),
            needed: OLDEST_NAME,
        }),
    }
}

/// Makes an empty repository.
pub(crate) fn initialize(program: &Path, directory: &Path) -> Result<(), CheckpointError> {
    let output = bare_command(program)
        .args(["init", "--quiet", "--bare", "--template=", "--"])
        .arg(directory)
        .output()
        .map_err(|error| cannot_start(program, error))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failure("make a repository", &output.stderr, directory))
}

/// Returns the file of ignore rules that the user has for all repositories, if one is configured.
pub(crate) fn configured_excludes(
    program: &Path,
    home: Option<&Path>,
    config_home: Option<&Path>,
) -> Option<PathBuf> {
    let mut command = bare_command(program);
    command
        .env_remove("GIT_CONFIG_NOSYSTEM")
        .env_remove("GIT_CONFIG_GLOBAL");
    for (name, value) in [("HOME", home), ("XDG_CONFIG_HOME", config_home)] {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    // The directory of a repository that does not exist, so that none is looked for.
    command.env("GIT_DIR", "/dev/null");
    command.args(["config", "--includes", "--type=path", "-z"]);
    command.args(["--get", "core.excludesFile"]);
    let output = command.output().ok()?;
    excludes_path(output)
}

fn excludes_path(output: Output) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    let path = output.stdout.strip_suffix(b"\0")?;
    let is_set = output.status.success() && !path.is_empty();
    is_set.then(|| OsString::from_vec(path.to_owned()).into())
}

fn cannot_start(program: &Path, source: io::Error) -> CheckpointError {
    CheckpointError::GitMissing {
        program: program.display().to_string(),
        source,
    }
}
