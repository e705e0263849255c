//! Lines that cite the message they come from, and texts cut to fit.

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
pub fn worth(text: &str, is_first: bool) -> u32 {
    let mut names = 0;
    refs::each(text, |_| names += 1);
    let numbers = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .count() as u32;
    let demands = match rule(text) {
        Rule::Demand => 6,
        Rule::Wish => 3,
        Rule::None => 0,
    };
    let opens = if is_first && text.len() >= 16 { 4 } else { 0 };
    let prose = if sentence::is_prose(text) { 2 } else { 0 };
    demands + opens + prose + names.min(2) + numbers.min(2)
}

/// The sentences of a text that say most, in at most `most` bytes; `[…]` stands where something is left out.
pub fn brief(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mut all: Vec<(u32, &str)> = Vec::new();
    sentence::each(text, |sentence| {
        let mut worth = worth(sentence.text, all.is_empty());
        if sentence.is_code {
            worth /= 2;
        }
        all.push((worth, sentence.text));
    });
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(all[*at].0));
    let mut room = most;
    let mut chosen: Vec<usize> = Vec::new();
    for at in order {
        let cost = all[at].1.len() + GAP.len() + 4;
        if cost <= room {
            room -= cost;
            chosen.push(at);
        }
    }
    // Sentences that are too long leave the room to a cut.
    if room > most / 2 {
        return squeeze(text, most);
    }
    chosen.sort_unstable();
    let chosen: Vec<&str> = chosen.into_iter().map(|at| all[at].1).collect();
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
