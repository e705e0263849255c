//! Decides whether what somebody said supports a claim.

use super::claim::{Claim, Lack};
use super::clause::{Clause, INHERITED, are_parallel};
use super::cue::Force;
use super::quote;
use super::relation::{Relation, RelationKind};
use super::said::Said;
use super::words::{Kind, Word};

/// What a claim is held against: a message, and what was said around it.
pub struct Evidence<'a> {
    /// What the user said, or agreed to.
    pub said: &'a Said,
    /// Messages of the user close to it.
    pub near: &'a [&'a Said],
    /// What the assistant said before it: it names what the user speaks of.
    pub context: Option<&'a Said>,
    /// Whether the user agrees in it to what the assistant proposed.
    pub agrees: bool,
}

/// This share of a claim's words must stand in one message.
const MIN_SHARE: f64 = 0.5;
/// In a longer clause a condition belongs to some part of it.
const MAX_CONDITIONAL_WORDS: usize = 5;
/// One word in so many may come from another clause of the same message.
const SPARE_WORD_IN: usize = 6;
/// A refusal is no longer than this.
const MAX_REFUSAL_WORDS: usize = 30;

/// Holds a claim against what was said.
pub fn compare(claim: &mut Claim, evidence: &Evidence<'_>) {
    let said = evidence.said;
    // A quotation stands where it is said to stand.
    let elsewhere = claim.cited.is_some() && said.seq.is_some() && claim.cited != said.seq;
    if !elsewhere {
        claim
            .quotes
            .iter_mut()
            .for_each(|quote| quote.compare(&said.plain));
    }
    claim.met |= claim
        .literal
        .as_ref()
        .is_some_and(|words| quote::is_said(words, &said.plain));
    if claim.met {
        return;
    }
    match judge(claim, evidence) {
        Ok(()) => claim.met = true,
        Err(lack) => {
            let nearer = claim
                .lacks
                .as_ref()
                .is_none_or(|before| lack.distance() < before.distance());
            claim.lacks = nearer.then_some(lack).or(claim.lacks.take());
        }
    }
}

/// Where a word of a claim was found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    /// In the stretch that is looked at.
    Here,
    /// Elsewhere in the user's words close by.
    Near,
    /// In what the assistant said before.
    Context,
    Nowhere,
}

fn judge(claim: &Claim, evidence: &Evidence<'_>) -> Result<(), Lack> {
    if claim.words.is_empty() {
        let said = match claim.force {
            Force::Approved => evidence.agrees,
            Force::Rejected => evidence.said.len() <= MAX_REFUSAL_WORDS && evidence.said.denies(),
            _ => true,
        };
        return if said { Ok(()) } else { Err(Lack::Scattered) };
    }
    let places: Vec<Vec<usize>> = claim
        .words
        .iter()
        .map(|word| evidence.said.places(word))
        .collect();
    // Most messages have next to nothing of a claim.
    let any = places.iter().filter(|places| !places.is_empty()).count();
    if any == 0 || claim.quotes.is_empty() && 2 * any < claim.words.len() {
        return Err(Lack::Words(missing(claim, &places)));
    }
    let around: Vec<Found> = claim
        .words
        .iter()
        .map(|word| around(word, evidence))
        .collect();
    let mut nearest: Option<Lack> = None;
    for (start, end) in evidence.said.spans() {
        let found: Vec<Found> = places
            .iter()
            .zip(&around)
            .map(
                |(places, around)| match places.iter().any(|at| (start..end).contains(at)) {
                    true => Found::Here,
                    false if !places.is_empty() => Found::Near,
                    false => *around,
                },
            )
            .collect();
        match accounted(claim, &found).and_then(|()| agrees(claim, evidence)) {
            Ok(()) => return Ok(()),
            Err(lack)
                if nearest
                    .as_ref()
                    .is_none_or(|near| lack.distance() < near.distance()) =>
            {
                nearest = Some(lack)
            }
            Err(_) => {}
        }
    }
    Err(nearest.unwrap_or(Lack::Scattered))
}

fn missing(claim: &Claim, places: &[Vec<usize>]) -> Vec<String> {
    let words = claim.words.iter().zip(places);
    words
        .filter(|(_, places)| places.is_empty())
        .map(|(word, _)| word.text.clone())
        .collect()
}

fn around(word: &Word, evidence: &Evidence<'_>) -> Found {
    if evidence
        .near
        .iter()
        .any(|said| !said.places(word).is_empty())
    {
        Found::Near
    } else if word.kind == Kind::Plain
        && !word.acts()
        && !word.is_high()
        && evidence
            .context
            .is_some_and(|said| !said.places(word).is_empty())
    {
        Found::Context
    } else {
        Found::Nowhere
    }
}

/// Every word of a claim is the user's; a few plain ones may be what the user spoke about.
fn accounted(claim: &Claim, found: &[Found]) -> Result<(), Lack> {
    let count = |what: Found| found.iter().filter(|found| **found == what).count();
    let all = claim.words.len();
    let lacks: Vec<&Word> = claim
        .words
        .iter()
        .zip(found)
        .filter(|(_, found)| **found == Found::Nowhere)
        .map(|(word, _)| word)
        .collect();
    if !lacks.is_empty() {
        return Err(Lack::Words(
            lacks.iter().map(|word| word.text.clone()).collect(),
        ));
    }
    if !claim.quotes.is_empty() && !claim.strict {
        return Ok(());
    }
    let here = count(Found::Here);
    let context = count(Found::Context);
    let most_context = if claim.strict {
        0
    } else {
        (all / 3).max(usize::from(all == 2))
    };
    let high_here = claim
        .words
        .iter()
        .zip(found)
        .all(|(word, found)| !word.is_high() || *found == Found::Here);
    let enough = here as f64 >= MIN_SHARE * all as f64 && context <= most_context && high_here;
    if enough { Ok(()) } else { Err(Lack::Scattered) }
}

/// What is said, is said with the same yes or no, and the same way round.
fn agrees(claim: &Claim, evidence: &Evidence<'_>) -> Result<(), Lack> {
    let said = || std::iter::once(evidence.said).chain(evidence.near.iter().copied());
    let clauses: Vec<&Clause> = said().flat_map(|said| &said.clauses).collect();
    let quoted = !claim.quotes.is_empty();
    for clause in &claim.clauses {
        // Words around a quotation describe it; what is to be done is another thing.
        let described = quoted && !clause.words.iter().any(Word::acts);
        let open = claim.topic && !claim.strict;
        if !described && !open && !same_side(clause, &clauses, claim.force == Force::Approved) {
            return Err(Lack::Opposite);
        }
        let said = &evidence.said.clauses;
        if !described && !open && (crosses(clause, said) || scatters(clause, said)) {
            return Err(Lack::Turned);
        }
    }
    let relations: Vec<&Relation> = said().flat_map(|said| &said.relations).collect();
    match claim
        .relations
        .iter()
        .all(|relation| same_way(relation, &relations, evidence.said))
    {
        true => Ok(()),
        false => Err(Lack::Turned),
    }
}

/// Says whether a clause that says what it says, with its yes or no, was said.
fn same_side(clause: &Clause, said: &[&Clause], approved: bool) -> bool {
    let has = |one: &Clause, word: &Word| one.words.iter().any(|said| word.matches(said));
    let known: Vec<&Word> = clause
        .words
        .iter()
        .filter(|word| said.iter().any(|one| has(one, word)))
        .collect();
    if known.is_empty() {
        return !clause.negated;
    }
    // What was said only to rule it out is not wanted.
    let ruled_out = |word: &Word| said.iter().all(|one| one.negated || !has(one, word));
    if !clause.negated && known.iter().any(|word| ruled_out(word)) {
        return false;
    }
    if said.iter().any(|one| reverses(clause, one)) {
        return false;
    }
    let met = |one: &Clause| known.iter().filter(|word| has(one, word)).count();
    let high =
        clause.words.iter().any(Word::is_high) || approved && clause.words.iter().any(Word::acts);
    let mut verbs: Vec<&&Word> = known.iter().filter(|word| word.acts()).collect();
    if high {
        // What is costly is said in one breath, and nobody said otherwise.
        let mut whole = said
            .iter()
            .filter(|one| clause.words.iter().all(|word| has(one, word)))
            .filter(|one| !(widens(clause, one) || approved && one.states))
            .peekable();
        // A condition that is left out makes it another thing.
        let mut free = whole.clone().filter(|one| {
            !one.conditional || clause.conditional || one.words.len() > MAX_CONDITIONAL_WORDS
        });
        return whole.peek().is_some()
            && free.next().is_some()
            && whole.all(|one| one.negated == clause.negated);
    }
    if verbs.is_empty() {
        verbs.push(&known[0]);
    }
    let best = said.iter().map(|one| met(one)).max().unwrap_or(0);
    let acts = known.iter().any(|word| word.acts());
    // The nouns of the claim, with the opposite verb.
    let nouns = |one: &Clause| {
        known
            .iter()
            .filter(|word| !word.acts() && has(one, word))
            .count()
    };
    let against = |verb: &Word| {
        let with = said
            .iter()
            .filter(|one| has(one, verb))
            .map(|one| nouns(one))
            .max()
            .unwrap_or(0);
        said.iter().any(|one| {
            nouns(one) > with
                && one.negated == clause.negated
                && one.words.iter().any(|word| word.opposes(verb))
        })
    };
    if verbs.iter().any(|verb| against(verb)) {
        return false;
    }
    verbs.iter().all(|verb| {
        let with: Vec<&&Clause> = said.iter().filter(|one| !acts || has(one, verb)).collect();
        let most = with.iter().map(|one| met(one)).max().unwrap_or(0);
        // A verb comes with something that it is about; nouns come mostly together.
        let enough = match acts {
            true => known.len() < 2 || most >= 2,
            false => 5 * most >= 3 * known.len() || most == best && known.len() > 4,
        };
        enough
            && with
                .iter()
                .any(|one| met(one) == most && one.negated == clause.negated)
    })
}

/// Says whether a clause leaves out which thing it is about: "the login test" is not "the tests".
fn widens(clause: &Clause, said: &Clause) -> bool {
    let has = |said: &Word| clause.words.iter().any(|word| word.matches(said));
    said.words.windows(2).any(|two| {
        let noun = two[1].kind == Kind::Plain && !two[1].acts() && has(&two[1]);
        // What stands right before a noun tells which one it is.
        let beside = two[1].at.saturating_sub(two[0].end) <= 1 && two[0].part == two[1].part;
        noun && beside && !two[0].acts() && !has(&two[0])
    })
}

/// Says whether two words stand the other way round in another clause, with the same between them.
fn reverses(clause: &Clause, said: &Clause) -> bool {
    let at = |word: &Word| said.words.iter().position(|said| word.matches(said));
    let places: Vec<Option<usize>> = clause.words.iter().map(at).collect();
    let nouns = || (0..places.len()).filter(|at| !clause.words[*at].acts());
    nouns().any(|one| {
        nouns()
            .filter(|two| *two > one + 1)
            .any(|two| match (places[one], places[two]) {
                (Some(last), Some(first)) if first < last => {
                    let between = places[one + 1..two].iter().flatten();
                    between.into_iter().any(|at| (first + 1..last).contains(at))
                }
                _ => false,
            })
    })
}

/// Says whether what a clause says is spread over several clauses of a message.
fn scatters(clause: &Clause, said: &[Clause]) -> bool {
    let has = |one: &Clause, word: &Word| one.words.iter().any(|said| word.matches(said));
    let known: Vec<&Word> = clause
        .words
        .iter()
        .filter(|word| said.iter().any(|one| has(one, word)))
        .collect();
    let most = said
        .iter()
        .filter(|one| one.negated == clause.negated)
        .map(|one| known.iter().filter(|word| has(one, word)).count())
        .max();
    // Long sentences are retold with words from around.
    let spare = known.len() / SPARE_WORD_IN;
    most.unwrap_or(0) + spare < known.len()
}

/// Says whether a clause puts together what a message keeps apart.
fn crosses(clause: &Clause, said: &[Clause]) -> bool {
    let words = || {
        said.iter()
            .flat_map(|one| &one.words)
            .filter(|word| word.part != INHERITED)
    };
    let parts_of = |word: &Word| -> Vec<u16> {
        words()
            .filter(|said| word.matches(said))
            .map(|said| said.part)
            .collect()
    };
    let found: Vec<(&Word, Vec<u16>)> = clause
        .words
        .iter()
        .filter(|word| !word.acts())
        .map(|word| (word, parts_of(word)))
        .filter(|(_, parts)| !parts.is_empty())
        .collect();
    let apart = |one: &[u16], two: &[u16]| !one.iter().any(|part| two.contains(part));
    // A value belongs to what stands with it, unless it stands alone in a list.
    let alone = |part: &u16| words().filter(|said| said.part == *part).count() == 1;
    found.iter().any(|(word, parts)| {
        let others = || {
            found
                .iter()
                .filter(|(other, _)| other.at != word.at && other.part == word.part)
                .map(|(_, parts)| parts)
        };
        let value = word.kind == Kind::Fact && !word.text.chars().all(char::is_alphabetic);
        let stray = value
            && others().next().is_some()
            && others().all(|other| apart(parts, other))
            && !parts.iter().any(alone);
        stray && in_one_clause(clause, said)
            || others().any(|other| apart(parts, other) && are_parallel(said, parts[0], other[0]))
    })
}

/// Says whether one clause has all words of another.
fn in_one_clause(clause: &Clause, said: &[Clause]) -> bool {
    said.iter().any(|one| {
        clause
            .words
            .iter()
            .all(|word| one.words.iter().any(|said| word.matches(said)))
    })
}

/// Says whether a relation is one that was said, the same way round.
fn same_way(relation: &Relation, relations: &[&Relation], said: &Said) -> bool {
    let in_both = |word: &Word, one: &Relation| {
        one.from.iter().any(|other| word.matches(other))
            && one.to.iter().any(|other| word.matches(other))
    };
    let overlap = |mine: &[Word], theirs: &[Word], one: &Relation| {
        let telling = mine
            .iter()
            .filter(|word| !in_both(word, one) && !in_both(word, relation));
        telling
            .filter(|word| theirs.iter().any(|other| word.matches(other)))
            .count()
    };
    let precedes = |one: &Relation| one.kind == RelationKind::Precedes;
    let (mut turned, mut half_from, mut half_to) = (false, false, false);
    for one in relations
        .iter()
        .filter(|one| precedes(one) == precedes(relation))
    {
        let (from, to) = (
            overlap(&relation.from, &one.from, one),
            overlap(&relation.to, &one.to, one),
        );
        let (back_from, back_to) = (
            overlap(&relation.from, &one.to, one),
            overlap(&relation.to, &one.from, one),
        );
        let crossed = back_from > 0 && back_to > 0;
        if from > 0 && to > 0 && !crossed {
            return true;
        }
        turned |= crossed || back_from + back_to > from + to;
        half_from |= from > 0 && to == 0;
        half_to |= to > 0 && from == 0;
    }
    // The parts of two relations make no third.
    if turned || half_from && half_to {
        return false;
    }
    // Nothing is said about the two: then in the order in which they were named.
    let first = |words: &[Word]| {
        words
            .iter()
            .filter_map(|word| said.places(word).into_iter().next())
            .min()
    };
    match (first(&relation.from), first(&relation.to)) {
        (Some(from), Some(to)) => from <= to,
        _ => true,
    }
}

/// Says whether a message agrees to what was proposed, and asks for nothing else.
pub fn is_agreement(said: &Said, text: &str) -> bool {
    const YES: &str = "yes yep yeah yup ok okay sure agreed perfect great exactly correct right please go do lgtm approved proceed sounds looks fine good ja genau klar gerne passt einverstanden mach oui d'accord parfait vas bien si vale claro dale perfecto adelante hazlo sim certo pode isso perfeito va perfetto certo procedi да ок хорошо давай конечно согласен годится";
    const WIDE: [&str; 16] = [
        "好",
        "可以",
        "行",
        "是的",
        "没问题",
        "同意",
        "对",
        "はい",
        "ええ",
        "お願い",
        "いいです",
        "네",
        "예",
        "좋",
        "그래",
        "응",
    ];
    if said.len() > 20 || text.len() > 160 {
        return false;
    }
    let mut words = said.words().iter().filter(|word| !word.is_mark());
    let Some(first) = words.next() else {
        return false;
    };
    let hedge = said.words().iter().any(|word| "but except only not don't no aber nicht mais pas pero sin mas ma non но не кроме wait instead".split(' ').any(|no| no == word.text));
    let hedge = hedge
        || ["但", "不", "でも", "ない", "지만", "말고"]
            .iter()
            .any(|sign| text.contains(sign));
    let yes = YES.split(' ').any(|yes| yes == first.text);
    let wide = WIDE.iter().any(|yes| text.trim_start().starts_with(yes));
    (yes || wide) && !hedge
}

/// What the assistant proposed: the questions at the end of its message with what they are about, or all of its end.
pub fn proposal(text: &str) -> &str {
    let mut at = text.len().saturating_sub(1500);
    while !text.is_char_boundary(at) {
        at += 1;
    }
    let end = &text[at..];
    let ranges: Vec<_> = super::sentence::sentences(end).collect();
    let asked = ranges
        .iter()
        .rposition(|range| end[range.clone()].trim_end().ends_with(['?', '？']));
    match asked {
        Some(last) => &end[ranges[last.saturating_sub(1)].start..],
        None => end,
    }
}
