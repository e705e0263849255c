//! Writes down files, commands and calls, and the names that belong to each.

use std::collections::{BTreeMap, BTreeSet};

use infold_wire::shorten;

use super::{CALLS, COMMANDS, FILES, NAMED, SummaryWriter, tokens};
use crate::extract::targets::{FileAction, Target, TargetId, TargetKind};

/// Of the room that is left for files, commands, sentences and names: what files that were changed get first,
const CHANGED_PERCENT: usize = 20;
/// and what commands get.
const COMMANDS_PERCENT: usize = 8;
/// What stands in the line of a place beside its path or command takes about so many tokens.
const TITLE_TOKENS: usize = 6;
/// A command or call that is longer is not listed for the sake of one name.
const MAX_TITLE_BYTES: usize = 60;

impl<'a> SummaryWriter<'a> {
    /// Chooses files that were changed and commands that were run, whatever names they hold.
    pub(super) fn places(&mut self) {
        let whole = self.left;
        let from = self.from;
        let mut changed: Vec<_> = from
            .targets
            .of(TargetKind::File)
            .filter(|(_, place)| place.action > FileAction::Read)
            .collect();
        changed.sort_by_key(|(_, place)| std::cmp::Reverse(place.seq));
        self.list_targets(changed, whole * CHANGED_PERCENT / 100);
        let mut ran: Vec<_> = from.targets.of(TargetKind::Command).collect();
        ran.sort_by_key(|(_, place)| {
            let failed = place
                .ending
                .as_ref()
                .is_some_and(|ending| ending.failed == Some(true));
            std::cmp::Reverse((
                failed && place.last + 40 > from.span.map_or(0, |(_, last)| last),
                place.times.min(5),
                place.seq,
            ))
        });
        self.list_targets(ran, (whole * COMMANDS_PERCENT / 100).max(self.least()));
    }

    fn list_targets(&mut self, places: Vec<(TargetId, &'a Target)>, mut share: usize) {
        for (id, place) in places {
            let line = self.place_line(place);
            let cost = tokens(&line) + 1 + self.lists.heading_cost(place.kind);
            if cost > share || cost > self.left {
                continue;
            }
            share -= cost;
            self.left -= cost;
            self.lists.take(id, place);
            self.coverage.see(&line);
        }
    }

    /// Writes a name down where it belongs; the first of a place pays for the place's line too.
    pub(super) fn list_name(&mut self, index: usize) {
        let (text, _) = self.sources.ranked[index];
        let home = self.home(index);
        let mut cost = tokens(&format!(", {text}"));
        let mut title = None;
        if let Some((id, place)) = home
            && !self.lists.names.contains_key(&id)
        {
            let line = self.place_line(place);
            cost += tokens(&line) + 1 + self.lists.heading_cost(place.kind);
            title = Some(line);
        }
        if cost > self.left {
            return;
        }
        self.left -= cost;
        if let (Some((id, place)), Some(line)) = (home, &title) {
            self.lists.take(id, place);
            self.coverage.see(line);
        }
        match home {
            // Its own path or command.
            Some(_) if self.coverage.has_name(index) => {}
            Some((id, _)) => self.lists.names.entry(id).or_default().push(text),
            None => self.lists.loose.push(text),
        }
        self.coverage.see(text);
    }

    /// The place that a name is written down with: no long command for the sake of one name.
    fn home(&self, index: usize) -> Option<(TargetId, &'a Target)> {
        let (id, _) = self.sources.ranked[index].1.home?;
        let place = self.from.targets.get(id)?;
        let is_worth_it = place.kind == TargetKind::File || place.key.len() <= MAX_TITLE_BYTES;
        (is_worth_it || self.lists.names.contains_key(&id)).then_some((id, place))
    }

    /// About how many tokens the line of a place takes that a name is to be written down with.
    pub(super) fn heading_line_cost(&self, index: usize) -> usize {
        match self.home(index) {
            Some((id, place)) if !self.lists.names.contains_key(&id) => {
                TITLE_TOKENS + place.key.len() / 4
            }
            _ => 0,
        }
    }

    /// `- src/a.rs (edited 3× [12])`, `- cargo test (failed 2× [14]) → 1 failed, 3 passed`
    fn place_line(&self, place: &Target) -> String {
        let state = match (place.kind, &place.ending) {
            (TargetKind::File, _) => place.action.word().to_owned(),
            (_, Some(ending)) => match (ending.failed, ending.code) {
                (Some(true), Some(code)) => format!("failed with {code}"),
                (Some(true), None) => "failed".to_owned(),
                (Some(false), _) => "ok".to_owned(),
                (None, _) => "ran".to_owned(),
            },
            (_, None) => "no result".to_owned(),
        };
        // Of runs only the last is known to have ended so.
        let state = match (place.kind, place.times) {
            (_, ..2) => state,
            (TargetKind::File, times) => format!("{state} {times}×"),
            (_, times) if state == "ran" => format!("ran {times}×"),
            (_, times) => format!("ran {times}×, {state}"),
        };
        let key = shorten(&place.key, 160);
        // Of a call that went as calls go only the message is told.
        let is_plain = place.kind == TargetKind::Call && matches!(&*state, "ok" | "ran");
        let mut line = if is_plain {
            format!("- {key} [{}]", place.seq)
        } else {
            format!("- {key} ({state} [{}])", place.seq)
        };
        let key = place
            .ending
            .as_ref()
            .and_then(|ending| ending.key.as_deref());
        let listed = place.ended.is_some_and(|seq| self.failed.contains(&seq));
        if let Some(key) = key.filter(|_| place.kind != TargetKind::File && !listed) {
            line.push_str(" → ");
            line.push_str(&shorten(key, 120));
        }
        line
    }

    pub(super) fn write_lists(&mut self) {
        let lists = std::mem::take(&mut self.lists);
        let mut places: Vec<(TargetId, &Target)> = lists
            .names
            .keys()
            .filter_map(|id| Some((*id, self.from.targets.get(*id)?)))
            .collect();
        // What was changed first, the newest of it first.
        places.sort_by_key(|(id, place)| {
            (
                place.action <= FileAction::Read,
                std::cmp::Reverse(place.last),
                *id,
            )
        });
        for (id, place) in places {
            let heading = heading(place.kind);
            let names = &lists.names[&id];
            let mut line = self.place_line(place);
            if !names.is_empty() {
                line.push_str(": ");
                line.push_str(&names.join(", "));
            }
            self.sections.entry(heading).or_default().push(line);
        }
        if !lists.loose.is_empty() {
            let line = format!("- {}", lists.loose.join(", "));
            self.sections.entry(NAMED).or_default().push(line);
        }
    }
}

/// The files, commands, calls and names that were chosen so far.
#[derive(Default)]
pub(super) struct TargetLists<'a> {
    names: BTreeMap<TargetId, Vec<&'a str>>,
    /// NameTable that are written down without a place.
    loose: Vec<&'a str>,
    kinds: BTreeSet<TargetKind>,
}

impl TargetLists<'_> {
    /// What the heading costs, if it is not there yet.
    fn heading_cost(&self, kind: TargetKind) -> usize {
        if self.kinds.contains(&kind) {
            0
        } else {
            tokens(heading(kind)) + 1
        }
    }

    fn take(&mut self, id: TargetId, place: &Target) {
        self.kinds.insert(place.kind);
        self.names.entry(id).or_default();
    }
}

fn heading(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::File => FILES,
        TargetKind::Command => COMMANDS,
        TargetKind::Call => CALLS,
    }
}
