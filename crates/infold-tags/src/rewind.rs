//! Rewinds a task to an entry on screen: removes the entries and messages after it.

use std::collections::HashSet;

use infold_wire::js;

use crate::effective::untag_in_place;
use crate::{Millis, TagId, TagKind, Tagged, TaggedRole, UiEntry};

/// The two lists an agent keeps of one task.
#[derive(Clone, Copy, Debug)]
pub struct TaskLists<'a> {
    /// The entries that a person was shown.
    pub ui: &'a [UiEntry],
    /// The messages that the model is sent, hidden ones included.
    pub history: &'a [Tagged],
}

/// Whether the target of a rewind stays on screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewindTarget {
    /// The entry is removed with the following ones.
    Cut,
    /// The entry stays on screen, but the history is cut.
    Keep,
}

/// Whether tags whose stand-in was removed are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrphanTags {
    /// They are removed, and their messages become visible.
    Untag,
    /// They stay; a later step may remove them.
    Leave,
}

/// A task after a rewind.
#[derive(Clone, Debug)]
pub struct RewoundTask<'a> {
    /// The entries that stay on screen. They have to be stored in any case.
    pub ui: &'a [UiEntry],
    /// The new history, to be stored; none if it did not change.
    pub history: Option<Vec<Tagged>>,
}

/// The reason that a task was not rewound.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RewindError {
    /// No entry on screen has this time. The text is the agent's.
    #[error("Message with timestamp {} not found in clineMessages", js::number(ts.0))]
    NotFound {
        /// The requested time.
        ts: Millis,
    },
}

/// Rewinds to the first entry on screen whose time is `ts`.
pub fn rewind_to_ts<'a>(
    task: TaskLists<'a>,
    ts: Millis,
    target: RewindTarget,
    orphans: OrphanTags,
) -> Result<RewoundTask<'a>, RewindError> {
    let mut entries = task.ui.iter();
    let found = entries.position(|entry| entry.ts().given() == Some(ts));
    let index = found.ok_or(RewindError::NotFound { ts })?;
    let kept = index + usize::from(target == RewindTarget::Keep);
    Ok(rewind(task, kept, ts, orphans))
}

/// Rewinds so that `index` entries stay on screen.
///
/// The history is cut at the time of the first entry that is removed, or at `now` if
/// there is none or it has no time.
pub fn rewind_to_index(
    task: TaskLists<'_>,
    index: usize,
    orphans: OrphanTags,
    now: Millis,
) -> RewoundTask<'_> {
    let at = task.ui.get(index).and_then(|entry| entry.ts().given());
    rewind(task, index, at.unwrap_or(now), orphans)
}

fn rewind(task: TaskLists<'_>, kept: usize, at: Millis, orphans: OrphanTags) -> RewoundTask<'_> {
    let (ui, removed) = task.ui.split_at(kept.min(task.ui.len()));
    let removed_folds = RemovedFolds::announced_by(removed);
    let cutoff = find_cutoff(task.history, at);
    let stays = |message: &&Tagged| {
        // A message without a time stays.
        let is_before = message.ts().nonzero().is_none_or(|ts| ts < cutoff);
        is_before && !removed_folds.include(message)
    };
    let mut history: Vec<Tagged> = task.history.iter().filter(stays).cloned().collect();
    let untagged = match orphans {
        OrphanTags::Untag => untag_in_place(&mut history),
        OrphanTags::Leave => 0,
    };
    let changed = untagged > 0 || history.len() != task.history.len();
    RewoundTask {
        ui,
        history: changed.then_some(history),
    }
}

/// Returns the time at which the history is cut if it is rewound to `at`.
///
/// A reply may be stored before the entry that announced it: then no message has that exact time, and the reply belongs
/// to the turn before. So the cut moves to the next user message.
fn find_cutoff(history: &[Tagged], at: Millis) -> Millis {
    let is_exact = |message: &Tagged| message.ts().given() == Some(at);
    let is_earlier = |message: &Tagged| message.ts().compared().is_some_and(|ts| ts < at);
    if history.iter().any(is_exact) || !history.iter().any(is_earlier) {
        return at;
    }
    let users = history
        .iter()
        .filter(|message| message.role() == TaggedRole::User);
    let mut times = users.filter_map(|user| user.ts().compared());
    times.find(|ts| *ts >= at).unwrap_or(at)
}

/// The folds whose announcements are cut off, by kind; their stand-ins are removed with them.
struct RemovedFolds<'a>([HashSet<&'a TagId>; 2]);

impl<'a> RemovedFolds<'a> {
    fn announced_by(entries: &'a [UiEntry]) -> RemovedFolds<'a> {
        let mut ids = [HashSet::new(), HashSet::new()];
        for (kind, id) in entries.iter().filter_map(UiEntry::created_fold) {
            ids[kind as usize].insert(id);
        }
        RemovedFolds(ids)
    }

    fn include(&self, message: &Tagged) -> bool {
        TagKind::ALL.into_iter().any(|kind| {
            let id = message.stands_for(kind);
            id.is_some_and(|id| self.0[kind as usize].contains(id))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ui(ts: &[&str]) -> Vec<UiEntry> {
        let entry = |ts: &&str| UiEntry::parse(format!(r#"{{"ts":{ts}}}"#).as_bytes()).unwrap();
        ts.iter().map(entry).collect()
    }

    fn history(ts: &[(&str, &str)]) -> Vec<Tagged> {
        let message = |(role, ts): &(&str, &str)| {
            Tagged::parse(format!(r#"{{"role":"{role}","ts":{ts}}}"#).as_bytes()).unwrap()
        };
        ts.iter().map(message).collect()
    }

    /// Returns the number of messages that stay if the history is rewound to a time.
    fn stay(at: f64, messages: &[(&str, &str)]) -> usize {
        let at_text = at.to_string();
        let (ui, history) = (ui(&[&at_text]), history(messages));
        let task = TaskLists {
            ui: &ui,
            history: &history,
        };
        let rewound = rewind_to_ts(task, Millis(at), RewindTarget::Cut, OrphanTags::Untag).unwrap();
        rewound
            .history
            .map_or(history.len(), |history| history.len())
    }

    #[test]
    fn a_time_nobody_spoke_at_is_named() {
        let ui = ui(&["1", "null"]);
        let task = TaskLists {
            ui: &ui,
            history: &[],
        };
        let rewind = |ts| rewind_to_ts(task, Millis(ts), RewindTarget::Keep, OrphanTags::Leave);
        assert_eq!(
            rewind(1e21).unwrap_err().to_string(),
            "Message with timestamp 1e+21 not found in clineMessages"
        );
        assert!(rewind(0.0).is_err());
    }

    #[test]
    fn zero_and_null_stay_but_count_as_earlier() {
        assert_eq!(
            stay(5.0, &[("user", "0"), ("assistant", "6"), ("user", "7")]),
            2
        );
        assert_eq!(
            stay(5.0, &[("user", "null"), ("assistant", "6"), ("user", "7")]),
            2
        );
        assert_eq!(
            stay(5.0, &[("user", "\"1\""), ("assistant", "6"), ("user", "7")]),
            1
        );
    }

    #[test]
    fn zero_is_a_time_to_rewind_to_and_stays_all_the_same() {
        assert_eq!(stay(0.0, &[("user", "0"), ("user", "5")]), 1);
    }

    #[test]
    fn only_an_exact_time_or_nothing_earlier_cuts_at_once() {
        assert_eq!(
            stay(5.0, &[("user", "1"), ("assistant", "6"), ("user", "5")]),
            1
        );
        assert_eq!(stay(5.0, &[("assistant", "6"), ("user", "7")]), 0);
        assert_eq!(stay(5.0, &[("user", "1"), ("assistant", "6")]), 1);
        assert_eq!(stay(5.0, &[("user", "9"), ("user", "1"), ("user", "7")]), 2);
    }

    #[test]
    fn an_entry_without_a_time_cuts_at_the_clock() {
        let (ui, history) = (ui(&["1", "null"]), history(&[("user", "1"), ("user", "9")]));
        let task = TaskLists {
            ui: &ui,
            history: &history,
        };
        let kept = rewind_to_index(task, 1, OrphanTags::Untag, Millis(10.0));
        assert_eq!((kept.ui.len(), kept.history.is_none()), (1, true));
        let cut = rewind_to_index(task, 1, OrphanTags::Untag, Millis(9.0));
        assert_eq!(cut.history.unwrap().len(), 1);
    }
}
