//! The log of one task, opened: its messages and events by number, and the state they lead to.

mod line;
mod states;
mod ancestor;
mod ancestors;
mod lineage;
mod lookup;
mod past;
mod ties;
mod secrets;
mod grow;
mod compare;
mod files;
mod catch_up;

use std::cell::{OnceCell, RefCell};
use std::path::{Path, PathBuf};

use infold_log::{EventId, Past, Point, Rounds, Seq, State, Sums};
use infold_wire::{Message, Wire};

use crate::dirs::TaskDirs;
use crate::entry::{EventEntry, MessageEntry, Spent};
use crate::event::{Usage, What};
use crate::file::{Access, Growing};
use crate::push_journal::Ends;
use crate::table::Table;
use crate::{LogError, Metadata};
pub use files::FilesAt;
pub(crate) use grow::message_entry;
pub(crate) use line::LinePlace;
use lineage::{Lineage, first_event};
pub(crate) use lineage::{continued_by, kept_parent, lists_ancestor, remove_sidecar};
use states::States;
pub(crate) use ties::Ahead;

/// The log of one task: its messages and events, by number, and the state they lead to.
///
/// Reading takes no lock. What a log holds was there when it was opened.
#[derive(Debug)]
pub struct Log {
    dir: PathBuf,
    pub(crate) messages: Growing,
    pub(crate) events: Growing,
    entries: Table<MessageEntry>,
    marks: Table<EventEntry>,
    states: States,
    /// The last entries of the task that it continues.
    base: Point,
    parent: Option<(String, Point)>,
    lineage: Lineage,
    state: State,
    wire: Wire,
    /// Secrets are replaced before anything is written.
    pub(crate) redacts: bool,
    /// Whether the sidecars contain all lines of the log.
    is_caught_up: bool,
    /// The same log without its sidecars, once one of them turned out to be damaged in its middle.
    rederived: OnceCell<Box<Log>>,
    /// The state of the last round; `None` if it has to be derived from the messages again.
    rounds: Option<Rounds>,
    /// The last report that was looked at, and the last message before it: it is asked for again and again.
    reported: RefCell<Option<(EventId, Usage, u64)>>,
}

/// Bytes at the end of a log that are not part of it: where each file's good part ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// Torn bytes in `messages.jsonl` start here.
    pub messages: Option<u64>,
    /// Torn bytes in `events.jsonl`, or events whose messages were torn, start here.
    pub events: Option<u64>,
    /// Messages and events that the sidecars did not know.
    pub unindexed: u64,
    /// Lines that the sidecars know and the files, which became shorter, no longer have.
    pub missing: MissingLines,
}

/// Lines at the end of a log that its sidecars know and its files do not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissingLines {
    /// Lines of `messages.jsonl`.
    pub messages: u64,
    /// Lines of `events.jsonl`.
    pub events: u64,
}

impl MissingLines {
    /// Returns the name of each file that became shorter, and how many lines it lacks.
    pub fn files(self) -> impl Iterator<Item = (&'static str, u64)> {
        let files = [
            ("messages.jsonl", self.messages),
            ("events.jsonl", self.events),
        ];
        files.into_iter().filter(|(_, lines)| *lines > 0)
    }
}

/// Says that a file became shorter.
pub(crate) fn shortened(name: &str, lines: u64) -> String {
    format!("{name} is shorter than its index knew: lines missing at its end: {lines}")
}

impl Log {
    /// Opens the log in `dir`. A torn record at its end is left out and reported.
    ///
    /// Tasks that it continues are opened only when one of their entries is requested.
    pub fn open(dir: &Path, access: Access, dirs: &TaskDirs) -> Result<(Log, Tail), LogError> {
        check_present(dir)?;
        let (events, messages) = open_files(dir, access)?;
        let parent = match first_event(&events)? {
            Some(What::Fork { task, at }) => Some((task, at)),
            _ if kept_parent(dir).is_some() => {
                let reason = "its first event, which says what the task continues, is damaged";
                return Err(LogError::damaged(events.path(), 0, reason));
            }
            _ => None,
        };
        let base = parent.as_ref().map_or(Point::default(), |(_, at)| *at);
        let mut log = Log::with_files(dir, access, base, events, messages)?;
        log.lineage = match &parent {
            Some((task, at)) => Lineage::open(dir, task, *at, dirs.clone(), access)?,
            None => Lineage::none(),
        };
        log.parent = parent;
        let tail = log.catch_up(None)?;
        log.is_caught_up = access != Access::Rederive;
        Ok((log, tail))
    }

    /// Opens the files of a log whose own entries begin after `base`.
    fn with_base(dir: &Path, access: Access, base: Point) -> Result<Log, LogError> {
        let (events, messages) = open_files(dir, access)?;
        Log::with_files(dir, access, base, events, messages)
    }

    fn with_files(
        dir: &Path,
        access: Access,
        base: Point,
        events: Growing,
        messages: Growing,
    ) -> Result<Log, LogError> {
        Ok(Log {
            dir: dir.to_owned(),
            messages,
            events,
            entries: Table::open(dir.join("messages.idx"), base.seq, access)?,
            marks: Table::open(dir.join("events.idx"), base.event, access)?,
            states: States::open(dir.join("states.idx"), access)?,
            base,
            parent: None,
            lineage: Lineage::none(),
            state: State::default(),
            wire: Metadata::read(dir).map_or(Wire::Chat, |metadata| metadata.form()),
            redacts: false,
            is_caught_up: false,
            rederived: OnceCell::new(),
            rounds: None,
            reported: RefCell::default(),
        })
    }

    /// Returns its path.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The state after its last entry.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The wire in whose form it shows stand-ins and notes: that of its task.
    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// The totals over all messages.
    pub fn sums(&self) -> Result<Sums, LogError> {
        match self.state.last_seq() {
            Some(last) => Ok(self.record(last)?.sums),
            None => Ok(Sums::default()),
        }
    }

    /// Where the tasks are that it continues.
    pub(crate) fn dirs(&self) -> &TaskDirs {
        &self.lineage.dirs
    }

    /// When its last entry was made, in milliseconds since 1970; zero if it has none.
    pub fn last_time(&self) -> Result<u64, LogError> {
        // The event that the task continues another has a later time than the entries of that task.
        let own = self
            .state
            .last_seq()
            .filter(|seq| seq.get() > self.base.seq);
        let message = own.map(|seq| self.record(seq)).transpose()?;
        let event = self
            .state
            .last_event()
            .map(|id| self.mark(id))
            .transpose()?;
        let last_seq = own.map_or(0, |seq| seq.get());
        let time = match (message, event) {
            (_, Some(mark)) if mark.after >= last_seq => mark.time,
            (Some(record), _) => record.time,
            (None, event) => event.map_or(0, |mark| mark.time),
        };
        Ok(time)
    }

    /// Returns the newest event that changed the view; zero if there is none.
    pub fn last_change(&self) -> Result<u64, LogError> {
        Ok(self.last_own_event()?.map_or(0, |entry| entry.change))
    }

    /// Returns the last message before the newest change of the view: messages up to there followed others than
    /// those that precede them now.
    pub fn changed_before(&self) -> Result<Option<Seq>, LogError> {
        match EventId::new(self.last_change()?) {
            Some(change) => Ok(Seq::new(self.mark(change)?.after)),
            // The task that it continues may have been folded before the fork.
            None => Ok(Seq::new(self.base.seq)),
        }
    }

    /// Returns the last usage reported for the view, if only messages came since the view last changed; and the
    /// tokens counted for messages and excerpts after it.
    pub fn last_usage(&self) -> Result<Option<(Usage, u64)>, LogError> {
        let last = self.last_own_event()?;
        let report = last.filter(|last| last.report > last.change);
        let Some(id) = report.and_then(|last| EventId::new(last.report)) else {
            return Ok(None);
        };
        let known = self.reported.borrow().clone();
        let (usage, after) = match known.filter(|(known, ..)| *known == id) {
            Some((_, usage, after)) => (usage, after),
            None => {
                let line = self.event(id)?;
                let What::Usage(usage) = line.what else {
                    return Ok(None);
                };
                *self.reported.borrow_mut() = Some((id, usage.clone(), line.after));
                (usage, line.after)
            }
        };
        let counted = match Seq::new(after) {
            Some(seq) => self.record(seq)?.sums.tokens,
            None => 0,
        };
        let recalls = self.state.shown().all_recalls();
        let recalled = recalls.filter(|(recall, _)| *recall > id);
        let recalled: u64 = recalled.map(|(_, recall)| recall.tokens).sum();
        Ok(Some((usage, self.sums()?.tokens - counted + recalled)))
    }

    /// How many summary folds and tool records this task itself has.
    pub fn counts(&self) -> Result<(u64, u64), LogError> {
        Ok(self
            .last_own_event()?
            .map_or((0, 0), |entry| (entry.summaries, entry.tools)))
    }

    /// Returns the usage totals of this task itself, as reported.
    pub(crate) fn spent(&self) -> Result<Spent, LogError> {
        Ok(self
            .last_own_event()?
            .map_or(Spent::default(), |entry| entry.spent))
    }

    /// The newest event of this task itself that says that messages were pushed with a key.
    pub(crate) fn last_keyed_push(&self) -> Result<Option<EventId>, LogError> {
        let last = self.last_own_event()?;
        Ok(last.and_then(|last| EventId::new(last.keyed)))
    }

    /// Returns the first seq and the first event in this task's own files.
    pub fn own(&self) -> Point {
        Point {
            seq: self.base.seq + 1,
            event: self.base.event + 1,
        }
    }

    /// Returns whether nothing came to it since it was made.
    pub(crate) fn is_untouched(&self) -> bool {
        let Point { seq, event } = self.state.at();
        // The first event of a fork says that it continues another task.
        let made = self.base.event + u64::from(self.parent.is_some());
        seq == self.base.seq && event == made
    }

    /// Reads the bytes of a message that is in the log.
    pub(crate) fn parsed<'a>(&self, seq: Seq, bytes: &'a [u8]) -> Result<Message<'a>, LogError> {
        Message::read(bytes).map_err(|error| {
            let at = self.entry(seq).map_or(0, |entry| entry.offset);
            let reason = format!("message {seq}: {error}");
            LogError::damaged(self.messages.path(), at, reason)
        })
    }

    /// Returns whether its files have others in their place since they were opened.
    pub(crate) fn is_replaced(&self) -> bool {
        self.messages.is_replaced() || self.events.is_replaced()
    }

    /// Returns the error for an invalid sidecar.
    fn sidecar_damaged(&self, reason: &str) -> LogError {
        LogError::damaged(&self.dir.join("messages.idx"), 0, reason)
    }

    fn last_own_event(&self) -> Result<Option<EventEntry>, LogError> {
        let last = self.marks.last();
        (last > self.base.event)
            .then(|| self.marks.get(last))
            .transpose()
    }
}

/// Checks that a task has its log: both files are there from the moment it is made.
fn check_present(dir: &Path) -> Result<(), LogError> {
    for name in ["messages.jsonl", "events.jsonl"] {
        let path = dir.join(name);
        // A directory that has just been moved away lacks both.
        if !path.exists() && dir.join("metadata.json").exists() {
            return Err(LogError::damaged(&path, 0, "the file is missing"));
        }
    }
    Ok(())
}

/// Opens the two files of a log.
fn open_files(dir: &Path, access: Access) -> Result<(Growing, Growing), LogError> {
    loop {
        let pending = Ends::read(dir)?;
        // Events first: one that is seen has its messages before it. And none came in
        // between: messages without the event before them make a state that never was.
        let mut events = Growing::open(dir.join("events.jsonl"), access)?;
        let mut messages = Growing::open(dir.join("messages.jsonl"), access)?;
        if events.len_on_disk()? != events.len() || Ends::read(dir)? != pending {
            continue;
        }
        if let Some(ends) = pending.filter(|_| access != Access::Write)
            && ends.fit(&messages, &events)?
        {
            // A push is under way, or was cut short: nothing of it is shown.
            events.forget(ends.events);
            messages.forget(ends.messages);
        }
        return Ok((events, messages));
    }
}
