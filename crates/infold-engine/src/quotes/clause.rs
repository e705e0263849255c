//! Clauses of a sentence: what each is about, and whether it says no.

use super::words::{Kind, Word};

/// Words that stand or fall together.
#[derive(Clone, Debug, Default)]
pub struct Clause {
    /// Those that carry meaning.
    pub words: Vec<Word>,
    /// Whether it says what is not to be.
    pub negated: bool,
    /// Whether it says "it" of what the one before is about.
    points: bool,
    /// Whether it is about the case that the one before is not about.
    otherwise: bool,
    /// Whether it holds only under a condition.
    pub conditional: bool,
    /// Whether it tells what somebody does, and asks for nothing.
    pub states: bool,
    /// Prepositions, with the part that each stands in.
    prepositions: Vec<(u16, String)>,
}

const SPLITTING: &str = "if once when whenever unless provided wenn falls sobald quand lorsque cuando quando если когда because weil parce porque perche потому while";
const CONDITIONS: &str = "if once when whenever until unless after before provided wenn falls sobald bis quand lorsque si cuando hasta quando ate se finche если когда пока только";
const PREPOSITIONS: &str = "for to as in on under at with fur zu als auf unter mit pour en sur sous avec para em sob com per su con для в на под с";
const TELLERS: &str = "i we ich wir je nous yo nosotros eu nos io noi я мы";
const WISHES: &str = "can could should may want need would let must kann konnen soll sollen sollten will mochte veux peux pouvons devons quiero puedes podemos quero podemos voglio possiamo хочу можем надо";
const OTHERWISE: &str =
    "otherwise else sonst ansonsten sinon autrement otherwise altrimenti senao иначе";
const POINTING: &str =
    "it them that this these those es sie ihn le la les lo los las li eles elas его её ее их them";
const NEGATORS: &str = "not never don't dont doesn't didn't isn't aren't wasn't weren't won't can't cannot couldn't shouldn't wouldn't mustn't avoid avoids avoiding refrain neither nor forbid forbids forbade forbidden prohibit prohibits prohibited ban bans banned disallow rejected declined refused nothing none nicht kein keine keinen keiner keinem keines nie niemals vermeiden vermeide verboten verbietet verbot untersagt pas jamais aucun aucune eviter evite evitez interdit interdire ne nunca jamas tampoco evitar evita evite prohibe prohibio prohibido nao proibido proibe proibiu non mai vieta vietato evitare не нет нельзя никогда избегать запрещает запретил запрещено запрещал нельзя";
const WITHOUT: &str = "without ohne sans sin sem senza без except excepting ausser sauf excepto salvo exceto eccetto tranne кроме";
const WIDE_NEGATORS: [&str; 36] = [
    "不要",
    "别",
    "勿",
    "禁止",
    "不得",
    "不能",
    "不可",
    "不许",
    "不应",
    "不想",
    "不希望",
    "不再",
    "无需",
    "不用",
    "没有",
    "不",
    "ない",
    "ません",
    "なく",
    "ずに",
    "せず",
    "やめ",
    "な。",
    "しないで",
    "禁じ",
    "지 마",
    "지마",
    "지 말",
    "지말",
    "않",
    "말고",
    "금지",
    "없이",
    "안 ",
    "마세요",
    "아니",
];
const BUT: &str = "but aber mais pero mas ma но however sondern";
const AND: &str = "and und et y e и or oder ou o или then dann puis sowie i";

/// The part of words that come from the clause before.
pub const INHERITED: u16 = u16::MAX;

impl Clause {
    /// A clause that says no to these words.
    pub fn negative(words: Vec<Word>) -> Clause {
        Clause {
            words,
            negated: true,
            points: false,
            otherwise: false,
            conditional: false,
            prepositions: Vec::new(),
            states: false,
        }
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

/// Says whether a word only says no.
pub fn is_negator(word: &Word) -> bool {
    among(NEGATORS, &word.text)
}

/// The same of a word by its letters.
pub fn is_negation(word: &str) -> bool {
    among(NEGATORS, word) || among(WITHOUT, word) || word == "no"
}

pub(super) fn among(list: &str, word: &str) -> bool {
    !word.is_empty() && list.split(' ').any(|one| one == word)
}

/// Cuts words into clauses, each with its own yes or no. `text` is what the words were cut from.
pub fn clauses(text: &str, words: &[Word]) -> Vec<Clause> {
    let mut out = vec![Clause::default()];
    let mut starts = vec![0];
    let (mut skip, mut leads) = (0, false);
    let mut part = 0_u16;
    for (at, word) in words.iter().enumerate() {
        if skip > 0 {
            skip -= 1;
            continue;
        }
        let last = out.len() - 1;
        let filled = !out[last].words.is_empty();
        let mut begin = |negated: bool, out: &mut Vec<Clause>| {
            if filled || out[last].negated {
                out.push(Clause::default());
                starts.push(at);
            }
            if let Some(clause) = out.last_mut() {
                clause.negated = negated;
            }
        };
        if let Some(len) = contrast(words, at) {
            begin(true, &mut out);
            skip = len - 1;
        } else if let Some(len) = contrast_behind(text, word) {
            // What stands before is what is not wanted.
            out[last].negated = true;
            out.push(Clause::default());
            starts.push(at + len);
            skip = len - 1;
        } else if separates(words, at) || among(BUT, &word.text) {
            part = part.saturating_add(1);
            // "does not want, that" says no to what follows.
            if filled {
                begin(false, &mut out);
            }
            if let Some(clause) = out.last_mut() {
                clause.conditional |= leads && filled;
                leads &= !filled;
            }
        } else if among(SPLITTING, &word.text) {
            // A condition stands before what it allows, or behind it.
            out[last].conditional |= filled;
            leads |= !filled;
            part = part.saturating_add(1);
            begin(false, &mut out);
        } else if among(WITHOUT, &word.text) {
            begin(true, &mut out);
        } else if negates(words, at) {
            // "tabs, not spaces" and "tabs not spaces" begin anew, "should not" does not.
            let noun = at > 0 && (words[at - 1].counts() && !words[at - 1].acts()) && filled;
            match noun && word.text == "not" {
                true => begin(true, &mut out),
                false => out[last].negated = true,
            }
        } else if word.counts() {
            out[last].words.push(Word {
                part,
                ..word.clone()
            });
            // "do this and" ends a clause in Korean.
            if word.acts() && word.text.ends_with('고') {
                out.push(Clause::default());
                starts.push(at + 1);
            }
        } else {
            if word.is_mark() || among(AND, &word.text) {
                part = part.saturating_add(1);
            }
            if among(PREPOSITIONS, &word.text) {
                out[last].prepositions.push((part, word.text.clone()));
            }
            let tells = among(TELLERS, &word.text);
            let wants = words[at + 1..]
                .iter()
                .take(2)
                .any(|word| among(WISHES, &word.text));
            out[last].states |= tells && !wants;
            out[last].points |= among(POINTING, &word.text);
            out[last].otherwise |= among(OTHERWISE, &word.text);
            out[last].conditional |= among(CONDITIONS, &word.text);
        }
    }
    wide(text, words, &starts, &mut out);
    out.retain(|clause| !clause.words.is_empty());
    inherit(&mut out);
    out
}

/// Finds what scripts without spaces negate.
fn wide(text: &str, words: &[Word], starts: &[usize], out: &mut [Clause]) {
    for (index, clause) in out.iter_mut().enumerate() {
        let Some(first) = starts.get(index).and_then(|at| words.get(*at)) else {
            continue;
        };
        let end = starts.get(index + 1).and_then(|at| words.get(*at));
        let part = &text[first.at..end.map_or(text.len(), |word| word.at)];
        if part.chars().any(super::form::is_wide) {
            let part = part
                .replace("而不是", "")
                .replace("ではなく", "")
                .replace("じゃなく", "")
                .replace("아니라", "");
            clause.negated |= WIDE_NEGATORS.iter().any(|sign| part.contains(sign));
        }
    }
}

/// "It is broken, fix it" asks to fix what is broken.
fn inherit(clauses: &mut [Clause]) {
    for at in 1..clauses.len() {
        if clauses[at].points && !clauses[at].otherwise && clauses[at].words.len() <= 6 {
            let before = clauses[at - 1].words.clone();
            let before = before
                .into_iter()
                .filter(|word| !word.acts())
                .map(|word| Word {
                    part: INHERITED,
                    ..word
                });
            clauses[at].words.extend(before);
        }
    }
}

/// "Do not remove it" is "keep it", and the other way round.
pub fn turned(clause: &Clause) -> Option<Clause> {
    let (from, to) = match clause.negated {
        true => (["remove", "change", "touch"], "keep"),
        false => (["keep"; 3], "remove"),
    };
    let mut words = clause.words.clone();
    let verb = words
        .iter_mut()
        .find(|word| from.iter().any(|name| word.is_group(name)))?;
    let sample = super::words::words(to, 1).pop()?;
    (verb.text, verb.group) = (sample.text, sample.group);
    Some(Clause {
        words,
        negated: !clause.negated,
        points: false,
        otherwise: false,
        conditional: false,
        prepositions: Vec::new(),
        states: false,
    })
}

/// Says whether a new clause begins at a mark or an "and".
fn separates(words: &[Word], at: usize) -> bool {
    let soft = match words[at].kind {
        Kind::Mark('，') => return true,
        // Behind a verb, not between nouns.
        Kind::Mark('、') => {
            return at > 0
                && words[at - 1]
                    .text
                    .chars()
                    .all(|c| matches!(c, '\u{3040}'..='\u{309f}'));
        }
        Kind::Mark(',' | '(' | ')') => true,
        Kind::Mark(_) => return true,
        _ if among(AND, &words[at].text) => true,
        _ => return false,
    };
    let next = words[at + 1..]
        .iter()
        .take(7)
        .take_while(|word| !word.is_mark() && !among(AND, &word.text));
    let next: Vec<&Word> = next.collect();
    // "…, the other two stay": a verb further on makes a clause, too.
    let verb = next.iter().any(|word| word.acts() || word.is_group("want"));
    let no = (0..next.len().min(2)).any(|ahead| negates(words, at + 1 + ahead));
    let only = next.first().is_some_and(|word| {
        among(
            "just only nur solo seulement только solamente apenas soltanto",
            &word.text,
        )
    });
    soft && (verb || no || only)
}

/// Says whether a word negates where it stands.
fn negates(words: &[Word], at: usize) -> bool {
    let word = &words[at];
    let text = |at: usize| words.get(at).map_or("", |word| &*word.text);
    let next = text(at + 1);
    match &*word.text {
        "no" => {
            // "No, do it" says no to something else.
            let next_marks = words.get(at + 1).is_none_or(Word::is_mark);
            let english = words
                .iter()
                .any(|word| among("the this that it we you is again wait", &word.text));
            let calls = at == 0 || words[at - 1].is_mark();
            let verb = words
                .get(at + 1)
                .is_some_and(|word| word.acts() || word.text == "wait");
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
        word => among(NEGATORS, word) && !asks(words, at),
    }
}

/// "Why don't we …" asks for it.
fn asks(words: &[Word], at: usize) -> bool {
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

/// Says whether a verb says that one thing is liked better than another.
pub fn prefers(word: &str) -> bool {
    ["prefer", "prefier"]
        .iter()
        .any(|start| word.starts_with(start))
}

/// The words of "instead of" at a place.
pub(super) fn contrast(words: &[Word], at: usize) -> Option<usize> {
    const MARKS: [(&str, &str); 14] = [
        ("instead", "of"),
        ("rather", "than"),
        ("statt", ""),
        ("anstatt", ""),
        ("anstelle", "von"),
        ("lieu", "de"),
        ("lugar", "de"),
        ("vez", "de"),
        ("inves", "de"),
        ("invece", "di"),
        ("invece", "che"),
        ("вместо", ""),
        ("plutot", "que"),
        ("plutot", "qu'"),
    ];
    let word = &words[at];
    let next = words.get(at + 1).map_or("", |word| &*word.text);
    let between = at > 0
        && words[at - 1].counts()
        && words
            .get(at + 1)
            .is_some_and(|word| word.counts() && !word.acts());
    let over = word.text == "over" || matches!(&*word.text, "a" | "to") && between;
    if over && words[..at].iter().any(|word| prefers(&word.text)) {
        return Some(1);
    }
    let found = MARKS.iter().find(|(one, two)| {
        word.text == *one && (two.is_empty() || next == *two || *two == "de" && next != "of")
    });
    found.map(|(_, two)| if two.is_empty() || next != *two { 1 } else { 2 })
}

/// The words of "instead of" where they stand behind what is not wanted; and those of Chinese before it.
pub(super) fn contrast_behind(text: &str, word: &Word) -> Option<usize> {
    let rest = text.get(word.at..)?;
    let signs = [
        "ではなく",
        "じゃなく",
        "の代わりに",
        "대신",
        "아니라",
        "말고",
    ];
    let found = signs.iter().find(|sign| rest.starts_with(**sign))?;
    // A Hangul word is one, of the others each character is.
    Some(match found.chars().next() {
        Some('대' | '아' | '말') => 1,
        _ => found.chars().count(),
    })
}
