//! Quotes the user's requests within a share of the budget.

use std::collections::{BTreeMap, BTreeSet};

use infold_wire::shorten;

use super::{ASKED, GOAL, SummaryWriter, tokens};
use crate::extract::directives::{Directive, is_correction, read_directive};
use crate::extract::excerpt::{CitedText, count_numbers, join_sentences, select_sentences};
use crate::extract::requests;
use crate::extract::terms::{self, TermSet, TermTable};
use crate::references;
use crate::sentence;

/// The share of the budget for requests, in percent.
pub(super) const REQUESTS_PERCENT: usize = 40;
/// The current request is quoted whole up to this share.
const NEWEST_PERCENT: usize = 65;
/// The first request is quoted whole up to this share.
const FIRST_PERCENT: usize = 25;
/// The least share of the other requests.
const OTHERS_PERCENT: usize = 14;
/// The first request is typed no later than in this message.
const MAX_FIRST_SEQ: u64 = 3;
/// A shorter message is quoted whole or not at all.
const WHOLE_BYTES: usize = 90;
/// A shorter rejection is quoted with the sentence after it.
const MAX_REJECTION_BYTES: usize = 60;
/// At most this many of the newest messages may only agree.
const MAX_NODS: usize = 8;
/// A message that only agrees is no longer than this.
const MAX_NOD_BYTES: usize = 40;

impl<'a> SummaryWriter<'a> {
    /// Quotes requests: the current and the first one whole, then demands, then the newest and the oldest.
    pub(super) fn requests(&mut self, percent: usize) {
        let requests = &self.from.requests;
        let Some(newest) = requests.all.back() else {
            return;
        };
        let mut share = self.share(percent);
        // Before the first request of a conversation there is only injected text.
        let first = requests.first.as_ref();
        let first = first.filter(|line| line.seq != newest.seq && line.seq <= MAX_FIRST_SEQ);
        if let Some(first) = first {
            self.quote("First asked", first, FIRST_PERCENT);
        }
        // "ok, thanks" refers to the request before it.
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
            shorten(&select_within(&line.text, most), usize::MAX)
        };
        let line = format!("- {word} [{}] \"{text}\"", line.seq);
        let mut share = self.left;
        self.add(GOAL, line, &mut share);
    }

    fn others(&mut self, others: &[&CitedText], newest: &CitedText, share: &mut usize) {
        let mut parts = Vec::new();
        for (at, line) in others.iter().enumerate() {
            let from_end = (others.len() - 1 - at) as f64;
            let near = 0.5_f64
                .powf(from_end / 12.0)
                .max(0.5_f64.powf(at as f64 / 4.0));
            split_request(at, line, near, &self.from.terms, &mut parts);
        }
        mark_replaced(&mut parts, others, newest);
        parts.sort_by(|a, b| {
            b.density
                .total_cmp(&a.density)
                .then(b.message.cmp(&a.message))
        });
        let mut chosen: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
        let mut replaced: BTreeMap<usize, u64> = BTreeMap::new();
        let mut left = share.saturating_sub(self.heading_cost(ASKED));
        for part in &parts {
            let opens = !chosen.contains_key(&part.message);
            let cost = part.cost() + if opens { 8 } else { 2 };
            if cost > left {
                continue;
            }
            left -= cost;
            chosen
                .entry(part.message)
                .or_default()
                .extend(&part.sentences);
            replaced.extend(part.replaced_by.map(|seq| (part.message, seq)));
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
    text.len() <= MAX_NOD_BYTES && words <= 2 && !says && read_directive(text) == Directive::None
}

/// Sentences of a message that are quoted together.
struct RequestPart<'a> {
    message: usize,
    sentences: Vec<&'a str>,
    density: f64,
    /// The later message that contradicts it.
    replaced_by: Option<u64>,
}

impl RequestPart<'_> {
    fn bytes(&self) -> usize {
        self.sentences.iter().map(|text| text.len() + 1).sum()
    }

    /// Returns about how many tokens it takes.
    fn cost(&self) -> usize {
        self.sentences.iter().map(|text| tokens(text)).sum()
    }
}

/// Splits a message into parts that are quoted together; a short one is quoted whole.
fn split_request<'a>(
    message: usize,
    line: &'a CitedText,
    near: f64,
    terms: &TermTable,
    parts: &mut Vec<RequestPart<'a>>,
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
                // A rejection is quoted with the rejected proposal.
                Some(group)
                    if requests::is_rejection(sentence.text)
                        || group.len() == 1
                            && group[0].len() <= MAX_REJECTION_BYTES
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
            .map(|text| sentence_value(text, terms))
            .fold(0.0, |a, b| a + b);
        let opens = if at == 0 { 0.2 } else { 0.0 };
        let floor = if rule == Directive::Demand { 0.85 } else { 0.6 };
        let mut part = RequestPart {
            message,
            sentences,
            density: 0.0,
            replaced_by: None,
        };
        let cost = part.bytes() as f64 / 4.0 + 8.0;
        part.density = (value + opens) * (floor + (1.0 - floor) * near) / cost.powf(0.6);
        parts.push(part);
    }
}

/// Returns the value of a sentence of a request: its demands, values, names and rare words.
fn sentence_value(text: &str, terms: &TermTable) -> f64 {
    let mut names = 0;
    references::for_each(text, |_| names += 1);
    let numbers = count_numbers(text);
    let demands = match read_directive(text) {
        _ if is_correction(text) => 4.0,
        Directive::Demand => 4.0,
        Directive::Wish => 1.6,
        Directive::None => 0.0,
    };
    let rarity = terms.rarity(text).min(8.0);
    // Numbers and names count only among rare words: "item 512" is repeated.
    let new = rarity.clamp(0.1, 1.0);
    let values = 0.8 * numbers.min(2) as f64 + 0.6 * f64::from(names.min(3));
    let said = new * (demands + values) + 0.7 * rarity;
    if sentence::is_prose(text) {
        said
    } else {
        said * 0.3
    }
}

/// The words and numbers of a sentence, to compare it with later ones.
struct Statement<'a> {
    seq: u64,
    /// The index of its part; `None` if it is quoted anyway.
    part: Option<usize>,
    words: TermSet,
    numbers: BTreeSet<&'a str>,
    /// Whether the request corrects an earlier one.
    corrects: bool,
}

impl<'a> Statement<'a> {
    fn new(seq: u64, part: Option<usize>, sentences: &[&'a str]) -> Statement<'a> {
        let mut words = TermSet::default();
        let mut numbers = BTreeSet::new();
        for text in sentences {
            terms::for_each(text, |term| words.extend(term));
            let words = text.split(|c: char| !(c.is_alphanumeric() || c == '.'));
            let words = words.map(|word| word.trim_matches('.'));
            numbers.extend(words.filter(|word| word.starts_with(|c: char| c.is_ascii_digit())));
        }
        Statement {
            seq,
            part,
            words,
            numbers,
            corrects: sentences.iter().any(|text| is_correction(text)),
        }
    }

    /// Says whether it gives another number than an older one, in the same words or as a correction.
    fn replaces(&self, older: &Statement<'_>) -> bool {
        let common = self.words.intersection(&older.words).count();
        let least = self.words.len().min(older.words.len());
        let gone = older.numbers.difference(&self.numbers).count();
        let new = self.numbers.difference(&older.numbers).count();
        let is_same = common == self.words.len() && common == older.words.len();
        // If several numbers differ, one of them may be the topic.
        let is_other_value = gone == 1 && new == 1;
        self.seq > older.seq
            && common >= 2
            && is_other_value
            && (is_same && older.numbers.len() == 1 || self.corrects && common * 2 >= least)
    }
}

/// Marks sentences that a later one about the same topic contradicts: they are quoted last, and point to the later one.
fn mark_replaced<'a>(parts: &mut [RequestPart<'a>], others: &[&CitedText], newest: &'a CitedText) {
    const MAX_COMPARED: usize = 300;
    const REPLACED_WORTH: f64 = 0.2;
    let mut statements = Vec::new();
    sentence::for_each(&newest.text, |sentence| {
        statements.push(Statement::new(newest.seq, None, &[sentence.text]));
    });
    statements.truncate(MAX_COMPARED);
    let valued = parts
        .iter()
        .enumerate()
        .rev()
        .map(|(at, part)| Statement::new(others[part.message].seq, Some(at), &part.sentences));
    statements.extend(
        valued
            .filter(|statement| !statement.numbers.is_empty())
            .take(MAX_COMPARED),
    );
    for older in &statements {
        let Some(part) = older.part else { continue };
        let mut later = statements.iter().filter(|newer| newer.replaces(older));
        if let Some(newer) = later.next() {
            parts[part].density *= REPLACED_WORTH;
            parts[part].replaced_by = Some(newer.seq);
        }
    }
}

/// Returns the most informative sentences of a text, in about `max_tokens`.
fn select_within(text: &str, max_tokens: usize) -> String {
    let mut bytes = max_tokens * 4;
    loop {
        let short = select_sentences(text, bytes);
        if tokens(&short) <= max_tokens || bytes < 80 {
            return short;
        }
        bytes = bytes * 4 / 5;
    }
}
