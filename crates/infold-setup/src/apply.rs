//! Writes the planned changes, and takes them back.

use std::path::{Path, PathBuf};

use crate::ValueChange;
use crate::agent::{Agent, Plan, PlanError, empty};
use crate::edit::{EditError, Unset, is_blank, path_text, set, unset};
use crate::file::{self, FileError, ReadFile};
use crate::state::{AgentRecord, FileRecord, SetupRecord, SetupRecordError};

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

/// The result of taking the lines of a file back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndoneLines {
    /// It is what it was, byte for byte.
    Whole,
    /// It was made for this, and was removed.
    Removed,
    /// Others changed it meanwhile; our lines alone were taken out.
    LinesRemoved,
    /// Nothing of ours is in it.
    Nothing,
    /// These values were changed by others, and were left.
    Left(Vec<String>),
    /// It could not be done; the record keeps it.
    Failed(String),
}

/// How often a file is read again that changes while it is edited.
const ATTEMPTS: usize = 3;

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
                undo_agent(agent.name(), state, state_file)?;
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
    state.agents.retain(|record| record.agent != agent.name());
    state.agents.push(AgentRecord {
        agent: agent.name().to_owned(),
        base: base.to_owned(),
        files: files.iter().map(|change| change.record.clone()).collect(),
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

/// Takes back the changes for an agent; returns the result for each file.
pub fn undo_agent(
    agent: &str,
    state: &mut SetupRecord,
    state_file: &Path,
) -> Result<Vec<(PathBuf, UndoneLines)>, ApplyError> {
    let Some(record) = state.of(agent).cloned() else {
        return Ok(Vec::new());
    };
    let mut all = Vec::new();
    let mut failed = Vec::new();
    for file in record.files.iter().rev() {
        if let Some(heir) = heir(file, &record, state) {
            state.agents[heir].files.push(file.clone());
            continue;
        }
        let mut restored = restore(file);
        for _ in 1..ATTEMPTS {
            if !matches!(restored, Err(ApplyError::File(FileError::Busy { .. }))) {
                break;
            }
            restored = restore(file);
        }
        let restored = restored.and_then(|restored| {
            if let Some(backup) = &file.backup
                && !matches!(restored, UndoneLines::Left(_))
            {
                file::remove(backup, &[])?;
            }
            Ok(restored)
        });
        // The others are taken back all the same.
        let restored = restored.unwrap_or_else(|error| {
            failed.insert(0, file.clone());
            UndoneLines::Failed(error.to_string())
        });
        all.push((file.file.clone(), restored));
    }
    if failed.is_empty() {
        state.agents.retain(|record| record.agent != agent);
    }
    for record in &mut state.agents {
        if record.agent == agent {
            record.files.clone_from(&failed);
        }
    }
    state.save(state_file)?;
    Ok(all)
}

/// The other agent that needs an upstream which was written for this one.
fn heir(file: &FileRecord, record: &AgentRecord, state: &SetupRecord) -> Option<usize> {
    let is_upstream = |text: &str| text.starts_with("serve.upstreams.");
    let names: Vec<String> = file
        .applied
        .iter()
        .map(|applied| path_text(&applied.path))
        .collect();
    if names.is_empty() || !names.iter().all(|name| is_upstream(name)) {
        return None;
    }
    state.agents.iter().position(|other| {
        other.agent != record.agent
            && names.iter().any(|name| {
                let api = &name["serve.upstreams.".len()..];
                other
                    .upstreams
                    .iter()
                    .any(|(of, url)| of == api && !url.is_empty())
            })
    })
}

fn restore(record: &FileRecord) -> Result<UndoneLines, ApplyError> {
    let is_made = record.backup.is_none();
    let Some(current) = file::read(&record.file)? else {
        if is_made {
            // A killed setup or undo may have left the directories without the file.
            file::remove(&record.file, &record.directories)?;
        }
        return Ok(UndoneLines::Nothing);
    };
    let found = digest(&current.text);
    if found == record.before && !is_made {
        return Ok(UndoneLines::Nothing);
    }
    if found == record.after {
        if is_made {
            file::remove(&record.file, &record.directories)?;
            return Ok(UndoneLines::Removed);
        }
        let backup = record
            .backup
            .as_deref()
            .map(file::read)
            .transpose()?
            .flatten();
        if let Some(backup) = backup.filter(|backup| digest(&backup.text) == record.before) {
            file::replace(&current, &backup.text)?;
            return Ok(UndoneLines::Whole);
        }
    }
    let mut text = current.text.clone();
    let mut left = Vec::new();
    for applied in record.applied.iter().rev() {
        let failed = |source| ApplyError::Edit {
            file: record.file.clone(),
            source,
        };
        match unset(record.syntax, &text, applied) {
            Ok(Unset::Done(new)) => text = new,
            Ok(Unset::Gone) => {}
            Ok(Unset::Changed(_)) | Err(EditError::Shape(_)) => left.push(path_text(&applied.path)),
            Err(error @ EditError::Syntax(_)) => return Err(failed(error)),
        }
    }
    if is_made && is_blank(record.syntax, &text) {
        file::remove(&record.file, &record.directories)?;
        return Ok(UndoneLines::Removed);
    }
    let is_same = text == current.text;
    if !is_same {
        file::replace(&current, &text)?;
    }
    Ok(match (left.is_empty(), is_same) {
        (false, _) => UndoneLines::Left(left),
        (true, true) => UndoneLines::Nothing,
        (true, false) if digest(&text) == record.before => UndoneLines::Whole,
        (true, false) => UndoneLines::LinesRemoved,
    })
}

fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}
