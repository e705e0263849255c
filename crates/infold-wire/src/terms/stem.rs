//! Stems of words, by language, so that `migrations` finds `migrated`.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};

use super::scan::{TermKind, each_term};

/// The language of a text, as far as its stems go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// English, and all languages that are not recognised.
    English,
    /// German.
    German,
    /// French.
    French,
    /// Spanish.
    Spanish,
}

/// Shorter words are their own stems.
const MIN_STEMMED_CHARS: usize = 3;
/// The bytes of a text that are read to detect its language.
const MAX_SAMPLE_BYTES: usize = 2048;
/// The number of words whose stems are cached.
const MAX_REMEMBERED: usize = 32 << 10;
/// The number of stop words that are needed to detect a language.
const MIN_STOP_WORDS: usize = 2;

/// Words with their stems; none if the word is its own.
type StemCache = HashMap<Rc<str>, Option<Rc<str>>>;

struct Dictionary {
    irregular: HashMap<&'static str, &'static str>,
    /// The stems of each group of synonyms, and the groups of each stem.
    groups: Vec<Vec<String>>,
    synonyms: HashMap<String, Vec<usize>>,
    stop_words: [HashSet<&'static str>; Language::ALL.len()],
    stemmers: [Stemmer; Language::ALL.len()],
    russian: Stemmer,
}

static DICTIONARY: LazyLock<Dictionary> = LazyLock::new(|| {
    let mut irregular = HashMap::new();
    for line in data_lines(include_str!("irregular.txt")) {
        let mut words = line.split_whitespace();
        if let Some(lemma) = words.next() {
            irregular.extend(words.map(|word| (word, lemma)));
        }
    }
    let stemmer = Stemmer::create(Algorithm::English);
    let mut synonyms: HashMap<String, Vec<usize>> = HashMap::new();
    let mut groups: Vec<Vec<String>> = Vec::new();
    for line in data_lines(include_str!("synonyms.txt")) {
        let words = line.split_whitespace();
        let mut stems: Vec<String> = words.map(|word| stemmer.stem(word).into_owned()).collect();
        stems.dedup();
        for stem in &stems {
            synonyms.entry(stem.clone()).or_default().push(groups.len());
        }
        groups.push(stems);
    }
    Dictionary {
        irregular,
        groups,
        synonyms,
        stop_words: Language::ALL.map(|language| stop_words_of(language.name())),
        stemmers: Language::ALL.map(|language| Stemmer::create(language.algorithm())),
        russian: Stemmer::create(Algorithm::Russian),
    }
});

fn data_lines(data: &'static str) -> impl Iterator<Item = &'static str> {
    data.lines().filter(|line| !line.starts_with('#'))
}

fn stop_words_of(name: &str) -> HashSet<&'static str> {
    let heading = format!("[{name}]");
    let lines = data_lines(include_str!("stop.txt")).skip_while(move |line| *line != heading);
    let lines = lines.skip(1).take_while(|line| !line.starts_with('['));
    lines.flat_map(str::split_whitespace).collect()
}

impl Language {
    /// All languages that are recognised.
    pub const ALL: [Language; 4] = [
        Language::English,
        Language::German,
        Language::French,
        Language::Spanish,
    ];

    fn name(self) -> &'static str {
        match self {
            Language::English => "english",
            Language::German => "german",
            Language::French => "french",
            Language::Spanish => "spanish",
        }
    }

    fn algorithm(self) -> Algorithm {
        match self {
            Language::English => Algorithm::English,
            Language::German => Algorithm::German,
            Language::French => Algorithm::French,
            Language::Spanish => Algorithm::Spanish,
        }
    }

    /// Detects the language of a text by its most frequent words.
    pub fn of(text: &str) -> Language {
        let end = text.len().min(MAX_SAMPLE_BYTES);
        let end = (0..=end).rev().find(|at| text.is_char_boundary(*at));
        let mut counts = [0; Language::ALL.len()];
        each_term(&text[..end.unwrap_or(0)], &mut |term| {
            for (count, words) in counts.iter_mut().zip(&DICTIONARY.stop_words) {
                *count += usize::from(term.kind == TermKind::Word && words.contains(term.text));
            }
        });
        let mut found = (Language::English, counts[0]);
        for (language, count) in Language::ALL.into_iter().zip(counts) {
            if count >= MIN_STOP_WORDS && count > found.1 {
                found = (language, count);
            }
        }
        found.0
    }

    /// Returns the stem of a word, unless it is the word itself. Stems of frequent words are cached.
    pub(super) fn remembered_stem(self, word: &str) -> Option<Rc<str>> {
        thread_local! {
            static REMEMBERED: RefCell<[StemCache; Language::ALL.len()]> = RefCell::default();
        }
        REMEMBERED.with_borrow_mut(|remembered| {
            let stems = &mut remembered[self as usize];
            if let Some(stem) = stems.get(word) {
                return stem.clone();
            }
            if stems.len() >= MAX_REMEMBERED {
                stems.clear();
            }
            let stem: Option<Rc<str>> = self.stem(word).map(|stem| Rc::from(&*stem));
            stems.insert(word.into(), stem.clone());
            stem
        })
    }

    /// Returns the stem of a word, unless it is the word itself.
    pub fn stem(self, word: &str) -> Option<Cow<'_, str>> {
        let dictionary = &*DICTIONARY;
        if self == Language::English
            && let Some(lemma) = dictionary.irregular.get(word)
        {
            let stem = dictionary.stemmers[0].stem(lemma);
            return Some(stem).filter(|stem| *stem != word);
        }
        if word.chars().count() < MIN_STEMMED_CHARS
            || word.bytes().any(|byte| byte.is_ascii_digit())
        {
            return None;
        }
        let first = word.chars().next()?;
        if self == Language::English
            && let Some(one) = word.strip_suffix('s')
            && !one.contains(['a', 'e', 'i', 'o', 'u', 'y', 's'])
        {
            // The plural of an acronym without vowels, such as `pdfs`: the stemmer takes it for a singular.
            return Some(Cow::Borrowed(one));
        }
        let stem = if first.is_ascii() {
            dictionary.stemmers[self as usize].stem(word)
        } else if ('\u{0400}'..='\u{04FF}').contains(&first) {
            dictionary.russian.stem(word)
        } else {
            return None;
        };
        Some(stem).filter(|stem| *stem != word && !stem.is_empty())
    }

    /// Returns the stems that a word of a query may have in a message of another language too.
    pub fn stems(self, word: &str) -> Vec<String> {
        let mut stems: Vec<String> = Vec::new();
        for language in [self, Language::English, Language::German] {
            let stem = language.stem(word).unwrap_or(Cow::Borrowed(word));
            if !stems.iter().any(|known| *known == *stem) {
                stems.push(stem.into_owned());
            }
        }
        stems
    }
}

/// Returns the stems of synonyms of an English word, without the word itself.
pub fn synonyms_of(word: &str) -> Vec<&'static str> {
    let dictionary = &*DICTIONARY;
    let stem = Language::English.stem(word).unwrap_or(Cow::Borrowed(word));
    let groups = dictionary.synonyms.get(&*stem).into_iter().flatten();
    let stems = groups.flat_map(|group| &dictionary.groups[*group]);
    let mut others: Vec<&str> = stems
        .map(String::as_str)
        .filter(|one| *one != stem)
        .collect();
    others.sort_unstable();
    others.dedup();
    others
}

/// Says whether a word has no meaning for a search in a query of this language.
pub fn is_stop_word(word: &str, language: Language) -> bool {
    let stop_words = &DICTIONARY.stop_words;
    stop_words[0].contains(word) || stop_words[language as usize].contains(word)
}
