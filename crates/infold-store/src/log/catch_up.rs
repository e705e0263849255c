//! Reads the part of a log that its sidecars lack, and derives it.

use infold_log::{EventId, Past as _, Point, Record, State};
use infold_wire::Message;

use super::line::{LinePlace, event_fits, message_fits};
use super::lineage::no_fork_point;
use crate::entry::{Base, EventEntry, MessageEntry};
use crate::event::EventLine;
use crate::file::{Access, Growing};
use crate::lines::Lines;
use crate::log::{Ahead, MissingLines, Tail, message_entry};
use crate::push_journal::Ends;
use crate::table::{Fixed as _, Table};
use crate::{Log, LogError, stored};

impl Log {
    /// Updates the sidecars to the files, or to a point of them, reading only the part that they lack.
    pub(super) fn catch_up(&mut self, end: Option<Point>) -> Result<Tail, LogError> {
        let known = self.trusted().and_then(|(at, missing)| {
            self.resume(at)?;
            Ok(missing)
        });
        let caught_up = known.and_then(|missing| {
            let tail = self.merge(end)?;
            Ok(Tail { missing, ..tail })
        });
        match caught_up {
            // A broken sidecar is no loss, because all of it can be derived again.
            Err(error) if error.is_of_sidecar() => {
                self.resume(self.base)?;
                self.merge(end)
            }
            caught_up => caught_up,
        }
    }

    /// Removes the entries after a point, which the sidecars on disk cover, and which were cut off again.
    pub(crate) fn roll_back(&mut self, at: Point) -> Result<(), LogError> {
        self.resume(at)?;
        self.trim()
    }

    /// Resumes the log at a point that the sidecars cover, and drops their later entries.
    fn resume(&mut self, at: Point) -> Result<(), LogError> {
        self.entries.cut(at.seq)?;
        self.marks.cut(at.event)?;
        let snapshot = match self.last_own_event()? {
            Some(entry) if entry.snapshot > self.base.event => entry.snapshot,
            _ => self.base.event,
        };
        let end = if snapshot > self.base.event {
            match self.marks.get(snapshot)?.base {
                Base::Snapshot { offset, len } => {
                    // Snapshots may not have reached the disk with the records that name them.
                    self.states.get(snapshot, offset, len)?;
                    offset + len
                }
                _ => 0,
            }
        } else {
            0
        };
        self.states.cut(end);
        let mark = EventId::new(at.event).map(|id| self.mark(id)).transpose()?;
        // The last event before a point never lies behind messages that come after the point.
        if mark.is_some_and(|mark| mark.after > at.seq)
            && let Some(parent) = self.lineage.link(0)?.filter(|_| at == self.base)
        {
            return Err(no_fork_point(parent.task));
        }
        self.rounds = None;
        self.state = State::resume(at, mark, self.shown(at)?);
        Ok(())
    }

    /// Returns up to where the sidecars agree with the files and with each other, and the lines that only the sidecars know.
    fn trusted(&self) -> Result<(Point, MissingLines), LogError> {
        let mut seq = self.entries.last_within(self.messages.len())?;
        let mut event = self.marks.last_within(self.events.len())?;
        if !self.fits(Point { seq, event })? {
            return Ok((self.base, MissingLines::default()));
        }
        let missing = self.missing_lines(&self.entries, &self.marks)?;
        while event > self.base.event && self.marks.get(event)?.mark.after > seq {
            event -= 1;
        }
        // An event the sidecar missed may lie before messages that it knows; those were
        // derived after it, but their records may not outlive the derivation of the event.
        let next = if event > self.base.event {
            self.marks.get(event)?.line_end()
        } else {
            0
        };
        if let Some(line) = Lines::new(&self.events, next).next()?
            && let Ok(line) = EventLine::decode(line.bytes)
        {
            seq = seq.min(line.after.max(self.base.seq));
        }
        // Check the records read on the way, so that damage to one is reported here.
        self.entries.check_read()?;
        self.marks.check_read()?;
        Ok((Point { seq, event }, missing))
    }

    /// Counts the lines that sidecars know beyond the ends of the files.
    pub(super) fn missing_lines(
        &self,
        entries: &Table<MessageEntry>,
        marks: &Table<EventEntry>,
    ) -> Result<MissingLines, LogError> {
        // The files as they are now: a writer may have appended since they were opened.
        let missing = MissingLines {
            messages: entries.last() - entries.last_within(self.messages.len_on_disk()?)?,
            events: marks.last() - marks.last_within(self.events.len_on_disk()?)?,
        };
        // A push that is being taken back is cut off the files before the sidecars follow.
        if missing != MissingLines::default() && Ends::read(&self.dir)?.is_some() {
            return Ok(MissingLines::default());
        }
        Ok(missing)
    }

    fn fits(&self, at: Point) -> Result<bool, LogError> {
        let Point { seq, event } = at;
        let fits =
            seq <= self.base.seq || message_fits(&self.messages, seq, &self.entries.get(seq)?)?;
        Ok(fits
            && (event <= self.base.event
                || event_fits(&self.events, event, &self.marks.get(event)?)?))
    }

    /// Reads messages and events that the sidecars do not know, in the order they happened.
    fn merge(&mut self, end: Option<Point>) -> Result<Tail, LogError> {
        // The files are lent out while their lines change the rest of the log.
        let path = self.messages.path().to_owned();
        let messages = std::mem::replace(&mut self.messages, Growing::open(path, Access::Read)?);
        let path = self.events.path().to_owned();
        let events = std::mem::replace(&mut self.events, Growing::open(path, Access::Read)?);
        let merged = self.merge_lines(&messages, &events, end);
        self.messages = messages;
        self.events = events;
        merged
    }

    fn merge_lines(
        &mut self,
        messages: &Growing,
        events: &Growing,
        end: Option<Point>,
    ) -> Result<Tail, LogError> {
        let Point { seq, event } = self.state.at();
        let from = self.entry_end(seq)?.unwrap_or_default();
        let mut message_lines = Lines::new(messages, from);
        let from = if event > self.base.event {
            self.marks.get(event)?.line_end()
        } else {
            0
        };
        let mut event_lines = Lines::new(events, from);
        let mut tail = Tail::default();
        let mut next = read_event(&mut event_lines, events, &mut tail)?;
        loop {
            while let Some((line, place)) =
                next.take_if(|(line, _)| line.after <= self.state.at().seq)
            {
                if line.id != self.state.next_event() || line.after != self.state.at().seq {
                    let reason = format!("event {} is out of order", line.id);
                    return Err(LogError::damaged(events.path(), place.offset, reason));
                }
                self.took_event(&line, place)?;
                tail.unindexed += 1;
                next = read_event(&mut event_lines, events, &mut tail)?;
            }
            let at = self.state.at();
            if end.is_some_and(|end| at.seq >= end.seq && at.event >= end.event) {
                return Ok(tail);
            }
            if !self.read_message(&mut message_lines, messages, &mut tail)? {
                break;
            }
        }
        if let Some((_, place)) = next {
            // Its messages are not there, so it cannot be applied.
            tail.events = Some(place.offset);
        }
        Ok(tail)
    }

    fn entry_end(&self, seq: u64) -> Result<Option<u64>, LogError> {
        if seq <= self.base.seq {
            return Ok(None);
        }
        Ok(Some(self.entries.get(seq)?.line_end()))
    }

    fn read_message(
        &mut self,
        lines: &mut Lines<'_>,
        file: &Growing,
        tail: &mut Tail,
    ) -> Result<bool, LogError> {
        let seq = self.state.next_seq();
        let Some(line) = lines.next()? else {
            return Ok(false);
        };
        let offset = line.offset;
        let stored = stored::split(line.bytes).filter(|_| line.whole);
        // Without the bookkeeping: no wire takes it.
        let body = stored.map(|stored| stored.body(line.bytes));
        let message = stored
            .zip(body.as_deref())
            .and_then(|(stored, body)| Some((stored, Message::read(body).ok()?)));
        let Some((stored, message)) = message.filter(|(stored, _)| stored.seq == seq) else {
            no_more(lines, file, offset, &|line| stored::split(line).is_some())?;
            tail.messages = Some(offset);
            return Ok(false);
        };
        let mut facts = message.facts();
        facts.tokens = stored.tokens;
        facts.bytes = stored.cut as u64 + 1;
        let place = LinePlace::of_unbroken(offset, line.bytes);
        let mut rounds = self.take_rounds()?;
        let ahead = Ahead::<&[u8]> {
            log: self,
            messages: &[],
            added: &[],
        };
        let tied = ahead.tied(&rounds, &facts)?;
        let placement = rounds.add(seq, &facts, tied);
        let record = Record::following(self.sums()?, &facts, placement, stored.time);
        let entry = message_entry(place, stored.cut, record, message.wires());
        self.took_messages(&[entry], rounds);
        tail.unindexed += 1;
        Ok(true)
    }
}

type NextEvent = Option<(EventLine, LinePlace)>;

fn read_event(
    lines: &mut Lines<'_>,
    file: &Growing,
    tail: &mut Tail,
) -> Result<NextEvent, LogError> {
    let Some(line) = lines.next()? else {
        return Ok(None);
    };
    let offset = line.offset;
    match EventLine::decode(line.bytes) {
        Ok(event) if line.whole => {
            let place = LinePlace::of_unbroken(offset, line.bytes);
            Ok(Some((event, place)))
        }
        _ => {
            no_more(lines, file, offset, &|line| EventLine::decode(line).is_ok())?;
            tail.events = Some(offset);
            Ok(None)
        }
    }
}

/// Checks that nothing good follows damage at `offset`: then it is a torn tail, else the file is damaged.
fn no_more(
    lines: &mut Lines<'_>,
    file: &Growing,
    offset: u64,
    good: &dyn Fn(&[u8]) -> bool,
) -> Result<(), LogError> {
    while let Some(line) = lines.next()? {
        if line.whole && good(line.bytes) {
            let reason = "a broken line, with good ones after it";
            return Err(LogError::damaged(file.path(), offset, reason));
        }
    }
    Ok(())
}
