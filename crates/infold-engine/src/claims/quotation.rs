//! Quotations of a sentence, and the message that it cites for them.

use super::message_index::plain;
use super::word_form::is_wide;
use crate::sentence::{KeepWhole, ranges};

/// A quotation, and whether it was found.
#[derive(Clone, Debug)]
pub struct Quotation {
    /// The words in plain form; `…` where it leaves something out.
    pub text: String,
    /// The same text with `…` between its sentences, one of which may be left out; empty if one is too short for that.
    sentences: String,
    pub found: bool,
}

impl Quotation {
    /// Reads the text between quotation marks.
    pub fn read(quote: &str) -> Quotation {
        let parts = quote.split('…').flat_map(|part| part.split("..."));
        let parts: Vec<String> = parts.map(plain).filter(|part| !part.is_empty()).collect();
        let sentences = ranges(quote, KeepWhole::Quotations).into_iter();
        let mut sentences: Vec<String> = sentences.map(|range| plain(&quote[range])).collect();
        // A word or two may occur anywhere.
        if sentences.iter().any(|text| text.split(' ').count() < 3) {
            sentences.clear();
        }
        Quotation {
            text: parts.join("…"),
            sentences: sentences.join("…"),
            found: false,
        }
    }

    /// Looks for it in a message in plain form.
    pub fn compare(&mut self, said: &str) {
        let is_split = !self.sentences.is_empty() && occurs_in(&self.sentences, said);
        self.found |= is_split || occurs_in(&self.text, said);
    }
}

/// Says whether a quotation occurs in a message; it may leave out a middle: `front […] end` or `front … end`.
fn occurs_in(quote: &str, said: &str) -> bool {
    let mut rest = said;
    quote
        .split(['…'])
        .flat_map(|part| part.split("..."))
        .all(|part| {
            let part = part.trim_matches(['[', ']', ' ', '.', ',', '!', '?', ':', ';']);
            let found = rest
                .match_indices(part)
                .find(|(at, _)| is_whole(rest, *at, part));
            match found {
                Some((at, _)) => {
                    rest = &rest[at + part.len()..];
                    true
                }
                None => part.is_empty(),
            }
        })
}

/// Says whether words occur in a message without a negation before them.
pub fn is_said(words: &str, said: &str) -> bool {
    let long = words.split(' ').count() >= 3 || words == said;
    long && said.match_indices(words).any(|(at, _)| {
        let mut before = said[..at]
            .split(' ')
            .rev()
            .filter(|word| !word.is_empty())
            .take(3);
        is_whole(said, at, words) && !before.any(super::clause::is_negation)
    })
}

/// Says whether a match is not part of a longer word.
fn is_whole(text: &str, at: usize, part: &str) -> bool {
    let letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() && !is_wide(c));
    let front = letter(text[..at].chars().next_back()) && letter(part.chars().next());
    let back = letter(text[at + part.len()..].chars().next()) && letter(part.chars().next_back());
    !(front || back)
}

/// Returns the texts in quotation marks. Backticks mark names, not speech.
pub fn find_quotations(line: &str) -> Vec<&str> {
    // Quotations of our own summaries may have quotation marks inside.
    if cited_seq(line).is_some()
        && let (Some(first), Some(last)) = (line.find('"'), line.rfind('"'))
        && first < last
    {
        return vec![&line[first + 1..last]];
    }
    const MARKS: [(char, char); 6] = [
        ('"', '"'),
        ('“', '”'),
        ('«', '»'),
        ('「', '」'),
        ('『', '』'),
        ('„', '“'),
    ];
    let mut out = Vec::new();
    let mut rest = line;
    while let Some((at, open, close)) = rest.char_indices().find_map(|(at, c)| {
        let mark = MARKS.iter().find(|(open, _)| *open == c)?;
        Some((at, mark.0, mark.1))
    }) {
        let inside = &rest[at + open.len_utf8()..];
        let Some(end) = inside.find(close).or_else(|| inside.find('”')) else {
            break;
        };
        // Quotation marks within a quotation: the outer ones end the sentence.
        let is_outer = close == '"' && at == 0 && line.trim_start().starts_with('"');
        let end = if is_outer && inside.trim_end().ends_with('"') {
            inside.trim_end().len() - 1
        } else {
            end
        };
        out.push(&inside[..end]);
        rest = inside[end..].strip_prefix(|_| true).unwrap_or("");
    }
    out
}

/// Overwrites citations, `[12]` and `[12..15]`, with spaces.
pub fn blank_citations(text: &mut String) {
    let mut from = 0;
    while let Some(open) = text[from..].find('[').map(|at| at + from) {
        let Some(close) = text[open..].find(']').map(|at| at + open) else {
            break;
        };
        let inside = &text[open + 1..close];
        if !inside.is_empty()
            && inside
                .chars()
                .all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | ' ' | '-'))
        {
            text.replace_range(open..=close, &" ".repeat(close + 1 - open));
        }
        from = close + 1;
    }
}

/// Returns the message that a sentence cites in the form of our own summaries: `[12] "…"`, `Last asked [12] "…"`.
pub fn cited_seq(sentence: &str) -> Option<u64> {
    let text = sentence.trim();
    let text = text.strip_prefix("- ").unwrap_or(text);
    let text = ["First asked ", "Last asked "]
        .iter()
        .find_map(|asked| text.strip_prefix(asked))
        .unwrap_or(text);
    let (seq, text) = text.strip_prefix('[')?.split_once("] ")?;
    let seq = seq.parse().ok()?;
    text.starts_with('"').then_some(seq)
}
