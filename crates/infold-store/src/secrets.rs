//! Looks for secrets in the files of tasks.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use infold_wire::Json;
use infold_wire::redact::{redact_json, redact_message};
use infold_wire::secrets::{FoundSecret, find_secrets};
use uuid::Uuid;

use crate::dirs::PLACES;
use crate::file::files;
use crate::frame::has_names;
use crate::{Contexts, LogError, TaskError, lock, stored};

/// A secret in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSecret {
    /// The file in the task's directory.
    pub file: String,
    /// The message, event or line that it is in.
    pub place: SecretPlace,
    /// A description that does not reveal it.
    pub found: FoundSecret,
    /// Whether it remains after a redaction, because it is in an id or a tool name, which a redaction does not change.
    pub stays: bool,
}

/// Where in a file a secret is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretPlace {
    /// In the message of this seq.
    Message(u64),
    /// In the event of this id.
    Event(u64),
    /// In a line, counted from one.
    Line(u64),
    /// In a file as a whole.
    File,
}

/// The extent of a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Messages in logs.
    pub messages: u64,
}

/// A longer line is searched in pieces, as plain text instead of JSON, so that memory is bounded.
const MAX_LINE_BYTES: u64 = 80 << 20;

/// The number of bytes of a piece that are searched again with the next one: a secret may be in both.
const OVERLAP_BYTES: usize = 64 << 10;

/// The size of a piece.
const PIECE_BYTES: usize = 4 << 20;

/// Returns whether a file contains text of a task: sidecars (`.idx`) contain numbers, and the lock names a process.
fn is_text(name: &str) -> bool {
    !name.ends_with(".idx") && name != "lock"
}

impl Contexts {
    /// Calls `take` with each secret in the files of a task, and `read` with how many bytes were looked at.
    pub fn find_secrets(
        &self,
        task: Uuid,
        read: &mut dyn FnMut(u64),
        take: &mut dyn FnMut(StoredSecret),
    ) -> Result<Scanned, TaskError> {
        self.settle_redaction()?;
        let dir = self.place(task).ok_or_else(|| TaskError::Unknown {
            name: task.to_string(),
            nearest: Vec::new(),
        })?;
        Ok(scan_directory(&dir, read, take)?)
    }

    /// Finds secrets in the files beside the tasks, and in the remains of tasks that were removed or never
    /// completed.
    pub fn find_secrets_beside_tasks(
        &self,
        read: &mut dyn FnMut(u64),
        take: &mut dyn FnMut(StoredSecret),
    ) -> Result<Scanned, TaskError> {
        self.settle_redaction()?;
        if !self.root().is_dir() {
            return Ok(Scanned::default());
        }
        let mut scanned = scan_directory(self.root(), read, take)?;
        for place in PLACES {
            let left = files(&self.root().join(place), |name| name.starts_with('.'))?;
            // A process that is still creating a task holds its lock.
            for dir in left.into_iter().filter(|dir| !lock::is_held(dir)) {
                let name = dir.file_name().unwrap_or_default().to_string_lossy();
                let mut take = |secret: StoredSecret| {
                    let file = format!("{place}/{name}/{}", secret.file);
                    take(StoredSecret { file, ..secret })
                };
                scanned.messages += scan_directory(&dir, read, &mut take)?.messages;
            }
        }
        Ok(scanned)
    }
}

impl Contexts {
    /// Finds secrets in the checkpoints of workspaces that have snapshots of these tasks. Calls `take` with each, and
    /// with a task that has a snapshot with it.
    pub fn find_secrets_in_checkpoints(
        &self,
        tasks: &[Uuid],
        take: &mut dyn FnMut(Uuid, StoredSecret),
    ) -> Result<(), TaskError> {
        let checkpoints = self.checkpoints();
        let is_meant = |task: &Uuid| tasks.contains(task);
        let mut infos = checkpoints.all()?.into_iter();
        if !infos.any(|info| info.tasks.keys().any(is_meant)) {
            return Ok(());
        }
        let has_secret = &mut |bytes: &[u8]| !find_secrets(bytes).is_empty();
        for blob in checkpoints.find_blobs(tasks, has_secret)? {
            let (Some(at), Some(path)) = (blob.snapshots.first(), blob.paths.first()) else {
                continue;
            };
            let shadow = checkpoints.open_existing(&blob.workspace).ok().flatten();
            let content = shadow.and_then(|shadow| shadow.content(*at, path).ok().flatten());
            let mut found = find_secrets(&content.unwrap_or_default());
            found.extend(find_secrets(path.as_os_str().as_encoded_bytes()));
            let file = format!("checkpoint {}: {}", at.number, path.display());
            for found in found {
                take(
                    at.task,
                    StoredSecret {
                        file: file.clone(),
                        place: SecretPlace::File,
                        found,
                        stays: false,
                    },
                );
            }
        }
        Ok(())
    }
}

/// Finds secrets in the text files of a directory, not of those below it.
fn scan_directory(
    dir: &Path,
    read: &mut dyn FnMut(u64),
    take: &mut dyn FnMut(StoredSecret),
) -> Result<Scanned, LogError> {
    let fail = |error| LogError::io(dir, "read", error);
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let is_file = entry.file_type().map_err(fail)?.is_file();
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_file && is_text(&name) {
            names.push(name);
        }
    }
    names.sort_unstable();
    let mut scanned = Scanned::default();
    for name in names {
        let path = dir.join(&name);
        match scan_file(&path, &name, &mut scanned, read, take) {
            // A temporary file was removed since the directory was listed.
            Err(LogError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
            done => done?,
        }
    }
    Ok(scanned)
}

/// Finds secrets in a file, line by line.
fn scan_file(
    path: &Path,
    name: &str,
    scanned: &mut Scanned,
    looked_at: &mut dyn FnMut(u64),
    take: &mut dyn FnMut(StoredSecret),
) -> Result<(), LogError> {
    let fail = |error| LogError::io(path, "read", error);
    let opened = File::open(path).map_err(fail)?;
    let mut file = BufReader::with_capacity(1 << 18, opened);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let limited = (&mut file)
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line);
        let read = limited.map_err(fail)? as u64;
        if read == 0 {
            break;
        }
        looked_at(read);
        scanned.messages += u64::from(name == "messages.jsonl");
        let place = place(name, number, &line);
        let mut report = |found: Vec<FoundSecret>, staying: &[FoundSecret]| {
            for one in &found {
                // Secrets of the same prefix and length have equal descriptions. If a redaction removes some of them,
                // each is reported as one that it removes.
                let count_same =
                    |all: &[FoundSecret]| all.iter().filter(|other| *other == one).count();
                take(StoredSecret {
                    file: name.to_owned(),
                    place,
                    found: one.clone(),
                    stays: count_same(&found) <= count_same(staying),
                });
            }
        };
        let secrets = find_secrets(&line);
        let staying = if secrets.is_empty() {
            Vec::new()
        } else {
            find_staying(place, &line)
        };
        report(secrets, &staying);
        if read < MAX_LINE_BYTES || line.ends_with(b"\n") {
            continue;
        }
        // The rest of a line that is longer than any message is searched in overlapping pieces.
        loop {
            line.drain(..line.len().saturating_sub(OVERLAP_BYTES));
            let before = line.len();
            let limited = (&mut file)
                .take(PIECE_BYTES as u64)
                .read_until(b'\n', &mut line);
            let read = limited.map_err(fail)?;
            looked_at(read as u64);
            report(infold_wire::secrets::find_secrets_after(&line, before), &[]);
            if read == 0 || line.ends_with(b"\n") {
                break;
            }
        }
    }
    Ok(())
}

/// Finds the secrets of a line that a redaction leaves, because they are ids or tool names: redacts the line, and
/// searches the result.
fn find_staying(place: SecretPlace, line: &[u8]) -> Vec<FoundSecret> {
    let remainder = match place {
        SecretPlace::Message(_) => stored::split(line.trim_ascii_end())
            .and_then(|stored| redact_message(&stored.body(line), "").ok()),
        SecretPlace::Event(_) => Json::parse(line)
            .ok()
            .and_then(|event| Some(event.get("record")?.get("tool")?.bytes().to_vec())),
        SecretPlace::Line(_) => Json::parse(line)
            .ok()
            .and_then(|frame| Some(names_of_frame(frame.get("set")?))),
        SecretPlace::File => None,
    };
    remainder.map_or(Vec::new(), |text| find_secrets(&text))
}

/// Returns the members of a frame that name tools or hold messages, without their texts.
fn names_of_frame(set: Json<'_>) -> Vec<u8> {
    let mut all = |text: &str| {
        let whole = (!text.is_empty()).then_some(0..text.len());
        whole.into_iter().collect()
    };
    let members = set
        .members()
        .filter(|(key, _)| std::str::from_utf8(&key.name()).is_ok_and(has_names));
    let members = members.filter_map(|(_, value)| {
        let redacted = redact_json(value.bytes(), "", &mut all).ok()?;
        Some(redacted.bytes.unwrap_or_else(|| value.bytes().to_vec()))
    });
    let members: Vec<Vec<u8>> = members.collect();
    [b"[".as_slice(), &members.join(&b","[..]), b"]"].concat()
}

/// Returns the place of a line of the file `name`.
fn place(name: &str, number: u64, line: &[u8]) -> SecretPlace {
    let id = |key: &str| {
        let value = Json::parse(line).ok()?.get(key)?;
        std::str::from_utf8(value.bytes()).ok()?.parse().ok()
    };
    let place = match name {
        "messages.jsonl" => id("seq").map(SecretPlace::Message),
        "events.jsonl" => id("id").map(SecretPlace::Event),
        _ => None,
    };
    place.unwrap_or(SecretPlace::Line(number))
}
