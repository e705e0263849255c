//! A lock that keeps two setups from writing at the same time: each would overwrite the record of the other.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::file::{FileError, io, remove};

/// A lock on a file in the home directory. The lock ends with the process; dropping the value removes the file.
///
/// The file is not beside the record, whose directories would have to be made first: a killed setup would leave them.
#[derive(Debug)]
pub struct SetupLock {
    file: PathBuf,
    // The handle is kept open, because the operating system's lock ends with it.
    _held: File,
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
    /// The operating system returned an error.
    #[error(transparent)]
    File(#[from] FileError),
}

const PAUSE: Duration = Duration::from_millis(50);

const NAME: &str = ".infold-setup.lock";

impl SetupLock {
    /// Locks the setup of a home directory; waits up to `patience` for another setup.
    pub fn take(home: &Path, patience: Duration) -> Result<SetupLock, LockError> {
        let file = home.join(NAME);
        let end = Instant::now() + patience;
        loop {
            if let Some(held) = attempt(&file)? {
                return Ok(SetupLock { file, _held: held });
            }
            if Instant::now() >= end {
                return Err(LockError::Taken { file });
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Removes the file that a killed setup left of its lock, if there is one.
    pub fn remove_leftover(home: &Path) {
        if home.join(NAME).exists() {
            // If another setup holds the lock, it removes the file itself. In a directory that cannot be written to,
            // the file stays.
            drop(SetupLock::take(home, Duration::ZERO));
        }
    }
}

/// Locks the file once; returns `None` if another process has the lock, or removed the file before it was locked here.
fn attempt(file: &Path) -> Result<Option<File>, FileError> {
    let mut options = OpenOptions::new();
    let opened = options
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(file);
    let held = opened.map_err(io(file))?;
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
        // The file goes before the lock is freed: afterwards it may be the lock of another setup.
        let _ = remove(&self.file, &[]);
    }
}
