//! Redacts text from the log: the one operation that rewrites it.
//!
//! No file is touched before all of the new ones are on the disk, beside them (`redact/staging.rs`): a crash
//! leaves either the old files or the new ones, never a mixture.

mod beside;
mod checkpoints;
mod copies;
mod forms;
mod pieces;
mod rewrite;
mod state_changes;
mod staging;
mod texts;
mod tool_uses;
mod transcript;
mod words;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use infold_log::steer::Refused;
use infold_log::{Seq, Span};
use infold_wire::redact::{message_parts, redact_matches, visit_texts};
use uuid::Uuid;

use crate::event::Extent;
use crate::file::{Access, Growing};
use crate::lines::Lines;
use crate::lock::Lock;
use crate::redacted_values::FoundValues;
use crate::{Contexts, Log, LogError, TaskError, push_journal, repair, stored};
pub use checkpoints::RedactedFile;
use forms::KnownTexts;
use rewrite::{Rewrite, Staged};
use staging::{RedactionPlan, Staging};
pub(crate) use texts::marker;
use words::Words;

/// Finds the ranges of a text to redact, in bytes, in order and apart.
type Find<'a> = &'a dyn Fn(&str) -> Vec<Range<usize>>;

/// The search for texts to redact.
#[derive(Clone, Copy)]
struct Search<'a> {
    /// Finds the ranges to redact in texts outside the messages.
    find: Find<'a>,
    /// The texts of the messages by which a copy is recognised.
    known: KnownTexts<'a>,
}

/// The text to redact.
#[derive(Clone, Copy)]
pub enum RedactTarget<'a> {
    /// All that messages say.
    Messages(&'a [Span]),
    /// The matches of a search, in these messages or in all.
    Matches {
        /// Which messages.
        within: Option<&'a [Span]>,
        /// The search.
        find: Find<'a>,
    },
}

/// The result of a redaction or of its preview.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redaction {
    /// The tasks that held some of it; those first that others continue.
    pub tasks: Vec<RedactedTask>,
    /// How many matches were left where messages are paired or placed by them: in ids, roles, types, names and positions.
    pub left: usize,
    /// The messages with a remaining match that spans several of their texts and the bytes between them.
    pub spanned: Vec<Seq>,
    /// Files and directories that were removed whole, because their contents are unknown.
    pub removed: Vec<PathBuf>,
    /// Files that were taken out of checkpoints.
    pub files: Vec<RedactedFile>,
    /// The number of titles and names in the databases that were redacted.
    pub entries: usize,
}

/// The result for one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedactedTask {
    /// The task.
    pub task: Uuid,
    /// Its event that says so; none if it is yet to be done.
    pub event: Option<u64>,
    /// Its messages, each with the number of matches in it.
    pub messages: Vec<(Seq, usize)>,
    /// The number of its other texts that were redacted.
    pub texts: u64,
}

impl Redaction {
    /// Returns whether nothing was found.
    pub fn is_empty(&self) -> bool {
        let is_nothing = |task: &RedactedTask| task.messages.is_empty() && task.texts == 0;
        self.tasks.iter().all(is_nothing)
            && self.removed.is_empty()
            && self.files.is_empty()
            && self.entries == 0
    }

    /// How many messages there are.
    pub fn messages(&self) -> usize {
        self.tasks.iter().map(|task| task.messages.len()).sum()
    }
}

/// A task that shares messages with the one that is redacted.
struct FamilyMember {
    task: Uuid,
    dir: PathBuf,
    /// The task that it continues, and the last message that it has from there.
    parent: Option<Uuid>,
    base: u64,
    /// Its messages that are to change, with the number of matches in each.
    messages: BTreeMap<u64, usize>,
}

/// All of them, those first that others continue.
type Family = Vec<FamilyMember>;

impl Contexts {
    /// Returns the result that [`Contexts::redact`] would have. Nothing is changed.
    pub fn redactable(&self, id: Uuid, target: RedactTarget<'_>) -> Result<Redaction, TaskError> {
        let mut family = self.family(id, target)?;
        let found = self.select(id, target, &mut family)?;
        self.with_search(target, &family, |search, extent| {
            let values = FoundValues::default();
            let rewrite = Rewrite::new(self, &family, (search, &values), extent)?;
            let preview = |at: usize| rewrite.preview(at);
            let (redaction, _) = self.plan(&family, &rewrite, search, found, preview)?;
            Ok(redaction)
        })
    }

    /// Removes messages, or the matches of a search, from the log of a task and from everything derived from it, for good.
    ///
    /// Messages belong to the task that holds them; texts that the tasks continuing it derived from them are
    /// redacted as well. All these tasks are locked meanwhile. Nothing is changed if nothing is found.
    pub fn redact(&self, id: Uuid, target: RedactTarget<'_>) -> Result<Redaction, TaskError> {
        let staging = Staging::begin(self)?;
        let mut family = self.family(id, target)?;
        let mut locks = self.lock_all(&family)?;
        let found = self.select(id, target, &mut family)?;
        let (redaction, plan) = self.with_search(target, &family, |search, extent| {
            let values = FoundValues::default();
            let collect = |text: &str| values.collect(text, (search.find)(text));
            let collecting = Search {
                find: &collect,
                ..search
            };
            let rewrite = Rewrite::new(self, &family, (collecting, &values), extent)?;
            let stage = |at: usize| rewrite.stage(at, &staging);
            self.plan(&family, &rewrite, search, found, stage)
        })?;
        if redaction.is_empty() {
            staging.discard();
            return Ok(redaction);
        }
        staging.commit(&plan)?;
        let finished = self.roll_forward(&plan, &staging);
        for lock in &mut locks {
            lock.in_order(finished.is_ok());
        }
        drop(locks);
        finished.map_err(|source| TaskError::Redacting {
            source: Box::new(source),
        })?;
        Ok(redaction)
    }

    /// Calls `work` with the search for texts outside messages.
    fn with_search<T>(
        &self,
        target: RedactTarget<'_>,
        family: &Family,
        work: impl FnOnce(Search<'_>, Extent) -> Result<T, TaskError>,
    ) -> Result<T, TaskError> {
        match target {
            RedactTarget::Matches { find, .. } => {
                let known = KnownTexts::Matches(find);
                work(Search { find, known }, Extent::Matches)
            }
            RedactTarget::Messages(_) => {
                let words = self.words(family)?;
                let find = &|text: &str| words.find(text);
                let known = KnownTexts::Words(&words);
                work(Search { find, known }, Extent::Whole)
            }
        }
    }

    /// Returns the result of a redaction, and the steps that follow once `stage` has created the new files.
    fn plan(
        &self,
        family: &Family,
        rewrite: &Rewrite<'_>,
        search: Search<'_>,
        mut redaction: Redaction,
        stage: impl Fn(usize) -> Result<Staged, TaskError>,
    ) -> Result<(Redaction, RedactionPlan), TaskError> {
        let mut plan = RedactionPlan::default();
        for (at, one) in family.iter().enumerate() {
            let staged = stage(at)?;
            redaction.left += staged.left;
            plan.tasks.push(one.task);
            let names = staged.names.into_iter().map(|name| (one.task, name));
            plan.names.extend(names);
            plan.removed.extend(copies::holding(&one.dir, search.find)?);
            if !one.messages.is_empty() || staged.texts > 0 {
                redaction.tasks.push(RedactedTask {
                    task: one.task,
                    event: staged.event,
                    messages: counted(&one.messages),
                    texts: staged.texts,
                });
            }
        }
        rewrite.stage_rows(&mut plan)?;
        plan.removed.extend(copies::leftovers(self, search.find)?);
        let kept = self.find_in_checkpoints(family, search)?;
        plan.blobs = kept.blobs;
        redaction.files = kept.files;
        plan.removed.extend(kept.removed);
        redaction.entries = plan.rows.len() + plan.models.len() + plan.names.len();
        redaction.removed.clone_from(&plan.removed);
        if !redaction.is_empty() {
            for one in family {
                let paths = copies::unrecoverable(&one.dir)?.into_iter();
                let others = paths.filter(|path| !plan.removed.contains(path));
                redaction.removed.extend(others);
            }
        }
        Ok((redaction, plan))
    }

    /// Returns the tasks that share the texts to redact.
    ///
    /// A search concerns all tasks that share messages with the task; messages are in one task, and in those
    /// that continue it.
    fn family(&self, id: Uuid, target: RedactTarget<'_>) -> Result<Family, TaskError> {
        let log = self.read(id)?;
        let mut line = vec![id];
        let mut parent = parent_of(&log);
        while let Some((task, _)) = parent {
            if line.contains(&task) {
                break;
            }
            line.push(task);
            parent = parent_of(&self.read(task)?);
        }
        let root = match target {
            RedactTarget::Matches { .. } => *line.last().unwrap_or(&id),
            RedactTarget::Messages(spans) => {
                let last = log.state().at().seq;
                let first = spans.iter().map(|span| span.from().get()).min();
                let first = first.unwrap_or(1);
                for span in spans {
                    if span.to().get() > last {
                        let seq = span.to().get();
                        let source = Box::new(Refused::NoMessage { seq, last });
                        return Err(TaskError::Step { task: id, source });
                    }
                }
                let mut holder = id;
                for task in &line {
                    holder = *task;
                    let base = if *task == id {
                        log.own().seq
                    } else {
                        self.read(*task)?.own().seq
                    };
                    if first >= base {
                        break;
                    }
                }
                holder
            }
        };
        let mut tasks = self.continued_by(root)?;
        tasks.push(root);
        tasks.reverse();
        let mut family = Vec::with_capacity(tasks.len());
        for task in tasks {
            let log = self.read(task)?;
            let parent = parent_of(&log);
            family.push(FamilyMember {
                task,
                dir: log.dir().to_owned(),
                parent: parent.map(|(parent, _)| parent),
                base: parent.map_or(0, |(_, base)| base),
                messages: BTreeMap::new(),
            });
        }
        Ok(family)
    }

    /// Takes the locks of all of them, and repairs what a crash left behind.
    fn lock_all(&self, family: &Family) -> Result<Vec<Lock>, TaskError> {
        let mut locks = Vec::with_capacity(family.len());
        for one in family {
            locks.push(self.locked(one.task, &one.dir)?);
        }
        for one in family {
            push_journal::withdraw(&one.dir)?;
            let (mut log, tail) = Log::open(&one.dir, Access::Write, &self.dirs())?;
            for repair in repair::tail(&mut log, &tail)? {
                self.tell(&format!("task {}: {repair}", one.task));
            }
        }
        Ok(locks)
    }

    /// Finds the messages to change; returns the remaining matches in them.
    fn select(
        &self,
        id: Uuid,
        target: RedactTarget<'_>,
        family: &mut Family,
    ) -> Result<Redaction, TaskError> {
        let spans = match target {
            RedactTarget::Messages(spans) => Some(spans),
            RedactTarget::Matches { within, .. } => within,
        };
        let line = lineage(family, id);
        let mut redaction = Redaction::default();
        for one in family.iter_mut() {
            // Seqs are those of the task that was named, and count in others as far as it has their messages.
            let end = line.iter().find(|(task, _)| *task == one.task);
            let end = end.map_or(0, |(_, end)| *end);
            let is_meant = |seq: u64| match spans {
                None => true,
                Some(spans) => {
                    let holds = |span: &Span| span.from().get() <= seq && seq <= span.to().get();
                    seq <= end && spans.iter().any(holds)
                }
            };
            let file = Growing::open(one.dir.join("messages.jsonl"), Access::Read)?;
            let mut lines = Lines::new(&file, 0);
            while let Some(line) = lines.next()? {
                let Some(stored) = stored::split(line.bytes).filter(|_| line.whole) else {
                    continue;
                };
                let seq = stored.seq.get();
                if !is_meant(seq) {
                    continue;
                }
                let RedactTarget::Matches { find, .. } = target else {
                    one.messages.insert(seq, 1);
                    continue;
                };
                let body = stored.body(line.bytes);
                let found = redact_matches(&body, &marker(0), &mut |text| find(text));
                let found = found.map_err(|error| damaged(&file, line.offset, &error))?;
                redaction.left += found.left;
                if is_spanned(found.bytes.as_deref().unwrap_or(&body), find) {
                    redaction.spanned.push(stored.seq);
                }
                if found.matches > 0 {
                    one.messages.insert(seq, found.matches);
                }
            }
        }
        Ok(redaction)
    }

    /// Returns the words that occur in the messages to redact and in no other.
    fn words(&self, family: &Family) -> Result<Words, TaskError> {
        let mut words = Words::default();
        for is_gone in [true, false] {
            for one in family {
                let file = Growing::open(one.dir.join("messages.jsonl"), Access::Read)?;
                let mut lines = Lines::new(&file, 0);
                while let Some(line) = lines.next()? {
                    let Some(stored) = stored::split(line.bytes).filter(|_| line.whole) else {
                        continue;
                    };
                    if one.messages.contains_key(&stored.seq.get()) != is_gone {
                        continue;
                    }
                    let body = stored.body(line.bytes);
                    let mut take = |text: &str| {
                        if is_gone {
                            words.add(text)
                        } else {
                            words.keep(text)
                        }
                    };
                    let parts = visit_texts(&body, &mut take).and_then(|()| message_parts(&body));
                    let parts = parts.map_err(|error| damaged(&file, line.offset, &error))?;
                    for part in &parts {
                        if is_gone {
                            words.add_text(part.text());
                        } else {
                            words.keep_text(part.text());
                        }
                    }
                }
            }
        }
        Ok(words)
    }

    /// Completes a redaction that was decided and cut short. This comes before any reading of a task, which would see some old
    /// files and some new ones.
    pub(crate) fn settle_redaction(&self) -> Result<(), TaskError> {
        let Some((staging, plan)) = Staging::decided(self)? else {
            return Ok(());
        };
        self.roll_forward(&plan, &staging)
    }

    /// Removes the leftovers of a redaction that was cut off before it was decided; returns whether there were
    /// any.
    pub(crate) fn discard_redaction(&self) -> Result<bool, TaskError> {
        self.settle_redaction()?;
        Staging::discard_left(self)
    }
}

/// The task that a log continues, and the last message it has from there.
fn parent_of(log: &Log) -> Option<(Uuid, u64)> {
    let (task, at) = log.parent()?;
    Some((task.parse().ok()?, at.seq))
}

/// A task of a family and those of it that it continues, each with the last message that counts.
fn lineage(family: &Family, id: Uuid) -> Vec<(Uuid, u64)> {
    let mut line = Vec::new();
    let (mut next, mut end) = (Some(id), u64::MAX);
    while let Some(one) = next.and_then(|id| family.iter().find(|one| one.task == id)) {
        line.push((one.task, end));
        (next, end) = (one.parent, end.min(one.base));
    }
    line
}

/// The task of a family that holds a message of one of them.
fn holder(family: &Family, id: Uuid, seq: u64) -> Option<&FamilyMember> {
    let line = lineage(family, id);
    let mut line = line.iter();
    line.find_map(|(task, _)| {
        let one = family.iter().find(|one| one.task == *task)?;
        (seq > one.base).then_some(one)
    })
}

/// Returns whether something is found in a redacted message that spans several of its texts.
fn is_spanned(body: &[u8], find: Find<'_>) -> bool {
    let text = String::from_utf8_lossy(body);
    let spans = |range: &Range<usize>| {
        let found = &text[range.clone()];
        let is_content = found.contains(char::is_alphanumeric) && !found.contains(&marker(0));
        found.contains('"') && is_content
    };
    find(&text).iter().any(spans)
}

fn counted(messages: &BTreeMap<u64, usize>) -> Vec<(Seq, usize)> {
    let counted = messages.iter();
    counted
        .filter_map(|(seq, matches)| Some((Seq::new(*seq)?, *matches)))
        .collect()
}

fn damaged(file: &Growing, at: u64, error: &dyn std::error::Error) -> LogError {
    LogError::damaged(file.path(), at, error.to_string())
}
