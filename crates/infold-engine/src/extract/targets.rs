//! Targets of calls: files, commands and others, with the last action on each and its outcome.

use std::collections::{BTreeMap, HashMap};

use infold_wire::tool_action::ToolOutcome;

use super::facts::{FactsWriter, Persist, persist, persist_enum};

/// The number of a target, in the order of first use.
pub type TargetId = u32;

/// The kind of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TargetKind {
    File,
    Command,
    /// A call of any other tool.
    Call,
}

/// An action on a file; later variants are more informative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileAction {
    Mentioned,
    Read,
    Edited,
    Written,
    Created,
    Moved,
    Deleted,
}

impl FileAction {
    /// Returns its word in a summary.
    pub fn word(self) -> &'static str {
        match self {
            FileAction::Mentioned => "mentioned",
            FileAction::Read => "read",
            FileAction::Edited => "edited",
            FileAction::Written => "written",
            FileAction::Created => "created",
            FileAction::Moved => "moved",
            FileAction::Deleted => "deleted",
        }
    }
}

/// A file, a command or another call, and the last action on it.
#[derive(Clone, Debug)]
pub struct CallTarget {
    pub kind: TargetKind,
    /// The path, the command, or the call as `name(arguments)`.
    pub key: Box<str>,
    /// The last change; reading a changed file does not retarget it.
    pub action: FileAction,
    /// The number of times that it was changed or run.
    pub times: u32,
    /// The message of that action.
    pub seq: u64,
    /// The last message that used it.
    pub last: u64,
    /// The state before the last action.
    before: PastAction,
    /// The outcome of the last action.
    pub ending: Option<ToolOutcome>,
    /// The message with that result.
    pub ended: Option<u64>,
}

/// An action on a target, how often it was taken, and its last message.
#[derive(Clone, Copy, Debug)]
struct PastAction {
    action: FileAction,
    times: u32,
    seq: u64,
}

/// All targets; the less interesting half is dropped if there are too many.
#[derive(Default)]
pub struct TargetTable {
    ids: HashMap<(TargetKind, Box<str>), TargetId>,
    all: BTreeMap<TargetId, CallTarget>,
    next: TargetId,
}

const MAX_TARGETS: usize = 4000;

impl TargetTable {
    /// Records an action on a target, and returns the target's number.
    pub fn touch(&mut self, kind: TargetKind, key: &str, action: FileAction, seq: u64) -> TargetId {
        let id = self.id(kind, key, seq);
        if let Some(target) = self.all.get_mut(&id) {
            let look = kind == TargetKind::File && action <= FileAction::Read;
            if !look || target.action <= action {
                target.before = PastAction {
                    action: target.action,
                    times: target.times,
                    seq: target.seq,
                };
                // Reads are not counted among the changes, nor changes from before a removal.
                let is_other = target.action <= FileAction::Read && !look
                    || (target.action == FileAction::Deleted) != (action == FileAction::Deleted);
                if kind == TargetKind::File && is_other {
                    target.times = 0;
                }
                target.action = action;
                target.seq = seq;
                target.times = target.times.saturating_add(1);
            }
            target.last = seq;
        }
        id
    }

    /// Records that a file was removed, which may be known by a longer path.
    pub fn delete(&mut self, path: &str, seq: u64) {
        let same = |key: &str| {
            let front = key.strip_suffix(path);
            front.is_some_and(|front| front.is_empty() || front.ends_with('/'))
        };
        let known = self
            .of(TargetKind::File)
            .find(|(_, target)| same(&target.key));
        let key = known.map(|(_, target)| target.key.clone());
        self.touch(
            TargetKind::File,
            key.as_deref().unwrap_or(path),
            FileAction::Deleted,
            seq,
        );
    }

    /// Reverts the actions of a message on files, because it failed or was rejected.
    pub fn revert(&mut self, ids: &[TargetId], seq: u64) {
        for id in ids {
            let Some(target) = self.all.get_mut(id) else {
                continue;
            };
            if target.seq == seq {
                let PastAction { action, times, seq } = target.before;
                (target.action, target.times, target.seq) = (action, times, seq);
            } else {
                target.times = target.times.saturating_sub(1);
            }
        }
    }

    /// Records how the last action ended.
    pub fn end(&mut self, id: TargetId, seq: u64, ending: ToolOutcome) {
        if let Some(target) = self.all.get_mut(&id) {
            target.ended = Some(seq);
            target.ending = Some(ending);
        }
    }

    /// Returns a target, unless it was forgotten.
    pub fn get(&self, id: TargetId) -> Option<&CallTarget> {
        self.all.get(&id)
    }

    /// Returns all targets of a kind.
    pub fn of(&self, kind: TargetKind) -> impl Iterator<Item = (TargetId, &CallTarget)> {
        self.all
            .iter()
            .filter(move |(_, target)| target.kind == kind)
            .map(|(id, target)| (*id, target))
    }

    /// Returns about how many bytes the table takes.
    pub fn memory_bytes(&self) -> usize {
        let text = |target: &CallTarget| {
            let key = target
                .ending
                .as_ref()
                .and_then(|ending| ending.key.as_ref());
            2 * target.key.len() + key.map_or(0, String::len)
        };
        let each = size_of::<CallTarget>() + size_of::<(TargetKind, Box<str>)>() + 64;
        self.all.values().map(|target| each + text(target)).sum()
    }

    fn id(&mut self, kind: TargetKind, key: &str, seq: u64) -> TargetId {
        let key = (kind, Box::from(key));
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        if self.all.len() >= MAX_TARGETS {
            self.forget();
        }
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        let target = CallTarget {
            kind,
            key: key.1.clone(),
            action: FileAction::Mentioned,
            times: 0,
            seq,
            last: seq,
            before: PastAction {
                action: FileAction::Mentioned,
                times: 0,
                seq,
            },
            ending: None,
            ended: None,
        };
        self.all.insert(id, target);
        self.ids.insert(key, id);
        id
    }

    /// Keeps the better half: changed files first, then the newest.
    fn forget(&mut self) {
        let mut order: Vec<(bool, u64, TargetId)> = self
            .all
            .iter()
            .map(|(id, target)| {
                let changed = target.kind == TargetKind::File && target.action > FileAction::Read;
                (changed, target.last, *id)
            })
            .collect();
        order.sort_unstable();
        for (_, _, id) in &order[..MAX_TARGETS / 2] {
            if let Some(target) = self.all.remove(id) {
                self.ids.remove(&(target.kind, target.key));
            }
        }
    }
}

persist_enum!(TargetKind: File, Command, Call);
persist_enum!(FileAction: Mentioned, Read, Edited, Written, Created, Moved, Deleted);
persist!(PastAction: action, times, seq);
persist!(CallTarget: kind, key, action, times, seq, last, before, ending, ended);

impl Persist for TargetTable {
    fn put(&self, out: &mut FactsWriter<'_>) {
        self.all.put(out);
        self.next.put(out);
    }

    fn get(from: &mut &[u8]) -> Option<TargetTable> {
        let all: BTreeMap<TargetId, CallTarget> = Persist::get(from)?;
        let ids = all
            .iter()
            .map(|(id, target)| ((target.kind, target.key.clone()), *id));
        Some(TargetTable {
            ids: ids.collect(),
            next: Persist::get(from)?,
            all,
        })
    }
}
