//! Errors of the registry, by their remedy.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{ErrorCode, ffi};

/// An error of the registry; each variant has its own remedy.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// Use a newer infold; nothing was changed.
    #[error("{} is of version {found}, and this infold knows up to {supported}", path.display())]
    TooNew {
        /// The database.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version that can be opened.
        supported: i64,
    },
    /// Try again later: another process has been writing all the while.
    #[error("{} is busy", path.display())]
    Busy {
        /// The database.
        path: PathBuf,
    },
    /// Ask the person for permission to write.
    #[error("{} cannot be written", path.display())]
    ReadOnly {
        /// The database.
        path: PathBuf,
    },
    /// Make space, then try again; nothing of this write was kept.
    #[error("no space left to write {}", path.display())]
    Full {
        /// The database.
        path: PathBuf,
    },
    /// Set the file aside and fill a new one from the tasks' own files.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// The database.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// Keep the tasks elsewhere: SQLite takes no such path. Nothing was made.
    #[error("{} is too long a path: at most {max} bytes are taken", root.display())]
    PathTooLong {
        /// The contexts directory.
        root: PathBuf,
        /// How long it may be.
        max: usize,
    },
    /// Look at the disk.
    #[error("cannot open {}", path.display())]
    Open {
        /// The database.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Look at the error of SQLite.
    #[error("{} failed", path.display())]
    Sql {
        /// The database.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
}

impl RegistryError {
    pub(crate) fn sql(path: &Path, source: rusqlite::Error) -> RegistryError {
        let path = path.to_owned();
        if is_busy(&source) {
            return RegistryError::Busy { path };
        }
        if is_damage(&source) {
            return RegistryError::Damaged {
                path,
                reason: source.to_string(),
            };
        }
        if is_full(&source, &path) {
            return RegistryError::Full { path };
        }
        match source.sqlite_error_code() {
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                RegistryError::ReadOnly { path }
            }
            // In a directory that is write-protected SQLite cannot make its journal.
            Some(ErrorCode::CannotOpen) if path.is_file() => RegistryError::ReadOnly { path },
            _ => RegistryError::Sql { path, source },
        }
    }

    pub(crate) fn io(path: &Path, source: io::Error) -> RegistryError {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                RegistryError::ReadOnly { path }
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                RegistryError::Full { path }
            }
            _ => RegistryError::Open { path, source },
        }
    }
}

/// Whether the same again may succeed.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        // The third is a race for the locks of the journal.
        Some(
            ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::FileLockingProtocolFailed
        )
    )
}

/// Returns whether there was no space, be it for the database or for the memory that its users share.
///
/// If that memory could not be allocated, SQLite reports only that it could not be enlarged.
fn is_full(error: &rusqlite::Error, path: &Path) -> bool {
    error.sqlite_error().is_some_and(|error| {
        error.code == ErrorCode::DiskFull
            || error.extended_code == ffi::SQLITE_IOERR_SHMSIZE && has_no_space(path)
    })
}

fn has_no_space(path: &Path) -> bool {
    const SHARED_BYTES: u64 = 32 << 10;
    let stat = path.parent().map(rustix::fs::statvfs);
    stat.is_none_or(|stat| stat.map_or(true, |stat| stat.f_bavail * stat.f_frsize < SHARED_BYTES))
}

/// Returns whether the file contains data that we never wrote.
fn is_damage(error: &rusqlite::Error) -> bool {
    let is_cut_off = |error: &ffi::Error| error.extended_code == ffi::SQLITE_IOERR_SHORT_READ;
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    ) || error.sqlite_error().is_some_and(is_cut_off)
        || lacks_what_it_had(error)
        || matches!(
            error,
            rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::Utf8Error(..)
        )
}

/// Whether a table or column is missing that was there when the file was opened: its definition is damaged.
fn lacks_what_it_had(error: &rusqlite::Error) -> bool {
    let text = match error {
        rusqlite::Error::SqliteFailure(_, Some(text)) => text,
        rusqlite::Error::SqlInputError { msg, .. } => msg,
        _ => return false,
    };
    text.starts_with("no such table")
        || text.starts_with("no such column")
        || text.contains("has no column named")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sqlite_says_is_sorted_by_what_to_do() {
        let path = Path::new("contexts/tasks.db");
        let says = |code: i32| {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            RegistryError::sql(path, error).to_string()
        };
        let full = "no space left to write contexts/tasks.db";
        assert_eq!(says(ffi::SQLITE_FULL), full);
        assert_eq!(says(ffi::SQLITE_IOERR_SHMSIZE), full);
        assert_eq!(says(ffi::SQLITE_BUSY_SNAPSHOT), "contexts/tasks.db is busy");
        assert_eq!(
            says(ffi::SQLITE_READONLY_DIRECTORY),
            "contexts/tasks.db cannot be written"
        );
        assert!(says(ffi::SQLITE_CORRUPT_INDEX).starts_with("contexts/tasks.db is damaged: "));
        assert_eq!(says(ffi::SQLITE_IOERR_READ), "contexts/tasks.db failed");
    }

    #[test]
    fn what_the_system_says_is_sorted_like_what_sqlite_says() {
        let path = Path::new("contexts/tasks.db");
        let says = |kind: io::ErrorKind| RegistryError::io(path, kind.into()).to_string();
        assert_eq!(
            says(io::ErrorKind::PermissionDenied),
            "contexts/tasks.db cannot be written"
        );
        assert_eq!(
            says(io::ErrorKind::StorageFull),
            "no space left to write contexts/tasks.db"
        );
        assert_eq!(
            says(io::ErrorKind::NotADirectory),
            "cannot open contexts/tasks.db"
        );
    }
}
