//! Temporary tasks, for folding or replaying a transcript.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use infold_store::{AppendError, Contexts, Durability, Log, Metadata, TaskError, Writer};
use tempfile::TempDir;

/// A temporary task.
///
/// Its directory is in the directory for temporary files, and is removed when this value is dropped.
#[derive(Debug)]
pub struct Scratch {
    writer: Writer,
    waiting: Vec<Vec<u8>>,
    /// The time of each of them.
    times: Vec<Option<u64>>,
    bytes: usize,
    /// Locked while this process uses the directory.
    _lock: File,
    // The last field, so that the directory is removed after its files are closed.
    _dir: TempDir,
}

/// The reason that there is no temporary task.
#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    /// There is no directory for it.
    #[error("no room for temporary files in {dir}: {source}")]
    Dir {
        /// The directory for temporary files.
        dir: String,
        /// The error.
        source: std::io::Error,
    },
    /// The task could not be created.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// A message could not be appended.
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// The start of the names of the directories.
const DIR_PREFIX: &str = "infold-scratch-";

/// The file in each directory that is locked while it is in use.
const LOCK_FILE: &str = "held";

/// Removes directories of processes that were killed: they hold whole conversations.
fn sweep(temp_dir: &Path) {
    for entry in temp_dir.read_dir().into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(DIR_PREFIX);
        let lock = ours
            .then(|| File::open(entry.path().join(LOCK_FILE)).ok())
            .flatten();
        // A directory that is just being created is not locked yet.
        let age = entry.metadata().and_then(|meta| meta.modified());
        let age = age.ok().and_then(|modified| modified.elapsed().ok());
        let old = age.is_some_and(|age| age > Duration::from_secs(60));
        if old && lock.is_some_and(|lock| lock.try_lock().is_ok()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// The bytes of messages that are appended at once.
const BATCH_BYTES: usize = 1 << 20;

impl Scratch {
    /// Creates an empty task.
    pub fn new() -> Result<Scratch, ScratchError> {
        let temp_dir = std::env::temp_dir();
        sweep(&temp_dir);
        let mut builder = tempfile::Builder::new();
        builder
            .prefix(DIR_PREFIX)
            .permissions(Permissions::from_mode(0o700));
        let no_room = |source| ScratchError::Dir {
            dir: temp_dir.display().to_string(),
            source,
        };
        let dir = builder.tempdir_in(&temp_dir).map_err(no_room)?;
        let lock = File::create(dir.path().join(LOCK_FILE)).map_err(no_room)?;
        lock.lock().map_err(no_room)?;
        let contexts = Contexts::new(dir.path(), Durability::Never);
        let (writer, _) = contexts.write(contexts.create(Metadata::default())?)?;
        Ok(Scratch {
            writer,
            waiting: Vec::new(),
            times: Vec::new(),
            bytes: 0,
            _lock: lock,
            _dir: dir,
        })
    }

    /// Appends a message; it is in the log after the next call of [`Scratch::writer`].
    pub fn push(&mut self, message: Vec<u8>) -> Result<(), ScratchError> {
        self.push_at_time(message, None)
    }

    /// Appends a message as [`Scratch::push`] does, with its time in milliseconds since 1970.
    pub fn push_at_time(
        &mut self,
        message: Vec<u8>,
        time: Option<u64>,
    ) -> Result<(), ScratchError> {
        self.bytes += message.len();
        self.waiting.push(message);
        self.times.push(time);
        if self.bytes >= BATCH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Returns the task, for writing.
    pub fn writer(&mut self) -> Result<&mut Writer, ScratchError> {
        self.flush()?;
        Ok(&mut self.writer)
    }

    /// Returns the log, up to the last written message.
    pub fn log(&self) -> &Log {
        self.writer.log()
    }

    fn flush(&mut self) -> Result<(), ScratchError> {
        self.writer.append_said_at(&self.waiting, &self.times)?;
        self.waiting.clear();
        self.times.clear();
        self.bytes = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_holds_any_more_is_swept_away() {
        let place = tempfile::tempdir().unwrap();
        let make = |name: &str, age: u64| {
            let dir = place.path().join(name);
            std::fs::create_dir(&dir).unwrap();
            let held = File::create(dir.join(LOCK_FILE)).unwrap();
            let made = std::time::SystemTime::now() - Duration::from_secs(age);
            File::open(&dir).unwrap().set_modified(made).unwrap();
            (dir, held)
        };
        let (left, _) = make("infold-scratch-left", 90);
        let (used, held) = make("infold-scratch-used", 90);
        held.lock().unwrap();
        let (new, _) = make("infold-scratch-new", 0);
        let (other, _) = make("other", 90);
        sweep(place.path());
        assert!(!left.exists());
        assert!(used.exists() && new.exists() && other.exists());
    }
}
