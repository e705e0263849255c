//! The names in a request: references, and in the user's words also quotations, names in any script and rare words.

use infold_wire::terms::{Language, is_stop_word};

use crate::references;

/// The most names in a request: a text with more is a document, not a question.
pub(super) const MAX_NAMES: usize = 64;
/// The most references among them.
const MAX_REFERENCES: usize = 40;
/// A reference that more messages mention does not say which of them is meant.
pub(super) const MAX_PLACES: usize = 24;
/// A plain word or a name without structure has to be rarer.
const MAX_WORD_PLACES: usize = 6;
/// Shorter numbers are too common.
const MIN_NUMBER_DIGITS: usize = 5;
/// A text with more words is no question; its plain words are not looked up.
const MAX_QUESTION_WORDS: usize = 80;
/// A longer quotation is a text, not a name.
const MAX_QUOTED_BYTES: usize = 80;

/// Something that a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    /// The name as it was written.
    pub text: String,
    /// The normal form for comparisons (see [`normal`]).
    pub form: String,
    /// Whether the name is specific enough by itself: a plain word is not.
    pub is_strong: bool,
    /// Whether the user typed it.
    pub is_typed: bool,
    /// The number of messages that may mention it.
    pub max_places: usize,
}

/// The things that a request names, each once.
#[derive(Default)]
pub(super) struct NameList {
    pub list: Vec<Name>,
    is_typed: bool,
}

impl NameList {
    /// Adds the references of the arguments of calls.
    pub fn add_arguments(&mut self, text: &str) {
        self.is_typed = false;
        references::for_each(text, |reference| self.add_reference(reference));
    }

    /// Adds the names in the user's words.
    pub fn add_typed(&mut self, text: &str) {
        self.is_typed = true;
        references::for_each(text, |reference| self.add_reference(reference));
        for quoted in quotations(text) {
            self.add(quoted, true, MAX_PLACES);
        }
        let words = words(text);
        if words.len() > MAX_QUESTION_WORDS {
            return;
        }
        for (at, word) in words.iter().enumerate() {
            let before = at.checked_sub(1).map(|at| words[at]);
            if word.is_number() {
                for (first, last) in [
                    (before, Some(*word)),
                    (Some(*word), words.get(at + 1).copied()),
                ] {
                    if let (Some(first), Some(last)) = (first, last)
                        && first.is_beside(last, text)
                    {
                        self.add(&text[first.start..last.end], true, MAX_WORD_PLACES);
                    }
                }
            } else if !word.is_stop_word() {
                let is_name = word.is_unspaced || word.is_capital && !word.starts_sentence;
                self.add(word.text, is_name, MAX_WORD_PLACES);
            }
        }
    }

    fn add_reference(&mut self, reference: &str) {
        let is_small_number = reference.len() < MIN_NUMBER_DIGITS
            && reference.bytes().all(|byte| byte.is_ascii_digit());
        if !is_small_number && self.list.len() < MAX_REFERENCES {
            self.add(reference, true, MAX_PLACES);
        }
    }

    fn add(&mut self, text: &str, is_strong: bool, max_places: usize) {
        let form = normal(text);
        let is_known = self.list.iter().any(|known| known.form == form);
        if !is_known && self.list.len() < MAX_NAMES {
            self.list.push(Name {
                text: text.to_owned(),
                form,
                is_strong,
                is_typed: self.is_typed,
                max_places,
            });
        }
    }
}

impl Name {
    /// Returns shorter spellings of a path: its last two parts, and the name of the file.
    pub fn shorter(&self) -> impl Iterator<Item = String> {
        let parts: Vec<&str> = self
            .form
            .split('/')
            .filter(|part| !part.is_empty())
            .collect();
        let lengths = [2, 1].into_iter().filter(|length| *length < parts.len());
        let ends: Vec<String> = lengths
            .map(|length| parts[parts.len() - length..].join("/"))
            // A directory's name alone is a word.
            .filter(|end| end.contains(['.', '/']))
            .collect();
        ends.into_iter()
    }
}

/// Returns the form in which texts are compared: in small letters, with `/` between the parts of a path.
pub(super) fn normal(text: &str) -> String {
    text.to_lowercase().replace('\\', "/")
}

/// Returns the place of a form as a whole word in a normal text.
pub(super) fn find_form(text: &str, form: &str) -> Option<usize> {
    let is_word =
        |c: Option<char>| c.is_some_and(|c| c == '_' || c.is_alphanumeric() && !is_unspaced(c));
    let mut from = 0;
    while let Some(at) = text[from..].find(form).map(|at| from + at) {
        let end = at + form.len();
        // Letters next to a name in a script without spaces need not belong to the same word.
        let parts_before =
            form.starts_with(is_unspaced) || !is_word(text[..at].chars().next_back());
        let parts_after = form.ends_with(is_unspaced) || !is_word(text[end..].chars().next());
        if parts_before && parts_after {
            return Some(at);
        }
        from = at + form.chars().next().map_or(1, char::len_utf8);
    }
    None
}

/// Returns the quotations with a space in a text; single words in quotes are references.
fn quotations(text: &str) -> Vec<&str> {
    const MARKS: [(char, char); 8] = [
        ('"', '"'),
        ('`', '`'),
        ('“', '”'),
        ('„', '“'),
        ('«', '»'),
        ('「', '」'),
        ('『', '』'),
        ('‘', '’'),
    ];
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let start = at + c.len_utf8();
        at = start;
        let Some((_, close)) = MARKS.iter().find(|(open, _)| *open == c) else {
            continue;
        };
        let rest = &text[start..text.floor_char_boundary(start + MAX_QUOTED_BYTES)];
        let Some(length) = rest.find(*close) else {
            continue;
        };
        let inside = rest[..length].trim();
        let is_phrase = inside.contains(' ') || inside.contains(is_unspaced);
        if is_phrase && !inside.contains('\n') && inside.chars().any(char::is_alphanumeric) {
            out.push(inside);
        }
        at = start + length + close.len_utf8();
    }
    out
}

/// A word of the user's.
#[derive(Clone, Copy)]
struct NameWord<'a> {
    text: &'a str,
    start: usize,
    end: usize,
    is_unspaced: bool,
    is_capital: bool,
    starts_sentence: bool,
}

impl NameWord<'_> {
    fn is_number(&self) -> bool {
        self.text.bytes().all(|byte| byte.is_ascii_digit())
    }

    fn is_stop_word(&self) -> bool {
        let least = if self.is_unspaced { 2 } else { 4 };
        let lower = self.text.to_lowercase();
        self.text.chars().count() < least
            || Language::ALL
                .iter()
                .any(|language| is_stop_word(&lower, *language))
    }

    /// Says whether only a space, a colon or an equals sign is between this word and the next.
    fn is_beside(&self, next: NameWord<'_>, text: &str) -> bool {
        let between = &text[self.end..next.start];
        let is_word = |word: &str| word.chars().any(char::is_alphabetic) && word.len() > 1;
        between.trim_matches([' ', ':', '=']).is_empty()
            && !self.is_unspaced
            && !next.is_unspaced
            && (is_word(self.text) || is_word(next.text))
            && !(is_word(self.text) && self.is_stop_word() && self.text.len() < 3)
    }
}

/// Returns the words of a text; of scripts without spaces, runs of one kind of letters that may be a name.
fn words(text: &str) -> Vec<NameWord<'_>> {
    let mut out: Vec<NameWord<'_>> = Vec::new();
    let mut starts_sentence = true;
    let mut chars = text.char_indices().peekable();
    while let Some((start, c)) = chars.next() {
        let kind = LetterKind::of(c);
        if kind == LetterKind::None {
            starts_sentence |= matches!(c, '.' | '!' | '?' | '\n' | ':');
            continue;
        }
        let mut end = start + c.len_utf8();
        while let Some((at, next)) = chars.next_if(|(_, next)| LetterKind::of(*next) == kind) {
            end = at + next.len_utf8();
        }
        let word = &text[start..end];
        let is_unspaced = kind != LetterKind::Spaced;
        // Hiragana is grammar, not names.
        if kind != LetterKind::Hiragana {
            out.push(NameWord {
                text: word,
                start,
                end,
                is_unspaced,
                is_capital: word.starts_with(char::is_uppercase),
                starts_sentence,
            });
        }
        starts_sentence = false;
    }
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LetterKind {
    None,
    Spaced,
    Hiragana,
    Katakana,
    Han,
    OtherUnspaced,
}

impl LetterKind {
    fn of(c: char) -> LetterKind {
        match c {
            '\u{3041}'..='\u{309F}' => LetterKind::Hiragana,
            '\u{30A1}'..='\u{30FF}' => LetterKind::Katakana,
            '\u{3400}'..='\u{9FFF}' | '々' => LetterKind::Han,
            c if is_unspaced(c) => LetterKind::OtherUnspaced,
            c if c == '_' || c.is_alphanumeric() => LetterKind::Spaced,
            _ => LetterKind::None,
        }
    }
}

/// Says whether a letter belongs to a script that writes no spaces between words. Hangul is written with spaces.
pub(super) fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}' | '\u{3005}'..='\u{3007}'
        | '\u{3041}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{FF66}'..='\u{FF9F}'
        | '\u{20000}'..='\u{3FFFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> (Vec<String>, Vec<String>) {
        let mut names = NameList::default();
        names.add_typed(text);
        let (strong, weak): (Vec<Name>, Vec<Name>) =
            names.list.into_iter().partition(|name| name.is_strong);
        let texts = |names: Vec<Name>| names.into_iter().map(|name| name.text).collect();
        (texts(strong), texts(weak))
    }

    #[test]
    fn quotations_numbers_with_a_unit_and_names_of_any_script_are_named() {
        let (strong, weak) = names(
            "Did Priya say \"blue green deploy\" waits 30 minutes on port 80? Ask 田中さん in Zürich.",
        );
        assert_eq!(
            strong,
            [
                "blue green deploy",
                "Priya",
                "waits 30",
                "30 minutes",
                "port 80",
                "田中",
                "Zürich"
            ]
        );
        assert_eq!(
            weak,
            ["blue", "green", "deploy", "waits", "minutes", "port"]
        );
    }

    #[test]
    fn a_form_is_found_as_a_whole_word_in_any_spelling() {
        assert_eq!(
            find_form(&normal(r"see C:\Work\Net\Retry.rs"), "net/retry.rs"),
            Some(12)
        );
        assert_eq!(find_form("myretry.rs retry.rs", "retry.rs"), Some(11));
        assert_eq!(find_form("昨日田中さんが", "田中"), Some(6));
        assert_eq!(find_form("reporter 80", "port"), None);
    }

    #[test]
    fn a_path_has_shorter_spellings() {
        let mut names = NameList::default();
        names.add_arguments("/home/ann/app/src/net/retry.rs");
        let shorter: Vec<String> = names.list[0].shorter().collect();
        assert_eq!(shorter, ["net/retry.rs", "retry.rs"]);
    }
}
