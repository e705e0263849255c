mod states;
mod past;
mod ties;
mod catch_up;

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use infold_log::{
    EventId, Past, Point, Record, Rounds, Seq, Span, State, Sums, before, round_members,
};
use infold_wire::{Message, Wire, Wires};

use crate::entry::{Base, EventEntry, MessageEntry, Spent};
use crate::event::{EventLine, Purpose, Usage, What};
use crate::file::{Access, Growing};
use crate::lines::Lines;
use crate::table::Table;
use crate::{LogError, Metadata};
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
    base: Point,
    parent: Option<(String, Box<Log>)>,
    state: State,
    wire: Wire,
    /// Pairing of the last round; none if it has to be read again.
    rounds: Option<Rounds>,
    /// The last report that was looked at, and the last message before it: it is asked for again and again.
    reported: RefCell<Option<(EventId, Usage, u64)>>,
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

impl Log {
    /// Opens the log in `dir`. What is torn at its end is left out and reported.
    pub fn open(dir: &Path, access: Access, find: Find<'_>) -> Result<(Log, Tail), LogError> {
        Log::open_below(dir, access, find, &mut Vec::new())
    }

    /// Opens a log that others continue, whose directories are `children`.
    fn open_below(
        dir: &Path,
        access: Access,
        find: Find<'_>,
        children: &mut Vec<PathBuf>,
    ) -> Result<(Log, Tail), LogError> {
        check_present(dir)?;
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
                children.push(dir.to_owned());
                if children.contains(&path) {
                    return Err(LogError::Circular { parent: task });
                }
                let (log, _) = Log::open_below(&path, Access::Read, find, children)?;
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
            states: States::open(dir.join("states.idx"), access)?,
            base,
            parent,
            state: State::default(),
            wire: Metadata::read(dir).map_or(Wire::Chat, |metadata| metadata.form()),
            rounds: None,
            reported: RefCell::default(),
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

    /// The wire in whose form it shows stand-ins and notes: that of its task.
    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// Says whether messages can be sent on a wire exactly as they are.
    ///
    /// Only the index is read.
    pub fn is_native(&self, span: Span, wire: Wire) -> Result<bool, LogError> {
        let mut rest = Some(span);
        while let Some(span) = rest {
            let (log, last) = self.holder(span.from());
            let end = span.to().min(last);
            for seq in span.from().get()..=end.get() {
                if !log.entries.get(seq)?.wires.has(wire) {
                    return Ok(false);
                }
            }
            rest = Span::new(end.next(), span.to());
        }
        Ok(true)
    }

    /// The task that holds all up to a point, of those that this one continues, and the point as it counts there;
    /// none if this one holds a part of it.
    pub(crate) fn holder_of(&self, at: Point) -> Option<(&str, Point)> {
        let (task, parent) = self.parent.as_ref()?;
        // Its first event only says where it goes on from.
        if at.seq > self.base.seq || at.event > self.base.event + 1 {
            return None;
        }
        let at = Point {
            event: at.event.min(self.base.event),
            ..at
        };
        parent.holder_of(at).or(Some((task, at)))
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

    /// The last message before the newest change of what is shown: up to there, messages were said
    /// behind others than those that stand before them now.
    pub fn changed_before(&self) -> Result<Option<Seq>, LogError> {
        match EventId::new(self.last_change()?) {
            Some(change) => Ok(Seq::new(self.mark(change)?.after)),
            // What it was forked from may have been folded there.
            None => Ok(Seq::new(self.base.seq)),
        }
    }

    /// The last usage that was reported for what is shown, if nothing but messages came since
    /// what is shown last changed; and the tokens counted for those that came after it.
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
        Ok(Some((usage, self.sums()?.tokens - counted)))
    }

    /// How many summary folds and tool records this task itself has.
    pub fn counts(&self) -> Result<(u64, u64), LogError> {
        Ok(self
            .last_own_event()?
            .map_or((0, 0), |entry| (entry.summaries, entry.tools)))
    }

    /// What calls of models came to in this task itself, as reported.
    pub(crate) fn spent(&self) -> Result<Spent, LogError> {
        Ok(self
            .last_own_event()?
            .map_or(Spent::default(), |entry| entry.spent))
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
            spent: spent(last.map_or(Spent::default(), |last| last.spent), &line.what),
            report: match &line.what {
                What::Usage(usage) if usage.purpose == Purpose::Reply => line.id.get(),
                _ => last.map_or(0, |last| last.report),
            },
        });
        if !fact {
            self.rounds = None;
        }
        if let What::Usage(usage) = &line.what
            && usage.purpose == Purpose::Reply
        {
            *self.reported.borrow_mut() = Some((line.id, usage.clone(), line.after));
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
        let Some(last) = self.state.shown().open_end() else {
            return Ok(rounds);
        };
        let record = self.record(last)?;
        if record.waiting > 0 || record.item || record.unended {
            let path = self.state.shown().path();
            let tied = Some(record.tied).filter(|tied| *tied < record.round);
            for seq in round_members(record.round, path.into_iter(), self)? {
                let bytes = self.message(seq)?;
                rounds.hear(seq, &self.parsed(seq, &bytes)?.facts(), tied);
            }
            let change = self.last_change()?;
            // Undoing a rewind hides what was said since, so an output may go on behind one.
            let step_since = change > 0 && {
                let mark = self.marks.get(change)?.mark;
                mark.after >= last.get() && !mark.rewinds
            };
            if step_since || last.get() <= self.base.seq {
                rounds.end_output();
            }
        }
        Ok(rounds)
    }

    /// Reads the bytes of a message that is in the log.
    pub(crate) fn parsed<'a>(&self, seq: Seq, bytes: &'a [u8]) -> Result<Message<'a>, LogError> {
        Message::read(bytes).map_err(|error| {
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
}

/// What was spent after an event.
fn spent(before: Spent, what: &What) -> Spent {
    match what {
        What::Usage(usage) => Spent {
            calls: before.calls + 1,
            tokens: before.tokens.saturating_add(usage.tokens),
            cached: before.cached.saturating_add(usage.cached),
            cost: before.cost.saturating_add(usage.cost),
        },
        _ => before,
    }
}

/// Makes the sidecar's entry of a line.
pub(crate) fn message_entry(
    offset: u64,
    len: usize,
    cut: usize,
    record: Record,
    wires: Wires,
) -> MessageEntry {
    // Lines are bounded far below four gigabytes when they are written.
    let small = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
    MessageEntry {
        offset,
        len: small(len),
        cut: small(cut),
        record,
        wires,
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

fn first_event(events: &Growing) -> Result<Option<What>, LogError> {
    let mut lines = Lines::new(events, 0);
    let first = lines.next()?.filter(|line| line.whole);
    Ok(first
        .and_then(|line| EventLine::decode(line.bytes).ok())
        .map(|line| line.what))
}
