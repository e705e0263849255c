//! Relations in a sentence: one thing becomes, replaces or precedes another.

use super::clause::{contrast, contrast_behind};
use super::tables::{WIDE_BECOMES, among};
use super::words::{Word, WordKind};

/// Two things in an order that matters.
#[derive(Clone, Debug)]
pub struct Relation {
    pub from: Vec<Word>,
    pub to: Vec<Word>,
    pub kind: RelationKind,
}

/// The relation between two things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelationKind {
    /// The first becomes the second.
    Becomes,
    /// The second is wanted in place of the first.
    Instead,
    /// The first comes before the second.
    Precedes,
}

/// The limit of relations in a message.
const MAX_RELATIONS: usize = 1000;

/// Finds the relations of a text that was split into words.
pub fn find_relations(text: &str, words: &[Word]) -> Vec<Relation> {
    let hard = |word: &Word| {
        matches!(
            word.kind,
            WordKind::Mark('.' | ';' | '。' | '!' | '?' | '！' | '？' | '；' | '\n')
        )
    };
    let mut out = Vec::new();
    for sentence in words.split(hard) {
        if out.len() < MAX_RELATIONS {
            read_sentence(text, sentence, &mut out);
        }
    }
    out.retain(|relation| !relation.from.is_empty() && !relation.to.is_empty());
    out
}

fn read_sentence(text: &str, words: &[Word], out: &mut Vec<Relation>) {
    let has = |names: &[&str]| {
        words
            .iter()
            .any(|word| names.iter().any(|name| word.means(name)))
    };
    let turns = has(&[
        "rename", "change", "move", "use", "increase", "decrease", "replace",
    ]);
    let replaces = has(&["replace"]);
    let before_turns = out.len();
    for at in 0..words.len() {
        let rest = text.get(words[at].at..).unwrap_or("");
        let (from, to, kind) = if let Some(len) = contrast(words, at) {
            let (unwanted, wanted) = if words[..at].iter().any(Word::carries_meaning) {
                (nouns_after(words, at + len), nouns_before(words, at))
            } else {
                let comma = words.iter().position(Word::is_mark).unwrap_or(words.len());
                (nouns_before(words, comma), nouns_after(words, comma + 1))
            };
            (unwanted, wanted, RelationKind::Instead)
        } else if contrast_behind(text, &words[at]).is_some() {
            let (unwanted, wanted) = (nouns_before(words, at), nouns_after(words, at + 1));
            (unwanted, wanted, RelationKind::Instead)
        } else if rest.starts_with("而不是") || rest.starts_with("而非") || excludes(words, at)
        {
            let end = at - usize::from(at > 0 && words[at - 1].is_mark());
            let (unwanted, wanted) = (nouns_after(words, at + 1), nouns_before(words, end));
            (unwanted, wanted, RelationKind::Instead)
        } else if let Some(first) = order(&words[at].text, rest) {
            // Actions come before or after, too.
            let wanted = |word: &Word| !word.means("run");
            let one = nearest(words[..at].iter().rev(), wanted);
            let two = nearest(words[at + 1..].iter(), wanted);
            let (one, two) = if first { (one, two) } else { (two, one) };
            (one, two, RelationKind::Precedes)
        } else if (turns || from_to(words, at)) && becomes(text, words, at, replaces) {
            let kind = if replaces {
                RelationKind::Instead
            } else {
                RelationKind::Becomes
            };
            (nouns_before(words, at), nouns_after(words, at + 1), kind)
        } else {
            continue;
        };
        out.push(Relation { from, to, kind });
    }
    // "call A B"
    let call = words
        .iter()
        .position(|word| word.means("rename") && !among("rename name renaming", &word.text));
    if let Some(at) = call.filter(|_| out.len() == before_turns) {
        let mut rest = words[at + 1..]
            .iter()
            .filter(|word| word.carries_meaning() && !word.is_action());
        if let (Some(one), Some(two)) = (rest.next(), rest.next()) {
            let (from, to) = (vec![one.clone()], vec![two.clone()]);
            out.push(Relation {
                from,
                to,
                kind: RelationKind::Becomes,
            });
        }
    }
}

/// Says whether a negation excludes a noun: "tabs, not spaces".
fn excludes(words: &[Word], at: usize) -> bool {
    let next = words[at + 1..]
        .iter()
        .find(|word| word.kind != WordKind::Stop);
    let noun = next.is_some_and(|word| word.carries_meaning() && !word.is_action());
    let before = at.checked_sub(1).and_then(|at| words.get(at));
    let apart = before.is_some_and(|word| {
        word.kind == WordKind::Mark(',') || word.carries_meaning() && !word.is_action()
    });
    apart && noun && among("not nicht pas non не nao", &words[at].text)
}

/// Says whether a word ends one side of a relation.
fn ends_side(word: &Word) -> bool {
    word.is_mark()
        || among(
            "and und et y e и or oder ou o but aber from von с",
            &word.text,
        )
}

/// Returns the nearest nouns before `at`, on the same side.
fn nouns_before(words: &[Word], at: usize) -> Vec<Word> {
    nearest(words[..at.min(words.len())].iter().rev(), |word| {
        !word.is_action()
    })
}

/// Returns the nearest nouns from `at` on, on the same side.
fn nouns_after(words: &[Word], at: usize) -> Vec<Word> {
    nearest(words.get(at..).unwrap_or_default().iter(), |word| {
        !word.is_action()
    })
}

/// Returns the nearest three words that carry meaning, up to the end of the side.
fn nearest<'a>(words: impl Iterator<Item = &'a Word>, wanted: fn(&Word) -> bool) -> Vec<Word> {
    words
        .take_while(|word| !ends_side(word))
        .filter(|word| word.carries_meaning() && wanted(word))
        .take(3)
        .cloned()
        .collect()
}

/// Returns whether the first of two comes first; none if a word says nothing of the order.
fn order(word: &str, rest: &str) -> Option<bool> {
    if among("before bevor vor avant antes prima перед до", word) || rest.starts_with("之前")
    {
        return Some(true);
    }
    let later = among("after nach nachdem apres despues depois dopo после", word);
    (later || rest.starts_with("之后")).then_some(false)
}

/// Says whether "from" precedes a "to".
fn from_to(words: &[Word], at: usize) -> bool {
    let near = words[..at].iter().rev().take(6);
    let from = near
        .into_iter()
        .any(|word| among("from von de da с", &word.text));
    from && among("to auf zu nach a para на", &words[at].text)
}

/// Says whether a word leads from a thing to its result.
fn becomes(text: &str, words: &[Word], at: usize, replaces: bool) -> bool {
    let word = &words[at];
    if word.kind == WordKind::Mark('→') {
        return true;
    }
    if at + 1 < words.len() && contrast(words, at + 1).is_some() {
        return false;
    }
    // A "to" before a verb is none.
    let verb_follows = words.get(at + 1).is_some_and(Word::is_action);
    let english = words
        .iter()
        .any(|word| among("the to into and with please", &word.text));
    let marks = if english {
        "to into"
    } else {
        "in zu auf nach en a para на в vers"
    };
    if among(marks, &word.text) && !verb_follows {
        return words[..at].iter().any(Word::carries_meaning);
    }
    if replaces && among("with by for durch mit par por con на", &word.text) {
        return true;
    }
    let rest = text.get(word.at..).unwrap_or("");
    if WIDE_BECOMES.start_of(rest).is_some() {
        return true;
    }
    // The Korean object particle behind a name.
    let len = rest
        .find(|c: char| !c.is_alphanumeric())
        .unwrap_or(rest.len());
    matches!(&rest[..len], "를" | "을")
}
