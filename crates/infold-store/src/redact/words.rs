//! The words by which a text derived from a message is recognised.

use std::collections::HashSet;
use std::ops::Range;

use infold_wire::digest::Digest;

use crate::redacted_digests::content_digest;

/// Words, and pairs of consecutive words, that occur in the redacted messages and in no other.
///
/// Text derived from such a message (a summary, a record) may repeat other messages too; these words identify
/// the redacted part. A single word is often common even if a pair is not: four common words make a good
/// passphrase.
#[derive(Debug, Default)]
pub struct Words {
    words: HashSet<String>,
    pairs: HashSet<(String, String)>,
    /// The texts as a whole, and their lines.
    texts: HashSet<Digest>,
}

impl Words {
    /// Adds the words of a redacted message.
    pub fn add(&mut self, text: &str) {
        self.add_text(text);
        let mut last: Option<String> = None;
        for (_, word) in split(text) {
            if let Some(last) = last.replace(word.clone()) {
                self.pairs.insert((last, word.clone()));
            }
            self.words.insert(word);
        }
    }

    /// Removes the words of a message that stays.
    pub fn keep(&mut self, text: &str) {
        self.keep_text(text);
        let mut last: Option<String> = None;
        for (_, word) in split(text) {
            self.words.remove(&word);
            if let Some(last) = last.replace(word.clone()) {
                self.pairs.remove(&(last, word));
            }
        }
    }

    /// Adds a text as a whole, and its lines.
    pub fn add_text(&mut self, text: &str) {
        self.texts.extend(digests(text));
    }

    /// Takes out a text as a whole, and its lines.
    pub fn keep_text(&mut self, text: &str) {
        for digest in digests(text) {
            self.texts.remove(&digest);
        }
    }

    /// Returns whether a text or a line as a whole stands in the redacted messages and in no other.
    pub fn has_text(&self, text: &str) -> bool {
        content_digest(text).is_some_and(|digest| self.texts.contains(&digest))
    }

    /// Returns their positions in a text. Adjacent ones form one range.
    pub fn find(&self, text: &str) -> Vec<Range<usize>> {
        let all: Vec<(Range<usize>, String)> = split(text).collect();
        let mut hit = vec![false; all.len()];
        for (at, (_, word)) in all.iter().enumerate() {
            hit[at] |= self.words.contains(word);
            if let Some((_, next)) = all.get(at + 1)
                && self.pairs.contains(&(word.clone(), next.clone()))
            {
                (hit[at], hit[at + 1]) = (true, true);
            }
        }
        let mut found: Vec<Range<usize>> = Vec::new();
        for at in (0..all.len()).filter(|at| hit[*at]) {
            let range = all[at].0.clone();
            match found.last_mut().filter(|_| at > 0 && hit[at - 1]) {
                Some(last) => last.end = range.end,
                None => found.push(range),
            }
        }
        found
    }
}

/// The digests of a text and of its lines.
fn digests(text: &str) -> impl Iterator<Item = Digest> + '_ {
    let lines = text.split('\n').filter(|line| line.len() < text.len());
    std::iter::once(text)
        .chain(lines)
        .filter_map(content_digest)
}

/// The words of a text in lower case, and where they stand. What is written without spaces has a word for each character.
fn split(text: &str) -> impl Iterator<Item = (Range<usize>, String)> + '_ {
    let mut chars = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (start, first) = chars.find(|(_, char)| is_of_word(*char))?;
        let mut end = start + first.len_utf8();
        if !is_unspaced(first) {
            while let Some((at, char)) = chars
                .peek()
                .copied()
                .filter(|(_, char)| is_of_word(*char) && !is_unspaced(*char))
            {
                end = at + char.len_utf8();
                chars.next();
            }
        }
        Some((start..end, text[start..end].to_lowercase()))
    })
}

fn is_of_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

/// Returns whether a script is written without spaces between words.
fn is_unspaced(char: char) -> bool {
    matches!(char, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{2e80}'..='\u{abff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'a>(words: &Words, text: &'a str) -> Vec<&'a str> {
        let ranges = words.find(text).into_iter();
        ranges.map(|range| &text[range]).collect()
    }

    #[test]
    fn a_word_that_stands_nowhere_else_is_found_whatever_stands_around_it() {
        let mut words = Words::default();
        words.add("the password is Hunter2.");
        words.keep("is the door open");
        assert_eq!(
            found(&words, "user said: \"hunter2\", the door"),
            ["hunter2"]
        );
    }

    #[test]
    fn common_words_in_a_row_that_nobody_else_says_are_found() {
        let mut words = Words::default();
        words.add("correct horse battery staple");
        words.keep("the horse ate the staple; correct, the battery is low");
        assert_eq!(found(&words, "a horse with a battery"), Vec::<&str>::new());
        assert_eq!(
            found(&words, "[Correct horse  battery\nstaple] was it"),
            ["Correct horse  battery\nstaple"]
        );
    }

    #[test]
    fn scripts_without_spaces_are_compared_by_pairs_of_characters() {
        let mut words = Words::default();
        words.add("密码是红苹果");
        words.keep("果 苹 红的门 是 码 密");
        assert_eq!(found(&words, "他说红苹果好"), ["红苹果"]);
    }
}
