//! The record of all changes, written before they are made.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::edit::{Applied, Around, Syntax};
use crate::file::{self, FileError};
use crate::lock::SetupLock;
use crate::process::ProcessIdentity;
use crate::tree::PathStep;

/// All changes: of agents' files and of servers.
#[derive(Clone, Debug, Default)]
pub struct SetupRecord {
    /// One for each agent, in the order in which they were set up.
    pub agents: Vec<AgentRecord>,
    /// The unit of the server, if one was installed.
    pub unit: Option<PathBuf>,
    /// The directories that were made for the unit, outermost first.
    pub unit_directories: Vec<PathBuf>,
    /// The servers that setup started without systemd, one per port.
    pub servers: Vec<ServerRecord>,
    /// The directory of tasks, if it was not there when setup started a server.
    pub tasks: Option<TasksRecord>,
    /// The directories that were made for the record itself, outermost first.
    directories: Vec<PathBuf>,
}

/// The changes for one agent.
#[derive(Clone, Debug)]
pub struct AgentRecord {
    /// Its name.
    pub agent: String,
    /// The address of the proxy that it was given.
    pub base: String,
    /// Its files.
    pub files: Vec<FileRecord>,
    /// The upstreams that it needs, as API and address.
    pub upstreams: Vec<(String, String)>,
}

/// A server in the background.
#[derive(Clone, Debug)]
pub struct ServerRecord {
    /// Its port.
    pub port: u16,
    /// The file that its output is appended to.
    pub log: PathBuf,
    /// Whether that file was made by setup, and so goes with the server.
    pub is_log_new: bool,
    /// Its process, once there is one.
    pub process: Option<ProcessIdentity>,
}

/// A directory of tasks that a server made.
#[derive(Clone, Debug)]
pub struct TasksRecord {
    /// Its path.
    pub root: PathBuf,
    /// The directories that were made for it, outermost first.
    pub directories: Vec<PathBuf>,
}

/// The changes of one file.
#[derive(Clone, Debug)]
pub struct FileRecord {
    /// Its canonical path.
    pub file: PathBuf,
    /// Its syntax.
    pub syntax: Syntax,
    /// The copy of the file as it was before; `None` if setup created the file.
    pub backup: Option<PathBuf>,
    /// The directories that were made for it, outermost first.
    pub directories: Vec<PathBuf>,
    /// The digest of the text before the changes.
    pub before: String,
    /// The digest of the text with the changes.
    pub after: String,
    /// The values that were set.
    pub applied: Vec<Applied>,
}

/// Why the record could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SetupRecordError {
    /// The file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The text is not a record that setup wrote.
    #[error("{} is damaged: {reason}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Why.
        reason: String,
    },
}

const VERSION: u64 = 1;

impl SetupRecord {
    /// Reads the record; a missing file is an empty record.
    pub fn load(path: &Path) -> Result<SetupRecord, SetupRecordError> {
        let Some(read) = file::read(path)? else {
            return Ok(SetupRecord::default());
        };
        let damaged = |reason: String| SetupRecordError::Damaged {
            file: path.to_owned(),
            reason,
        };
        let value: Value =
            serde_json::from_str(&read.text).map_err(|error| damaged(error.to_string()))?;
        if value["version"] != VERSION {
            return Err(damaged("another version of infold wrote it".to_owned()));
        }
        let agents = value["agents"].as_array().into_iter().flatten();
        let agents: Option<Vec<AgentRecord>> = agents.map(AgentRecord::from_json).collect();
        let servers = value["servers"].as_array().into_iter().flatten();
        let servers: Option<Vec<ServerRecord>> = servers.map(ServerRecord::from_json).collect();
        let missing = || damaged("a member is missing".to_owned());
        Ok(SetupRecord {
            agents: agents.ok_or_else(missing)?,
            servers: servers.ok_or_else(missing)?,
            tasks: text(&value["tasks"]["root"]).map(|root| TasksRecord {
                root: root.into(),
                directories: paths(&value["tasks"]["directories"]),
            }),
            unit: value["unit"].as_str().map(PathBuf::from),
            unit_directories: paths(&value["unit_directories"]),
            directories: paths(&value["directories"]),
        })
    }

    /// Reads the record of a setup that holds the lock, and removes the temporary files of a killed one.
    pub fn load_locked(path: &Path, _lock: &SetupLock) -> Result<SetupRecord, SetupRecordError> {
        recover_staged(path)?;
        let state = SetupRecord::load(path)?;
        file::remove_leftover(path)?;
        for record in state.agents.iter().flat_map(|agent| &agent.files) {
            let names = record.backup.iter().chain([&record.file]);
            // An error is ignored here: it comes again when the file is written.
            names.for_each(|name| drop(file::remove_leftover(name)));
        }
        Ok(state)
    }

    /// Writes the record; an empty one is removed.
    pub fn save(&mut self, path: &Path) -> Result<(), SetupRecordError> {
        let current = file::read(path)?;
        if self.is_empty() {
            return Ok(remove_with_directories(path, &self.directories)?);
        }
        if current.is_none() && self.directories.is_empty() {
            self.directories = file::missing_directories(path);
        }
        let text = format!("{:#}\n", self.to_json());
        match current {
            Some(current) => file::replace(&current, &text)?,
            None => create_with_directories(path, &self.directories, &text)?,
        }
        Ok(())
    }

    /// Returns whether there is nothing to take back.
    pub fn is_empty(&self) -> bool {
        self.agents.is_empty()
            && self.unit.is_none()
            && self.servers.is_empty()
            && self.tasks.is_none()
    }

    fn to_json(&self) -> Value {
        let names = |paths: &[PathBuf]| -> Vec<String> {
            paths.iter().map(|dir| dir.display().to_string()).collect()
        };
        let agents: Vec<Value> = self.agents.iter().map(AgentRecord::to_json).collect();
        let servers: Vec<Value> = self.servers.iter().map(ServerRecord::to_json).collect();
        let tasks = self.tasks.as_ref().map(|tasks| {
            json!({"root": tasks.root.display().to_string(), "directories": names(&tasks.directories)})
        });
        json!({
            "version": VERSION, "tasks": tasks, "agents": agents, "servers": servers,
            "directories": names(&self.directories),
            "unit": self.unit.as_ref().map(|unit| unit.display().to_string()),
            "unit_directories": names(&self.unit_directories),
        })
    }

    /// Returns the changes for an agent.
    pub fn of(&self, agent: &str) -> Option<&AgentRecord> {
        self.agents.iter().find(|record| record.agent == agent)
    }

    /// Returns the server at a port, if setup started one.
    pub fn server(&self, port: u16) -> Option<&ServerRecord> {
        self.servers.iter().find(|server| server.port == port)
    }
}

/// The name of the record while its directories are made or removed.
const STAGED: &str = ".infold-setup.json";

/// Where the record is while its directories are made or removed: in a directory that stays.
fn staged(directories: &[PathBuf]) -> Option<PathBuf> {
    directories
        .first()
        .map(|outermost| outermost.with_file_name(STAGED))
}

/// Writes the record before its directories are made: otherwise a killed setup would leave them without a record.
fn create_with_directories(
    path: &Path,
    directories: &[PathBuf],
    text: &str,
) -> Result<(), FileError> {
    let Some(staged) = staged(directories) else {
        return file::create(path, text);
    };
    file::create(&staged, text)?;
    let moved = move_into_place(&staged, path);
    if moved.is_err() {
        // The first error is the one to report.
        let _ = file::remove(&staged, directories);
    }
    moved
}

fn move_into_place(staged: &Path, path: &Path) -> Result<(), FileError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(file::io(parent))?;
    }
    fs::rename(staged, path).map_err(file::io(path))
}

/// Removes the record after its directories.
fn remove_with_directories(path: &Path, directories: &[PathBuf]) -> Result<(), FileError> {
    if let Some(staged) = staged(directories)
        && fs::rename(path, &staged).is_ok()
    {
        file::remove(path, directories)?;
        return file::remove(&staged, &[]);
    }
    file::remove(path, directories)
}

/// Puts a record back that a killed setup left while it made or removed the directories.
fn recover_staged(path: &Path) -> Result<(), FileError> {
    for directory in path.ancestors().skip(2) {
        let staged = directory.join(STAGED);
        // The directory of another user may be closed, and has no record of this one.
        let _ = file::remove_leftover(&staged);
        if !fs::symlink_metadata(&staged).is_ok_and(|found| found.is_file()) {
            continue;
        }
        if path.exists() {
            file::remove(&staged, &[])?;
        } else {
            move_into_place(&staged, path)?;
        }
    }
    Ok(())
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn paths(value: &Value) -> Vec<PathBuf> {
    let all = value.as_array().into_iter().flatten();
    all.filter_map(|path| path.as_str().map(PathBuf::from))
        .collect()
}

impl AgentRecord {
    fn to_json(&self) -> Value {
        let files: Vec<Value> = self.files.iter().map(FileRecord::to_json).collect();
        json!({"agent": self.agent, "base": self.base, "files": files, "upstreams": self.upstreams})
    }

    fn from_json(value: &Value) -> Option<AgentRecord> {
        let files = value["files"].as_array()?.iter();
        let upstreams = value["upstreams"].as_array()?.iter();
        let upstream = |pair: &Value| Some((text(&pair[0])?, text(&pair[1])?));
        Some(AgentRecord {
            agent: text(&value["agent"])?,
            base: text(&value["base"])?,
            files: files.map(FileRecord::from_json).collect::<Option<_>>()?,
            upstreams: upstreams.map(upstream).collect::<Option<_>>()?,
        })
    }
}

impl ServerRecord {
    fn to_json(&self) -> Value {
        let process = self.process.as_ref();
        let process =
            process.map(|process| json!({"pid": process.pid, "started": process.started}));
        json!({
            "port": self.port, "log": self.log.display().to_string(),
            "is_log_new": self.is_log_new, "process": process,
        })
    }

    fn from_json(value: &Value) -> Option<ServerRecord> {
        let process = match &value["process"] {
            Value::Null => None,
            process => Some(ProcessIdentity {
                pid: i32::try_from(process["pid"].as_i64()?).ok()?,
                started: text(&process["started"])?,
            }),
        };
        Some(ServerRecord {
            port: u16::try_from(value["port"].as_u64()?).ok()?,
            log: text(&value["log"])?.into(),
            is_log_new: value["is_log_new"].as_bool()?,
            process,
        })
    }
}

impl FileRecord {
    fn to_json(&self) -> Value {
        let directories: Vec<String> = self
            .directories
            .iter()
            .map(|dir| dir.display().to_string())
            .collect();
        let applied: Vec<Value> = self.applied.iter().map(applied_to_json).collect();
        json!({
            "file": self.file.display().to_string(), "syntax": self.syntax.name(),
            "backup": self.backup.as_ref().map(|path| path.display().to_string()),
            "directories": directories, "before": self.before, "after": self.after, "applied": applied,
        })
    }

    fn from_json(value: &Value) -> Option<FileRecord> {
        let applied = value["applied"].as_array()?.iter();
        Some(FileRecord {
            file: text(&value["file"])?.into(),
            syntax: Syntax::named(value["syntax"].as_str()?)?,
            backup: text(&value["backup"]).map(PathBuf::from),
            directories: paths(&value["directories"]),
            before: text(&value["before"])?,
            after: text(&value["after"])?,
            applied: applied.map(applied_from_json).collect::<Option<_>>()?,
        })
    }
}

impl Syntax {
    fn name(self) -> &'static str {
        match self {
            Syntax::Json => "json",
            Syntax::Toml => "toml",
            Syntax::Yaml => "yaml",
            Syntax::Dotenv => "dotenv",
        }
    }

    fn named(name: &str) -> Option<Syntax> {
        let all = [Syntax::Json, Syntax::Toml, Syntax::Yaml, Syntax::Dotenv];
        all.into_iter().find(|syntax| syntax.name() == name)
    }
}

fn applied_to_json(applied: &Applied) -> Value {
    let step = |step: &PathStep| match step {
        PathStep::Key(key) => json!(key),
        PathStep::Entry(key, text) => json!([key, text]),
    };
    let path: Vec<Value> = applied.path.iter().map(step).collect();
    json!({
        "path": path, "value": applied.value, "before": applied.before, "depth": applied.depth,
        "prefix": applied.around.prefix, "suffix": applied.around.suffix,
    })
}

fn applied_from_json(value: &Value) -> Option<Applied> {
    let step = |step: &Value| match step {
        Value::String(key) => Some(PathStep::Key(key.clone())),
        other => Some(PathStep::Entry(text(&other[0])?, text(&other[1])?)),
    };
    let path = value["path"].as_array()?.iter().map(step);
    Some(Applied {
        path: path.collect::<Option<_>>()?,
        value: value["value"].clone(),
        before: text(&value["before"]),
        depth: usize::try_from(value["depth"].as_u64()?).ok()?,
        around: Around {
            prefix: text(&value["prefix"])?,
            suffix: text(&value["suffix"])?,
        },
    })
}
