//! The tasks that a fork continues, newest first, in a file beside its log (`lineage.idx`).

use std::cell::RefCell;
use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use infold_log::{EventId, Past as _, Point, Seq};
use uuid::Uuid;

use super::ancestor::Ancestor;
use super::ancestors::Ancestors;
use crate::dirs::TaskDirs;
use crate::event::{EventLine, What};
use crate::file::{self, Access, Growing};
use crate::lines::Lines;
use crate::table::{Numbers, checksum, put, unsealed};
use crate::{Log, LogError};

/// The tasks that a log continues: each entry before its own is held by one of them.
///
/// A list, not a chain: the holder of an entry is found by binary search and opened without those between.
/// The first links come from the sidecar, older ones are looked up when they are asked for.
#[derive(Debug)]
pub(crate) struct Lineage {
    pub(super) dirs: TaskDirs,
    links: RefCell<Links>,
    pub(super) ancestors: RefCell<Ancestors>,
}

/// A task that is continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AncestorLink {
    pub task: Uuid,
    /// Where it was forked.
    pub at: Point,
    /// The last of its entries that count: those that were forked later may go back further.
    pub end: Point,
}

#[derive(Debug)]
struct Links {
    /// Newest first; their ends never rise. Shared with the lineages of ancestors, each of which begins further back.
    all: Arc<Vec<AncestorLink>>,
    start: usize,
    /// The task itself.
    own: Option<Uuid>,
    /// All tasks of the list, and the task itself, once that is asked.
    known: Option<HashSet<Uuid>>,
    /// The last one continues no other task.
    is_complete: bool,
    /// Sidecars of ancestors are believed.
    trusts_sidecars: bool,
    /// `lineage.idx` says the same.
    is_saved: bool,
}

const NAME: &str = "lineage.idx";
const MAGIC: u64 = u64::from_le_bytes(*b"infoldl1");
/// The most links in the file beside a log, so that it fills one block of a disk. The sidecar of the last one
/// has those before it.
const MAX_KEPT_LINKS: usize = 120;

impl Lineage {
    /// The lineage of a task that continues none.
    pub fn none() -> Lineage {
        Lineage::new(TaskDirs::none(), Links::default())
    }

    /// Opens the lineage of the task in `dir`, whose first event names its parent.
    pub fn open(
        dir: &Path,
        task: &str,
        at: Point,
        dirs: TaskDirs,
        access: Access,
    ) -> Result<Lineage, LogError> {
        let Ok(parent) = task.parse() else {
            return Err(not_here(task));
        };
        let name = dir.file_name().and_then(|name| name.to_str());
        let own = name.and_then(|name| name.trim_start_matches('.').parse().ok());
        let first = (parent, at);
        let kept = match access {
            Access::Rederive => None,
            Access::Read | Access::Write => read_sidecar(dir),
        };
        let kept = kept.filter(|(links, _)| links.first() == Some(&first));
        let mut links = Links {
            own,
            is_saved: kept.is_some(),
            trusts_sidecars: access != Access::Rederive,
            ..Links::default()
        };
        let (kept, is_complete) = kept.unwrap_or((vec![first], false));
        links.push_all(kept)?;
        links.is_complete = is_complete;
        Ok(Lineage::new(dirs, links))
    }

    fn new(dirs: TaskDirs, links: Links) -> Lineage {
        Lineage {
            dirs,
            links: RefCell::new(links),
            ancestors: RefCell::default(),
        }
    }

    /// The lineage of an ancestor, as this one knows it; it takes over all that is open.
    pub(super) fn of_ancestor(&self, index: usize) -> Lineage {
        let links = self.links.borrow();
        let older = Links {
            all: Arc::clone(&links.all),
            start: links.start + index + 1,
            own: links.list().get(index).map(|link| link.task),
            known: None,
            ..*links
        };
        let lineage = Lineage::new(self.dirs.clone(), older);
        lineage.ancestors.replace(self.ancestors.take());
        lineage
    }

    /// Which ancestor holds the message or event with a number that is not the log's own.
    pub(super) fn holder(&self, number: u64, of: fn(Point) -> u64) -> Result<usize, LogError> {
        loop {
            let links = self.links.borrow();
            let held = links
                .list()
                .partition_point(|link| of(link.end) >= number)
                .saturating_sub(1);
            if links.is_complete || held + 1 < links.list().len() {
                return Ok(held);
            }
            drop(links);
            self.extend()?;
        }
    }

    /// An ancestor by its index; none if there are not so many.
    pub(super) fn link(&self, index: usize) -> Result<Option<AncestorLink>, LogError> {
        while self.links.borrow().list().len() <= index && !self.links.borrow().is_complete {
            self.extend()?;
        }
        Ok(self.links.borrow().list().get(index).copied())
    }

    /// Opens an ancestor. That its own entries begin where the list says is seen when its sidecars are opened.
    pub(super) fn open_ancestor(&self, index: usize) -> Result<Ancestor, LogError> {
        let link = self.link(index)?.ok_or_else(|| not_here("of unknown id"))?;
        let dir = self.find(link.task)?;
        let next = self.link(index + 1)?;
        let base = next.map_or(Point::default(), |next| next.at);
        Ok(Ancestor::new(link.task, dir, base, link.end))
    }

    /// Checks whether an ancestor continues the task that the list says. If not, the list is older or newer
    /// than the logs, and the ancestors after it are looked up in the logs.
    pub(super) fn check_link(&self, index: usize) -> Result<(), LogError> {
        let link = self.link(index)?.ok_or_else(|| not_here("of unknown id"))?;
        let next = self.link(index + 1)?;
        if continued_by(&self.find(link.task)?)? != next.map(|next| (next.task, next.at)) {
            self.links.borrow_mut().distrust(index);
        }
        Ok(())
    }

    /// The ancestor that holds all up to a point, and the point as it counts there.
    pub fn holder_of(&self, at: Point) -> Result<Option<(Uuid, Point)>, LogError> {
        let (mut at, mut found) = (at, None);
        for index in 0.. {
            let Some(link) = self.link(index)? else { break };
            // The first event of the task before only names the point that it continues from.
            if at.seq > link.at.seq || at.event > link.at.event + 1 {
                break;
            }
            at.event = at.event.min(link.at.event);
            found = Some((link.task, at));
        }
        Ok(found)
    }

    /// Checks that every ancestor is there, long enough, and no ancestor of itself.
    pub fn check(&self) -> Result<(), LogError> {
        let mut index = 0;
        while let Some(link) = self.link(index)? {
            // The part that it shares with its ancestors is checked there.
            if link.end.seq > 0 || link.end.event > 0 {
                self.with(index, Ancestor::check_end)?;
            }
            index += 1;
        }
        Ok(())
    }

    /// Writes the sidecar, if it is not there.
    pub fn save(&self, dir: &Path) -> Result<(), LogError> {
        if self.links.borrow().is_saved {
            return Ok(());
        }
        self.link(MAX_KEPT_LINKS)?;
        let mut links = self.links.borrow_mut();
        let kept = &links.list()[..links.list().len().min(MAX_KEPT_LINKS)];
        let is_complete = links.is_complete && kept.len() == links.list().len();
        let mut bytes = Vec::with_capacity(16 + kept.len() * 32 + 8);
        put(&mut bytes, &[MAGIC, u64::from(is_complete)]);
        for link in kept {
            bytes.extend_from_slice(link.task.as_bytes());
            put(&mut bytes, &[link.at.seq, link.at.event]);
        }
        let sum = checksum(0, &bytes);
        put(&mut bytes, &[sum]);
        file::write_new(&dir.join(NAME), &bytes, false)?;
        links.is_saved = true;
        Ok(())
    }

    /// Looks up the parent of the last known ancestor.
    fn extend(&self) -> Result<(), LogError> {
        let links = self.links.borrow();
        let Some(last) = links.list().last().copied() else {
            return Ok(());
        };
        let trusts_sidecars = links.trusts_sidecars;
        drop(links);
        let dir = self.find(last.task)?;
        let first = continued_by(&dir)?;
        let kept = read_sidecar(&dir).filter(|_| trusts_sidecars);
        let kept = kept.filter(|(kept, _)| kept.first() == first.as_ref());
        let mut links = self.links.borrow_mut();
        let (more, is_complete) = match (first, kept) {
            (None, _) => (Vec::new(), true),
            (Some(_), Some(kept)) => kept,
            (Some(first), None) => (vec![first], false),
        };
        links.push_all(more)?;
        links.is_complete = is_complete;
        Ok(())
    }

    fn find(&self, task: Uuid) -> Result<std::path::PathBuf, LogError> {
        let found = self.dirs.find(task);
        found.ok_or_else(|| not_here(&task.to_string()))
    }
}

impl Default for Links {
    /// The links of a task that continues none.
    fn default() -> Links {
        Links {
            all: Arc::default(),
            start: 0,
            own: None,
            known: None,
            is_complete: true,
            trusts_sidecars: true,
            is_saved: true,
        }
    }
}

impl Links {
    fn list(&self) -> &[AncestorLink] {
        &self.all[self.start..]
    }

    fn push_all(&mut self, links: Vec<(Uuid, Point)>) -> Result<(), LogError> {
        let known = self.known.take().unwrap_or_else(|| {
            let tasks = self.list().iter().map(|link| link.task);
            tasks.chain(self.own).collect()
        });
        let known = self.known.insert(known);
        let all = Arc::make_mut(&mut self.all);
        for (task, at) in links {
            if !known.insert(task) {
                let parent = task.to_string();
                return Err(LogError::Circular { parent });
            }
            let end = all.last().map_or(at, |last| lower(last.end, at));
            all.push(AncestorLink { task, at, end });
        }
        Ok(())
    }

    /// Forgets all behind an ancestor: they are looked up in the logs themselves.
    fn distrust(&mut self, index: usize) {
        Arc::make_mut(&mut self.all).truncate(self.start + index + 1);
        self.known = None;
        (self.is_saved, self.is_complete, self.trusts_sidecars) = (false, false, false);
    }
}

impl Log {
    /// The task it was forked from, and where.
    pub fn parent(&self) -> Option<(&str, Point)> {
        let (task, at) = self.parent.as_ref()?;
        Some((task, *at))
    }

    /// The task that holds all up to a point, of those that this one continues, and the point as it counts there;
    /// none if this one holds a part of it.
    pub(crate) fn holder_of(&self, at: Point) -> Result<Option<(Uuid, Point)>, LogError> {
        self.lineage.holder_of(at)
    }

    /// The tasks that it continues and that hold messages of it, newest first, each with the last that counts.
    pub(crate) fn message_holders(&self) -> Result<Vec<(Uuid, Seq)>, LogError> {
        let mut holders = Vec::new();
        let mut next = self.lineage.link(0)?;
        for index in 1.. {
            let Some(link) = next else { break };
            next = self.lineage.link(index)?;
            let base = next.map_or(0, |next| next.at.seq);
            let last = Seq::new(link.end.seq).filter(|last| last.get() > base);
            holders.extend(last.map(|last| (link.task, last)));
        }
        Ok(holders)
    }

    /// Checks that all tasks are there that it continues.
    pub(crate) fn check_lineage(&self) -> Result<(), LogError> {
        self.lineage.check()
    }

    /// Checks that no entry at the point from which it continues another task is newer than the fork itself:
    /// times in a log do not decrease, so such an entry was written after others had been lost.
    ///
    /// A clock that was wrong by more than a minute has the same effect, so call this only if something else is
    /// wrong as well.
    pub(crate) fn check_fork_time(&self) -> Result<(), LogError> {
        let Some((parent, first)) = self.lineage.link(0)?.zip(EventId::new(self.own().event))
        else {
            return Ok(());
        };
        let forked = self.mark(first)?.time;
        let message = Seq::new(self.base.seq).map(|seq| self.record(seq));
        let event = EventId::new(self.base.event).map(|id| self.mark(id));
        let is_newer = message.transpose()?.is_some_and(|last| last.time > forked)
            || event.transpose()?.is_some_and(|last| last.time > forked);
        if is_newer {
            Err(no_fork_point(parent.task))
        } else {
            Ok(())
        }
    }

    /// How many files it may have open at most, for itself and for tasks that it continues.
    pub fn max_descriptors(&self) -> u64 {
        const OWN: u64 = 5;
        match self.parent {
            Some(_) => OWN + Ancestors::MAX_DESCRIPTORS,
            None => OWN,
        }
    }
}

/// Which task the one in `dir` continues, by its first event, and from where.
pub(crate) fn continued_by(dir: &Path) -> Result<Option<(Uuid, Point)>, LogError> {
    let events = Growing::open(dir.join("events.jsonl"), Access::Read)?;
    match first_event(&events)? {
        Some(What::Fork { task, at }) => match task.parse() {
            Ok(id) => Ok(Some((id, at))),
            Err(_) => Err(not_here(&task)),
        },
        _ => Ok(None),
    }
}

/// Reads the first event of a log.
pub(super) fn first_event(events: &Growing) -> Result<Option<What>, LogError> {
    /// A fork's first line is shorter.
    const HEAD_BYTES: u64 = 512;
    let head = events.bytes(0, events.len().min(HEAD_BYTES) as usize)?;
    if let Some(end) = memchr::memchr(b'\n', &head) {
        return Ok(EventLine::decode(&head[..end]).ok().map(|line| line.what));
    }
    let mut lines = Lines::new(events, 0);
    let first = lines.next()?.filter(|line| line.whole);
    let first = first.and_then(|line| EventLine::decode(line.bytes).ok());
    Ok(first.map(|line| line.what))
}

/// Returns the task that a task continues according to its sidecar, for logs whose first event is damaged.
pub(crate) fn kept_parent(dir: &Path) -> Option<(Uuid, Point)> {
    read_sidecar(dir)?.0.first().copied()
}

/// Returns whether a task's sidecar lists another task among those that it continues.
pub(crate) fn lists_ancestor(dir: &Path, task: Uuid) -> bool {
    let listed = read_sidecar(dir).map(|(links, _)| links);
    let mut listed = listed.into_iter().flatten();
    listed.any(|(one, _)| one == task)
}

/// Removes the list of the tasks that a task continues: it is looked up in the logs again.
pub(crate) fn remove_sidecar(dir: &Path) -> Result<(), LogError> {
    let path = dir.join(NAME);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(LogError::io(&path, "removed", error))
        }
        _ => Ok(()),
    }
}

/// The links that a task's sidecar holds, and whether those are all.
fn read_sidecar(dir: &Path) -> Option<(Vec<(Uuid, Point)>, bool)> {
    let bytes = fs::read(dir.join(NAME)).ok()?;
    let mut numbers = Numbers(unsealed(0, &bytes)?);
    (numbers.u64()? == MAGIC).then_some(())?;
    let is_complete = numbers.u64()? == 1;
    let records = numbers.0.chunks_exact(32).map(|record| {
        let (task, point) = record.split_first_chunk::<16>()?;
        let mut point = Numbers(point);
        let (seq, event) = (point.u64()?, point.u64()?);
        Some((Uuid::from_bytes(*task), Point { seq, event }))
    });
    Some((records.collect::<Option<_>>()?, is_complete))
}

fn lower(one: Point, other: Point) -> Point {
    Point {
        seq: one.seq.min(other.seq),
        event: one.event.min(other.event),
    }
}

fn not_here(task: &str) -> LogError {
    LogError::NoParent {
        parent: task.to_owned(),
        reason: "is not here",
    }
}

/// A task whose log was shortened and written to since has other entries around the point where it was forked.
pub(super) fn no_fork_point(task: Uuid) -> LogError {
    LogError::NoParent {
        parent: task.to_string(),
        reason: "has lost the point where it was forked",
    }
}
