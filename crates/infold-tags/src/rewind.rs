use std::collections::HashSet;

use crate::present::untag_in_place;
use crate::{Fold, Millis, Role, TagId, Tagged, UiEntry};
use infold_wire::js;

/// The two lists an agent keeps of one task.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// What a person was shown.
    pub ui: &'a [UiEntry],
    /// What the model is sent, hidden messages included.
    pub history: &'a [Tagged],
}

/// What becomes of the entry that a rewind names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// It is cut off with what follows.
    Cut,
    /// It stays on screen; the history is cut all the same.
    Keep,
}

/// What becomes of tags whose stand-in was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orphans {
    /// They go, and what they hid shows again.
    Untag,
    /// They stay for a later step to judge.
    Leave,
}

/// A task after a rewind.
#[derive(Clone, Debug)]
pub struct Rewound<'a> {
    /// The entries that stay on screen. They are to be stored in any case.
    pub ui: &'a [UiEntry],
    /// The new history, to be stored; nothing if it is the old one.
    pub history: Option<Vec<Tagged>>,
}

/// Why a task was not rewound.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RewindError {
    /// No entry on screen has this time. The text is the peer's.
    #[error("Message with timestamp {} not found in clineMessages", js::number(ts.0))]
    NotFound {
        /// The time asked for.
        ts: Millis,
    },
}

/// Rewinds to the first entry on screen whose time is `ts`.
pub fn rewind_to_ts<'a>(
    task: Task<'a>,
    ts: Millis,
    target: Target,
    orphans: Orphans,
) -> Result<Rewound<'a>, RewindError> {
    let found = task
        .ui
        .iter()
        .position(|entry| entry.ts().given() == Some(ts));
    let index = found.ok_or(RewindError::NotFound { ts })?;
    let stay = match target {
        Target::Cut => index,
        Target::Keep => index + 1,
    };
    Ok(rewind(task, stay, ts, orphans))
}

/// Rewinds so that `index` entries stay on screen.
///
/// The history is cut at the time of the first entry that goes, or at `now` if
/// there is none or it has no time.
pub fn rewind_to_index(task: Task<'_>, index: usize, orphans: Orphans, now: Millis) -> Rewound<'_> {
    let at = task.ui.get(index).and_then(|entry| entry.ts().given());
    rewind(task, index, at.unwrap_or(now), orphans)
}

fn rewind(task: Task<'_>, stay: usize, at: Millis, orphans: Orphans) -> Rewound<'_> {
    let (ui, gone) = task.ui.split_at(stay.min(task.ui.len()));
    let undone = Undone::told_by(gone);
    let cutoff = cutoff(task.history, at);
    let stays = |message: &&Tagged| is_before(message, cutoff) && !undone.includes(message);
    let mut history: Vec<Tagged> = task.history.iter().filter(stays).cloned().collect();
    let untagged = match orphans {
        Orphans::Untag => untag_in_place(&mut history),
        Orphans::Leave => 0,
    };
    let changed = untagged > 0 || history.len() != task.history.len();
    Rewound {
        ui,
        history: changed.then_some(history),
    }
}

/// Where the history is cut if it is rewound to `at`.
///
/// A reply may be stored before the entry that announced it: then no message
/// has that very time, and the reply belongs to what was said before. So the
/// cut moves on to the next user message.
fn cutoff(history: &[Tagged], at: Millis) -> Millis {
    let times = || history.iter().filter_map(|message| message.ts().compared());
    let exact = history
        .iter()
        .any(|message| message.ts().given() == Some(at));
    if exact || !times().any(|ts| ts < at) {
        return at;
    }
    let users = history
        .iter()
        .filter(|message| message.role() == Role::User);
    let mut later = users
        .filter_map(|user| user.ts().compared())
        .filter(|ts| *ts >= at);
    later.next().unwrap_or(at)
}

/// Says whether a message stays; one without a time does.
fn is_before(message: &Tagged, cutoff: Millis) -> bool {
    message.ts().nonzero().is_none_or(|ts| ts < cutoff)
}

/// The folds whose making is cut off, and whose stand-ins therefore go.
struct Undone<'a> {
    ids: [HashSet<&'a TagId>; 2],
}

impl<'a> Undone<'a> {
    fn told_by(entries: &'a [UiEntry]) -> Undone<'a> {
        let mut ids = [HashSet::new(), HashSet::new()];
        for (fold, id) in entries.iter().filter_map(UiEntry::made) {
            ids[fold as usize].insert(id);
        }
        Undone { ids }
    }

    fn includes(&self, message: &Tagged) -> bool {
        let gone = |fold| {
            let id = message.stands_for(fold);
            id.is_some_and(|id| self.ids[fold as usize].contains(id))
        };
        Fold::ALL.into_iter().any(gone)
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

    /// How many messages stay if the history is rewound to a time.
    fn stay(at: f64, messages: &[(&str, &str)]) -> usize {
        let at_text = at.to_string();
        let (ui, history) = (ui(&[&at_text]), history(messages));
        let task = Task {
            ui: &ui,
            history: &history,
        };
        let rewound = rewind_to_ts(task, Millis(at), Target::Cut, Orphans::Untag).unwrap();
        rewound
            .history
            .map_or(history.len(), |history| history.len())
    }

    #[test]
    fn a_time_nobody_spoke_at_is_named() {
        let ui = ui(&["1", "null"]);
        let task = Task {
            ui: &ui,
            history: &[],
        };
        let rewind = |ts| rewind_to_ts(task, Millis(ts), Target::Keep, Orphans::Leave);
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
        let task = Task {
            ui: &ui,
            history: &history,
        };
        let kept = rewind_to_index(task, 1, Orphans::Untag, Millis(10.0));
        assert_eq!((kept.ui.len(), kept.history.is_none()), (1, true));
        let cut = rewind_to_index(task, 1, Orphans::Untag, Millis(9.0));
        assert_eq!(cut.history.unwrap().len(), 1);
    }
}
