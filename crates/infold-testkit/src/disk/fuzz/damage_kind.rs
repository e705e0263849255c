//! Kinds of damage to a file.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::store::DamagedFile;
use crate::random::Random;

/// A kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DamageKind {
    /// A range of it is zeros.
    Zero,
    /// Some bits are others.
    Flip,
    /// Its end is missing.
    Truncate,
    /// Two lines are swapped.
    Swap,
    /// A line is repeated.
    Duplicate,
    /// There are bytes in it that belong nowhere.
    Garbage,
    /// The file is empty.
    Empty,
    /// The file is missing.
    Missing,
    /// A directory is in its place.
    Directory,
    /// The file may not be read.
    Denied,
}

impl DamageKind {
    const ALL: [(DamageKind, &'static str); 10] = [
        (DamageKind::Zero, "zero"),
        (DamageKind::Flip, "flip"),
        (DamageKind::Truncate, "truncate"),
        (DamageKind::Swap, "swap"),
        (DamageKind::Duplicate, "duplicate"),
        (DamageKind::Garbage, "garbage"),
        (DamageKind::Empty, "empty"),
        (DamageKind::Missing, "missing"),
        (DamageKind::Directory, "directory"),
        (DamageKind::Denied, "denied"),
    ];

    /// Returns all that have an effect here: root may read every file.
    pub(super) fn all() -> impl Iterator<Item = DamageKind> {
        let is_root = rustix::process::geteuid().is_root();
        let all = DamageKind::ALL.iter().map(|(damage, _)| *damage);
        all.filter(move |damage| *damage != DamageKind::Denied || !is_root)
    }

    pub(super) fn name(self) -> &'static str {
        let mut all = DamageKind::ALL.iter();
        all.find(|(damage, _)| *damage == self)
            .map_or("", |(_, name)| name)
    }

    /// Returns whether it can happen to a file.
    pub(super) fn applies(self, damaged: &DamagedFile) -> bool {
        let lines = damaged.bytes.iter().filter(|byte| **byte == b'\n').count();
        match self {
            DamageKind::Zero | DamageKind::Flip | DamageKind::Truncate | DamageKind::Empty => {
                !damaged.bytes.is_empty()
            }
            DamageKind::Swap => damaged.file.ends_with(".jsonl") && lines > 1,
            DamageKind::Duplicate => damaged.file.ends_with(".jsonl") && lines > 0,
            DamageKind::Garbage
            | DamageKind::Missing
            | DamageKind::Directory
            | DamageKind::Denied => true,
        }
    }

    /// Does it to the file at `path`.
    pub(super) fn inflict(self, path: &Path, random: &mut Random) -> io::Result<()> {
        let bytes = fs::read(path)?;
        match self {
            DamageKind::Missing => fs::remove_file(path),
            DamageKind::Directory => fs::remove_file(path)
                .and_then(|()| fs::create_dir(path))
                .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o700))),
            DamageKind::Denied => fs::set_permissions(path, fs::Permissions::from_mode(0o0)),
            _ => fs::write(path, self.harmed(bytes, random)),
        }
    }

    fn harmed(self, mut bytes: Vec<u8>, random: &mut Random) -> Vec<u8> {
        let len = bytes.len();
        let mut place = |below: usize| random.below(below as u64) as usize;
        match self {
            DamageKind::Zero => {
                let start = place(len);
                let count = [1, 16, 100, 512, 4096][place(5)];
                bytes[start..len.min(start + count)].fill(0);
            }
            DamageKind::Flip => {
                for _ in 0..=place(8) {
                    bytes[place(len)] ^= 1 << place(8);
                }
            }
            DamageKind::Truncate => bytes.truncate(place(len)),
            DamageKind::Garbage => {
                let start = place(len + 1);
                let garbage: Vec<u8> = (0..=place(200)).map(|_| place(256) as u8).collect();
                bytes.splice(start..start, garbage);
            }
            DamageKind::Empty => bytes.clear(),
            DamageKind::Swap | DamageKind::Duplicate => return self.shuffled(&bytes, random),
            DamageKind::Missing | DamageKind::Directory | DamageKind::Denied => {}
        }
        bytes
    }

    fn shuffled(self, bytes: &[u8], random: &mut Random) -> Vec<u8> {
        let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        let at = random.below(lines.len() as u64) as usize;
        let count = lines.len();
        let other = match random.below(count as u64) as usize {
            same if same == at => (at + 1) % count,
            other => other,
        };
        match self {
            DamageKind::Swap => lines.swap(at, other),
            _ => lines.insert(other, lines[at]),
        }
        lines.concat()
    }
}
