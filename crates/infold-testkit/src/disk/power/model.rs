//! A disk with a cache that a power cut clears: the data certain to be on it, and the data that may be.
//!
//! Bytes are certain once their file was synced, names once one of the directories they are in was. A rename
//! happens whole or not at all. Of everything else any part may have reached the disk, in any order: of a file each
//! block by itself, and its size without its bytes.

use std::collections::BTreeMap;
use std::path::Path;

use super::trace::TraceRecord;

#[cfg(test)]
mod tests;

/// The disk: inodes by number, the first is the root.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    inodes: Vec<Inode>,
    /// Changes of names that are not certain yet, in order.
    names: Vec<Naming>,
}

#[derive(Clone, Debug)]
enum Inode {
    File {
        certain: Vec<u8>,
        changes: Vec<BytesChange>,
    },
    Dir {
        certain: FileNames,
        live: FileNames,
    },
}

type FileNames = BTreeMap<String, usize>;

/// A change of a file's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BytesChange {
    Write(u64, Vec<u8>),
    Size(u64),
}

/// A change of names that happens whole or not at all: the new target of each name.
#[derive(Clone, Debug)]
struct Naming {
    sets: Vec<(usize, String, Option<usize>)>,
}

/// Something that is not certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum UncertainChange {
    /// A change of names, by its place among them.
    Name(usize),
    /// A change of a file, by its place among those.
    Change(usize, usize),
}

/// The files and directories of a disk, by path; of a directory no bytes.
pub(super) type Tree = BTreeMap<String, Option<Vec<u8>>>;

/// Chooses which uncertain changes reached the disk.
pub(super) trait SurvivingChanges {
    /// Whether a change of names did.
    fn name(&mut self, at: usize) -> bool;
    /// Returns the contents of a file.
    fn bytes(&mut self, file: usize, certain: &[u8], changes: &[BytesChange]) -> Vec<u8>;
}

impl Disk {
    /// An empty one.
    pub(super) fn new() -> Disk {
        Disk {
            inodes: vec![Inode::dir()],
            names: Vec::new(),
        }
    }

    /// Applies a record.
    pub(super) fn apply(&mut self, record: &TraceRecord) -> Result<(), String> {
        let done = match record {
            TraceRecord::Create(path) => self.make(path, Inode::file()),
            TraceRecord::Mkdir(path) => self.make(path, Inode::dir()),
            TraceRecord::Write(path, at, bytes) => {
                self.change(path, BytesChange::Write(*at, bytes.clone()))
            }
            TraceRecord::Truncate(path, len) => self.change(path, BytesChange::Size(*len)),
            TraceRecord::Sync(path) => self.sync(path),
            TraceRecord::Rename(from, to) => self.rename(from, to),
            TraceRecord::Unlink(path) | TraceRecord::Rmdir(path) => self.remove(path),
            TraceRecord::Link(from, to) => self.link(from, to),
            TraceRecord::Mark(_) => Some(()),
        };
        done.ok_or_else(|| format!("the trace is not whole: {}", record.told()))
    }

    /// Makes everything certain, as a machine that is shut down does.
    pub(super) fn settle(&mut self) {
        for at in 0..self.inodes.len() {
            self.sync_inode(at);
        }
    }

    /// All that is not certain.
    pub(super) fn items(&self) -> Vec<UncertainChange> {
        let names = (0..self.names.len()).map(UncertainChange::Name);
        let changes = self.inodes.iter().enumerate().flat_map(|(file, inode)| {
            let count = match inode {
                Inode::File { changes, .. } => changes.len(),
                Inode::Dir { .. } => 0,
            };
            (0..count).map(move |at| UncertainChange::Change(file, at))
        });
        names.chain(changes).collect()
    }

    /// Returns the disk after a power cut that kept these changes.
    pub(super) fn after_cut(&self, kept: &mut dyn SurvivingChanges) -> Tree {
        let mut dirs: BTreeMap<usize, FileNames> = BTreeMap::new();
        for (at, inode) in self.inodes.iter().enumerate() {
            if let Inode::Dir { certain, .. } = inode {
                dirs.insert(at, certain.clone());
            }
        }
        for (at, naming) in self.names.iter().enumerate() {
            if kept.name(at) {
                for (dir, name, to) in &naming.sets {
                    set(dirs.entry(*dir).or_default(), name, *to);
                }
            }
        }
        let mut tree = Tree::new();
        self.walk(0, "", &dirs, kept, &mut tree);
        tree
    }

    /// The files and directories as a running system shows them.
    pub(super) fn live(&self) -> Tree {
        self.after_cut(&mut Everything)
    }

    fn walk(
        &self,
        dir: usize,
        path: &str,
        dirs: &BTreeMap<usize, FileNames>,
        kept: &mut dyn SurvivingChanges,
        tree: &mut Tree,
    ) {
        for (name, at) in dirs.get(&dir).into_iter().flatten() {
            let path = match path {
                "" => name.clone(),
                path => format!("{path}/{name}"),
            };
            match &self.inodes[*at] {
                Inode::Dir { .. } => {
                    tree.insert(path.clone(), None);
                    self.walk(*at, &path, dirs, kept, tree);
                }
                Inode::File { certain, changes } => {
                    tree.insert(path, Some(kept.bytes(*at, certain, changes)));
                }
            }
        }
    }

    /// The directory that a path is in, and its name there.
    fn parent<'a>(&self, path: &'a Path) -> Option<(usize, &'a str)> {
        let name = path.file_name()?.to_str()?;
        Some((self.find(path.parent()?)?, name))
    }

    fn find(&self, path: &Path) -> Option<usize> {
        path.iter().try_fold(0, |at, part| match &self.inodes[at] {
            Inode::Dir { live, .. } => live.get(part.to_str()?).copied(),
            Inode::File { .. } => None,
        })
    }

    /// Changes names as running processes see them; they are not certain yet.
    fn name(&mut self, sets: Vec<(usize, String, Option<usize>)>) -> Option<()> {
        for (dir, name, to) in &sets {
            match self.inodes.get_mut(*dir)? {
                Inode::Dir { live, .. } => set(live, name, *to),
                Inode::File { .. } => return None,
            }
        }
        self.names.push(Naming { sets });
        Some(())
    }

    fn make(&mut self, path: &Path, inode: Inode) -> Option<()> {
        let (dir, name) = self.parent(path)?;
        self.inodes.push(inode);
        self.name(vec![(dir, name.to_owned(), Some(self.inodes.len() - 1))])
    }

    fn remove(&mut self, path: &Path) -> Option<()> {
        self.find(path)?;
        let (dir, name) = self.parent(path)?;
        self.name(vec![(dir, name.to_owned(), None)])
    }

    fn rename(&mut self, from: &Path, to: &Path) -> Option<()> {
        let at = self.find(from)?;
        let ((dir, name), (there, other)) = (self.parent(from)?, self.parent(to)?);
        self.name(vec![
            (dir, name.to_owned(), None),
            (there, other.to_owned(), Some(at)),
        ])
    }

    fn link(&mut self, from: &Path, to: &Path) -> Option<()> {
        let at = self.find(from)?;
        let (dir, name) = self.parent(to)?;
        self.name(vec![(dir, name.to_owned(), Some(at))])
    }

    fn change(&mut self, path: &Path, change: BytesChange) -> Option<()> {
        let at = self.find(path)?;
        match &mut self.inodes[at] {
            Inode::File { changes, .. } => changes.push(change),
            Inode::Dir { .. } => return None,
        }
        Some(())
    }

    fn sync(&mut self, path: &Path) -> Option<()> {
        let at = self.find(path)?;
        self.sync_inode(at);
        Some(())
    }

    fn sync_inode(&mut self, at: usize) {
        match &mut self.inodes[at] {
            Inode::File { certain, changes } => {
                for change in changes.drain(..) {
                    change.apply(certain);
                }
            }
            Inode::Dir { .. } => self.sync_names(at),
        }
    }

    /// Makes all names of a directory certain, and drops the older ones.
    fn sync_names(&mut self, dir: usize) {
        let all = std::mem::take(&mut self.names);
        let mut left: Vec<Naming> = Vec::new();
        for naming in all {
            if !naming.sets.iter().any(|(at, ..)| *at == dir) {
                left.push(naming);
                continue;
            }
            for (at, name, to) in &naming.sets {
                for earlier in &mut left {
                    earlier
                        .sets
                        .retain(|(dir, other, _)| (dir, other) != (at, name));
                }
                if let Inode::Dir { certain, .. } = &mut self.inodes[*at] {
                    set(certain, name, *to);
                }
            }
        }
        left.retain(|naming| !naming.sets.is_empty());
        self.names = left;
    }
}

impl Inode {
    fn file() -> Inode {
        Inode::File {
            certain: Vec::new(),
            changes: Vec::new(),
        }
    }

    fn dir() -> Inode {
        Inode::Dir {
            certain: FileNames::new(),
            live: FileNames::new(),
        }
    }
}

impl BytesChange {
    /// Makes it in bytes.
    pub(super) fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            BytesChange::Size(len) => bytes.resize(*len as usize, 0),
            BytesChange::Write(at, new) => {
                let at = *at as usize;
                if bytes.len() < at + new.len() {
                    bytes.resize(at + new.len(), 0);
                }
                bytes[at..at + new.len()].copy_from_slice(new);
            }
        }
    }
}

fn set(names: &mut FileNames, name: &str, to: Option<usize>) {
    match to {
        Some(at) => names.insert(name.to_owned(), at),
        None => names.remove(name),
    };
}

/// All of it reached the disk.
struct Everything;

impl SurvivingChanges for Everything {
    fn name(&mut self, _: usize) -> bool {
        true
    }

    fn bytes(&mut self, _: usize, certain: &[u8], changes: &[BytesChange]) -> Vec<u8> {
        let mut bytes = certain.to_vec();
        changes.iter().for_each(|change| change.apply(&mut bytes));
        bytes
    }
}
