//! The refs of a shadow repository: which snapshots there are.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::error::CheckpointError;
use crate::id::{ObjectId, SnapshotRef};

/// The snapshots, and their commits.
///
/// They are read from git's files, which are text, because a process for each read would take longer than a
/// snapshot. Only git writes them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refs(BTreeMap<SnapshotRef, ObjectId>);

/// Under which the refs of all tasks are.
const PREFIX: &str = "refs/infold/";

impl Refs {
    pub fn read(repository: &Path) -> Result<Refs, CheckpointError> {
        let mut refs = Refs::default();
        let damaged = |what: String| CheckpointError::Damaged {
            dir: repository.to_owned(),
            what,
        };
        for (name, id) in packed(repository)? {
            let Some(at) = parse_name(&name) else {
                continue;
            };
            let id = ObjectId::parse(id.as_bytes());
            let id = id.ok_or_else(|| damaged(format!("packed ref {name} is no object id")))?;
            refs.0.insert(at, id);
        }
        for (at, path) in loose(repository)? {
            let text = fs::read(&path);
            let text = text.map_err(|error| CheckpointError::io("read", &path, error))?;
            let id = ObjectId::parse(text.trim_ascii_end());
            let id = id.ok_or_else(|| damaged(format!("ref {} is no object id", name_of(at))))?;
            refs.0.insert(at, id);
        }
        Ok(refs)
    }

    pub fn get(&self, at: SnapshotRef) -> Option<ObjectId> {
        self.0.get(&at).copied()
    }

    pub fn insert(&mut self, at: SnapshotRef, id: ObjectId) {
        self.0.insert(at, id);
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (SnapshotRef, ObjectId)> {
        self.0.iter().map(|(at, id)| (*at, *id))
    }

    /// Returns the last snapshot of a task.
    pub fn last(&self, task: Uuid) -> Option<(SnapshotRef, ObjectId)> {
        let number = |number| SnapshotRef { task, number };
        let mut of_task = self.0.range(number(0)..=number(u64::MAX));
        of_task.next_back().map(|(at, id)| (*at, *id))
    }

    /// Returns whether a snapshot has a commit.
    pub fn holds_commit(&self, id: ObjectId) -> bool {
        self.0.values().any(|known| *known == id)
    }
}

/// Returns the name of the ref of a snapshot.
pub(crate) fn name_of(at: SnapshotRef) -> String {
    format!("{PREFIX}{}/{}", at.task, at.number)
}

/// Returns the loose refs that name no object, as a file system leaves them after a power cut.
pub(crate) fn broken(repository: &Path) -> Result<Vec<(SnapshotRef, PathBuf)>, CheckpointError> {
    let mut found = loose(repository)?;
    found.retain(|(_, path)| match fs::read(path) {
        Ok(text) => ObjectId::parse(text.trim_ascii_end()).is_none(),
        Err(_) => path.is_dir(),
    });
    Ok(found)
}

/// Returns the highest number that any ref of a repository has, also of a damaged one.
pub(crate) fn highest_number(repository: &Path) -> u64 {
    let packed = packed(repository).unwrap_or_default();
    let packed = packed.iter().filter_map(|(name, _)| parse_name(name));
    let loose = loose(repository).unwrap_or_default();
    let loose = loose.into_iter().map(|(at, _)| at);
    packed.chain(loose).map(|at| at.number).max().unwrap_or(0)
}

fn packed(repository: &Path) -> Result<Vec<(String, String)>, CheckpointError> {
    let path = repository.join("packed-refs");
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(CheckpointError::io("read", path, error)),
    };
    let text = String::from_utf8_lossy(&text);
    let lines = text.lines().filter(|line| !line.starts_with(['#', '^']));
    let pairs = lines.filter_map(|line| line.split_once(' '));
    Ok(pairs
        .map(|(id, name)| (name.to_owned(), id.to_owned()))
        .collect())
}

fn loose(repository: &Path) -> Result<Vec<(SnapshotRef, PathBuf)>, CheckpointError> {
    let mut found = Vec::new();
    for task in names_in(&repository.join(PREFIX))? {
        let directory = repository.join(PREFIX).join(&task);
        if !directory.is_dir() {
            continue;
        }
        for number in names_in(&directory)? {
            let name = format!("{PREFIX}{task}/{number}");
            if let Some(at) = parse_name(&name) {
                found.push((at, directory.join(number)));
            }
        }
    }
    Ok(found)
}

fn names_in(directory: &Path) -> Result<Vec<String>, CheckpointError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(CheckpointError::io("listed", directory, error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| CheckpointError::io("listed", directory, error))?;
        names.extend(entry.file_name().into_string());
    }
    Ok(names)
}

fn parse_name(name: &str) -> Option<SnapshotRef> {
    let (task, number) = name.strip_prefix(PREFIX)?.split_once('/')?;
    let at = SnapshotRef {
        task: task.parse().ok()?,
        number: number.parse().ok()?,
    };
    // Only the canonical spelling is accepted, so that no two names are one snapshot.
    (name_of(at) == name).then_some(at)
}
