//! Files, commands and other calls: what was last done there, and how it ended.

use std::collections::{BTreeMap, HashMap};

use infold_wire::acts::Ending;

use super::facts::{Keep, Sink, keep, keep_choice};

/// Number of a place, in the order they were first met.
pub type PlaceId = u32;

/// What something was done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    File,
    Command,
    /// A call of any other tool.
    Call,
}

/// What was done to a file, the least telling first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Done {
    Mentioned,
    Read,
    Edited,
    Written,
    Created,
    Moved,
    Deleted,
}

impl Done {
    /// Its word in a summary.
    pub fn word(self) -> &'static str {
        match self {
            Done::Mentioned => "mentioned",
            Done::Read => "read",
            Done::Edited => "edited",
            Done::Written => "written",
            Done::Created => "created",
            Done::Moved => "moved",
            Done::Deleted => "deleted",
        }
    }
}

/// A file, a command or another call, and the last thing done there.
#[derive(Clone, Debug)]
pub struct Place {
    pub kind: Kind,
    /// The path, the command, or the call as `name(arguments)`.
    pub key: Box<str>,
    /// The last change; a look at a changed file does not hide that it was changed.
    pub done: Done,
    /// How often it was changed, or run.
    pub times: u32,
    /// The message that last did it.
    pub seq: u64,
    /// The message that last had to do with it.
    pub last: u64,
    /// What was done, how often and where, before the last thing that was done.
    before: Change,
    /// How it ended the last time.
    pub ending: Option<Ending>,
    /// The message that told so.
    pub ended: Option<u64>,
}

/// What was done to a place, how often, and the last message that did it.
#[derive(Clone, Copy, Debug)]
struct Change {
    done: Done,
    times: u32,
    seq: u64,
}

/// All places, those of least interest forgotten when there are too many.
#[derive(Default)]
pub struct Places {
    ids: HashMap<(Kind, Box<str>), PlaceId>,
    all: BTreeMap<PlaceId, Place>,
    next: PlaceId,
}

const MOST: usize = 4000;

impl Places {
    /// Notes that something was done to a place, and returns its number.
    pub fn touch(&mut self, kind: Kind, key: &str, done: Done, seq: u64) -> PlaceId {
        let id = self.id(kind, key, seq);
        if let Some(place) = self.all.get_mut(&id) {
            let look = kind == Kind::File && done <= Done::Read;
            if !look || place.done <= done {
                place.before = Change {
                    done: place.done,
                    times: place.times,
                    seq: place.seq,
                };
                // Looks are not counted among the changes, and what was done before a removal not with it.
                let is_other = place.done <= Done::Read && !look
                    || (place.done == Done::Deleted) != (done == Done::Deleted);
                if kind == Kind::File && is_other {
                    place.times = 0;
                }
                place.done = done;
                place.seq = seq;
                place.times = place.times.saturating_add(1);
            }
            place.last = seq;
        }
        id
    }

    /// Notes that a file was removed, which may be known by a longer path.
    pub fn delete(&mut self, path: &str, seq: u64) {
        let same = |key: &str| {
            let front = key.strip_suffix(path);
            front.is_some_and(|front| front.is_empty() || front.ends_with('/'))
        };
        let known = self.of(Kind::File).find(|(_, place)| same(&place.key));
        let key = known.map(|(_, place)| place.key.clone());
        self.touch(
            Kind::File,
            key.as_deref().unwrap_or(path),
            Done::Deleted,
            seq,
        );
    }

    /// Takes back what a message did to files, because it failed or was refused.
    pub fn take_back(&mut self, ids: &[PlaceId], seq: u64) {
        for id in ids {
            let Some(place) = self.all.get_mut(id) else {
                continue;
            };
            if place.seq == seq {
                let Change { done, times, seq } = place.before;
                (place.done, place.times, place.seq) = (done, times, seq);
            } else {
                place.times = place.times.saturating_sub(1);
            }
        }
    }

    /// Notes how the last thing done there ended.
    pub fn end(&mut self, id: PlaceId, seq: u64, ending: Ending) {
        if let Some(place) = self.all.get_mut(&id) {
            place.ended = Some(seq);
            place.ending = Some(ending);
        }
    }

    /// Returns a place, unless it was forgotten.
    pub fn get(&self, id: PlaceId) -> Option<&Place> {
        self.all.get(&id)
    }

    /// Returns all of a kind.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = (PlaceId, &Place)> {
        self.all
            .iter()
            .filter(move |(_, place)| place.kind == kind)
            .map(|(id, place)| (*id, place))
    }

    /// Returns about how many bytes they take.
    pub fn held(&self) -> usize {
        let text = |place: &Place| {
            let key = place.ending.as_ref().and_then(|ending| ending.key.as_ref());
            2 * place.key.len() + key.map_or(0, String::len)
        };
        let each = size_of::<Place>() + size_of::<(Kind, Box<str>)>() + 64;
        self.all.values().map(|place| each + text(place)).sum()
    }

    fn id(&mut self, kind: Kind, key: &str, seq: u64) -> PlaceId {
        let key = (kind, Box::from(key));
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        if self.all.len() >= MOST {
            self.forget();
        }
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        let place = Place {
            kind,
            key: key.1.clone(),
            done: Done::Mentioned,
            times: 0,
            seq,
            last: seq,
            before: Change {
                done: Done::Mentioned,
                times: 0,
                seq,
            },
            ending: None,
            ended: None,
        };
        self.all.insert(id, place);
        self.ids.insert(key, id);
        id
    }

    /// Keeps the better half: what changed something before what only looked, then the newest.
    fn forget(&mut self) {
        let mut order: Vec<(bool, u64, PlaceId)> = self
            .all
            .iter()
            .map(|(id, place)| {
                let changed = place.kind == Kind::File && place.done > Done::Read;
                (changed, place.last, *id)
            })
            .collect();
        order.sort_unstable();
        for (_, _, id) in &order[..MOST / 2] {
            if let Some(place) = self.all.remove(id) {
                self.ids.remove(&(place.kind, place.key));
            }
        }
    }
}

keep_choice!(Kind {
    File,
    Command,
    Call
});
keep_choice!(Done {
    Mentioned,
    Read,
    Edited,
    Written,
    Created,
    Moved,
    Deleted
});
keep!(Change { done, times, seq });
keep!(Place {
    kind,
    key,
    done,
    times,
    seq,
    last,
    before,
    ending,
    ended
});

impl Keep for Places {
    fn put(&self, out: &mut Sink<'_>) {
        self.all.put(out);
        self.next.put(out);
    }

    fn get(from: &mut &[u8]) -> Option<Places> {
        let all: BTreeMap<PlaceId, Place> = Keep::get(from)?;
        let ids = all
            .iter()
            .map(|(id, place)| ((place.kind, place.key.clone()), *id));
        Some(Places {
            ids: ids.collect(),
            next: Keep::get(from)?,
            all,
        })
    }
}
