//! The rows of the search index to which a search is limited.

use infold_log::Seq;
use uuid::Uuid;

use super::index::SearchIndex;
use crate::{Contexts, TaskError};

/// Rows of the index: all, or those of some tasks.
#[derive(Debug)]
pub struct Scope {
    /// First and last row, and the task that they are shown as, in order and disjoint. None if the scope is the whole
    /// index. Rows of a task that others continue are shown as one of those.
    ranges: Option<Vec<(i64, i64, Uuid)>>,
    /// The number of messages in it.
    pub messages: u64,
    /// The number of words of these messages; estimated unless the scope is the whole index.
    pub words: u64,
}

impl Scope {
    /// Returns the scope of these tasks and of those that they continue, or of all tasks; none if no message of them is
    /// in the index.
    pub fn of(
        contexts: &Contexts,
        tasks: Option<&[Uuid]>,
        index: &mut SearchIndex,
    ) -> Result<Option<Scope>, TaskError> {
        let (messages, words) = index.totals()?;
        let Some(tasks) = tasks else {
            let scope = Scope {
                ranges: None,
                messages,
                words,
            };
            return Ok(Some(scope).filter(|scope| scope.messages > 0));
        };
        let mut ranges = Vec::new();
        for task in tasks {
            for (holder, last) in contexts.lineage(*task)? {
                if let Some(number) = index.number(holder)? {
                    let last = last.map_or(u64::from(u32::MAX), Seq::get);
                    ranges.push((row(number, 0), row(number, last), *task));
                }
            }
        }
        // Tasks that continue the same one share rows of it. Their ranges have the same first row; the longest stays.
        ranges.sort_by_key(|(first, last, _)| (*first, -*last));
        ranges.dedup_by_key(|(first, ..)| *first);
        let mut count = 0;
        for (first, last, _) in &ranges {
            count += index.messages_between(*first, *last)?;
        }
        // The index counts words only in total: all messages are taken to be equally long.
        let words = (words as f64 * count as f64 / messages.max(1) as f64) as u64;
        let scope = Scope {
            ranges: Some(ranges),
            messages: count,
            words,
        };
        Ok(Some(scope).filter(|scope| scope.messages > 0))
    }

    /// Returns the task that a row is shown as; none if the row is not in the scope. In the scope of the whole index,
    /// that is the task whose log has the message, which `holder` returns.
    pub fn task_of(&self, row: i64, holder: impl FnOnce() -> Option<Uuid>) -> Option<Uuid> {
        match &self.ranges {
            None => holder(),
            Some(_) => self.range(row).map(|(.., task)| *task),
        }
    }

    /// Returns the ranges of rows, first and last, and the task that they are shown as; none for the whole index.
    pub fn ranges(&self) -> Option<&[(i64, i64, Uuid)]> {
        self.ranges.as_deref()
    }

    /// Says whether a row is in it.
    pub fn holds(&self, row: i64) -> bool {
        self.ranges.is_none() || self.range(row).is_some()
    }

    /// Returns its first row, its last, and whether all rows between them are in it; none for the whole index.
    pub fn bounds(&self) -> Option<(i64, i64, bool)> {
        let ranges = self.ranges.as_ref()?;
        let last = ranges.iter().map(|(_, last, _)| *last).max()?;
        Some((ranges.first()?.0, last, ranges.len() == 1))
    }

    /// Returns the range that contains a row.
    fn range(&self, row: i64) -> Option<&(i64, i64, Uuid)> {
        let ranges = self.ranges.as_ref()?;
        let at = ranges.partition_point(|(first, ..)| *first <= row);
        ranges[..at].last().filter(|(_, last, _)| row <= *last)
    }
}

/// Returns the row id of a message: the number of its task in the upper 32 bits, and its seq in the lower ones. So the
/// rows of a task are contiguous.
pub fn row(number: i64, seq: u64) -> i64 {
    number << 32 | i64::from(u32::try_from(seq).unwrap_or(u32::MAX))
}

/// Returns the number of the task and the seq of a row, the inverse of [`row`].
pub fn parts(row: i64) -> (i64, Option<Seq>) {
    (row >> 32, Seq::new((row & i64::from(u32::MAX)) as u64))
}

impl Contexts {
    /// Returns a task and those that it continues, each with the last of its messages that belong to the conversation;
    /// none if all do.
    pub(super) fn lineage(&self, task: Uuid) -> Result<Vec<(Uuid, Option<Seq>)>, TaskError> {
        let older = self.read(task)?.message_holders()?;
        let older = older.into_iter().map(|(holder, last)| (holder, Some(last)));
        Ok(std::iter::once((task, None)).chain(older).collect())
    }
}
