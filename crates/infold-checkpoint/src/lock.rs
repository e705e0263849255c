//! The lock of a shadow repository, held by the operating system.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::CheckpointError;

/// The right to use a shadow repository: it ends with the process, and with those of git that it started.
#[derive(Debug)]
pub(crate) struct RepositoryLock(File);

/// Where in the file of the lock git writes its errors: behind the name of the holder.
pub(crate) const ERRORS_AT: u64 = 64;

const POLL: Duration = Duration::from_millis(10);

impl RepositoryLock {
    /// Takes the lock in a directory, for which others are waited for.
    pub fn take(
        directory: &Path,
        workspace: &Path,
        patience: Duration,
    ) -> Result<RepositoryLock, CheckpointError> {
        let path = directory.join("lock");
        let until = Instant::now() + patience;
        loop {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            let file = options
                .mode(0o600)
                .open(&path)
                .map_err(|error| CheckpointError::io("opened", &path, error))?;
            match file.try_lock() {
                // The directory may have been removed between opening and locking.
                Ok(()) if is_at(&file, &path) => {
                    let name = format!("process {}", std::process::id());
                    // On a full disk the name is missing; the lock holds all the same.
                    let _ = file.set_len(0);
                    let _ = file.write_all_at(name.as_bytes(), 0);
                    let errors_at = (&file).seek(SeekFrom::Start(ERRORS_AT));
                    errors_at.map_err(|error| CheckpointError::io("read", &path, error))?;
                    return Ok(RepositoryLock(file));
                }
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(POLL);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(CheckpointError::Locked {
                        workspace: workspace.to_owned(),
                        holder: holder(&file),
                    });
                }
                Err(TryLockError::Error(error)) => {
                    return Err(CheckpointError::io("locked", &path, error));
                }
            }
        }
    }

    /// Returns a handle that shares the lock.
    pub fn handle(&self, directory: &Path) -> Result<File, CheckpointError> {
        let copy = self.0.try_clone();
        copy.map_err(|error| CheckpointError::io("opened again", directory, error))
    }
}

impl Drop for RepositoryLock {
    fn drop(&mut self) {
        let _ = self.0.set_len(0);
        // Closing the file is not enough: a process that is being started has a copy of it for a moment.
        let _ = self.0.unlock();
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(ours), Ok(there)) = (file.metadata(), std::fs::metadata(path)) else {
        return false;
    };
    (ours.dev(), ours.ino()) == (there.dev(), there.ino())
}

fn holder(file: &File) -> String {
    let mut text = Vec::new();
    let read = file.take(ERRORS_AT).read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text);
    match read {
        Ok(_) if text.starts_with("process ") => text.trim_end_matches('\0').to_owned(),
        _ => "another process".to_owned(),
    }
}
