//! Repairs what a crash left behind when a task is opened for writing.

use std::fmt;
use std::path::PathBuf;

use crate::current::Current;
use crate::derived::Derived;
use crate::file::{self, Growing};
use crate::lock::Holder;
use crate::log::{Tail, shortened};
use crate::{Log, LogError, working_file};

/// Something that was put in order when a task was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    /// The last writer ended without closing the task.
    StaleLock(Holder),
    /// Torn bytes were moved out of a file.
    Torn {
        /// The file they were in.
        name: &'static str,
        /// How many.
        bytes: u64,
        /// Where they are now.
        moved: PathBuf,
    },
    /// A file of the log became shorter than its index knew.
    Shortened {
        /// The file.
        name: &'static str,
        /// How many lines it lacks.
        lines: u64,
    },
    /// A push was cut short; nothing of it is kept.
    Withdrawn {
        /// How many bytes of it were there.
        bytes: u64,
    },
    /// The sidecars did not know all entries.
    Index {
        /// How many they missed.
        entries: u64,
    },
    /// A derived file was rewritten.
    Rebuilt {
        /// Its name.
        name: &'static str,
    },
    /// A fold was cut off; its temporary file was removed.
    Unfinished {
        /// The file it left.
        name: &'static str,
    },
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Repair::StaleLock(holder) => {
                write!(f, "{holder} had ended without closing the task")
            }
            Repair::Torn { name, bytes, moved } => {
                write!(
                    f,
                    "{bytes} torn bytes of {name} moved to {}",
                    moved.display()
                )
            }
            Repair::Shortened { name, lines } => f.write_str(&shortened(name, *lines)),
            Repair::Withdrawn { bytes } => {
                write!(
                    f,
                    "a push had been cut short; its {bytes} bytes were taken back"
                )
            }
            Repair::Index { entries } => {
                write!(f, "index was behind by {entries} entries; caught up")
            }
            Repair::Unfinished { name } => {
                write!(
                    f,
                    "a fold had been cut short, nothing was folded; {name} removed"
                )
            }
            Repair::Rebuilt { name } => write!(f, "{name} was missing or behind; rebuilt"),
        }
    }
}

/// Moves a torn end of a log aside, and updates the sidecars.
pub fn tail(log: &mut Log, tail: &Tail) -> Result<Vec<Repair>, LogError> {
    let missing = tail.missing.files();
    let mut repairs: Vec<Repair> = missing
        .map(|(name, lines)| Repair::Shortened { name, lines })
        .collect();
    if let Some(at) = tail.events {
        repairs.push(set_aside(&mut log.events, "events.jsonl", at)?);
    }
    if let Some(at) = tail.messages {
        repairs.push(set_aside(&mut log.messages, "messages.jsonl", at)?);
    }
    if tail.unindexed > 0 {
        repairs.push(Repair::Index {
            entries: tail.unindexed,
        });
    }
    log.trim()?;
    log.flush()?;
    Ok(repairs)
}

/// Checks the files that follow from the log: byte by byte after a crash, or if the machine was booted since.
pub fn derived(log: &Log, current: &mut Current, crashed: bool) -> Result<Vec<Repair>, LogError> {
    let mut repairs = Vec::new();
    if let Some(name) = working_file::clear(log.dir())? {
        repairs.push(Repair::Unfinished { name });
    }
    // A writer that closes properly brings them up to the end of the log.
    let is_behind = current.at().is_some_and(|at| at != log.state().at());
    let is_doubtful = crashed || is_behind || current.is_of_another_boot();
    // A damaged log is reported when it is read.
    match follow(log, current, is_doubtful, &mut repairs) {
        Err(LogError::Damaged { .. }) => {}
        followed => followed?,
    }
    Ok(repairs)
}

fn follow(
    log: &Log,
    current: &mut Current,
    is_doubtful: bool,
    repairs: &mut Vec<Repair>,
) -> Result<(), LogError> {
    let mut is_known = !current.is_of_another_boot();
    for derived in Derived::ALL {
        let written = current.written(derived);
        let unknown = match written {
            None if derived.count(log)? > 0 => Some(derived.written(log)?),
            _ => None,
        };
        let is_doubtful = is_doubtful || unknown.is_some();
        *written = unknown.or(*written);
        is_known &= unknown.is_none();
        if !derived.is_current(log)? || is_doubtful && !derived.is_whole(log, *written)? {
            *written = None;
            *written = Some(derived.rewrite(log)?);
            is_known = false;
            repairs.push(Repair::Rebuilt {
                name: derived.name(),
            });
        }
    }
    if current.is_unwritten() && log.is_untouched() {
        // The sidecar is written when the task is closed.
        return Ok(());
    }
    let is_whole = !is_doubtful || current.check_content()?;
    let is_right = current.is_intact() && is_whole;
    if !is_right && !log.is_untouched() {
        repairs.push(Repair::Rebuilt {
            name: "current.jsonl",
        });
    }
    current.follow(log)?;
    if is_known { Ok(()) } else { current.save() }
}

/// Moves the bytes of a file from `at` on aside.
pub fn set_aside(file: &mut Growing, name: &'static str, at: u64) -> Result<Repair, LogError> {
    let bytes = file.len() - at;
    let torn = file.bytes(at, usize::try_from(bytes).unwrap_or(usize::MAX))?;
    let moved = file::free_name_aside(file.path());
    file::replace(&moved, &torn)?;
    file::sync_dir(file.path().parent().unwrap_or(file.path()))?;
    file.cut(at)?;
    file.sync()?;
    Ok(Repair::Torn { name, bytes, moved })
}
