//! Opens, creates and grows files.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::database::Identity;
use crate::{LogError, time};

/// How a task's files are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Without a lock, and without changing a byte.
    Read,
    /// As [`Access::Read`], and without trusting any sidecar.
    Rederive,
    /// Under the task's lock; missing files are made.
    Write,
}

/// A file that only grows at its end, with the length that is known to be good.
///
/// A write that fails half way (a full disk) is taken back, so the end is always the
/// end of a whole record.
#[derive(Debug)]
pub struct Growing {
    path: PathBuf,
    file: Option<File>,
    writable: bool,
    /// Its descriptor was given back.
    is_released: bool,
    len: u64,
}

impl Growing {
    /// Opens a file. A missing one reads as empty.
    pub fn open(path: PathBuf, access: Access) -> Result<Growing, LogError> {
        let opened = match access {
            Access::Read | Access::Rederive => File::open(&path),
            Access::Write => options().read(true).write(true).create(true).open(&path),
        };
        let file = match opened {
            Ok(file) => Some(file),
            // A file may be missing; with its directory gone, all of them would seem to be.
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    && access != Access::Write
                    && path.parent().is_some_and(Path::is_dir) =>
            {
                None
            }
            Err(error) => return Err(LogError::io(&path, "opened", error)),
        };
        let len = match &file {
            Some(file) => {
                let meta = file
                    .metadata()
                    .map_err(|error| LogError::io(&path, "read", error))?;
                meta.len()
            }
            None => 0,
        };
        let writable = access == Access::Write;
        Ok(Growing {
            path,
            file,
            writable,
            is_released: false,
            len,
        })
    }

    /// Opens a derived file. A missing one is created on its first write, so that the request that begins a
    /// task need not wait for it.
    pub fn open_derived(path: PathBuf, access: Access) -> Result<Growing, LogError> {
        if access == Access::Write && !path.exists() && path.parent().is_some_and(Path::is_dir) {
            return Ok(Growing {
                writable: true,
                ..Growing::missing(path)
            });
        }
        Growing::open(path, access)
    }

    /// Creates an unnamed file, which disappears with the process; `path` is the file that it replaces.
    pub fn scratch(path: PathBuf) -> Result<Growing, LogError> {
        let made = tempfile::tempfile().map_err(|error| LogError::io(&path, "rederived", error));
        Ok(Growing {
            file: Some(made?),
            writable: true,
            is_released: false,
            path,
            len: 0,
        })
    }

    /// A file that is not there, and reads as empty.
    pub fn missing(path: PathBuf) -> Growing {
        Growing {
            path,
            file: None,
            writable: false,
            is_released: false,
            len: 0,
        }
    }

    /// Closes the descriptor; [`Growing::reopen`] opens it again. Only for files that are not written to.
    pub fn release(&mut self) {
        if !self.writable && self.file.take().is_some() {
            self.is_released = true;
        }
    }

    /// Opens the file again that was released.
    pub fn reopen(&mut self) -> Result<(), LogError> {
        if std::mem::take(&mut self.is_released) {
            let opened = File::open(&self.path);
            let opened = opened.map_err(|error| LogError::io(&self.path, "opened", error));
            self.file = Some(opened.inspect_err(|_| self.is_released = true)?);
        }
        Ok(())
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether it was opened for writing.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Returns the length that the file has now, whatever of it is known to be good.
    pub fn len_on_disk(&self) -> Result<u64, LogError> {
        let len = match &self.file {
            Some(file) => file.metadata().map(|meta| meta.len()),
            None => Ok(0),
        };
        len.map_err(|error| LogError::io(&self.path, "read", error))
    }

    /// Returns whether another file has its name since it was opened.
    pub fn is_replaced(&self) -> bool {
        let there = Identity::of(&self.path);
        let ours = self.file.as_ref().and_then(Identity::of_open);
        ours.is_some() && there.is_some() && ours != there
    }

    /// Its length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Fills `buffer` from `at`.
    pub fn read(&self, at: u64, buffer: &mut [u8]) -> Result<(), LogError> {
        let read = match &self.file {
            Some(file) => file.read_exact_at(buffer, at),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        };
        read.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => LogError::damaged(&self.path, at, "it ends too early"),
            _ => LogError::io(&self.path, "read", error),
        })
    }

    /// Returns `len` bytes from `at`.
    pub fn bytes(&self, at: u64, len: usize) -> Result<Vec<u8>, LogError> {
        let mut buffer = vec![0; len];
        self.read(at, &mut buffer)?;
        Ok(buffer)
    }

    /// Appends bytes; all of them or none.
    pub fn append(&mut self, bytes: &[u8]) -> Result<u64, LogError> {
        let at = self.len;
        self.overwrite(at, bytes)?;
        Ok(at)
    }

    /// Makes the file if it was to be made with its first bytes.
    pub fn make(&mut self) -> Result<(), LogError> {
        if self.file.is_none() && self.writable {
            self.file = Growing::open(self.path.clone(), Access::Write)?.file;
        }
        Ok(())
    }

    /// Writes bytes at `at`, not beyond the end; the end of the bytes becomes the end of the file.
    pub fn overwrite(&mut self, at: u64, bytes: &[u8]) -> Result<(), LogError> {
        self.make()?;
        let fail = |error| LogError::io(&self.path, "written", error);
        let file = self
            .file
            .as_ref()
            .ok_or_else(|| fail(io::ErrorKind::NotFound.into()))?;
        if let Err(error) = file.write_all_at(bytes, at) {
            // If even this fails, opening the task again sets the torn bytes aside.
            let _ = file.set_len(self.len.min(at));
            return Err(fail(error));
        }
        self.len = at + bytes.len() as u64;
        Ok(())
    }

    /// Removes everything appended from `len` on; returns whether that succeeded.
    #[must_use]
    pub fn take_back(&mut self, len: u64) -> bool {
        // If it cannot be cut, the next append goes over it.
        let cut = self.cut(len);
        self.forget(len);
        cut.is_ok()
    }

    /// Treats `len` as the end, without touching the file: bytes beyond it are overwritten.
    pub fn forget(&mut self, len: u64) {
        self.len = self.len.min(len);
    }

    /// Makes `len` the end.
    pub fn cut(&mut self, len: u64) -> Result<(), LogError> {
        if let Some(file) = &self.file {
            let cut = file.set_len(len);
            cut.map_err(|error| LogError::io(&self.path, "shortened", error))?;
        }
        self.len = len;
        Ok(())
    }

    /// Returns when the bytes are on the disk itself.
    pub fn sync(&self) -> Result<(), LogError> {
        match &self.file {
            Some(file) => file
                .sync_data()
                .map_err(|error| LogError::io(&self.path, "synced", error)),
            None => Ok(()),
        }
    }
}

/// Options for a file that only its owner may read.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Makes an empty file that only its owner may read, in place of one that may be there.
pub fn create(path: &Path) -> Result<File, LogError> {
    let made = options().write(true).create(true).truncate(true).open(path);
    made.map_err(|error| LogError::io(path, "made", error))
}

/// Makes a file with these bytes, which are on the disk itself if they are to last.
pub fn write_new(path: &Path, bytes: &[u8], lasting: bool) -> Result<(), LogError> {
    let file = create(path)?;
    let written = file
        .write_all_at(bytes, 0)
        .and_then(|()| if lasting { file.sync_data() } else { Ok(()) });
    written.map_err(|error| LogError::io(path, "written", error))
}

/// Makes a directory that only its owner may enter; it may be there already.
pub fn make_dir(path: &Path) -> Result<(), LogError> {
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path);
    made.map_err(|error| LogError::io(path, "made", error))
}

/// Replaces a file in one step: either the old bytes are there or the new ones.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), LogError> {
    let next = path.with_extension("tmp");
    let fail = |error| LogError::io(path, "written", error);
    let written = options()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&next);
    let file = written.map_err(fail)?;
    file.write_all_at(bytes, 0)
        .and_then(|()| file.sync_data())
        .map_err(fail)?;
    fs::rename(&next, path).map_err(fail)
}

/// Makes a change of names in a directory last.
pub fn sync_dir(path: &Path) -> Result<(), LogError> {
    let synced = File::open(path).and_then(|dir| dir.sync_all());
    synced.map_err(|error| LogError::io(path, "synced", error))
}

/// Renames the file at a path; returns its new name.
pub fn move_aside(path: &Path) -> Result<PathBuf, LogError> {
    let aside = free_name_aside(path);
    fs::rename(path, &aside).map_err(|error| LogError::io(path, "moved", error))?;
    Ok(aside)
}

/// Copies a file that is about to be rewritten; returns the name of the copy.
pub fn copy_aside(path: &Path) -> Result<PathBuf, LogError> {
    let aside = free_name_aside(path);
    fs::copy(path, &aside).map_err(|error| LogError::io(&aside, "written", error))?;
    Ok(aside)
}

/// Returns an unused name beside a file, for bytes of it that are set aside.
pub fn free_name_aside(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let names =
        (0..).map(|more| path.with_file_name(format!("torn-{stem}-{}", time::now() + more)));
    let free = names.into_iter().find(|aside| !aside.exists());
    free.expect("some name is free")
}

/// The files of a directory whose names are meant; none if it is not there.
pub fn files(dir: &Path, is_meant: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, LogError> {
    let fail = |error| LogError::io(dir, "read", error);
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(fail)?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry.map_err(fail)?;
        if entry.file_name().to_str().is_some_and(&is_meant) {
            paths.push(entry.path());
        }
    }
    paths.sort_unstable();
    Ok(paths)
}
