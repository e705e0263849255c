//! Which of the things that were not certain reached the disk: systematically, and at random.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::model::{BytesChange, SurvivingChanges, Tree, UncertainChange};
use super::session::Session;
use crate::random::Random;

/// A state that a disk may be in after a power cut.
#[derive(Clone, Debug)]
pub(super) struct DiskState {
    /// How many records of the trace had happened.
    pub(super) cut: usize,
    how: How,
    /// `cut:how`, to find it again.
    pub(super) name: String,
}

/// Which changes reached the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// Only data that is certain.
    Nothing,
    /// All data.
    All,
    /// All but one thing, by its place among those that are not certain.
    Without(usize),
    /// One change alone.
    Only(usize),
    /// Any part of each, drawn with this seed.
    Torn(u64),
}

/// The number of single changes that are left out, and kept alone, at each moment.
const SINGLES: usize = 8;
/// The number of random subsets at each moment.
const TORN: u64 = 4;

/// Takes states evenly from all moments of a session, none twice; all if `count` is zero.
pub(super) fn sample(
    session: &Session,
    count: usize,
    seed: u64,
    is_wanted: impl Fn(&str) -> bool,
) -> Vec<DiskState> {
    let mut all = every(session, seed);
    all.retain(|state| is_wanted(&state.name));
    let mut seen = HashSet::new();
    let mut chosen = Vec::new();
    // Neighbouring moments leave the same disk, so more are looked at than are taken.
    for at in spread(all.len(), seed as usize) {
        if count > 0 && chosen.len() == count {
            break;
        }
        if seen.insert(fingerprint(session, &all[at])) {
            chosen.push(all[at].clone());
        }
    }
    chosen.sort_by_key(|state| state.cut);
    chosen
}

/// All places below `len`, each once, in steps that lie far apart.
fn spread(len: usize, offset: usize) -> impl Iterator<Item = usize> {
    // The golden section of the length, made coprime to it.
    let mut step = (len as f64 * 0.618) as usize | 1;
    while len > 0 && gcd(step, len) != 1 {
        step += 2;
    }
    (0..len).map(move |at| (at * step + offset) % len)
}

fn gcd(a: usize, b: usize) -> usize {
    match b {
        0 => a,
        b => gcd(b, a % b),
    }
}

fn every(session: &Session, seed: u64) -> Vec<DiskState> {
    let mut disk = session.start();
    let mut states = Vec::new();
    for cut in 0..=session.records.len() {
        let items = disk.items().len();
        let singles = || spread(items, cut).take(SINGLES);
        let torn = (0..TORN).map(|at| How::Torn(seed.wrapping_mul(31).wrapping_add(at)));
        let hows = [How::Nothing, How::All]
            .into_iter()
            .chain(singles().map(How::Without))
            .chain(singles().map(How::Only))
            .chain(torn.filter(|_| items > 0));
        states.extend(hows.map(|how| DiskState {
            cut,
            how,
            name: format!("{cut}:{}", how.name()),
        }));
        if let Some(record) = session.records.get(cut) {
            // Recording the session has shown that they can be done.
            let _ = disk.apply(record);
        }
    }
    states
}

impl How {
    fn name(self) -> String {
        match self {
            How::Nothing => "none".to_owned(),
            How::All => "all".to_owned(),
            How::Without(at) => format!("without-{at}"),
            How::Only(at) => format!("only-{at}"),
            How::Torn(seed) => format!("torn-{seed}"),
        }
    }
}

impl DiskState {
    /// The files that are there.
    pub(super) fn tree(&self, session: &Session) -> Tree {
        let disk = session.disk_at(self.cut);
        let items = disk.items();
        let pick = |at: usize| items.get(at).copied();
        match self.how {
            How::Nothing => disk.after_cut(&mut Chosen(&|_| false)),
            How::All => disk.live(),
            How::Without(at) => disk.after_cut(&mut Chosen(&|item| Some(item) != pick(at))),
            How::Only(at) => disk.after_cut(&mut Chosen(&|item| Some(item) == pick(at))),
            How::Torn(seed) => disk.after_cut(&mut Torn::new(seed ^ (self.cut as u64) << 20)),
        }
    }
}

fn fingerprint(session: &Session, state: &DiskState) -> u64 {
    let mut hasher = DefaultHasher::new();
    // An acknowledgement belongs to the change before it.
    session.acknowledged(state.cut).hash(&mut hasher);
    for (path, bytes) in state.tree(session) {
        if !path.ends_with("-shm") {
            (path, bytes).hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// Whole changes, by a rule.
struct Chosen<'a>(&'a dyn Fn(UncertainChange) -> bool);

impl SurvivingChanges for Chosen<'_> {
    fn name(&mut self, at: usize) -> bool {
        (self.0)(UncertainChange::Name(at))
    }

    fn bytes(&mut self, file: usize, certain: &[u8], changes: &[BytesChange]) -> Vec<u8> {
        let mut bytes = certain.to_vec();
        for (at, change) in changes.iter().enumerate() {
            if (self.0)(UncertainChange::Change(file, at)) {
                change.apply(&mut bytes);
            }
        }
        bytes
    }
}

/// Names by chance, and of files any version of each block and any size they had.
pub(super) struct Torn {
    random: Random,
    /// How many of a hundred names and blocks are new.
    percent: u64,
    block: usize,
}

impl Torn {
    pub(super) fn new(seed: u64) -> Torn {
        let mut random = Random::new(seed);
        Torn {
            percent: [15, 50, 85][random.below(3) as usize],
            block: [512, 4096][random.below(2) as usize],
            random,
        }
    }
}

impl SurvivingChanges for Torn {
    fn name(&mut self, _: usize) -> bool {
        self.random.chance(self.percent)
    }

    fn bytes(&mut self, _: usize, certain: &[u8], changes: &[BytesChange]) -> Vec<u8> {
        // Sizes that were set are the file system's own, and in order: some of the last ones may be missing.
        let sets = changes
            .iter()
            .filter(|change| matches!(change, BytesChange::Size(_)))
            .count();
        let kept = if self.random.chance(self.percent) {
            sets
        } else {
            self.random.below(sets as u64 + 1) as usize
        };
        let mut left = kept;
        let epoch = changes.iter().take_while(|change| match change {
            BytesChange::Write(..) => true,
            BytesChange::Size(_) if left > 0 => {
                left -= 1;
                true
            }
            BytesChange::Size(_) => false,
        });
        let mut versions = vec![certain.to_vec()];
        let mut sizes = vec![certain.len()];
        for change in epoch {
            let mut next = versions[versions.len() - 1].clone();
            change.apply(&mut next);
            if let BytesChange::Size(len) = change {
                // Older versions of a truncated part never appear again.
                for version in &mut versions {
                    version.truncate(*len as usize);
                }
                sizes.clear();
            }
            sizes.push(next.len());
            versions.push(next);
        }
        self.assemble(&versions, &sizes)
    }
}

impl Torn {
    /// Puts a file together of blocks, each of some version.
    fn assemble(&mut self, versions: &[Vec<u8>], sizes: &[usize]) -> Vec<u8> {
        let last = sizes.len() - 1;
        let size = if self.random.chance(self.percent) {
            sizes[last]
        } else {
            sizes[self.random.below(sizes.len() as u64) as usize]
        };
        let mut bytes = vec![0; size];
        for start in (0..size).step_by(self.block) {
            let version = if self.random.chance(self.percent) {
                versions.len() - 1
            } else {
                self.random.below(versions.len() as u64) as usize
            };
            let end = size.min(start + self.block);
            let from = &versions[version];
            let have = from.len().clamp(start, end);
            if start < have {
                bytes[start..have].copy_from_slice(&from[start..have]);
            }
        }
        bytes
    }
}
