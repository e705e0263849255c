//! The last snapshot of a workspace, with the metadata of its files at that time.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::about;
use crate::error::CheckpointError;
use crate::id::ObjectId;
use crate::listing::{FileKind, SnapshotFile, SnapshotListing};
use crate::stat::FileStat;

/// The last snapshot of a workspace, with the metadata of its files at that time: files with the same metadata
/// need not be read again. This data is derived; without it all files are read.
#[derive(Debug, PartialEq)]
pub(crate) struct LastSnapshot {
    pub commit: ObjectId,
    pub tree: ObjectId,
    /// The metadata of the snapshot, as its text.
    pub about_text: Vec<u8>,
    pub listing: SnapshotListing,
    pub files: BTreeMap<Vec<u8>, KnownFile>,
}

/// Metadata of a file that is not part of the snapshot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct KnownFile {
    pub stat: FileStat,
    /// Whether a change behind the snapshot's back would show in `stat`.
    pub is_settled: bool,
    /// The digest of the contents.
    pub digest: [u8; 32],
}

const MAGIC: &[u8] = b"infold files 1\n";
const NAME: &str = "files.idx";
const DIGEST_BYTES: usize = 32;

impl LastSnapshot {
    /// Reads it; none if it is missing or damaged.
    pub fn load(directory: &Path) -> Option<LastSnapshot> {
        let bytes = fs::read(directory.join(NAME)).ok()?;
        let body = bytes.len().checked_sub(DIGEST_BYTES)?;
        let (body, digest) = bytes.split_at(body);
        if blake3::hash(body).as_bytes() != digest {
            return None;
        }
        let mut rest = Bytes(body.strip_prefix(MAGIC)?);
        let commit = ObjectId(rest.array()?);
        let tree = ObjectId(rest.array()?);
        let about_bytes = rest.number()?;
        let about_text = rest.take(about_bytes)?;
        let mut listing = SnapshotListing::default();
        let mut files = BTreeMap::new();
        while !rest.0.is_empty() {
            let path_bytes = rest.number()?;
            let path = rest.take(path_bytes)?.to_owned();
            let [kind] = rest.array()?;
            let id = ObjectId(rest.array()?);
            let kind = match kind {
                0 => FileKind::File,
                1 => FileKind::Executable,
                2 => FileKind::Link,
                _ => return None,
            };
            let file = SnapshotFile { kind, mode: 0, id };
            listing.files.insert(path.clone(), file);
            files.insert(path, known_file(&mut rest)?);
        }
        about::read(about_text, &mut listing)?;
        Some(LastSnapshot {
            commit,
            tree,
            about_text: about_text.to_owned(),
            listing,
            files,
        })
    }

    /// Writes it.
    pub fn save(&self, directory: &Path) -> Result<(), CheckpointError> {
        let mut bytes = Vec::with_capacity(160 * self.files.len());
        bytes.extend(MAGIC);
        bytes.extend(self.commit.0);
        bytes.extend(self.tree.0);
        push_sized(&self.about_text, &mut bytes);
        for (path, file) in &self.listing.files {
            let Some(known) = self.files.get(path) else {
                continue;
            };
            push_sized(path, &mut bytes);
            bytes.push(match file.kind {
                FileKind::File => 0,
                FileKind::Executable => 1,
                FileKind::Link => 2,
            });
            bytes.extend(file.id.0);
            push_known(known, &mut bytes);
        }
        let digest = blake3::hash(&bytes);
        bytes.extend(digest.as_bytes());
        replace_file(&directory.join(NAME), &bytes)
    }

    /// Removes it.
    pub fn remove(directory: &Path) -> Result<(), CheckpointError> {
        let path = directory.join(NAME);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(CheckpointError::io("removed", path, error))
            }
            _ => Ok(()),
        }
    }
}

/// Reads it as it is; none if there is none.
pub(crate) fn read_bytes(directory: &Path) -> Option<Vec<u8>> {
    fs::read(directory.join(NAME)).ok()
}

/// Restores the file from the result of [`read_bytes`].
pub(crate) fn write_bytes(directory: &Path, bytes: &[u8]) -> Result<(), CheckpointError> {
    replace_file(&directory.join(NAME), bytes)
}

/// Writes a private file completely, or leaves the old one unchanged.
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), CheckpointError> {
    let temporary = path.with_extension("new");
    let written = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&temporary, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&temporary);
        CheckpointError::io("written", path, error)
    })
}

fn push_sized(part: &[u8], bytes: &mut Vec<u8>) {
    bytes.extend((part.len() as u64).to_le_bytes());
    bytes.extend(part);
}

fn push_known(known: &KnownFile, bytes: &mut Vec<u8>) {
    let stat = &known.stat;
    bytes.extend(stat.device.to_le_bytes());
    bytes.extend(stat.inode.to_le_bytes());
    bytes.extend(stat.size.to_le_bytes());
    bytes.extend(stat.modified.to_le_bytes());
    bytes.extend(stat.changed.to_le_bytes());
    bytes.extend(stat.mode.to_le_bytes());
    bytes.push(u8::from(known.is_settled));
    bytes.extend(known.digest);
}

fn known_file(rest: &mut Bytes<'_>) -> Option<KnownFile> {
    let stat = FileStat {
        device: u64::from_le_bytes(rest.array()?),
        inode: u64::from_le_bytes(rest.array()?),
        size: u64::from_le_bytes(rest.array()?),
        modified: i128::from_le_bytes(rest.array()?),
        changed: i128::from_le_bytes(rest.array()?),
        mode: u32::from_le_bytes(rest.array()?),
    };
    let [is_settled] = rest.array()?;
    Some(KnownFile {
        stat,
        is_settled: is_settled == 1,
        digest: rest.array()?,
    })
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn number(&mut self) -> Option<usize> {
        usize::try_from(u64::from_le_bytes(self.array()?)).ok()
    }
}
