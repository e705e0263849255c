//! What a session did to the disk, as the shim recorded it.

use std::path::{Path, PathBuf};

/// One change, or a moment at which something was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Record {
    Create(PathBuf),
    Write(PathBuf, u64, Vec<u8>),
    Truncate(PathBuf, u64),
    Sync(PathBuf),
    Rename(PathBuf, PathBuf),
    Unlink(PathBuf),
    Mkdir(PathBuf),
    Rmdir(PathBuf),
    Link(PathBuf, PathBuf),
    Mark(usize),
}

impl Record {
    /// The line that marks a moment.
    pub(super) fn mark(number: usize) -> String {
        format!("mark\t{number}\t0\t\t\n\n")
    }

    /// A few words, for people.
    pub(super) fn told(&self) -> String {
        let name = |path: &Path| {
            let parts: Vec<_> = path.iter().rev().take(2).collect();
            let parts: Vec<_> = parts
                .iter()
                .rev()
                .map(|part| part.to_string_lossy())
                .collect();
            parts.join("/")
        };
        match self {
            Record::Create(path) => format!("create {}", name(path)),
            Record::Write(path, at, bytes) => format!("write {} {at}+{}", name(path), bytes.len()),
            Record::Truncate(path, len) => format!("truncate {} {len}", name(path)),
            Record::Sync(path) => format!("sync {}", name(path)),
            Record::Rename(from, to) => format!("rename {} {}", name(from), name(to)),
            Record::Unlink(path) => format!("unlink {}", name(path)),
            Record::Mkdir(path) => format!("mkdir {}", name(path)),
            Record::Rmdir(path) => format!("rmdir {}", name(path)),
            Record::Link(from, to) => format!("link {} {}", name(from), name(to)),
            Record::Mark(number) => format!("acknowledged {number}"),
        }
    }
}

/// Reads a trace; paths become relative to `disk`. What happened to files without a name is left out.
pub(super) fn parse(mut bytes: &[u8], disk: &Path) -> Result<Vec<Record>, String> {
    let mut records = Vec::new();
    while !bytes.is_empty() {
        let end = bytes
            .iter()
            .position(|byte| *byte == b'\n')
            .ok_or("a torn trace")?;
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let fields: Vec<&str> = head.split('\t').collect();
        let [op, offset, len, path, other] = fields[..] else {
            return Err(format!("not a record: {head}"));
        };
        let (offset, len): (u64, usize) = match (offset.parse(), len.parse()) {
            (Ok(offset), Ok(len)) => (offset, len),
            _ => return Err(format!("not a record: {head}")),
        };
        let data = bytes.get(end + 1..end + 1 + len).ok_or("a torn trace")?;
        bytes = bytes.get(end + 2 + len..).ok_or("a torn trace")?;
        let below = |path: &str| Path::new(path).strip_prefix(disk).map(Path::to_owned).ok();
        let found = match (op, below(path), below(other)) {
            ("mark", ..) => Some(Record::Mark(offset as usize)),
            (_, Some(path), _) if path.to_string_lossy().ends_with(" (deleted)") => None,
            ("create", Some(path), _) => Some(Record::Create(path)),
            ("write", Some(path), _) => Some(Record::Write(path, offset, data.to_vec())),
            ("truncate", Some(path), _) => Some(Record::Truncate(path, offset)),
            ("sync", Some(path), _) => Some(Record::Sync(path)),
            ("rename", Some(from), Some(to)) => Some(Record::Rename(from, to)),
            ("unlink", Some(path), _) => Some(Record::Unlink(path)),
            ("mkdir", Some(path), _) => Some(Record::Mkdir(path)),
            ("rmdir", Some(path), _) => Some(Record::Rmdir(path)),
            ("link", Some(from), Some(to)) => Some(Record::Link(from, to)),
            _ => return Err(format!("not a record: {head}")),
        };
        records.extend(found);
    }
    Ok(records)
}
