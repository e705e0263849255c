mod asked;
mod shelf;

use std::collections::{BTreeMap, BTreeSet};

use infold_wire::acts::State;
use infold_wire::shorten;
use infold_wire::tokens::{Encoding, count};

use super::Extract;
use super::names::Name;
use super::talk::{Line, brief, decides, squeeze};
use crate::refs::Finder;

/// Shares of the room, in percent; what one section leaves the next ones may use.
const RULES: usize = 6;
const WORK: usize = 6;
const ERRORS: usize = 5;
const FINDINGS: usize = 7;
const EARLIER: usize = 15;
/// More names than any summary has room for.
const NAMES: usize = 4000;

pub(super) const GOAL: &str = "## Goal";
pub(super) const ASKED: &str = "## Requests";
pub(super) const RULED: &str = "## System messages";
pub(super) const FOUND: &str = "## Decisions and findings";
pub(super) const FILES: &str = "## Files";
pub(super) const COMMANDS: &str = "## Commands";
pub(super) const CALLS: &str = "## Other calls";
pub(super) const FAILED: &str = "## Errors";
pub(super) const OPEN: &str = "## Open work";
pub(super) const NAMED: &str = "## Also mentioned";
pub(super) const BEFORE: &str = "## Earlier summary";
pub(super) const RECALL: &str = "## Recall";

/// Counts the tokens of a text, as summaries are measured in.
pub fn tokens(text: &str) -> usize {
    count(Encoding::O200k, text) as usize
}

impl Extract {
    /// Writes the summary in at most `budget` tokens.
    pub fn write(&self, budget: usize) -> String {
        fitted(budget, |room| self.compose(room))
    }

    /// Writes what code knows for certain (files, commands, things to do, names), to stand below a summary that
    /// somebody else wrote, leaving out what that `summary` says already. Empty if it says it all.
    pub fn lists(&self, summary: &str, budget: usize) -> String {
        fitted(budget, |room| {
            let mut draft = Draft::new(self, room);
            draft.cover.see(summary);
            draft.summary = summary;
            draft.open_work(false);
            draft.places();
            draft.text(&[FILES, COMMANDS, CALLS, OPEN, NAMED])
        })
    }

    fn compose(&self, room: usize) -> String {
        let mut draft = Draft::new(self, room);
        draft.recall();
        draft.requests();
        draft.rules();
        draft.open_work(true);
        draft.errors();
        draft.findings();
        draft.earlier();
        draft.places();
        draft.text(&[
            GOAL, ASKED, RULED, BEFORE, FOUND, FILES, COMMANDS, CALLS, FAILED, OPEN, NAMED, RECALL,
        ])
    }
}

/// Asks for less until what comes fits; at last cuts lines off the end.
///
/// What pieces weigh one by one is mostly a little more than what they weigh together.
fn fitted(budget: usize, compose: impl Fn(usize) -> String) -> String {
    let mut room = budget;
    let mut text = compose(room);
    for _ in 0..3 {
        let used = tokens(&text);
        if used <= budget {
            return text;
        }
        room = room.saturating_sub(used - budget + 4);
        text = compose(room);
    }
    while tokens(&text) > budget {
        let end = text.trim_end().rfind('\n').unwrap_or(0);
        text.truncate(end);
    }
    text
}

/// Which names a text already has.
struct Cover<'a> {
    ranked: Vec<(&'a str, &'a Name)>,
    finder: Finder,
    covered: Vec<bool>,
}

impl Cover<'_> {
    fn see(&mut self, text: &str) {
        self.finder.find(text, |index| self.covered[index] = true);
    }
}

struct Draft<'a> {
    from: &'a Extract,
    left: usize,
    whole: usize,
    cover: Cover<'a>,
    sections: BTreeMap<&'static str, Vec<String>>,
    /// Messages whose errors are listed.
    failed: BTreeSet<u64>,
    summary: &'a str,
}

impl<'a> Draft<'a> {
    fn new(from: &'a Extract, room: usize) -> Draft<'a> {
        let ranked = from.names.ranked(NAMES);
        let finder = Finder::new(ranked.iter().map(|(text, _)| *text));
        Draft {
            from,
            left: room,
            whole: room,
            cover: Cover {
                covered: vec![false; ranked.len()],
                ranked,
                finder,
            },
            sections: BTreeMap::new(),
            failed: BTreeSet::new(),
            summary: "",
        }
    }

    /// Joins the sections in this order.
    fn text(self, order: &[&'static str]) -> String {
        let mut out = String::new();
        for heading in order {
            let Some(lines) = self.sections.get(heading).filter(|lines| !lines.is_empty()) else {
                continue;
            };
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(heading);
            out.push('\n');
            for line in lines {
                out.push_str(line);
                out.push('\n');
            }
        }
        out
    }

    /// Adds a line if there is room within `share` tokens, which it then takes.
    fn add(&mut self, heading: &'static str, line: String, share: &mut usize) -> bool {
        let lines = self.sections.get(heading);
        let title = if lines.is_none() {
            tokens(heading) + 1
        } else {
            0
        };
        let cost = tokens(&line) + 1 + title;
        if cost > *share || cost > self.left {
            return false;
        }
        *share -= cost;
        self.left -= cost;
        self.cover.see(&line);
        self.sections.entry(heading).or_default().push(line);
        true
    }

    fn share(&self, percent: usize) -> usize {
        (self.whole * percent / 100)
            .max(self.least())
            .min(self.left)
    }

    /// In a small room every section still has room for a line.
    fn least(&self) -> usize {
        (self.whole / 10).min(40)
    }

    fn recall(&mut self) {
        let Some((first, last)) = self.from.span else {
            return;
        };
        let line = format!(
            "[n] is message n. Nothing is lost: `infold recall TASK {first}..{last}` or the recall tool shows any of them in full."
        );
        let mut share = self.left;
        self.add(RECALL, line, &mut share);
    }

    /// Adds lines that were already paid for by a share.
    fn add_in_order(&mut self, heading: &'static str, mut lines: Vec<(u64, String)>) {
        lines.sort();
        for (_, line) in lines {
            let mut share = self.left;
            self.add(heading, line, &mut share);
        }
    }

    fn rules(&mut self) {
        let mut share = self.share(RULES);
        let mut chosen = Vec::new();
        for line in self.from.rules.iter().rev() {
            let said = squeeze(&line.text, (share * 3).max(40));
            let text = format!("- [{}] {}", line.seq, shorten(&said, usize::MAX));
            let cost = tokens(&text) + 8;
            if cost > share {
                break;
            }
            share -= cost;
            chosen.push((line.seq, text));
        }
        self.add_in_order(RULED, chosen);
    }

    fn open_work(&mut self, with_words: bool) {
        let mut share = self.share(WORK);
        if let Some((seq, list)) = &self.from.todos {
            let done = list.iter().filter(|todo| todo.state == State::Done).count();
            for todo in list.iter().filter(|todo| todo.state != State::Done) {
                if self.summary.contains(&todo.text) {
                    continue;
                }
                let mark = if todo.state == State::Doing {
                    "[-]"
                } else {
                    "[ ]"
                };
                self.add(OPEN, format!("- {mark} {} [{seq}]", todo.text), &mut share);
            }
            if done > 0 {
                self.add(
                    OPEN,
                    format!("- {done} of {} done [{seq}]", list.len()),
                    &mut share,
                );
            }
        }
        if let Some(plan) = self.from.plan.as_ref().filter(|_| with_words) {
            let line = format!("- Plan {}", quoted(plan, share * 3));
            self.add(OPEN, line, &mut share);
        }
        if let Some(said) = self.from.talk.last_said.as_ref().filter(|_| with_words) {
            let line = format!("- Last said {}", quoted(said, (share * 3).min(700)));
            self.add(OPEN, line, &mut share);
        }
    }

    fn errors(&mut self) {
        let mut share = self.share(ERRORS);
        let mut chosen = Vec::new();
        for line in self.from.errors.newest() {
            let text = format!("- [{}] {}", line.seq, shorten(&line.text, 220));
            let cost = tokens(&text) + 1;
            if cost + 4 > share {
                break;
            }
            share -= cost;
            self.failed.insert(line.seq);
            chosen.push((line.seq, text));
        }
        self.add_in_order(FAILED, chosen);
    }

    fn findings(&mut self) {
        let mut share = self.share(FINDINGS);
        let last = self.from.span.map_or(1, |(_, last)| last) as f64;
        let mut ranked: Vec<(f64, &Line)> = Vec::new();
        let mut seen = BTreeSet::new();
        // What was said of a thing last is what holds.
        for line in self.from.talk.findings.iter().rev() {
            // A sentence that says anything a newer one says anew is out of date.
            let subjects = subjects(&line.text);
            let stale = subjects.iter().any(|subject| seen.contains(subject));
            seen.extend(subjects);
            if stale {
                continue;
            }
            let mut names = 0.0;
            crate::refs::each(&line.text, |name| {
                names += self.from.names.score(name).min(2.0)
            });
            let weight = if decides(&line.text) { 1.5 } else { 1.0 };
            let value = (0.5 + names) * weight * (0.5 + line.seq as f64 / last);
            ranked.push((value / (line.text.len() as f64 / 4.0 + 8.0), line));
        }
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.seq.cmp(&a.1.seq)));
        let mut chosen = Vec::new();
        for (_, line) in ranked {
            let text = format!("- [{}] {}", line.seq, shorten(&line.text, 300));
            let cost = tokens(&text) + 1;
            if cost + 8 > share {
                continue;
            }
            share -= cost;
            chosen.push((line.seq, text));
            if share < 20 {
                break;
            }
        }
        self.add_in_order(FOUND, chosen);
    }

    fn earlier(&mut self) {
        let mut share = self.share(EARLIER);
        if !self.from.earlier.is_empty() {
            let text = squeeze(self.from.earlier.trim(), share * 3);
            self.add(BEFORE, text, &mut share);
        }
    }
}

/// What a sentence is about: the names it gives values, what stands before its colon, or its first words.
fn subjects(text: &str) -> Vec<&str> {
    let names = valued(text);
    if !names.is_empty() {
        return names;
    }
    let most = text.char_indices().nth(28).map_or(text.len(), |(at, _)| at);
    let start = &text[..most];
    vec![start.split_once(": ").map_or(start, |(subject, _)| subject)]
}

/// The names that a sentence gives numbers: `MAX = 150`, "`MAX` is 135 now", "raised `max` from 5 to 8".
fn valued(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    crate::refs::each(text, |name| {
        let end = name.as_ptr() as usize - text.as_ptr() as usize + name.len();
        if name.starts_with(|c: char| c.is_ascii_alphabetic()) && !name.contains('/') {
            let rest = text[end..].trim_start_matches(['`', '*', '"', '\'', ' ']);
            let words = [
                "= ", ": ", "is ", "are ", "to ", "from ", "becomes ", "now ",
            ];
            let value = words.iter().find_map(|word| rest.strip_prefix(word));
            let value = value.map(|rest| rest.trim_start_matches(['`', '*', '"', '\'', ' ']));
            if value.is_some_and(|value| value.starts_with(|c: char| c.is_ascii_digit())) {
                found.push(name);
            }
        }
    });
    found
}

fn quoted(line: &Line, most: usize) -> String {
    let text = brief(&line.text, most.max(40));
    format!("[{}] \"{}\"", line.seq, shorten(&text, usize::MAX))
}
