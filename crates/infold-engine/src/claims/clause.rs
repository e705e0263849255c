//! Clauses of a sentence: their words, and whether each is negated.

use super::tables::{
    AND, BUT, CONDITIONS, FIRST_PERSON, INSTEAD_OF, NEGATIONS, OTHERWISE, POINTING, PREPOSITIONS,
    SUBORDINATING, WIDE_INSTEAD_OF, WIDE_NEGATIONS, WISHES, WITHOUT, among,
};
use super::words::{Word, WordKind, split_words};

/// Words that are compared together.
#[derive(Clone, Debug, Default)]
pub struct Clause {
    /// The words that carry meaning.
    pub words: Vec<Word>,
    /// Whether the clause is negated.
    pub negated: bool,
    /// Whether a pronoun in the clause refers to the clause before.
    points: bool,
    /// Whether the clause is about the opposite case of the clause before.
    otherwise: bool,
    /// Whether the clause holds only under a condition.
    pub conditional: bool,
    /// Whether the speaker reports an own action, and requests nothing.
    pub states: bool,
    /// Prepositions, with the number of the part of the clause.
    prepositions: Vec<(u16, String)>,
}

/// The part number of words taken over from the clause before.
pub const INHERITED: u16 = u16::MAX;

impl Clause {
    /// Returns a clause of these words.
    pub fn new(words: Vec<Word>, negated: bool) -> Clause {
        Clause {
            words,
            negated,
            ..Clause::default()
        }
    }

    /// Says whether one of its words matches.
    pub fn has(&self, word: &Word) -> bool {
        self.words.iter().any(|own| word.matches(own))
    }
}

/// Says whether two parts of a text are built alike: "blue for admins and green for guests".
pub fn are_parallel(clauses: &[Clause], one: u16, two: u16) -> bool {
    let words = |part: u16| {
        clauses
            .iter()
            .flat_map(|clause| &clause.words)
            .filter(move |word| word.part == part)
    };
    let leads = |part: u16| {
        clauses
            .iter()
            .flat_map(|clause| &clause.prepositions)
            .filter(move |(at, _)| *at == part)
    };
    words(one).any(|word| words(two).any(|other| word.matches(other)))
        || leads(one).any(|(_, lead)| leads(two).any(|(_, other)| lead == other))
}

/// Says whether a word before a quotation turns it into its opposite.
pub fn is_negation(word: &str) -> bool {
    NEGATIONS.has(word) || WITHOUT.has(word) || word == "no"
}

/// Splits words into clauses, each with its own negation. `text` is the text of the words.
pub fn split_clauses(text: &str, words: &[Word]) -> Vec<Clause> {
    let mut splitter = ClauseSplitter {
        clauses: vec![Clause::default()],
        starts: vec![0],
        part: 0,
        has_condition: false,
    };
    let mut at = 0;
    while at < words.len() {
        at += splitter.read(text, words, at);
    }
    let mut clauses = splitter.clauses;
    negate_wide(text, words, &splitter.starts, &mut clauses);
    clauses.retain(|clause| !clause.words.is_empty());
    inherit(&mut clauses);
    clauses
}

/// The clauses of a text that is being read.
struct ClauseSplitter {
    clauses: Vec<Clause>,
    /// The index of the first word of each clause.
    starts: Vec<usize>,
    /// The number of the current part.
    part: u16,
    /// Whether the text began with a condition whose main clause is still to come.
    has_condition: bool,
}

impl ClauseSplitter {
    /// Reads the word at `at`; returns how many words were read.
    fn read(&mut self, text: &str, words: &[Word], at: usize) -> usize {
        let word = &words[at];
        let is_filled = !self.last().words.is_empty();
        if let Some(len) = contrast(words, at) {
            self.begin(at, true);
            return len;
        }
        if let Some(len) = contrast_behind(text, word) {
            // The clause before is the unwanted alternative.
            self.last().negated = true;
            self.push(at + len);
            return len;
        }
        if separates(words, at) || BUT.has(&word.text) {
            self.next_part();
            // "does not want, that" negates what follows.
            if is_filled {
                self.begin(at, false);
                self.last().conditional |= self.has_condition;
                self.has_condition = false;
            }
        } else if SUBORDINATING.has(&word.text) {
            // A condition precedes or follows its main clause.
            self.last().conditional |= is_filled;
            self.has_condition |= !is_filled;
            self.next_part();
            self.begin(at, false);
        } else if WITHOUT.has(&word.text) {
            self.begin(at, true);
        } else if negates(words, at) {
            // "tabs, not spaces" and "tabs not spaces" begin a clause, "should not" does not.
            let follows_noun =
                at > 0 && words[at - 1].carries_meaning() && !words[at - 1].is_action();
            if follows_noun && is_filled && word.text == "not" {
                self.begin(at, true);
            } else {
                self.last().negated = true;
            }
        } else if word.carries_meaning() {
            let part = self.part;
            self.last().words.push(Word {
                part,
                ..word.clone()
            });
            // "do this and" ends a clause in Korean.
            if word.is_action() && word.text.ends_with('고') {
                self.push(at + 1);
            }
        } else {
            self.read_function_word(word, &words[at + 1..]);
        }
        1
    }

    fn read_function_word(&mut self, word: &Word, rest: &[Word]) {
        if word.is_mark() || AND.has(&word.text) {
            self.next_part();
        }
        let part = self.part;
        let clause = self.last();
        if PREPOSITIONS.has(&word.text) {
            clause.prepositions.push((part, word.text.clone()));
        }
        let wishes = rest.iter().take(2).any(|word| WISHES.has(&word.text));
        clause.states |= FIRST_PERSON.has(&word.text) && !wishes;
        clause.points |= POINTING.has(&word.text);
        clause.otherwise |= OTHERWISE.has(&word.text);
        clause.conditional |= CONDITIONS.has(&word.text);
    }

    fn last(&mut self) -> &mut Clause {
        self.clauses.last_mut().expect("there is always a clause")
    }

    fn next_part(&mut self) {
        self.part = self.part.saturating_add(1);
    }

    /// Adds a clause that starts with the word at `start`.
    fn push(&mut self, start: usize) {
        self.clauses.push(Clause::default());
        self.starts.push(start);
    }

    /// Begins a clause, unless the last one is still empty.
    fn begin(&mut self, start: usize, negated: bool) {
        let last = self.last();
        if !last.words.is_empty() || last.negated {
            self.push(start);
        }
        self.last().negated = negated;
    }
}

/// Marks clauses with negations of scripts without spaces.
fn negate_wide(text: &str, words: &[Word], starts: &[usize], out: &mut [Clause]) {
    for (index, clause) in out.iter_mut().enumerate() {
        let Some(first) = starts.get(index).and_then(|at| words.get(*at)) else {
            continue;
        };
        let end = starts.get(index + 1).and_then(|at| words.get(*at));
        let part = &text[first.at..end.map_or(text.len(), |word| word.at)];
        if part.chars().any(super::word_form::is_wide) {
            let part = part
                .replace("而不是", "")
                .replace("ではなく", "")
                .replace("じゃなく", "")
                .replace("아니라", "");
            clause.negated |= WIDE_NEGATIONS.occurs_in(&part);
        }
    }
}

/// Adds the nouns of the clause before to clauses that refer to it: "It is broken, fix it".
fn inherit(clauses: &mut [Clause]) {
    for at in 1..clauses.len() {
        if clauses[at].points && !clauses[at].otherwise && clauses[at].words.len() <= 6 {
            let before = clauses[at - 1].words.clone();
            let before = before
                .into_iter()
                .filter(|word| !word.is_action())
                .map(|word| Word {
                    part: INHERITED,
                    ..word
                });
            clauses[at].words.extend(before);
        }
    }
}

/// Returns the same clause with the opposite verb: "do not remove it" is "keep it".
pub fn invert(clause: &Clause) -> Option<Clause> {
    let (from, to) = if clause.negated {
        (&["remove", "change", "touch"][..], "keep")
    } else {
        (&["keep"][..], "remove")
    };
    let mut words = clause.words.clone();
    let verb = words
        .iter_mut()
        .find(|word| from.iter().any(|name| word.means(name)))?;
    let opposite = split_words(to, 1).pop()?;
    (verb.text, verb.meaning) = (opposite.text, opposite.meaning);
    Some(Clause::new(words, !clause.negated))
}

/// Says whether a new clause begins at a mark or an "and".
fn separates(words: &[Word], at: usize) -> bool {
    match words[at].kind {
        WordKind::Mark('，') => return true,
        // It separates clauses behind a verb, and nouns otherwise.
        WordKind::Mark('、') => {
            return at > 0
                && words[at - 1]
                    .text
                    .chars()
                    .all(|c| matches!(c, '\u{3040}'..='\u{309f}'));
        }
        WordKind::Mark(',' | '(' | ')') => {}
        WordKind::Mark(_) => return true,
        _ if AND.has(&words[at].text) => {}
        _ => return false,
    }
    let next = words[at + 1..]
        .iter()
        .take(7)
        .take_while(|word| !word.is_mark() && !AND.has(&word.text));
    let next: Vec<&Word> = next.collect();
    // "…, the other two stay": a verb further on makes a clause, too.
    let verb = next
        .iter()
        .any(|word| word.is_action() || word.means("want"));
    let no = (0..next.len().min(2)).any(|ahead| negates(words, at + 1 + ahead));
    let only = next.first().is_some_and(|word| {
        among(
            "just only nur solo seulement только solamente apenas soltanto",
            &word.text,
        )
    });
    verb || no || only
}

/// Says whether a word is a negation at its place.
fn negates(words: &[Word], at: usize) -> bool {
    let word = &words[at];
    let text = |at: usize| words.get(at).map_or("", |word| &*word.text);
    let next = text(at + 1);
    match &*word.text {
        "no" => {
            // "No, do it" denies something else.
            let next_marks = words.get(at + 1).is_none_or(Word::is_mark);
            let english = words
                .iter()
                .any(|word| among("the this that it we you is again wait", &word.text));
            let calls = at == 0 || words[at - 1].is_mark();
            let verb = words
                .get(at + 1)
                .is_some_and(|word| word.is_action() || word.text == "wait");
            !(next_marks || among("problem worries", next) || calls && verb && english)
        }
        "stop" | "stops" | "stopped" => next.ends_with("ing"),
        "not"
            if among(
                "sure only just so very too really particularly that necessarily",
                next,
            ) =>
        {
            false
        }
        "not" if among("or whether if", text(at.wrapping_sub(1))) => false,
        word => NEGATIONS.has(word) && !is_question(words, at),
    }
}

/// Says whether a negation is part of a question that asks for it: "Why don't we …".
fn is_question(words: &[Word], at: usize) -> bool {
    let start = words[..at]
        .iter()
        .rposition(Word::is_mark)
        .map_or(0, |mark| mark + 1);
    let why = words[start..at]
        .iter()
        .any(|word| among("why warum wieso pourquoi porque perche почему", &word.text));
    let subject = words
        .get(at + 1)
        .is_some_and(|word| among("we you i it this that they", &word.text));
    let first = at == start
        || words[start..at]
            .iter()
            .all(|word| among("but and so ok hm then well", &word.text));
    let spoken = among(
        "don't can't couldn't shouldn't isn't aren't wouldn't won't",
        &words[at].text,
    );
    why || spoken && first && subject
}

/// Says whether a verb means that one thing is preferred to another.
pub fn prefers(word: &str) -> bool {
    word.starts_with("prefer") || word.starts_with("prefier")
}

/// Returns how many words at `at` mean "instead of".
pub(super) fn contrast(words: &[Word], at: usize) -> Option<usize> {
    let word = &words[at];
    let next = words.get(at + 1).map_or("", |word| &*word.text);
    let between = at > 0
        && words[at - 1].carries_meaning()
        && words
            .get(at + 1)
            .is_some_and(|word| word.carries_meaning() && !word.is_action());
    let over = word.text == "over" || matches!(&*word.text, "a" | "to") && between;
    if over && words[..at].iter().any(|word| prefers(&word.text)) {
        return Some(1);
    }
    let found = INSTEAD_OF
        .iter()
        .map(|phrase| phrase.split_once(' ').unwrap_or((phrase, "")))
        .find(|(one, two)| {
            word.text == *one && (two.is_empty() || next == *two || *two == "de" && next != "of")
        });
    found.map(|(_, two)| if two.is_empty() || next != two { 1 } else { 2 })
}

/// Returns the number of words that mean "instead of" behind the unwanted alternative.
pub(super) fn contrast_behind(text: &str, word: &Word) -> Option<usize> {
    let rest = text.get(word.at..)?;
    let found = WIDE_INSTEAD_OF.start_of(rest)?;
    // A Korean sign is one word; in the other scripts each character is one.
    Some(match found.chars().next() {
        Some('대' | '아' | '말') => 1,
        _ => found.chars().count(),
    })
}
