//! The view of a task in `current.jsonl`, and the state of this and other derived files (`current.idx`).

use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use infold_log::{Floor, Past, Place, Point, Seq, View};

use crate::derived::Derived;
use crate::file::{self, Access, Growing};
use crate::table::{Numbers, checksum, put, unsealed};
use crate::{Log, LogError, boot};

/// The view of a task, in `current.jsonl`.
///
/// Between folds the view grows only at its end, so only the last round is written again; a step that changes
/// earlier parts replaces the file at once. The point up to which the file is written is recorded in
/// `current.idx`.
#[derive(Debug)]
pub struct Current {
    dir: PathBuf,
    stamp: Option<Stamp>,
    /// The known contents of the files that follow from single events.
    derived: [Option<Written>; 2],
    /// The boot of the machine in which all this was written.
    boot: u128,
}

/// How much was written to a file, and the checksum of that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Its length in bytes.
    pub len: u64,
    /// The CRC-32 of all its bytes.
    pub sum: u32,
}

impl Written {
    /// After some bytes more.
    pub fn and(self, bytes: &[u8]) -> Written {
        let mut sum = crc32fast::Hasher::new_with_initial(self.sum);
        sum.update(bytes);
        Written {
            len: self.len + bytes.len() as u64,
            sum: sum.finalize(),
        }
    }

    /// Returns whether a file holds just that.
    pub fn is_in(self, path: &Path) -> Result<bool, LogError> {
        let len = fs::metadata(path).map_or(0, |meta| meta.len());
        Ok(len == self.len && self.begins(path)?)
    }

    /// Returns whether a file begins with that.
    pub fn begins(self, path: &Path) -> Result<bool, LogError> {
        let file = Growing::open(path.to_owned(), Access::Read)?;
        if file.len() < self.len {
            return Ok(false);
        }
        let mut read = Written::default();
        let mut buffer = vec![0; READ_BYTES.min(self.len as usize)];
        while read.len < self.len {
            let part = (self.len - read.len).min(buffer.len() as u64) as usize;
            file.read(read.len, &mut buffer[..part])?;
            read = read.and(&buffer[..part]);
        }
        Ok(read == self)
    }
}

/// The contents of `current.jsonl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    /// The point whose state it shows.
    at: Point,
    /// All of it.
    all: Written,
    /// Its part before the last round, and the first message of that round; none if more than the round may change.
    tail: Option<(Written, Seq)>,
}

/// The most bytes that are collected in memory to be appended: a longer view is rewritten, piece by piece.
const MAX_GROWTH_BYTES: usize = 1 << 18;
/// How much of a file is read at once.
const READ_BYTES: usize = 1 << 18;

const NAME: &str = "current.jsonl";
const MAGIC: u64 = u64::from_le_bytes(*b"infoldc2");

impl Current {
    /// Reads the state of `current.jsonl`.
    pub fn open(dir: &Path) -> Current {
        let kept = fs::read(dir.join("current.idx")).ok();
        let kept = kept.and_then(|bytes| Current::decode(dir, &bytes));
        kept.unwrap_or(Current {
            dir: dir.to_owned(),
            stamp: None,
            derived: [None; 2],
            boot: boot::id(),
        })
    }

    /// Returns whether the machine was booted since the files were written: then they may differ from what was
    /// written.
    pub fn is_of_another_boot(&self) -> bool {
        self.boot != boot::id()
    }

    /// Checks the content of the file, and forgets its state if it is wrong; returns whether it is right.
    pub fn check_content(&mut self) -> Result<bool, LogError> {
        let is_whole = match self.stamp {
            Some(stamp) => stamp.all.is_in(&self.path())?,
            None => true,
        };
        if !is_whole {
            self.stamp = None;
        }
        Ok(is_whole)
    }

    /// The known contents of a file that follows from single events.
    pub fn written(&mut self, derived: Derived) -> &mut Option<Written> {
        &mut self.derived[derived as usize]
    }

    /// The state that it shows, as far as it says so.
    pub fn at(&self) -> Option<Point> {
        self.stamp.map(|stamp| stamp.at)
    }

    /// Returns whether it was not written since the task was made.
    pub fn is_unwritten(&self) -> bool {
        let len = fs::metadata(self.path()).map_or(0, |meta| meta.len());
        self.stamp.is_none() && len == 0
    }

    /// Returns whether the file matches its stamp, as far as that shows without reading it.
    pub fn is_intact(&self) -> bool {
        let len = fs::metadata(self.path()).map(|meta| meta.len());
        self.stamp
            .is_some_and(|stamp| len.is_ok_and(|len| len == stamp.all.len))
    }

    /// Brings the file up to the log.
    pub fn follow(&mut self, log: &Log) -> Result<(), LogError> {
        let at = log.state().at();
        if self.is_intact() && self.stamp.is_some_and(|stamp| stamp.at == at) {
            return Ok(());
        }
        // A file that is ahead of the log may show entries that were never recorded.
        let stamp = self.stamp.filter(|stamp| {
            self.is_usable() && stamp.at.seq <= at.seq && stamp.at.event <= at.event
        });
        match stamp.and_then(|stamp| Some((stamp.at.event, stamp.tail?))) {
            Some((event, (before, from))) if log.last_change()? <= event => {
                self.grow(log, before, from)?;
            }
            _ => self.rewrite(log)?,
        }
        self.save()
    }

    /// Writes the state of the files.
    pub fn save(&mut self) -> Result<(), LogError> {
        self.boot = boot::id();
        let bytes = self.encode();
        let mut file = Growing::open(self.dir.join("current.idx"), Access::Write)?;
        if file.len() > bytes.len() as u64 {
            file.cut(0)?;
        }
        file.overwrite(0, &bytes)
    }

    /// Rewrites the whole view.
    pub fn rewrite(&mut self, log: &Log) -> Result<(), LogError> {
        let view = View::of(log.state().shown(), log)?;
        let next = self.dir.join("current.tmp");
        let fail = |error| LogError::io(&next, "written", error);
        let opened = file::options()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&next);
        let mut out = BufWriter::with_capacity(1 << 18, opened.map_err(fail)?);
        let end = each(log, &view, Written::default(), &mut |bytes| {
            out.write_all(bytes).map_err(fail)
        })?;
        out.flush().map_err(fail)?;
        let path = self.path();
        fs::rename(&next, &path).map_err(|error| LogError::io(&path, "replaced", error))?;
        self.stamp = Some(end);
        Ok(())
    }

    /// Rewrites the last round and everything after it.
    ///
    /// A write that fails leaves the file unchanged: everything is rendered before the file is touched, and
    /// parts that need space on the disk are written first.
    fn grow(&mut self, log: &Log, before: Written, from: Seq) -> Result<(), LogError> {
        let view = View::since(log.state().shown(), from, log)?;
        let mut bytes = Vec::new();
        let offset = before.len;
        let end = each(log, &view, before, &mut |line| {
            if bytes.len() <= MAX_GROWTH_BYTES {
                bytes.extend_from_slice(line);
            }
            Ok(())
        })?;
        if bytes.len() > MAX_GROWTH_BYTES {
            return self.rewrite(log);
        }
        let mut file = Growing::open(self.path(), Access::Write)?;
        let old = (file.len() - offset).min(bytes.len() as u64) as usize;
        let (again, new) = bytes.split_at(old);
        file.append(new)?;
        file.overwrite(offset, again)?;
        file.cut(end.all.len)?;
        self.stamp = Some(end);
        Ok(())
    }

    /// Returns whether the file is at least as long as its stamp says; bytes after that were not stamped yet.
    fn is_usable(&self) -> bool {
        let len = fs::metadata(self.path()).map_or(0, |meta| meta.len());
        self.stamp.is_some_and(|stamp| len >= stamp.all.len)
    }

    /// Returns whether the part of the file before its last round, which growing does not touch, is intact.
    pub fn has_settled_part(&self) -> Result<bool, LogError> {
        match self.stamp.and_then(|stamp| stamp.tail) {
            Some((before, _)) => before.begins(&self.path()),
            None => Ok(false),
        }
    }

    /// Where the view is kept.
    pub fn path(&self) -> PathBuf {
        self.dir.join(NAME)
    }
}

/// Writes the lines of a view after those already written; returns the resulting state of the file.
fn each(
    log: &Log,
    view: &View,
    before: Written,
    write: &mut dyn FnMut(&[u8]) -> Result<(), LogError>,
) -> Result<Stamp, LogError> {
    let shown = log.state().shown();
    let last = match shown.last() {
        Some(last) => Some(log.record(last)?.round),
        None => None,
    };
    // Notes are placed after the first request; until it comes, the view may still change before its end.
    let settled = shown.notes().next().is_none() || Floor::of(shown, log)?.request().is_some();
    // Look-ups are placed before the first message of their round, and are written with it.
    let has_lookups = |round: Seq| {
        let mut recalls = shown.all_recalls();
        recalls.any(|(_, recall)| recall.source.is_none() && recall.at >= round)
    };
    let is_open = |round: &Seq| shown.place(*round) == Place::Open && !has_lookups(*round);
    let last = last.filter(|round| settled && is_open(round));
    let mut all = before;
    let mut tail = None;
    log.render(view, &mut |source, bytes| {
        if let (Some(seq), None) = (source.seq(), tail)
            && Some(seq) == last
        {
            tail = Some((all, seq));
        }
        write(bytes)?;
        write(b"\n")?;
        all = all.and(bytes).and(b"\n");
        Ok(())
    })?;
    let at = log.state().at();
    Ok(Stamp { at, all, tail })
}

impl Current {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let (high, low) = ((self.boot >> 64) as u64, self.boot as u64);
        put(&mut out, &[MAGIC, high, low]);
        let mut written = |written: Option<Written>| match written {
            Some(Written { len, sum }) => put(&mut out, &[1, len, u64::from(sum)]),
            None => put(&mut out, &[0, 0, 0]),
        };
        self.derived.into_iter().for_each(&mut written);
        written(self.stamp.map(|stamp| stamp.all));
        let tail = self.stamp.and_then(|stamp| stamp.tail);
        written(tail.map(|(before, _)| before));
        let at = self.stamp.map_or(Point::default(), |stamp| stamp.at);
        let seq = tail.map_or(0, |(_, seq)| seq.get());
        put(&mut out, &[at.seq, at.event, seq]);
        let sum = checksum(0, &out);
        put(&mut out, &[sum]);
        out
    }

    fn decode(dir: &Path, bytes: &[u8]) -> Option<Current> {
        let mut numbers = Numbers(unsealed(0, bytes)?);
        (numbers.u64()? == MAGIC).then_some(())?;
        let boot = u128::from(numbers.u64()?) << 64 | u128::from(numbers.u64()?);
        let mut written = || {
            let (is_there, len, sum) = (numbers.u64()? == 1, numbers.u64()?, numbers.u64()?);
            let sum = u32::try_from(sum).ok()?;
            Some(is_there.then_some(Written { len, sum }))
        };
        let derived = [written()?, written()?];
        let (all, before) = (written()?, written()?);
        let (seq, event) = (numbers.u64()?, numbers.u64()?);
        let at = Point { seq, event };
        let tail = before.zip(Seq::new(numbers.u64()?));
        let stamp = all.map(|all| Stamp { at, all, tail });
        Some(Current {
            dir: dir.to_owned(),
            stamp,
            derived,
            boot,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Contexts, Durability, Metadata, Repair};

    /// A task that was closed in good order, in a boot of the machine before this one.
    fn task_of_an_earlier_boot() -> (tempfile::TempDir, Contexts, uuid::Uuid) {
        let root = tempfile::tempdir().unwrap();
        let contexts = Contexts::new(root.path(), Durability::Turn);
        let id = contexts.create(Metadata::default()).unwrap();
        let (mut writer, _) = contexts.write(id).unwrap();
        let said = [
            r#"{"role":"user","content":"question"}"#,
            r#"{"role":"assistant","content":"answer"}"#,
        ];
        writer.append(&said).unwrap();
        writer.tool(br#"{"tool":"ls","result":"a b"}"#).unwrap();
        drop(writer);
        let mut current = Current::open(&contexts.place(id).unwrap());
        assert!(!current.is_of_another_boot());
        current.boot ^= 1;
        let path = contexts.place(id).unwrap().join("current.idx");
        fs::write(path, current.encode()).unwrap();
        (root, contexts, id)
    }

    fn rebuilt(repairs: &[Repair], name: &str) -> bool {
        let rebuilt =
            |repair: &Repair| matches!(repair, Repair::Rebuilt { name: one } if *one == name);
        repairs.iter().any(rebuilt)
    }

    #[test]
    fn bytes_that_a_power_cut_changed_are_found_after_the_next_boot() {
        for name in ["current.jsonl", "tools.jsonl"] {
            let (_root, contexts, id) = task_of_an_earlier_boot();
            let path = contexts.place(id).unwrap().join(name);
            let whole = fs::read(&path).unwrap();
            let mut changed = whole.clone();
            changed[12] = 0;
            fs::write(&path, changed).unwrap();
            let (writer, repairs) = contexts.write(id).unwrap();
            assert!(rebuilt(&repairs, name), "{name}: {repairs:?}");
            drop(writer);
            assert_eq!(fs::read(&path).unwrap(), whole, "{name}");
            // The file is checked only once.
            let (_, repairs) = contexts.write(id).unwrap();
            assert_eq!(repairs, []);
            assert!(!Current::open(&contexts.place(id).unwrap()).is_of_another_boot());
        }
    }

    #[test]
    fn a_writer_that_ends_while_it_brings_the_view_up_to_date_is_no_damage() {
        let root = tempfile::tempdir().unwrap();
        let contexts = Contexts::new(root.path(), Durability::Turn);
        let id = contexts.create(Metadata::default()).unwrap();
        let dir = contexts.place(id).unwrap();
        let (mut writer, _) = contexts.write(id).unwrap();
        let turn = [
            r#"{"role":"user","content":"question"}"#,
            r#"{"role":"assistant","content":"answer"}"#,
        ];
        writer.append(&turn).unwrap();
        let earlier = fs::read(dir.join("current.idx")).unwrap();
        writer.append(&turn).unwrap();
        writer.abandon();
        fs::write(dir.join("current.idx"), earlier).unwrap();
        let whole = fs::read(dir.join(NAME)).unwrap();
        let settled = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        for len in settled..=whole.len() {
            fs::write(dir.join(NAME), &whole[..len]).unwrap();
            let problems = contexts.verify(id, None).unwrap();
            assert!(problems.is_empty(), "{len} bytes: {problems:?}");
        }
        let mut damaged = whole.clone();
        damaged[3] ^= 1;
        fs::write(dir.join(NAME), damaged).unwrap();
        assert_eq!(contexts.verify(id, None).unwrap().len(), 1);
        // The process may also end before the view is written for the first time.
        fs::remove_file(dir.join("current.idx")).unwrap();
        fs::write(dir.join(NAME), "").unwrap();
        assert!(contexts.verify(id, None).unwrap().is_empty());
    }

    #[test]
    fn a_view_that_a_power_cut_left_of_a_task_that_ended_is_written_by_a_repair() {
        let (_root, contexts, id) = task_of_an_earlier_boot();
        contexts.finish(id, &crate::Outcome::Completed).unwrap();
        let dir = contexts.place(id).unwrap();
        let whole = fs::read(dir.join(NAME)).unwrap();
        fs::remove_file(dir.join("current.idx")).unwrap();
        fs::write(dir.join(NAME), "").unwrap();
        let gone = r#"{"pid":4194304,"started":1,"since":"2026-01-01T00:00:00Z"}"#;
        fs::write(dir.join("lock"), gone).unwrap();
        let (registry, _) = contexts.repaired_registry().unwrap();
        contexts.repair(id, &registry).unwrap();
        assert_eq!(fs::read(dir.join(NAME)).unwrap(), whole);
    }

    #[test]
    fn what_was_closed_in_this_boot_is_not_read_again() {
        let (_root, contexts, id) = task_of_an_earlier_boot();
        drop(contexts.write(id).unwrap());
        let path = contexts.place(id).unwrap().join(NAME);
        let mut changed = fs::read(&path).unwrap();
        changed[12] = 0;
        fs::write(&path, &changed).unwrap();
        let (_, repairs) = contexts.write(id).unwrap();
        assert_eq!(repairs, []);
    }

    #[test]
    fn what_is_written_piece_by_piece_has_the_checksum_of_the_whole() {
        let whole = Written::default().and(b"one two three");
        let pieces = Written::default().and(b"one").and(b"").and(b" two three");
        assert_eq!(whole, pieces);
        assert_eq!(whole.sum, crc32fast::hash(b"one two three"));
    }
}
