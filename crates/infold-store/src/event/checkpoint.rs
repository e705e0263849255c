//! Snapshots of a workspace, and restorations of one.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use infold_checkpoint::SnapshotRef;
use infold_log::EventId;
use infold_wire::{Json, quote};

use super::{number, text};

/// A snapshot of the files of a workspace. It follows the messages whose effect it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointLine {
    /// Its number among the snapshots of the task that holds the event.
    pub number: u64,
    /// The workspace.
    pub workspace: PathBuf,
    /// The numbers of files that differ from the previous snapshot.
    pub files: FileCounts,
    /// How many files are not in it, such as those that are too large.
    pub left_out: u64,
    /// Why it was taken.
    pub note: CheckpointNote,
}

/// How many files differ between two snapshots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileCounts {
    /// Files that are new.
    pub added: u64,
    /// Files that differ.
    pub changed: u64,
    /// Files that are gone.
    pub removed: u64,
}

/// Why a snapshot was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointNote {
    /// Before the first step of a task that is carried out, or at the first request of a conversation.
    Start,
    /// Behind calls that may have changed files.
    Step,
    /// On request, by a command.
    Command,
    /// Before other files were put in place.
    Restore,
    /// A reason of a later version.
    Other(String),
}

/// A restoration of a workspace: it has the files of `to` since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreLine {
    /// The rewind, undo or redo that it belongs to, which stands right before it.
    pub step: EventId,
    /// The workspace.
    pub workspace: PathBuf,
    /// The snapshot of the files before.
    pub from: SnapshotRef,
    /// The snapshot that was restored.
    pub to: SnapshotRef,
    /// The name of the restoration in the journal of the workspace.
    pub id: String,
}

impl fmt::Display for FileCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FileCounts {
            added,
            changed,
            removed,
        } = self;
        write!(f, "{added} added, {changed} changed, {removed} removed")
    }
}

impl CheckpointNote {
    /// Its name in events.
    pub fn name(&self) -> &str {
        match self {
            CheckpointNote::Start => "start",
            CheckpointNote::Step => "step",
            CheckpointNote::Command => "command",
            CheckpointNote::Restore => "restore",
            CheckpointNote::Other(name) => name,
        }
    }

    fn read(name: String) -> CheckpointNote {
        match name.as_str() {
            "start" => CheckpointNote::Start,
            "step" => CheckpointNote::Step,
            "command" => CheckpointNote::Command,
            "restore" => CheckpointNote::Restore,
            _ => CheckpointNote::Other(name),
        }
    }
}

impl CheckpointLine {
    pub(super) fn encode(&self) -> String {
        let CheckpointLine {
            number,
            files,
            left_out,
            ..
        } = self;
        let FileCounts {
            added,
            changed,
            removed,
        } = files;
        let workspace = encode_path(&self.workspace);
        let note = quote(self.note.name());
        format!(
            r#","number":{number}{workspace},"files":{{"added":{added},"changed":{changed},"removed":{removed}}},"left_out":{left_out},"note":{note}"#
        )
    }

    pub(super) fn decode(json: Json<'_>) -> Option<CheckpointLine> {
        let files = json.get("files")?;
        Some(CheckpointLine {
            number: number(json, "number")?,
            workspace: decode_path(json)?,
            files: FileCounts {
                added: number(files, "added")?,
                changed: number(files, "changed")?,
                removed: number(files, "removed")?,
            },
            left_out: number(json, "left_out")?,
            note: CheckpointNote::read(text(json, "note")?),
        })
    }
}

impl RestoreLine {
    pub(super) fn encode(&self) -> String {
        let (step, id) = (self.step.get(), quote(&self.id));
        let workspace = encode_path(&self.workspace);
        let (from, to) = (encode_snapshot(self.from), encode_snapshot(self.to));
        format!(r#","step":{step}{workspace},"from":{from},"to":{to},"restore":{id}"#)
    }

    pub(super) fn decode(json: Json<'_>) -> Option<RestoreLine> {
        Some(RestoreLine {
            step: number(json, "step").and_then(EventId::new)?,
            workspace: decode_path(json)?,
            from: decode_snapshot(json.get("from")?)?,
            to: decode_snapshot(json.get("to")?)?,
            id: text(json, "restore")?,
        })
    }
}

fn encode_snapshot(at: SnapshotRef) -> String {
    format!(r#"{{"task":"{}","number":{}}}"#, at.task, at.number)
}

fn decode_snapshot(json: Json<'_>) -> Option<SnapshotRef> {
    Some(SnapshotRef {
        task: text(json, "task")?.parse().ok()?,
        number: number(json, "number")?,
    })
}

/// Writes a path as text, and its bytes in hexadecimal where it is none.
fn encode_path(path: &Path) -> String {
    let shown = quote(&path.to_string_lossy());
    let bytes = match path.to_str() {
        Some(_) => String::new(),
        None => {
            let bytes = path.as_os_str().as_bytes().iter();
            let hex: String = bytes.map(|byte| format!("{byte:02x}")).collect();
            format!(r#","workspace_bytes":"{hex}""#)
        }
    };
    format!(r#","workspace":{shown}{bytes}"#)
}

fn decode_path(json: Json<'_>) -> Option<PathBuf> {
    let shown = text(json, "workspace")?;
    let Some(hex) = text(json, "workspace_bytes") else {
        return Some(shown.into());
    };
    let pairs = hex.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    let bytes: Vec<u8> = bytes.collect::<Option<_>>()?;
    Some(OsString::from_vec(bytes).into())
}
