//! Lists of words read from data files.
//!
//! A file has sections `[NAME]` of words that spaces separate; `_` stands for a space within a phrase, `#` begins a
//! comment line. In the section of a map each line is `value: words`.

use std::collections::{HashMap, HashSet};

/// The words of one section.
pub struct WordList {
    /// In the order of the file.
    words: Vec<String>,
    index: HashSet<String>,
}

impl WordList {
    /// Reads the section `name` of a data file.
    pub fn section(data: &'static str, name: &str) -> WordList {
        let words: Vec<String> = lines(data, name).flat_map(words).collect();
        let index = words.iter().cloned().collect();
        WordList { words, index }
    }

    /// Says whether `word` is one of them.
    pub fn has(&self, word: &str) -> bool {
        self.index.contains(word)
    }

    /// Returns them in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(String::as_str)
    }

    /// Returns the first of them that `text` starts with.
    pub fn start_of(&self, text: &str) -> Option<&str> {
        self.iter().find(|word| text.starts_with(word))
    }

    /// Says whether `text` contains any of them.
    pub fn occurs_in(&self, text: &str) -> bool {
        self.iter().any(|word| text.contains(word))
    }
}

/// Reads a section whose lines are `value: words` as a map from each word to its value.
pub fn word_map(data: &'static str, name: &str) -> HashMap<String, &'static str> {
    lines(data, name)
        .filter_map(|line| line.split_once(':'))
        .flat_map(|(value, line)| words(line).map(move |word| (word, value)))
        .collect()
}

fn lines(data: &'static str, name: &str) -> impl Iterator<Item = &'static str> {
    let heading = format!("[{name}]");
    let mut lines = data.lines().skip_while(move |line| *line != heading);
    assert!(
        lines.next().is_some(),
        "the data file has no section {name}"
    );
    lines
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.starts_with('#'))
}

fn words(line: &'static str) -> impl Iterator<Item = String> {
    line.split_whitespace().map(|word| word.replace('_', " "))
}

/// Declares a [`WordList`] for each of these sections of a data file, read when it is first used.
macro_rules! word_lists {
    ($data:expr; $($name:ident)*) => {
        $(pub static $name: std::sync::LazyLock<$crate::word_list::WordList> =
            std::sync::LazyLock::new(|| $crate::word_list::WordList::section($data, stringify!($name)));)*

        /// Reads every list, so that a missing section fails the tests and not a user.
        #[test]
        fn every_list_has_words() {
            $(assert!($name.iter().next().is_some(), "{}", stringify!($name));)*
        }
    };
}
pub(crate) use word_lists;
