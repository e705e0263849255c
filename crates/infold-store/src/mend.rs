//! Mends the files of a log: readable lines are kept, others are replaced, and the damaged file is set aside as
//! a whole.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use infold_log::{EventId, Role, Seq};
use infold_wire::{Wire, render_text, tokens};
use uuid::Uuid;

use crate::entry::{EventEntry, MessageEntry};
use crate::file::{self, Access, Growing};
use crate::lines::Lines;
use crate::log::{LinePlace, kept_parent};
use crate::stored::Marks;
use crate::table::Table;
use crate::verify::Problem;
use crate::{Contexts, EventLine, Log, LogError, Metadata, TaskError, What, stored, time};

/// The most consecutive lines whose bytes may be missing altogether.
pub(crate) const MAX_GONE_LINES: u64 = 10_000;
/// A file that is damaged after it was mended so often is beyond repair.
const MAX_ROUNDS: usize = 4;

const MESSAGES: &str = "messages.jsonl";
const EVENTS: &str = "events.jsonl";

/// The result of mending a file.
#[derive(Default)]
pub(crate) struct Mended {
    pub bytes: Vec<u8>,
    /// How many lines were replaced.
    replaced: u64,
    /// How many events took back one that was replaced, and were left out with it.
    left_out: u64,
    /// Whether the event that names the parent of the task was restored.
    restored: bool,
    /// Lines that were changed but can still be read.
    changed: Vec<u64>,
}

impl Contexts {
    /// Mends the damaged files of a log, and returns the actions taken.
    pub(crate) fn mend(
        &self,
        id: Uuid,
        dir: &Path,
        problems: &[Problem],
    ) -> Result<Vec<String>, TaskError> {
        let damaged = problems.iter().filter_map(|problem| match problem {
            Problem::Damaged(LogError::Damaged { path, .. }) => Some(path.clone()),
            _ => None,
        });
        let mut left: Vec<PathBuf> = damaged.collect();
        let mut done = Vec::new();
        for _ in 0..MAX_ROUNDS {
            for name in [MESSAGES, EVENTS] {
                if left.contains(&dir.join(name)) {
                    done.push(self.mend_file(id, dir, name)?);
                }
            }
            left = match Log::open(dir, Access::Rederive, &self.dirs()) {
                Err(LogError::Damaged { path, .. }) => vec![path],
                _ => break,
            };
        }
        Ok(done)
    }

    fn mend_file(&self, id: Uuid, dir: &Path, name: &str) -> Result<String, TaskError> {
        let lock = self.locked(id, dir)?;
        let path = dir.join(name);
        let is_missing = !path.exists();
        let aside = if is_missing {
            PathBuf::new()
        } else {
            file::copy_aside(&path)?
        };
        let (mended, said) = match name {
            MESSAGES => {
                let note = |seq| {
                    let aside = aside.display();
                    format!("[message {seq} was damaged on disk; what is left of it is in {aside}]")
                };
                let mended = mended_messages(dir, first_seq(dir)?, 0, &note)?;
                let said = said_of_messages(&mended);
                (mended, said)
            }
            _ => {
                let mended = mended_events(dir, fork_event(dir)?, 0)?;
                let said = said_of_events(&mended);
                (mended, said)
            }
        };
        if fs::read(&path).ok().as_deref() != Some(&mended.bytes) {
            file::replace(&path, &mended.bytes)?;
        }
        file::sync_dir(dir)?;
        drop(lock);
        if is_missing {
            return Ok(format!("{name} was missing: what it held is lost"));
        }
        let aside = aside.display();
        Ok(format!("{said}; the damaged file is {aside}"))
    }
}

fn said_of_messages(mended: &Mended) -> String {
    let replaced = match mended.replaced {
        0 => String::new(),
        1 => "1 damaged message replaced by a note".to_owned(),
        many => format!("{many} damaged messages replaced by notes"),
    };
    join([replaced, changed("message", &mended.changed)])
}

fn said_of_events(mended: &Mended) -> String {
    let restored = if mended.restored {
        "the event that says what the task continues made again from lineage.idx"
    } else {
        ""
    };
    let replaced = match mended.replaced {
        0 => String::new(),
        1 => "1 damaged event taken out: what it did is undone".to_owned(),
        many => format!("{many} damaged events taken out: what they did is undone"),
    };
    let left_out = match mended.left_out {
        0 => "",
        _ => "what undid or redid them was left out as well",
    };
    let rest = match mended.replaced {
        0 => "",
        _ => "what followed is applied as far as it can be",
    };
    let texts = [restored, &replaced, left_out, rest].map(str::to_owned);
    join(texts.into_iter().chain([changed("event", &mended.changed)]))
}

fn changed(what: &str, numbers: &[u64]) -> String {
    let list: Vec<String> = numbers.iter().map(u64::to_string).collect();
    let list = list.join(", ");
    match numbers.len() {
        0 => String::new(),
        1 => format!(
            "1 {what} is not what was written but still reads as such, and was kept: {list}"
        ),
        many => format!(
            "{many} {what}s are not what was written but still read as such, and were kept: {list}"
        ),
    }
}

fn join(texts: impl IntoIterator<Item = String>) -> String {
    let said: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    if said.is_empty() {
        "no line had to be replaced".to_owned()
    } else {
        said.join("; ")
    }
}

/// Returns the event that names the parent of a task, read or, if it is damaged, restored from the sidecar.
pub(crate) fn fork_event(dir: &Path) -> Result<Option<EventLine>, LogError> {
    let events = Growing::open(dir.join(EVENTS), Access::Read)?;
    let mut lines = Lines::new(&events, 0);
    let first = lines
        .next()?
        .and_then(|line| EventLine::decode(line.bytes).ok());
    let first = first.filter(|first| matches!(first.what, What::Fork { .. }));
    let kept = kept_parent(dir).filter(|_| first.is_none());
    let Some((task, at)) = kept else {
        return Ok(first);
    };
    Ok(Some(EventLine {
        id: EventId::new(at.event + 1).expect("one more than a count is not zero"),
        ts: Metadata::read(dir).map_or(0, |metadata| metadata.created_at),
        after: at.seq,
        pass: None,
        what: What::Fork {
            task: task.to_string(),
            at,
        },
    }))
}

/// The seq with which a task's own messages begin.
fn first_seq(dir: &Path) -> Result<u64, LogError> {
    Ok(fork_event(dir)?.map_or(1, |fork| fork.after + 1))
}

/// An event that reads well, and where it stands.
struct GoodEvent {
    event: EventLine,
    place: LinePlace,
}

/// Returns the valid events of a file, with events without effect in the place of missing ones between them, or
/// after them up to a number.
///
/// The event that names the parent of the task comes first, if there is one.
pub(crate) fn mended_events(
    dir: &Path,
    fork: Option<EventLine>,
    until: u64,
) -> Result<Mended, LogError> {
    let file = Growing::open(dir.join(EVENTS), Access::Read)?;
    let first = fork.as_ref().map_or(1, |fork| fork.id.get());
    let mut good = good_events(&file, first)?;
    // A task continues one other task, and says so first.
    good.retain(|GoodEvent { event, .. }| {
        !matches!(event.what, What::Fork { .. }) || fork.as_ref() == Some(event)
    });
    let marks: Table<EventEntry> = Table::open(dir.join("events.idx"), first - 1, Access::Read)?;
    let mut mended = Mended::default();
    let (mut next, mut lost) = (first, HashSet::new());
    let (mut ts, mut after) = match &fork {
        Some(fork) => (fork.ts, fork.after),
        None => (good.first().map_or(0, |good| good.event.ts), 0),
    };
    if let Some(fork) = fork.filter(|fork| good.first().is_none_or(|good| good.event != *fork)) {
        mended.bytes.extend(fork.encode());
        (mended.restored, next) = (true, first + 1);
    }
    for GoodEvent { event, place } in good {
        let id = event.id.get();
        while next < id {
            mended.bytes.extend(filler(next, ts, after).encode());
            lost.insert(next);
            (mended.replaced, next) = (mended.replaced + 1, next + 1);
        }
        (ts, after, next) = (event.ts, event.after, id + 1);
        let takes_back = match event.what {
            What::Undo(step) => lost.contains(&step.get()),
            What::Redo(undo) => lost.contains(&undo.get()),
            _ => false,
        };
        if takes_back {
            // The step that it took back is gone; applied now, it would take back another one.
            mended.bytes.extend(filler(id, ts, after).encode());
            lost.insert(id);
            mended.left_out += 1;
            continue;
        }
        let line = file.bytes(place.offset, place.len as usize)?;
        mended.bytes.extend(line);
        let kept = marks.get(id).ok();
        let is_same_line = |kept: &EventEntry| kept.mark.time == event.ts && kept.len == place.len;
        if kept.is_some_and(|kept| is_same_line(&kept) && kept.sum != place.sum) {
            mended.changed.push(id);
        }
    }
    while next <= until {
        mended.bytes.extend(filler(next, ts, after).encode());
        (mended.replaced, next) = (mended.replaced + 1, next + 1);
    }
    Ok(mended)
}

/// An event that changes nothing.
fn filler(number: u64, ts: u64, after: u64) -> EventLine {
    EventLine {
        id: EventId::new(number).expect("counted from one"),
        ts,
        after,
        pass: None,
        what: What::Other("damaged".to_owned()),
    }
}

fn good_events(file: &Growing, first: u64) -> Result<Vec<GoodEvent>, LogError> {
    let mut good: Vec<GoodEvent> = Vec::new();
    let mut lines = Lines::new(file, 0);
    while let Some(line) = lines.next()? {
        let Ok(event) = EventLine::decode(line.bytes) else {
            continue;
        };
        let last = good.last().map(|good| &good.event);
        let (last_id, last_after) = last.map_or((first - 1, 0), |last| (last.id.get(), last.after));
        let is_next = event.id.get() > last_id && event.after >= last_after;
        // An event whose number is lower, or much higher, has damaged digits.
        let fits = is_next && event.id.get() - last_id <= MAX_GONE_LINES;
        if line.whole && fits {
            let place = LinePlace::of_unbroken(line.offset, line.bytes);
            good.push(GoodEvent { event, place });
        }
    }
    Ok(good)
}

/// The good lines of a file, with notes for the messages that are missing before them and between them, or behind them
/// up to a seq.
pub(crate) fn mended_messages(
    dir: &Path,
    first: u64,
    until: u64,
    note: &dyn Fn(u64) -> String,
) -> Result<Mended, LogError> {
    let metadata = Metadata::read(dir);
    let wire = metadata.as_ref().map_or(Wire::Chat, Metadata::form);
    let file = Growing::open(dir.join(MESSAGES), Access::Read)?;
    let entries: Table<MessageEntry> =
        Table::open(dir.join("messages.idx"), first - 1, Access::Read)?;
    let mut mended = Mended::default();
    let write_note = |seq: u64, time: u64, mended: &mut Mended| {
        let text = note(seq);
        let marks = Marks {
            seq: Seq::new(seq).expect("counted from one"),
            stamp: &time::iso(time),
            tokens: tokens::text_message(&text),
            role: None,
            redacted: None,
        };
        let message = render_text(wire, Role::User, &text);
        stored::write(&message, marks, &mut mended.bytes);
        mended.replaced += 1;
    };
    let (mut next, mut time) = (first, metadata.map_or(0, |metadata| metadata.created_at));
    let mut good = good_messages(&file)?;
    // Lines before the first seq belong to another task.
    good.retain(|line| line.seq >= first);
    for line in in_order(good, first) {
        for seq in next..line.seq {
            write_note(seq, line.time, &mut mended);
        }
        let LinePlace { offset, len, sum } = line.place;
        mended.bytes.extend(file.bytes(offset, len as usize)?);
        let kept = entries.get(line.seq).ok();
        let is_same_line = |kept: &MessageEntry| kept.record.time == line.time && kept.len == len;
        if kept.is_some_and(|kept| is_same_line(&kept) && kept.sum != sum) {
            mended.changed.push(line.seq);
        }
        (next, time) = (line.seq + 1, line.time);
    }
    for seq in next..=until {
        write_note(seq, time, &mut mended);
    }
    Ok(mended)
}

/// A line that reads like a message.
#[derive(Clone, Copy)]
struct GoodMessage {
    seq: u64,
    time: u64,
    place: LinePlace,
}

impl GoodMessage {
    fn end(&self) -> u64 {
        self.place.offset + u64::from(self.place.len)
    }
}

fn good_messages(file: &Growing) -> Result<Vec<GoodMessage>, LogError> {
    let mut good = Vec::new();
    let mut lines = Lines::new(file, 0);
    while let Some(line) = lines.next()? {
        let stored = stored::split(line.bytes).filter(|_| line.whole);
        if let Some(stored) = stored
            && infold_wire::Message::read(&stored.body(line.bytes)).is_ok()
        {
            good.push(GoodMessage {
                seq: stored.seq.get(),
                time: stored.time,
                place: LinePlace::of_unbroken(line.offset, line.bytes),
            });
        }
    }
    Ok(good)
}

/// The longest row of lines whose seqs rise, and not much faster than lines have room between them.
///
/// Damage in the digits of a seq makes a line that reads well and claims a wrong place;
/// taking it at its word would leave out all that follow it.
fn in_order(good: Vec<GoodMessage>, first: u64) -> Vec<GoodMessage> {
    // No line of ours is shorter; and of so many lines the bytes may be gone altogether.
    const SHORTEST: u64 = 80;
    let fits = |line: &GoodMessage, after: u64, end: u64| {
        let room = line.place.offset.saturating_sub(end) / SHORTEST;
        line.seq > after && line.seq - after - 1 <= MAX_GONE_LINES + room
    };
    // Lines that follow on one another make a row; rows that clash are few, and damage is.
    let mut rows: Vec<Vec<GoodMessage>> = Vec::new();
    for line in good {
        match rows.last_mut() {
            Some(row) if row.last().is_some_and(|last| last.seq + 1 == line.seq) => row.push(line),
            _ => rows.push(vec![line]),
        }
    }
    let mut best: Vec<(usize, Option<usize>)> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let near = at.saturating_sub(256)..at;
        let before = near.rev().filter(|before| {
            let last = rows[*before].last().expect("a row has a line");
            best[*before].0 > 0 && fits(&row[0], last.seq, last.end())
        });
        let before = before.max_by_key(|before| best[*before].0);
        best.push(match before {
            Some(before) => (best[before].0 + row.len(), Some(before)),
            None if fits(&row[0], first - 1, 0) => (row.len(), None),
            None => (0, None),
        });
    }
    let mut at = (0..rows.len())
        .filter(|at| best[*at].0 > 0)
        .max_by_key(|at| best[*at].0);
    let mut chosen = Vec::new();
    while let Some(row) = at {
        chosen.push(row);
        at = best[row].1;
    }
    chosen
        .into_iter()
        .rev()
        .flat_map(|row| rows[row].clone())
        .collect()
}
