//! The word lists by which claims are found and compared, in ten languages.
//!
//! The words are data, in the files of `tables/`. A comment above each section of `words.txt` says what its list is for;
//! names with `WIDE_` are for scripts without spaces, where a list is searched for within the text.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::word_form::{fold, is_wide};
use crate::word_list::{word_lists, word_map};

const DATA: &str = include_str!("tables/words.txt");

word_lists! { DATA;
    SPEAKERS PRONOUNS BETWEEN MODALS GENERIC WHENEVER NOUNS BEFORE_NOUN AS_ASKED WAS_ASKED APPROVING REJECTING WANTING
    ARTICLES HEADINGS WIDE_SPEAKERS WIDE_NOT_SPEAKERS WIDE_PRONOUNS WIDE_VERBS WIDE_APPROVING WIDE_AS_ASKED
    SUBORDINATING CONDITIONS PREPOSITIONS FIRST_PERSON WISHES OTHERWISE POINTING NEGATIONS WITHOUT WIDE_NEGATIONS BUT AND
    INSTEAD_OF WIDE_INSTEAD_OF URGENT TOPICS ASSISTANT ASSISTANT_DID YES HEDGES WIDE_YES WIDE_HEDGES WIDE_BECOMES
    WIDE_STOP PARTICLES KOREAN_STOP VERB_ENDINGS EMPHATIC DATES SHORT_ENDINGS LONG_ENDINGS ELIDED_ARTICLES
}

/// A map from each word to its value.
type WordMap = LazyLock<HashMap<String, &'static str>>;

/// Maps each word for a number to its digits.
pub static NUMBERS: WordMap = LazyLock::new(|| word_map(DATA, "NUMBERS"));
/// Maps each name of a unit to its short form: `pixels` to `px`.
pub static UNITS: WordMap = LazyLock::new(|| word_map(DATA, "UNITS"));
/// Maps each pair of words to the single word that means the same: `turn off` to `disable`.
pub static VERB_PAIRS: WordMap = LazyLock::new(|| word_map(DATA, "VERB_PAIRS"));

/// Verbs of saying.
pub static VERBS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    include_str!("tables/verbs.txt")
        .split_whitespace()
        .collect()
});
/// Stop words: every sentence has them, so they say nothing about its topic.
pub static STOP: LazyLock<HashSet<String>> =
    LazyLock::new(|| folded(include_str!("tables/stop.txt")));
/// Words that carry no meaning of their own, such as "problem" and "approach".
pub static NEUTRAL: LazyLock<HashSet<String>> =
    LazyLock::new(|| folded(include_str!("tables/neutral.txt")));

/// The meaning that the words on one line of the table of synonyms share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// The position of the line in the table.
    pub id: u16,
    /// The name at the head of the line.
    pub name: &'static str,
    /// Whether the word is the verb of an action, which the user must have asked for themselves.
    pub is_action: bool,
    /// Whether the action is costly if done by mistake.
    pub is_costly: bool,
}

/// The table of synonyms: words of one line say the same of a request.
pub struct Synonyms {
    /// The meaning of each word, in small letters without accents. A word on several lines has the meaning of the first.
    pub words: HashMap<String, Meaning>,
    /// The entries in scripts without spaces, the longest first, so that the first one that a text starts with is the
    /// longest.
    pub phrases: Vec<(&'static str, Meaning)>,
}

/// The synonyms of `synonyms.txt`. A line is `NAME FLAGS: WORDS`; the flags are `act` and `high`.
pub static SYNONYMS: LazyLock<Synonyms> = LazyLock::new(|| {
    let (mut words, mut phrases) = (HashMap::new(), Vec::new());
    let lines = include_str!("tables/synonyms.txt").lines();
    let lines = lines.filter(|line| !line.starts_with('#'));
    for (id, (head, line)) in lines.filter_map(|line| line.split_once(':')).enumerate() {
        let mut head = head.split(' ');
        let name = head.next().unwrap_or_default();
        let flags: Vec<&str> = head.collect();
        let meaning = Meaning {
            id: id as u16,
            name,
            is_action: flags.contains(&"act"),
            is_costly: flags.contains(&"high"),
        };
        for word in line.split_whitespace() {
            if word.chars().any(is_wide) {
                phrases.push((word, meaning));
            } else {
                words.entry(fold(word)).or_insert(meaning);
            }
        }
    }
    phrases.sort_by_key(|(phrase, _)| std::cmp::Reverse(phrase.len()));
    Synonyms { words, phrases }
});

/// Returns the words of a text as a set, in small letters without accents.
fn folded(words: &str) -> HashSet<String> {
    words.split_whitespace().map(fold).collect()
}

/// Says whether `word` is one of the words of `list`, which are separated by spaces.
pub fn among(list: &str, word: &str) -> bool {
    !word.is_empty() && list.split(' ').any(|one| one == word)
}
