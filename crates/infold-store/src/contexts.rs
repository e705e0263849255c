//! A contexts directory: its tasks and its registry.

mod error;
mod create;
mod nearest;
mod reconcile;
mod clean;
mod delete;
mod activity;
mod idle;
mod rows;
mod open_registry;
mod queue;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use infold_checkpoint::{CheckpointSettings, Checkpoints};
use infold_log::EventId;
use uuid::Uuid;

pub use error::TaskError;
use nearest::with_prefix;
use open_registry::OpenRegistry;
pub use queue::{Enqueued, NewTask, recorded_status};
use reconcile::outcome;

use crate::dirs::{PLACES, TaskDirs, is_among_ended};
use crate::event::What;
use crate::file::Access;
use crate::log::shortened;
use crate::{Counters, Durability, Log, LogError, Outcome, Repair, Status, TaskRow, Writer};

/// A contexts directory: its tasks and its registry.
///
/// The directories are authoritative; the registry is corrected from them.
#[derive(Clone, Debug)]
pub struct Contexts {
    root: PathBuf,
    pub(crate) durability: Durability,
    kept: Option<OpenRegistry>,
    address: Option<Arc<str>>,
    teller: Option<fn(&str)>,
    redacts: bool,
    checkpoints: CheckpointSettings,
}

/// Directories on their way in or out; no task has such a name.
const HIDDEN: &str = ".";

impl Contexts {
    /// Names a contexts directory. It is made when the first task is.
    pub fn new(root: impl Into<PathBuf>, durability: Durability) -> Contexts {
        Contexts {
            root: root.into(),
            durability,
            kept: None,
            address: None,
            teller: None,
            redacts: false,
            checkpoints: CheckpointSettings::default(),
        }
    }

    /// Sets the function that receives notices of repairs, such as of a damaged registry that was rebuilt.
    pub fn telling(self, teller: fn(&str)) -> Contexts {
        let teller = Some(teller);
        Contexts { teller, ..self }
    }

    /// Returns whether secrets are replaced before they reach the disk.
    pub fn redacting(self, redacts: bool) -> Contexts {
        Contexts { redacts, ..self }
    }

    /// Says how the files of workspaces are kept.
    pub fn keeping_files(self, checkpoints: CheckpointSettings) -> Contexts {
        Contexts {
            checkpoints,
            ..self
        }
    }

    /// Returns the checkpoints of workspaces.
    pub fn checkpoints(&self) -> Checkpoints {
        Checkpoints::new(&self.root, self.checkpoints.clone())
    }

    /// Returns how the files of workspaces are kept.
    pub fn checkpoint_settings(&self) -> &CheckpointSettings {
        &self.checkpoints
    }

    /// Secrets are replaced before they reach the disk.
    pub fn redacts(&self) -> bool {
        self.redacts
    }

    pub(crate) fn tell(&self, what: &str) {
        if let Some(teller) = self.teller {
            teller(what);
        }
    }

    /// Lets who finds a task held learn where its holder answers requests.
    pub fn at(self, address: &str) -> Contexts {
        let address = Some(address.into());
        Contexts { address, ..self }
    }

    /// Where its writers answer requests, if they do.
    pub fn address(&self) -> Option<&str> {
        self.address.as_deref()
    }

    /// Returns its path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Finds a task by its id, by any prefix of it that no other shares, or, as `@`, by its activity being the newest.
    pub fn resolve(&self, name: &str) -> Result<Uuid, TaskError> {
        if let Some(id) = self.recent(name)? {
            return Ok(id);
        }
        if let Ok(id) = name.to_lowercase().parse::<Uuid>()
            && self.place(id).is_some()
        {
            return Ok(id);
        }
        with_prefix(name, self.tasks()?)
    }

    /// Finds a task by its name among some of them, newest activity first: `@2` is the second of these, and nothing is said of
    /// others.
    pub fn resolve_among(name: &str, rows: &[TaskRow]) -> Result<Uuid, TaskError> {
        let recent = activity::recent_place(name).and_then(|place| rows.get(place));
        match recent {
            Some(row) => Ok(row.uuid),
            None => with_prefix(name, rows.iter().map(|row| row.uuid).collect()),
        }
    }

    /// All tasks, by the directories that are there.
    pub fn tasks(&self) -> Result<Vec<Uuid>, LogError> {
        let mut all = Vec::new();
        for place in PLACES {
            all.extend(self.tasks_in(place)?);
        }
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }

    /// The directory of a task.
    pub fn place(&self, id: Uuid) -> Option<PathBuf> {
        self.dirs().find(id)
    }

    /// Opens a task for reading. Takes no lock.
    pub fn read(&self, id: Uuid) -> Result<Log, TaskError> {
        /// More redactions than this do not come in the way of one reader.
        const MAX_TRIES: usize = 8;
        let mut tries = 0;
        loop {
            self.settle_redaction()?;
            let seen = self.last_change_of_root();
            let opened = self.moving(id, |dir| Ok(Log::open(dir, Access::Read, &self.dirs())?));
            tries += 1;
            // A redaction that began and ended meanwhile may have replaced files after some of them were
            // opened.
            let is_mixed = match &opened {
                Ok((log, _)) => log.is_replaced(),
                Err(TaskError::Log(LogError::Damaged { .. })) => self.last_change_of_root() != seen,
                Err(_) => false,
            };
            if !is_mixed || tries >= MAX_TRIES {
                let (mut log, tail) = opened?;
                for (name, lines) in tail.missing.files() {
                    self.tell(&format!("task {id}: {}", shortened(name, lines)));
                }
                log.redacts = self.redacts;
                return Ok(log);
            }
        }
    }

    fn last_change_of_root(&self) -> Option<SystemTime> {
        fs::metadata(&self.root)
            .and_then(|meta| meta.modified())
            .ok()
    }

    /// Opens a task that another process may move while it is looked up.
    fn moving<T>(
        &self,
        id: Uuid,
        open: impl Fn(&Path) -> Result<T, TaskError>,
    ) -> Result<T, TaskError> {
        for _ in 0..3 {
            match open(&self.known(id)?) {
                Err(TaskError::Log(LogError::Io { source, .. }))
                    if source.kind() == io::ErrorKind::NotFound => {}
                opened => return opened,
            }
        }
        Err(self.unknown(id))
    }

    /// Opens a task for writing.
    pub fn write(&self, id: Uuid) -> Result<(Writer, Vec<Repair>), TaskError> {
        self.settle_redaction()?;
        let opened = self.moving(id, |dir| self.writer(id, dir));
        let (writer, repairs) = match opened {
            Err(TaskError::Ended { .. }) if self.reopen_idle(id)? => {
                self.moving(id, |dir| self.writer(id, dir))?
            }
            opened => opened?,
        };
        if let Some((status, error)) = end_of(writer.log())? {
            // A crash came between the end of the task and its moving.
            self.settle_end(id, writer, &outcome(status, error));
            return Err(TaskError::Ended { task: id, status });
        }
        if !repairs.is_empty() {
            // The writer that left it so may not have updated the counters.
            let counted = self.recount(writer.log())?;
            self.opened()?.with(|rows| rows.set_counters(id, counted))?;
        }
        Ok((writer, repairs))
    }

    /// Updates the registry's counters to those of a writer.
    ///
    /// They are set, not added to, so that an earlier error does not persist.
    pub fn settle(&self, id: Uuid, writer: &Writer) -> Result<(), TaskError> {
        let registry = self.opened()?;
        let counted = self.recount(writer.log())?;
        registry.with(|rows| {
            if rows.get(id)?.is_some_and(|row| row.counters != counted) {
                rows.set_counters(id, counted)?;
            }
            self.note_activity(id, writer.log(), rows)
        })
    }

    /// Ends a task: the log says so first, then the registry, then its directory moves.
    ///
    /// A crash or an error in between leaves a task that the log calls ended; opening it, or the
    /// registry, carries on from there.
    pub fn finish(&self, id: Uuid, end: &Outcome) -> Result<Vec<Repair>, TaskError> {
        let running = self.root.join(PLACES[0]).join(id.to_string()).is_dir();
        let (mut writer, repairs) = match self.write(id) {
            // It had ended with this status before, and its end has only now been completed.
            Err(TaskError::Ended { status, .. }) if running && status == end.status() => {
                return Ok(Vec::new());
            }
            opened => opened?,
        };
        let error = match end {
            Outcome::Failed { error } => Some(writer.log().text_without_secrets(error)),
            Outcome::Completed => None,
        };
        let status = end.status();
        let end = &outcome(status, error.clone());
        writer.step(What::Status {
            status,
            error,
            is_idle: false,
        })?;
        self.settle_end(id, writer, end);
        Ok(repairs)
    }

    /// Counts a task's calls, tokens and folds from its log.
    pub fn recount(&self, log: &Log) -> Result<Counters, TaskError> {
        let mut sums = log.sums()?;
        if let Some(base) = infold_log::Seq::new(log.own().seq - 1) {
            let inherited = infold_log::Past::record(log, base)?.sums;
            sums.tokens -= inherited.tokens;
            sums.replies -= inherited.replies;
        }
        let (compressions, tool_calls) = log.counts()?;
        // Without reported usage, the log is counted.
        let spent = log.spent()?;
        let (llm_calls, tokens) = match spent.calls {
            0 => (sums.replies, sums.tokens),
            calls => (calls, spent.tokens),
        };
        Ok(Counters {
            llm_calls,
            tool_calls,
            tokens,
            compressions,
            cached: spent.cached,
            cost: spent.cost,
        })
    }

    /// Makes sure that there is a place for tasks, and a registry that can be used.
    pub(crate) fn prepare(&self) -> Result<(), TaskError> {
        if self.root.join(PLACES[0]).is_dir() {
            self.opened().map(drop)
        } else {
            self.reconciled().map(drop)
        }
    }

    /// Returns whether anything is ever forced onto the disk.
    fn is_lasting(&self) -> bool {
        self.durability != Durability::Never
    }

    /// Where its tasks are.
    pub(crate) fn dirs(&self) -> TaskDirs {
        TaskDirs::of(&self.root)
    }

    fn known(&self, id: Uuid) -> Result<PathBuf, TaskError> {
        self.place(id).ok_or_else(|| self.unknown(id))
    }

    fn unknown(&self, id: Uuid) -> TaskError {
        TaskError::Unknown {
            name: id.to_string(),
            nearest: Vec::new(),
        }
    }

    pub(crate) fn writer(&self, id: Uuid, dir: &Path) -> Result<(Writer, Vec<Repair>), TaskError> {
        if is_among_ended(dir) {
            let log = self.read(id)?;
            let status = end_of(&log)?.map_or(Status::Completed, |(status, _)| status);
            return Err(TaskError::Ended { task: id, status });
        }
        // Report an unusable registry before anything is written.
        self.opened()?;
        let opened = Writer::open_at(dir, self.durability, &self.dirs(), self.address());
        let (mut writer, repairs) = opened.map_err(|source| TaskError::opening(id, source))?;
        writer.log_mut().redacts = self.redacts;
        Ok((writer, repairs))
    }

    fn tasks_in(&self, place: &str) -> Result<Vec<Uuid>, LogError> {
        let dir = self.root.join(place);
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(LogError::io(&dir, "read", error)),
        };
        let mut tasks = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| LogError::io(&dir, "read", error))?;
            tasks.extend(
                entry
                    .file_name()
                    .to_str()
                    .and_then(|name| name.parse::<Uuid>().ok()),
            );
        }
        Ok(tasks)
    }
}

/// Returns the status with which a task's log ended, if it did. A later redaction does not count as a
/// continuation.
pub fn end_of(log: &Log) -> Result<Option<(Status, Option<String>)>, LogError> {
    let own = log.own().event;
    let mut last = log.state().last_event();
    while let Some(id) = last.filter(|id| id.get() >= own) {
        match log.event(id)?.what {
            What::Redact(_) => last = EventId::new(id.get() - 1),
            What::Status { status, error, .. } if status.is_end() => {
                return Ok(Some((status, error)));
            }
            _ => break,
        }
    }
    Ok(None)
}
