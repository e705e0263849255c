//! A task that a log continues: its files and sidecars, opened one by one as they are needed.

use std::path::{Path, PathBuf};

use infold_log::{EventId, Point, Seq};
use uuid::Uuid;

use super::line::{self, Group};
use super::lineage::no_fork_point;
use super::lookup::StateSource;
use super::states::States;
use crate::entry::{Base, EventEntry, MessageEntry};
use crate::event::EventLine;
use crate::file::{Access, Growing};
use crate::stored::Original;
use crate::table::Table;
use crate::{Log, LogError};

/// A task that a log continues, read up to the point where it was forked. Those that it continues itself are not opened.
#[derive(Debug)]
pub(super) struct Ancestor {
    pub task: Uuid,
    dir: PathBuf,
    base: Point,
    end: Point,
    /// Its sidecars could not be used: they were derived, and are not derived again.
    pub is_derived: bool,
    messages: Option<Growing>,
    events: Option<Growing>,
    entries: Option<Table<MessageEntry>>,
    marks: Option<Table<EventEntry>>,
    states: Option<States>,
}

impl Ancestor {
    /// An ancestor whose own entries lie after `base` and count up to `end`. No file is opened yet.
    pub fn new(task: Uuid, dir: PathBuf, base: Point, end: Point) -> Ancestor {
        Ancestor {
            task,
            dir,
            base,
            end,
            is_derived: false,
            messages: None,
            events: None,
            entries: None,
            marks: None,
            states: None,
        }
    }

    /// An ancestor whose sidecars were derived.
    pub fn derived(task: Uuid, log: Log, end: Point) -> Ancestor {
        let mut ancestor = Ancestor {
            entries: Some(log.entries),
            marks: Some(log.marks),
            states: Some(log.states),
            is_derived: true,
            ..Ancestor::new(task, log.dir, log.base, end)
        };
        ancestor.close();
        ancestor
    }

    /// Returns its path.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The point after which its own entries begin.
    pub fn base(&self) -> Point {
        self.base
    }

    /// The last of its entries that count.
    pub fn end(&self) -> Point {
        self.end
    }

    /// Gives all descriptors back. What was derived is kept.
    pub fn close(&mut self) {
        (self.messages, self.events) = (None, None);
        if let Some(entries) = &mut self.entries {
            entries.release();
        }
        if let Some(marks) = &mut self.marks {
            marks.release();
        }
        if let Some(states) = &mut self.states {
            states.release();
        }
    }

    /// Checks that it has all entries up to its end, and that its end is a point of its log.
    pub fn check_end(&mut self) -> Result<(), LogError> {
        self.messages()?;
        self.events()?;
        if self.end.event > self.base.event && self.mark(self.end.event)?.mark.after > self.end.seq
        {
            return Err(no_fork_point(self.task));
        }
        Ok(())
    }

    /// Returns the index entry of a message.
    pub fn entry(&mut self, seq: u64) -> Result<MessageEntry, LogError> {
        self.entries()?.get(seq)
    }

    /// Returns the index entry of an event.
    pub fn mark(&mut self, event: u64) -> Result<EventEntry, LogError> {
        self.marks()?.get(event)
    }

    /// Where the state after an event is found.
    pub fn kept(&mut self, event: u64) -> Result<(u64, StateSource), LogError> {
        let entry = self.mark(event)?;
        let kept = match entry.base {
            Base::Before => StateSource::Before,
            Base::Same(point) => StateSource::Same(point),
            Base::Snapshot { offset, len } => {
                StateSource::Shown(self.states()?.get(event, offset, len)?)
            }
        };
        Ok((entry.mark.after, kept))
    }

    /// Returns a message as it came.
    pub fn message(&mut self, seq: Seq) -> Result<Vec<u8>, LogError> {
        let entry = self.entry(seq.get())?;
        line::read_message(self.messages()?, seq, &entry)
    }

    /// Returns the digest of a redacted message's original.
    pub fn redacted(&mut self, seq: Seq) -> Result<Option<Original>, LogError> {
        let entry = self.entry(seq.get())?;
        line::read_original(self.messages()?, seq, &entry)
    }

    /// Returns an event.
    pub fn event(&mut self, id: EventId) -> Result<EventLine, LogError> {
        let entry = self.mark(id.get())?;
        line::read_event(self.events()?, id, &entry)
    }

    /// Messages that stand together, from one on up to another at most.
    pub fn group(&mut self, from: Seq, to: Seq) -> Result<Group, LogError> {
        self.entries()?;
        self.messages()?;
        match (&self.entries, &self.messages) {
            (Some(entries), Some(messages)) => {
                Group::read(messages, from, to, |seq| entries.get(seq.get()))
            }
            _ => Ok(Group::default()),
        }
    }

    fn entries(&mut self) -> Result<&Table<MessageEntry>, LogError> {
        if self.entries.is_none() {
            let path = self.dir.join("messages.idx");
            let entries = Table::open(path.clone(), self.base.seq, Access::Read)?;
            if entries.last() < self.end.seq {
                return Err(behind(path));
            }
            self.entries = Some(entries);
        }
        let entries = self.entries.as_mut().expect("it was opened above");
        entries.reopen()?;
        Ok(entries)
    }

    fn marks(&mut self) -> Result<&Table<EventEntry>, LogError> {
        if self.marks.is_none() {
            let path = self.dir.join("events.idx");
            let marks = Table::open(path.clone(), self.base.event, Access::Read)?;
            if marks.last() < self.end.event {
                return Err(behind(path));
            }
            self.marks = Some(marks);
        }
        let marks = self.marks.as_mut().expect("it was opened above");
        marks.reopen()?;
        Ok(marks)
    }

    fn states(&mut self) -> Result<&States, LogError> {
        if self.states.is_none() {
            let path = self.dir.join("states.idx");
            self.states = Some(States::open(path, Access::Read)?);
        }
        let states = self.states.as_mut().expect("it was opened above");
        states.reopen()?;
        Ok(states)
    }

    fn messages(&mut self) -> Result<&Growing, LogError> {
        if self.messages.is_none() {
            let file = Growing::open(self.dir.join("messages.jsonl"), Access::Read)?;
            if self.end.seq > self.base.seq {
                let last = self.entry(self.end.seq)?;
                check_file_length(&file, last.offset + u64::from(last.len))?;
            }
            self.messages = Some(file);
        }
        Ok(self.messages.as_ref().expect("it was opened above"))
    }

    fn events(&mut self) -> Result<&Growing, LogError> {
        if self.events.is_none() {
            let file = Growing::open(self.dir.join("events.jsonl"), Access::Read)?;
            if self.end.event > self.base.event {
                let last = self.mark(self.end.event)?;
                check_file_length(&file, last.offset + u64::from(last.len))?;
            }
            self.events = Some(file);
        }
        Ok(self.events.as_ref().expect("it was opened above"))
    }
}

/// Checks that a file has everything that its sidecar covers; if it has not, the sidecar has to be derived
/// again.
fn check_file_length(file: &Growing, end: u64) -> Result<(), LogError> {
    if file.len() < end {
        Err(behind(file.path().with_extension("idx")))
    } else {
        Ok(())
    }
}

/// A sidecar that does not know all that it should: it is derived.
fn behind(path: PathBuf) -> LogError {
    LogError::damaged(&path, 0, "it is behind the log")
}
