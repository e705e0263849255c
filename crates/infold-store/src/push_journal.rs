//! The journal of a push (`pending.json`): where both files of a log ended before it. As long as it is there, nothing behind that is shown.

use std::cell::Cell;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use infold_wire::Json;

use crate::entry::{EventEntry, MessageEntry};
use crate::event::EventLine;
use crate::file::{self, Access, Growing};
use crate::lines::Lines;
use crate::table::Table;
use crate::{LogError, stored};

/// Where a log ended when a push began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The length of `messages.jsonl`.
    pub messages: u64,
    /// The length of `events.jsonl`.
    pub events: u64,
    /// The seq of the first message of the push.
    pub next_seq: u64,
    /// The number of the first event of the push.
    pub next_event: u64,
}

/// The journal of a push that is under way.
#[derive(Debug)]
pub struct PushJournal {
    path: PathBuf,
    file: File,
    is_lasting: bool,
    /// Whether it hides nothing any more.
    is_emptied: Cell<bool>,
}

const NAME: &str = "pending.json";

impl PushJournal {
    /// Notes where a log ends, before a push begins.
    pub fn begin(dir: &Path, ends: Ends, is_lasting: bool) -> Result<PushJournal, LogError> {
        let path = dir.join(NAME);
        let text = ends.encode();
        let written = file::write_new(&path, text.as_bytes(), is_lasting);
        // The name must be there before anything that it keeps from being shown.
        let named = written.and_then(|()| {
            if is_lasting {
                file::sync_dir(dir)
            } else {
                Ok(())
            }
        });
        let opened = named.and_then(|()| {
            let opened = file::options().write(true).open(&path);
            opened.map_err(|error| LogError::io(&path, "opened", error))
        });
        match opened {
            Ok(file) => Ok(PushJournal {
                path,
                file,
                is_lasting,
                is_emptied: Cell::new(false),
            }),
            Err(error) => {
                let _ = fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// Ends the push: from now on it is shown, whole.
    ///
    /// Emptied and forced onto the disk first: a name that comes back after a power cut hides nothing.
    pub fn end(&self) -> Result<(), LogError> {
        let emptied = self.file.set_len(0);
        self.is_emptied.set(emptied.is_ok());
        let ended = emptied.and_then(|()| {
            if self.is_lasting {
                self.file.sync_data()
            } else {
                Ok(())
            }
        });
        ended.map_err(|error| LogError::io(&self.path, "emptied", error))?;
        let _ = fs::remove_file(&self.path);
        Ok(())
    }

    /// Returns whether it hides the pushed lines from readers.
    pub fn is_hiding(&self) -> bool {
        !self.is_emptied.get()
    }
}

impl Ends {
    fn encode(self) -> String {
        let Ends {
            messages,
            events,
            next_seq,
            next_event,
        } = self;
        format!(
            r#"{{"messages":{messages},"events":{events},"next_seq":{next_seq},"next_event":{next_event}}}"#
        )
    }

    /// Reads the journal of a task; none if no push is under way. One that is not whole was never followed by anything.
    pub fn read(dir: &Path) -> Result<Option<Ends>, LogError> {
        let path = dir.join(NAME);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::IsADirectory
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(LogError::io(&path, "read", error)),
        };
        Ok(Ends::decode(&bytes))
    }

    fn decode(bytes: &[u8]) -> Option<Ends> {
        let json = Json::parse(bytes).ok()?;
        let number = |key| {
            let number = json.get(key)?.number()?;
            (number >= 0.0 && number.fract() == 0.0).then_some(number as u64)
        };
        Some(Ends {
            messages: number("messages")?,
            events: number("events")?,
            next_seq: number("next_seq")?,
            next_event: number("next_event")?,
        })
    }

    /// Returns whether these are ends of lines, and the following lines are the entries that a push would have
    /// added. A log that was mended since has other ones.
    pub fn fit(self, messages: &Growing, events: &Growing) -> Result<bool, LogError> {
        if !ends_line(messages, self.messages)? || !ends_line(events, self.events)? {
            return Ok(false);
        }
        let seq = Lines::new(messages, self.messages).next()?.map(|line| {
            let stored = stored::split(line.bytes).filter(|_| line.whole);
            stored.is_none_or(|stored| stored.seq.get() == self.next_seq)
        });
        let event = Lines::new(events, self.events).next()?.map(|line| {
            let event = EventLine::decode(line.bytes).ok().filter(|_| line.whole);
            event.is_none_or(|event| event.id.get() == self.next_event)
        });
        Ok(seq.unwrap_or(true) && event.unwrap_or(true))
    }
}

fn ends_line(file: &Growing, end: u64) -> Result<bool, LogError> {
    if end == 0 || end > file.len() {
        return Ok(end == 0);
    }
    Ok(file.bytes(end - 1, 1)? == b"\n")
}

/// Removes the lines of a push that was not completed; returns their size. The caller holds the task's lock.
pub fn withdraw(dir: &Path) -> Result<Option<u64>, LogError> {
    let path = dir.join(NAME);
    let Some(ends) = Ends::read(dir)? else {
        // A push that was stopped at its very end leaves an empty journal.
        let _ = fs::remove_file(&path);
        return Ok(None);
    };
    let mut events = Growing::open(dir.join("events.jsonl"), Access::Write)?;
    let mut messages = Growing::open(dir.join("messages.jsonl"), Access::Write)?;
    let mut bytes = 0;
    if ends.fit(&messages, &events)? {
        for (file, end) in [(&mut events, ends.events), (&mut messages, ends.messages)] {
            bytes += file.len() - end;
            file.cut(end)?;
            file.sync()?;
        }
        // The sidecars are cut before the journal is removed: otherwise the lines of the push would be reported as missing.
        Table::<EventEntry>::cut_file(&dir.join("events.idx"), ends.next_event.saturating_sub(1))?;
        Table::<MessageEntry>::cut_file(
            &dir.join("messages.idx"),
            ends.next_seq.saturating_sub(1),
        )?;
    }
    fs::remove_file(&path).map_err(|error| LogError::io(&path, "removed", error))?;
    Ok(Some(bytes))
}
