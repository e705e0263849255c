//! Keeps the shadow repository small.

use std::fs;
use std::path::Path;

use crate::error::CheckpointError;
use crate::repository::ShadowRepository;
use crate::shadow::Shadow;

/// The size of a shadow repository on the disk, before and after it was packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Bytes before.
    pub before: u64,
    /// Bytes after.
    pub after: u64,
}

const DOING: &str = "pack the checkpoints";

/// The most packs, one for each snapshot; beyond it they are packed together.
const MAX_PACKS: usize = 50;

impl Shadow {
    /// Packs all objects together, and drops those that no snapshot needs.
    pub fn compact(&mut self) -> Result<Compacted, CheckpointError> {
        pack(&self.repository)
    }
}

/// Packs all objects together, and drops those that no snapshot needs.
pub(crate) fn pack(repository: &ShadowRepository) -> Result<Compacted, CheckpointError> {
    let before = bytes_in(&repository.directory);
    let git = &repository.git;
    git.read(DOING, ["pack-refs", "--all", "--prune"])?;
    git.read(DOING, ["repack", "-a", "-d", "-l", "-q"])?;
    git.read(DOING, ["prune", "--expire=now"])?;
    let after = bytes_in(&repository.directory);
    Ok(Compacted { before, after })
}

/// Drops objects that no snapshot needs and that are in no pack.
pub(crate) fn prune(repository: &ShadowRepository) -> Result<(), CheckpointError> {
    let git = &repository.git;
    git.read(DOING, ["prune", "--expire=now"]).map(drop)
}

/// Packs the latest snapshots together, if there are many. A pack is written again only together with as much that is
/// newer, so each object is written a number of times that is logarithmic in the size of the repository.
pub(crate) fn if_due(repository: &ShadowRepository) -> Result<(), CheckpointError> {
    let packs = repository.git.directory().join("objects/pack");
    let Ok(entries) = fs::read_dir(&packs) else {
        return Ok(());
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    let count = names.filter(|name| name.to_string_lossy().ends_with(".pack"));
    if count.count() <= MAX_PACKS {
        return Ok(());
    }
    let packed = repository
        .git
        .read(DOING, ["repack", "--geometric=2", "-d", "-l", "-q"])
        .and_then(|_| {
            repository
                .git
                .read(DOING, ["pack-refs", "--all", "--prune"])
        });
    match packed {
        // The snapshot was taken; on a full disk they stay as they are.
        Err(CheckpointError::Full { .. }) | Ok(_) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns how many bytes the files in a directory have.
pub(crate) fn bytes_in(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else {
        return 0;
    };
    let sizes = entries.flatten().map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => bytes_in(&entry.path()),
        _ => entry.metadata().map_or(0, |meta| meta.len()),
    });
    sizes.sum()
}
