//! Splits folded messages into sentences and lines: the pieces from which the designs choose.

use infold_log::Role;

use crate::ParsedSession;

/// Longer sentences are cut into pieces of about this many bytes.
const MAX_SENTENCE_BYTES: usize = 400;

/// Returns the sentences in the texts of user and assistant, in order, without code blocks. `covers` are the indexes of
/// the folded messages in the session.
pub fn of_prose<'a>(parsed: &'a ParsedSession, covers: &[usize]) -> Vec<&'a str> {
    let mut out = Vec::new();
    for place in covers {
        let message = &parsed.messages[*place];
        if matches!(message.role, Role::User | Role::Assistant) {
            split(&message.words.text, false, &mut out);
        }
    }
    out
}

/// Returns the sentences and lines of all contents of the folded messages: texts, arguments of calls, and results.
pub fn of_all_contents<'a>(parsed: &'a ParsedSession, covers: &[usize]) -> Vec<&'a str> {
    let mut out = Vec::new();
    for place in covers {
        let words = &parsed.messages[*place].words;
        split(&words.text, true, &mut out);
        split(&words.arguments, true, &mut out);
        for (_, result) in &words.results {
            split(result, true, &mut out);
        }
    }
    out
}

/// Returns at most `count` of the items, taken at even distances. This bounds the time for ranking them.
pub fn sample<T: Copy>(all: Vec<T>, count: usize) -> Vec<T> {
    if all.len() <= count {
        return all;
    }
    (0..count).map(|at| all[at * all.len() / count]).collect()
}

/// Appends the sentences of a text, split at the ends of sentences and lines. Pieces without a letter or digit are left
/// out, and so are code blocks unless `with_code`.
fn split<'a>(text: &'a str, with_code: bool, out: &mut Vec<&'a str>) {
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
            continue;
        }
        if is_code && !with_code {
            continue;
        }
        let mut rest = line;
        while !rest.is_empty() {
            let end = sentence_end(rest);
            let (sentence, after) = rest.split_at(end);
            let sentence = sentence.trim();
            if sentence.chars().any(char::is_alphanumeric) {
                out.push(sentence);
            }
            rest = after;
        }
    }
}

/// Returns the end of the first sentence of a line, or of its first piece if the sentence is too long.
fn sentence_end(line: &str) -> usize {
    let mut last = ' ';
    for (at, c) in line.char_indices() {
        let ends_before = matches!(last, '.' | '!' | '?') && c.is_whitespace();
        if ends_before || matches!(last, '。' | '！' | '？') || at >= MAX_SENTENCE_BYTES {
            return at;
        }
        last = c;
    }
    line.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_at_marks_or_lines_and_code_has_none() {
        let text =
            "First one. Is it? Yes!\n- a point\n```\nlet x = 1. y\n```\n---\nlast a.b\n一。二";
        let mut all = Vec::new();
        split(text, false, &mut all);
        let expected = [
            "First one.",
            "Is it?",
            "Yes!",
            "- a point",
            "last a.b",
            "一。",
            "二",
        ];
        assert_eq!(all, expected);
        all.clear();
        let long = "x".repeat(1000);
        split(&long, true, &mut all);
        assert_eq!(all.len(), 3);
    }
}
