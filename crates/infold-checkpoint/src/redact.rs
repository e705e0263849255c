//! Finds contents in snapshots, and takes them out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use uuid::Uuid;

use crate::about::{self, LeftOutEntry, LeftOutReason};
use crate::all::torn_directories;
use crate::checkpoints::Checkpoints;
use crate::compact;
use crate::error::CheckpointError;
use crate::id::{ObjectId, SnapshotRef};
use crate::import::{EntryContent, Import, TreeChange};
use crate::last_snapshot::{LastSnapshot, replace_file};
use crate::listing::{SnapshotListing, path_digest};
use crate::objects::Objects;
use crate::repository::{ShadowRepository, claimed_by};
use crate::workspace::to_path;

/// Identifies a content or a path of snapshots without revealing it: `content:…` or `path:…`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobId(BlobName);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum BlobName {
    Content(ObjectId),
    /// The digest of the path.
    Path(String),
}

/// Something in snapshots that was looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundBlob {
    /// The id for [`Checkpoints::drop_blobs`].
    pub id: BlobId,
    /// The workspace that the snapshots are of.
    pub workspace: PathBuf,
    /// The snapshots with it, of the tasks that were asked for.
    pub snapshots: Vec<SnapshotRef>,
    /// Which files have the contents, or which path it is.
    pub paths: Vec<PathBuf>,
}

/// The result of removing contents from snapshots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// The number of snapshots that were rewritten.
    pub snapshots: u64,
    /// Damaged repositories that were set aside: they cannot be searched, and may still hold the contents.
    pub set_aside: Vec<PathBuf>,
}

/// While this file is there, objects may be left that no snapshot holds.
const PRUNING_FILE: &str = "pruning";

impl Checkpoints {
    /// Looks through the snapshots of tasks in all workspaces. `matches` is given the contents of each file, the target
    /// of each link and each path, each once in a workspace.
    pub fn find_blobs(
        &self,
        tasks: &[Uuid],
        matches: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<Vec<FoundBlob>, CheckpointError> {
        let mut found = Vec::new();
        for repository in self.repositories()? {
            let repository = repository?;
            let of_tasks = repository.refs.iter();
            let of_tasks: Vec<_> = of_tasks
                .filter(|(at, _)| tasks.contains(&at.task))
                .collect();
            found.extend(repository.find(&of_tasks, matches)?);
        }
        Ok(found)
    }

    /// Takes contents and paths out of all snapshots of all tasks and workspaces, and out of the repositories. In the
    /// snapshots, the paths count as left out from then on.
    ///
    /// If it fails or is killed, it can be called again with the same ids.
    pub fn drop_blobs(&self, ids: &[BlobId]) -> Result<Dropped, CheckpointError> {
        let mut dropped = Dropped::default();
        let ids: BTreeSet<_> = ids.iter().collect();
        for repository in self.repositories()? {
            let mut repository = repository?;
            dropped.snapshots += repository.drop_blobs(&ids)?;
            dropped
                .set_aside
                .extend(torn_directories(&repository.directory));
        }
        Ok(dropped)
    }

    fn repositories(
        &self,
    ) -> Result<impl Iterator<Item = Result<ShadowRepository, CheckpointError>>, CheckpointError>
    {
        let directories = self.directories()?.into_iter();
        let claimed = directories.filter_map(|directory| {
            let workspace = claimed_by(&directory)?;
            Some((directory, workspace))
        });
        let settings = self.settings.clone();
        Ok(claimed.map(move |(directory, workspace)| {
            ShadowRepository::open(&settings, &directory, &workspace)
        }))
    }
}

impl ShadowRepository {
    fn find(
        &self,
        of_tasks: &[(SnapshotRef, ObjectId)],
        matches: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<Vec<FoundBlob>, CheckpointError> {
        let mut objects = Objects::new(&self.git);
        // The blobs looked at, and whether each matched.
        let mut seen: BTreeMap<BlobId, bool> = BTreeMap::new();
        let mut found: BTreeMap<BlobId, FoundBlob> = BTreeMap::new();
        let mut listings: BTreeMap<ObjectId, Vec<(BlobId, Vec<u8>)>> = BTreeMap::new();
        for (at, commit) in of_tasks {
            if !listings.contains_key(commit) {
                let listing = SnapshotListing::read(&self.git, &mut objects, *commit)?;
                let mut matched = Vec::new();
                for (path, file) in &listing.files {
                    let id = BlobId(BlobName::Content(file.id));
                    let is_match = match seen.get(&id) {
                        Some(known) => *known,
                        None => matches(&objects.read(file.id)?),
                    };
                    seen.insert(id.clone(), is_match);
                    if is_match {
                        matched.push((id, path.clone()));
                    }
                }
                for path in listing.paths() {
                    let id = BlobId(BlobName::Path(path_digest(path)));
                    let is_match = match seen.get(&id) {
                        Some(known) => *known,
                        None => matches(path),
                    };
                    seen.insert(id.clone(), is_match);
                    if is_match {
                        matched.push((id, path.clone()));
                    }
                }
                listings.insert(*commit, matched);
            }
            for (id, path) in &listings[commit] {
                let entry = found.entry(id.clone()).or_insert_with(|| FoundBlob {
                    id: id.clone(),
                    workspace: self.workspace.clone(),
                    snapshots: Vec::new(),
                    paths: Vec::new(),
                });
                if entry.snapshots.last() != Some(at) {
                    entry.snapshots.push(*at);
                }
                let path = to_path(path);
                if !entry.paths.contains(&path) {
                    entry.paths.push(path);
                }
            }
        }
        Ok(found.into_values().collect())
    }

    /// Removes contents and paths from all snapshots. Returns the number of rewritten snapshots.
    fn drop_blobs(&mut self, ids: &BTreeSet<&BlobId>) -> Result<u64, CheckpointError> {
        let mut snapshots: BTreeMap<ObjectId, Vec<SnapshotRef>> = BTreeMap::new();
        for (at, commit) in self.refs.iter() {
            snapshots.entry(commit).or_default().push(at);
        }
        let mut changes = Vec::new();
        let mut objects = Objects::new(&self.git);
        for (commit, refs) in snapshots {
            let listing = SnapshotListing::read(&self.git, &mut objects, commit)?;
            if let Some(mut change) = listing.without(ids) {
                change.base = Some(self.tree_of(commit)?);
                changes.push((refs, change));
            }
        }
        drop(objects);
        let pruning = self.directory.join(PRUNING_FILE);
        if changes.is_empty() && !pruning.exists() {
            return Ok(0);
        }
        replace_file(&pruning, b"")?;
        // The file contains the paths and the digests of contents.
        LastSnapshot::remove(&self.directory)?;
        let mut count = 0;
        if !changes.is_empty() {
            let mut import = Import::start(&self.git)?;
            for (refs, change) in &changes {
                count += refs.len() as u64;
                let [first, others @ ..] = refs.as_slice() else {
                    continue;
                };
                let mark = import.commit(*first, change)?;
                for at in others {
                    import.set_ref(*at, EntryContent::New(mark))?;
                }
            }
            import.finish()?;
            self.refs = crate::refs::Refs::read(self.git.directory())?;
        }
        compact::pack(self)?;
        std::fs::remove_file(&pruning)
            .map_err(|error| CheckpointError::io("removed", &pruning, error))?;
        Ok(count)
    }
}

impl SnapshotListing {
    /// Returns all paths that it names.
    fn paths(&self) -> BTreeSet<&Vec<u8>> {
        let files = self.files.keys().chain(self.directories.keys());
        let others = self.ignored.iter().chain(self.left_out.keys());
        files.chain(others).collect()
    }

    /// Returns how its tree changes without contents and paths; none if it has none of them.
    fn without(mut self, ids: &BTreeSet<&BlobId>) -> Option<TreeChange> {
        let mut removed = Vec::new();
        for (path, file) in &self.files {
            if ids.contains(&BlobId(BlobName::Content(file.id))) {
                removed.push(path.clone());
            }
        }
        for path in &removed {
            self.files.remove(path);
            let why = LeftOutReason::Redacted;
            self.left_out
                .insert(path.clone(), LeftOutEntry { why, size: None });
        }
        let digests: Vec<_> = self
            .paths()
            .into_iter()
            .map(|path| (path.clone(), path_digest(path)))
            .filter(|(_, digest)| ids.contains(&BlobId(BlobName::Path(digest.clone()))))
            .collect();
        for (path, digest) in &digests {
            if self.files.remove(path).is_some() {
                removed.push(path.clone());
            }
            self.directories.remove(path);
            self.ignored.remove(path);
            self.left_out.remove(path);
            self.redacted.insert(digest.clone());
        }
        if removed.is_empty() && digests.is_empty() {
            return None;
        }
        Some(TreeChange {
            base: None,
            removed,
            written: Vec::new(),
            about: about::write(&self, self.modes()),
        })
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            BlobName::Content(id) => write!(f, "content:{id}"),
            BlobName::Path(digest) => write!(f, "path:{digest}"),
        }
    }
}

impl FromStr for BlobId {
    type Err = BlobIdError;

    fn from_str(text: &str) -> Result<BlobId, BlobIdError> {
        let error = || BlobIdError {
            text: text.to_owned(),
        };
        let is_hex = |digest: &str| digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        match text.split_once(':') {
            Some(("content", id)) => {
                let id = ObjectId::parse(id.as_bytes()).ok_or_else(error)?;
                Ok(BlobId(BlobName::Content(id)))
            }
            Some(("path", digest)) if digest.len() == 64 && is_hex(digest) => {
                Ok(BlobId(BlobName::Path(digest.to_owned())))
            }
            _ => Err(error()),
        }
    }
}

/// A text that names no content or path of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` names no content or path of a checkpoint")]
pub struct BlobIdError {
    text: String,
}
