//! Keeps the files of the workspace while a task is carried out.

use std::path::PathBuf;

use infold::checkpoint::FileHistory;
use infold_store::{CheckpointNote, Contexts, Writer};

/// Keeps the files of the workspace while a task is carried out.
#[derive(Debug)]
pub struct RunCheckpoints {
    files: FileHistory,
    workspace: PathBuf,
    /// Whether a problem was reported; only the first is.
    is_told: bool,
}

impl RunCheckpoints {
    /// Keeps the files of a workspace.
    pub fn new(contexts: &Contexts, workspace: PathBuf) -> RunCheckpoints {
        RunCheckpoints {
            files: FileHistory::new(contexts),
            workspace,
            is_told: false,
        }
    }

    /// Takes a snapshot; returns its notices. The task continues in any case.
    pub(crate) fn take(&mut self, writer: &mut Writer, note: CheckpointNote) -> Vec<String> {
        match self.files.take(writer, &self.workspace, note) {
            Ok(taken) => taken.notes,
            Err(_) if self.is_told => Vec::new(),
            Err(error) => {
                self.is_told = true;
                vec![format!("no checkpoint: {error}")]
            }
        }
    }
}
