//! Writes objects and refs through `git fast-import`.

use std::collections::BTreeMap;
use std::io::{BufWriter, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::CheckpointError;
use crate::git::Git;
use crate::id::{ObjectId, SnapshotRef};
use crate::listing::FileKind;
use crate::refs;

/// A process of `git fast-import`. Unless [`Import::finish`] returns, no ref is written.
pub(crate) struct Import<'a> {
    git: &'a Git,
    child: Child,
    input: Option<BufWriter<ChildStdin>>,
    last_mark: u64,
    marks: PathBuf,
}

/// An object that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectMark(u64);

/// The object of a file in a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryContent {
    Known(ObjectId),
    New(ObjectMark),
}

/// The objects that an import wrote.
pub(crate) struct ImportedCommit {
    ids: BTreeMap<ObjectMark, ObjectId>,
    /// The trees of the commits, in their order.
    pub trees: Vec<ObjectId>,
}

/// The part of a commit that differs from a tree.
pub(crate) struct TreeChange {
    /// The tree whose other entries stay unchanged.
    pub base: Option<ObjectId>,
    pub removed: Vec<Vec<u8>>,
    pub written: Vec<(Vec<u8>, FileKind, EntryContent)>,
    pub about: Vec<u8>,
}

const DOING: &str = "write a checkpoint";
const NO_OBJECT: &str = "0000000000000000000000000000000000000000";
const COPY_BYTES: usize = 1 << 16;

impl<'a> Import<'a> {
    pub fn start(git: &'a Git) -> Result<Import<'a>, CheckpointError> {
        let marks = git.directory().join("infold-marks");
        let mut export = std::ffi::OsString::from("--export-marks=");
        export.push(&marks);
        let mut command = git.command(["fast-import", "--quiet", "--done", "--force"])?;
        command.arg(export).stdin(Stdio::piped());
        let mut child = git.spawn(&mut command)?;
        let input = child.stdin.take().map(BufWriter::new);
        Ok(Import {
            git,
            child,
            input,
            last_mark: 0,
            marks,
        })
    }

    /// Writes a blob.
    pub fn blob(&mut self, contents: &[u8]) -> Result<ObjectMark, CheckpointError> {
        let mark = self.begin_blob(contents.len() as u64)?;
        self.write(contents)?;
        self.write(b"\n")?;
        Ok(mark)
    }

    /// Writes a blob of `size` bytes from a reader, and hands them to `seen`. If the reader ends earlier, zeros follow,
    /// and the blob is of no use: returns how many bytes there were.
    pub fn blob_from(
        &mut self,
        reader: &mut dyn Read,
        size: u64,
        seen: &mut dyn FnMut(&[u8]),
    ) -> Result<(ObjectMark, std::io::Result<u64>), CheckpointError> {
        let mark = self.begin_blob(size)?;
        let mut buffer = vec![0; COPY_BYTES];
        let mut left = size;
        let mut result = Ok(size);
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(COPY_BYTES).min(COPY_BYTES);
            match reader.read(&mut buffer[..wanted]) {
                Ok(0) => {
                    result = Ok(size - left);
                    break;
                }
                Ok(read) => {
                    seen(&buffer[..read]);
                    self.write(&buffer[..read])?;
                    left -= read as u64;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        buffer.fill(0);
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(COPY_BYTES).min(COPY_BYTES);
            self.write(&buffer[..wanted])?;
            left -= wanted as u64;
        }
        self.write(b"\n")?;
        Ok((mark, result))
    }

    fn begin_blob(&mut self, size: u64) -> Result<ObjectMark, CheckpointError> {
        let mark = self.next_mark();
        let header = format!("blob\nmark :{}\ndata {size}\n", mark.0);
        self.write(header.as_bytes())?;
        Ok(mark)
    }

    fn next_mark(&mut self) -> ObjectMark {
        self.last_mark += 1;
        ObjectMark(self.last_mark)
    }

    /// Writes a commit without parents, to which a ref leads.
    pub fn commit(
        &mut self,
        at: SnapshotRef,
        change: &TreeChange,
    ) -> Result<ObjectMark, CheckpointError> {
        let mark = self.next_mark();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let mut text = format!(
            "commit {}\nmark :{}\ncommitter infold <infold> {} +0000\ndata 0\n",
            refs::name_of(at),
            mark.0,
            now.unwrap_or_default().as_secs()
        )
        .into_bytes();
        if let Some(base) = change.base {
            text.extend(format!("M 040000 {base} \"\"\n").bytes());
        }
        // Removed first: where a file was, a directory may come.
        for path in &change.removed {
            text.extend(b"D ");
            push_quoted(path, &mut text);
        }
        for (path, kind, content) in &change.written {
            let id = match content {
                EntryContent::Known(id) => id.to_string(),
                EntryContent::New(mark) => format!(":{}", mark.0),
            };
            text.extend(format!("M {} {id} ", kind.git_mode()).bytes());
            push_quoted(path, &mut text);
        }
        let about_bytes = change.about.len();
        text.extend(format!("M 100644 inline about\ndata {about_bytes}\n").bytes());
        text.extend(&change.about);
        text.extend(b"\nls \"\"\n");
        self.write(&text)?;
        Ok(mark)
    }

    /// Lets a ref lead to a commit.
    pub fn set_ref(
        &mut self,
        at: SnapshotRef,
        commit: EntryContent,
    ) -> Result<(), CheckpointError> {
        let from = match commit {
            EntryContent::Known(id) => id.to_string(),
            EntryContent::New(mark) => format!(":{}", mark.0),
        };
        let text = format!("reset {}\nfrom {from}\n", refs::name_of(at));
        self.write(text.as_bytes())
    }

    /// Removes a ref.
    pub fn delete_ref(&mut self, at: SnapshotRef) -> Result<(), CheckpointError> {
        let text = format!("reset {}\nfrom {NO_OBJECT}\n", refs::name_of(at));
        self.write(text.as_bytes())
    }

    /// Waits until everything is on the disk, the refs last.
    pub fn finish(mut self) -> Result<ImportedCommit, CheckpointError> {
        self.write(b"done\n")?;
        self.end()
    }

    /// Ends the process, and reads its output.
    fn end(&mut self) -> Result<ImportedCommit, CheckpointError> {
        let flushed = self.input.take().map(|mut input| input.flush());
        let mut listed = Vec::new();
        if let Some(mut output) = self.child.stdout.take() {
            let _ = output.read_to_end(&mut listed);
        }
        let status = self.child.wait();
        let is_done = status.is_ok_and(|status| status.success());
        if !is_done || !matches!(flushed, Some(Ok(()))) {
            remove_crash_reports(self.git);
            return Err(self.git.failed(DOING));
        }
        let failed = |said: &str| CheckpointError::Git {
            doing: DOING,
            said: said.to_owned(),
        };
        let text = std::fs::read_to_string(&self.marks)
            .map_err(|error| CheckpointError::io("read", &self.marks, error))?;
        let _ = std::fs::remove_file(&self.marks);
        let mut ids = BTreeMap::new();
        for line in text.lines() {
            let pair = line.strip_prefix(':').and_then(|line| line.split_once(' '));
            let pair = pair.and_then(|(mark, id)| {
                Some((
                    ObjectMark(mark.parse().ok()?),
                    ObjectId::parse(id.as_bytes())?,
                ))
            });
            let (mark, id) = pair.ok_or_else(|| failed("it did not say what it wrote"))?;
            ids.insert(mark, id);
        }
        let trees = listed.split(|byte| *byte == b'\n').filter_map(|line| {
            let id = line.strip_prefix(b"040000 tree ")?;
            ObjectId::parse(id.get(..40)?)
        });
        Ok(ImportedCommit {
            ids,
            trees: trees.collect(),
        })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), CheckpointError> {
        let Some(input) = &mut self.input else {
            return Err(self.git.failed(DOING));
        };
        if input.write_all(bytes).is_ok() {
            return Ok(());
        }
        // The process ended early, and its output contains the reason.
        match self.end() {
            Err(error) => Err(error),
            Ok(_) => Err(self.git.failed(DOING)),
        }
    }
}

impl Drop for Import<'_> {
    fn drop(&mut self) {
        // Without `done` it writes no ref.
        if self.input.take().is_some() {
            let _ = self.child.kill();
            let _ = self.child.wait();
            remove_crash_reports(self.git);
        }
    }
}

impl ImportedCommit {
    /// Returns the id of a written object.
    pub fn id(&self, content: EntryContent) -> Result<ObjectId, CheckpointError> {
        match content {
            EntryContent::Known(id) => Ok(id),
            EntryContent::New(mark) => {
                self.ids
                    .get(&mark)
                    .copied()
                    .ok_or_else(|| CheckpointError::Git {
                        doing: DOING,
                        said: "it did not say what it wrote".to_owned(),
                    })
            }
        }
    }
}

/// Removes the reports that git writes when an import is cut off: they repeat its last commands.
pub(crate) fn remove_crash_reports(git: &Git) {
    let Ok(entries) = std::fs::read_dir(git.directory()) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().starts_with("fast_import_crash_") {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Writes a path of the workspace as one of the tree, quoted, and ends the line.
fn push_quoted(path: &[u8], text: &mut Vec<u8>) {
    text.extend(b"\"files/");
    for &byte in path {
        match byte {
            b'"' | b'\\' => text.extend([b'\\', byte]),
            b' '..=b'~' => text.push(byte),
            _ => text.extend(format!("\\{byte:03o}").bytes()),
        }
    }
    text.extend(b"\"\n");
}
