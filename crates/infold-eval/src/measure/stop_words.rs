//! Stop words: words that occur in every text of a language, whatever its subject.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Stop words of at least three letters, some lines for each language.
static STOP_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let lines = include_str!("stop_words.txt").lines();
    let lines = lines.filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_whitespace).collect()
});

/// Says whether a word, in small letters, is a stop word.
pub fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_language_has_some() {
        for word in ["the", "nicht", "avec", "porque", "não", "della", "чтобы"] {
            assert!(is_stop_word(word), "{word}");
        }
        assert!(!is_stop_word("invoice"));
    }
}
