//! Frames: all of a request but its messages, kept in `frames.jsonl` when they change.

mod redacted;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::path::Path;
use std::sync::Arc;

use infold_wire::{Json, Wire, quote};

use crate::file::{Access, Growing};
use crate::lines::Lines;
use crate::{Durability, Log, LogError, RedactedDigests, Writer, repair, stored};
use redacted::{Fingerprint, FrameRedactions, RedactedMembers};
pub(crate) use redacted::{fingerprint, has_names, redact_member};

/// All of a request but its messages, as it stood from one request on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its number, counted from one in each task.
    pub id: u64,
    /// When it was kept, in milliseconds since 1970.
    pub time: u64,
    /// The last message then; zero if there was none.
    pub after: u64,
    /// The wire of the request.
    pub wire: Wire,
    /// Its members by name, each as it came: raw JSON.
    pub members: BTreeMap<String, Vec<u8>>,
}

const NAME: &str = "frames.jsonl";

impl Log {
    /// Returns the frame of the last request, if this task has one.
    pub fn last_frame(&self) -> Result<Option<Frame>, LogError> {
        let file = Growing::open(self.dir().join(NAME), Access::Read)?;
        let mut last = None;
        each(&file, |line| last = Some(line.apply(last.take())))?;
        Ok(last)
    }

    /// Shows the frames of this task in order, each with all its members. A torn last line is left out.
    pub fn frames(&self, mut visit: impl FnMut(&Frame)) -> Result<(), LogError> {
        let file = Growing::open(self.dir().join(NAME), Access::Read)?;
        let mut frame = None;
        each(&file, |line| {
            frame = Some(line.apply(frame.take()));
            frame.iter().for_each(&mut visit);
        })
        .map(drop)
    }
}

impl Writer {
    /// Records the frame of a request, the members around its messages, if it differs from the last one;
    /// returns its number.
    ///
    /// `members` are names and raw JSON, without credentials. Only changed members are written.
    pub fn frame(&mut self, wire: Wire, members: &[(&str, &[u8])]) -> Result<u64, LogError> {
        self.frame_without(wire, members, None)
    }

    /// As [`Writer::frame`], without texts that were redacted in the frames of any task.
    pub fn frame_without(
        &mut self,
        wire: Wire,
        members: &[(&str, &[u8])],
        redacted: Option<&Arc<RedactedDigests>>,
    ) -> Result<u64, LogError> {
        self.prepare()?;
        let mut frames = match self.frames.take() {
            Some(frames) => frames,
            None => {
                let (mut frames, members) = Frames::open(self.log().dir())?;
                let is_first = frames.file.len() == 0;
                if is_first {
                    self.names_synced.clear();
                }
                let members = (!is_first).then_some(members);
                frames.redactions = self.log().frame_redactions(members)?;
                frames
            }
        };
        frames.redactions.set_elsewhere(redacted);
        let (time, after) = (self.now(), self.log().state().at().seq);
        let redacted: Vec<(&str, Cow<'_, [u8]>)> = members
            .iter()
            .map(|(name, value)| (*name, self.log().member_without_secrets(name, value)))
            .collect();
        let members: Vec<(&str, &[u8])> = redacted
            .iter()
            .map(|(name, value)| (*name, &**value))
            .collect();
        let mut taken = frames.take(wire, &members, (time, after));
        if self.durability == Durability::Always {
            taken = taken.and_then(|id| frames.sync().map(|()| id));
        }
        // Kept also if it failed: nothing was written then.
        self.frames = Some(frames);
        taken
    }
}

/// `frames.jsonl`, and as much of its last frame as is needed to detect changes.
#[derive(Debug)]
pub(crate) struct Frames {
    file: Growing,
    last: u64,
    wire: Option<Wire>,
    /// The members' digests: the bytes themselves would be kept for each task that is open.
    digests: BTreeMap<String, MemberHash>,
    hasher: RandomState,
    redactions: FrameRedactions,
    unsynced: bool,
}

/// A length and a keyed hash.
type MemberHash = (usize, u64);

impl Frames {
    /// Reads the last frame, and the redacted members. Unreadable data is set aside, and the next frame is
    /// written whole.
    fn open(dir: &Path) -> Result<(Frames, RedactedMembers), LogError> {
        let file = Growing::open(dir.join(NAME), Access::Write)?;
        let mut frames = Frames {
            last: 0,
            wire: None,
            digests: BTreeMap::new(),
            hasher: RandomState::new(),
            redactions: FrameRedactions::default(),
            unsynced: false,
            file,
        };
        let (mut last, mut wire) = (0, None);
        let mut redacted = RedactedMembers::new();
        let mut digests = BTreeMap::new();
        let end = each(&frames.file, |line| {
            (last, wire) = (line.id, Some(line.wire));
            for name in &line.unset {
                digests.remove(name);
            }
            redacted.extend(line.redacted());
            for (name, value) in line.set {
                digests.insert(name, digest(&frames.hasher, value));
            }
        });
        match end {
            Ok(end) if end == frames.file.len() => {}
            Ok(end) => drop(repair::set_aside(&mut frames.file, NAME, end)?),
            Err(LogError::Damaged { .. }) => {
                drop(repair::set_aside(&mut frames.file, NAME, 0)?);
                // Numbers continue, so that no number identifies two frames.
                digests = BTreeMap::new();
            }
            Err(error) => return Err(error),
        }
        (frames.last, frames.wire, frames.digests) = (last, wire, digests);
        Ok((frames, redacted))
    }

    fn take(
        &mut self,
        wire: Wire,
        members: &[(&str, &[u8])],
        (time, after): (u64, u64),
    ) -> Result<u64, LogError> {
        // Of two members with one name the last is used, as by providers.
        let mut now: BTreeMap<&str, Cow<'_, [u8]>> = members
            .iter()
            .map(|(name, value)| (*name, stored::unbroken(value)))
            .collect();
        let mut originals = BTreeMap::new();
        for (name, value) in &mut now {
            if let Some(original) = self.redactions.apply(name, value) {
                originals.insert(*name, original);
            }
        }
        let mut set = Vec::new();
        let mut changed = Vec::new();
        for (name, value) in &now {
            let new = digest(&self.hasher, value);
            if self.digests.get(*name) != Some(&new) {
                if !changed.is_empty() {
                    set.push(b',');
                }
                set.extend_from_slice(quote(name).as_bytes());
                set.push(b':');
                set.extend_from_slice(value);
                changed.push((*name, new));
            }
        }
        let gone = self.digests.keys();
        let gone = gone.filter(|name| !now.contains_key(name.as_str()));
        let gone: Vec<String> = gone.cloned().collect();
        if changed.is_empty() && gone.is_empty() && self.wire == Some(wire) {
            return Ok(self.last);
        }
        let id = self.last + 1;
        let unset: Vec<String> = gone.iter().map(|name| quote(name)).collect();
        let unset = unset.join(",");
        let head =
            format!("{{\"id\":{id},\"ts\":{time},\"after\":{after},\"wire\":\"{wire}\",\"set\":{{");
        let originals = originals
            .iter()
            .filter(|(name, _)| changed.iter().any(|(new, _)| new == *name));
        let originals: Vec<String> = originals
            .map(|(name, original)| format!("{}:\"{original}\"", quote(name)))
            .collect();
        let redacted = if originals.is_empty() {
            String::new()
        } else {
            format!(",\"redacted\":{{{}}}", originals.join(","))
        };
        let end = format!("}},\"unset\":[{unset}]{redacted}}}\n");
        let line = [head.as_bytes(), &set, end.as_bytes()].concat();
        self.file.append(&line)?;
        self.unsynced = true;
        (self.last, self.wire) = (id, Some(wire));
        for name in gone {
            self.digests.remove(&name);
        }
        for (name, digest) in changed {
            self.digests.insert(name.to_owned(), digest);
        }
        Ok(id)
    }

    /// Where they are kept.
    pub(crate) fn file(&self) -> &Growing {
        &self.file
    }

    /// Returns when all frames are on the disk itself.
    pub(crate) fn sync(&mut self) -> Result<(), LogError> {
        if self.unsynced {
            self.file.sync()?;
            self.unsynced = false;
        }
        Ok(())
    }
}

fn digest(hasher: &RandomState, value: &[u8]) -> MemberHash {
    (value.len(), hasher.hash_one(value))
}

/// A line of the file: the changed members.
struct FrameLine<'a> {
    id: u64,
    time: u64,
    after: u64,
    wire: Wire,
    set: Vec<(String, &'a [u8])>,
    unset: Vec<String>,
    /// The fingerprints of members that were redacted, by name.
    originals: BTreeMap<String, Fingerprint>,
}

impl<'a> FrameLine<'a> {
    fn decode(line: &'a [u8]) -> Option<FrameLine<'a>> {
        let json = Json::parse(line).ok()?;
        let [id, time, after, wire, set, unset, redacted] =
            json.pick(["id", "ts", "after", "wire", "set", "unset", "redacted"]);
        let number = |value: Option<Json<'_>>| {
            std::str::from_utf8(value?.bytes())
                .ok()?
                .parse::<u64>()
                .ok()
        };
        let name = |name: Json<'_>| name.text().map(Cow::into_owned);
        Some(FrameLine {
            id: number(id)?,
            time: number(time)?,
            after: number(after)?,
            wire: wire?.text()?.parse().ok()?,
            set: set?
                .members()
                .map(|(key, value)| Some((name(key)?, value.bytes())))
                .collect::<Option<_>>()?,
            unset: unset?.elements().map(name).collect::<Option<_>>()?,
            originals: redacted
                .into_iter()
                .flat_map(Json::members)
                .map(|(key, value)| Some((name(key)?, name(value)?)))
                .collect::<Option<_>>()?,
        })
    }

    /// The values of redacted members.
    fn redacted(&self) -> RedactedMembers {
        let set = self.set.iter();
        let pairs = set
            .filter_map(|(name, value)| Some((self.originals.get(name)?.clone(), value.to_vec())));
        pairs.collect()
    }

    /// The frame that it makes of the one before.
    fn apply(self, before: Option<Frame>) -> Frame {
        let mut members = before.map_or_else(BTreeMap::new, |frame| frame.members);
        for name in &self.unset {
            members.remove(name);
        }
        let set = self.set.into_iter();
        members.extend(set.map(|(name, value)| (name, value.to_vec())));
        Frame {
            id: self.id,
            time: self.time,
            after: self.after,
            wire: self.wire,
            members,
        }
    }
}

/// Reads the lines of the file; returns where the last whole one ends.
fn each(file: &Growing, mut visit: impl FnMut(FrameLine<'_>)) -> Result<u64, LogError> {
    let mut lines = Lines::new(file, 0);
    let mut end = 0;
    while let Some(line) = lines.next()? {
        if !line.whole {
            break;
        }
        let offset = line.offset;
        let damaged = || LogError::damaged(file.path(), offset, "a line that is no frame");
        visit(FrameLine::decode(line.bytes).ok_or_else(damaged)?);
        end = offset + line.bytes.len() as u64 + 1;
    }
    Ok(end)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn open(dir: &Path) -> Writer {
        let opened = Writer::open(dir, Durability::Turn, &crate::TaskDirs::none());
        opened.expect("the task opens").0
    }

    fn text(dir: &Path) -> String {
        fs::read_to_string(dir.join(NAME)).expect("the file is there")
    }

    const SYSTEM: (&str, &[u8]) = ("system", b"[{\"type\":\"text\",\r\n \"text\":\"a\\nb\"}]");

    #[test]
    fn only_what_changed_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = open(dir.path());
        let first = [SYSTEM, ("model", b"\"m\""), ("stream", b"true")];
        assert_eq!(writer.frame(Wire::Anthropic, &first).unwrap(), 1);
        assert_eq!(writer.frame(Wire::Anthropic, &first).unwrap(), 1);
        let say = br#"{"role":"user","content":"go"}"#;
        writer.append(&[say]).unwrap();
        let second = [("model", &b"\"n\""[..]), SYSTEM];
        assert_eq!(writer.frame(Wire::Anthropic, &second).unwrap(), 2);
        assert_eq!(writer.frame(Wire::Chat, &second).unwrap(), 3);

        let file = text(dir.path());
        let lines: Vec<&str> = file.lines().collect();
        let behind = |line: &str| line.split_once("\"after\":").unwrap().1.to_owned();
        assert_eq!(
            lines.iter().map(|line| behind(line)).collect::<Vec<_>>(),
            [
                r#"0,"wire":"anthropic","set":{"model":"m","stream":true,"system":[{"type":"text", "text":"a\nb"}]},"unset":[]}"#,
                r#"1,"wire":"anthropic","set":{"model":"n"},"unset":["stream"]}"#,
                r#"1,"wire":"chat","set":{},"unset":[]}"#,
            ]
        );
        let last = writer.log().last_frame().unwrap().expect("a frame");
        assert_eq!((last.id, last.after, last.wire), (3, 1, Wire::Chat));
        let names: Vec<&str> = last.members.keys().map(|name| &**name).collect();
        assert_eq!(names, ["model", "system"]);
        assert_eq!(
            last.members["system"],
            br#"[{"type":"text", "text":"a\nb"}]"#
        );
        let mut sizes = Vec::new();
        let count = |frame: &Frame| sizes.push(frame.members.len());
        writer.log().frames(count).unwrap();
        assert_eq!(sizes, [3, 2, 2]);
    }

    #[test]
    fn who_opens_the_task_again_knows_what_stood_there_last() {
        let dir = tempfile::tempdir().unwrap();
        let frame = [SYSTEM, ("model", b"\"m\"")];
        for _ in 0..2 {
            assert_eq!(open(dir.path()).frame(Wire::Chat, &frame).unwrap(), 1);
        }
        let changed = [("system", &b"1"[..]), ("model", b"\"m\"")];
        assert_eq!(open(dir.path()).frame(Wire::Chat, &changed).unwrap(), 2);
        assert!(text(dir.path()).ends_with("\"set\":{\"system\":1},\"unset\":[]}\n"));
    }

    #[test]
    fn a_task_without_frames_has_no_last_one() {
        let dir = tempfile::tempdir().unwrap();
        let writer = open(dir.path());
        assert_eq!(writer.log().last_frame().unwrap(), None);
        assert!(!dir.path().join(NAME).exists());
    }

    #[test]
    fn a_line_cut_anywhere_is_set_aside_and_the_ones_before_it_count() {
        let whole = tempfile::tempdir().unwrap();
        let mut writer = open(whole.path());
        let [first, second] = [[("n", &b"1"[..])], [("n", &b"2"[..])]];
        writer.frame(Wire::Chat, &first).unwrap();
        let start = text(whole.path()).len();
        writer.frame(Wire::Chat, &second).unwrap();
        let file = text(whole.path());
        for end in start + 1..file.len() {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join(NAME), &file[..end]).unwrap();
            let mut writer = open(dir.path());
            let last = writer.log().last_frame().unwrap().expect("the first");
            assert_eq!(last.members["n"], b"1");
            assert_eq!(writer.frame(Wire::Chat, &second).unwrap(), 2);
            let last = writer.log().last_frame().unwrap().expect("the second");
            assert_eq!((last.id, &*last.members["n"]), (2, &b"2"[..]));
            let torn = fs::read_dir(dir.path()).unwrap().flatten();
            let torn = torn.filter(|file| {
                let name = file.file_name();
                name.to_string_lossy().starts_with("torn-frames-")
            });
            assert_eq!(torn.count(), 1);
        }
    }

    #[test]
    fn behind_a_damaged_line_a_whole_frame_begins_anew() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = open(dir.path());
        let frame = [SYSTEM, ("model", b"\"m\"")];
        writer.frame(Wire::Chat, &frame).unwrap();
        drop(writer);
        let damaged = text(dir.path()) + "{\"id\":2,\n";
        fs::write(dir.path().join(NAME), damaged).unwrap();
        let mut writer = open(dir.path());
        assert!(writer.log().last_frame().is_err());
        assert_eq!(writer.frame(Wire::Chat, &frame).unwrap(), 2);
        let last = writer.log().last_frame().unwrap().expect("a frame");
        assert_eq!(last.members.len(), 2);
    }
}
