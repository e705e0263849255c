use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use infold_store::{AppendError, Contexts, Durability, Log, Metadata, TaskError, Writer};
use tempfile::TempDir;

/// A task that nobody keeps: for folding or replaying a transcript.
///
/// It is made in the directory for temporary files and gone with this value.
#[derive(Debug)]
pub struct Scratch {
    writer: Writer,
    waiting: Vec<Vec<u8>>,
    bytes: usize,
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

/// How many bytes of messages are appended at once.
const BATCH: usize = 1 << 20;

impl Scratch {
    /// Makes an empty one.
    pub fn new() -> Result<Scratch, ScratchError> {
        let mut builder = tempfile::Builder::new();
        builder
            .prefix("infold-")
            .permissions(Permissions::from_mode(0o700));
        let dir = builder.tempdir().map_err(|source| ScratchError::Dir {
            dir: std::env::temp_dir().display().to_string(),
            source,
        })?;
        let contexts = Contexts::new(dir.path(), Durability::Never);
        let (writer, _) = contexts.write(contexts.create(Metadata::default())?)?;
        Ok(Scratch {
            writer,
            waiting: Vec::new(),
            bytes: 0,
            _dir: dir,
        })
    }

    /// Appends a message; it is in the log once [`Scratch::writer`] is asked for.
    pub fn push(&mut self, message: Vec<u8>) -> Result<(), ScratchError> {
        self.bytes += message.len();
        self.waiting.push(message);
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
        self.writer.append(&self.waiting)?;
        self.waiting.clear();
        self.bytes = 0;
        Ok(())
    }
}
