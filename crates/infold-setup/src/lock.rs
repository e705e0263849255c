//! Keeps two setups from writing at the same time: each would lose the record of the other.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::file::{FileError, io, remove};

/// A lock in the home directory; the lock ends with the process, its file with the value.
///
/// It is not beside the record: its directories would have to be made first, and a kill would leave them.
#[derive(Debug)]
pub struct SetupLock {
    file: PathBuf,
    // Held open: the system's lock is that of this handle.
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
    /// The system said no.
    #[error(transparent)]
    File(#[from] FileError),
}

const PAUSE: Duration = Duration::from_millis(50);

const NAME: &str = ".infold-setup.lock";

impl SetupLock {
    /// Locks the setup of a home directory, if others free it soon enough.
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
            // Another setup that holds it removes it itself; a home that cannot be written keeps it.
            drop(SetupLock::take(home, Duration::ZERO));
        }
    }
}

/// Locks the file that has the name now; another one is a lock that was freed meanwhile.
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
