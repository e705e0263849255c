//! Sessions before a power cut: commands in sequence, or clients of a proxy, with the times of their
//! acknowledgements.

use std::fs;
use std::path::Path;

use super::model::{Disk, Tree};
use super::recorder::Recorder;
use super::trace::TraceRecord;
use crate::disk::fixture::Fixture;
use crate::disk::holdings::Holdings;

/// A session that was recorded.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) kind: SessionKind,
    pub(super) records: Vec<TraceRecord>,
    /// Acknowledged contents at each mark.
    marks: Vec<Holdings>,
}

/// The writer of a session: commands with a setting of when writes are synced, or a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionKind {
    Always,
    Turn,
    Never,
    Serve,
}

pub(super) const KINDS: [SessionKind; 4] = [
    SessionKind::Always,
    SessionKind::Turn,
    SessionKind::Never,
    SessionKind::Serve,
];

/// A session with every kind of write.
const COMMANDS: [&str; 32] = [
    "main: task new --model gpt-4o",
    "task push @main =chat.jsonl",
    "task push @main =question.jsonl",
    "condense @main 3..6 --text =summary.txt",
    "mask @main 10",
    "pin @main 13",
    "pin @main --note careful",
    "task tool @main < record.json",
    "undo @main",
    "redo @main",
    "task push @main =blocks.jsonl",
    "unfold @main e6",
    "rewind @main --to 17",
    "undo @main",
    "fork: fork @main",
    "task push @fork =turn.jsonl",
    "truncate @fork",
    "imported: import =transcript.json",
    "asked: ask new hello",
    "ask @asked and-then?",
    "manage @main --force --window 9k",
    "ended: task new",
    "task push @ended =turn.jsonl",
    "task complete @ended",
    "failed: task new",
    "task push @failed =blocks.jsonl",
    "task fail @failed --error tired",
    "task push @main =question.jsonl",
    "task complete @asked",
    "task clean --older-than 0s",
    "task push @fork =question.jsonl",
    "doctor --repair",
];

impl SessionKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            SessionKind::Always => "always",
            SessionKind::Turn => "turn",
            SessionKind::Never => "never",
            SessionKind::Serve => "serve",
        }
    }
}

impl Session {
    /// Does it, and records it.
    pub(super) fn record(fixture: &Fixture, kind: SessionKind) -> Result<Session, String> {
        let failed = |what: String| format!("{}: {what}", kind.name());
        let mut recorder = Recorder::new().map_err(failed)?;
        match kind {
            SessionKind::Serve => recorder.serve(fixture),
            _ => recorder.command(fixture, kind, &COMMANDS),
        }
        .map_err(failed)?;
        let disk = recorder.sandbox.disk();
        let session = Session {
            kind,
            records: recorder.records().map_err(failed)?,
            marks: recorder.marks,
        };
        session.check(&disk).map_err(failed)?;
        Ok(session)
    }

    /// The disk before anything was done.
    pub(super) fn start(&self) -> Disk {
        let mut disk = Disk::new();
        for name in ["contexts", "tmp", "home"] {
            // There is nothing in the way of them.
            let _ = disk.apply(&TraceRecord::Mkdir(name.into()));
        }
        disk.settle();
        disk
    }

    /// The disk after so many records.
    pub(super) fn disk_at(&self, cut: usize) -> Disk {
        let mut disk = self.start();
        for record in &self.records[..cut] {
            // Recording has shown that they can be done.
            let _ = disk.apply(record);
        }
        disk
    }

    /// Which mark was the last before a cut, counted from one; none is zero.
    pub(super) fn acknowledged(&self, cut: usize) -> usize {
        let marks = self.records[..cut].iter().rev();
        let mut numbers = marks.filter_map(|record| match record {
            TraceRecord::Mark(number) => Some(*number),
            _ => None,
        });
        numbers.next().unwrap_or(0)
    }

    /// Returns the contents that must survive a cut: those acknowledged before it that no command was removing.
    pub(super) fn promised(&self, cut: usize) -> Holdings {
        let mark = self.acknowledged(cut);
        let Some(mut promised) = mark
            .checked_sub(1)
            .and_then(|at| self.marks.get(at))
            .cloned()
        else {
            return Holdings::default();
        };
        if let Some(next) = self.marks.get(mark) {
            promised.tasks.retain(|id, _| next.tasks.contains_key(id));
        }
        promised
    }

    /// Describes the last operation and the last acknowledgement.
    pub(super) fn place(&self, cut: usize) -> String {
        let last = cut.checked_sub(1).and_then(|at| self.records.get(at));
        let mark = self.acknowledged(cut);
        let during = match self.kind {
            SessionKind::Serve => format!("mark {mark}"),
            _ => format!("during `{}`", COMMANDS.get(mark).unwrap_or(&"nothing")),
        };
        let last = last.map_or("nothing".to_owned(), TraceRecord::told);
        format!("{during}, after {last}")
    }

    /// Checks that the trace is complete: it leads to the files on the disk.
    fn check(&self, disk: &Path) -> Result<(), String> {
        let mut model = self.start();
        for record in &self.records {
            model.apply(record)?;
        }
        let mut there = Tree::new();
        read_tree(disk, "", &mut there).map_err(|error| error.to_string())?;
        for (path, bytes) in model.live() {
            // Other processes write to it through memory.
            if path.ends_with("-shm") {
                there.remove(&path);
                continue;
            }
            if there.remove(&path) != Some(bytes) {
                return Err(format!("the trace does not lead to {path} as it is"));
            }
        }
        match there.keys().next() {
            Some(path) => Err(format!("the trace does not make {path}")),
            None => Ok(()),
        }
    }
}

fn read_tree(dir: &Path, below: &str, tree: &mut Tree) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = match below {
            "" => name,
            below => format!("{below}/{name}"),
        };
        if entry.file_type()?.is_dir() {
            read_tree(&entry.path(), &path, tree)?;
            tree.insert(path, None);
        } else {
            tree.insert(path, Some(fs::read(entry.path())?));
        }
    }
    Ok(())
}
