//! Writes the collected facts as a summary within a budget of tokens.

mod coverage;
mod quotations;
mod forms;
mod requests;
mod lists;

use std::collections::{BTreeMap, BTreeSet};

use infold_wire::shorten;
use infold_wire::tokens::{Encoding, count};
use infold_wire::tool_action::TodoState;

use super::Extract;
use super::excerpt::{CitedText, cut_middle, select_sentences};
use coverage::{Coverage, RankedContent};
pub use forms::SummaryForm;
pub(crate) use lists::LOOSE_NAMES;

/// Shares of the budget in percent; later sections may use the rest of earlier ones.
const SYSTEM_PERCENT: usize = 6;
const OPEN_WORK_PERCENT: usize = 6;
const ERRORS_PERCENT: usize = 4;
const FINDINGS_PERCENT: usize = 14;
const EARLIER_PERCENT: usize = 15;

const GOAL: &str = "## Goal";
const ASKED: &str = "## Requests";
const SYSTEM: &str = "## System messages";
const FOUND: &str = "## Decisions and findings";
const FILES: &str = "## Files";
const COMMANDS: &str = "## Commands";
const CALLS: &str = "## Other calls";
const FAILED: &str = "## Errors";
const OPEN: &str = "## Open work";
const SAID: &str = "## Also said";
const SEEN: &str = "## Seen in results";
const NAMED: &str = "## Also mentioned";
const BEFORE: &str = "## Earlier summary";
const RECALL: &str = "## Recall";

/// The beginning of the last line of an extractive summary.
pub(super) const RECALL_LINE: &str = "[n] is message n. Nothing is lost: ";

/// Counts the tokens of a text, in the encoding that summaries are measured in.
pub fn tokens(text: &str) -> usize {
    count(Encoding::O200k, text) as usize
}

impl Extract {
    /// Writes the summary in at most `budget` tokens.
    pub fn write(&self, budget: usize) -> String {
        self.write_as(SummaryForm::Sections, budget)
    }

    /// Writes the summary in a form, in at most `budget` tokens.
    pub fn write_as(&self, form: SummaryForm, budget: usize) -> String {
        let sources = RankedContent::of(self);
        fitted(budget, |room| self.compose(&sources, form, room))
    }

    /// Writes certain facts (files, commands, todos, names) to append to a `summary` by a model, without those in it;
    /// empty if it has them all.
    pub fn lists(&self, summary: &str, budget: usize) -> String {
        let sources = RankedContent::of(self);
        fitted(budget, |room| {
            let mut draft = SummaryWriter::new(self, &sources, room);
            draft.coverage.see(summary);
            draft.summary = summary;
            draft.open_work(false);
            draft.targets();
            draft.fill(false);
            draft.text(&[FILES, COMMANDS, CALLS, OPEN, NAMED])
        })
    }

    /// Writes only the user's requests, in their own words, in at most `budget` tokens.
    pub fn requests(&self, budget: usize) -> String {
        let sources = RankedContent::of(self);
        fitted(budget, |room| {
            let mut draft = SummaryWriter::new(self, &sources, room);
            draft.requests(100);
            draft.text(&[GOAL, ASKED])
        })
    }

    fn compose(&self, sources: &RankedContent<'_>, form: SummaryForm, room: usize) -> String {
        let mut draft = SummaryWriter::new(self, sources, room);
        if form == SummaryForm::Sections {
            draft.recall();
        }
        draft.requests(requests::REQUESTS_PERCENT);
        draft.system();
        draft.open_work(true);
        draft.errors();
        draft.findings();
        draft.earlier();
        draft.targets();
        draft.fill(true);
        form.join(&draft.sections)
    }
}

/// Composes a text again until it fills its budget; if it never fits, cuts lines off the end.
///
/// Lines counted one by one have mostly a few more tokens than together.
fn fitted(budget: usize, compose: impl Fn(usize) -> String) -> String {
    let mut room = budget;
    let mut best = String::new();
    let mut most = 0;
    let mut text = String::new();
    for _ in 0..4 {
        text = compose(room);
        let used = tokens(&text);
        if used > budget {
            room = room.saturating_sub(used - budget + 4);
            continue;
        }
        let grew = used > most;
        if grew {
            (best, most) = (text.clone(), used);
        }
        // If there is nothing more to write, more room changes nothing.
        if used + budget / 32 >= budget || used * 10 < room * 7 || !grew {
            return best;
        }
        room += budget - used;
    }
    if most > 0 {
        return best;
    }
    while tokens(&text) > budget {
        let end = text.trim_end().rfind('\n').unwrap_or(0);
        text.truncate(end);
    }
    text
}

/// A summary that is being written.
struct SummaryWriter<'a> {
    from: &'a Extract,
    sources: &'a RankedContent<'a>,
    left: usize,
    budget: usize,
    coverage: Coverage<'a>,
    sections: forms::Sections,
    /// Messages whose errors are listed.
    failed: BTreeSet<u64>,
    /// Sentences that are quoted, by their index in the pool.
    quoted: BTreeSet<usize>,
    lists: lists::TargetLists<'a>,
    summary: &'a str,
}

impl<'a> SummaryWriter<'a> {
    fn new(from: &'a Extract, sources: &'a RankedContent<'a>, room: usize) -> SummaryWriter<'a> {
        SummaryWriter {
            from,
            sources,
            left: room,
            budget: room,
            coverage: Coverage::new(from, sources),
            sections: BTreeMap::new(),
            failed: BTreeSet::new(),
            quoted: BTreeSet::new(),
            lists: lists::TargetLists::default(),
            summary: "",
        }
    }

    /// Joins the sections in this order.
    fn text(self, order: &[&'static str]) -> String {
        forms::join(order, &self.sections)
    }

    /// Returns the tokens of a heading, if it is not written yet.
    fn heading_cost(&self, heading: &'static str) -> usize {
        if self.sections.contains_key(heading) {
            0
        } else {
            tokens(heading) + 1
        }
    }

    /// Adds a line if there is room within `share` tokens, which it then takes.
    fn add(&mut self, heading: &'static str, line: String, share: &mut usize) -> bool {
        let cost = tokens(&line) + 1 + self.heading_cost(heading);
        if cost > *share || cost > self.left {
            return false;
        }
        *share -= cost;
        self.left -= cost;
        self.coverage.see(&line);
        self.sections.entry(heading).or_default().push(line);
        true
    }

    fn share(&self, percent: usize) -> usize {
        (self.budget * percent / 100)
            .max(self.least())
            .min(self.left)
    }

    /// Returns the least share of a section: a line, also in a small budget.
    fn least(&self) -> usize {
        (self.budget / 10).min(40)
    }

    fn recall(&mut self) {
        let Some((first, last)) = self.from.span else {
            return;
        };
        let line = format!(
            "{RECALL_LINE}the log keeps all of messages {first}..{last} in full, word for word. After → stands the message that says otherwise."
        );
        let mut share = self.left;
        self.add(RECALL, line, &mut share);
    }

    /// Adds lines whose tokens a share already covers.
    fn add_in_order(&mut self, heading: &'static str, mut lines: Vec<(u64, String)>) {
        lines.sort();
        for (_, line) in lines {
            let mut share = self.left;
            self.add(heading, line, &mut share);
        }
    }

    fn system(&mut self) {
        let mut share = self.share(SYSTEM_PERCENT);
        let mut chosen = Vec::new();
        for line in self.from.system_messages.iter().rev() {
            let said = cut_middle(&line.text, (share * 3).max(40));
            let text = format!("- [{}] {}", line.seq, shorten(&said, usize::MAX));
            let cost = tokens(&text) + 8;
            if cost > share {
                break;
            }
            share -= cost;
            chosen.push((line.seq, text));
        }
        self.add_in_order(SYSTEM, chosen);
    }

    fn open_work(&mut self, with_words: bool) {
        let mut share = self.share(OPEN_WORK_PERCENT);
        if let Some((seq, list)) = &self.from.todos {
            let done = list
                .iter()
                .filter(|todo| todo.state == TodoState::Done)
                .count();
            for todo in list.iter().filter(|todo| todo.state != TodoState::Done) {
                if self.summary.contains(&todo.text) {
                    continue;
                }
                let mark = if todo.state == TodoState::Doing {
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
        if let Some(said) = self.from.last_reply.as_ref().filter(|_| with_words) {
            let line = format!("- Last said {}", quoted(said, (share * 3).min(900)));
            self.add(OPEN, line, &mut share);
        }
    }

    fn errors(&mut self) {
        let mut share = self.share(ERRORS_PERCENT);
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

    fn earlier(&mut self) {
        let mut share = self.share(EARLIER_PERCENT);
        if !self.from.earlier_summary.is_empty() {
            let text = cut_middle(self.from.earlier_summary.trim(), share * 3);
            self.add(BEFORE, text, &mut share);
        }
    }
}

fn quoted(line: &CitedText, most: usize) -> String {
    let text = select_sentences(&line.text, most.max(40));
    format!("[{}] \"{}\"", line.seq, shorten(&text, usize::MAX))
}
