//! Lists the contents of a snapshot, as read from its commit in the shadow repository.

use std::collections::{BTreeMap, BTreeSet};

use crate::about::{self, LeftOutEntry};
use crate::error::CheckpointError;
use crate::git::Git;
use crate::id::ObjectId;
use crate::objects::Objects;
use crate::workspace::{ancestors, is_below};

/// The contents of a snapshot, and the paths of the workspace that it does not contain. All paths are relative to the
/// workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SnapshotListing {
    pub files: BTreeMap<Vec<u8>, SnapshotFile>,
    /// All directories that were walked, with their permissions; not the workspace itself.
    pub directories: BTreeMap<Vec<u8>, u32>,
    /// Paths that ignore rules leave out. An ignored directory is listed itself, and the paths below it are not.
    pub ignored: BTreeSet<Vec<u8>>,
    /// Paths left out for another reason, for example because a file is too large.
    pub left_out: BTreeMap<Vec<u8>, LeftOutEntry>,
    /// Digests of redacted paths whose names were secret, too: the snapshot must not contain them.
    pub redacted: BTreeSet<String>,
}

/// A file or link of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotFile {
    pub kind: FileKind,
    /// The permissions of a file; without meaning for a link.
    pub mode: u32,
    pub id: ObjectId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FileKind {
    File,
    Executable,
    Link,
}

impl FileKind {
    /// Returns the kind of a regular file by its permissions. Like git, it looks at the owner's bit only.
    pub fn of_permissions(mode: u32) -> FileKind {
        if mode & 0o100 != 0 {
            FileKind::Executable
        } else {
            FileKind::File
        }
    }

    /// Returns the mode that git stores for this kind.
    pub fn git_mode(self) -> &'static str {
        match self {
            FileKind::File => "100644",
            FileKind::Executable => "100755",
            FileKind::Link => "120000",
        }
    }

    fn parse(mode: &[u8]) -> Option<FileKind> {
        Some(match mode {
            b"100644" => FileKind::File,
            b"100755" => FileKind::Executable,
            b"120000" => FileKind::Link,
            _ => return None,
        })
    }

    pub fn is_link(self) -> bool {
        self == FileKind::Link
    }
}

impl SnapshotListing {
    /// Reads the listing of a commit.
    ///
    /// The tree of the commit has the files below `files/`, and the rest of the listing, with the permissions of the
    /// files, in `about`.
    pub fn read(
        git: &Git,
        objects: &mut Objects,
        commit: ObjectId,
    ) -> Result<SnapshotListing, CheckpointError> {
        let commit_name = commit.to_string();
        let text = git.read(
            "list a checkpoint",
            ["ls-tree", "-r", "-z", "--full-tree", &commit_name],
        )?;
        let damaged = || CheckpointError::Damaged {
            dir: git.directory().to_owned(),
            what: format!("commit {commit} is no checkpoint"),
        };
        let mut listing = SnapshotListing::default();
        let mut about_id = None;
        let lines = text
            .split(|byte| *byte == 0)
            .filter(|line| !line.is_empty());
        for line in lines {
            let (mode, id, path) = parse_tree_line(line).ok_or_else(damaged)?;
            if path == b"about" {
                about_id = Some(id);
                continue;
            }
            let path = path.strip_prefix(b"files/").ok_or_else(damaged)?;
            let kind = FileKind::parse(mode).ok_or_else(damaged)?;
            let file = SnapshotFile { kind, mode: 0, id };
            listing.files.insert(path.to_owned(), file);
        }
        let text = objects.read(about_id.ok_or_else(damaged)?)?;
        about::read(&text, &mut listing).ok_or_else(damaged)?;
        Ok(listing)
    }

    /// Returns whether there is a file at a path or below it.
    pub fn holds_at_or_below(&self, path: &[u8]) -> bool {
        self.files.contains_key(path) || self.holds_below(path)
    }

    /// Returns whether there is a file below a path.
    pub fn holds_below(&self, path: &[u8]) -> bool {
        let mut below = path.to_owned();
        below.push(b'/');
        let mut files = self.files.range(below..);
        files.next().is_some_and(|(file, _)| is_below(file, path))
    }

    /// Returns whether a path was ignored, left out or redacted, or is in a directory that was.
    ///
    /// The snapshot does not say what such a path contained, so a restore leaves it alone, unless it is in the way of a
    /// path that the snapshot contains.
    pub fn spares(&self, path: &[u8]) -> bool {
        let spared = |path: &[u8]| {
            self.ignored.contains(path)
                || self.left_out.contains_key(path)
                || !self.redacted.is_empty() && self.redacted.contains(&path_digest(path))
        };
        spared(path) || ancestors(path).any(spared)
    }

    /// Returns whether two listings are the same apart from their files and from the sizes of paths that were left out.
    ///
    /// The sizes do not count, because a file that is left out may grow all the time.
    pub fn says_the_same_beside_files(&self, other: &SnapshotListing) -> bool {
        let left_out = |listing: &SnapshotListing| {
            let entries = listing.left_out.iter();
            let entries = entries.map(|(path, entry)| (path.clone(), entry.why));
            entries.collect::<Vec<_>>()
        };
        self.directories == other.directories
            && self.ignored == other.ignored
            && self.redacted == other.redacted
            && left_out(self) == left_out(other)
    }

    /// Returns the path, kind and permissions of each file.
    pub fn modes(&self) -> impl Iterator<Item = (&[u8], FileKind, u32)> + Clone {
        let files = self.files.iter();
        files.map(|(path, file)| (path.as_slice(), file.kind, file.mode))
    }
}

/// Returns the digest that replaces the name of a redacted path.
pub(crate) fn path_digest(path: &[u8]) -> String {
    blake3::hash(path).to_hex().to_string()
}

/// Parses a line of `git ls-tree`, `MODE TYPE ID<tab>PATH`, into mode, id and path.
fn parse_tree_line(line: &[u8]) -> Option<(&[u8], ObjectId, &[u8])> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let mut fields = line[..tab].split(|byte| *byte == b' ');
    let mode = fields.next()?;
    let id = ObjectId::parse(fields.nth(1)?)?;
    Some((mode, id, &line[tab + 1..]))
}
