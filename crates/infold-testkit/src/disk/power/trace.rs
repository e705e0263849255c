//! The disk operations of a session, as the shim recorded them.

use std::path::{Path, PathBuf};

/// One change, or an acknowledgement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TraceRecord {
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

impl TraceRecord {
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
            TraceRecord::Create(path) => format!("create {}", name(path)),
            TraceRecord::Write(path, at, bytes) => {
                format!("write {} {at}+{}", name(path), bytes.len())
            }
            TraceRecord::Truncate(path, len) => format!("truncate {} {len}", name(path)),
            TraceRecord::Sync(path) => format!("sync {}", name(path)),
            TraceRecord::Rename(from, to) => format!("rename {} {}", name(from), name(to)),
            TraceRecord::Unlink(path) => format!("unlink {}", name(path)),
            TraceRecord::Mkdir(path) => format!("mkdir {}", name(path)),
            TraceRecord::Rmdir(path) => format!("rmdir {}", name(path)),
            TraceRecord::Link(from, to) => format!("link {} {}", name(from), name(to)),
            TraceRecord::Mark(number) => format!("acknowledged {number}"),
        }
    }
}

/// Reads a trace; paths become relative to `disk`. What happened to files without a name is left out.
pub(super) fn parse(mut bytes: &[u8], disk: &Path) -> Result<Vec<TraceRecord>, String> {
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
            ("mark", ..) => Some(TraceRecord::Mark(offset as usize)),
            (_, Some(path), _) if path.to_string_lossy().ends_with(" (deleted)") => None,
            ("create", Some(path), _) => Some(TraceRecord::Create(path)),
            ("write", Some(path), _) => Some(TraceRecord::Write(path, offset, data.to_vec())),
            ("truncate", Some(path), _) => Some(TraceRecord::Truncate(path, offset)),
            ("sync", Some(path), _) => Some(TraceRecord::Sync(path)),
            ("rename", Some(from), Some(to)) => Some(TraceRecord::Rename(from, to)),
            ("unlink", Some(path), _) => Some(TraceRecord::Unlink(path)),
            ("mkdir", Some(path), _) => Some(TraceRecord::Mkdir(path)),
            ("rmdir", Some(path), _) => Some(TraceRecord::Rmdir(path)),
            ("link", Some(from), Some(to)) => Some(TraceRecord::Link(from, to)),
            _ => return Err(format!("not a record: {head}")),
        };
        records.extend(found);
    }
    Ok(records)
}
