//! The sidecars as they are on disk, against the log that they were derived from.

use infold_log::{EventId, Seq};

use super::states::States;
use super::{MissingLines, line};
use crate::entry::{Base, EventEntry, MessageEntry};
use crate::file::Access;
use crate::table::Table;
use crate::{Log, LogError};

/// The differences between the sidecars on disk and newly derived ones.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    /// Lines that differ from what was written.
    pub damaged: Vec<LogError>,
    /// Sidecars that differ from the log.
    pub stale: Vec<&'static str>,
    /// Lines that only the sidecars know.
    pub missing: MissingLines,
}

impl Log {
    /// Compares this log, which trusts no sidecar, with the sidecars on disk, as far as they go.
    pub(crate) fn compare_sidecars(&self) -> Result<Differences, LogError> {
        let mut found = Differences::default();
        let (base, dir) = (self.base, &self.dir);
        let entries: Table<MessageEntry> =
            Table::open(dir.join("messages.idx"), base.seq, Access::Read)?;
        for number in base.seq + 1..=entries.last().min(self.entries.last()) {
            let fresh = self.entries.get(number)?;
            let Some(kept) = sound(entries.get(number))? else {
                found.stale.push("messages.idx");
                break;
            };
            if (kept.offset, kept.len) != (fresh.offset, fresh.len) {
                found.stale.push("messages.idx");
                break;
            }
            if kept.sum != fresh.sum {
                let seq = Seq::new(number).expect("counted from one");
                let read = line::read_message(&self.messages, seq, &kept);
                found.damaged.extend(read.err());
            } else if kept != fresh {
                found.stale.push("messages.idx");
                break;
            }
        }
        let marks = Table::open(dir.join("events.idx"), base.event, Access::Read)?;
        self.compare_events(&marks, &mut found)?;
        if found.stale.is_empty() {
            found.missing = sound(self.missing_lines(&entries, &marks))?.unwrap_or_default();
        }
        Ok(found)
    }

    fn compare_events(
        &self,
        marks: &Table<EventEntry>,
        found: &mut Differences,
    ) -> Result<(), LogError> {
        let states = States::open(self.dir.join("states.idx"), Access::Read)?;
        for number in self.base.event + 1..=marks.last().min(self.marks.last()) {
            let fresh = self.marks.get(number)?;
            let kept = sound(marks.get(number))?;
            let Some(kept) =
                kept.filter(|kept| (kept.offset, kept.len) == (fresh.offset, fresh.len))
            else {
                found.stale.push("events.idx");
                break;
            };
            if kept.sum != fresh.sum {
                let id = EventId::new(number).expect("counted from one");
                found
                    .damaged
                    .extend(line::read_event(&self.events, id, &kept).err());
                // Later states were derived from the line as it was written.
                break;
            }
            if kept != fresh {
                found.stale.push("events.idx");
                break;
            }
            if let Base::Snapshot { offset, len } = kept.base
                && sound(states.get(number, offset, len))?
                    != Some(self.states.get(number, offset, len)?)
            {
                found.stale.push("states.idx");
                break;
            }
        }
        Ok(())
    }
}

/// A record; none if it is damaged.
fn sound<T>(read: Result<T, LogError>) -> Result<Option<T>, LogError> {
    match read {
        Err(error) if error.is_of_sidecar() => Ok(None),
        read => read.map(Some),
    }
}
