//! Splits a text into the plain words that are counted, sentence by sentence.

use std::ops::Range;

use super::each_reference;
use super::stop::is_stop_word;

/// Shorter runs of letters are mostly endings and articles.
const MIN_WORD_LETTERS: usize = 3;
/// Longer runs of letters are data.
const MAX_WORD_LETTERS: usize = 40;

/// A word that is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word in small letters; in East Asian scripts, two characters.
    pub text: String,
    /// The number of the sentence or line it stands in.
    pub sentence: usize,
    /// It stands in plain language, not inside of a reference.
    pub is_plain: bool,
}

/// Returns the words of a text that are not stop words, in order.
pub fn words(text: &str) -> Vec<Word> {
    let mut references = Vec::new();
    each_reference(text, |range| references.push(range));
    let mut out = Reader {
        out: Vec::new(),
        references,
        passed: 0,
        sentence: 0,
    };
    let mut run: Option<(usize, bool)> = None;
    let mut last = ' ';
    for (at, c) in text.char_indices() {
        let kind = c.is_alphabetic().then(|| is_east_asian(c));
        if let Some((start, is_dense)) = run
            && kind != Some(is_dense)
        {
            out.run(text, start..at, is_dense);
            run = None;
        }
        if let Some(is_dense) = kind {
            run.get_or_insert((at, is_dense));
        }
        let ends_before = matches!(last, '.' | '!' | '?' | '…') && c.is_whitespace();
        if ends_before || matches!(c, '\n' | '。' | '！' | '？') {
            out.sentence += 1;
        }
        last = c;
    }
    if let Some((start, is_dense)) = run {
        out.run(text, start..text.len(), is_dense);
    }
    out.out
}

/// A character of a script that is written without spaces, or, as Hangul, in syllables.
pub fn is_east_asian(c: char) -> bool {
    matches!(u32::from(c),
        0x3040..=0x30ff | 0x31f0..=0x31ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff
        | 0xf900..=0xfaff | 0x1100..=0x11ff | 0xac00..=0xd7af | 0x20000..=0x3ffff)
}

struct Reader {
    out: Vec<Word>,
    references: Vec<Range<usize>>,
    /// How many references end before the run at hand.
    passed: usize,
    sentence: usize,
}

impl Reader {
    /// Takes a run of letters of one kind.
    fn run(&mut self, text: &str, range: Range<usize>, is_dense: bool) {
        let ends_before = |reference: &Range<usize>| reference.end <= range.start;
        while self.references.get(self.passed).is_some_and(ends_before) {
            self.passed += 1;
        }
        let next = self.references.get(self.passed);
        let is_plain = next.is_none_or(|next| next.start >= range.end);
        let letters = &text[range];
        if is_dense {
            let seconds = letters.char_indices().skip(1).map(|(at, _)| at);
            let ends = seconds.clone().skip(1).chain([letters.len()]);
            let starts = letters.char_indices().map(|(at, _)| at);
            for (start, end) in starts.zip(ends) {
                if end > start && letters[start..end].chars().count() == 2 {
                    self.push(letters[start..end].to_owned(), is_plain);
                }
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
        self.out.push(Word {
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
        let told: Vec<(&str, usize, bool)> = found
            .iter()
            .map(|word| (&*word.text, word.sentence, word.is_plain))
            .collect();
        assert_eq!(
            told,
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
