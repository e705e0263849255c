//! Which paths the index of a repository tracks.

use crate::workspace::is_below;

/// The paths that the index of a repository tracks, relative to its directory and in order; of each, whether it is a
/// submodule.
#[derive(Debug, Default)]
pub(crate) struct TrackedPaths(Vec<(Vec<u8>, bool)>);

/// The size of the fixed fields at the start of an entry: times, device, inode, mode, owner and size.
const STAT_BYTES: usize = 40;
const MODE_AT: usize = 24;
const SUBMODULE: [u8; 4] = 0o160_000_u32.to_be_bytes();

impl TrackedPaths {
    /// Reads an index, versions 2 to 4. None if it is damaged or of another kind.
    ///
    /// Git itself is not used: its handling of an index depends on the configuration of the repository, which
    /// can name programs.
    pub fn parse(index: &[u8]) -> Option<TrackedPaths> {
        // The hash of objects has 20 bytes, or 32: the index does not say which.
        parse(index, 20).or_else(|| parse(index, 32))
    }

    /// Adds those of another index, of which this one is a part.
    pub fn merge(&mut self, other: TrackedPaths) {
        self.0.extend(other.0);
        self.0.sort_unstable();
    }

    pub fn contains(&self, path: &[u8]) -> bool {
        self.at(path).is_some()
    }

    pub fn is_submodule(&self, path: &[u8]) -> bool {
        self.at(path).is_some_and(|(_, is_submodule)| *is_submodule)
    }

    pub fn any_below(&self, path: &[u8]) -> bool {
        let mut below = path.to_owned();
        below.push(b'/');
        let at = self.0.partition_point(|(known, _)| *known < below);
        let next = self.0.get(at);
        next.is_some_and(|(known, _)| is_below(known, path))
    }

    fn at(&self, path: &[u8]) -> Option<&(Vec<u8>, bool)> {
        let at = self.0.partition_point(|(known, _)| known.as_slice() < path);
        self.0.get(at).filter(|(known, _)| known == path)
    }
}

fn parse(index: &[u8], hash_bytes: usize) -> Option<TrackedPaths> {
    let mut rest = index.strip_prefix(b"DIRC")?;
    let version = number(&mut rest)?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let count = number(&mut rest)?;
    let mut paths = Vec::new();
    let mut previous: Vec<u8> = Vec::new();
    for _ in 0..count {
        let entry = rest;
        let flags_at = STAT_BYTES + hash_bytes;
        let flags = u16::from_be_bytes([*entry.get(flags_at)?, *entry.get(flags_at + 1)?]);
        // Bit 14: two more bytes of flags.
        let name_at = flags_at + if flags & 0x4000 != 0 { 4 } else { 2 };
        let mut name = entry.get(name_at..)?;
        if version == 4 {
            let dropped = variable_length(&mut name)?;
            let kept = previous.len().checked_sub(dropped)?;
            previous.truncate(kept);
        } else {
            previous.clear();
        }
        let end = name.iter().position(|byte| *byte == 0)?;
        previous.extend_from_slice(&name[..end]);
        if previous.is_empty() && version < 4 && index.len() < flags_at {
            return None;
        }
        let is_submodule = entry.get(MODE_AT..MODE_AT + 4)? == SUBMODULE;
        paths.push((previous.clone(), is_submodule));
        let used = entry.len() - name.len() + end;
        // Before version 4 an entry ends with one to eight zeros, at a multiple of eight.
        let length = match version {
            4 => used + 1,
            _ => (used + 8) / 8 * 8,
        };
        if version < 4 && entry.get(used..length)?.iter().any(|byte| *byte != 0) {
            return None;
        }
        rest = entry.get(length..)?;
    }
    // Extensions follow, and a hash of everything.
    if rest.len() < hash_bytes || !are_extensions(&rest[..rest.len() - hash_bytes]) {
        return None;
    }
    paths.sort_unstable();
    Some(TrackedPaths(paths))
}

fn are_extensions(mut rest: &[u8]) -> bool {
    while !rest.is_empty() {
        let Some(mut after) = rest.get(4..) else {
            return false;
        };
        let length = number(&mut after).and_then(|length| usize::try_from(length).ok());
        match length.and_then(|length| after.get(length..)) {
            Some(next) => rest = next,
            None => return false,
        }
    }
    true
}

/// Returns the digest of the index of which this one is only a part, in hexadecimal.
pub(crate) fn shared_index(index: &[u8]) -> Option<String> {
    // The extension stands near the end, and its name is no part of another one's length: a false find names a file
    // that does not exist.
    let at = index.windows(4).rposition(|name| name == b"link")?;
    let mut rest = index.get(at + 4..)?;
    let length = usize::try_from(number(&mut rest)?).ok()?;
    let hash_bytes = if length >= 32 && rest.len() == length + 32 {
        32
    } else {
        20
    };
    let hash = rest.get(..hash_bytes)?;
    Some(hash.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    let (number, after) = rest.split_first_chunk::<4>()?;
    *rest = after;
    Some(u32::from_be_bytes(*number))
}

/// Reads a number of seven bits a byte, of which each but the last is stored less one.
fn variable_length(rest: &mut &[u8]) -> Option<usize> {
    let mut value = 0usize;
    for at in 0..9 {
        let byte = *rest.get(at)?;
        value = value.checked_mul(128)? + usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            *rest = &rest[at + 1..];
            return Some(value);
        }
        value += 1;
    }
    None
}
