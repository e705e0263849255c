use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Why the registry did not answer, sorted by what can be done about it.
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
        /// What is wrong with it.
        reason: String,
    },
    /// Look at the disk.
    #[error("cannot open {}", path.display())]
    Open {
        /// The database.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Look at what SQLite says.
    #[error("{} failed", path.display())]
    Sql {
        /// The database.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
}

impl RegistryError {
    pub(super) fn sql(path: &Path, source: rusqlite::Error) -> RegistryError {
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
        match source.sqlite_error_code() {
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                RegistryError::ReadOnly { path }
            }
            // In a directory that is write-protected SQLite cannot make its journal.
            Some(ErrorCode::CannotOpen) if path.is_file() => RegistryError::ReadOnly { path },
            Some(ErrorCode::DiskFull) => RegistryError::Full { path },
            _ => RegistryError::Sql { path, source },
        }
    }

    pub(super) fn io(path: &Path, source: io::Error) -> RegistryError {
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

/// Whether the file holds what we never wrote.
fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    ) || matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
