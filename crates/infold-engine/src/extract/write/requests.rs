//! Quotes what the user asked for, within a share of the room.

use std::collections::{BTreeMap, BTreeSet};

use infold_wire::shorten;

use super::{ASKED, GOAL, SummaryWriter, tokens};
use crate::extract::directives::{Directive, is_correction, read_directive};
use crate::extract::excerpt::{CitedText, count_numbers, join_sentences, select_sentences};
use crate::extract::requests;
use crate::extract::terms::{self, TermSet, TermTable};
use crate::references;
use crate::sentence;

/// Of the room, in percent, what requests may take; of a small room more.
pub(super) const REQUESTS_PERCENT: usize = 40;
/// The request being worked on is quoted whole up to so much of the room,
const NEWEST_PERCENT: usize = 65;
/// and the first one.
const FIRST_PERCENT: usize = 25;
/// What the others get at least, if there are any.
const OTHERS_PERCENT: usize = 14;
/// What was typed up to this message is the first request.
const MAX_FIRST_SEQ: u64 = 3;
/// A message of at most so many bytes is quoted whole or not at all.
const WHOLE_BYTES: usize = 90;
/// A no of at most so many bytes is quoted with the sentence after it.
const SHORT_BYTES: usize = 60;
/// So many of the newest messages may only say yes.
const MAX_NODS: usize = 8;
/// And they are no longer.
const NOD_BYTES: usize = 40;

impl<'a> SummaryWriter<'a> {
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
            self.quote("First asked", first, FIRST_PERCENT);
        }
        // "ok, thanks" is about what was asked before it.
        let mut earlier = requests.all.iter().rev().take(MAX_NODS);
        let asked = earlier.find(|line| !is_nod(&line.text));
        let is_first = |line: &CitedText| first.is_some_and(|first| first.seq == line.seq);
        let asked = asked.filter(|line| line.seq != newest.seq && !is_first(line));
        if let Some(asked) = asked {
            self.quote("Asked before", asked, NEWEST_PERCENT);
        }
        self.quote("Last asked", newest, NEWEST_PERCENT);
        let used = self.budget.saturating_sub(self.left);
        share = share
            .saturating_sub(used)
            .max(self.share(OTHERS_PERCENT))
            .min(self.left);
        let is_other = |line: &&CitedText| {
            line.seq != newest.seq
                && !is_first(line)
                && asked.is_none_or(|asked| asked.seq != line.seq)
        };
        let others: Vec<&CitedText> = requests.all.iter().filter(is_other).collect();
        self.others(&others, newest, &mut share);
    }

    fn quote(&mut self, word: &str, line: &CitedText, percent: usize) {
        let most = self.budget * percent / 100;
        let whole = shorten(&line.text, usize::MAX);
        let text = if tokens(&whole) <= most {
            whole
        } else {
            shorten(&within(&line.text, most), usize::MAX)
        };
        let line = format!("- {word} [{}] \"{text}\"", line.seq);
        let mut share = self.left;
        self.add(GOAL, line, &mut share);
    }

    fn others(&mut self, others: &[&CitedText], newest: &CitedText, share: &mut usize) {
        let mut units = Vec::new();
        for (at, line) in others.iter().enumerate() {
            let from_end = (others.len() - 1 - at) as f64;
            let near = 0.5_f64
                .powf(from_end / 12.0)
                .max(0.5_f64.powf(at as f64 / 4.0));
            units_of(at, line, near, &self.from.terms, &mut units);
        }
        mark_replaced(&mut units, others, newest);
        units.sort_by(|a, b| {
            b.density
                .total_cmp(&a.density)
                .then(b.message.cmp(&a.message))
        });
        let mut chosen: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
        let mut replaced: BTreeMap<usize, u64> = BTreeMap::new();
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
            replaced.extend(unit.replaced_by.map(|seq| (unit.message, seq)));
        }
        let mut lines = Vec::new();
        for (at, sentences) in chosen {
            let line = others[at];
            let mut sentences: Vec<&str> = sentences.into_iter().collect();
            sentences.sort_by_key(|sentence| sentence.as_ptr() as usize);
            let text = shorten(&join_sentences(&line.text, &sentences), usize::MAX);
            let later = replaced.get(&at);
            let later = later.map_or(String::new(), |seq| format!(" → [{seq}]"));
            lines.push((line.seq, format!("- [{}] \"{text}\"{later}", line.seq)));
        }
        self.add_in_order(ASKED, lines);
    }
}

/// Says whether a message only agrees or thanks: it has few words, and no name or number among them.
fn is_nod(text: &str) -> bool {
    let mut words = 0;
    terms::for_each(text, |term| words += usize::from(term.is_some()));
    let mut says = text.bytes().any(|byte| byte.is_ascii_digit());
    references::for_each(text, |_| says = true);
    text.len() <= NOD_BYTES && words <= 2 && !says && read_directive(text) == Directive::None
}

/// Sentences of a message that are quoted together.
struct RequestPart<'a> {
    message: usize,
    sentences: Vec<&'a str>,
    density: f64,
    /// The message that says otherwise later.
    replaced_by: Option<u64>,
}

impl RequestPart<'_> {
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
    line: &'a CitedText,
    near: f64,
    words: &TermTable,
    units: &mut Vec<RequestPart<'a>>,
) {
    let mut sentences = Vec::new();
    sentence::for_each(&line.text, |sentence| sentences.push(sentence));
    let groups: Vec<Vec<&'a str>> = if line.text.len() <= WHOLE_BYTES {
        vec![sentences.iter().map(|sentence| sentence.text).collect()]
    } else {
        let mut groups: Vec<Vec<&'a str>> = Vec::new();
        for sentence in sentences
            .iter()
            .filter(|sentence| sentence.text.len() <= 1_200)
        {
            match groups.last_mut() {
                // Without it the one before would say the opposite, or it would not tell what it turns down.
                Some(group)
                    if requests::is_rejection(sentence.text)
                        || group.len() == 1
                            && group[0].len() <= SHORT_BYTES
                            && requests::is_rejection(group[0]) =>
                {
                    group.push(sentence.text)
                }
                _ => groups.push(vec![sentence.text]),
            }
        }
        groups
    };
    let groups = groups.into_iter().filter(|group| !group.is_empty());
    for (at, sentences) in groups.enumerate() {
        let rule = sentences
            .iter()
            .map(|text| read_directive(text))
            .max()
            .unwrap_or(Directive::None);
        let value: f64 = sentences
            .iter()
            .map(|text| value(text, words))
            .fold(0.0, |a, b| a + b);
        let opens = if at == 0 { 0.2 } else { 0.0 };
        let floor = if rule == Directive::Demand { 0.85 } else { 0.6 };
        let mut unit = RequestPart {
            message,
            sentences,
            density: 0.0,
            replaced_by: None,
        };
        let cost = unit.bytes() as f64 / 4.0 + 8.0;
        unit.density = (value + opens) * (floor + (1.0 - floor) * near) / cost.powf(0.6);
        units.push(unit);
    }
}

/// How much a sentence of a request says: what it demands, its values and names, and what was seldom said.
fn value(text: &str, words: &TermTable) -> f64 {
    let mut names = 0;
    references::for_each(text, |_| names += 1);
    let numbers = count_numbers(text);
    let demands = match read_directive(text) {
        _ if is_correction(text) => 4.0,
        Directive::Demand => 4.0,
        Directive::Wish => 1.6,
        Directive::None => 0.0,
    };
    let rarity = words.rarity(text).min(8.0);
    // Numbers and names tell something only among words that do: "item 512" comes again and again.
    let new = rarity.clamp(0.1, 1.0);
    let values = 0.8 * numbers.min(2) as f64 + 0.6 * f64::from(names.min(3));
    let said = new * (demands + values) + 0.7 * rarity;
    if sentence::is_prose(text) {
        said
    } else {
        said * 0.3
    }
}

/// What is said about something, to compare it with what is said later.
struct Statement<'a> {
    seq: u64,
    /// The unit that says it; none if it is quoted anyway.
    unit: Option<usize>,
    words: TermSet,
    numbers: BTreeSet<&'a str>,
    /// It says that it corrects something.
    corrects: bool,
}

impl<'a> Statement<'a> {
    fn new(seq: u64, unit: Option<usize>, sentences: &[&'a str]) -> Statement<'a> {
        let mut words = TermSet::default();
        let mut numbers = BTreeSet::new();
        for text in sentences {
            terms::for_each(text, |term| words.extend(term));
            let parts = text.split(|c: char| !(c.is_alphanumeric() || c == '.'));
            let parts = parts.map(|word| word.trim_matches('.'));
            numbers.extend(parts.filter(|word| word.starts_with(|c: char| c.is_ascii_digit())));
        }
        Statement {
            seq,
            unit,
            words,
            numbers,
            corrects: sentences.iter().any(|text| is_correction(text)),
        }
    }

    /// Says whether it gives another number for what an older one is about: in the same words, or in words that correct.
    fn replaces(&self, older: &Statement<'_>) -> bool {
        let common = self.words.intersection(&older.words).count();
        let least = self.words.len().min(older.words.len());
        let gone = older.numbers.difference(&self.numbers).count();
        let new = self.numbers.difference(&older.numbers).count();
        let is_same = common == self.words.len() && common == older.words.len();
        // With more than one number that differs, one of them may tell what it is about.
        let is_other_value = gone == 1 && new == 1;
        self.seq > older.seq
            && common >= 2
            && is_other_value
            && (is_same && older.numbers.len() == 1 || self.corrects && common * 2 >= least)
    }
}

/// What a later sentence about the same thing says otherwise is out of date: it is quoted last, and points to the later one.
fn mark_replaced<'a>(units: &mut [RequestPart<'a>], others: &[&CitedText], newest: &'a CitedText) {
    const MAX_COMPARED: usize = 300;
    const REPLACED_WORTH: f64 = 0.2;
    let mut statements = Vec::new();
    sentence::for_each(&newest.text, |sentence| {
        statements.push(Statement::new(newest.seq, None, &[sentence.text]));
    });
    statements.truncate(MAX_COMPARED);
    let valued = units
        .iter()
        .enumerate()
        .rev()
        .map(|(at, unit)| Statement::new(others[unit.message].seq, Some(at), &unit.sentences));
    statements.extend(
        valued
            .filter(|statement| !statement.numbers.is_empty())
            .take(MAX_COMPARED),
    );
    for older in &statements {
        let Some(unit) = older.unit else { continue };
        let mut later = statements.iter().filter(|newer| newer.replaces(older));
        if let Some(newer) = later.next() {
            units[unit].density *= REPLACED_WORTH;
            units[unit].replaced_by = Some(newer.seq);
        }
    }
}

/// The sentences of a text that say most, in about so many tokens.
fn within(text: &str, most: usize) -> String {
    let mut bytes = most * 4;
    loop {
        let short = select_sentences(text, bytes);
        if tokens(&short) <= most || bytes < 80 {
            return short;
        }
        bytes = bytes * 4 / 5;
    }
}
