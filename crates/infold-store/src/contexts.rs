//! A contexts directory: its tasks, and the registry beside them.

mod nearest;
mod reconcile;
mod clean;
mod delete;
mod activity;
mod idle;
mod rows;
mod open_registry;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use infold_log::EventId;
use infold_log::steer::{self, Side, Target};
use infold_wire::Wire;
use uuid::Uuid;

use nearest::nearest;
use open_registry::OpenRegistry;
use reconcile::outcome;

use crate::dirs::{PLACES, TaskDirs};
use crate::event::{EventLine, What};
use crate::file::{self, Access};
use crate::log::shortened;
use crate::metadata::Metadata;
use crate::{
    Counters, Durability, Log, LogError, OpenError, Outcome, RegistryError, Repair, Status,
    StepError, Writer, lock, time,
};

/// A contexts directory: the tasks in it, and the registry beside them.
///
/// The directories are the truth; the registry is put right from them.
#[derive(Clone, Debug)]
pub struct Contexts {
    root: PathBuf,
    pub(crate) durability: Durability,
    kept: Option<OpenRegistry>,
    address: Option<Arc<str>>,
    teller: Option<fn(&str)>,
    redacts: bool,
}

/// Why a task could not be had, sorted by what can be done about it.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// Name another one.
    #[error("no task `{name}`")]
    Unknown {
        /// The given name.
        name: String,
        /// The ids that come nearest.
        nearest: Vec<Uuid>,
    },
    /// Name it in full.
    #[error("`{name}` could be {} tasks", matches.len())]
    Ambiguous {
        /// The given name.
        name: String,
        /// The ids it could mean.
        matches: Vec<Uuid>,
    },
    /// Fork it to go on.
    #[error("task {task} has ended ({status})")]
    Ended {
        /// The task.
        task: Uuid,
        /// How it ended.
        status: Status,
    },
    /// Remove those that continue it, too.
    #[error("task {task} is continued by {}", listed(by))]
    Continued {
        /// The task.
        task: Uuid,
        /// The tasks that continue it.
        by: Vec<Uuid>,
    },
    /// Go on with the task, which was made: making it again would make another one.
    #[error("task {task} was made, then this happened: {source}")]
    Made {
        /// The task.
        task: Uuid,
        /// The cause.
        source: Box<TaskError>,
    },
    /// Wait for the other process.
    #[error("task {task}: {source}")]
    Open {
        /// The task.
        task: Uuid,
        /// The cause.
        source: OpenError,
    },
    /// Have the rest removed.
    #[error("task {task} was removed, but traces of it may be left: {source}")]
    Removed {
        /// The task.
        task: Uuid,
        /// The cause.
        source: Box<TaskError>,
    },
    /// Open the task again: what is left to do is done then.
    #[error("the redaction took effect, but could not be completed: {source}")]
    Redacting {
        /// The cause.
        source: Box<TaskError>,
    },
    /// Ask for something else.
    #[error("task {task}: {source}")]
    Step {
        /// The task.
        task: Uuid,
        /// The cause.
        source: Box<StepError>,
    },
    /// Look at the disk.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Look at the registry.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

impl TaskError {
    /// Why a task could not be opened for writing.
    pub(crate) fn opening(task: Uuid, source: OpenError) -> TaskError {
        match source {
            OpenError::Log(error) => TaskError::Log(error),
            source => TaskError::Open { task, source },
        }
    }

    /// Where the process answers requests that writes to the task, if that is what was in the way.
    pub fn held_at(&self) -> Option<&str> {
        match self {
            TaskError::Open { source, .. } => source.address(),
            _ => None,
        }
    }
}

fn listed(tasks: &[Uuid]) -> String {
    let names: Vec<String> = tasks.iter().map(Uuid::to_string).collect();
    names.join(", ")
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
        }
    }

    /// Says whom to tell what was put right on the way, such as a damaged registry that was made anew.
    pub fn telling(self, teller: fn(&str)) -> Contexts {
        let teller = Some(teller);
        Contexts { teller, ..self }
    }

    /// Returns whether secrets are replaced before they reach the disk.
    pub fn redacting(self, redacts: bool) -> Contexts {
        Contexts { redacts, ..self }
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

    /// Makes a task.
    pub fn create(&self, metadata: Metadata) -> Result<Uuid, TaskError> {
        self.make(metadata, None)
    }

    /// Removes a task that was made just now, could not be written to, and was not announced.
    pub fn unmake(&self, id: Uuid) -> Result<(), TaskError> {
        let dir = self.root.join(PLACES[0]).join(id.to_string());
        // First, for on a full disk it makes room for the rest.
        fs::remove_dir_all(&dir).map_err(|error| LogError::io(&dir, "removed", error))?;
        self.opened()?.with(|rows| rows.remove(id)).map(drop)
    }

    /// Makes a task that continues another one's log, from its end or from a point in it.
    pub fn fork(&self, parent: Uuid, at: Option<Target>) -> Result<Uuid, TaskError> {
        let id = self.fork_as(parent, at, |_| {})?;
        // Its view is there from the start; should this fail, its first writer makes it.
        let _ = self.write(id);
        Ok(id)
    }

    /// The same, for who has other things to say of it than its parent has. Its view is written when it is
    /// first closed: a fork costs the same however much it shows.
    pub fn fork_as(
        &self,
        parent: Uuid,
        at: Option<Target>,
        say: impl FnOnce(&mut Metadata),
    ) -> Result<Uuid, TaskError> {
        let step = |source| TaskError::Step {
            task: parent,
            source: Box::new(source),
        };
        let log = self.read(parent)?;
        if self.is_lasting() {
            // A power cut must not take the entries that the fork refers to and leave the fork.
            log.messages.sync()?;
            log.events.sync()?;
        }
        let at = match at {
            Some(target) => steer::locate(log.state(), Side::To, target, &log).map_err(step)?,
            None => log.state().at(),
        };
        let mut metadata = Metadata::read(log.dir())?;
        say(&mut metadata);
        // Entries before the fork point belong to the task that it was forked from.
        let (parent, at) = log.holder_of(at)?.unwrap_or((parent, at));
        let task = parent.to_string();
        let what = What::Fork { task, at };
        let first = EventLine {
            id: EventId::new(at.event + 1).expect("one more than a count is not zero"),
            ts: time::following(log.last_time()?),
            after: at.seq,
            pass: None,
            what,
        };
        self.make(metadata, Some((parent, first)))
    }

    /// Finds a task by its id, by any prefix of it that no other shares, or, as `@`, by its activity being the newest.
    pub fn resolve(&self, name: &str) -> Result<Uuid, TaskError> {
        if let Some(id) = self.recent(name)? {
            return Ok(id);
        }
        let wanted = name.to_lowercase();
        if let Ok(id) = wanted.parse::<Uuid>()
            && self.place(id).is_some()
        {
            return Ok(id);
        }
        let all = self.tasks()?;
        let mut matches: Vec<Uuid> = all
            .iter()
            .copied()
            .filter(|id| id.to_string().starts_with(&wanted))
            .collect();
        match matches.len() {
            1 if !wanted.is_empty() => Ok(matches.remove(0)),
            0 => Err(TaskError::Unknown {
                name: name.to_owned(),
                nearest: nearest(&wanted, all),
            }),
            _ => Err(TaskError::Ambiguous {
                name: name.to_owned(),
                matches,
            }),
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
            // A redaction may have replaced files after some of them were opened; it comes and goes in the root.
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

    /// Brings the registry's counters up to what a writer wrote.
    ///
    /// They are set, not added to: then nothing that went wrong before stays wrong.
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
            // It had been ended so before, and only now was that carried through.
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

    fn make(
        &self,
        mut metadata: Metadata,
        fork: Option<(Uuid, EventLine)>,
    ) -> Result<Uuid, TaskError> {
        let registry = self.reconciled()?;
        // A registry that stays open gets the row of a task that nothing refers to with its next use.
        let can_wait = fork.is_none() && self.kept.is_some();
        let first = fork
            .as_ref()
            .map(|(_, line)| line.encode())
            .unwrap_or_default();
        let next = self.unborn(&mut metadata, &first)?;
        if let Some((parent, _)) = fork {
            // From here on `clean` spares the parent, whether or not the fork comes to be.
            let known = registry.with(|rows| rows.add_fork(metadata.uuid, parent))?;
            if !known && self.place(parent).is_none() {
                registry.with(|rows| rows.remove(metadata.uuid))?;
                let _ = fs::remove_dir_all(&next);
                return Err(self.unknown(parent));
            }
            // The state at that point is stored with the fork, so that opening the fork opens no ancestor.
            let indexed = Log::open(&next, Access::Write, &self.dirs());
            let indexed = indexed.and_then(|(mut log, _)| log.flush());
            if let Err(error) = indexed {
                registry.with(|rows| rows.remove(metadata.uuid))?;
                let _ = fs::remove_dir_all(&next);
                return Err(error.into());
            }
        }
        let id = metadata.uuid;
        let entered = self
            .bear(id, &next)
            .map_err(TaskError::from)
            .and_then(|()| {
                let row = metadata.row(Status::Running);
                if can_wait {
                    registry.enter_soon(row);
                    return Ok(true);
                }
                registry.with(|rows| rows.insert(&row))
            });
        match entered {
            Ok(_) => Ok(id),
            Err(error) => {
                let _ = fs::remove_dir_all(&next);
                let _ = self.unmake(id);
                let source = Box::new(error);
                if self.root.join(PLACES[0]).join(id.to_string()).exists() {
                    Err(TaskError::Made { task: id, source })
                } else {
                    Err(*source)
                }
            }
        }
    }

    /// Makes sure that there is a place for tasks, and a registry that can be used.
    pub(crate) fn prepare(&self) -> Result<(), TaskError> {
        if self.root.join(PLACES[0]).is_dir() {
            self.opened().map(drop)
        } else {
            self.reconciled().map(drop)
        }
    }

    /// Makes the directory of a task that is not visible yet.
    pub(crate) fn unborn(
        &self,
        metadata: &mut Metadata,
        events: &[u8],
    ) -> Result<PathBuf, LogError> {
        metadata.uuid = Uuid::new_v4();
        metadata.created_at = time::now();
        metadata.process_id = std::process::id();
        metadata.hostname = lock::host();
        if self.redacts {
            metadata.redact();
        }
        let running = self.root.join(PLACES[0]);
        let next = running.join(format!("{HIDDEN}{}", metadata.uuid));
        self.furnish(&next, metadata, events).inspect_err(|_| {
            let _ = fs::remove_dir_all(&next);
        })?;
        Ok(next)
    }

    /// Makes the directory of a task again that is gone altogether; its log is empty.
    pub(crate) fn replace_lost(&self, id: Uuid, wire: Wire) -> Result<PathBuf, LogError> {
        let metadata = Metadata {
            uuid: id,
            created_at: time::now(),
            process_id: std::process::id(),
            hostname: lock::host(),
            wire: Some(wire.name().to_owned()),
            ..Metadata::default()
        };
        let running = self.root.join(PLACES[0]);
        let next = running.join(format!("{HIDDEN}{id}"));
        self.furnish(&next, &metadata, &[]).inspect_err(|_| {
            let _ = fs::remove_dir_all(&next);
        })?;
        self.bear(id, &next)?;
        Ok(running.join(id.to_string()))
    }

    /// Makes the files of a new task.
    fn furnish(&self, next: &Path, metadata: &Metadata, events: &[u8]) -> Result<(), LogError> {
        file::make_dir(next)?;
        for (name, bytes) in [
            (Metadata::NAME, metadata.encode().as_bytes()),
            ("messages.jsonl", &[]),
            ("events.jsonl", events),
            ("current.jsonl", &[]),
        ] {
            // They are invisible before the directory has its name; an empty file has no bytes to lose.
            let lasting = self.is_lasting() && !bytes.is_empty();
            file::write_new(&next.join(name), bytes, lasting)?;
        }
        Ok(())
    }

    /// Gives the directory of a new task its name.
    pub(crate) fn bear(&self, id: Uuid, next: &Path) -> Result<(), LogError> {
        if self.is_lasting() {
            file::sync_dir(next)?;
        }
        let running = self.root.join(PLACES[0]);
        let dir = running.join(id.to_string());
        fs::rename(next, &dir).map_err(|error| LogError::io(&dir, "made", error))?;
        if self.is_lasting() {
            file::sync_dir(&running)
        } else {
            Ok(())
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
        if dir
            .parent()
            .is_some_and(|parent| parent.ends_with(PLACES[1]))
        {
            let log = self.read(id)?;
            let status = end_of(&log)?.map_or(Status::Completed, |(status, _)| status);
            return Err(TaskError::Ended { task: id, status });
        }
        // A registry that cannot be used is told of before anything is written, not after.
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

/// How a task's log says that it ended, if it does. What was redacted since then did not make it go on.
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
