//! Reads the files of a workspace for a snapshot.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::time::SystemTime;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, readlinkat, statat};
use rustix::io::Errno;

use crate::about::{LeftOutEntry, LeftOutReason};
use crate::error::CheckpointError;
use crate::git::Git;
use crate::import::{EntryContent, Import};
use crate::last_snapshot::{KnownFile, LastSnapshot};
use crate::listing::FileKind;
use crate::stat::FileStat;
use crate::walk::WalkedFile;

/// Reads the files of a workspace that are not known from the last snapshot.
pub(crate) struct FileReader<'a, 'b> {
    pub git: &'a Git,
    /// The last snapshot: a file that has not changed since is not read again.
    pub base: Option<&'b LastSnapshot>,
    pub max_file_bytes: u64,
    /// The git import that stores new contents. Started by the first of them, because most snapshots have none.
    pub import: Option<Import<'a>>,
    /// The files taken so far, by path.
    pub files: BTreeMap<Vec<u8>, WorkspaceFile>,
}

/// A file as it is to be part of a snapshot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkspaceFile {
    pub kind: FileKind,
    pub content: EntryContent,
    /// The metadata with which the next snapshot recognises the file as unchanged.
    pub known: KnownFile,
}

/// The result of one attempt to read a file.
enum ReadAttempt {
    Read(WorkspaceFile),
    /// The file changed while it was read: read it again.
    Again,
    /// The file no longer exists.
    Gone,
    /// The file cannot be part of the snapshot, and its size, if known.
    LeftOut(LeftOutReason, Option<u64>),
}

/// How often a file is read if it changes each time while it is read.
const MAX_READ_ATTEMPTS: usize = 3;

/// Files up to this size are read into memory before their contents are written to the import: contents that are known
/// already, or that changed meanwhile, are then never written.
const MAX_BUFFERED_BYTES: u64 = 1 << 20;

/// How a file is opened. `NOFOLLOW` refuses a link that has replaced the file; `NONBLOCK` does not wait for the writer
/// of a FIFO that has replaced it.
const OPEN_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

impl FileReader<'_, '_> {
    /// Adds a file to the snapshot. Returns the reason if it is left out instead.
    pub fn take(&mut self, file: &WalkedFile<'_>) -> Result<Option<LeftOutEntry>, CheckpointError> {
        if let Some(known) = self.known(file) {
            self.files.insert(file.path.to_owned(), known);
            return Ok(None);
        }
        for _ in 0..MAX_READ_ATTEMPTS {
            let attempt = match file.stat.kind() {
                FileType::Symlink => self.read_link(file)?,
                _ => self.read_file(file)?,
            };
            match attempt {
                ReadAttempt::Read(read) => {
                    self.files.insert(file.path.to_owned(), read);
                    return Ok(None);
                }
                ReadAttempt::Again => {}
                ReadAttempt::Gone => return Ok(None),
                ReadAttempt::LeftOut(why, size) => return Ok(Some(LeftOutEntry { why, size })),
            }
        }
        let why = LeftOutReason::Changing;
        Ok(Some(LeftOutEntry { why, size: None }))
    }

    /// Returns a file without reading it, if its metadata proves that it is unchanged since the last snapshot.
    fn known(&self, file: &WalkedFile<'_>) -> Option<WorkspaceFile> {
        let base = self.base?;
        let known = base.files.get(file.path)?;
        if !known.is_settled || known.stat != file.stat || file.stat.size > self.max_file_bytes {
            return None;
        }
        let of_snapshot = base.listing.files.get(file.path)?;
        Some(WorkspaceFile {
            kind: of_snapshot.kind,
            content: EntryContent::Known(of_snapshot.id),
            known: *known,
        })
    }

    fn read_link(&mut self, file: &WalkedFile<'_>) -> Result<ReadAttempt, CheckpointError> {
        let now = SystemTime::now();
        let failed = |error| attempt_of(error, None);
        let before = match statat(file.directory, file.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => FileStat::of(&found),
            Err(error) => return Ok(failed(error)),
        };
        let target = match readlinkat(file.directory, file.name, Vec::new()) {
            Ok(target) => target.into_bytes(),
            // The link has been replaced by something else.
            Err(Errno::INVAL) => return Ok(ReadAttempt::Again),
            Err(error) => return Ok(failed(error)),
        };
        let after = statat(file.directory, file.name, AtFlags::SYMLINK_NOFOLLOW);
        if !after.is_ok_and(|after| FileStat::of(&after) == before) {
            return Ok(ReadAttempt::Again);
        }
        let read = self.store(file, FileKind::Link, before, now, &target)?;
        Ok(ReadAttempt::Read(read))
    }

    fn read_file(&mut self, file: &WalkedFile<'_>) -> Result<ReadAttempt, CheckpointError> {
        if file.stat.size > self.max_file_bytes {
            let size = Some(file.stat.size);
            return Ok(ReadAttempt::LeftOut(LeftOutReason::TooLarge, size));
        }
        let opened = match openat(file.directory, file.name, OPEN_FLAGS, Mode::empty()) {
            Ok(opened) => opened,
            Err(error) => return Ok(attempt_of(error, Some(file.stat.size))),
        };
        // The time is taken before the metadata. A later time could declare the metadata settled although the file
        // changed once more within the same tick of the file system's clock.
        let now = SystemTime::now();
        let examine = || fstat(&opened).map(|stat| FileStat::of(&stat));
        let before = match examine() {
            Ok(before) => before,
            Err(error) => return Ok(attempt_of(error, Some(file.stat.size))),
        };
        if before.kind() != FileType::RegularFile {
            return Ok(ReadAttempt::Again);
        }
        if before.size > self.max_file_bytes {
            return Ok(ReadAttempt::LeftOut(
                LeftOutReason::TooLarge,
                Some(before.size),
            ));
        }
        let kind = FileKind::of_permissions(before.permissions());
        let mut reader = File::from(match opened.try_clone() {
            Ok(copy) => copy,
            Err(error) => return Err(CheckpointError::io("opened again", "a file", error)),
        });
        let unreadable = ReadAttempt::LeftOut(LeftOutReason::Unreadable, Some(before.size));
        if before.size <= MAX_BUFFERED_BYTES {
            let mut contents = Vec::new();
            // One byte more than expected shows that the file grew.
            let result = (&mut reader)
                .take(before.size + 1)
                .read_to_end(&mut contents);
            if result.is_err() {
                return Ok(unreadable);
            }
            if contents.len() as u64 != before.size || examine() != Ok(before) {
                return Ok(ReadAttempt::Again);
            }
            let read = self.store(file, kind, before, now, &contents)?;
            return Ok(ReadAttempt::Read(read));
        }
        let mut hasher = blake3::Hasher::new();
        let import = start_if_needed(&mut self.import, self.git)?;
        let mut update_digest = |bytes: &[u8]| {
            hasher.update(bytes);
        };
        let (mark, read) = import.blob_from(&mut reader, before.size, &mut update_digest)?;
        // A blob that turns out to be of no use stays in the import, and no commit refers to it.
        match read {
            Err(_) => return Ok(unreadable),
            Ok(read) if read != before.size || examine() != Ok(before) => {
                return Ok(ReadAttempt::Again);
            }
            Ok(_) => {}
        }
        let digest = *hasher.finalize().as_bytes();
        let content = match self.content_of_digest(file.path, &digest) {
            Some(known) => known,
            None => EntryContent::New(mark),
        };
        Ok(ReadAttempt::Read(WorkspaceFile {
            kind,
            content,
            known: KnownFile {
                stat: before,
                is_settled: before.is_settled(now),
                digest,
            },
        }))
    }

    /// Stores the contents of a file, unless the last snapshot has them already.
    ///
    /// `stat` is the metadata before the contents were read, and `now` a time before that.
    fn store(
        &mut self,
        file: &WalkedFile<'_>,
        kind: FileKind,
        stat: FileStat,
        now: SystemTime,
        contents: &[u8],
    ) -> Result<WorkspaceFile, CheckpointError> {
        let digest = *blake3::hash(contents).as_bytes();
        let content = match self.content_of_digest(file.path, &digest) {
            Some(known) => known,
            None => EntryContent::New(start_if_needed(&mut self.import, self.git)?.blob(contents)?),
        };
        Ok(WorkspaceFile {
            kind,
            content,
            known: KnownFile {
                stat,
                is_settled: stat.is_settled(now),
                digest,
            },
        })
    }

    /// Returns the content of a file in the last snapshot, if it has this digest.
    fn content_of_digest(&self, path: &[u8], digest: &[u8; 32]) -> Option<EntryContent> {
        let base = self.base?;
        let known = base.files.get(path)?;
        let file = base.listing.files.get(path)?;
        (known.digest == *digest).then_some(EntryContent::Known(file.id))
    }
}

/// Returns the import, and starts it first if necessary.
pub(crate) fn start_if_needed<'a, 'b>(
    import: &'b mut Option<Import<'a>>,
    git: &'a Git,
) -> Result<&'b mut Import<'a>, CheckpointError> {
    match import {
        Some(import) => Ok(import),
        None => Ok(import.insert(Import::start(git)?)),
    }
}

/// Returns the result of an attempt that failed with a system error.
fn attempt_of(error: Errno, size: Option<u64>) -> ReadAttempt {
    match error {
        Errno::NOENT => ReadAttempt::Gone,
        // The file has been replaced by a link, which `NOFOLLOW` refuses to open.
        Errno::LOOP => ReadAttempt::Again,
        _ => ReadAttempt::LeftOut(LeftOutReason::Unreadable, size),
    }
}
