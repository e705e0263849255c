//! Metadata of a snapshot: everything but its files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::listing::{FileKind, SnapshotListing};
use crate::workspace::{ancestors, split, to_path};

/// Something that stood in a workspace and is not part of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its path in the workspace.
    pub path: PathBuf,
    /// Why.
    pub why: LeftOutReason,
    /// The size of a file, if it is known.
    pub size: Option<u64>,
}

/// The reason why a path is not part of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeftOutReason {
    /// A file over the limit.
    TooLarge,
    /// It cannot be read.
    Unreadable,
    /// A FIFO, a socket or a device.
    Special,
    /// It changed during each attempt to read it.
    Changing,
    /// Git cannot keep the name (`.GIT`).
    Name,
    /// A directory on another device.
    OtherDevice,
    /// A directory too deep below the workspace.
    TooDeep,
    /// Its contents were redacted.
    Redacted,
}

const REASONS: &[(LeftOutReason, &str)] = &[
    (LeftOutReason::TooLarge, "too_large"),
    (LeftOutReason::Unreadable, "unreadable"),
    (LeftOutReason::Special, "special"),
    (LeftOutReason::Changing, "changing"),
    (LeftOutReason::Name, "name"),
    (LeftOutReason::OtherDevice, "other_device"),
    (LeftOutReason::TooDeep, "too_deep"),
    (LeftOutReason::Redacted, "redacted"),
];

impl LeftOutReason {
    /// Returns its name in a snapshot.
    pub fn name(self) -> &'static str {
        let mut names = REASONS.iter().filter(|(reason, _)| *reason == self);
        names.next().map_or("", |(_, name)| name)
    }

    fn parse(name: &str) -> Option<LeftOutReason> {
        let mut reasons = REASONS.iter().filter(|(_, known)| *known == name);
        reasons.next().map(|(reason, _)| *reason)
    }
}

/// The reason why a path was left out, and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeftOutEntry {
    pub why: LeftOutReason,
    pub size: Option<u64>,
}

impl LeftOutEntry {
    pub fn public(self, path: &[u8]) -> LeftOut {
        LeftOut {
            path: to_path(path),
            why: self.why,
            size: self.size,
        }
    }
}

/// The most common permissions of each kind: only files and directories with others are listed with theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UsualModes {
    file: u32,
    executable: u32,
    directory: u32,
}

const USUAL_MODES: UsualModes = UsualModes {
    file: 0o644,
    executable: 0o755,
    directory: 0o755,
};

/// Writes the metadata of a snapshot; `files` has the permissions in the order of their paths.
pub(crate) fn write<'a>(
    listing: &'a SnapshotListing,
    files: impl Iterator<Item = (&'a [u8], FileKind, u32)> + Clone,
) -> Vec<u8> {
    let usual = UsualModes::most_common(listing, files.clone());
    let mut modes = Vec::new();
    let mut implied = BTreeSet::new();
    let mut directory: &[u8] = b"";
    for (path, kind, mode) in files {
        let (above, _) = split(path);
        if above != directory {
            directory = above;
            implied.extend(ancestors(path));
        }
        if kind != FileKind::Link && mode != usual.of(kind) {
            modes.push(json!([path_json(path), mode]));
        }
    }
    let mut directories = Vec::new();
    for (path, mode) in &listing.directories {
        if *mode != usual.directory {
            modes.push(json!([path_json(path), mode]));
        }
        if !implied.contains(path.as_slice()) {
            directories.push(path_json(path));
        }
    }
    let left_out = listing.left_out.iter().map(|(path, entry)| {
        let mut fields = json!({"path": path_json(path), "why": entry.why.name()});
        if let Some(size) = entry.size {
            fields["size"] = size.into();
        }
        fields
    });
    let about = json!({
        "version": 1,
        "usual_modes": [usual.file, usual.executable, usual.directory],
        "modes": modes,
        "directories": directories,
        "ignored": listing.ignored.iter().map(|path| path_json(path)).collect::<Vec<_>>(),
        "left_out": left_out.collect::<Vec<_>>(),
        "redacted": listing.redacted.iter().collect::<Vec<_>>(),
    });
    about.to_string().into_bytes()
}

/// Reads the metadata of a snapshot, of which `listing` has kinds and ids; none if they do not match.
pub(crate) fn read(text: &[u8], listing: &mut SnapshotListing) -> Option<()> {
    let about: Map<String, Value> = serde_json::from_slice(text).ok()?;
    let list = |name: &str| about.get(name).and_then(Value::as_array);
    let usual = match list("usual_modes")?.as_slice() {
        [file, executable, directory] => UsualModes {
            file: mode_of(file)?,
            executable: mode_of(executable)?,
            directory: mode_of(directory)?,
        },
        _ => return None,
    };
    for (path, file) in &mut listing.files {
        file.mode = usual.of(file.kind);
        for directory in ancestors(path) {
            if listing.directories.contains_key(directory) {
                break;
            }
            listing
                .directories
                .insert(directory.to_owned(), usual.directory);
        }
    }
    for path in list("directories")? {
        let path = path_of(path)?;
        listing.directories.insert(path, usual.directory);
    }
    for pair in list("modes")? {
        let path = path_of(pair.get(0)?)?;
        let mode = mode_of(pair.get(1)?)?;
        if let Some(file) = listing.files.get_mut(&path) {
            file.mode = mode;
        } else if let Some(directory) = listing.directories.get_mut(&path) {
            *directory = mode;
        }
    }
    for path in list("ignored")? {
        listing.ignored.insert(path_of(path)?);
    }
    for entry in list("left_out")? {
        let why = LeftOutReason::parse(entry.get("why")?.as_str()?)?;
        let size = entry.get("size").and_then(Value::as_u64);
        let path = path_of(entry.get("path")?)?;
        listing.left_out.insert(path, LeftOutEntry { why, size });
    }
    for digest in list("redacted")? {
        listing.redacted.insert(digest.as_str()?.to_owned());
    }
    Some(())
}

impl UsualModes {
    /// Returns the permissions that most files have, so that a workspace of private files records them only once.
    fn most_common<'a>(
        listing: &SnapshotListing,
        files: impl Iterator<Item = (&'a [u8], FileKind, u32)> + Clone,
    ) -> UsualModes {
        let of_kind = |wanted| {
            let files = files.clone();
            files.filter_map(move |(_, kind, mode)| (kind == wanted).then_some(mode))
        };
        let directories = listing.directories.values().copied();
        UsualModes {
            file: most_common(of_kind(FileKind::File)).unwrap_or(USUAL_MODES.file),
            executable: most_common(of_kind(FileKind::Executable))
                .unwrap_or(USUAL_MODES.executable),
            directory: most_common(directories).unwrap_or(USUAL_MODES.directory),
        }
    }

    fn of(self, kind: FileKind) -> u32 {
        match kind {
            FileKind::File => self.file,
            FileKind::Executable => self.executable,
            FileKind::Link => 0o777,
        }
    }
}

fn most_common(modes: impl Iterator<Item = u32>) -> Option<u32> {
    let mut counts = BTreeMap::new();
    for mode in modes {
        *counts.entry(mode).or_insert(0u64) += 1;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.map(|(mode, _)| mode)
}

fn mode_of(value: &Value) -> Option<u32> {
    let mode = u32::try_from(value.as_u64()?).ok()?;
    (mode <= 0o7777).then_some(mode)
}

/// A path as JSON: a string, or its bytes in hexadecimal where it is not UTF-8.
pub(crate) fn path_json(path: &[u8]) -> Value {
    match std::str::from_utf8(path) {
        Ok(text) => text.into(),
        Err(_) => {
            let hex: String = path.iter().map(|byte| format!("{byte:02x}")).collect();
            json!({ "hex": hex })
        }
    }
}

fn path_of(value: &Value) -> Option<Vec<u8>> {
    if let Some(text) = value.as_str() {
        return Some(text.as_bytes().to_owned());
    }
    let hex = value.get("hex")?.as_str()?;
    let digits = hex.as_bytes();
    if digits.len() % 2 != 0 {
        return None;
    }
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks_exact(2).map(byte).collect()
}
