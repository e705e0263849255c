//! The planted sentences and those around them, in each language.
//!
//! In a template, brackets mark the words that a summary must contain, and slots such as `{n}` are filled in.
//! A sentence before `||` occurs earlier in the conversation, and the one after it corrects it.

use std::sync::LazyLock;

use super::{FACT_KINDS, FactKind, LANGUAGES, Language};
use crate::bootstrap::XorShift;

/// A sentence that is stated once, or stated and later corrected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The sentence that it corrects.
    pub earlier: Option<String>,
    /// The sentence.
    pub text: String,
    /// The parts that a summary must contain.
    pub keys: Vec<String>,
}

/// The templates of a language.
#[derive(Default)]
pub struct Phrases {
    facts: Vec<(FactKind, &'static str)>,
    subjects: Vec<&'static str>,
    verbs: Vec<&'static str>,
    tails: Vec<&'static str>,
    asks: Vec<&'static str>,
}

/// The templates of each language, in the order of [`LANGUAGES`].
const TEMPLATES: [&str; LANGUAGES.len()] = [
    include_str!("facts/en.txt"),
    include_str!("facts/de.txt"),
    include_str!("facts/fr.txt"),
    include_str!("facts/es.txt"),
    include_str!("facts/pt.txt"),
    include_str!("facts/it.txt"),
    include_str!("facts/ru.txt"),
    include_str!("facts/zh.txt"),
    include_str!("facts/ja.txt"),
    include_str!("facts/ko.txt"),
];

// Words that fill the slots of templates.
const NAMES: &str = "Ingrid Tomasz Yusuf Marisol Henrike Oluwaseun Katrin Benedikt Aiko Farida Lorenzo Svetlana Matthias Chiara Dagny Emeka Rosalie Viktor Noor Isabeau";
const CITIES: &str = "Gdynia Trieste Aarhus Cork Bilbao Split Turku Ghent Vigo Emden Bergen Riga";
const FOLDERS: &str = "data srv share plans export letters depot forms inbox print";
const FILES: &str = "ports.csv tides.json labels.txt seasons.yaml berths.xml stamps.toml ledger.ods crew.ini rates.tsv notices.md";

impl Language {
    /// Returns its templates.
    pub fn phrases(self) -> &'static Phrases {
        static PHRASES: LazyLock<[Phrases; LANGUAGES.len()]> =
            LazyLock::new(|| TEMPLATES.map(Phrases::read));
        &PHRASES[self as usize]
    }

    /// Says whether words are separated by spaces.
    fn has_spaces(self) -> bool {
        !matches!(self, Language::Chinese | Language::Japanese)
    }

    /// Returns a fact of a kind.
    pub fn fact(self, kind: FactKind, random: &mut XorShift) -> Fact {
        let facts = self.phrases().facts.iter();
        let templates: Vec<&str> = facts
            .filter(|(of, _)| *of == kind)
            .map(|(_, template)| *template)
            .collect();
        let template = templates[random.below(templates.len())];
        let (earlier, template) = match template.split_once(" || ") {
            Some((earlier, later)) => (Some(earlier), later),
            None => (None, template),
        };
        loop {
            let earlier = earlier.map(|earlier| fill(earlier, random));
            let (text, keys) = remove_brackets(&fill(template, random));
            // The new value must differ from the one it corrects.
            let is_same = |earlier: &String| keys.iter().any(|key| shares_value(key, earlier));
            if !earlier.as_ref().is_some_and(is_same) {
                return Fact {
                    earlier,
                    text,
                    keys,
                };
            }
        }
    }

    /// Returns a sentence that states no fact.
    pub fn filler(self, random: &mut XorShift) -> String {
        let phrases = self.phrases();
        let [subject, verb, tail] = [&phrases.subjects, &phrases.verbs, &phrases.tails]
            .map(|list| list[random.below(list.len())]);
        let space = if self.has_spaces() { " " } else { "" };
        let end = if self.has_spaces() { "." } else { "。" };
        fill(&format!("{subject}{space}{verb}{space}{tail}{end}"), random)
    }

    /// Returns `count` filler sentences.
    pub fn fillers(self, count: usize, random: &mut XorShift) -> String {
        let sentences: Vec<String> = (0..count).map(|_| self.filler(random)).collect();
        sentences.join(" ")
    }

    /// Returns a request of the user to continue.
    pub fn request(self, random: &mut XorShift) -> String {
        let asks = &self.phrases().asks;
        fill(asks[random.below(asks.len())], random)
    }
}

impl Phrases {
    fn read(text: &'static str) -> Phrases {
        let mut phrases = Phrases::default();
        for line in text.lines() {
            let Some((name, text)) = line.split_once(": ") else {
                continue;
            };
            match name {
                "subject" => phrases.subjects.push(text),
                "verb" => phrases.verbs.push(text),
                "tail" => phrases.tails.push(text),
                "ask" => phrases.asks.push(text),
                name => {
                    let kind = FACT_KINDS.into_iter().find(|kind| kind.name() == name);
                    phrases.facts.extend(kind.map(|kind| (kind, text)));
                }
            }
        }
        phrases
    }
}

/// Says whether a number or a name of a key occurs in the earlier sentence.
fn shares_value(key: &str, earlier: &str) -> bool {
    let is_value = |word: &&str| {
        word.starts_with(|c: char| c.is_ascii_digit())
            || NAMES
                .split(' ')
                .chain(CITIES.split(' '))
                .any(|name| name == *word)
    };
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric());
        words.filter(is_value).map(str::to_owned).collect()
    };
    let known = words(earlier);
    words(key).iter().any(|word| known.contains(word))
}

/// Fills the slots of a template.
fn fill(template: &str, random: &mut XorShift) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (slot, after) = after.split_once('}').expect("templates close their braces");
        out.push_str(before);
        out.push_str(&slot_value(slot, random));
        rest = after;
    }
    out + rest
}

fn slot_value(slot: &str, random: &mut XorShift) -> String {
    match slot {
        "name" => pick_word(NAMES, random).to_owned(),
        "city" => pick_word(CITIES, random).to_owned(),
        "path" => {
            let [first, second] = [FOLDERS; 2].map(|words| pick_word(words, random));
            let number = random.below(90) + 10;
            format!("{first}/{second}-{number}/{}", pick_word(FILES, random))
        }
        "h" => (random.below(5) + 5).to_string(),
        "d" => (random.below(17) + 4).to_string(),
        "m" => (random.below(79) + 11).to_string(),
        _ => (random.below(870) + 120).to_string(),
    }
}

fn pick_word<'a>(words: &'a str, random: &mut XorShift) -> &'a str {
    let words: Vec<&str> = words.split(' ').collect();
    words[random.below(words.len())]
}

/// Removes the brackets, and returns their contents.
fn remove_brackets(text: &str) -> (String, Vec<String>) {
    let keys = text.split('[').skip(1).map(|rest| {
        let (key, _) = rest
            .split_once(']')
            .expect("templates close their brackets");
        key.to_owned()
    });
    (text.replace(['[', ']'], ""), keys.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_templates_of_every_kind() {
        for language in LANGUAGES {
            let phrases = language.phrases();
            for kind in FACT_KINDS {
                let of_kind = phrases.facts.iter().filter(|(of, _)| *of == kind);
                let templates: Vec<&str> = of_kind.map(|(_, template)| *template).collect();
                let least = if language == Language::English { 6 } else { 2 };
                assert!(templates.len() >= least, "{language:?} {kind:?}");
                for template in templates {
                    let is_corrected = template.contains(" || ");
                    assert_eq!(is_corrected, kind == FactKind::Corrected, "{template}");
                    assert_eq!(template.matches('[').count(), 1, "{template}");
                    assert!(!template.contains('`'), "{template}");
                }
            }
            let lists = [
                &phrases.subjects,
                &phrases.verbs,
                &phrases.tails,
                &phrases.asks,
            ];
            assert!(lists.iter().all(|list| list.len() >= 3), "{language:?}");
        }
    }

    #[test]
    fn a_correction_never_says_the_same_value_again() {
        let mut random = XorShift::new(11);
        for _ in 0..3_000 {
            for language in [Language::English, Language::Spanish] {
                let fact = language.fact(FactKind::Corrected, &mut random);
                let earlier = fact.earlier.expect("a correction corrects something");
                assert!(
                    !shares_value(&fact.keys[0], &earlier),
                    "{earlier} {}",
                    fact.text
                );
            }
        }
    }

    #[test]
    fn cue_words_stand_in_a_part_of_the_sentences_only() {
        let cues = [
            "must", "always", "never", "do not", "please", "decided", "remember",
        ];
        let facts = &Language::English.phrases().facts;
        let with_cue = facts.iter().filter(|(_, template)| {
            let lower = template.to_lowercase();
            cues.iter().any(|cue| lower.contains(cue))
        });
        assert!(with_cue.count() * 4 < facts.len());
    }

    #[test]
    fn what_stands_in_brackets_is_the_key() {
        let mut random = XorShift::new(7);
        let text = fill("It [weighs {n} kilograms] when wet.", &mut random);
        let (text, keys) = remove_brackets(&text);
        assert!(text.contains(&keys[0]) && !text.contains('['));
        assert!(keys[0].starts_with("weighs ") && keys[0].ends_with(" kilograms"));
    }
}
