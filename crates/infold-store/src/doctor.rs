use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use infold_log::{EventId, Role, Seq};
use infold_wire::{Wire, render_text, tokens};
use uuid::Uuid;

use crate::derived::Derived;
use crate::file::{self, Access, Growing};
use crate::lines::Lines;
use crate::lock::{Lock, Taken};
use crate::stored::Marks;
use crate::verify::Problem;
use crate::{
    Contexts, Durability, EventLine, Log, LogError, Metadata, OpenError, Registry, RegistryError,
    TaskError, What, Writer, stored, time,
};

const SIDECARS: [&str; 4] = ["messages.idx", "events.idx", "states.idx", "current.idx"];

/// Of so many lines in a row the bytes may be gone altogether.
const GONE: u64 = 10_000;
/// A file that is damaged after it was mended so often is beyond repair.
const MAX_MENDED: usize = 4;

impl Contexts {
    /// Opens the registry; one that is damaged is kept aside and made anew from the directories.
    pub fn repaired_registry(&self) -> Result<(Registry, Vec<String>), TaskError> {
        let mut done = Vec::new();
        let registry = match self.registry() {
            Err(TaskError::Registry(RegistryError::Damaged { path, .. })) => {
                let aside = path.with_extension(format!("damaged-{}", time::now()));
                fs::rename(&path, &aside).map_err(|error| LogError::io(&path, "moved", error))?;
                done.push(format!(
                    "damaged registry moved to {} and made anew",
                    aside.display()
                ));
                self.registry()?
            }
            opened => opened?,
        };
        for id in self.tasks()? {
            if registry.get(id)?.is_none() {
                match self.enter(id, &registry) {
                    Ok(()) => done.push(format!("task {id} entered into the registry")),
                    // `verify` tells what is wrong with it.
                    Err(TaskError::Log(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        for id in registry.uuids()? {
            if self.place(id).is_none() && registry.remove(id)? {
                done.push(format!("row of task {id} removed: its directory is gone"));
            }
        }
        Ok((registry, done))
    }

    /// Puts a task right and says what was done. Damaged bytes are kept aside.
    pub fn repair(&self, id: Uuid, registry: &Registry) -> Result<Vec<String>, TaskError> {
        let problems = self.verify(id, registry)?;
        let Some(dir) = self.place(id).filter(|_| !problems.is_empty()) else {
            return Ok(Vec::new());
        };
        let mut done = Vec::new();
        for problem in &problems {
            match problem {
                Problem::Damaged(LogError::Damaged { path, .. }) => {
                    done.extend(self.mend(id, &dir, path)?);
                }
                Problem::Exposed { path, mode } => {
                    let closed = fs::Permissions::from_mode(mode & 0o700);
                    fs::set_permissions(path, closed)
                        .map_err(|error| LogError::io(path, "closed", error))?;
                    done.push(format!("{} closed to others", path.display()));
                }
                _ => {}
            }
        }
        if problems
            .iter()
            .any(|problem| !matches!(problem, Problem::Exposed { .. }))
        {
            let lock = self.locked(id, &dir)?;
            for name in SIDECARS {
                let _ = fs::remove_file(dir.join(name));
            }
            drop(lock);
            done.extend(self.rewrite(id, &dir, registry)?);
        }
        Ok(done)
    }

    /// Takes the lock of a task, so that no writer is in the way.
    fn locked(&self, id: Uuid, dir: &Path) -> Result<Lock, TaskError> {
        match Lock::take(dir, self.address())? {
            Taken::Ours(lock, _) => Ok(lock),
            Taken::Held(holder) => {
                let source = OpenError::Held { holder };
                Err(TaskError::Open { task: id, source })
            }
        }
    }

    /// Derives everything of a task anew from its log.
    fn rewrite(&self, id: Uuid, dir: &Path, registry: &Registry) -> Result<Vec<String>, TaskError> {
        let opened = Writer::open(dir, Durability::Turn, &self.dirs());
        let (writer, repairs) = opened.map_err(|source| match source {
            OpenError::Log(error) => TaskError::Log(error),
            source => TaskError::Open { task: id, source },
        })?;
        for derived in Derived::ALL {
            if !derived.lines(writer.log())?.is_empty() || dir.join(derived.name()).exists() {
                derived.rewrite(writer.log())?;
            }
        }
        registry.set_counters(id, self.recount(writer.log())?)?;
        let mut done: Vec<String> = repairs.iter().map(|repair| repair.to_string()).collect();
        done.push("everything derived was derived anew".to_owned());
        Ok(done)
    }

    /// Mends a damaged file of a log, and the other one if it is damaged as well.
    fn mend(&self, id: Uuid, dir: &Path, path: &Path) -> Result<Vec<String>, TaskError> {
        let mut done = Vec::new();
        let mut damaged = Some(path.to_owned());
        while let Some(path) = damaged.take() {
            let is_messages = path.ends_with("messages.jsonl");
            if !is_messages && !path.ends_with("events.jsonl") || done.len() >= MAX_MENDED {
                break;
            }
            done.push(match is_messages {
                true => self.mend_messages(id, dir)?,
                false => self.mend_events(id, dir)?,
            });
            let opened = Log::open(dir, Access::Rederive, &self.dirs());
            if let Err(LogError::Damaged { path, .. }) = opened {
                damaged = Some(path);
            }
        }
        Ok(done)
    }

    /// Puts an event that changes nothing in the place of every damaged one. The damaged file is kept whole.
    fn mend_events(&self, id: Uuid, dir: &Path) -> Result<String, TaskError> {
        let lock = self.locked(id, dir)?;
        let path = dir.join("events.jsonl");
        let aside = dir.join(format!("torn-events-{}", time::now()));
        fs::copy(&path, &aside).map_err(|error| LogError::io(&aside, "written", error))?;
        let (mended, lost) = mended_events(dir)?;
        file::replace(&path, &mended)?;
        file::sync_dir(dir)?;
        drop(lock);
        Ok(format!(
            "{lost} damaged events taken out: what they did is undone, what followed is applied as far as it can be; the damaged file is {}",
            aside.display()
        ))
    }

    /// Puts a note in the place of every damaged message. The damaged file is kept whole.
    fn mend_messages(&self, id: Uuid, dir: &Path) -> Result<String, TaskError> {
        let lock = self.locked(id, dir)?;
        let path = dir.join("messages.jsonl");
        let aside = dir.join(format!("torn-messages-{}", time::now()));
        fs::copy(&path, &aside).map_err(|error| LogError::io(&aside, "written", error))?;
        let start = Log::open(dir, Access::Rederive, &self.dirs());
        let base = match start {
            Ok((log, _)) => log.own().seq,
            Err(_) => first_seq(dir)?,
        };
        let (mended, lost) = mended(dir, base, &aside)?;
        file::replace(&path, &mended)?;
        file::sync_dir(dir)?;
        drop(lock);
        Ok(format!(
            "{lost} damaged messages replaced by notes; the damaged file is {}",
            aside.display()
        ))
    }
}

/// The seq with which a task's own messages begin.
fn first_seq(dir: &Path) -> Result<u64, LogError> {
    let events = Growing::open(dir.join("events.jsonl"), Access::Read)?;
    let mut lines = Lines::new(&events, 0);
    let first = lines
        .next()?
        .and_then(|line| EventLine::decode(line.bytes).ok());
    Ok(match first.map(|line| line.what) {
        Some(What::Fork { at, .. }) => at.seq + 1,
        _ => 1,
    })
}

/// The good events of a file, with others that change nothing in the place of those missing between them.
fn mended_events(dir: &Path) -> Result<(Vec<u8>, u64), LogError> {
    let file = Growing::open(dir.join("events.jsonl"), Access::Read)?;
    let mut good: Vec<EventLine> = Vec::new();
    let mut lines = Lines::new(&file, 0);
    while let Some(line) = lines.next()? {
        let event = EventLine::decode(line.bytes).ok().filter(|_| line.whole);
        // One that names an earlier place, or one far off, has damaged digits.
        let fits = |event: &EventLine| {
            let last = good.last();
            let (last_id, last_after) = last.map_or((0, 0), |last| (last.id.get(), last.after));
            let is_next = event.id.get() > last_id && event.after >= last_after;
            // A fork goes on counting where its parent was.
            let begins = last.is_none() && matches!(event.what, What::Fork { .. });
            is_next && (begins || event.id.get() - last_id <= GONE)
        };
        good.extend(event.filter(fits));
    }
    let first = match good.first() {
        Some(event) if matches!(event.what, What::Fork { .. }) => event.id.get(),
        _ => 1,
    };
    let least_after = first_seq(dir)? - 1;
    let (mut out, mut next, mut lost) = (Vec::new(), first, 0);
    let (mut time, mut after) = (good.first().map_or(0, |event| event.ts), 0);
    for event in good {
        while next < event.id.get() {
            let filler = EventLine {
                id: EventId::new(next).expect("counted from one"),
                ts: time,
                after: after.max(least_after),
                pass: None,
                what: What::Other("damaged".to_owned()),
            };
            out.extend(filler.encode());
            (next, lost) = (next + 1, lost + 1);
        }
        (time, after) = (event.ts, event.after);
        next = event.id.get() + 1;
        out.extend(event.encode());
    }
    Ok((out, lost))
}

/// The good lines of a file, with notes for the messages that are missing between them.
fn mended(dir: &Path, first: u64, aside: &Path) -> Result<(Vec<u8>, u64), LogError> {
    let path = dir.join("messages.jsonl");
    let wire = Metadata::read(dir).map_or(Wire::Chat, |metadata| metadata.form());
    let file = Growing::open(path, Access::Read)?;
    let mut good = Vec::new();
    let mut lines = Lines::new(&file, 0);
    while let Some(line) = lines.next()? {
        let stored = stored::split(line.bytes).filter(|_| line.whole);
        if let Some(stored) = stored
            && infold_wire::Message::read(&stored.body(line.bytes)).is_ok()
        {
            good.push(Good {
                seq: stored.seq.get(),
                time: stored.time,
                start: line.offset,
                end: line.offset + line.bytes.len() as u64 + 1,
            });
        }
    }
    let (mut out, mut next, mut lost) = (Vec::new(), first, 0);
    for line in in_order(good, first) {
        while next < line.seq {
            let text = format!(
                "[message {next} was damaged on disk; what is left of it is in {}]",
                aside.display()
            );
            let marks = Marks {
                seq: Seq::new(next).expect("counted from one"),
                stamp: &time::iso(line.time),
                tokens: tokens::said(&text),
                role: None,
            };
            stored::write(&render_text(wire, Role::User, &text), marks, &mut out);
            (next, lost) = (next + 1, lost + 1);
        }
        let bytes = file.bytes(line.start, (line.end - line.start) as usize)?;
        out.extend_from_slice(&bytes);
        next = line.seq + 1;
    }
    Ok((out, lost))
}

/// A line that reads like a message.
#[derive(Clone, Copy)]
struct Good {
    seq: u64,
    time: u64,
    start: u64,
    end: u64,
}

/// The longest row of lines whose seqs rise, and not much faster than lines have room between them.
///
/// Damage in the digits of a seq makes a line that reads well and claims a wrong place;
/// taking it at its word would leave out all that follow it.
fn in_order(good: Vec<Good>, first: u64) -> Vec<Good> {
    // No line of ours is shorter; and of so many lines the bytes may be gone altogether.
    const SHORTEST: u64 = 80;
    let fits = |line: &Good, after: u64, end: u64| {
        line.seq > after && line.seq - after - 1 <= GONE + line.start.saturating_sub(end) / SHORTEST
    };
    // Lines that follow on one another make a row; rows that clash are few, and damage is.
    let mut rows: Vec<Vec<Good>> = Vec::new();
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
            best[*before].0 > 0 && fits(&row[0], last.seq, last.end)
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

/// How many bytes a task takes on disk.
pub fn size(dir: &Path) -> u64 {
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    files
        .filter_map(|entry| entry.metadata().ok())
        .map(|meta| meta.len())
        .sum()
}
