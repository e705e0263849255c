use std::path::{Path, PathBuf};

use infold_log::{
    EventId, Mark, Past, Point, Record, Rounds, Seq, Shown, State, Sums, before, round_members,
};
use infold_wire::{Message, estimate};

use crate::LogError;
use crate::entry::{Base, EventEntry, MessageEntry};
use crate::event::{EventLine, What};
use crate::file::{Access, Growing};
use crate::lines::Lines;
use crate::snapshot;
use crate::stored;
use crate::table::{Table, checksum, put, unsealed};

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
    base: Point,
    parent: Option<(String, Box<Log>)>,
    state: State,
    /// Pairing of the last round; none if it has to be read again.
    rounds: Option<Rounds>,
}

/// Finds the directory of a task by its id, for logs that begin with another task's.
pub type Find<'a> = &'a dyn Fn(&str) -> Option<PathBuf>;

/// Bytes at the end of a log that are not part of it: where each file's good part ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// Torn bytes in `messages.jsonl` start here.
    pub messages: Option<u64>,
    /// Torn bytes in `events.jsonl`, or events whose messages were torn, start here.
    pub events: Option<u64>,
    /// Messages and events that the sidecars did not know.
    pub unindexed: u64,
}

/// Snapshots of states; new ones wait in memory like records of a [`Table`].
#[derive(Debug)]
struct States {
    file: Growing,
    tail: Vec<u8>,
}

impl Log {
    /// Opens the log in `dir`. What is torn at its end is left out and reported.
    pub fn open(dir: &Path, access: Access, find: Find<'_>) -> Result<(Log, Tail), LogError> {
        let (events, messages) = loop {
            // Events first: one that is seen has its messages before it. And none came in
            // between: messages without the event before them make a state that never was.
            let events = Growing::open(dir.join("events.jsonl"), access)?;
            let messages = Growing::open(dir.join("messages.jsonl"), access)?;
            if !events.has_grown()? {
                break (events, messages);
            }
        };
        let (base, parent) = match first_event(&events)? {
            Some(What::Fork { task, at }) => {
                let no_parent = || LogError::NoParent {
                    parent: task.clone(),
                };
                let path = find(&task).ok_or_else(no_parent)?;
                let (log, _) = Log::open(&path, Access::Read, find)?;
                let end = log.state.at();
                if end.seq < at.seq || end.event < at.event {
                    return Err(no_parent());
                }
                (at, Some((task, Box::new(log))))
            }
            _ => (Point::default(), None),
        };
        let mut log = Log {
            dir: dir.to_owned(),
            messages,
            events,
            entries: Table::open(dir.join("messages.idx"), base.seq, access)?,
            marks: Table::open(dir.join("events.idx"), base.event, access)?,
            states: States {
                file: Growing::open(dir.join("states.idx"), access)?,
                tail: Vec::new(),
            },
            base,
            parent,
            state: State::default(),
            rounds: None,
        };
        let tail = log.catch_up()?;
        Ok((log, tail))
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The state after its last entry.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The task it was forked from, and where.
    pub fn parent(&self) -> Option<(&str, Point)> {
        self.parent.as_ref().map(|(task, _)| (&**task, self.base))
    }

    /// Returns a message as it came.
    pub fn message(&self, seq: Seq) -> Result<Vec<u8>, LogError> {
        if let Some(parent) = self.parent_of(seq.get(), self.base.seq) {
            return parent.message(seq);
        }
        let entry = self.entries.get(seq.get())?;
        let mut bytes = self.messages.bytes(entry.offset, entry.cut as usize + 1)?;
        if let Some(last) = bytes.last_mut() {
            *last = b'}';
        }
        Ok(bytes)
    }

    /// Returns an event.
    pub fn event(&self, id: EventId) -> Result<EventLine, LogError> {
        if let Some(parent) = self.parent_of(id.get(), self.base.event) {
            return parent.event(id);
        }
        let entry = self.marks.get(id.get())?;
        let line = self.events.bytes(entry.offset, entry.len as usize)?;
        let damaged = |reason| LogError::damaged(self.events.path(), entry.offset, reason);
        EventLine::decode(&line).map_err(damaged)
    }

    /// The totals over all messages.
    pub fn sums(&self) -> Result<Sums, LogError> {
        match self.state.last_seq() {
            Some(last) => Ok(self.record(last)?.sums),
            None => Ok(Sums::default()),
        }
    }

    /// When its last entry was made, in milliseconds since 1970; zero if it has none.
    pub fn last_time(&self) -> Result<u64, LogError> {
        let message = self
            .state
            .last_seq()
            .map(|seq| self.record(seq))
            .transpose()?;
        let event = self
            .state
            .last_event()
            .map(|id| self.mark(id))
            .transpose()?;
        let times = [
            message.map(|record| record.time),
            event.map(|mark| mark.time),
        ];
        Ok(times.into_iter().flatten().max().unwrap_or(0))
    }

    /// The newest event that changed what is shown; zero if there is none.
    pub fn last_change(&self) -> Result<u64, LogError> {
        Ok(self.last_own_event()?.map_or(0, |entry| entry.change))
    }

    /// How many summary folds and tool records this task itself has.
    pub fn counts(&self) -> Result<(u64, u64), LogError> {
        Ok(self
            .last_own_event()?
            .map_or((0, 0), |entry| (entry.summaries, entry.tools)))
    }

    /// The first seq and the first event that stand in this task's own files.
    pub fn own(&self) -> Point {
        Point {
            seq: self.base.seq + 1,
            event: self.base.event + 1,
        }
    }

    /// Where a message's line stands in this task's own file.
    pub(crate) fn entry(&self, seq: Seq) -> Result<Option<MessageEntry>, LogError> {
        if seq.get() <= self.base.seq {
            return Ok(None);
        }
        self.entries.get(seq.get()).map(Some)
    }

    /// The log that holds a message, which may be the one this was forked from.
    pub(crate) fn holder(&self, seq: Seq) -> (&Log, Seq) {
        match self.parent_of(seq.get(), self.base.seq) {
            Some(parent) => {
                let (log, last) = parent.holder(seq);
                let base = Seq::new(self.base.seq).unwrap_or(last);
                (log, last.min(base))
            }
            None => (self, self.state.last_seq().unwrap_or(seq)),
        }
    }

    /// The point at which this task's own entries begin.
    pub(crate) fn own_start(&self) -> Point {
        self.base
    }

    /// Drops what the sidecars hold beyond their last good record.
    pub(crate) fn trim(&mut self) -> Result<(), LogError> {
        self.states.trim()?;
        self.entries.trim()?;
        self.marks.trim()
    }

    /// Writes the sidecars.
    pub(crate) fn flush(&mut self) -> Result<(), LogError> {
        self.states.flush()?;
        self.entries.flush()?;
        self.marks.flush()
    }

    /// Takes up lines that were appended to `messages.jsonl`.
    pub(crate) fn took_messages(&mut self, added: &[MessageEntry], rounds: Rounds) {
        for entry in added {
            self.entries.push(*entry);
            self.state.message(self.state.next_seq());
        }
        self.rounds = Some(rounds);
    }

    /// Takes up a line that was appended to `events.jsonl`.
    pub(crate) fn took_event(
        &mut self,
        line: &EventLine,
        offset: u64,
        len: usize,
    ) -> Result<(), LogError> {
        let event = line.event();
        let back_to = self.back_to(&line.what)?;
        let mut state = self.state.clone();
        let mark = state.event(&event, line.pass, line.ts, &*self)?;
        let last = self.last_own_event()?;
        let snapshot = last.map_or(self.base.event, |last| last.snapshot);
        let due = line.id.get() - snapshot >= (state.shown().nodes() / 4).max(32);
        let base = match &line.what {
            What::Undo(_) | What::Unfold(_) => self.states.push(line.id.get(), state.shown()),
            _ if due => self.states.push(line.id.get(), state.shown()),
            What::Rewind(_) | What::Redo(_) => match back_to {
                Some(point) if self.is_near(point)? => Base::Same(point),
                Some(_) => self.states.push(line.id.get(), state.shown()),
                None => Base::Before,
            },
            _ => Base::Before,
        };
        let kept = matches!(base, Base::Snapshot { .. });
        let fact = matches!(event, infold_log::Event::Fact);
        let summary =
            matches!(&line.what, What::Fold(fold) if fold.cause == infold_log::Cause::Summary);
        let tool = matches!(&line.what, What::Tool(_));
        self.marks.push(EventEntry {
            offset,
            len: u32::try_from(len).unwrap_or(u32::MAX),
            mark,
            base,
            snapshot: if kept { line.id.get() } else { snapshot },
            change: if fact {
                last.map_or(0, |last| last.change)
            } else {
                line.id.get()
            },
            summaries: last.map_or(0, |last| last.summaries) + u64::from(summary),
            tools: last.map_or(0, |last| last.tools) + u64::from(tool),
        });
        if state.shown().last() != self.state.shown().last() {
            self.rounds = None;
        }
        self.state = state;
        Ok(())
    }

    /// Takes the pairing of the last round out, ready for the next message.
    ///
    /// Whoever appends gives it back with the messages; if nothing comes of it, it is
    /// read again next time.
    pub(crate) fn take_rounds(&mut self) -> Result<Rounds, LogError> {
        if let Some(rounds) = self.rounds.take() {
            return Ok(rounds);
        }
        let mut rounds = Rounds::default();
        let Some(last) = self.state.shown().last() else {
            return Ok(rounds);
        };
        let record = self.record(last)?;
        if record.waiting > 0 {
            let path = self.state.shown().path();
            for seq in round_members(record.round, path.into_iter(), self)? {
                let bytes = self.message(seq)?;
                rounds.hear(seq, &self.parsed(seq, &bytes)?.facts());
            }
        }
        Ok(rounds)
    }

    /// Reads the bytes of a message that is in the log.
    pub(crate) fn parsed<'a>(&self, seq: Seq, bytes: &'a [u8]) -> Result<Message<'a>, LogError> {
        Message::parse(bytes).map_err(|error| {
            let at = self.entries.get(seq.get()).map_or(0, |entry| entry.offset);
            LogError::damaged(self.messages.path(), at, error.to_string())
        })
    }

    /// Says which sidecar differs from another reading of the same log.
    pub(crate) fn differs_from(&self, other: &Log) -> Result<Option<&'static str>, LogError> {
        for seq in self.own().seq..=self.entries.last() {
            if self.entries.get(seq)? != other.entries.get(seq)? {
                return Ok(Some("messages.idx"));
            }
        }
        for event in self.own().event..=self.marks.last() {
            if self.marks.get(event)? != other.marks.get(event)? {
                return Ok(Some("events.idx"));
            }
            let point = Point {
                seq: self.mark_after(event)?,
                event,
            };
            if self.shown(point)? != other.shown(point)? {
                return Ok(Some("states.idx"));
            }
        }
        Ok(None)
    }

    fn mark_after(&self, event: u64) -> Result<u64, LogError> {
        Ok(self.marks.get(event)?.mark.after)
    }

    /// Says whether what was shown at a point is found without going on to yet another one.
    ///
    /// A state that is the same as one that is the same as another … would be looked for
    /// all the way back, in steps that add up over thousands of rewinds.
    fn is_near(&self, point: Point) -> Result<bool, LogError> {
        for event in (self.own().event..=point.event).rev() {
            match self.marks.get(event)?.base {
                Base::Before => {}
                Base::Same(_) => return Ok(false),
                Base::Snapshot { .. } => return Ok(true),
            }
        }
        Ok(true)
    }

    /// The earlier point whose state an event brings back as it was, if it does.
    fn back_to(&self, what: &What) -> Result<Option<Point>, LogError> {
        match what {
            What::Rewind(point) => Ok(Some(*point)),
            What::Redo(_) => match self.state.undone(self)? {
                Some(undo) => Ok(Some(before(undo, self)?)),
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }

    fn parent_of(&self, number: u64, base: u64) -> Option<&Log> {
        let (_, parent) = self.parent.as_ref()?;
        (number <= base).then_some(parent)
    }

    fn last_own_event(&self) -> Result<Option<EventEntry>, LogError> {
        let last = self.marks.last();
        (last > self.base.event)
            .then(|| self.marks.get(last))
            .transpose()
    }

    /// Brings the sidecars up to the files, reading only what they do not know.
    fn catch_up(&mut self) -> Result<Tail, LogError> {
        let known = self.trusted().and_then(|at| self.resume(at));
        match known.and_then(|()| self.merge()) {
            // A broken sidecar is no loss: all of it is derived anew.
            Err(LogError::Damaged { .. }) => {
                self.resume(self.base)?;
                self.merge()
            }
            caught_up => caught_up,
        }
    }

    /// Takes up the log at a point that the sidecars know, and forgets what they hold beyond.
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
        self.rounds = None;
        self.state = State::resume(at, mark, self.shown(at)?);
        Ok(())
    }

    /// How many messages and events of the sidecars agree with the files and with each other.
    fn trusted(&self) -> Result<Point, LogError> {
        let in_file =
            |last: u64, base: u64, end: &dyn Fn(u64) -> Result<u64, LogError>, len: u64| {
                let (mut low, mut high) = (base, last);
                while low < high {
                    let middle = low + (high - low).div_ceil(2);
                    if end(middle)? <= len {
                        low = middle
                    } else {
                        high = middle - 1
                    }
                }
                Ok::<u64, LogError>(low)
            };
        let message_end = |seq: u64| self.entries.get(seq).map(|e| e.offset + u64::from(e.len));
        let event_end = |id: u64| self.marks.get(id).map(|e| e.offset + u64::from(e.len));
        let mut seq = in_file(
            self.entries.last(),
            self.base.seq,
            &message_end,
            self.messages.len(),
        )?;
        let mut event = in_file(
            self.marks.last(),
            self.base.event,
            &event_end,
            self.events.len(),
        )?;
        if !self.message_fits(seq)? || !self.event_fits(event)? {
            return Ok(self.base);
        }
        while event > self.base.event && self.marks.get(event)?.mark.after > seq {
            event -= 1;
        }
        // An event the sidecar missed may lie before messages that it knows; those were
        // derived after it, but their records may not outlive the derivation of the event.
        let next = if event > self.base.event {
            event_end(event)?
        } else {
            0
        };
        if let Some(line) = Lines::new(&self.events, next).next()?
            && let Ok(line) = EventLine::decode(line.bytes)
        {
            seq = seq.min(line.after.max(self.base.seq));
        }
        Ok(Point { seq, event })
    }

    fn message_fits(&self, seq: u64) -> Result<bool, LogError> {
        if seq <= self.base.seq {
            return Ok(true);
        }
        let entry = self.entries.get(seq)?;
        let line = self.messages.bytes(entry.offset, entry.len as usize)?;
        let stored = line.strip_suffix(b"\n").and_then(stored::split);
        Ok(stored.is_some_and(|stored| {
            stored.seq.get() == seq
                && stored.cut == entry.cut as usize
                && stored.time == entry.record.time
        }))
    }

    fn event_fits(&self, event: u64) -> Result<bool, LogError> {
        if event <= self.base.event {
            return Ok(true);
        }
        let entry = self.marks.get(event)?;
        let line = self.events.bytes(entry.offset, entry.len as usize)?;
        Ok(line.ends_with(b"\n")
            && EventLine::decode(&line).is_ok_and(|line| {
                line.id.get() == event
                    && line.ts == entry.mark.time
                    && line.after == entry.mark.after
            }))
    }

    /// Reads messages and events that the sidecars do not know, in the order they happened.
    fn merge(&mut self) -> Result<Tail, LogError> {
        // The files are lent out while their lines change the rest of the log.
        let path = self.messages.path().to_owned();
        let messages = std::mem::replace(&mut self.messages, Growing::open(path, Access::Read)?);
        let path = self.events.path().to_owned();
        let events = std::mem::replace(&mut self.events, Growing::open(path, Access::Read)?);
        let merged = self.merge_lines(&messages, &events);
        self.messages = messages;
        self.events = events;
        merged
    }

    fn merge_lines(&mut self, messages: &Growing, events: &Growing) -> Result<Tail, LogError> {
        let Point { seq, event } = self.state.at();
        let from = self.entry_end(seq)?.unwrap_or_default();
        let mut message_lines = Lines::new(messages, from);
        let from = if event > self.base.event {
            let entry = self.marks.get(event)?;
            entry.offset + u64::from(entry.len)
        } else {
            0
        };
        let mut event_lines = Lines::new(events, from);
        let mut tail = Tail::default();
        let mut next = read_event(&mut event_lines, events, &mut tail)?;
        loop {
            while let Some((line, offset, len)) =
                next.take_if(|(line, ..)| line.after <= self.state.at().seq)
            {
                if line.id != self.state.next_event() || line.after != self.state.at().seq {
                    let reason = format!("event {} is out of order", line.id);
                    return Err(LogError::damaged(events.path(), offset, reason));
                }
                self.took_event(&line, offset, len)?;
                tail.unindexed += 1;
                next = read_event(&mut event_lines, events, &mut tail)?;
            }
            if !self.read_message(&mut message_lines, messages, &mut tail)? {
                break;
            }
        }
        if let Some((_, offset, _)) = next {
            // Its messages are not there, so it cannot be applied.
            tail.events = Some(offset);
        }
        Ok(tail)
    }

    fn entry_end(&self, seq: u64) -> Result<Option<u64>, LogError> {
        if seq <= self.base.seq {
            return Ok(None);
        }
        let entry = self.entries.get(seq)?;
        Ok(Some(entry.offset + u64::from(entry.len)))
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
        let message = stored.and_then(|stored| Some((stored, Message::parse(line.bytes).ok()?)));
        let Some((stored, message)) = message.filter(|(stored, _)| stored.seq == seq) else {
            no_more(lines, file, offset, &|line| stored::split(line).is_some())?;
            tail.messages = Some(offset);
            return Ok(false);
        };
        let mut facts = message.facts();
        facts.tokens = stored.tokens;
        facts.bytes = stored.cut as u64 + 1;
        let len = line.bytes.len() + 1;
        let mut rounds = self.take_rounds()?;
        let heard = rounds.hear(seq, &facts);
        let record = Record::following(self.sums()?, &facts, heard, stored.time);
        let entry = message_entry(offset, len, stored.cut, record);
        self.took_messages(&[entry], rounds);
        tail.unindexed += 1;
        Ok(true)
    }
}

/// Makes the sidecar's entry of a line.
pub(crate) fn message_entry(offset: u64, len: usize, cut: usize, record: Record) -> MessageEntry {
    // Lines are bounded far below four gigabytes when they are written.
    let small = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
    MessageEntry {
        offset,
        len: small(len),
        cut: small(cut),
        record,
    }
}

/// The tokens recorded for a message of this many bytes.
pub(crate) fn tokens(bytes: usize) -> u64 {
    estimate(bytes as u64)
}

fn first_event(events: &Growing) -> Result<Option<What>, LogError> {
    let mut lines = Lines::new(events, 0);
    let first = lines.next()?.filter(|line| line.whole);
    Ok(first
        .and_then(|line| EventLine::decode(line.bytes).ok())
        .map(|line| line.what))
}

type NextEvent = Option<(EventLine, u64, usize)>;

fn read_event(
    lines: &mut Lines<'_>,
    file: &Growing,
    tail: &mut Tail,
) -> Result<NextEvent, LogError> {
    let Some(line) = lines.next()? else {
        return Ok(None);
    };
    let (offset, len) = (line.offset, line.bytes.len() + 1);
    match EventLine::decode(line.bytes) {
        Ok(event) if line.whole => Ok(Some((event, offset, len))),
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

impl States {
    fn push(&mut self, event: u64, shown: &Shown) -> Base {
        let mut bytes = snapshot::encode(shown);
        let sum = checksum(event, &bytes);
        put(&mut bytes, &[sum]);
        let offset = self.file.len() + self.tail.len() as u64;
        self.tail.extend_from_slice(&bytes);
        Base::Snapshot {
            offset,
            len: bytes.len() as u64,
        }
    }

    fn get(&self, event: u64, offset: u64, len: u64) -> Result<Shown, LogError> {
        let bytes = match offset.checked_sub(self.file.len()) {
            Some(at) => {
                let at = at as usize;
                self.tail
                    .get(at..at + len as usize)
                    .unwrap_or_default()
                    .to_vec()
            }
            None => self.file.bytes(offset, len as usize)?,
        };
        let damaged = || LogError::damaged(self.file.path(), offset, "not a snapshot");
        unsealed(event, &bytes)
            .and_then(snapshot::decode)
            .ok_or_else(damaged)
    }

    fn flush(&mut self) -> Result<(), LogError> {
        if !self.tail.is_empty() {
            self.file.append(&self.tail)?;
            self.tail.clear();
        }
        Ok(())
    }

    fn trim(&mut self) -> Result<(), LogError> {
        let end = self.file.len();
        self.file.cut(end)
    }

    /// Forgets what lies beyond `end`; new snapshots overwrite it.
    fn cut(&mut self, end: u64) {
        self.tail.clear();
        self.file.forget(end);
    }
}

impl Past for Log {
    type Error = LogError;

    fn record(&self, seq: Seq) -> Result<Record, LogError> {
        if let Some(parent) = self.parent_of(seq.get(), self.base.seq) {
            return parent.record(seq);
        }
        Ok(self.entries.get(seq.get())?.record)
    }

    fn mark(&self, event: EventId) -> Result<Mark, LogError> {
        if let Some(parent) = self.parent_of(event.get(), self.base.event) {
            return parent.mark(event);
        }
        Ok(self.marks.get(event.get())?.mark)
    }

    fn shown(&self, point: Point) -> Result<Shown, LogError> {
        if let Some(parent) = self.parent_of(point.event, self.base.event) {
            let mut shown = parent.shown(Point {
                seq: point.seq.min(self.base.seq),
                event: point.event,
            })?;
            shown.append_up_to(self.base.seq, point.seq);
            return Ok(shown);
        }
        if point.event == 0 {
            let mut shown = Shown::default();
            shown.append_up_to(0, point.seq);
            return Ok(shown);
        }
        let mut known = point.event;
        let mut state = loop {
            if known == self.base.event {
                break State::resume(self.base, None, self.shown(self.base)?);
            }
            let entry = self.marks.get(known)?;
            let at = Point {
                seq: entry.mark.after,
                event: known,
            };
            let shown = match entry.base {
                Base::Before => {
                    known -= 1;
                    continue;
                }
                Base::Same(point) => self.shown(point)?,
                Base::Snapshot { offset, len } => self.states.get(known, offset, len)?,
            };
            break State::resume(at, None, shown);
        };
        for number in known + 1..=point.event {
            let id = EventId::new(number).expect("counted from one");
            let line = self.event(id)?;
            state.messages_up_to(line.after);
            state.event(&line.event(), line.pass, line.ts, self)?;
        }
        state.messages_up_to(point.seq);
        Ok(state.shown().clone())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Contexts, Durability, Metadata};

    #[test]
    fn going_back_thousands_of_times_is_no_deeper_than_once() {
        let dir = tempfile::tempdir().unwrap();
        let contexts = Contexts::new(dir.path(), Durability::Never);
        let task = contexts.create(Metadata::default()).unwrap();
        let (mut writer, _) = contexts.write(task).unwrap();
        let said = [
            r#"{"role":"user","content":"q"}"#,
            r#"{"role":"assistant","content":"a"}"#,
        ];
        writer.append(&said).unwrap();
        drop(writer);
        // Each goes back to the rewind before the last.
        let rewind = |id: u64| {
            let to = id.saturating_sub(2);
            format!(
                "{{\"id\":{id},\"ts\":1,\"after\":2,\"type\":\"rewind\",\"to\":{{\"seq\":2,\"event\":{to}}}}}\n"
            )
        };
        let events: String = (1..=4_000).map(rewind).collect();
        let path = contexts.place(task).unwrap().join("events.jsonl");
        std::fs::write(path, events).unwrap();
        let log = contexts.read(task).unwrap();
        assert_eq!(log.state().at().event, 4_000);
        assert_eq!(log.state().shown().path().len(), 1);
    }
}
