//! Checks tasks byte by byte, and changes nothing.

use std::fmt;
use std::fs;
use std::io::{self, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use infold_log::{EventId, Fault, Floor, Past as _, Point, View};
use infold_wire::digest;
use uuid::Uuid;

use crate::current::Current;
use crate::derived::Derived;
use crate::dirs::is_among_ended;
use crate::file::Access;
use crate::log::shortened;
use crate::{Contexts, Log, LogError, Metadata, Registry, Status, TaskError, What, end_of, lock};

/// Something about a task that is not as it should be.
#[derive(Debug)]
pub enum Problem {
    /// The log itself is damaged.
    Damaged(LogError),
    /// A write was cut off; the next writer sets the bytes aside.
    Torn {
        /// The file.
        name: &'static str,
        /// Where the torn bytes start.
        at: u64,
    },
    /// A file of the log became shorter than its index knows.
    Shortened {
        /// The file.
        name: &'static str,
        /// How many lines it lacks.
        lines: u64,
    },
    /// The view breaks a rule.
    Invalid(Fault),
    /// A derived file does not match the log.
    Stale {
        /// The file.
        name: &'static str,
    },
    /// Something that is not a file has the name of a task's file.
    Misplaced {
        /// The name.
        path: PathBuf,
    },
    /// The registry does not match the log.
    Registry {
        /// The problem.
        what: String,
    },
    /// Others may read it.
    Exposed {
        /// The file or directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Damaged(error) => error.fmt(f),
            Problem::Torn { name, at } => write!(f, "{name} has torn bytes from byte {at} on"),
            Problem::Shortened { name, lines } => f.write_str(&shortened(name, *lines)),
            Problem::Invalid(fault) => write!(f, "the view is not valid: {fault}"),
            Problem::Stale { name } => write!(f, "{name} does not follow from the log"),
            Problem::Misplaced { path } => write!(f, "{} is not a file", path.display()),
            Problem::Registry { what } => write!(f, "registry: {what}"),
            Problem::Exposed { path, mode } => {
                write!(
                    f,
                    "{} can be read by others (mode {mode:o})",
                    path.display()
                )
            }
        }
    }
}

impl Contexts {
    /// Checks a task, byte by byte, and, if given, its row in the registry. Nothing is changed.
    pub fn verify<'a>(
        &self,
        id: Uuid,
        registry: impl Into<Option<&'a Registry>>,
    ) -> Result<Vec<Problem>, TaskError> {
        self.settle_redaction()?;
        let Some(dir) = self.place(id) else {
            let what = "its directory is missing".to_owned();
            return Ok(vec![Problem::Registry { what }]);
        };
        let mut problems = exposed(&dir);
        problems.extend(misplaced(&dir));
        if let Some(Problem::Misplaced { .. }) = problems.last() {
            // The rest cannot be checked before it is moved away.
            return Ok(problems);
        }
        match Metadata::check(&dir, id) {
            Err(error @ LogError::Damaged { .. }) => problems.push(Problem::Damaged(error)),
            checked => checked?,
        }
        let checked = Log::open(&dir, Access::Rederive, &self.dirs()).and_then(|(fresh, tail)| {
            fresh.check_lineage()?;
            let floor = Floor::of(fresh.state().shown(), &fresh)?;
            let view = View::of(fresh.state().shown(), &fresh)?;
            let faults = fresh.check(&view, &floor)?.faults;
            Ok((fresh, tail, view, faults))
        });
        let (fresh, tail, view, faults) = match checked {
            Ok(checked) => checked,
            Err(
                error @ (LogError::Damaged { .. }
                | LogError::NoParent { .. }
                | LogError::Circular { .. }),
            ) => {
                problems.push(Problem::Damaged(error));
                return Ok(problems);
            }
            Err(error) => return Err(error.into()),
        };
        problems.extend(faults.into_iter().map(Problem::Invalid));
        let differences = fresh.compare_sidecars()?;
        problems.extend(differences.damaged.into_iter().map(Problem::Damaged));
        problems.extend(returned(&fresh)?.into_iter().map(Problem::Damaged));
        // While a writer is at work, derived files may be behind.
        if !lock::is_held(&dir) {
            let torn = [
                ("messages.jsonl", tail.messages),
                ("events.jsonl", tail.events),
            ];
            let torn = torn
                .into_iter()
                .filter_map(|(name, at)| at.map(|at| Problem::Torn { name, at }));
            let mut more: Vec<Problem> = torn.collect();
            let missing = differences.missing.files();
            more.extend(missing.map(|(name, lines)| Problem::Shortened { name, lines }));
            more.extend(differences.stale.iter().map(|name| Problem::Stale { name }));
            if !differences.stale.is_empty() {
                // Sidecars that were right when they were written are stale if another task changed that they follow from.
                more.extend(fresh.check_fork_time().err().map(Problem::Damaged));
            }
            more.extend(stale(&dir, &fresh, &view)?);
            match fresh.check_imported() {
                Err(error @ LogError::Damaged { .. }) => more.push(Problem::Damaged(error)),
                checked => checked?,
            }
            if let Some(registry) = registry.into() {
                more.extend(self.unregistered(id, &dir, &fresh, registry)?);
            }
            if !lock::is_held(&dir) {
                problems.append(&mut more);
            }
        }
        Ok(problems)
    }

    fn unregistered(
        &self,
        id: Uuid,
        dir: &Path,
        log: &Log,
        registry: &Registry,
    ) -> Result<Vec<Problem>, TaskError> {
        let problem = |what: String| vec![Problem::Registry { what }];
        let Some(row) = registry.get(id)? else {
            return Ok(problem("it has no row".to_owned()));
        };
        let counted = self.recount(log)?;
        if row.counters != counted {
            let what = format!("it counts {:?}, the log {counted:?}", row.counters);
            return Ok(problem(what));
        }
        let ended = is_among_ended(dir);
        let status = end_of(log)?.map_or(Status::Running, |(status, _)| status);
        if ended != row.status.is_end() || ended && row.status != status {
            let what = format!("it says {}, the log {status}", row.status);
            return Ok(problem(what));
        }
        Ok(Vec::new())
    }
}

/// Returns redacted messages that are there again, or whose recorded original is wrong.
fn returned(log: &Log) -> Result<Vec<LogError>, LogError> {
    let mut found = Vec::new();
    for event in log.own().event..=log.state().at().event {
        let Some(id) = EventId::new(event) else {
            continue;
        };
        let What::Redact(line) = log.event(id)?.what else {
            continue;
        };
        for (seq, original) in line.messages {
            let reason = match log.redacted(seq)? {
                Some(now) if now == original => continue,
                Some(_) => format!("message {seq} is not the one that {id} redacted"),
                None if digest::message_digest(&log.message(seq)?).ok() != Some(original) => {
                    continue;
                }
                None => format!("message {seq} was redacted by {id} and is there again"),
            };
            found.push(LogError::damaged(
                &log.dir().join("messages.jsonl"),
                0,
                reason,
            ));
        }
    }
    Ok(found)
}

/// The files that do not follow from the log.
fn stale(dir: &Path, fresh: &Log, view: &View) -> Result<Vec<Problem>, LogError> {
    let mut names = Vec::new();
    let read = |name: &str| fs::read(dir.join(name)).unwrap_or_default();
    let current = Current::open(dir);
    let is_unwritten = fresh.is_untouched() && current.is_unwritten();
    // A task that ended gets no other writer.
    let was_killed = lock::is_left(dir) && !is_among_ended(dir);
    let path = dir.join("current.jsonl");
    let is_current =
        is_unwritten || shows(&path, fresh, view)? || was_killed && is_behind(&current, fresh)?;
    if !is_current {
        names.push("current.jsonl");
    }
    for derived in Derived::ALL {
        let (found, whole) = (read(derived.name()), derived.lines(fresh)?);
        if found != whole && !(was_killed && whole.starts_with(&found)) {
            names.push(derived.name());
        }
    }
    Ok(names
        .into_iter()
        .map(|name| Problem::Stale { name })
        .collect())
}

/// Returns whether `current.jsonl` shows an earlier state, or is being written anew from one. A killed writer leaves it so, and the next one brings it up to date.
fn is_behind(current: &Current, log: &Log) -> Result<bool, LogError> {
    if current.is_unwritten() {
        return Ok(true);
    }
    let end = log.state().at();
    let is_earlier = |at: &Point| at.seq <= end.seq && at.event <= end.event && *at != end;
    let Some(at) = current.at().filter(is_earlier) else {
        return Ok(false);
    };
    let earlier = View::of(&log.shown(at)?, log)?;
    Ok(current.has_settled_part()? || shows(&current.path(), log, &earlier)?)
}

/// Returns whether a file holds a view, and nothing else. Neither is held in memory.
fn shows(path: &Path, log: &Log, view: &View) -> Result<bool, LogError> {
    let fail = |error| LogError::io(path, "read", error);
    let file = match fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(view.pieces().is_empty());
        }
        opened => opened.map_err(fail)?,
    };
    let mut file = BufReader::new(file);
    let mut same = true;
    let mut found = Vec::new();
    log.render(view, &mut |_, bytes| {
        found.resize(bytes.len() + 1, 0);
        match file.read_exact(&mut found) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => same = false,
            read => read.map_err(fail)?,
        }
        same &= found.split_last() == Some((&b'\n', bytes));
        Ok(())
    })?;
    let more = file.bytes().next().transpose().map_err(fail)?;
    Ok(same && more.is_none())
}

/// Returns paths with the name of one of a task's files that are not files, such as a directory.
pub(crate) fn misplaced(dir: &Path) -> Vec<Problem> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let names = entries.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"torn-"));
    let paths = names.map(|entry| entry.path());
    paths
        .filter(|path| fs::metadata(path).is_ok_and(|meta| !meta.is_file()))
        .map(|path| Problem::Misplaced { path })
        .collect()
}

/// The files of a task, and its directory, that others than their owner may read.
fn exposed(dir: &Path) -> Vec<Problem> {
    let files = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let paths = std::iter::once(dir.to_owned()).chain(files);
    let modes = paths.filter_map(|path| {
        let mode = fs::metadata(&path).ok()?.permissions().mode() & 0o777;
        Some((path, mode))
    });
    let exposed = modes.filter(|(_, mode)| mode & 0o077 != 0);
    exposed
        .map(|(path, mode)| Problem::Exposed { path, mode })
        .collect()
}
