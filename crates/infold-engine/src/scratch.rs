use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use infold_store::{AppendError, Contexts, Durability, Log, Metadata, TaskError, Writer};
use tempfile::TempDir;

/// A task that nobody keeps: for folding or replaying a transcript.
///
/// It is made in the directory for temporary files and gone with this value.
#[derive(Debug)]
pub struct Scratch {
    writer: Writer,
    waiting: Vec<Vec<u8>>,
    /// When each of them was said.
    times: Vec<Option<u64>>,
    bytes: usize,
    /// Locked as long as somebody works here.
    _held: File,
    // Last, so that it is removed when nothing in it is open any more.
    _dir: TempDir,
}

/// Why there is no such task.
#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    /// There is no room for it.
    #[error("no room for temporary files in {dir}: {source}")]
    Dir {
        /// Where it was to be.
        dir: String,
        /// Why not.
        source: std::io::Error,
    },
    /// The task could not be made.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// A message could not be appended.
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// What the names of such tasks' directories begin with.
const PREFIX: &str = "infold-scratch-";

/// The file in each that is locked while it is in use.
const HELD: &str = "held";

/// Removes what others left behind when they were killed: it holds whole conversations.
fn sweep(place: &Path) {
    for entry in place.read_dir().into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let held = ours
            .then(|| File::open(entry.path().join(HELD)).ok())
            .flatten();
        // One that is just being made is not locked yet.
        let age = entry.metadata().and_then(|meta| meta.modified());
        let age = age.ok().and_then(|made| made.elapsed().ok());
        let old = age.is_some_and(|age| age > Duration::from_secs(60));
        if old && held.is_some_and(|held| held.try_lock().is_ok()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// How many bytes of messages are appended at once.
const BATCH: usize = 1 << 20;

impl Scratch {
    /// Makes an empty one.
    pub fn new() -> Result<Scratch, ScratchError> {
        let place = std::env::temp_dir();
        sweep(&place);
        let mut builder = tempfile::Builder::new();
        builder
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(0o700));
        let no_room = |source| ScratchError::Dir {
            dir: place.display().to_string(),
            source,
        };
        let dir = builder.tempdir_in(&place).map_err(no_room)?;
        let held = File::create(dir.path().join(HELD)).map_err(no_room)?;
        held.lock().map_err(no_room)?;
        let contexts = Contexts::new(dir.path(), Durability::Never);
        let (writer, _) = contexts.write(contexts.create(Metadata::default())?)?;
        Ok(Scratch {
            writer,
            waiting: Vec::new(),
            times: Vec::new(),
            bytes: 0,
            _held: held,
            _dir: dir,
        })
    }

    /// Appends a message; it is in the log once [`Scratch::writer`] is asked for.
    pub fn push(&mut self, message: Vec<u8>) -> Result<(), ScratchError> {
        self.push_said_at(message, None)
    }

    /// As [`Scratch::push`], with the time at which it was said, in milliseconds since 1970.
    pub fn push_said_at(
        &mut self,
        message: Vec<u8>,
        time: Option<u64>,
    ) -> Result<(), ScratchError> {
        self.bytes += message.len();
        self.waiting.push(message);
        self.times.push(time);
        if self.bytes >= BATCH {
            self.flush()?;
        }
        Ok(())
    }

    /// The task, for writing.
    pub fn writer(&mut self) -> Result<&mut Writer, ScratchError> {
        self.flush()?;
        Ok(&mut self.writer)
    }

    /// Its log, as far as it is written.
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
            let held = File::create(dir.join(HELD)).unwrap();
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
