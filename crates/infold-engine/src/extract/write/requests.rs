//! Quotes what the user asked for, within a share of the room.

use std::collections::{BTreeMap, BTreeSet};

use infold_wire::shorten;

use super::{ASKED, Draft, GOAL, tokens};
use crate::extract::rules::{Rule, rule};
use crate::extract::sentence;
use crate::extract::terms::{self, TermSet, Vocabulary};
use crate::extract::text::{Line, brief, joined};
use crate::refs;

/// Of the room, in percent, what requests may take; of a small room more.
pub(super) const REQUESTS_PERCENT: usize = 36;
/// The request being worked on is quoted whole up to so much of the room,
const NEWEST_PERCENT: usize = 40;
/// and the first one.
const FIRST_PERCENT: usize = 25;
/// What the others get at least, if there are any.
const OTHERS_PERCENT: usize = 14;
/// What was typed up to this message is the first request.
const MAX_FIRST_SEQ: u64 = 3;
/// A message of at most so many bytes is quoted whole or not at all.
const WHOLE_BYTES: usize = 200;

impl<'a> Draft<'a> {
    /// Quotes what was asked: the request being worked on and the first one whole, then what rules something,
    /// then the newest and the oldest.
    pub(super) fn requests(&mut self, percent: usize) {
        let requests = &self.from.requests;
        let Some(newest) = requests.all.back() else {
            return;
        };
        let mut share = self.share(percent);
        // Only what an agent put in stands before the first request of a conversation.
        let first = requests.first.as_ref();
        let first = first.filter(|line| line.seq != newest.seq && line.seq <= MAX_FIRST_SEQ);
        if let Some(first) = first {
            self.quote("First", first, FIRST_PERCENT);
        }
        self.quote("Last", newest, NEWEST_PERCENT);
        let used = self.whole.saturating_sub(self.left);
        share = share
            .saturating_sub(used)
            .max(self.share(OTHERS_PERCENT))
            .min(self.left);
        let is_other = |line: &&Line| {
            line.seq != newest.seq && first.is_none_or(|first| first.seq != line.seq)
        };
        let others: Vec<&Line> = requests.all.iter().filter(is_other).collect();
        self.others(&others, &mut share);
    }

    fn quote(&mut self, word: &str, line: &Line, percent: usize) {
        let most = self.whole * percent / 100;
        let whole = shorten(&line.text, usize::MAX);
        let text = if tokens(&whole) <= most {
            whole
        } else {
            shorten(&within(&line.text, most), usize::MAX)
        };
        let line = format!("- {word} asked [{}] \"{text}\"", line.seq);
        let mut share = self.left;
        self.add(GOAL, line, &mut share);
    }

    fn others(&mut self, others: &[&Line], share: &mut usize) {
        let mut units = Vec::new();
        for (at, line) in others.iter().enumerate() {
            let from_end = (others.len() - 1 - at) as f64;
            let near = 0.5_f64
                .powf(from_end / 12.0)
                .max(0.5_f64.powf(at as f64 / 4.0));
            units_of(at, line, near, &self.from.words, &mut units);
        }
        drop_obsolete(&mut units);
        units.sort_by(|a, b| {
            b.density
                .total_cmp(&a.density)
                .then(b.message.cmp(&a.message))
        });
        let mut chosen: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
        let mut left = share.saturating_sub(self.heading_cost(ASKED));
        for unit in &units {
            let opens = !chosen.contains_key(&unit.message);
            let cost = unit.cost() + if opens { 8 } else { 2 };
            if cost > left {
                continue;
            }
            left -= cost;
            chosen
                .entry(unit.message)
                .or_default()
                .extend(&unit.sentences);
        }
        let mut lines = Vec::new();
        for (at, sentences) in chosen {
            let line = others[at];
            let mut sentences: Vec<&str> = sentences.into_iter().collect();
            sentences.sort_by_key(|sentence| sentence.as_ptr() as usize);
            let text = shorten(&joined(&line.text, &sentences), usize::MAX);
            lines.push((line.seq, format!("- [{}] \"{text}\"", line.seq)));
        }
        self.add_in_order(ASKED, lines);
    }
}

/// Sentences of a message that are quoted together.
struct Unit<'a> {
    message: usize,
    sentences: Vec<&'a str>,
    rule: Rule,
    density: f64,
}

impl Unit<'_> {
    fn bytes(&self) -> usize {
        self.sentences.iter().map(|text| text.len() + 1).sum()
    }

    /// About how many tokens it takes.
    fn cost(&self) -> usize {
        self.sentences.iter().map(|text| tokens(text)).sum()
    }
}

/// Cuts a message into what is quoted together: a short one is quoted whole.
fn units_of<'a>(
    message: usize,
    line: &'a Line,
    near: f64,
    words: &Vocabulary,
    units: &mut Vec<Unit<'a>>,
) {
    let mut sentences = Vec::new();
    sentence::each(&line.text, |sentence| sentences.push(sentence));
    let groups: Vec<Vec<&'a str>> = if line.text.len() <= WHOLE_BYTES {
        vec![sentences.iter().map(|sentence| sentence.text).collect()]
    } else {
        sentences
            .iter()
            .filter(|sentence| sentence.text.len() <= 1_200)
            .map(|sentence| vec![sentence.text])
            .collect()
    };
    for (at, sentences) in groups.into_iter().enumerate() {
        let rule = sentences
            .iter()
            .map(|text| rule(text))
            .max()
            .unwrap_or(Rule::None);
        let value: f64 = sentences
            .iter()
            .map(|text| value(text, words))
            .fold(0.0, |a, b| a + b);
        let opens = if at == 0 { 0.8 } else { 0.0 };
        let floor = if rule == Rule::Demand { 0.85 } else { 0.4 };
        let mut unit = Unit {
            message,
            sentences,
            rule,
            density: 0.0,
        };
        let cost = unit.bytes() as f64 / 4.0 + 8.0;
        unit.density = (value + opens) * (floor + (1.0 - floor) * near) / cost.powf(0.6);
        units.push(unit);
    }
}

/// How much a sentence of a request says: what it demands, its values and names, and what was seldom said.
fn value(text: &str, words: &Vocabulary) -> f64 {
    let mut names = 0;
    refs::each(text, |_| names += 1);
    let numbers = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .count();
    let demands = match rule(text) {
        Rule::Demand => 4.0,
        Rule::Wish => 1.6,
        Rule::None => 0.0,
    };
    let said = demands
        + 0.8 * numbers.min(2) as f64
        + 0.6 * f64::from(names.min(3))
        + 0.7 * words.rarity(text).min(8.0);
    if sentence::is_prose(text) {
        said
    } else {
        said * 0.5
    }
}

/// What a later sentence about the same thing says otherwise is out of date.
fn drop_obsolete(units: &mut [Unit<'_>]) {
    const MAX_COMPARED: usize = 300;
    let about: Vec<(usize, TermSet, BTreeSet<&str>)> = units
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, unit)| {
            unit.rule > Rule::None
                || unit
                    .sentences
                    .iter()
                    .any(|text| text.bytes().any(|byte| byte.is_ascii_digit()))
        })
        .take(MAX_COMPARED)
        .map(|(at, unit)| {
            let mut words = TermSet::default();
            let mut numbers = BTreeSet::new();
            for text in &unit.sentences {
                terms::each(text, |term| words.extend(term));
                numbers.extend(
                    text.split(|c: char| !(c.is_alphanumeric() || c == '.'))
                        .filter(|word| word.starts_with(|c: char| c.is_ascii_digit())),
                );
            }
            (at, words, numbers)
        })
        .collect();
    for (newer, (_, words, numbers)) in about.iter().enumerate() {
        for (older, others_words, others_numbers) in &about[newer + 1..] {
            if numbers.is_empty() || others_numbers.is_empty() || numbers == others_numbers {
                continue;
            }
            let common = words.intersection(others_words).count();
            let least = words.len().min(others_words.len());
            if common >= 2 && common * 2 >= least {
                units[*older].density *= 0.2;
            }
        }
    }
}

/// The sentences of a text that say most, in about so many tokens.
fn within(text: &str, most: usize) -> String {
    let mut bytes = most * 4;
    loop {
        let short = brief(text, bytes);
        if tokens(&short) <= most || bytes < 80 {
            return short;
        }
        bytes = bytes * 4 / 5;
    }
}
