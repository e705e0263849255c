//! Brings the index up to the logs.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::{Instant, SystemTime};

use infold_log::{Seq, Source, Span};
use uuid::Uuid;

use super::document::{Document, DocumentReader};
use super::index::{SearchIndex, TaskMark};
use crate::{Contexts, Log, LogError, RegistryError, TaskError};

/// How much was searched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexCoverage {
    /// How many bytes of logs there are.
    pub total_bytes: u64,
    /// How many of them were searched.
    pub searched_bytes: u64,
    /// Why it was not all of them: the time was over, the disk is full, a task cannot be read.
    pub stopped: Option<String>,
}

impl IndexCoverage {
    /// Says whether everything was searched.
    pub fn is_complete(&self) -> bool {
        self.stopped.is_none()
    }
}

/// A batch has at most so many messages,
const MAX_BATCH_MESSAGES: usize = 10_000;
/// and about so many bytes of text: writers wait for each other as long as one batch takes.
const MAX_BATCH_BYTES: u64 = 4 << 20;

/// A task whose log is longer than its indexed part.
pub(super) struct Behind {
    pub task: Uuid,
    pub mark: Option<TaskMark>,
    pub len: u64,
    pub changed: SystemTime,
}

impl Contexts {
    /// Brings the search index up to the logs, newest first, until a deadline; says how far it got.
    ///
    /// Removed tasks are deleted from it. Writers of tasks never wait for this.
    pub fn fill_search_index(&self, deadline: Instant) -> Result<IndexCoverage, TaskError> {
        let is_there = self.root().join(super::index::NAME).exists();
        if !is_there && self.tasks()?.is_empty() {
            return Ok(IndexCoverage::default());
        }
        let index = SearchIndex::open(self.root())?;
        let (mut index, coverage) = self.fill_opened(index, None, deadline)?;
        index.purge()?;
        Ok(coverage)
    }

    /// Opens the index and brings it up to the logs: first to those of `tasks`, or only to them if there is no time for more.
    pub(super) fn filled_index(
        &self,
        tasks: Option<&[Uuid]>,
        deadline: Instant,
    ) -> Result<(SearchIndex, IndexCoverage), TaskError> {
        let index = match SearchIndex::open(self.root()) {
            // Where nothing can be written, as much is indexed in memory as there is time for.
            Err(RegistryError::Full { .. } | RegistryError::ReadOnly { .. }) => {
                SearchIndex::in_memory()?
            }
            opened => opened?,
        };
        self.fill_opened(index, tasks, deadline)
    }

    /// Updates an index to the logs; a damaged one is rebuilt.
    fn fill_opened(
        &self,
        mut index: SearchIndex,
        tasks: Option<&[Uuid]>,
        deadline: Instant,
    ) -> Result<(SearchIndex, IndexCoverage), TaskError> {
        if let Some(reason) = index.renewed.take() {
            self.tell_renewed(&reason);
        }
        match self.fill_index(&mut index, tasks, deadline) {
            // Damage to the index shows only when it is used.
            Err(TaskError::Registry(RegistryError::Damaged { reason, .. })) => {
                drop(index);
                self.renew_search_index(&reason)?;
                let mut index = SearchIndex::open(self.root())?;
                let coverage = self.fill_index(&mut index, tasks, deadline)?;
                Ok((index, coverage))
            }
            filled => filled.map(|coverage| (index, coverage)),
        }
    }

    /// Removes a damaged index: the next one to open it rebuilds it.
    pub(super) fn renew_search_index(&self, reason: &str) -> Result<(), TaskError> {
        SearchIndex::remove(self.root())?;
        self.tell_renewed(&format!("was damaged ({reason})"));
        Ok(())
    }

    fn tell_renewed(&self, reason: &str) {
        let path = self.root().join(super::index::NAME);
        let path = path.display();
        self.tell(&format!("{path} {reason} and is made anew from the tasks"));
    }

    fn fill_index(
        &self,
        index: &mut SearchIndex,
        first: Option<&[Uuid]>,
        deadline: Instant,
    ) -> Result<IndexCoverage, TaskError> {
        let mut coverage = IndexCoverage::default();
        let mut behind = self.behind(index, &mut coverage)?;
        let first = first.unwrap_or_default();
        behind.sort_by_key(|one| (!first.contains(&one.task), std::cmp::Reverse(one.changed)));
        for one in behind {
            let from = one.mark.map_or(0, |mark| mark.bytes);
            if Instant::now() >= deadline {
                coverage.stopped = Some("the index is still being filled".to_owned());
                break;
            }
            let reached = match self.index_task(index, &one, deadline) {
                Ok(reached) => reached,
                // The task was removed, or cannot be read, which `verify` reports.
                Err(TaskError::Unknown { .. }) => continue,
                Err(TaskError::Log(error)) => {
                    coverage.stopped = Some(format!("task {} cannot be read: {error}", one.task));
                    continue;
                }
                // The query can still be answered from the existing index.
                Err(TaskError::Registry(
                    error @ (RegistryError::Full { .. }
                    | RegistryError::Busy { .. }
                    | RegistryError::ReadOnly { .. }),
                )) => {
                    coverage.stopped = Some(error.to_string());
                    break;
                }
                Err(error) => return Err(error),
            };
            coverage.searched_bytes += reached.saturating_sub(from);
            if reached < one.len {
                coverage.stopped = Some("the index is still being filled".to_owned());
            }
        }
        Ok(coverage)
    }

    /// Returns the tasks whose logs are longer than their indexed part. Removed tasks are deleted from the
    /// index.
    fn behind(
        &self,
        index: &mut SearchIndex,
        coverage: &mut IndexCoverage,
    ) -> Result<Vec<Behind>, TaskError> {
        let marks: HashMap<Uuid, TaskMark> = index.marks()?.into_iter().collect();
        let mut behind = Vec::new();
        let mut there = HashSet::new();
        for task in self.tasks()? {
            there.insert(task);
            let Some(dir) = self.place(task) else {
                continue;
            };
            let Ok(meta) = fs::metadata(dir.join("messages.jsonl")) else {
                continue;
            };
            let (mark, len) = (marks.get(&task).copied(), meta.len());
            coverage.total_bytes += len;
            let known = mark.map_or(0, |mark| mark.bytes);
            coverage.searched_bytes += known.min(len);
            if known != len {
                let changed = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                behind.push(Behind {
                    task,
                    mark,
                    len,
                    changed,
                });
            }
        }
        let gone: Vec<Uuid> = marks
            .into_keys()
            .filter(|task| !there.contains(task))
            .collect();
        if !gone.is_empty() {
            // A task that is being moved from one place to another is there in one of them.
            let gone: Vec<Uuid> = gone
                .into_iter()
                .filter(|task| self.place(*task).is_none())
                .collect();
            index.forget(&gone)?;
        }
        Ok(behind)
    }

    /// Indexes the new messages of a task; returns the size of the indexed part of its file.
    pub(super) fn index_task(
        &self,
        index: &mut SearchIndex,
        behind: &Behind,
        deadline: Instant,
    ) -> Result<u64, TaskError> {
        let log = self.read(behind.task)?;
        let mut mark = behind.mark.unwrap_or(TaskMark {
            number: 0,
            through: 0,
            sum: 0,
            bytes: 0,
        });
        if !still_holds(&log, mark)? {
            // A power cut took messages, and others came in their place.
            index.forget(&[behind.task])?;
            (mark.number, mark.through) = (0, 0);
        }
        let is_current = || !log.is_replaced() && log.dir().join("messages.jsonl").exists();
        let mut reader = DocumentReader::default();
        let end = log.state().at().seq;
        loop {
            let from = Seq::new(mark.through.max(log.own().seq - 1) + 1);
            let span = from.zip(Seq::new(end));
            let Some(span) = span.and_then(|(from, to)| Span::new(from, to)) else {
                break;
            };
            let batch = read_batch(&log, span, &mut reader)?;
            let Some((last, _)) = batch.last() else { break };
            let last = Seq::new(*last).unwrap_or(span.to());
            let (bytes, sum) = log.line_end(last)?;
            let is_end = last == span.to();
            let next = TaskMark {
                number: mark.number,
                through: last.get(),
                sum,
                // A torn record after the last message counts as read.
                bytes: if is_end { behind.len.max(bytes) } else { bytes },
            };
            let Some(added) = index.add(behind.task, &batch, next, is_current)? else {
                return Ok(mark.bytes);
            };
            mark = added;
            if mark.through >= end || Instant::now() >= deadline {
                break;
            }
        }
        if mark.number != 0 && mark.through >= end && mark.bytes != behind.len {
            let bytes = behind.len;
            index.add(behind.task, &[], TaskMark { bytes, ..mark }, is_current)?;
        }
        Ok(if mark.through >= end {
            behind.len
        } else {
            mark.bytes
        })
    }
}

/// Returns whether the last indexed message is unchanged.
fn still_holds(log: &Log, mark: TaskMark) -> Result<bool, LogError> {
    match Seq::new(mark.through) {
        None => Ok(true),
        Some(last) if last.get() > log.state().at().seq || last.get() < log.own().seq => Ok(false),
        Some(last) => Ok(log.line_end(last)?.1 == mark.sum),
    }
}

fn read_batch(
    log: &Log,
    span: Span,
    reader: &mut DocumentReader,
) -> Result<Vec<(u64, Document)>, LogError> {
    let mut batch = Vec::new();
    let mut bytes = 0;
    let mut from = span.from();
    while batch.len() < MAX_BATCH_MESSAGES && bytes < MAX_BATCH_BYTES && from <= span.to() {
        // Few at a time: each may be large.
        let to = Seq::new(from.get() + 31).unwrap_or(from).min(span.to());
        let few = Span::new(from, to).unwrap_or(Span::one(from));
        log.each_message(few, &mut |source, message| {
            if let Source::Message(seq) = source {
                let document = reader.read(log, seq, message)?;
                bytes += document.bytes;
                batch.push((seq.get(), document));
            }
            Ok(())
        })?;
        from = to.next();
    }
    Ok(batch)
}
