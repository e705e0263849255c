//! Excerpts of messages around a match.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

use infold_wire::terms::{Language, Query, each_term};

/// The text of a message around a match, in one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    /// The line.
    pub text: String,
    /// The bytes of it that match, in order and apart.
    pub marks: Vec<Range<usize>>,
}

/// A snippet has about so many bytes of the message.
const WINDOW_BYTES: usize = 200;
/// The number of bytes before the first match.
const LEAD_BYTES: usize = 40;
/// The most matches from which the best window is chosen.
const MAX_MATCHES: usize = 16_384;
/// The most matches of one word: beyond that, a rare word further down counts more.
const MAX_MATCHES_OF_A_WORD: usize = 1024;

/// The range of a match, and its word: different forms of the same query word are one word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    pub range: Range<usize>,
    pub word: String,
}

impl Match {
    /// A match that is found by itself, such as that of a pattern.
    pub fn of(text: &str, range: Range<usize>) -> Match {
        Match {
            word: text[range.clone()].to_lowercase(),
            range,
        }
    }
}

impl Snippet {
    /// Cuts out of a text where it matches most; its beginning if it does not match. Matches are in order; they may overlap.
    pub fn of(text: &str, matches: &[Match]) -> Snippet {
        let matches = &matches[..matches.len().min(MAX_MATCHES)];
        let window = window(text, matches);
        let mut snippet = Snippet::default();
        if window.start > 0 {
            snippet.text.push_str("… ");
        }
        let mut at = window.start;
        for mark in joined(matches) {
            let mark = mark.start.max(at)..mark.end.min(window.end);
            if mark.start < window.start || mark.start >= mark.end {
                continue;
            }
            snippet.push(&text[at..mark.start]);
            let start = snippet.text.len();
            snippet.push(&text[mark.clone()]);
            snippet.marks.push(start..snippet.text.len());
            at = mark.end;
        }
        snippet.push(&text[at..window.end]);
        if window.end < text.len() {
            snippet.text.push_str(" …");
        }
        snippet
    }

    /// The line with its matches between two marks.
    pub fn marked(&self, before: &str, after: &str) -> String {
        let mut out = String::with_capacity(self.text.len());
        let mut at = 0;
        for mark in &self.marks {
            out.push_str(&self.text[at..mark.start]);
            out.push_str(before);
            out.push_str(&self.text[mark.clone()]);
            out.push_str(after);
            at = mark.end;
        }
        out.push_str(&self.text[at..]);
        out
    }

    /// Appends a text in one line.
    fn push(&mut self, text: &str) {
        for c in text.chars() {
            if !c.is_whitespace() {
                // Control characters would act on a terminal.
                self.text.push(if c.is_control() { '\u{fffd}' } else { c });
            } else if !self.text.is_empty() && !self.text.ends_with(' ') {
                self.text.push(' ');
            }
        }
    }
}

/// Returns the part of a text with the most different matches: rare ones count more, and the rarest is at its
/// beginning, so that the text after it is shown. The first of several equal ones.
fn window(text: &str, matches: &[Match]) -> Range<usize> {
    /// The match at the beginning decides only between windows that have the same matches.
    const LEAD_WEIGHT: f64 = 1e-6;
    let mut counts: HashMap<&str, u32> = HashMap::new();
    for found in matches {
        *counts.entry(&found.word).or_default() += 1;
    }
    let mut best: Option<(f64, usize)> = None;
    let mut last = 0;
    for (first, found) in matches.iter().enumerate() {
        let end = found.range.start + WINDOW_BYTES - LEAD_BYTES;
        while last < matches.len() && matches[last].range.end <= end {
            last += 1;
        }
        let held = matches[first..last.max(first)].iter().take(16);
        let mut held: Vec<&str> = held.map(|held| held.word.as_str()).collect();
        held.sort_unstable();
        held.dedup();
        let weight = |word: &&str| 1.0 + 1.0 / f64::from(counts[word]);
        let lead = f64::from(counts[found.word.as_str()]);
        let weight = held.iter().map(weight).sum::<f64>() - lead * LEAD_WEIGHT;
        if best.is_none_or(|(most, _)| weight > most) {
            best = Some((weight, found.range.start));
        }
    }
    let start = best.map_or(0, |(_, start)| start.saturating_sub(LEAD_BYTES));
    let start = boundary(text, start, start > 0);
    let end = boundary(
        text,
        (start + WINDOW_BYTES).min(text.len()),
        start + WINDOW_BYTES < text.len(),
    );
    start..end.max(start)
}

/// The next place at or behind `at` where a word begins, if one is near, or at least a character.
fn boundary(text: &str, at: usize, seeks_word: bool) -> usize {
    let near = (at..text.len().min(at + 16)).filter(|at| text.is_char_boundary(*at));
    let mut near =
        near.skip_while(|at| seeks_word && !text[*at..].starts_with(char::is_whitespace));
    let found = near.next();
    let any = || (at..=text.len()).find(|at| text.is_char_boundary(*at));
    found.or_else(any).unwrap_or(text.len())
}

/// Returns the matches of a query in a text.
pub fn query_matches(query: &Query, text: &str) -> Vec<Match> {
    let (language, matcher) = (Language::of(text), query.matcher());
    let mut matches: Vec<Match> = Vec::new();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    each_term(text, &mut |term| {
        if matches.len() >= MAX_MATCHES {
            return;
        }
        if let Some(word) = matcher.matched(&term, language) {
            let count = counts.entry(word).or_default();
            *count += 1;
            if *count <= MAX_MATCHES_OF_A_WORD {
                let (word, range) = (word.to_owned(), term.range);
                matches.push(Match { range, word });
            }
        }
    });
    matches.sort_by_key(|found| (found.range.start, Reverse(found.range.end)));
    matches
}

/// The parts of a text that match, apart from each other.
fn joined(matches: &[Match]) -> Vec<Range<usize>> {
    let mut joined: Vec<Range<usize>> = Vec::with_capacity(matches.len());
    for Match { range, .. } in matches {
        match joined.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => joined.push(range.clone()),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snippet(query: &str, text: &str) -> String {
        let query = Query::parse(query);
        Snippet::of(text, &query_matches(&query, text)).marked("[", "]")
    }

    #[test]
    fn matches_are_marked_in_one_line() {
        assert_eq!(
            snippet("migrate users", "run the\n  migrations of user_table"),
            "run the [migrations] of [user]_table"
        );
        assert_eq!(snippet("索機", "検索機能"), "検[索機]能");
        assert_eq!(snippet("nothing", "some text"), "some text");
        assert_eq!(snippet("a\u{1b}", "x\u{1b}[31m a"), "x\u{fffd}[31m [a]");
    }

    #[test]
    fn the_best_part_of_a_long_text_is_shown() {
        let text = format!(
            "login {} the login timeout was 30 seconds {}",
            "word ".repeat(200),
            "more ".repeat(200)
        );
        let shown = snippet("login timeout", &text);
        assert!(shown.starts_with("… "), "{shown}");
        assert!(shown.contains("the [login] [timeout] was 30"), "{shown}");
        assert!(shown.len() < 300 && shown.ends_with(" …"), "{shown}");
    }

    #[test]
    fn the_row_that_is_looked_for_is_shown_not_the_beginning_of_its_table() {
        for count in [300, 6000] {
            let rows = (0..count).map(|row| format!("setting_{row} = {}\n", 7000 + 37 * row));
            let table = format!("These are the settings:\n{}", rows.collect::<String>());
            for (query, row) in [
                ("setting_217", 217),
                ("setting 217", 217),
                ("settings setting_123", 123),
                ("setting_299", 299),
                ("setting_5217", 5217),
            ] {
                if row >= count {
                    continue;
                }
                let shown = snippet(query, &table).replace(['[', ']'], "");
                let wanted = format!("setting_{row} = {}", 7000 + 37 * row);
                assert!(shown.contains(&wanted), "{query}: {shown}");
            }
        }
        // Where all matches are alike, the first is shown.
        let text = format!("a pool {}", "and a pool ".repeat(300));
        assert!(snippet("pool", &text).starts_with("a [pool]"), "{text}");
    }
}
