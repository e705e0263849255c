//! Lists files, commands and calls, and the names that belong to each.

use std::collections::{BTreeMap, BTreeSet};

use infold_wire::shorten;

use super::{CALLS, COMMANDS, FILES, NAMED, SummaryWriter, tokens};
use crate::extract::targets::{CallTarget, FileAction, TargetId, TargetKind};

/// The share of the rest for changed files, in percent.
const CHANGED_PERCENT: usize = 20;
/// The share of the rest for commands, in percent.
const COMMANDS_PERCENT: usize = 8;
/// About how many tokens a target's line has beside its path or command.
const LINE_TOKENS: usize = 6;
/// The heading of names that belong to no file, command or call.
pub const LOOSE_NAMES: &str = "Names: ";
/// The separator of names, none of which has a space: a comma would take a token of its own.
const SEPARATOR: &str = " ";
/// A longer command or call is not listed for a single name.
const MAX_TITLE_BYTES: usize = 60;

impl<'a> SummaryWriter<'a> {
    /// Chooses changed files and commands, whatever names belong to them.
    pub(super) fn targets(&mut self) {
        let whole = self.left;
        let from = self.from;
        let mut changed: Vec<_> = from
            .targets
            .of(TargetKind::File)
            .filter(|(_, target)| target.action > FileAction::Read)
            .collect();
        changed.sort_by_key(|(_, target)| std::cmp::Reverse(target.seq));
        self.list_targets(changed, whole * CHANGED_PERCENT / 100);
        let mut ran: Vec<_> = from.targets.of(TargetKind::Command).collect();
        ran.sort_by_key(|(_, target)| {
            let failed = target
                .ending
                .as_ref()
                .is_some_and(|ending| ending.failed == Some(true));
            std::cmp::Reverse((
                failed && target.last + 40 > from.span.map_or(0, |(_, last)| last),
                target.times.min(5),
                target.seq,
            ))
        });
        self.list_targets(ran, (whole * COMMANDS_PERCENT / 100).max(self.least()));
    }

    fn list_targets(&mut self, targets: Vec<(TargetId, &'a CallTarget)>, mut share: usize) {
        for (id, target) in targets {
            let line = self.target_line(target);
            let cost = tokens(&line) + 1 + self.lists.heading_cost(target.kind);
            if cost > share || cost > self.left {
                continue;
            }
            share -= cost;
            self.left -= cost;
            self.lists.take(id, target);
            self.coverage.see(&line);
        }
    }

    /// Lists a name under its target; the first name of a target also pays for the target's line.
    pub(super) fn list_name(&mut self, index: usize) {
        let (text, _) = self.sources.ranked[index];
        let home = self.home(index);
        let mut cost = name_tokens(text);
        let mut title = None;
        if let Some((id, target)) = home
            && !self.lists.names.contains_key(&id)
        {
            let line = self.target_line(target);
            cost += tokens(&line) + 1 + self.lists.heading_cost(target.kind);
            title = Some(line);
        }
        if cost > self.left {
            return;
        }
        self.left -= cost;
        if let (Some((id, target)), Some(line)) = (home, &title) {
            self.lists.take(id, target);
            self.coverage.see(line);
        }
        match home {
            // The name is the path or command itself.
            Some(_) if self.coverage.has_name(index) => {}
            Some((id, _)) => self.lists.names.entry(id).or_default().push(text),
            None => self.lists.loose.push(text),
        }
        self.coverage.see(text);
    }

    /// Returns the target under which a name is listed: no long command for a single name.
    fn home(&self, index: usize) -> Option<(TargetId, &'a CallTarget)> {
        let (id, _) = self.sources.ranked[index].1.home?;
        let target = self.from.targets.get(id)?;
        let is_worth_it = target.kind == TargetKind::File || target.key.len() <= MAX_TITLE_BYTES;
        (is_worth_it || self.lists.names.contains_key(&id)).then_some((id, target))
    }

    /// Returns the approximate tokens of the line of a name's target, if it is not listed yet.
    pub(super) fn heading_line_cost(&self, index: usize) -> usize {
        match self.home(index) {
            Some((id, target)) if !self.lists.names.contains_key(&id) => {
                LINE_TOKENS + target.key.len() / 4
            }
            _ => 0,
        }
    }

    /// `- src/a.rs (edited 3× [12])`, `- cargo test (failed 2× [14]) → 1 failed, 3 passed`
    fn target_line(&self, target: &CallTarget) -> String {
        let state = match (target.kind, &target.ending) {
            (TargetKind::File, _) => target.action.word().to_owned(),
            (_, Some(ending)) => match (ending.failed, ending.code) {
                (Some(true), Some(code)) => format!("failed with {code}"),
                (Some(true), None) => "failed".to_owned(),
                (Some(false), _) => "ok".to_owned(),
                (None, _) => "ran".to_owned(),
            },
            (_, None) => "no result".to_owned(),
        };
        // Only the outcome of the last run is known.
        let state = match (target.kind, target.times) {
            (_, ..2) => state,
            (TargetKind::File, times) => format!("{state} {times}×"),
            (_, times) if state == "ran" => format!("ran {times}×"),
            (_, times) => format!("ran {times}×, {state}"),
        };
        let key = shorten(&target.key, 160);
        // A file that was read and a call that succeeded are only cited.
        let is_plain = match target.kind {
            TargetKind::File => target.action == FileAction::Read && target.times < 2,
            TargetKind::Call => matches!(&*state, "ok" | "ran"),
            TargetKind::Command => false,
        };
        let mut line = if is_plain {
            format!("- {key} [{}]", target.seq)
        } else {
            format!("- {key} ({state} [{}])", target.seq)
        };
        let key = target
            .ending
            .as_ref()
            .and_then(|ending| ending.key.as_deref());
        let listed = target.ended.is_some_and(|seq| self.failed.contains(&seq));
        if let Some(key) = key.filter(|_| target.kind != TargetKind::File && !listed) {
            line.push_str(" → ");
            line.push_str(&shorten(key, 120));
        }
        line
    }

    pub(super) fn write_lists(&mut self) {
        let lists = std::mem::take(&mut self.lists);
        let mut targets: Vec<(TargetId, &CallTarget)> = lists
            .names
            .keys()
            .filter_map(|id| Some((*id, self.from.targets.get(*id)?)))
            .collect();
        // Changed files come first, the newest of them first.
        targets.sort_by_key(|(id, target)| {
            (
                target.action <= FileAction::Read,
                std::cmp::Reverse(target.last),
                *id,
            )
        });
        for (id, target) in targets {
            let heading = heading(target.kind);
            let names = &lists.names[&id];
            let mut line = self.target_line(target);
            if !names.is_empty() {
                line.push_str(": ");
                line.push_str(&names.join(SEPARATOR));
            }
            self.sections.entry(heading).or_default().push(line);
        }
        if !lists.loose.is_empty() {
            let line = format!("- {LOOSE_NAMES}{}", lists.loose.join(SEPARATOR));
            self.sections.entry(NAMED).or_default().push(line);
        }
    }
}

/// The files, commands, calls and names chosen so far.
#[derive(Default)]
pub(super) struct TargetLists<'a> {
    names: BTreeMap<TargetId, Vec<&'a str>>,
    /// Names without a target.
    loose: Vec<&'a str>,
    kinds: BTreeSet<TargetKind>,
}

impl TargetLists<'_> {
    /// Returns the tokens of the heading, if it is not written yet.
    fn heading_cost(&self, kind: TargetKind) -> usize {
        if self.kinds.contains(&kind) {
            0
        } else {
            tokens(heading(kind)) + 1
        }
    }

    fn take(&mut self, id: TargetId, target: &CallTarget) {
        self.kinds.insert(target.kind);
        self.names.entry(id).or_default();
    }
}

/// Returns the tokens of a name in a list.
pub(super) fn name_tokens(name: &str) -> usize {
    tokens(&format!("{SEPARATOR}{name}"))
}

fn heading(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::File => FILES,
        TargetKind::Command => COMMANDS,
        TargetKind::Call => CALLS,
    }
}
