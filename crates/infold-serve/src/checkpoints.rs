//! Takes snapshots of a workspace when a conversation begins, and when a request brings results of calls that may have
//! written. The snapshot is taken during the provider's call and completed before the client gets the reply: until then
//! the client changes no file.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use infold::checkpoint::{FileHistory, FilesError, ResultScan, record};
use infold_store::{CheckpointNote, Contexts};
use infold_wire::Message;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;
use uuid::Uuid;

use crate::conversations::Core;
use crate::exchange_recorder::catch_panic;
use crate::{ConversationError, Exchange, ModelCall, locked};

/// Keeps the files of a workspace.
#[derive(Debug)]
pub(crate) struct WorkspaceCheckpoints {
    files: FileHistory,
    workspace: PathBuf,
    /// Snapshots are taken one after another: the repository has one lock.
    one_at_a_time: Mutex<()>,
    /// Whether a failed or slow snapshot was reported; it is reported once.
    is_told: AtomicBool,
}

/// The time that a reply waits for a snapshot.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// The number of messages at the end of a request that are examined.
const MAX_SCANNED_MESSAGES: usize = 512;

impl WorkspaceCheckpoints {
    pub fn new(contexts: &Contexts, workspace: PathBuf) -> WorkspaceCheckpoints {
        WorkspaceCheckpoints {
            files: FileHistory::new(contexts),
            workspace,
            one_at_a_time: Mutex::new(()),
            is_told: AtomicBool::new(false),
        }
    }

    fn tell(&self, why: &str) {
        if !self.is_told.swap(true, Relaxed) {
            let workspace = self.workspace.display();
            tracing::warn!(%workspace, why, "a checkpoint was not taken in time");
        }
    }
}

/// A snapshot that is being taken.
pub(crate) struct PendingCheckpoint {
    taken: JoinHandle<()>,
    of: Arc<WorkspaceCheckpoints>,
}

impl PendingCheckpoint {
    /// Begins to take a snapshot for a request, if there is a workspace.
    pub fn begin(
        core: &Arc<Core>,
        call: &ModelCall,
        exchange: &Exchange,
    ) -> Option<PendingCheckpoint> {
        let of = Arc::clone(core.checkpoints.as_ref()?);
        let messages = &exchange.parsed.envelope.messages;
        let first = messages.len().saturating_sub(MAX_SCANNED_MESSAGES);
        let (task, last) = (exchange.task(), messages[first..].to_vec());
        let (core, call, taker) = (Arc::clone(core), call.clone(), Arc::clone(&of));
        let taken = spawn_blocking(move || {
            let mut scan = ResultScan::default();
            let mut newest_first = last.iter().rev();
            let has_written = newest_first.find_map(|range| {
                let bytes = call.body.part(range).ok()?;
                scan.push(&Message::parse(&bytes).ok()?)
            });
            let done =
                catch_panic(|| core.take_checkpoint(&taker, task, has_written == Some(true)));
            match done {
                Some(Ok(())) => {}
                Some(Err(error)) => taker.tell(&error.to_string()),
                None => taker.tell("it panicked"),
            }
        });
        Some(PendingCheckpoint { taken, of })
    }

    /// Waits until the snapshot is taken, up to a limit.
    pub async fn wait(self) {
        if timeout(MAX_WAIT, self.taken).await.is_err() {
            self.of.tell("it takes longer than replies wait");
        }
    }
}

/// The reason that a snapshot could not be taken.
#[derive(Debug, thiserror::Error)]
enum TakeError {
    #[error(transparent)]
    Files(#[from] FilesError),
    #[error(transparent)]
    Conversation(#[from] ConversationError),
}

impl Core {
    fn take_checkpoint(
        &self,
        of: &WorkspaceCheckpoints,
        task: Uuid,
        has_written: bool,
    ) -> Result<(), TakeError> {
        let (is_first, above) = {
            let open = self.pool.lease(task).map_err(ConversationError::from)?;
            let last = open.log().last_files().map_err(ConversationError::from)?;
            let above = open
                .log()
                .last_checkpoint()
                .map_err(ConversationError::from)?;
            (last.is_none(), above)
        };
        if !is_first && !has_written {
            return Ok(());
        }
        let (snapshot, workspace, notes) = {
            let _guard = locked(&of.one_at_a_time);
            of.files.snapshot(task, above, &of.workspace)?
        };
        for note in notes {
            tracing::warn!("{note}");
        }
        let note = if is_first {
            CheckpointNote::Start
        } else {
            CheckpointNote::Step
        };
        let mut open = self.pool.lease(task).map_err(ConversationError::from)?;
        record(&mut open.writer, &workspace, &snapshot, note).map_err(ConversationError::from)?;
        open.wrote();
        Ok(())
    }
}
