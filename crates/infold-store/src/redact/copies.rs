//! Files of a task that contain copies of its messages, and are derived from the log or useless without it.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use infold_wire::redact::redact_fragment;

use super::Find;
use super::staging::remove_if_there;
use crate::dirs::PLACES;
use crate::file::files;
use crate::{Contexts, LogError, lock};

/// Files that can be derived again, and files of steps that have ended.
const COPIES: [&str; 15] = [
    "messages.idx",
    "events.idx",
    "states.idx",
    "current.idx",
    "current.jsonl",
    "summaries.jsonl",
    "tools.jsonl",
    "facts.bin",
    "facts.new",
    "embeddings.bin",
    "request.json",
    "reply.json",
    "transcript.txt",
    "unsummarized.jsonl",
    "pending.json",
];

/// Removes all copies from the directory of a task, with half-written files and torn bytes, whose contents are unknown.
pub fn remove(dir: &Path) -> Result<(), LogError> {
    for name in COPIES {
        remove_if_there(&dir.join(name))?;
    }
    for path in files(dir, |name| {
        name.starts_with("torn-") || name.ends_with(".tmp")
    })? {
        if path.is_dir() {
            fs::remove_dir_all(&path).map_err(|error| LogError::io(&path, "removed", error))?
        } else {
            remove_if_there(&path)?
        }
    }
    Ok(())
}

/// Returns the files of a task that any redaction removes, and that cannot be derived again: torn bytes that
/// were set aside, a request that failed, a reply that was not delivered.
pub fn unrecoverable(dir: &Path) -> Result<Vec<PathBuf>, LogError> {
    files(dir, |name| {
        name.starts_with("torn-") || matches!(name, "request.json" | "reply.json")
    })
}

/// Returns the files of a task that contain redacted texts, and are not derived from its log.
pub fn holding(dir: &Path, find: Find<'_>) -> Result<Vec<PathBuf>, LogError> {
    let paths = files(dir, |name| {
        let is_working_file = matches!(
            name,
            "facts.bin"
                | "facts.new"
                | "request.json"
                | "reply.json"
                | "transcript.txt"
                | "unsummarized.jsonl"
        );
        is_working_file || name.starts_with("torn-") || name.ends_with(".tmp")
    })?;
    let mut found = Vec::new();
    for path in paths {
        if holds(&path, find)? {
            found.push(path);
        }
    }
    Ok(found)
}

/// Returns paths with a match that belong to no task: damaged databases that were set aside, and remains of
/// tasks that were removed or never published.
pub fn leftovers(contexts: &Contexts, find: Find<'_>) -> Result<Vec<PathBuf>, LogError> {
    let mut found = Vec::new();
    for path in files(contexts.root(), |name| name.starts_with("torn-"))? {
        if holds(&path, find)? {
            found.push(path);
        }
    }
    for place in PLACES {
        let hidden = files(&contexts.root().join(place), |name| name.starts_with('.'))?;
        // A process that is still creating a task holds its lock.
        for dir in hidden.into_iter().filter(|dir| !lock::is_held(dir)) {
            if holds(&dir, find)? {
                found.push(dir);
            }
        }
    }
    Ok(found)
}

/// How much of a file is searched at a time, and how much of it again with the next piece.
const PIECE_BYTES: u64 = 4 << 20;
const OVERLAP_BYTES: usize = 64 << 10;

/// Returns whether something is found in a file, or in a file of a directory, however it is escaped.
fn holds(path: &Path, find: Find<'_>) -> Result<bool, LogError> {
    let fail = |error| LogError::io(path, "read", error);
    if path.is_dir() {
        for path in files(path, |_| true)? {
            if holds(&path, find)? {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    if !path.is_file() {
        return Ok(false);
    }
    let mut file = match File::open(path) {
        // The step that used the file has ended and removed it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened.map_err(fail)?,
    };
    let mut piece = Vec::new();
    loop {
        let read = (&mut file).take(PIECE_BYTES).read_to_end(&mut piece);
        if read.map_err(fail)? == 0 {
            return Ok(false);
        }
        let text = String::from_utf8_lossy(&piece);
        if redact_fragment(&text, "", &mut |text| find(text)).is_some() {
            return Ok(true);
        }
        piece.drain(..piece.len().saturating_sub(OVERLAP_BYTES));
    }
}
