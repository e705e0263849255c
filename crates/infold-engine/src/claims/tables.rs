//! The word lists by which claims are found and compared, in ten languages.

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

type WordMap = LazyLock<HashMap<String, &'static str>>;

/// The digits of each word for a number.
pub static NUMBERS: WordMap = LazyLock::new(|| word_map(DATA, "NUMBERS"));
/// The short form of each name of a unit.
pub static UNITS: WordMap = LazyLock::new(|| word_map(DATA, "UNITS"));
/// Single words with the meaning of word pairs.
pub static VERB_PAIRS: WordMap = LazyLock::new(|| word_map(DATA, "VERB_PAIRS"));

/// Verbs of saying.
pub static VERBS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    include_str!("tables/verbs.txt")
        .split_whitespace()
        .collect()
});
/// Words that every sentence has.
pub static STOP: LazyLock<HashSet<String>> =
    LazyLock::new(|| folded(include_str!("tables/stop.txt")));
/// Words that say nothing of their own: "problem", "approach".
pub static NEUTRAL: LazyLock<HashSet<String>> =
    LazyLock::new(|| folded(include_str!("tables/neutral.txt")));

/// A line of the table of synonyms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// The position of the line in the table.
    pub id: u16,
    pub name: &'static str,
    /// Whether the word is a verb of an action.
    pub is_action: bool,
    /// Whether the action is costly if done by mistake.
    pub is_costly: bool,
}

/// The table of synonyms.
pub struct Synonyms {
    pub words: HashMap<String, Meaning>,
    /// The entries in scripts without spaces, the longest first.
    pub phrases: Vec<(&'static str, Meaning)>,
}

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

fn folded(words: &str) -> HashSet<String> {
    words.split_whitespace().map(fold).collect()
}

/// Says whether `word` is one of the words of `list`, which spaces separate.
pub fn among(list: &str, word: &str) -> bool {
    !word.is_empty() && list.split(' ').any(|one| one == word)
}
