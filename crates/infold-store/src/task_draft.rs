//! A task that is being made from a transcript, invisible until it is published.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use infold_log::{Cause, Role, Seq, Span, steer};
use rustix::io::Errno;
use rustix::process::Pid;
use uuid::Uuid;

use crate::dirs::PLACES;
use crate::imported::{self, Keeper};
use crate::lock;
use crate::{
    AppendError, Contexts, Durability, LogError, Metadata, StepError, TaskError, Trigger, Writer,
};

/// A task that is being made from a transcript: invisible until it is published.
///
/// Dropped without that, or by a crash, it leaves nothing behind that a command would show.
#[derive(Debug)]
pub struct TaskDraft<'a> {
    contexts: &'a Contexts,
    id: Uuid,
    dir: PathBuf,
    sync: bool,
    /// Both until it is finished.
    open: Option<(Writer, Keeper)>,
    batch: Vec<Vec<u8>>,
    /// When each message of the batch was said.
    times: Vec<Option<u64>>,
    size: usize,
    published: bool,
}

/// The error of adding an entry to a draft.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    /// A log would not accept it.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The task could not be made.
    #[error(transparent)]
    Task(#[from] TaskError),
}

impl From<LogError> for DraftError {
    fn from(error: LogError) -> DraftError {
        DraftError::Task(error.into())
    }
}

/// Messages are appended in batches of about this size.
const BATCH: usize = 4 << 20;

impl Contexts {
    /// Starts a task from a transcript of this format and layout.
    pub fn draft(
        &self,
        mut metadata: Metadata,
        format: &str,
        layout: &str,
    ) -> Result<TaskDraft<'_>, DraftError> {
        self.prepare()?;
        self.remove_left_drafts();
        self.keep_names_redacted(&mut metadata)?;
        let dir = self.make_hidden_dir(&mut metadata, &[])?;
        let mut draft = TaskDraft {
            contexts: self,
            id: metadata.uuid,
            dir,
            sync: self.durability != Durability::Never,
            open: None,
            batch: Vec::new(),
            times: Vec::new(),
            size: 0,
            published: false,
        };
        let (mut writer, _) = self.writer(draft.id, &draft.dir)?;
        writer.replays = true;
        let keeper = Keeper::new(&draft.dir, format, layout)?;
        draft.open = Some((writer, keeper));
        Ok(draft)
    }
}

impl Contexts {
    /// Removes drafts of processes on this machine that ended before they were done.
    fn remove_left_drafts(&self) {
        for dir in self.hidden(PLACES[0]).unwrap_or_default() {
            if dir.join(imported::NAME).exists() && is_left_behind(&dir) {
                // The next import tries again.
                let _ = fs::remove_dir_all(&dir);
            }
        }
    }
}

/// Returns whether a task was being created by a process on this machine that is gone.
pub(crate) fn is_left_behind(dir: &Path) -> bool {
    let made = Metadata::read(dir).ok();
    made.is_some_and(|made| {
        let pid = i32::try_from(made.process_id).ok().and_then(Pid::from_raw);
        let is_gone = pid.map(rustix::process::test_kill_process) == Some(Err(Errno::SRCH));
        made.hostname == lock::host() && is_gone
    })
}

impl TaskDraft<'_> {
    /// The id that the task will have.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Takes in a stretch of the transcript, and the messages that came out of it with the time at
    /// which each was said.
    pub fn piece(
        &mut self,
        raw: &[u8],
        messages: Vec<(Vec<u8>, Option<u64>)>,
    ) -> Result<(), DraftError> {
        let (messages, times): (Vec<Vec<u8>>, Vec<Option<u64>>) = messages.into_iter().unzip();
        let Some((writer, keeper)) = &mut self.open else {
            return Ok(());
        };
        let next = writer.log().state().next_seq().get() + self.batch.len() as u64;
        let first = Seq::new(next).expect("it comes after a seq");
        let log = writer.log();
        let redacted = messages.iter().map(|message| log.without_secrets(message));
        let messages: Vec<Vec<u8>> = if log.redacts {
            redacted.map(Cow::into_owned).collect()
        } else {
            messages
        };
        keeper.keep(&log.fragment_without_secrets(raw), &messages, first)?;
        self.size += messages.iter().map(Vec::len).sum::<usize>();
        self.batch.extend(messages);
        self.times.extend(times);
        if self.size < BATCH && self.batch.len() < 4096 {
            Ok(())
        } else {
            self.flush()
        }
    }

    /// Marks where the list of records ends; `filled` says whether it has any.
    pub fn list_end(&mut self, filled: bool) -> Result<(), DraftError> {
        match &mut self.open {
            Some((_, keeper)) => Ok(keeper.list_end(filled)?),
            None => Ok(()),
        }
    }

    /// Folds messages behind a stand-in that the transcript has; `None` if the rules forbid the fold.
    pub fn fold(
        &mut self,
        cause: Cause,
        covers: Span,
        role: Role,
        text: &str,
    ) -> Result<Option<Span>, DraftError> {
        self.flush()?;
        let Some((writer, _)) = &mut self.open else {
            return Ok(None);
        };
        let log = writer.log();
        let mut cover = steer::cover(log.state(), covers, log);
        if let Err(StepError::Waiting { round, .. }) = cover
            && let Some(covers) = round.prev().and_then(|to| Span::new(covers.from(), to))
        {
            // Its agent folded while a call was under way: all but that round.
            cover = steer::cover(log.state(), covers, log);
        }
        let cover = match cover {
            Ok(cover) => cover,
            Err(StepError::Past(error)) => return Err(error.into()),
            Err(_) => return Ok(None),
        };
        let stand_in = vec![(role, text.to_owned())];
        writer.fold(cause, &cover, Trigger::Import, stand_in)?;
        Ok(Some(cover.span))
    }

    /// Ends the transcript: everything is on the disk, and no file stays open.
    pub fn finish(&mut self) -> Result<(), DraftError> {
        self.flush()?;
        if let Some((mut writer, keeper)) = self.open.take() {
            keeper.end(writer.log().state().at(), self.sync)?;
            writer.sync()?;
        }
        Ok(())
    }

    /// Makes it a task like any other.
    pub fn publish(mut self) -> Result<Uuid, DraftError> {
        self.finish()?;
        let born = self.contexts.publish_dir(self.id, &self.dir);
        self.published = born.is_ok() || !self.dir.exists();
        let contexts = self.contexts;
        if let Err(error) = born {
            let (task, source) = (self.id, TaskError::from(error));
            return Err(if self.published {
                TaskError::Made {
                    task,
                    source: Box::new(source),
                }
            } else {
                source
            }
            .into());
        }
        // Opening the registry enters missing rows.
        let entered = contexts
            .opened()
            .and_then(|rows| rows.with(|rows| contexts.enter(self.id, rows)));
        if let Err(error) = entered {
            contexts.tell(&format!(
                "task {} was made; the registry follows by itself as soon as that can be done ({error})",
                self.id
            ));
        }
        Ok(self.id)
    }

    fn flush(&mut self) -> Result<(), DraftError> {
        if let Some((writer, _)) = &mut self.open {
            let batch = std::mem::take(&mut self.batch);
            let times = std::mem::take(&mut self.times);
            self.size = 0;
            let first_event = writer.log().state().next_event();
            if let Some(span) = writer.append_said_at(&batch, &times)? {
                writer.enter_tools(span)?;
                writer.follow_events(first_event);
            }
        }
        Ok(())
    }
}

impl Drop for TaskDraft<'_> {
    fn drop(&mut self) {
        if !self.published {
            // Files first: the writer would write to a directory that is gone.
            drop(self.open.take());
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}
