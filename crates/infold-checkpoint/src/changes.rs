//! Differences between two snapshots.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crate::error::CheckpointError;
use crate::id::{ObjectId, SnapshotRef};
use crate::listing::{FileKind, SnapshotFile, SnapshotListing};
use crate::objects::Objects;
use crate::shadow::Shadow;
use crate::workspace::to_path;

/// A file that differs between two snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Its path in the workspace.
    pub path: PathBuf,
    /// How it differs.
    pub kind: ChangeKind,
}

/// How a file differs between two snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// Only the second has it.
    Added,
    /// Only the first has it.
    Removed,
    /// The contents differ.
    Modified,
    /// Only the permissions differ.
    Mode {
        /// The permissions in the first snapshot.
        from: u32,
        /// The permissions in the second snapshot.
        to: u32,
    },
    /// One is a file, the other a link.
    Type,
}

/// How a difference is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiffOptions {
    /// Only files at or below these paths; all if there are none.
    pub paths: Vec<PathBuf>,
    /// The number of context lines around a change; git's default if there is none.
    pub context: Option<u32>,
    /// A table of files and counts of lines instead of the lines.
    pub stat: bool,
}

const DOING: &str = "compare two checkpoints";

impl Shadow {
    /// Returns which files differ between two snapshots, in the order of their paths.
    pub fn changes(
        &self,
        from: SnapshotRef,
        to: SnapshotRef,
    ) -> Result<Vec<FileChange>, CheckpointError> {
        let (from, to) = (self.repository.listing(from)?, self.repository.listing(to)?);
        Ok(changes_between(&from, &to))
    }

    /// Writes how the files of two snapshots differ, as git does: no program of the user's is asked.
    pub fn diff(
        &self,
        from: SnapshotRef,
        to: SnapshotRef,
        options: &DiffOptions,
        output: &mut dyn Write,
    ) -> Result<(), CheckpointError> {
        let (from, to) = (self.files_tree(from)?, self.files_tree(to)?);
        let mut command =
            self.repository
                .git
                .command(["diff", "--no-ext-diff", "--no-textconv"])?;
        command.args(["--no-color", "--find-renames"]);
        if let Some(lines) = options.context {
            command.arg(format!("--unified={lines}"));
        }
        if options.stat {
            command.arg("--stat");
        }
        command.args([from.to_string(), to.to_string()]).arg("--");
        command.args(&options.paths);
        let mut child = self.repository.git.spawn(&mut command)?;
        let copied = child.stdout.take().map(|mut text| copy(&mut text, output));
        if !matches!(copied, Some(Ok(()))) {
            let _ = child.kill();
        }
        let status = child.wait();
        if let Some(Err(error)) = copied {
            return Err(CheckpointError::io("written", "the difference", error));
        }
        if status.is_ok_and(|status| status.success()) {
            return Ok(());
        }
        Err(self.repository.git.failed(DOING))
    }

    /// Returns the contents of a file of a snapshot, or where a link leads. None if the snapshot has no such file.
    pub fn content(
        &self,
        at: SnapshotRef,
        path: &Path,
    ) -> Result<Option<Vec<u8>>, CheckpointError> {
        let listing = self.repository.listing(at)?;
        let path = std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str());
        let Some(file) = listing.files.get(path) else {
            return Ok(None);
        };
        Objects::new(&self.repository.git).read(file.id).map(Some)
    }

    /// Returns the tree with the files of a snapshot.
    fn files_tree(&self, at: SnapshotRef) -> Result<ObjectId, CheckpointError> {
        let commit = self.repository.commit_of(at)?.to_string();
        let listed = self
            .repository
            .git
            .read(DOING, ["ls-tree", "-d", "-z", &commit, "files"])?;
        let mut fields = listed.split(|byte| matches!(byte, b' ' | b'\t'));
        match fields.nth(2) {
            Some(id) => ObjectId::parse(id).ok_or_else(|| CheckpointError::Damaged {
                dir: self.repository.git.directory().to_owned(),
                what: format!("commit {commit} is no checkpoint"),
            }),
            // A workspace without files has no tree. Git knows the empty one without having it.
            None => Ok(EMPTY_TREE),
        }
    }
}

const EMPTY_TREE: ObjectId = ObjectId([
    0x4b, 0x82, 0x5d, 0xc6, 0x42, 0xcb, 0x6e, 0xb9, 0xa0, 0x60, 0xe5, 0x4b, 0xf8, 0xd6, 0x92, 0x88,
    0xfb, 0xee, 0x49, 0x04,
]);

pub(crate) fn changes_between(from: &SnapshotListing, to: &SnapshotListing) -> Vec<FileChange> {
    let paths: BTreeSet<_> = from.files.keys().chain(to.files.keys()).collect();
    let changes = paths.into_iter().filter_map(|path| {
        let kind = change_of(from.files.get(path), to.files.get(path))?;
        let path = to_path(path);
        Some(FileChange { path, kind })
    });
    changes.collect()
}

fn change_of(from: Option<&SnapshotFile>, to: Option<&SnapshotFile>) -> Option<ChangeKind> {
    match (from, to) {
        (None, None) => None,
        (None, Some(_)) => Some(ChangeKind::Added),
        (Some(_), None) => Some(ChangeKind::Removed),
        (Some(from), Some(to)) if from == to => None,
        (Some(from), Some(to)) if is_link(from) != is_link(to) => Some(ChangeKind::Type),
        (Some(from), Some(to)) if from.id == to.id => Some(ChangeKind::Mode {
            from: from.mode,
            to: to.mode,
        }),
        (Some(_), Some(_)) => Some(ChangeKind::Modified),
    }
}

fn is_link(file: &SnapshotFile) -> bool {
    file.kind == FileKind::Link
}

fn copy(from: &mut impl Read, to: &mut dyn Write) -> std::io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            read => to.write_all(&buffer[..read])?,
        }
    }
}
