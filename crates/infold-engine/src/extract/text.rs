//! Lines that cite the message they come from, and texts cut to fit.

use std::collections::HashSet;

use super::facts::keep;
use super::rules::{Rule, rule};
use super::sentence;
use crate::refs;

/// Something said, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The message.
    pub seq: u64,
    /// What it says.
    pub text: String,
}

/// Marks what was left out.
pub const GAP: &str = "[…]";

/// How much a sentence of a request says: what it demands, the values and names in it, whether it opens the text.
/// Data that was pasted says less than any sentence.
fn worth(text: &str, is_first: bool) -> u32 {
    let demands = match rule(text) {
        Rule::Demand => 6,
        Rule::Wish => 3,
        Rule::None => 0,
    };
    if !sentence::is_prose(text) && !ends_as_sentence(text) {
        return demands.min(1);
    }
    let mut names = 0;
    refs::each(text, |_| names += 1);
    let opens = if is_first && text.len() >= 16 { 4 } else { 0 };
    2 + demands + opens + names.min(2) + numbers(text).min(2) as u32
}

/// How many words of a text start with a digit.
pub fn numbers(text: &str) -> usize {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words
        .filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .count()
}

fn ends_as_sentence(text: &str) -> bool {
    text.ends_with(['.', '!', '?', '。', '！', '？'])
}

/// Says of each sentence whether it belongs to something that was pasted: many lines in a row that are no sentences.
fn pasted(sentences: &[&str]) -> Vec<bool> {
    const MIN_LINES: usize = 4;
    let is_line =
        |text: &&str| !ends_as_sentence(text) && (numbers(text) >= 2 || !sentence::is_prose(text));
    let mut out = vec![false; sentences.len()];
    let mut at = 0;
    while at < sentences.len() {
        let length = sentences[at..]
            .iter()
            .take_while(|text| is_line(text))
            .count();
        if length >= MIN_LINES {
            out[at..at + length].fill(true);
        }
        at += length.max(1);
    }
    out
}

/// The sentences of a text that say most, in at most `most` bytes; `[…]` stands where something is left out.
pub fn brief(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mut sentences: Vec<&str> = Vec::new();
    let mut worths: Vec<u32> = Vec::new();
    let mut met: HashSet<&str> = HashSet::new();
    sentence::each(text, |sentence| {
        let worth = worth(sentence.text, sentences.is_empty());
        // What is said twice is quoted once.
        let is_new = met.insert(sentence.text);
        worths.push(match (is_new, sentence.is_code) {
            (false, _) => 0,
            (true, true) => worth / 2,
            (true, false) => worth,
        });
        sentences.push(sentence.text);
    });
    for (worth, is_pasted) in worths.iter_mut().zip(pasted(&sentences)) {
        if is_pasted {
            *worth = (*worth).min(1);
        }
    }
    let mut order: Vec<usize> = (0..sentences.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(worths[*at]));
    let mut room = most;
    // Of data that was pasted a little shows what it is.
    let mut data_room = most / 8;
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
    // Where there is nothing but data, or sentences are too long, the room is left to a cut.
    if room > most / 2 && !chosen.iter().any(|at| worths[*at] > 1) {
        return squeeze(text, most);
    }
    chosen.sort_unstable();
    let chosen: Vec<&str> = chosen.into_iter().map(|at| sentences[at]).collect();
    joined(text, &chosen)
}

/// Joins sentences of a text, which are pieces of it in order; a mark stands where something is left out.
pub fn joined(text: &str, sentences: &[&str]) -> String {
    let at = |piece: &str| piece.as_ptr() as usize - text.as_ptr() as usize;
    // What was cut before is marked again.
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

/// Marks where a text that is too long was cut as it was read.
pub fn marked(text: &str) -> String {
    text.replace("\n…\n", &format!(" {GAP} ")).trim().to_owned()
}

/// Cuts the middle out of a text that is longer than `most` bytes.
pub fn squeeze(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let room = most.saturating_sub(GAP.len() + 2);
    let front = text.floor_char_boundary(room * 3 / 4);
    let back = text.ceil_char_boundary(text.len() - room / 4);
    // Whole words, where there are words.
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

keep!(Line { seq, text });
