//! Writes the planned changes.

use std::path::{Path, PathBuf};

use crate::ValueChange;
use crate::agent::{Agent, Plan, PlanError, empty};
use crate::edit::{EditError, set};
use crate::file::{self, FileError, ReadFile};
use crate::state::{AgentRecord, FileRecord, SetupRecord, SetupRecordError};
use crate::undo::undo_before_write;

/// A change of one file that was worked out and not made.
#[derive(Debug)]
pub struct PlannedFile {
    /// The file, as it is named.
    pub file: PathBuf,
    /// Its text; empty if there is no file.
    pub before: String,
    /// Its new text.
    pub after: String,
    read: Option<ReadFile>,
    record: FileRecord,
}

/// Why an agent was not set up, or not taken back.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// It cannot be.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file cannot be edited.
    #[error("{}: {source}", file.display())]
    Edit {
        /// The file.
        file: PathBuf,
        /// Why.
        source: EditError,
    },
    /// The record cannot be read or written.
    #[error(transparent)]
    State(#[from] SetupRecordError),
}

/// How often a file is read again that changes while it is edited.
pub(crate) const ATTEMPTS: usize = 3;

/// Works out what each file becomes; files that stay as they are, are left out.
pub fn file_changes(changes: &[ValueChange]) -> Result<Vec<PlannedFile>, ApplyError> {
    let mut files: Vec<&Path> = Vec::new();
    for change in changes {
        if !files.contains(&change.file.as_path()) {
            files.push(&change.file);
        }
    }
    let mut all = Vec::new();
    for file in files {
        let read = file::read(file)?;
        let syntax = changes.iter().find(|change| change.file == file);
        let Some(syntax) = syntax.map(|change| change.syntax) else {
            continue;
        };
        let before = match &read {
            Some(read) => read.text.clone(),
            None => empty(syntax).to_owned(),
        };
        let mut after = before.clone();
        let mut applied = Vec::new();
        for change in changes.iter().filter(|change| change.file == file) {
            let done = set(syntax, &after, &change.path, &change.value);
            let done = done.map_err(|source| ApplyError::Edit {
                file: file.to_owned(),
                source,
            })?;
            if let Some((new, one)) = done {
                after = new;
                applied.push(one);
            }
        }
        if applied.is_empty() {
            continue;
        }
        file::check_writable(file)?;
        let is_new = read.is_none();
        all.push(PlannedFile {
            file: file.to_owned(),
            record: FileRecord {
                file: read
                    .as_ref()
                    .map_or(file.to_owned(), |read| read.real.clone()),
                syntax,
                backup: None,
                directories: if is_new {
                    file::missing_directories(file)
                } else {
                    Vec::new()
                },
                before: digest(&before),
                after: digest(&after),
                applied,
            },
            before: if is_new { String::new() } else { before },
            after,
            read,
        });
    }
    Ok(all)
}

/// Sets an agent up: records the changes, then makes them. If that fails, nothing stays changed.
pub fn write_agent(
    agent: Agent,
    base: &str,
    plan: &dyn Fn() -> Result<Plan, PlanError>,
    state: &mut SetupRecord,
    state_file: &Path,
) -> Result<Vec<PlannedFile>, ApplyError> {
    for attempt in 1.. {
        let planned = plan()?;
        let mut files = file_changes(&planned.changes)?;
        if files.is_empty() {
            return Ok(files);
        }
        match write_files(agent, base, &planned, &mut files, state, state_file) {
            Ok(()) => return Ok(files),
            Err(error) => {
                undo_before_write(agent.name(), state, state_file)?;
                let is_busy = matches!(error, ApplyError::File(FileError::Busy { .. }));
                if !is_busy || attempt >= ATTEMPTS {
                    return Err(error);
                }
            }
        }
    }
    Ok(Vec::new())
}

fn write_files(
    agent: Agent,
    base: &str,
    plan: &Plan,
    files: &mut [PlannedFile],
    state: &mut SetupRecord,
    state_file: &Path,
) -> Result<(), ApplyError> {
    for change in &mut *files {
        if let Some(read) = &change.read {
            change.record.backup = Some(file::backup_name(read)?);
        }
    }
    let url = |api: &str| {
        let upstream = plan.upstreams.iter().find(|upstream| upstream.api == api);
        upstream.map_or(String::new(), |upstream| upstream.url.clone())
    };
    let upstreams = plan.apis.iter().map(|api| ((*api).to_owned(), url(api)));
    // What an earlier write left in the files stays recorded: it is taken back after the changes of this one.
    let earlier = state.of(agent.name());
    let mut records = earlier.map_or(Vec::new(), |record| record.files.clone());
    records.extend(files.iter().map(|change| change.record.clone()));
    state.agents.retain(|record| record.agent != agent.name());
    state.agents.push(AgentRecord {
        agent: agent.name().to_owned(),
        base: base.to_owned(),
        files: records,
        upstreams: upstreams.collect(),
    });
    // Before anything is changed, so that a kill leaves nothing unknown.
    state.save(state_file)?;
    for change in files {
        match &change.read {
            Some(read) => {
                if let Some(copy) = &change.record.backup {
                    file::back_up(read, copy)?;
                }
                file::replace(read, &change.after)?;
            }
            None => file::create(&change.record.file, &change.after)?,
        }
    }
    Ok(())
}

pub(crate) fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}
