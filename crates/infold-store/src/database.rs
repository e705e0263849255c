//! Opens, writes and checks the databases `tasks.db` and `chains.db`, and sets damaged ones aside.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags};

use crate::registry::Patience;
use crate::{RegistryError, time};

/// SQLite takes no longer paths, those of its journals included.
const MAX_PATH_BYTES: usize = 512;
/// Suffixes of SQLite's files. The database itself is set aside last: a new one must not find the journal of the old one.
const SUFFIXES: [&str; 4] = ["-wal", "-shm", "-journal", ""];
/// The longest suffix that SQLite adds to a path.
const LONGEST_SUFFIX: &str = "-journal";
/// SQLite makes sure that there is space for each piece of this size of the memory that its users share.
const SHARED_PAGE_BYTES: u64 = 4096;

/// Which file a connection was opened on: another one may have its name by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    /// Returns the identity of the file at this path; none if there is none.
    ///
    /// The file is not opened, because closing it again would drop the locks that SQLite has on it.
    pub fn of(path: &Path) -> Option<Identity> {
        let meta = fs::metadata(path).ok()?;
        Some(Identity::of_meta(&meta))
    }

    /// The file that is open.
    pub fn of_open(file: &File) -> Option<Identity> {
        let meta = file.metadata().ok()?;
        Some(Identity::of_meta(&meta))
    }

    fn of_meta(meta: &fs::Metadata) -> Identity {
        Identity {
            device: meta.dev(),
            inode: meta.ino(),
        }
    }
}

/// Opens a database that is there.
pub fn connect(path: &Path, patience: Patience) -> rusqlite::Result<Connection> {
    // Without CREATE: SQLite would make the file readable to all.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(patience.timeout)?;
    // Deleted content is overwritten in the file.
    connection.query_row("PRAGMA secure_delete = ON", [], |_| Ok(()))?;
    if has_small_blocks(path) {
        // A database with a write-ahead log that was copied or left over is read without shared memory, by one
        // process only.
        connection.query_row("PRAGMA locking_mode = EXCLUSIVE", [], |_| Ok(()))?;
    }
    Ok(connection)
}

/// Returns whether the blocks of the file system are smaller than SQLite assumes.
fn has_small_blocks(path: &Path) -> bool {
    let stat = path.parent().map(rustix::fs::statvfs);
    let is_small = |stat: rustix::fs::StatVfs| stat.f_frsize.min(stat.f_bsize) < SHARED_PAGE_BYTES;
    stat.is_some_and(|stat| stat.is_ok_and(is_small))
}

/// Checks that SQLite can open databases in a directory, which need not exist.
pub fn check_path(root: &Path) -> Result<(), RegistryError> {
    let path = fs::canonicalize(root).or_else(|_| std::path::absolute(root));
    let path = path.unwrap_or_else(|_| root.to_owned()).join("chains.db");
    let bytes = path.as_os_str().len() + LONGEST_SUFFIX.len();
    if bytes >= MAX_PATH_BYTES {
        let max = MAX_PATH_BYTES - LONGEST_SUFFIX.len() - "/chains.db".len() - 1;
        let root = root.to_owned();
        return Err(RegistryError::PathTooLong { root, max });
    }
    Ok(())
}

/// Checks that a database and its journals are files, because SQLite reports a directory as one that may not be
/// written.
pub fn check_files(path: &Path) -> Result<(), RegistryError> {
    for suffix in SUFFIXES {
        let file = beside(path, suffix);
        if file.is_dir() {
            let reason = format!("{} is a directory", file.display());
            let path = path.to_owned();
            return Err(RegistryError::Damaged { path, reason });
        }
    }
    Ok(())
}

/// Sets the journal of a database: readers never wait for writers where that is safe.
///
/// With a write-ahead log the users of a database share memory that is mapped from a file. On a full disk whose blocks are
/// smaller than SQLite thinks, that file has holes, and a process that writes into one is killed (SIGBUS).
pub fn set_journal(db: &Connection, path: &Path) -> rusqlite::Result<()> {
    if !has_small_blocks(path) {
        // Answers with the mode it took. Where WAL cannot be had, any other will do.
        return db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()));
    }
    db.query_row("PRAGMA journal_mode = TRUNCATE", [], |_| Ok(()))?;
    db.query_row("PRAGMA locking_mode = NORMAL", [], |_| Ok(()))?;
    // The lock is given up with the next access.
    db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
}

/// Checks a database with SQLite; returns the damage, if there is any.
pub fn check(db: &Connection) -> rusqlite::Result<Option<String>> {
    let verdict: String = db.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    Ok(Some(verdict).filter(|verdict| verdict != "ok"))
}

/// Removes deleted data from a database and its journals for good.
pub fn purge(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch("VACUUM")?;
    let busy: i64 = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    match busy {
        0 => Ok(()),
        // Another connection still reads the old pages; the caller tries again.
        _ => {
            let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
            Err(rusqlite::Error::SqliteFailure(busy, None))
        }
    }
}

/// Moves a damaged database and its journals aside, as `torn-{name}-….db`; returns where it is, or nothing if it was not there any
/// more: another process may have replaced it since it was opened.
pub fn set_aside(
    root: &Path,
    name: &str,
    opened: Option<Identity>,
) -> Result<Option<PathBuf>, RegistryError> {
    let path = root.join(name);
    let fail = |error| RegistryError::io(&path, error);
    // Other processes that find the same damage wait until there is a new one.
    let alone = File::open(root).map_err(fail)?;
    alone.lock().map_err(fail)?;
    let there = Identity::of(&path);
    if there.is_none() || opened.is_some() && there != opened {
        return Ok(None);
    }
    let stem = name.trim_end_matches(".db");
    let free = (0..).map(|more| root.join(format!("torn-{stem}-{}.db", time::now() + more)));
    let aside = free.into_iter().find(|aside| !aside.exists());
    let aside = aside.expect("some name is free");
    for suffix in SUFFIXES {
        match fs::rename(beside(&path, suffix), beside(&aside, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
            _ => {}
        }
    }
    Ok(Some(aside))
}

/// Makes directory and file where missing, for their owner only.
///
/// SQLite gives its `-wal` and `-shm` files the mode of the database.
pub fn make_private(dir: &Path, path: &Path) -> io::Result<()> {
    // Closing a file drops every lock this process has on it, SQLite's too. So a
    // file that exists is never opened here, and no connection is opened while one is made.
    static MAKING: Mutex<()> = Mutex::new(());
    let _alone = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    match OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
    {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map(drop),
    }
}

/// Closes the files to others, should an older database be open to them.
pub fn guard(path: &Path) {
    for file in [path.to_owned(), beside(path, "-wal"), beside(path, "-shm")] {
        let Ok(meta) = fs::metadata(&file) else {
            continue;
        };
        let mode = meta.permissions().mode();
        if mode & 0o077 != 0 {
            // A file that belongs to someone else is theirs to guard.
            let _ = fs::set_permissions(&file, Permissions::from_mode(mode & 0o700));
        }
    }
}

/// Returns the path of a file that SQLite keeps beside a database, such as `tasks.db-wal`.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
