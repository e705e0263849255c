//! Splits a text into words in the form in which claims are compared: folded, with their kind and meaning.

use super::tables::{
    KOREAN_STOP, Meaning, NEUTRAL, PARTICLES, STOP, SYNONYMS, UNITS, VERB_ENDINGS, VERB_PAIRS,
    WIDE_STOP,
};
use super::word_form::{
    fold, inflects, is_acronym, is_choice, is_date, is_name, is_wide, number_of, without_article,
};

/// A word, or a mark that separates clauses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// In small letters without accents.
    pub text: String,
    pub kind: WordKind,
    /// The word's line in the table of synonyms.
    pub meaning: Option<Meaning>,
    /// The byte of the text where it starts.
    pub at: usize,
    pub end: usize,
    /// Whether the word is a genitive: `user's`.
    pub owns: bool,
    /// The number of its part, where "and" and commas separate parts; set by `split_clauses`.
    pub part: u16,
}

/// The meanings that "change" may stand for.
pub const CHANGES: [&str; 6] = ["increase", "decrease", "rename", "replace", "use", "fix"];

/// The way in which a word is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordKind {
    /// A name, number, path or value, which must be the same one.
    Fact,
    Plain,
    /// A word without a meaning of its own: "problem", "approach".
    Neutral,
    /// A word that every sentence has.
    Stop,
    /// A mark between clauses.
    Mark(char),
}

/// Splits a text into words and marks, at most `max_words`.
pub fn split_words(text: &str, max_words: usize) -> Vec<Word> {
    let mut out: Vec<Word> = Vec::new();
    let mut rest = text;
    let mut code = false;
    while let Some(c) = rest.chars().next() {
        if out.len() >= max_words {
            break;
        }
        let at = text.len() - rest.len();
        let next = at + c.len_utf8();
        if is_wide(c) {
            let len = push_wide(rest, at, &mut out);
            rest = &rest[len..];
        } else if is_word_char(c) {
            let len = rest
                .find(|c| !is_word_char(c) || is_wide(c))
                .unwrap_or(rest.len());
            push_run(&rest[..len], at, code, &mut out);
            rest = &rest[len..];
        } else {
            code ^= c == '`';
            if ",;()—–→，；：。、！？!?".contains(c) {
                out.push(Word::mark(c, at));
            }
            rest = &text[next..];
            if c == '\n' && begins_line(rest) {
                out.push(Word::mark(c, at));
            }
        }
    }
    join_pairs(&mut out);
    join_units(&mut out);
    out
}

/// Says whether a line does not continue the one before: a blank one, an item, a heading.
fn begins_line(line: &str) -> bool {
    let line = line.trim_start_matches([' ', '\t']);
    line.starts_with(|c: char| {
        c.is_ascii_digit() || matches!(c, '\n' | '\r' | '-' | '*' | '•' | '#' | '>' | '`')
    })
}

/// Says whether a character may occur within a word or name.
fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || "_-/.:'’@#+\\%$=~*&<>".contains(c)
}

/// Pushes the words of a run of characters without a space.
fn push_run(run: &str, at: usize, code: bool, out: &mut Vec<Word>) {
    if run == "-" || run == "--" || run == "->" || run == "=>" {
        out.push(Word::mark(if run.ends_with('>') { '→' } else { '–' }, at));
        return;
    }
    let edge = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$' | '~'));
    let front = run.trim_start_matches(edge);
    let word = front.trim_end_matches(|c| edge(c) && !matches!(c, '%' | '+' | '#'));
    // `--force`, `.env` and `legacy/` are names.
    let flag = run.starts_with("--")
        || run.trim_end_matches(['.', ',']).ends_with('/')
        || run.starts_with('.') && word.len() > 1 && run.len() > word.len() + 1;
    let start = at + (run.len() - front.len());
    if let Some((one, two)) = word
        .split_once('/')
        .filter(|_| !code && !flag && is_choice(word))
    {
        out.push(Word::new(one, false, start, start + one.len()));
        let second = start + one.len() + 1;
        out.push(Word::new(two, false, second, start + word.len()));
    } else if !word.is_empty() {
        let bare = word.trim_end_matches("'s").trim_end_matches("’s");
        let owns = bare.len() < word.len();
        let bare = without_article(bare);
        let first = out
            .last()
            .is_none_or(|last| matches!(last.kind, WordKind::Mark('.' | ':' | '!' | '?' | '\n')));
        let fact = flag || code || is_name(bare, first);
        out.push(Word {
            owns,
            ..Word::new(bare, fact, start, start + word.len())
        });
    }
    let behind = if word.is_empty() {
        run
    } else {
        &front[word.len()..]
    };
    if let Some(end) = behind.chars().find(|c| matches!(c, '.' | ':')) {
        out.push(Word::mark(end, start + word.len()));
    }
}

/// Returns the meaning of a word, also of its inflections.
pub fn meaning_of(text: &str) -> Option<Meaning> {
    let meanings = &SYNONYMS.words;
    if let Some(meaning) = meanings.get(text) {
        return Some(*meaning);
    }
    // "umzubenennen"
    let parted = text.ends_with("en").then(|| text.replacen("zu", "", 1));
    if let Some(meaning) = parted.and_then(|text| meanings.get(&text)) {
        return Some(*meaning);
    }
    VERB_ENDINGS.iter().find_map(|end| {
        let base = text
            .strip_suffix(end)
            .filter(|base| base.len() >= 3 || end == "ing" && base.len() == 2)?;
        let mut chars = base.chars().rev();
        let is_doubled = chars.next() == chars.next();
        let meaning = meanings
            .get(base)
            .or_else(|| meanings.get(&format!("{base}e")))
            .or_else(|| meanings.get(&base[..base.len() - 1]).filter(|_| is_doubled));
        meaning.copied()
    })
}

/// Pushes the word that a text of a script without spaces starts with; returns its bytes.
fn push_wide(rest: &str, at: usize, out: &mut Vec<Word>) -> usize {
    let (text, len, kind, meaning) = first_wide_word(rest);
    out.push(Word {
        kind,
        meaning,
        text: text.to_owned(),
        end: at + text.len(),
        ..Word::mark(' ', at)
    });
    len
}

/// Returns the first word of a text, the bytes that it takes there, its kind and its meaning.
fn first_wide_word(rest: &str) -> (&str, usize, WordKind, Option<Meaning>) {
    let is_hangul = |c: char| matches!(c, '\u{ac00}'..='\u{d7af}');
    let is_katakana = |c: char| matches!(c, '\u{30a0}'..='\u{30ff}');
    let stop_if = |is_stop| {
        if is_stop {
            WordKind::Stop
        } else {
            WordKind::Plain
        }
    };
    let run = |belongs: fn(char) -> bool| &rest[..rest.find(|c| !belongs(c)).unwrap_or(rest.len())];
    let first = rest.chars().next().unwrap_or(' ');
    let mut phrases = SYNONYMS.phrases.iter();
    let phrase = phrases.find(|(phrase, _)| rest.starts_with(phrase));
    if is_hangul(first) {
        let whole = run(is_hangul);
        if let Some((_, meaning)) = phrase {
            return (whole, whole.len(), WordKind::Plain, Some(*meaning));
        }
        if PARTICLES.has(whole) {
            return (whole, whole.len(), WordKind::Stop, None);
        }
        let cut = PARTICLES
            .iter()
            .find_map(|end| whole.strip_suffix(end).filter(|base| !base.is_empty()));
        let base = cut.unwrap_or(whole);
        return (base, whole.len(), stop_if(KOREAN_STOP.has(base)), None);
    }
    if let Some((phrase, meaning)) = phrase {
        return (phrase, phrase.len(), WordKind::Plain, Some(*meaning));
    }
    if is_katakana(first) {
        let word = run(is_katakana);
        return (word, word.len(), stop_if(rest.starts_with("ユーザ")), None);
    }
    let is_hiragana = matches!(first, '\u{3040}'..='\u{309f}');
    let is_stop = is_hiragana || WIDE_STOP.iter().any(|all| all.contains(first));
    let word = &rest[..first.len_utf8()];
    (word, word.len(), stop_if(is_stop), None)
}

/// Joins a number and its unit to one value: `300 ms` is `300ms`.
fn join_units(words: &mut Vec<Word>) {
    let is_number =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    for at in (1..words.len()).rev() {
        if let Some(unit) = UNITS.get(&words[at].text)
            && is_number(&words[at - 1].text)
        {
            let unit_end = words.remove(at).end;
            let number = &mut words[at - 1];
            number.text.push_str(unit);
            (number.end, number.kind, number.meaning) = (unit_end, WordKind::Fact, None);
        }
    }
}

/// Joins two words that mean something together.
fn join_pairs(words: &mut Vec<Word>) {
    for at in (1..words.len()).rev() {
        let (first, second) = (&words[at - 1].text, &words[at].text);
        let found = VERB_PAIRS.iter().find(|(pair, _)| {
            pair.split_once(' ')
                .is_some_and(|(one, two)| first.starts_with(one) && second == two)
        });
        if let Some((_, same)) = found {
            let (start, end) = (words[at - 1].at, words[at].end);
            words[at - 1] = Word::new(same, false, start, end);
            words.remove(at);
        }
    }
}

impl Word {
    fn mark(c: char, at: usize) -> Word {
        Word {
            text: String::new(),
            kind: WordKind::Mark(c),
            meaning: None,
            at,
            end: at,
            owns: false,
            part: 0,
        }
    }

    /// Reads a word; `is_fact` means that its form is that of a name or value.
    fn new(word: &str, is_fact: bool, at: usize, end: usize) -> Word {
        let text = fold(word);
        let is_neutral = NEUTRAL.contains(&text);
        // A neutral word is not a form of one that has a meaning.
        let meaning = if is_neutral && !SYNONYMS.words.contains_key(&text) {
            None
        } else {
            meaning_of(&text)
        };
        let number = number_of(&text);
        let kind = if number.is_some() || is_fact && is_acronym(word) && !is_neutral {
            WordKind::Fact
        } else if STOP.contains(&text) {
            WordKind::Stop
        } else if meaning.is_some() && !(is_fact && word.contains(['_', '/', '.', '=', ':'])) {
            WordKind::Plain
        } else if is_neutral {
            WordKind::Neutral
        } else if is_fact || is_date(&text) {
            WordKind::Fact
        } else if text.chars().count() < 2 && !text.chars().all(|c| c.is_ascii_digit()) {
            WordKind::Stop
        } else {
            WordKind::Plain
        };
        Word {
            kind,
            meaning: meaning.filter(|_| number.is_none()),
            text: number.map_or(text, str::to_owned),
            end,
            ..Word::mark(' ', at)
        }
    }

    /// Says whether it carries meaning.
    pub fn carries_meaning(&self) -> bool {
        matches!(self.kind, WordKind::Fact | WordKind::Plain)
    }

    /// Says whether the word is a verb of an action.
    pub fn is_action(&self) -> bool {
        self.meaning.is_some_and(|meaning| meaning.is_action) && self.carries_meaning()
    }

    /// Says whether doing it by mistake is costly.
    pub fn is_costly(&self) -> bool {
        self.meaning.is_some_and(|meaning| meaning.is_costly) && self.carries_meaning()
    }

    /// Says whether two verbs undo each other.
    pub fn opposes(&self, other: &Word) -> bool {
        const PAIRS: [(&str, &str); 4] = [
            ("add", "remove"),
            ("keep", "remove"),
            ("enable", "disable"),
            ("increase", "decrease"),
        ];
        let pair = |one: &Word, two: &Word| PAIRS.iter().any(|(a, b)| one.means(a) && two.means(b));
        pair(self, other) || pair(other, self)
    }

    /// Says whether the word is a mark between clauses.
    pub fn is_mark(&self) -> bool {
        matches!(self.kind, WordKind::Mark(_))
    }

    /// Says whether its line of the table of synonyms has this name.
    pub fn means(&self, name: &str) -> bool {
        self.meaning.is_some_and(|meaning| meaning.name == name)
    }

    /// Says whether two words are the same one, inflected, or mean the same.
    pub fn matches(&self, other: &Word) -> bool {
        if self.text == other.text {
            return true;
        }
        if let (Some(one), Some(two)) = (self.meaning, other.meaning) {
            return one.id == two.id || self.means("change") && CHANGES.contains(&two.name);
        }
        let spelled = self.text.chars().all(char::is_alphabetic);
        if (self.kind != WordKind::Fact || spelled) && inflects(&self.text, &other.text) {
            return true;
        }
        // A part of a name: "tests" of `checkpoint_tests`.
        let parts = || {
            other
                .text
                .split(['_', '-', '/', '.', '('])
                .filter(|part| part.len() > 2)
        };
        spelled
            && !self.is_action()
            && self.text.len() > 2
            && parts().count() > 1
            && parts().any(|part| part == self.text || inflects(part, &self.text))
    }
}
