//! Excerpts of messages: texts that cite their message, and texts shortened to fit.

use std::collections::HashSet;

use super::directives::{Directive, read_directive};
use super::facts::persist;
use crate::references;
use crate::sentence;

/// A text and the message it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CitedText {
    pub seq: u64,
    pub text: String,
}

/// Marks an omission.
pub const GAP: &str = "[…]";

/// Returns the worth of a sentence of a request: its demands, values and names, and whether it opens the text.
/// Pasted data is worth less than any sentence.
fn worth(text: &str, is_first: bool) -> u32 {
    let demands = match read_directive(text) {
        Directive::Demand => 6,
        Directive::Wish => 3,
        Directive::None => 0,
    };
    if !sentence::is_prose(text) && !ends_as_sentence(text) {
        return demands.min(1);
    }
    let mut names = 0;
    references::for_each(text, |_| names += 1);
    let opens = if is_first && text.len() >= 16 { 4 } else { 0 };
    2 + demands + opens + names.min(2) + count_numbers(text).min(2) as u32
}

/// Returns how many words of a text start with a digit.
pub fn count_numbers(text: &str) -> usize {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words
        .filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .count()
}

fn ends_as_sentence(text: &str) -> bool {
    text.ends_with(['.', '!', '?', '。', '！', '？'])
}

/// Returns for each sentence whether it is part of pasted data: several adjacent lines that are no sentences.
fn find_pasted(sentences: &[&str]) -> Vec<bool> {
    const MIN_PASTED_LINES: usize = 4;
    let is_line = |text: &&str| {
        !ends_as_sentence(text) && (count_numbers(text) >= 2 || !sentence::is_prose(text))
    };
    let mut out = vec![false; sentences.len()];
    let mut at = 0;
    while at < sentences.len() {
        let length = sentences[at..]
            .iter()
            .take_while(|text| is_line(text))
            .count();
        if length >= MIN_PASTED_LINES {
            out[at..at + length].fill(true);
        }
        at += length.max(1);
    }
    out
}

/// Returns the most informative sentences of a text, in at most `max_bytes`; `[…]` marks omissions.
pub fn select_sentences(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let mut sentences: Vec<&str> = Vec::new();
    let mut worths: Vec<u32> = Vec::new();
    let mut met: HashSet<&str> = HashSet::new();
    sentence::for_each(text, |sentence| {
        let worth = worth(sentence.text, sentences.is_empty());
        // A repeated sentence is quoted once.
        let is_new = met.insert(sentence.text);
        worths.push(match (is_new, sentence.is_code) {
            (false, _) => 0,
            (true, true) => worth / 2,
            (true, false) => worth,
        });
        sentences.push(sentence.text);
    });
    for (worth, is_pasted) in worths.iter_mut().zip(find_pasted(&sentences)) {
        if is_pasted {
            *worth = (*worth).min(1);
        }
    }
    let mut order: Vec<usize> = (0..sentences.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(worths[*at]));
    let mut room = max_bytes;
    // A few lines of pasted data show its kind.
    let mut data_room = max_bytes / 8;
    let mut chosen: Vec<usize> = Vec::new();
    for at in order {
        let cost = sentences[at].len() + GAP.len() + 4;
        let is_data = worths[at] <= 1;
        if cost > room || is_data && cost > data_room {
            continue;
        }
        room -= cost;
        data_room -= if is_data { cost } else { 0 };
        chosen.push(at);
    }
    // A text of nothing but data or long sentences is cut instead.
    if room > max_bytes / 2 && !chosen.iter().any(|at| worths[*at] > 1) {
        return cut_middle(text, max_bytes);
    }
    chosen.sort_unstable();
    let chosen: Vec<&str> = chosen.into_iter().map(|at| sentences[at]).collect();
    join_sentences(text, &chosen)
}

/// Joins sentences, which are slices of a text in order; `[…]` marks omissions.
pub fn join_sentences(text: &str, sentences: &[&str]) -> String {
    let at = |piece: &str| piece.as_ptr() as usize - text.as_ptr() as usize;
    // Earlier omissions are marked again.
    let says = |between: &str| between.chars().any(|c| c.is_alphanumeric() || c == '…');
    let mut out = String::new();
    let mut end = 0;
    for sentence in sentences {
        let start = at(sentence);
        if says(&text[end..start]) {
            if !out.is_empty() {
                out.push(' ');
            }
            out.push_str(GAP);
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(sentence);
        end = start + sentence.len();
    }
    if says(&text[end..]) {
        out.push(' ');
        out.push_str(GAP);
    }
    out
}

/// Marks the places where a long text was cut when it was read.
pub fn mark_cuts(text: &str) -> String {
    text.replace("\n…\n", &format!(" {GAP} ")).trim().to_owned()
}

/// Cuts the middle out of a text that is longer than `max_bytes`.
pub fn cut_middle(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let room = max_bytes.saturating_sub(GAP.len() + 2);
    let front = text.floor_char_boundary(room * 3 / 4);
    let back = text.ceil_char_boundary(text.len() - room / 4);
    // Words are not cut, if the text has spaces.
    let space = text[..front].rfind(char::is_whitespace);
    let front = space.filter(|at| at * 2 > front).unwrap_or(front);
    let space = text[back..].find(char::is_whitespace);
    let back = back + space.filter(|at| at * 4 < room).unwrap_or(0);
    format!(
        "{} {GAP} {}",
        text[..front].trim_end(),
        text[back..].trim_start()
    )
}

persist!(CitedText: seq, text);
