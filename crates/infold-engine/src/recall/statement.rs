//! Distinguishes lines that say something about a name from lines that only contain it: lists and questions.

use super::name::{Name, find_form, normal};
use crate::extract::LOOSE_NAMES;

/// The names that a line contains, and those it says something about; one bit for each name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LineNames {
    pub held: u64,
    pub stated: u64,
    /// The place of the first of them.
    pub first: usize,
}

/// The author of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LineOrigin {
    /// A message of the conversation.
    Message,
    /// A summary of ours, which has lists of names.
    StandIn,
}

impl LineNames {
    /// Reads a line.
    pub fn of(line: &str, names: &[Name], origin: LineOrigin) -> LineNames {
        let mut out = LineNames::default();
        let line = normal(line);
        for (bit, name) in names.iter().enumerate() {
            if let Some(at) = find_form(&line, &name.form) {
                out.first = if out.held == 0 { at } else { out.first.min(at) };
                out.held |= 1 << bit;
                let is_stated =
                    !is_asked(&line[at..]) && says_something(&line, at, name.form.len(), origin);
                out.stated |= u64::from(is_stated) << bit;
            }
        }
        out
    }
}

/// Says whether the sentence that continues with `rest` is a question.
fn is_asked(rest: &str) -> bool {
    let mut chars = rest.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '？' => return true,
            '。' | '！' => return false,
            '?' => return chars.peek().is_none_or(|next| !next.is_alphanumeric()),
            '.' | '!' if chars.peek().is_none_or(|next| next.is_whitespace()) => return false,
            _ => {}
        }
    }
    false
}

/// Says whether the text around a name is more than other names of a list.
fn says_something(line: &str, at: usize, length: usize, origin: LineOrigin) -> bool {
    let list = (origin == LineOrigin::StandIn)
        .then(|| list_start(line))
        .flatten();
    if list.is_some_and(|start| at >= start) {
        return false;
    }
    // The names of a list say nothing about the file or command that they are listed for.
    let line = &line[..list.unwrap_or(line.len())];
    let is_comma = |c: char| matches!(c, ',' | ';' | '·' | '|' | '、');
    let start = line[..at].rfind(is_comma).map_or(0, |comma| comma + 1);
    let end = line[at + length..]
        .find(is_comma)
        .map_or(line.len(), |comma| at + length + comma);
    let start = (start..=at)
        .find(|start| line.is_char_boundary(*start))
        .unwrap_or(at);
    let is_list = line.matches(is_comma).count() >= 2;
    let (mut before, after) = (&line[start..at], &line[at + length..end]);
    if let Some(colon) = before.rfind(':').filter(|_| is_list) {
        before = &before[colon + 1..];
    }
    let words = plain_words(before) + plain_words(after);
    let is_value = |after: &str| {
        let after = after.trim_start_matches(['"', '\'', '`', ' ']);
        after
            .strip_prefix(['=', ':'])
            .is_some_and(|value| value.contains(|c: char| c.is_alphanumeric()))
    };
    match origin {
        LineOrigin::StandIn => words >= 3 || after.trim_start().starts_with('=') && is_value(after),
        LineOrigin::Message if is_list => words >= 1 || is_value(after),
        LineOrigin::Message => words >= 1 || is_value(after) || has_another_word(before, after),
    }
}

/// Returns the place where the names begin that a summary of ours lists, alone or behind a file, a command or a call:
/// `- src/a.rs (edited [12]): name other_name`.
fn list_start(line: &str) -> Option<usize> {
    let item = line.strip_prefix("- ")?;
    let start = line.len() - item.len();
    if item.starts_with(&LOOSE_NAMES.to_lowercase()) {
        return Some(start + LOOSE_NAMES.len());
    }
    // A line that begins with a citation is a quotation.
    if item.starts_with('[') {
        return None;
    }
    let end = item.match_indices(']').find_map(|(end, _)| {
        let open = item[..end].rfind('[')?;
        let is_cited = open + 1 < end && item[open + 1..end].bytes().all(|b| b.is_ascii_digit());
        let rest = item[end + 1..].trim_start_matches(')');
        (is_cited && (rest.starts_with(": ") || rest.starts_with(" → "))).then_some(end + 1)
    })?;
    let rest = &item[end..];
    let colon = if rest.trim_start_matches(')').starts_with(": ") {
        rest.find(": ")?
    } else {
        // The line of the result may have colons, too.
        rest.rfind(": ")?
    };
    Some(start + end + colon + 2)
}

fn has_another_word(before: &str, after: &str) -> bool {
    let has = |text: &str| {
        text.split(|c: char| !c.is_alphanumeric())
            .any(|word| word.chars().count() > 1)
    };
    has(before) || has(after)
}

/// Counts words that are no names, without remarks in brackets.
fn plain_words(text: &str) -> usize {
    let mut depth = 0_u32;
    let mut out = 0;
    for word in text.split_whitespace() {
        let opens = word.matches(['(', '[']).count() as u32;
        let is_plain = word.chars().filter(|c| c.is_alphabetic()).count() >= 2
            && !word.contains(['_', '/', '(', '[']);
        out += usize::from(depth == 0 && is_plain);
        depth = (depth + opens).saturating_sub(word.matches([')', ']']).count() as u32);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::name::NameList;
    use super::*;

    fn is_stated(line: &str, origin: LineOrigin) -> bool {
        let mut names = NameList::default();
        names.add_arguments("RETRY_BUDGET src/net.rs");
        let found = LineNames::of(line, &names.list, origin);
        assert_ne!(found.held, 0, "{line}");
        found.stated != 0
    }

    #[test]
    fn a_line_says_something_about_a_name_or_only_holds_it() {
        for line in [
            "RETRY_BUDGET is 1750 ms",
            "retry_budget=1750",
            "\"RETRY_BUDGET\": 1750,",
            "Use RETRY_BUDGET for it. And what else?",
            "a, b, and RETRY_BUDGET counts milliseconds, c",
            "RETRY_BUDGETは1750です。",
            "const RETRY_BUDGET: u64 = 1750;",
        ] {
            assert!(is_stated(line, LineOrigin::Message), "{line}");
        }
        for line in [
            "What is RETRY_BUDGET set to?",
            "RETRY_BUDGETは何ですか？",
            "src/net.rs",
            "Names: alpha, RETRY_BUDGET, beta",
        ] {
            assert!(!is_stated(line, LineOrigin::Message), "{line}");
        }
        for listed in [
            "- src/net.rs (edited 2× [281]): 360 IsTask RETRY_BUDGET created_at logo meta",
            "- src/tide.rs [12]: logo meta page RETRY_BUDGET refs",
            "- cargo test (ran 2×, failed [14]) → error: 1 failed: logo meta RETRY_BUDGET page refs",
            "- Names: logo meta page RETRY_BUDGET refs",
        ] {
            assert!(!is_stated(listed, LineOrigin::StandIn), "{listed}");
        }
        assert!(is_stated(
            "- [3] RETRY_BUDGET is 1750 ms from now on",
            LineOrigin::StandIn
        ));
    }
}
