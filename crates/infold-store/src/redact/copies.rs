//! Files of a task that hold copies of what its messages say, and follow from the log or are of no use without it.

use std::fs;
use std::path::{Path, PathBuf};

use infold_wire::redact::redact_fragment;

use super::Find;
use super::staging::remove_if_there;
use crate::dirs::PLACES;
use crate::file::files;
use crate::{Contexts, LogError, lock};

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
        if path.is_dir() {
            fs::remove_dir_all(&path).map_err(|error| LogError::io(&path, "removed", error))?
        } else {
            remove_if_there(&path)?
        }
    }
    Ok(())
}

/// The torn bytes that were set aside in a task.
pub fn torn(dir: &Path) -> Result<Vec<PathBuf>, LogError> {
    files(dir, |name| name.starts_with("torn-"))
}

/// What holds some of what goes and is no task: damaged databases that were set aside, and what is left of tasks that were removed or never
/// came to be.
pub fn leftovers(contexts: &Contexts, find: Find<'_>) -> Result<Vec<PathBuf>, LogError> {
    let mut found = Vec::new();
    for path in files(contexts.root(), |name| name.starts_with("torn-"))? {
        if holds(&path, find)? {
            found.push(path);
        }
    }
    for place in PLACES {
        let hidden = files(&contexts.root().join(place), |name| name.starts_with('.'))?;
        // Who is still making a task holds its lock.
        for dir in hidden.into_iter().filter(|dir| !lock::is_held(dir)) {
            for path in files(&dir, |_| true)? {
                if holds(&path, find)? {
                    found.push(dir);
                    break;
                }
            }
        }
    }
    Ok(found)
}

/// Says whether something is found in a file, however it is escaped.
fn holds(path: &Path, find: Find<'_>) -> Result<bool, LogError> {
    if !path.is_file() {
        return Ok(false);
    }
    let bytes = fs::read(path).map_err(|error| LogError::io(path, "read", error))?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(redact_fragment(&text, "", &mut |text| find(text)).is_some())
}
