use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use infold_log::{Floor, Past, Place, Point, Seq, View};

use crate::file::{self, Access, Growing};
use crate::table::{Numbers, checksum, put, unsealed};
use crate::{Log, LogError};

/// The view of a task, kept in `current.jsonl`.
///
/// Between folds the view grows only at its end, so only the last round is written
/// again; a step that changes what is shown replaces the file in one go. How far the
/// file goes is kept beside it, in `current.idx`.
#[derive(Debug)]
pub struct Current {
    dir: PathBuf,
    stamp: Option<Stamp>,
}

/// What `current.jsonl` holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    /// It shows the state at this point.
    at: Point,
    /// Its length in bytes.
    len: u64,
    /// Where its last round starts in it, and with which message; none if more than that may change.
    tail: Option<(u64, Seq)>,
}

/// More than this is not held in memory to be appended: the view is written anew, piece by piece.
const MAX_GROWTH_BYTES: usize = 1 << 18;

const MAGIC: u64 = u64::from_le_bytes(*b"infoldc1");

impl Current {
    /// Reads how far `current.jsonl` goes.
    pub fn open(dir: &Path) -> Current {
        let stamp = fs::read(dir.join("current.idx"))
            .ok()
            .and_then(|bytes| Stamp::decode(&bytes));
        Current {
            dir: dir.to_owned(),
            stamp,
        }
    }

    /// The state that it shows, as far as it says so.
    pub fn at(&self) -> Option<Point> {
        self.stamp.map(|stamp| stamp.at)
    }

    /// Says whether it was not written since the task was made.
    pub fn is_unwritten(&self) -> bool {
        let len = fs::metadata(self.path()).map_or(0, |meta| meta.len());
        self.stamp.is_none() && len == 0
    }

    /// Says whether the file is what its stamp says, as far as can be seen without reading it.
    pub fn is_intact(&self) -> bool {
        let len = fs::metadata(self.path()).map(|meta| meta.len());
        self.stamp
            .is_some_and(|stamp| len.is_ok_and(|len| len == stamp.len))
    }

    /// Brings the file up to the log.
    pub fn follow(&mut self, log: &Log) -> Result<(), LogError> {
        let at = log.state().at();
        if self.is_intact() && self.stamp.is_some_and(|stamp| stamp.at == at) {
            return Ok(());
        }
        // A file that shows more than there is may show what was never kept.
        let stamp = self.stamp.filter(|stamp| {
            self.is_usable() && stamp.at.seq <= at.seq && stamp.at.event <= at.event
        });
        match stamp.and_then(|stamp| Some((stamp.at.event, stamp.tail?))) {
            Some((event, (offset, from))) if log.last_change()? <= event => {
                self.grow(log, offset, from)?;
            }
            _ => self.rewrite(log)?,
        }
        let stamp = self.stamp.as_ref().map(Stamp::encode).unwrap_or_default();
        let path = self.dir.join("current.idx");
        let mut file = Growing::open(path, Access::Write)?;
        if file.len() > stamp.len() as u64 {
            file.cut(0)?;
        }
        file.overwrite(0, &stamp)
    }

    /// Writes the whole view anew.
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
        let end = each(log, &view, 0, &mut |bytes| {
            out.write_all(bytes).map_err(fail)
        })?;
        out.flush().map_err(fail)?;
        let path = self.path();
        fs::rename(&next, &path).map_err(|error| LogError::io(&path, "replaced", error))?;
        self.stamp = Some(end);
        Ok(())
    }

    /// Writes the last round, and what came after it, anew.
    ///
    /// A write that fails leaves the file as it was: all is rendered before the file is touched, and what
    /// needs space on the disk is written first.
    fn grow(&mut self, log: &Log, offset: u64, from: Seq) -> Result<(), LogError> {
        let view = View::since(log.state().shown(), from, log)?;
        let mut bytes = Vec::new();
        let end = each(log, &view, offset, &mut |line| {
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
        file.cut(end.len)?;
        self.stamp = Some(end);
        Ok(())
    }

    /// The file is at least as long as its stamp says: what follows was not stamped yet.
    fn is_usable(&self) -> bool {
        let len = fs::metadata(self.path()).map_or(0, |meta| meta.len());
        self.stamp.is_some_and(|stamp| len >= stamp.len)
    }

    fn path(&self) -> PathBuf {
        self.dir.join("current.jsonl")
    }
}

/// Writes the lines of a view that starts at `offset`; returns what the file then holds.
fn each(
    log: &Log,
    view: &View,
    offset: u64,
    write: &mut dyn FnMut(&[u8]) -> Result<(), LogError>,
) -> Result<Stamp, LogError> {
    let shown = log.state().shown();
    let last = match shown.last() {
        Some(last) => Some(log.record(last)?.round),
        None => None,
    };
    // Notes stand behind the first request; until it comes, the view may yet change before its end.
    let settled = shown.notes().next().is_none() || Floor::of(shown, log)?.request().is_some();
    let last = last.filter(|round| settled && shown.place(*round) == Place::Open);
    let mut len = offset;
    let mut tail = None;
    log.render(view, &mut |source, bytes| {
        if let (Some(seq), None) = (source.seq(), tail)
            && Some(seq) == last
        {
            tail = Some((len, seq));
        }
        write(bytes)?;
        write(b"\n")?;
        len += bytes.len() as u64 + 1;
        Ok(())
    })?;
    let at = log.state().at();
    Ok(Stamp { at, len, tail })
}

impl Stamp {
    fn encode(&self) -> Vec<u8> {
        let (offset, seq) = self
            .tail
            .map_or((0, 0), |(offset, seq)| (offset, seq.get()));
        let mut out = Vec::new();
        put(
            &mut out,
            &[MAGIC, self.at.seq, self.at.event, self.len, offset, seq],
        );
        let sum = checksum(0, &out);
        put(&mut out, &[sum]);
        out
    }

    fn decode(bytes: &[u8]) -> Option<Stamp> {
        let mut numbers = Numbers(unsealed(0, bytes)?);
        (numbers.u64()? == MAGIC).then_some(())?;
        let (seq, event) = (numbers.u64()?, numbers.u64()?);
        let (len, offset) = (numbers.u64()?, numbers.u64()?);
        let tail = Seq::new(numbers.u64()?).map(|seq| (offset, seq));
        let at = Point { seq, event };
        Some(Stamp { at, len, tail })
    }
}
