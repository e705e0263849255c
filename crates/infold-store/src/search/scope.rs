//! Which rows of the index a search looks at.

use infold_log::Seq;
use uuid::Uuid;

use super::index::SearchIndex;
use crate::{Contexts, TaskError};

/// Rows of the index: all, or those of some tasks.
#[derive(Debug)]
pub struct Scope {
    /// First and last row, and the task that they are shown as; in order. None: all.
    ranges: Option<Vec<(i64, i64, Uuid)>>,
    /// How many messages there are in it.
    pub messages: u64,
    /// How many words they have.
    pub words: u64,
}

impl Scope {
    /// The messages of these tasks and of those that they continue, or of all; nothing if none of them is in the index.
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
        ranges.sort_by_key(|(first, last, _)| (*first, -*last));
        ranges.dedup_by_key(|(first, ..)| *first);
        let mut count = 0;
        for (first, last, _) in &ranges {
            count += index.messages_between(*first, *last)?;
        }
        let words = (words as f64 * count as f64 / messages.max(1) as f64) as u64;
        let scope = Scope {
            ranges: Some(ranges),
            messages: count,
            words,
        };
        Ok(Some(scope).filter(|scope| scope.messages > 0))
    }

    /// The task that a row is shown as, unless the scope does not hold it. `holder` is asked for the task that holds it.
    pub fn task_of(&self, row: i64, holder: impl FnOnce() -> Option<Uuid>) -> Option<Uuid> {
        match &self.ranges {
            None => holder(),
            Some(_) => self.range(row).map(|(.., task)| *task),
        }
    }

    /// First and last row, and the task that they are shown as; none if all rows are meant.
    pub fn ranges(&self) -> Option<&[(i64, i64, Uuid)]> {
        self.ranges.as_deref()
    }

    /// Says whether a row is in it.
    pub fn holds(&self, row: i64) -> bool {
        self.ranges.is_none() || self.range(row).is_some()
    }

    /// The first row of all its tasks, the last, and whether it is one task; nothing if it is all tasks.
    pub fn bounds(&self) -> Option<(i64, i64, bool)> {
        let ranges = self.ranges.as_ref()?;
        let last = ranges.iter().map(|(_, last, _)| *last).max()?;
        Some((ranges.first()?.0, last, ranges.len() == 1))
    }

    fn range(&self, row: i64) -> Option<&(i64, i64, Uuid)> {
        let ranges = self.ranges.as_ref()?;
        let at = ranges.partition_point(|(first, ..)| *first <= row);
        ranges[..at].last().filter(|(_, last, _)| row <= *last)
    }
}

/// The row of a message: the number of its task, then its seq. So the messages of a task stand side by side.
pub fn row(number: i64, seq: u64) -> i64 {
    number << 32 | i64::from(u32::try_from(seq).unwrap_or(u32::MAX))
}

/// The number of the task and the seq of a row.
pub fn parts(row: i64) -> (i64, Option<Seq>) {
    (row >> 32, Seq::new((row & i64::from(u32::MAX)) as u64))
}

impl Contexts {
    /// A task and those that it continues, each with the last of its messages that count; none: all of them.
    pub(super) fn lineage(&self, task: Uuid) -> Result<Vec<(Uuid, Option<Seq>)>, TaskError> {
        let older = self.read(task)?.message_holders()?;
        let older = older.into_iter().map(|(holder, last)| (holder, Some(last)));
        Ok(std::iter::once((task, None)).chain(older).collect())
    }
}
