//! Keeps two setups from writing at the same time: each would lose the record of the other.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::file::{FileError, io, missing_directories, remove};

/// A lock beside the record; it ends with the process, and its file with the value.
#[derive(Debug)]
pub struct SetupLock {
    file: PathBuf,
    // Held open: the system's lock is that of this handle.
    _held: File,
    pub(crate) directories: Vec<PathBuf>,
}

/// Why the record was not locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another setup is at work.
    #[error("another `infold setup` is running ({} is locked)", file.display())]
    Taken {
        /// The file of the lock.
        file: PathBuf,
    },
    /// The system said no.
    #[error(transparent)]
    File(#[from] FileError),
}

const PAUSE: Duration = Duration::from_millis(50);

impl SetupLock {
    /// Locks a record, if others free it soon enough.
    pub fn take(state_file: &Path, patience: Duration) -> Result<SetupLock, LockError> {
        let file = state_file.with_extension("lock");
        let directories = missing_directories(&file);
        let end = Instant::now() + patience;
        loop {
            if let Some(held) = attempt(&file)? {
                return Ok(SetupLock {
                    file,
                    _held: held,
                    directories,
                });
            }
            if Instant::now() >= end {
                return Err(LockError::Taken { file });
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// Locks the file that has the name now; another one is a lock that was freed meanwhile.
fn attempt(file: &Path) -> Result<Option<File>, FileError> {
    if let Some(parent) = file.parent() {
        fs::create_dir_all(parent).map_err(io(parent))?;
    }
    let mut options = OpenOptions::new();
    let opened = options
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(file);
    let held = match opened {
        Ok(held) => held,
        // Its directory was removed by the one who freed it.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io(file)(error)),
    };
    match held.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(io(file)(error)),
    }
    let own = held.metadata().map_err(io(file))?;
    let named = fs::metadata(file);
    let is_named = named.is_ok_and(|named| (named.ino(), named.dev()) == (own.ino(), own.dev()));
    Ok(is_named.then_some(held))
}

impl Drop for SetupLock {
    fn drop(&mut self) {
        // Before it is freed, so that nobody else's is removed.
        let _ = remove(&self.file, &self.directories);
    }
}
