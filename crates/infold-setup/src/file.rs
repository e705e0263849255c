//! Reads and replaces files that belong to other programs.

use std::fs::{self, File, Permissions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The most bytes of a configuration file that are read.
const MAX_BYTES: u64 = 32 << 20;

/// A file that was read, and its path without symbolic links.
#[derive(Debug)]
pub struct ReadFile {
    /// Its canonical path, without symbolic links.
    pub real: PathBuf,
    /// Its text.
    pub text: String,
    mode: u32,
    group: u32,
}

/// Why a file was not read or not changed.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It is not one that can be edited.
    #[error("{}: {reason}", file.display())]
    Unfit {
        /// The file.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// Another program writes to it.
    #[error("{} is being written by another program", file.display())]
    Busy {
        /// The file.
        file: PathBuf,
    },
    /// The operating system returned an error.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

pub(crate) fn io(file: &Path) -> impl Fn(std::io::Error) -> FileError + '_ {
    move |source| FileError::Io {
        file: file.to_owned(),
        source,
    }
}

fn unfit(file: &Path, reason: impl Into<String>) -> FileError {
    FileError::Unfit {
        file: file.to_owned(),
        reason: reason.into(),
    }
}

/// Reads a file, following links; returns `None` if it does not exist.
pub fn read(file: &Path) -> Result<Option<ReadFile>, FileError> {
    let real = match fs::canonicalize(file) {
        Ok(real) => real,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return match fs::read_link(file) {
                Ok(target) => Err(unfit(
                    file,
                    format!("it is a link to {}, which is not there", target.display()),
                )),
                Err(_) => Ok(None),
            };
        }
        Err(error) if error.kind() == ErrorKind::NotADirectory => return Ok(None),
        Err(error) => return Err(io(file)(error)),
    };
    let metadata = fs::metadata(&real).map_err(io(file))?;
    if !metadata.is_file() {
        return Err(unfit(file, "it is not a regular file"));
    }
    if metadata.len() > MAX_BYTES {
        return Err(unfit(file, "it is too large for a configuration"));
    }
    let mut bytes = Vec::new();
    let opened = File::open(&real).map_err(io(file))?;
    opened
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(io(file))?;
    let text = String::from_utf8(bytes).map_err(|_| unfit(file, "it is not UTF-8 text"))?;
    Ok(Some(ReadFile {
        real,
        text,
        mode: metadata.mode() & 0o7777,
        group: metadata.gid(),
    }))
}

/// Returns an error if a file must not be replaced, because it is read-only or another user's.
pub fn check_writable(file: &Path) -> Result<(), FileError> {
    let Ok(real) = fs::canonicalize(file) else {
        return Ok(());
    };
    let metadata = fs::metadata(&real).map_err(io(file))?;
    let own = rustix::process::geteuid().as_raw();
    if metadata.uid() != own {
        let reason = format!(
            "it belongs to another user (id {}); run this as them",
            metadata.uid()
        );
        return Err(unfit(file, reason));
    }
    if metadata.mode() & 0o200 == 0 {
        return Err(unfit(file, "it is read-only; `chmod u+w` it first"));
    }
    Ok(())
}

/// Replaces a file in one step, if its text is still the one that was read. The mode and the group stay.
pub fn replace(file: &ReadFile, text: &str) -> Result<(), FileError> {
    let name = &file.real;
    let current = read(name)?;
    if current.is_none_or(|current| current.text != file.text) {
        return Err(FileError::Busy { file: name.clone() });
    }
    check_writable(name)?;
    let temporary = temporary(name, text, file.mode)?;
    let group = rustix::fs::Gid::from_raw(file.group);
    let given = rustix::fs::chownat(
        rustix::fs::CWD,
        temporary.path(),
        None,
        Some(group),
        rustix::fs::AtFlags::empty(),
    );
    // Only members of a group may give a file to it. The group of this process gets no access instead.
    if given.is_err() {
        let permissions = Permissions::from_mode(file.mode & !0o070);
        let temporary = temporary.as_file();
        temporary.set_permissions(permissions).map_err(io(name))?;
    }
    let again = read(name)?;
    if again.is_none_or(|again| again.text != file.text) {
        return Err(FileError::Busy { file: name.clone() });
    }
    temporary
        .persist(name)
        .map_err(|error| io(name)(error.error))?;
    sync_directory(name);
    Ok(())
}

/// Creates a file that does not exist, and the directories that are missing on its path.
pub fn create(file: &Path, text: &str) -> Result<(), FileError> {
    if let Some(parent) = file.parent() {
        fs::create_dir_all(parent).map_err(io(parent))?;
    }
    let temporary = temporary(file, text, 0o600)?;
    match temporary.persist_noclobber(file) {
        Ok(_) => {
            sync_directory(file);
            Ok(())
        }
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Err(FileError::Busy {
            file: file.to_owned(),
        }),
        Err(error) => Err(io(file)(error.error)),
    }
}

/// Returns the directories that would have to be made for a file, outermost first.
pub fn missing_directories(file: &Path) -> Vec<PathBuf> {
    let above = file.ancestors().skip(1);
    let mut missing: Vec<PathBuf> = above
        .take_while(|dir| !dir.as_os_str().is_empty() && !dir.exists())
        .map(Path::to_owned)
        .collect();
    missing.reverse();
    missing
}

/// Returns a free name beside a file for a copy of it.
pub fn backup_name(file: &ReadFile) -> Result<PathBuf, FileError> {
    let name = file
        .real
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let number = |number: u32| {
        if number == 1 {
            String::new()
        } else {
            format!(".{number}")
        }
    };
    let mut names = (1..100).map(|at| {
        file.real
            .with_file_name(format!("{name}.before-infold{}", number(at)))
    });
    let free = names.find(|name| fs::symlink_metadata(name).is_err());
    free.ok_or_else(|| unfit(&file.real, "there are a hundred copies of it beside it"))
}

/// Keeps a copy of a file, with its mode.
pub fn back_up(file: &ReadFile, copy: &Path) -> Result<(), FileError> {
    create(copy, &file.text)?;
    fs::set_permissions(copy, Permissions::from_mode(file.mode)).map_err(io(copy))
}

/// Removes a file, and then those of the directories that are empty.
pub fn remove(file: &Path, directories: &[PathBuf]) -> Result<(), FileError> {
    match fs::remove_file(file) {
        // There is no file below a path that is not a directory.
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Err(io(file)(error));
        }
        _ => {}
    }
    for directory in directories.iter().rev() {
        // A directory that is not empty stays.
        let _ = fs::remove_dir(directory);
    }
    Ok(())
}

fn temporary(file: &Path, text: &str, mode: u32) -> Result<tempfile::NamedTempFile, FileError> {
    let parent = file.parent().unwrap_or(Path::new("/"));
    remove_leftover(file)?;
    let mut builder = tempfile::Builder::new();
    // Only its owner can read it until it gets the mode of the file.
    let mut temporary = builder
        .prefix(&temporary_name(file))
        .rand_bytes(0)
        .tempfile_in(parent)
        .map_err(io(file))?;
    temporary.write_all(text.as_bytes()).map_err(io(file))?;
    temporary.as_file().sync_all().map_err(io(file))?;
    let permissions = Permissions::from_mode(mode);
    temporary
        .as_file()
        .set_permissions(permissions)
        .map_err(io(file))?;
    Ok(temporary)
}

/// Returns the name of the temporary file that replaces a file. It never varies, so that it is found after a kill.
fn temporary_name(file: &Path) -> std::ffi::OsString {
    let mut name = std::ffi::OsString::from(".");
    name.push(file.file_name().unwrap_or_default());
    name.push(".infold-new");
    name
}

/// Removes the temporary file that a killed setup left of a file that it was writing.
pub(crate) fn remove_leftover(file: &Path) -> Result<(), FileError> {
    remove(&file.with_file_name(temporary_name(file)), &[])
}

/// Syncs the directory of a file, so that a new name survives a power cut, on a best-effort basis.
fn sync_directory(file: &Path) {
    if let Some(parent) = file.parent()
        && let Ok(directory) = File::open(parent)
    {
        let _ = directory.sync_all();
    }
}
