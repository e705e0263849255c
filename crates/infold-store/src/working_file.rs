//! Working files of a task: there only while a fold is made or a request is under way.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::{Log, LogError, file};

/// A temporary file of a task, used while a fold is made or a request is under way.
///
/// It is removed when this is dropped, unless it is kept. The leftovers of a fold that crashed are removed when
/// the task is next opened; a request stays, for the user to read, until the next one.
#[derive(Debug)]
pub struct WorkingFile {
    path: PathBuf,
    out: BufWriter<File>,
    kept: bool,
}

/// The kinds of working files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Working {
    /// `unsummarized.jsonl`: the messages that stay as they are.
    Kept,
    /// `transcript.txt`: the text to be summarised.
    Transcript,
    /// `request.json`: the request to a provider.
    Request,
    /// `reply.json`: a provider's reply, until it was delivered.
    Reply,
}

impl Working {
    /// The files of a fold.
    const OF_A_FOLD: [Working; 2] = [Working::Kept, Working::Transcript];

    /// The file's name.
    pub fn name(self) -> &'static str {
        match self {
            Working::Kept => "unsummarized.jsonl",
            Working::Transcript => "transcript.txt",
            Working::Request => "request.json",
            Working::Reply => "reply.json",
        }
    }
}

impl Log {
    /// Creates an empty working file in the task's directory; replaces an old one.
    pub fn create_working_file(&self, working: Working) -> Result<WorkingFile, LogError> {
        let path = self.dir().join(working.name());
        let made = file::create(&path)?;
        Ok(WorkingFile {
            path,
            out: BufWriter::with_capacity(1 << 18, made),
            kept: false,
        })
    }
}

impl WorkingFile {
    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends to it.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), LogError> {
        let written = self.out.write_all(bytes);
        written.map_err(|error| LogError::io(&self.path, "written", error))
    }

    /// Leaves the file where it is.
    pub fn keep(mut self) {
        self.kept = true;
    }

    /// Writes the buffer, so that other processes can read the file.
    pub fn flush(&mut self) -> Result<(), LogError> {
        let flushed = self.out.flush();
        flushed.map_err(|error| LogError::io(&self.path, "written", error))
    }
}

impl Drop for WorkingFile {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        // Should it stay, opening the task removes it.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Removes the leftover of a fold that was cut off from a task's directory; returns its name.
pub fn clear(dir: &Path) -> Result<Option<&'static str>, LogError> {
    let mut found = None;
    for working in Working::OF_A_FOLD {
        let path = dir.join(working.name());
        match std::fs::remove_file(&path) {
            Ok(()) => found = Some(working.name()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(LogError::io(&path, "removed", error)),
        }
    }
    Ok(found)
}
