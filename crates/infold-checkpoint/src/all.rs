//! The checkpoints of all workspaces at once.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::checkpoints::Checkpoints;
use crate::compact::{self, bytes_in};
use crate::error::CheckpointError;
use crate::import::Import;
use crate::journal::{Journal, PendingRestore};
use crate::last_snapshot::{LastSnapshot, replace_file};
use crate::refs::Refs;
use crate::repository::{REPOSITORY, ShadowRepository, TORN_PREFIX, claimed_by};

/// The extension of directories that are being removed.
const REMOVED_EXTENSION: &str = "removed";

/// The file that exists while a repository may hold objects of removed snapshots.
const UNPACKED_FILE: &str = "unpacked";

fn is_removed(directory: &Path) -> bool {
    directory.extension() == Some(REMOVED_EXTENSION.as_ref())
}

/// Removes a directory, which another process may be removing too.
fn remove_directory(directory: &Path) -> Result<(), CheckpointError> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(CheckpointError::io("removed", directory, error))
        }
        _ => Ok(()),
    }
}

/// The checkpoints of one workspace: their tasks, size and condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShadowInfo {
    /// The path of the workspace, which need not exist any more.
    pub workspace: PathBuf,
    /// Where its checkpoints are.
    pub directory: PathBuf,
    /// How many snapshots each task has.
    pub tasks: BTreeMap<Uuid, u64>,
    /// The size of that directory, including repositories that were set aside.
    pub bytes: u64,
    /// A restoration that was interrupted, and has to be resumed or abandoned.
    pub pending: Option<PendingRestore>,
    /// Damaged repositories that were set aside.
    pub set_aside: Vec<PathBuf>,
    /// The damage, if it shows without a full check.
    pub damage: Option<String>,
}

/// The totals of what was removed with the snapshots of tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// How many snapshots.
    pub snapshots: u64,
    /// How many repositories had no other snapshots, and were removed.
    pub repositories: u64,
    /// How many bytes became free.
    pub bytes: u64,
}

impl Checkpoints {
    /// Returns the checkpoints of each workspace, in no order. Nothing is locked or changed.
    pub fn all(&self) -> Result<Vec<ShadowInfo>, CheckpointError> {
        let directories = self.directories()?;
        Ok(directories.into_iter().filter_map(info).collect())
    }

    /// Removes the snapshots of tasks in all workspaces, and objects that no other snapshot needs.
    ///
    /// Damaged repositories that were set aside are removed as well if their workspace has no other snapshots.
    pub fn forget(&self, tasks: &[Uuid]) -> Result<Forgotten, CheckpointError> {
        self.remove_leftovers()?;
        let mut forgotten = Forgotten::default();
        for directory in self.directories()? {
            let Some(workspace) = claimed_by(&directory) else {
                continue;
            };
            let holds_any = |refs: Refs| refs.iter().any(|(at, _)| tasks.contains(&at.task));
            let is_unpacked = directory.join(UNPACKED_FILE).exists();
            // A repository whose refs cannot be read is opened too: that sets the damaged one aside.
            if !is_unpacked && !Refs::read(&directory.join(REPOSITORY)).map_or(true, holds_any) {
                continue;
            }
            let mut repository = ShadowRepository::open(&self.settings, &directory, &workspace)?;
            forgotten.add(repository.forget(tasks)?);
        }
        Ok(forgotten)
    }

    /// Returns the directories with checkpoints.
    pub(crate) fn directories(&self) -> Result<Vec<PathBuf>, CheckpointError> {
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(CheckpointError::io("listed", &self.directory, error)),
        };
        let mut directories = Vec::new();
        for entry in entries {
            let entry =
                entry.map_err(|error| CheckpointError::io("listed", &self.directory, error))?;
            directories.push(entry.path());
        }
        directories.retain(|directory| !is_removed(directory));
        directories.sort();
        Ok(directories)
    }

    /// Removes directories whose removal was cut off.
    fn remove_leftovers(&self) -> Result<(), CheckpointError> {
        let Ok(entries) = fs::read_dir(&self.directory) else {
            return Ok(());
        };
        for entry in entries.flatten().filter(|entry| is_removed(&entry.path())) {
            remove_directory(&entry.path())?;
        }
        Ok(())
    }
}

impl Forgotten {
    fn add(&mut self, other: Forgotten) {
        self.snapshots += other.snapshots;
        self.repositories += other.repositories;
        self.bytes += other.bytes;
    }
}

impl ShadowRepository {
    fn forget(&mut self, tasks: &[Uuid]) -> Result<Forgotten, CheckpointError> {
        let before = bytes_in(&self.directory);
        let refs = self.refs.iter().map(|(at, _)| at);
        let forgotten: Vec<_> = refs.filter(|at| tasks.contains(&at.task)).collect();
        let snapshots = forgotten.len() as u64;
        if forgotten.len() == self.refs.iter().count() {
            // The rename removes it in one step: a directory that is removed in part would not be found again.
            let hidden = self.directory.with_extension(REMOVED_EXTENSION);
            fs::rename(&self.directory, &hidden)
                .map_err(|error| CheckpointError::io("removed", &self.directory, error))?;
            remove_directory(&hidden)?;
            return Ok(Forgotten {
                snapshots,
                repositories: 1,
                bytes: before,
            });
        }
        let unpacked = self.directory.join(UNPACKED_FILE);
        if forgotten.is_empty() && !unpacked.exists() {
            return Ok(Forgotten::default());
        }
        // A crash leaves objects that nothing refers to; the next removal packs them away.
        replace_file(&unpacked, b"")?;
        let mut import = Import::start(&self.git)?;
        for at in &forgotten {
            import.delete_ref(*at)?;
        }
        import.finish()?;
        self.refs = Refs::read(self.git.directory())?;
        let base = LastSnapshot::load(&self.directory);
        if !base.is_some_and(|base| self.refs.holds_commit(base.commit)) {
            LastSnapshot::remove(&self.directory)?;
        }
        compact::pack(self)?;
        fs::remove_file(&unpacked)
            .map_err(|error| CheckpointError::io("removed", &unpacked, error))?;
        Ok(Forgotten {
            snapshots,
            repositories: 0,
            bytes: before.saturating_sub(bytes_in(&self.directory)),
        })
    }
}

fn info(directory: PathBuf) -> Option<ShadowInfo> {
    let workspace = claimed_by(&directory)?;
    let refs = Refs::read(&directory.join(REPOSITORY));
    let damage = refs.as_ref().err().map(ToString::to_string);
    let mut tasks = BTreeMap::new();
    for (at, _) in refs.unwrap_or_default().iter() {
        *tasks.entry(at.task).or_insert(0) += 1;
    }
    Some(ShadowInfo {
        workspace,
        tasks,
        bytes: bytes_in(&directory),
        pending: Journal::read(&directory)
            .ok()
            .flatten()
            .map(|journal| journal.pending),
        set_aside: torn_directories(&directory),
        damage,
        directory,
    })
}

/// Returns the damaged repositories that were set aside.
pub(crate) fn torn_directories(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    let torn = names.filter(|name| name.to_string_lossy().starts_with(TORN_PREFIX));
    let mut torn: Vec<_> = torn.map(|name| directory.join(name)).collect();
    torn.sort();
    torn
}
