use std::collections::{BTreeMap, BTreeSet};

use infold_wire::shorten;

use super::{CALLS, COMMANDS, Cover, Draft, FILES, NAMED, tokens};
use crate::extract::places::{Done, Kind, Place, PlaceId};

/// Of the room for files, commands and names: what files that were changed get before anything else,
const CHANGED: usize = 30;
/// and what commands get.
const RAN: usize = 8;

impl<'a> Draft<'a> {
    /// Chooses files, commands and calls, and names under each, and writes them.
    pub(super) fn places(&mut self) {
        let whole = self.left;
        let mut shelf = Shelf::default();
        let from = self.from;
        let mut changed: Vec<_> = from
            .places
            .of(Kind::File)
            .filter(|(_, place)| place.done > Done::Read)
            .collect();
        changed.sort_by_key(|(_, place)| std::cmp::Reverse(place.seq));
        self.shelve(&mut shelf, changed, whole * CHANGED / 100);
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
        self.shelve(&mut shelf, ran, (whole * RAN / 100).max(self.least()));
        self.fill(&mut shelf);
        self.write_shelf(shelf);
    }

    fn shelve(
        &mut self,
        shelf: &mut Shelf<'a>,
        places: Vec<(PlaceId, &'a Place)>,
        mut share: usize,
    ) {
        for (id, place) in places {
            let line = self.place_line(place);
            let cost = tokens(&line) + 1 + shelf.title(place.kind);
            if cost > share || cost > self.left {
                continue;
            }
            share -= cost;
            self.left -= cost;
            shelf.take(id, place, &mut self.cover, &line);
        }
    }

    /// Goes down the ranked names; the first of a place pays for the place's line too.
    fn fill(&mut self, shelf: &mut Shelf<'a>) {
        for index in 0..self.cover.ranked.len() {
            if self.cover.covered[index] {
                continue;
            }
            let (text, name) = self.cover.ranked[index];
            let home = name
                .home
                .and_then(|(id, _)| Some((id, self.from.places.get(id)?)));
            let own = tokens(&format!(", {text}"));
            match home {
                Some((id, place)) => {
                    let line = self.place_line(place);
                    let new = !shelf.names.contains_key(&id);
                    let title = if new {
                        tokens(&line) + 1 + shelf.title(place.kind)
                    } else {
                        0
                    };
                    if own + title > self.left {
                        continue;
                    }
                    self.left -= own + title;
                    if new {
                        shelf.take(id, place, &mut self.cover, &line);
                    }
                    if !self.cover.covered[index] {
                        shelf.names.entry(id).or_default().push(text);
                    }
                }
                None => {
                    let new = !shelf.loose.contains_key(&name.last);
                    let cost = own + if new { 5 } else { 0 };
                    if cost > self.left {
                        continue;
                    }
                    self.left -= cost;
                    shelf.loose.entry(name.last).or_default().push(text);
                }
            }
            self.cover.see(text);
            if self.left < 4 {
                break;
            }
        }
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

    fn write_shelf(&mut self, shelf: Shelf<'a>) {
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

/// What was chosen so far.
#[derive(Default)]
struct Shelf<'a> {
    names: BTreeMap<PlaceId, Vec<&'a str>>,
    /// Names that belong to no place, by the message they were last in.
    loose: BTreeMap<u64, Vec<&'a str>>,
    kinds: BTreeSet<Kind>,
}

impl<'a> Shelf<'a> {
    /// What the heading costs, if it is not there yet.
    fn title(&self, kind: Kind) -> usize {
        match self.kinds.contains(&kind) {
            true => 0,
            false => tokens(heading(kind)) + 1,
        }
    }

    fn take(&mut self, id: PlaceId, place: &Place, cover: &mut Cover<'a>, line: &str) {
        self.kinds.insert(place.kind);
        self.names.entry(id).or_default();
        cover.see(line);
    }
}

fn heading(kind: Kind) -> &'static str {
    match kind {
        Kind::File => FILES,
        Kind::Command => COMMANDS,
        Kind::Call => CALLS,
    }
}
