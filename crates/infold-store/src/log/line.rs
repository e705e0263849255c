//! Reads single lines of a log, and checks them against the sidecars.

use std::ops::Range;

use infold_log::{EventId, Seq};

use crate::entry::{EventEntry, MessageEntry};
use crate::event::EventLine;
use crate::file::Growing;
use crate::stored::Original;
use crate::{LogError, stored};

/// How much of a file is read at once.
const PIECE: u64 = 256 << 10;

/// The position of a line in its file, and its checksum, both including its line break.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinePlace {
    pub offset: u64,
    pub len: u32,
    pub sum: u32,
}

impl LinePlace {
    /// The place of a line with its line break.
    pub fn of(offset: u64, line: &[u8]) -> LinePlace {
        LinePlace {
            offset,
            // Lines are bounded far below four gigabytes when they are written.
            len: u32::try_from(line.len()).unwrap_or(u32::MAX),
            sum: crc32fast::hash(line),
        }
    }

    /// The place of a line whose line break was left out.
    pub fn of_unbroken(offset: u64, line: &[u8]) -> LinePlace {
        let mut sum = crc32fast::Hasher::new();
        sum.update(line);
        sum.update(b"\n");
        LinePlace {
            offset,
            len: u32::try_from(line.len() + 1).unwrap_or(u32::MAX),
            sum: sum.finalize(),
        }
    }
}

/// Returns a message as it came.
pub(super) fn read_message(
    file: &Growing,
    seq: Seq,
    entry: &MessageEntry,
) -> Result<Vec<u8>, LogError> {
    let mut line = file.bytes(entry.offset, entry.len as usize)?;
    check_message(file, seq, entry, &line)?;
    line.truncate(entry.cut as usize);
    // The bookkeeping starts where the message's last brace was.
    line.push(b'}');
    Ok(line)
}

/// Returns the original digest of a message, if it was redacted.
pub(super) fn read_original(
    file: &Growing,
    seq: Seq,
    entry: &MessageEntry,
) -> Result<Option<Original>, LogError> {
    let line = file.bytes(entry.offset, entry.len as usize)?;
    check_message(file, seq, entry, &line)?;
    let stored = line.strip_suffix(b"\n").and_then(stored::split);
    Ok(stored.and_then(|stored| stored.redacted))
}

/// Returns an event.
pub(super) fn read_event(
    file: &Growing,
    id: EventId,
    entry: &EventEntry,
) -> Result<EventLine, LogError> {
    let line = file.bytes(entry.offset, entry.len as usize)?;
    let damaged = |reason| LogError::damaged(file.path(), entry.offset, reason);
    if crc32fast::hash(&line) != entry.sum {
        if let Ok(found) = EventLine::decode(&line)
            && found.id == id
            && (found.ts, found.after) != (entry.mark.time, entry.mark.after)
        {
            return Err(stale(file));
        }
        return Err(damaged(format!("event {id} is not what was written")));
    }
    EventLine::decode(&line).map_err(damaged)
}

/// Checks the line of a message against its entry.
pub(super) fn check_message(
    file: &Growing,
    seq: Seq,
    entry: &MessageEntry,
    line: &[u8],
) -> Result<(), LogError> {
    if crc32fast::hash(line) == entry.sum {
        return Ok(());
    }
    // A whole line of that number that was written at another time: then the entry is of another one.
    let found = line.strip_suffix(b"\n").and_then(stored::split);
    if found.is_some_and(|found| found.seq == seq && found.time != entry.record.time) {
        return Err(stale(file));
    }
    let reason = format!("message {seq} is not what was written");
    Err(LogError::damaged(file.path(), entry.offset, reason))
}

/// Returns whether a message's line stands where its entry says. Its content is not looked at.
pub(super) fn message_fits(
    file: &Growing,
    seq: u64,
    entry: &MessageEntry,
) -> Result<bool, LogError> {
    if entry.offset + u64::from(entry.len) > file.len() {
        return Ok(false);
    }
    let line = file.bytes(entry.offset, entry.len as usize)?;
    let stored = line.strip_suffix(b"\n").and_then(stored::split);
    Ok(stored.is_some_and(|stored| {
        stored.seq.get() == seq
            && stored.cut == entry.cut as usize
            && stored.time == entry.record.time
    }))
}

/// Returns whether an event's line stands where its entry says.
pub(super) fn event_fits(file: &Growing, event: u64, entry: &EventEntry) -> Result<bool, LogError> {
    if entry.offset + u64::from(entry.len) > file.len() {
        return Ok(false);
    }
    let line = file.bytes(entry.offset, entry.len as usize)?;
    Ok(line.ends_with(b"\n")
        && EventLine::decode(&line).is_ok_and(|line| {
            line.id.get() == event && line.ts == entry.mark.time && line.after == entry.mark.after
        }))
}

fn stale(file: &Growing) -> LogError {
    let sidecar = file.path().with_extension("idx");
    LogError::damaged(&sidecar, 0, "it is of another log")
}

/// Messages that stand together in a file, read at once.
#[derive(Debug, Default)]
pub(crate) struct Group {
    bytes: Vec<u8>,
    bodies: Vec<(Seq, Range<usize>)>,
}

impl Group {
    /// Reads messages from one on, up to another or as many as are read at once.
    pub fn read(
        file: &Growing,
        from: Seq,
        to: Seq,
        entry: impl Fn(Seq) -> Result<MessageEntry, LogError>,
    ) -> Result<Group, LogError> {
        let first = entry(from)?;
        let (mut next, mut end) = (from, first.offset);
        let mut entries = Vec::new();
        while next <= to {
            let one = entry(next)?;
            let line_end = one.offset + u64::from(one.len);
            // Each line starts at the end of the one before it, or the entries belong to different files.
            if one.offset != end || next > from && line_end - first.offset > PIECE {
                break;
            }
            entries.push((next, one));
            (next, end) = (next.next(), line_end);
        }
        let mut bytes = file.bytes(first.offset, (end - first.offset) as usize)?;
        let mut bodies = Vec::with_capacity(entries.len());
        for (seq, entry) in entries {
            let start = (entry.offset - first.offset) as usize;
            let line = &bytes[start..start + entry.len as usize];
            check_message(file, seq, &entry, line)?;
            let last = start + entry.cut as usize;
            // The bookkeeping starts where the message's last brace was.
            bytes[last] = b'}';
            bodies.push((seq, start..last + 1));
        }
        Ok(Group { bytes, bodies })
    }

    /// The messages as they came.
    pub fn messages(&self) -> impl Iterator<Item = (Seq, &[u8])> {
        self.bodies
            .iter()
            .map(|(seq, body)| (*seq, &self.bytes[body.clone()]))
    }

    /// The last of them.
    pub fn last(&self) -> Option<Seq> {
        self.bodies.last().map(|(seq, _)| *seq)
    }
}
