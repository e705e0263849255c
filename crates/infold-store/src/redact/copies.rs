//! Files of a task that hold copies of what its messages say, and follow from the log or are of no use without it.

use std::fs;
use std::path::{Path, PathBuf};

use super::Find;
use super::staging::remove_if_there;
use crate::file::files;
use crate::{Contexts, LogError};

/// Those that are derived anew, and those that served a step that is over.
const COPIES: [&str; 14] = [
    "messages.idx",
    "events.idx",
    "states.idx",
    "current.idx",
    "current.jsonl",
    "summaries.jsonl",
    "tools.jsonl",
    "facts.bin",
    "facts.new",
    "request.json",
    "reply.json",
    "transcript.txt",
    "unsummarized.jsonl",
    "pending.json",
];

/// Removes all copies from the directory of a task: also half-written ones, and torn bytes, of which nobody can tell what they hold.
pub fn remove(dir: &Path) -> Result<(), LogError> {
    for name in COPIES {
        remove_if_there(&dir.join(name))?;
    }
    for path in files(dir, |name| {
        name.starts_with("torn-") || name.ends_with(".tmp")
    })? {
        match path.is_dir() {
            true => {
                fs::remove_dir_all(&path).map_err(|error| LogError::io(&path, "removed", error))?
            }
            false => remove_if_there(&path)?,
        }
    }
    Ok(())
}

/// The torn bytes that were set aside in a task.
pub fn torn(dir: &Path) -> Result<Vec<PathBuf>, LogError> {
    files(dir, |name| name.starts_with("torn-"))
}

/// Damaged databases that were set aside and hold some of what goes.
pub fn torn_databases(contexts: &Contexts, find: Find<'_>) -> Result<Vec<PathBuf>, LogError> {
    let mut found = Vec::new();
    let torn = files(contexts.root(), |name| name.starts_with("torn-"))?;
    for path in torn.into_iter().filter(|path| path.is_file()) {
        let bytes = fs::read(&path).map_err(|error| LogError::io(&path, "read", error))?;
        if !find(&String::from_utf8_lossy(&bytes)).is_empty() {
            found.push(path);
        }
    }
    Ok(found)
}
