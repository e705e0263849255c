//! Writes down files, commands and calls, and the names that belong to each.

use std::collections::{BTreeMap, BTreeSet};

use infold_wire::shorten;

use super::{CALLS, COMMANDS, Draft, FILES, NAMED, tokens};
use crate::extract::names::Name;
use crate::extract::places::{Done, Kind, Place, PlaceId};

/// Of the room that is left for files, commands, sentences and names: what files that were changed get first,
const CHANGED_PERCENT: usize = 20;
/// and what commands get.
const COMMANDS_PERCENT: usize = 8;

impl<'a> Draft<'a> {
    /// Chooses files that were changed and commands that were run, whatever names they hold.
    pub(super) fn places(&mut self) {
        let whole = self.left;
        let from = self.from;
        let mut changed: Vec<_> = from
            .places
            .of(Kind::File)
            .filter(|(_, place)| place.done > Done::Read)
            .collect();
        changed.sort_by_key(|(_, place)| std::cmp::Reverse(place.seq));
        self.shelve(changed, whole * CHANGED_PERCENT / 100);
        let mut ran: Vec<_> = from.places.of(Kind::Command).collect();
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
        self.shelve(ran, (whole * COMMANDS_PERCENT / 100).max(self.least()));
    }

    fn shelve(&mut self, places: Vec<(PlaceId, &'a Place)>, mut share: usize) {
        for (id, place) in places {
            let line = self.place_line(place);
            let cost = tokens(&line) + 1 + self.shelf.heading_cost(place.kind);
            if cost > share || cost > self.left {
                continue;
            }
            share -= cost;
            self.left -= cost;
            self.shelf.take(id, place);
            self.coverage.see(&line);
        }
    }

    /// Writes a name down where it belongs; the first of a place pays for the place's line too.
    pub(super) fn shelve_name(&mut self, index: usize) {
        let (text, name) = self.sources.ranked[index];
        let home = name
            .home
            .and_then(|(id, _)| Some((id, self.from.places.get(id)?)));
        let own = tokens(&format!(", {text}"));
        if let Some((id, place)) = home {
            let line = self.place_line(place);
            let is_new = !self.shelf.names.contains_key(&id);
            let title = if is_new {
                tokens(&line) + 1 + self.shelf.heading_cost(place.kind)
            } else {
                0
            };
            if own + title > self.left {
                return;
            }
            self.left -= own + title;
            if is_new {
                self.shelf.take(id, place);
                self.coverage.see(&line);
            }
            if !self.coverage.covered[index] {
                self.shelf.names.entry(id).or_default().push(text);
            }
        } else {
            let is_new = !self.shelf.loose.contains_key(&name.last);
            let cost = own + if is_new { 5 } else { 0 };
            if cost > self.left {
                return;
            }
            self.left -= cost;
            self.shelf.loose.entry(name.last).or_default().push(text);
        }
        self.coverage.see(text);
    }

    /// `- src/a.rs (edited 3× [12])`, `- cargo test (failed 2× [14]) → 1 failed, 3 passed`
    fn place_line(&self, place: &Place) -> String {
        let state = match (place.kind, &place.ending) {
            (Kind::File, _) => place.done.word().to_owned(),
            (_, Some(ending)) => match (ending.failed, ending.code) {
                (Some(true), Some(code)) => format!("failed with {code}"),
                (Some(true), None) => "failed".to_owned(),
                (Some(false), _) => "ok".to_owned(),
                (None, _) => "ran".to_owned(),
            },
            (_, None) => "no result".to_owned(),
        };
        let times = if place.times > 1 {
            format!(" {}×", place.times)
        } else {
            String::new()
        };
        let mut line = format!(
            "- {} ({state}{times} [{}])",
            shorten(&place.key, 160),
            place.seq
        );
        let key = place
            .ending
            .as_ref()
            .and_then(|ending| ending.key.as_deref());
        let listed = place.ended.is_some_and(|seq| self.failed.contains(&seq));
        if let Some(key) = key.filter(|_| place.kind != Kind::File && !listed) {
            line.push_str(" → ");
            line.push_str(&shorten(key, 120));
        }
        line
    }

    pub(super) fn write_shelf(&mut self) {
        let shelf = std::mem::take(&mut self.shelf);
        let mut places: Vec<(PlaceId, &Place)> = shelf
            .names
            .keys()
            .filter_map(|id| Some((*id, self.from.places.get(*id)?)))
            .collect();
        // What was changed first, the newest of it first.
        places.sort_by_key(|(id, place)| {
            (place.done <= Done::Read, std::cmp::Reverse(place.last), *id)
        });
        for (id, place) in places {
            let heading = heading(place.kind);
            let names = &shelf.names[&id];
            let mut line = self.place_line(place);
            if !names.is_empty() {
                line.push_str(": ");
                line.push_str(&names.join(", "));
            }
            self.sections.entry(heading).or_default().push(line);
        }
        for (seq, names) in shelf.loose {
            let line = format!("- [{seq}] {}", names.join(", "));
            self.sections.entry(NAMED).or_default().push(line);
        }
    }
}

/// The files, commands, calls and names that were chosen so far.
#[derive(Default)]
pub(super) struct Shelf<'a> {
    names: BTreeMap<PlaceId, Vec<&'a str>>,
    /// Names that belong to no place, by the message they were last in.
    loose: BTreeMap<u64, Vec<&'a str>>,
    kinds: BTreeSet<Kind>,
}

impl Shelf<'_> {
    /// Says whether the place a name belongs to is there already.
    pub fn has_place(&self, name: &Name) -> bool {
        match name.home {
            Some((id, _)) => self.names.contains_key(&id),
            None => self.loose.contains_key(&name.last),
        }
    }

    /// What the heading costs, if it is not there yet.
    fn heading_cost(&self, kind: Kind) -> usize {
        if self.kinds.contains(&kind) {
            0
        } else {
            tokens(heading(kind)) + 1
        }
    }

    fn take(&mut self, id: PlaceId, place: &Place) {
        self.kinds.insert(place.kind);
        self.names.entry(id).or_default();
    }
}

fn heading(kind: Kind) -> &'static str {
    match kind {
        Kind::File => FILES,
        Kind::Command => COMMANDS,
        Kind::Call => CALLS,
    }
}
