//! The journal of a restoration, written before it begins.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use uuid::Uuid;

use crate::error::CheckpointError;
use crate::id::SnapshotRef;
use crate::last_snapshot::replace_file;

/// A restoration that is prepared, or was cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingRestore {
    /// The id that the caller gave it.
    pub id: String,
    /// The task that it is for.
    pub task: Uuid,
    /// The snapshot of the workspace before it.
    pub from: SnapshotRef,
    /// The snapshot to restore.
    pub to: SnapshotRef,
}

/// The file that is there from before a restoration begins until after it has ended.
#[derive(Debug)]
pub(crate) struct Journal {
    pub pending: PendingRestore,
    path: PathBuf,
}

impl Journal {
    pub fn path(directory: &Path) -> PathBuf {
        directory.join("restoring.json")
    }

    pub fn write(directory: &Path, pending: PendingRestore) -> Result<Journal, CheckpointError> {
        let path = Journal::path(directory);
        let text = json!({
            "id": pending.id,
            "task": pending.task.to_string(),
            "from": ref_json(pending.from),
            "to": ref_json(pending.to),
        });
        replace_file(&path, text.to_string().as_bytes())?;
        let written = fs::File::open(&path).and_then(|file| file.sync_all());
        written.map_err(|error| CheckpointError::io("written", &path, error))?;
        Ok(Journal { pending, path })
    }

    /// Reads the journal of a directory, or says why it makes no sense.
    pub fn read(directory: &Path) -> Result<Option<Journal>, String> {
        let path = Journal::path(directory);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let json: Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        let pending = pending_of(&json).ok_or("a field is missing")?;
        Ok(Some(Journal { pending, path }))
    }

    pub fn remove(self) -> Result<(), CheckpointError> {
        fs::remove_file(&self.path)
            .map_err(|error| CheckpointError::io("removed", &self.path, error))
    }
}

fn pending_of(json: &Value) -> Option<PendingRestore> {
    Some(PendingRestore {
        id: json.get("id")?.as_str()?.to_owned(),
        task: json.get("task")?.as_str()?.parse().ok()?,
        from: ref_of(json.get("from")?)?,
        to: ref_of(json.get("to")?)?,
    })
}

fn ref_json(at: SnapshotRef) -> Value {
    json!({"task": at.task.to_string(), "number": at.number})
}

fn ref_of(json: &Value) -> Option<SnapshotRef> {
    Some(SnapshotRef {
        task: json.get("task")?.as_str()?.parse().ok()?,
        number: json.get("number")?.as_u64()?,
    })
}
