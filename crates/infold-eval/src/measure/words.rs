//! Splits a text into the words that the measures count, and numbers its sentences.

use std::ops::Range;

use super::each_reference;
use super::stop_words::is_stop_word;

/// Shorter runs of letters are not counted: most of them are endings and articles.
const MIN_WORD_LETTERS: usize = 3;
/// Longer runs of letters are not counted: they are data, such as base64.
const MAX_WORD_LETTERS: usize = 40;

/// A word of a text that is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedWord {
    /// The word in small letters. In East Asian scripts, which do not separate words, each pair of adjacent characters.
    pub text: String,
    /// The number of its sentence, counted from zero. A line break ends a sentence, too.
    pub sentence: usize,
    /// Whether the word is not part of a reference, such as a path.
    pub is_plain: bool,
}

/// Returns the words of a text in order, without stop words and without words that are too short or too long.
pub fn words(text: &str) -> Vec<CountedWord> {
    let mut references = Vec::new();
    each_reference(text, |range| references.push(range));
    let mut out = WordReader {
        out: Vec::new(),
        references,
        passed: 0,
        sentence: 0,
    };
    // The start of the current run of letters, and whether they are East Asian: a run has letters of one kind only.
    let mut run: Option<(usize, bool)> = None;
    let mut last = ' ';
    for (at, c) in text.char_indices() {
        let kind = c.is_alphabetic().then(|| is_east_asian(c));
        if let Some((start, is_cjk)) = run
            && kind != Some(is_cjk)
        {
            out.push_run(text, start..at, is_cjk);
            run = None;
        }
        if let Some(is_cjk) = kind {
            run.get_or_insert((at, is_cjk));
        }
        let ends_before = matches!(last, '.' | '!' | '?' | '…') && c.is_whitespace();
        if ends_before || matches!(c, '\n' | '。' | '！' | '？') {
            out.sentence += 1;
        }
        last = c;
    }
    if let Some((start, is_cjk)) = run {
        out.push_run(text, start..text.len(), is_cjk);
    }
    out.out
}

/// Says whether a character is Chinese, Japanese or Korean.
pub fn is_east_asian(c: char) -> bool {
    matches!(u32::from(c),
        0x3040..=0x30ff | 0x31f0..=0x31ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff
        | 0xf900..=0xfaff | 0x1100..=0x11ff | 0xac00..=0xd7af | 0x20000..=0x3ffff)
}

struct WordReader {
    out: Vec<CountedWord>,
    references: Vec<Range<usize>>,
    /// The number of references that end before the current run: runs come in order, so these are not looked at again.
    passed: usize,
    sentence: usize,
}

impl WordReader {
    /// Adds the words of a run of letters of one kind; `is_cjk` if they are East Asian.
    fn push_run(&mut self, text: &str, range: Range<usize>, is_cjk: bool) {
        let ends_before = |reference: &Range<usize>| reference.end <= range.start;
        while self.references.get(self.passed).is_some_and(ends_before) {
            self.passed += 1;
        }
        let next = self.references.get(self.passed);
        let is_plain = next.is_none_or(|next| next.start >= range.end);
        let letters = &text[range];
        if is_cjk {
            for (first, second) in letters.chars().zip(letters.chars().skip(1)) {
                self.push(String::from_iter([first, second]), is_plain);
            }
            return;
        }
        let count = letters.chars().take(MAX_WORD_LETTERS + 1).count();
        if (MIN_WORD_LETTERS..=MAX_WORD_LETTERS).contains(&count) {
            let lower = letters.to_lowercase();
            if !is_stop_word(&lower) {
                self.push(lower, is_plain);
            }
        }
    }

    fn push(&mut self, text: String, is_plain: bool) {
        self.out.push(CountedWord {
            text,
            sentence: self.sentence,
            is_plain,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        words(text).into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn words_are_letters_without_stop_words() {
        assert_eq!(
            texts("The invoices must be archived by Friday, isn't it?"),
            ["invoices", "archived", "friday"]
        );
        assert_eq!(
            texts("Die Rechnungen dürfen nicht gelöscht werden."),
            ["rechnungen", "dürfen", "gelöscht"]
        );
        assert_eq!(
            texts("Les factures sont archivées vendredi."),
            ["factures", "archivées", "vendredi"]
        );
        assert_eq!(texts("Счета нельзя удалять."), ["счета", "удалять"]);
    }

    #[test]
    fn scripts_without_spaces_have_pairs_of_characters() {
        assert_eq!(texts("数据库。好"), ["数据", "据库"]);
        assert_eq!(texts("金曜日まで"), ["金曜", "曜日", "日ま", "まで"]);
        assert_eq!(texts("금요일 ok"), ["금요", "요일"]);
    }

    #[test]
    fn words_inside_of_references_are_not_plain() {
        let found = words("Open src/parser_main.rs, the parser.\nSecond line. Third");
        let words: Vec<(&str, usize, bool)> = found
            .iter()
            .map(|word| (&*word.text, word.sentence, word.is_plain))
            .collect();
        assert_eq!(
            words,
            [
                ("open", 0, true),
                ("src", 0, false),
                ("parser", 0, false),
                ("main", 0, false),
                ("parser", 0, true),
                ("second", 1, true),
                ("line", 1, true),
                ("third", 2, true)
            ]
        );
    }
}
