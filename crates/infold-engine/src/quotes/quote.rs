//! Quotations of a sentence, and the message it says they stand in.

use super::said::plain;

/// A quotation, and whether it was found.
#[derive(Clone, Debug)]
pub struct Quote {
    /// In plain form; `…` where it leaves something out.
    pub text: String,
    /// The same sentence by sentence: one in between may be left out.
    sentences: String,
    pub found: bool,
}

impl Quote {
    pub fn read(quote: &str) -> Quote {
        let parts = quote.split('…').flat_map(|part| part.split("..."));
        let parts: Vec<String> = parts.map(plain).filter(|part| !part.is_empty()).collect();
        let sentences = super::sentence::sentences(quote).map(|range| plain(&quote[range]));
        // A word or two stand anywhere.
        let sentences: Vec<String> = sentences.collect();
        let long = sentences
            .iter()
            .all(|sentence| sentence.split(' ').count() >= 3);
        Quote {
            text: parts.join("…"),
            sentences: if long {
                sentences.join("…")
            } else {
                String::new()
            },
            found: false,
        }
    }

    /// Looks for it in what was said.
    pub fn compare(&mut self, said: &str) {
        let apart = !self.sentences.is_empty() && stands_in(&self.sentences, said);
        self.found |= apart || stands_in(&self.text, said);
    }
}

/// A quotation may leave out a middle: `front […] end` or `front … end`.
fn stands_in(quote: &str, said: &str) -> bool {
    let mut rest = said;
    quote
        .split(['…'])
        .flat_map(|part| part.split("..."))
        .all(|part| {
            let part = part.trim_matches(['[', ']', ' ', '.', ',', '!', '?', ':', ';']);
            let found = rest
                .match_indices(part)
                .find(|(at, _)| whole(rest, *at, part));
            match found {
                Some((at, _)) => {
                    rest = &rest[at + part.len()..];
                    true
                }
                None => part.is_empty(),
            }
        })
}

/// Says whether words stand in what was said, and no "not" stands before them.
pub fn is_said(words: &str, said: &str) -> bool {
    let long = words.split(' ').count() >= 3 || words == said;
    long && said.match_indices(words).any(|(at, _)| {
        let mut before = said[..at]
            .split(' ')
            .rev()
            .filter(|word| !word.is_empty())
            .take(3);
        whole(said, at, words) && !before.any(super::clause::is_negation)
    })
}

/// Says whether a find is no piece of a longer word.
fn whole(text: &str, at: usize, part: &str) -> bool {
    let letter =
        |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() && !super::form::is_wide(c));
    let front = letter(text[..at].chars().next_back()) && letter(part.chars().next());
    let back = letter(text[at + part.len()..].chars().next()) && letter(part.chars().next_back());
    !(front || back)
}

/// The texts in quotation marks. Backticks mark names, not speech.
pub fn quotes(line: &str) -> Vec<&str> {
    // What our own summaries quote may have quotation marks inside.
    if cited(line).is_some()
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
        let end = match close == '"'
            && at == 0
            && inside.trim_end().ends_with('"')
            && line.trim_start().starts_with('"')
        {
            true => inside.trim_end().len() - 1,
            false => end,
        };
        out.push(&inside[..end]);
        rest = inside[end..].strip_prefix(|_| true).unwrap_or("");
    }
    out
}

/// Overwrites `[12]` and `[12..15]`, which say where something stands and not what.
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

/// The message that a sentence quotes as our own summaries do: `[12] "…"`, `Last asked [12] "…"`.
pub fn cited(sentence: &str) -> Option<u64> {
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
