//! Relations in a sentence: what becomes of what, and what comes before what.

use super::clause::{among, contrast, contrast_behind};
use super::words::{Kind, Word};

/// One thing becomes another, or comes before it.
#[derive(Clone, Debug)]
pub struct Relation {
    pub from: Vec<Word>,
    pub to: Vec<Word>,
    pub kind: RelationKind,
}

/// How two things stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelationKind {
    /// The first becomes the second.
    Becomes,
    /// The second is wanted in place of the first.
    Instead,
    /// The first comes before the second.
    Precedes,
}

/// More relations than anybody states in a message.
const MAX_RELATIONS: usize = 1000;

/// Finds the relations of a text that was cut into words.
pub fn relations(text: &str, words: &[Word]) -> Vec<Relation> {
    let hard = |word: &Word| {
        matches!(
            word.kind,
            Kind::Mark('.' | ';' | '。' | '!' | '?' | '！' | '？' | '；' | '\n')
        )
    };
    let mut out = Vec::new();
    for sentence in words.split(hard) {
        if out.len() < MAX_RELATIONS {
            of_sentence(text, sentence, &mut out);
        }
    }
    out.retain(|relation| !relation.from.is_empty() && !relation.to.is_empty());
    out
}

fn of_sentence(text: &str, words: &[Word], out: &mut Vec<Relation>) {
    let has = |names: &[&str]| {
        words
            .iter()
            .any(|word| names.iter().any(|name| word.is_group(name)))
    };
    let turns = has(&[
        "rename", "change", "move", "use", "increase", "decrease", "replace",
    ]);
    let replaces = has(&["replace"]);
    let before_turns = out.len();
    for at in 0..words.len() {
        let rest = text.get(words[at].at..).unwrap_or("");
        let (from, to, kind) = if let Some(len) = contrast(words, at) {
            let (not, wanted) = match words[..at].iter().any(Word::counts) {
                true => (after(words, at + len), before(words, at)),
                false => {
                    let comma = words.iter().position(Word::is_mark).unwrap_or(words.len());
                    (before(words, comma), after(words, comma + 1))
                }
            };
            (not, wanted, RelationKind::Instead)
        } else if contrast_behind(text, &words[at]).is_some() {
            (
                before(words, at),
                after(words, at + 1),
                RelationKind::Instead,
            )
        } else if rest.starts_with("而不是") || rest.starts_with("而非") || excludes(words, at)
        {
            (
                after(words, at + 1),
                before(
                    words,
                    at.saturating_sub(usize::from(at > 0 && words[at - 1].is_mark())),
                ),
                RelationKind::Instead,
            )
        } else if let Some(first) = order(&words[at].text, rest) {
            let (one, two) = (all_before(words, at), all_after(words, at + 1));
            let (one, two) = if first { (one, two) } else { (two, one) };
            (one, two, RelationKind::Precedes)
        } else if (turns || from_to(words, at)) && becomes(text, words, at, replaces) {
            let kind = if replaces {
                RelationKind::Instead
            } else {
                RelationKind::Becomes
            };
            (before(words, at), after(words, at + 1), kind)
        } else {
            continue;
        };
        out.push(Relation { from, to, kind });
    }
    // "call A B"
    let call = words
        .iter()
        .position(|word| word.is_group("rename") && !among("rename name renaming", &word.text));
    if let Some(at) = call.filter(|_| out.len() == before_turns) {
        let mut rest = words[at + 1..]
            .iter()
            .filter(|word| word.counts() && !word.acts());
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

/// "tabs, not spaces"
fn excludes(words: &[Word], at: usize) -> bool {
    let next = words[at + 1..].iter().find(|word| word.kind != Kind::Stop);
    let noun = next.is_some_and(|word| word.counts() && !word.acts());
    let before = at.checked_sub(1).and_then(|at| words.get(at));
    let apart =
        before.is_some_and(|word| word.kind == Kind::Mark(',') || word.counts() && !word.acts());
    apart && noun && among("not nicht pas non не nao", &words[at].text)
}

/// Words that end one side of a relation.
fn ends(word: &Word) -> bool {
    word.is_mark()
        || among(
            "and und et y e и or oder ou o but aber from von с",
            &word.text,
        )
}

fn before(words: &[Word], at: usize) -> Vec<Word> {
    let near = words[..at.min(words.len())]
        .iter()
        .rev()
        .take_while(|word| !ends(word));
    near.filter(|word| word.counts() && !word.acts())
        .take(3)
        .cloned()
        .collect()
}

fn after(words: &[Word], at: usize) -> Vec<Word> {
    let near = words
        .get(at..)
        .unwrap_or_default()
        .iter()
        .take_while(|word| !ends(word));
    near.filter(|word| word.counts() && !word.acts())
        .take(3)
        .cloned()
        .collect()
}

/// What is done comes before or after, too.
fn all_before(words: &[Word], at: usize) -> Vec<Word> {
    let near = words[..at].iter().rev().take_while(|word| !ends(word));
    near.filter(|word| word.counts() && !word.is_group("run"))
        .take(3)
        .cloned()
        .collect()
}

fn all_after(words: &[Word], at: usize) -> Vec<Word> {
    let near = words
        .get(at..)
        .unwrap_or_default()
        .iter()
        .take_while(|word| !ends(word));
    near.filter(|word| word.counts() && !word.is_group("run"))
        .take(3)
        .cloned()
        .collect()
}

/// Whether the first of two comes first, if a word says that one does.
fn order(word: &str, rest: &str) -> Option<bool> {
    if among("before bevor vor avant antes prima перед до", word) || rest.starts_with("之前")
    {
        return Some(true);
    }
    let later = among("after nach nachdem apres despues depois dopo после", word);
    (later || rest.starts_with("之后")).then_some(false)
}

/// Says whether "from" stands before a "to".
fn from_to(words: &[Word], at: usize) -> bool {
    let near = words[..at].iter().rev().take(6);
    let from = near
        .into_iter()
        .any(|word| among("from von de da с", &word.text));
    from && among("to auf zu nach a para на", &words[at].text)
}

/// Says whether a word leads from a thing to what becomes of it.
fn becomes(text: &str, words: &[Word], at: usize, replaces: bool) -> bool {
    let word = &words[at];
    if word.kind == Kind::Mark('→') {
        return true;
    }
    if at + 1 < words.len() && contrast(words, at + 1).is_some() {
        return false;
    }
    // A "to" before a verb is none.
    let verb_follows = words.get(at + 1).is_some_and(Word::acts);
    let english = words
        .iter()
        .any(|word| among("the to into and with please", &word.text));
    let marks = if english {
        "to into"
    } else {
        "in zu auf nach en a para на в vers"
    };
    if among(marks, &word.text) && !verb_follows {
        return words[..at].iter().any(Word::counts);
    }
    if replaces && among("with by for durch mit par por con на", &word.text) {
        return true;
    }
    let rest = text.get(word.at..).unwrap_or("");
    let wide = [
        "改成",
        "改为",
        "换成",
        "变成",
        "改叫",
        "设为",
        "命名为",
        "替换为",
        "替换成",
        "改名为",
        "を",
    ];
    if wide.iter().any(|sign| rest.starts_with(sign)) {
        return true;
    }
    // The particle of a Hangul object that stands behind a name.
    let len = rest
        .find(|c: char| !c.is_alphanumeric())
        .unwrap_or(rest.len());
    matches!(&rest[..len], "를" | "을")
}
