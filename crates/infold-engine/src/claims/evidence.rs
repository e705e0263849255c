//! Decides whether messages support a claim.

use super::claim::{Mismatch, UserClaim};
use super::clause::{Clause, INHERITED, are_parallel};
use super::cue::Force;
use super::message_index::IndexedMessage;
use super::quotation;
use super::relation::{Relation, RelationKind};
use super::tables::{HEDGES, WIDE_HEDGES, WIDE_YES, YES};
use super::words::{Word, WordKind};
use crate::sentence::{KeepWhole, ranges};

/// A message that a claim is compared with, and the messages around it.
pub struct Evidence<'a> {
    /// The message that the user wrote or agreed to.
    pub said: &'a IndexedMessage,
    /// Messages of the user close to it.
    pub near: &'a [&'a IndexedMessage],
    /// The preceding message of the assistant, to which the user's words may refer.
    pub context: Option<&'a IndexedMessage>,
    /// Whether the user agrees to the assistant's proposal.
    pub agrees: bool,
}

/// The share of a claim's words that one message must have.
const MIN_SHARE: f64 = 0.5;
/// A condition ("if …") applies to the whole clause only if the clause has no more words than this; in a longer one it
/// applies to a part.
const MAX_CONDITIONAL_WORDS: usize = 5;
/// Of this many words of a claim, one may come from another clause of the same message.
const WORDS_PER_STRAY_WORD: usize = 6;
/// A longer message is not taken for a mere refusal.
const MAX_REFUSAL_WORDS: usize = 30;

/// Compares a claim with a message, and records the result in the claim.
pub fn compare(claim: &mut UserClaim, evidence: &Evidence<'_>) {
    let said = evidence.said;
    // A quotation must be in the message that is cited for it.
    let cites_other = claim.cited.is_some() && said.seq.is_some() && claim.cited != said.seq;
    if !cites_other {
        claim
            .quotes
            .iter_mut()
            .for_each(|quote| quote.compare(&said.plain));
    }
    claim.found |= claim
        .literal
        .as_ref()
        .is_some_and(|words| quotation::is_said(words, &said.plain));
    if claim.found {
        return;
    }
    match judge(claim, evidence) {
        Ok(()) => claim.found = true,
        Err(mismatch) => keep_nearest(&mut claim.mismatch, mismatch),
    }
}

/// Keeps the mismatch of the message that comes nearest to the claim.
fn keep_nearest(nearest: &mut Option<Mismatch>, mismatch: Mismatch) {
    let distance = nearest.as_ref().map_or(usize::MAX, Mismatch::distance);
    if mismatch.distance() < distance {
        *nearest = Some(mismatch);
    }
}

/// The place where a word of a claim was found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EvidencePlace {
    /// In the range of words that is compared.
    Here,
    /// Elsewhere in the user's messages close by.
    Near,
    /// In the preceding message of the assistant.
    Context,
    Nowhere,
}

/// Checks a claim against each range of words of a message; returns the nearest mismatch if none supports it.
fn judge(claim: &UserClaim, evidence: &Evidence<'_>) -> Result<(), Mismatch> {
    // "The user agreed" has no words of its own to find.
    if claim.words.is_empty() {
        let said = match claim.force {
            Force::Approved => evidence.agrees,
            Force::Rejected => evidence.said.len() <= MAX_REFUSAL_WORDS && evidence.said.denies(),
            _ => true,
        };
        return if said {
            Ok(())
        } else {
            Err(Mismatch::Scattered)
        };
    }
    let positions: Vec<Vec<usize>> = claim
        .words
        .iter()
        .map(|word| evidence.said.positions(word))
        .collect();
    // Most messages have few words of a claim; these are ruled out before the costlier checks.
    let any = positions.iter().filter(|all| !all.is_empty()).count();
    if any == 0 || claim.quotes.is_empty() && 2 * any < claim.words.len() {
        return Err(Mismatch::Words(missing_words(claim, &positions)));
    }
    let around: Vec<EvidencePlace> = claim
        .words
        .iter()
        .map(|word| locate_around(word, evidence))
        .collect();
    let mut nearest: Option<Mismatch> = None;
    for (start, end) in evidence.said.spans() {
        let found: Vec<EvidencePlace> = positions
            .iter()
            .zip(&around)
            .map(|(positions, around)| {
                if positions.iter().any(|at| (start..end).contains(at)) {
                    EvidencePlace::Here
                } else if !positions.is_empty() {
                    EvidencePlace::Near
                } else {
                    *around
                }
            })
            .collect();
        match check_words(claim, &found).and_then(|()| check_meaning(claim, evidence)) {
            Ok(()) => return Ok(()),
            Err(mismatch) => keep_nearest(&mut nearest, mismatch),
        }
    }
    Err(nearest.unwrap_or(Mismatch::Scattered))
}

fn missing_words(claim: &UserClaim, positions: &[Vec<usize>]) -> Vec<String> {
    let words = claim.words.iter().zip(positions);
    words
        .filter(|(_, positions)| positions.is_empty())
        .map(|(word, _)| word.text.clone())
        .collect()
}

/// Finds a word in the messages around the compared one. Only plain words that name no action may come from the
/// assistant.
fn locate_around(word: &Word, evidence: &Evidence<'_>) -> EvidencePlace {
    if evidence
        .near
        .iter()
        .any(|said| !said.positions(word).is_empty())
    {
        EvidencePlace::Near
    } else if word.kind == WordKind::Plain
        && !word.is_action()
        && !word.is_costly()
        && evidence
            .context
            .is_some_and(|said| !said.positions(word).is_empty())
    {
        EvidencePlace::Context
    } else {
        EvidencePlace::Nowhere
    }
}

/// Checks that every word of a claim is the user's; a few plain ones may come from the context.
fn check_words(claim: &UserClaim, found: &[EvidencePlace]) -> Result<(), Mismatch> {
    let count = |what: EvidencePlace| found.iter().filter(|found| **found == what).count();
    let all = claim.words.len();
    let located = || claim.words.iter().zip(found);
    let missing: Vec<String> = located()
        .filter(|(_, found)| **found == EvidencePlace::Nowhere)
        .map(|(word, _)| word.text.clone())
        .collect();
    if !missing.is_empty() {
        return Err(Mismatch::Words(missing));
    }
    if !claim.quotes.is_empty() && !claim.strict {
        return Ok(());
    }
    let here = count(EvidencePlace::Here);
    let context = count(EvidencePlace::Context);
    let max_context = if claim.strict {
        0
    } else {
        (all / 3).max(usize::from(all == 2))
    };
    let costly_here =
        located().all(|(word, found)| !word.is_costly() || *found == EvidencePlace::Here);
    if here as f64 >= MIN_SHARE * all as f64 && context <= max_context && costly_here {
        Ok(())
    } else {
        Err(Mismatch::Scattered)
    }
}

/// Checks that the claim was said with the same negation, and in the same direction.
fn check_meaning(claim: &UserClaim, evidence: &Evidence<'_>) -> Result<(), Mismatch> {
    let said = || std::iter::once(evidence.said).chain(evidence.near.iter().copied());
    let clauses: Vec<&Clause> = said().flat_map(|said| &said.clauses).collect();
    let quoted = !claim.quotes.is_empty();
    for clause in &claim.clauses {
        // Words around a quotation only describe it, unless one is an action.
        let described = quoted && !clause.words.iter().any(Word::is_action);
        let open = claim.topic && !claim.strict;
        if !described
            && !open
            && !has_same_negation(clause, &clauses, claim.force == Force::Approved)
        {
            return Err(Mismatch::Opposite);
        }
        let said = &evidence.said.clauses;
        if !described && !open && (crosses(clause, said) || scatters(clause, said)) {
            return Err(Mismatch::Reversed);
        }
    }
    let relations: Vec<&Relation> = said().flat_map(|said| &said.relations).collect();
    let is_same = |relation| has_same_direction(relation, &relations, evidence.said);
    if claim.relations.iter().all(is_same) {
        Ok(())
    } else {
        Err(Mismatch::Reversed)
    }
}

/// Says whether a clause was said with the same negation, and without an opposite verb.
fn has_same_negation(clause: &Clause, said: &[&Clause], approved: bool) -> bool {
    let known: Vec<&Word> = clause
        .words
        .iter()
        .filter(|word| said.iter().any(|one| one.has(word)))
        .collect();
    if known.is_empty() {
        return !clause.negated;
    }
    // A word that was only negated is not wanted.
    let ruled_out = |word: &Word| said.iter().all(|one| one.negated || !one.has(word));
    if !clause.negated && known.iter().any(|word| ruled_out(word)) {
        return false;
    }
    if said.iter().any(|one| reverses(clause, one)) {
        return false;
    }
    let count_known = |one: &Clause| known.iter().filter(|word| one.has(word)).count();
    let needs_one_clause = clause.words.iter().any(Word::is_costly)
        || approved && clause.words.iter().any(Word::is_action);
    let mut verbs: Vec<&&Word> = known.iter().filter(|word| word.is_action()).collect();
    if needs_one_clause {
        // A costly action must be said in one clause, and not be contradicted.
        let mut whole = said
            .iter()
            .filter(|one| clause.words.iter().all(|word| one.has(word)))
            .filter(|one| !(widens(clause, one) || approved && one.states))
            .peekable();
        // A claim must not leave out a condition.
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
    let best = said.iter().map(|one| count_known(one)).max().unwrap_or(0);
    let acts = known.iter().any(|word| word.is_action());
    let nouns = |one: &Clause| {
        known
            .iter()
            .filter(|word| !word.is_action() && one.has(word))
            .count()
    };
    // Whether the nouns of the claim were said with the opposite verb rather than with this one.
    let is_opposed = |verb: &Word| {
        let with = said
            .iter()
            .filter(|one| one.has(verb))
            .map(|one| nouns(one))
            .max()
            .unwrap_or(0);
        said.iter().any(|one| {
            nouns(one) > with
                && one.negated == clause.negated
                && one.words.iter().any(|word| word.opposes(verb))
        })
    };
    if verbs.iter().any(|verb| is_opposed(verb)) {
        return false;
    }
    verbs.iter().all(|verb| {
        let with: Vec<&&Clause> = said.iter().filter(|one| !acts || one.has(verb)).collect();
        let most = with.iter().map(|one| count_known(one)).max().unwrap_or(0);
        // A verb needs its object; nouns are mostly together.
        let enough = if acts {
            known.len() < 2 || most >= 2
        } else {
            5 * most >= 3 * known.len() || most == best && known.len() > 4
        };
        enough
            && with
                .iter()
                .any(|one| count_known(one) == most && one.negated == clause.negated)
    })
}

/// Says whether a clause drops a restriction: "the login test" is not "the tests".
fn widens(clause: &Clause, said: &Clause) -> bool {
    let has = |said: &Word| clause.words.iter().any(|word| word.matches(said));
    said.words.windows(2).any(|two| {
        let noun = two[1].kind == WordKind::Plain && !two[1].is_action() && has(&two[1]);
        // The word right before a noun specifies it.
        let beside = two[1].at.saturating_sub(two[0].end) <= 1 && two[0].part == two[1].part;
        noun && beside && !two[0].is_action() && !has(&two[0])
    })
}

/// Says whether two words are in reverse order in another clause, with the same words between them.
fn reverses(clause: &Clause, said: &Clause) -> bool {
    let at = |word: &Word| said.words.iter().position(|said| word.matches(said));
    let places: Vec<Option<usize>> = clause.words.iter().map(at).collect();
    let nouns = || (0..places.len()).filter(|at| !clause.words[*at].is_action());
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

/// Says whether the content of a clause is spread over several clauses of a message.
fn scatters(clause: &Clause, said: &[Clause]) -> bool {
    let known: Vec<&Word> = clause
        .words
        .iter()
        .filter(|word| said.iter().any(|one| one.has(word)))
        .collect();
    let most = said
        .iter()
        .filter(|one| one.negated == clause.negated)
        .map(|one| known.iter().filter(|word| one.has(word)).count())
        .max();
    // A long sentence may be retold in other words.
    let stray = known.len() / WORDS_PER_STRAY_WORD;
    most.unwrap_or(0) + stray < known.len()
}

/// Says whether a clause joins things that a message keeps apart.
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
        .filter(|word| !word.is_action())
        .map(|word| (word, parts_of(word)))
        .filter(|(_, parts)| !parts.is_empty())
        .collect();
    let apart = |one: &[u16], two: &[u16]| !one.iter().any(|part| two.contains(part));
    // A value belongs to the words near it, unless it is alone in a list.
    let alone = |part: &u16| words().filter(|said| said.part == *part).count() == 1;
    found.iter().any(|(word, parts)| {
        let others = || {
            found
                .iter()
                .filter(|(other, _)| other.at != word.at && other.part == word.part)
                .map(|(_, parts)| parts)
        };
        let value = word.kind == WordKind::Fact && !word.text.chars().all(char::is_alphabetic);
        let is_stray = value
            && others().next().is_some()
            && others().all(|other| apart(parts, other))
            && !parts.iter().any(alone);
        is_stray && in_one_clause(clause, said)
            || others().any(|other| apart(parts, other) && are_parallel(said, parts[0], other[0]))
    })
}

/// Says whether one clause has all words of another.
fn in_one_clause(clause: &Clause, said: &[Clause]) -> bool {
    said.iter()
        .any(|one| clause.words.iter().all(|word| one.has(word)))
}

/// Says whether a relation was said in the same direction.
fn has_same_direction(relation: &Relation, relations: &[&Relation], said: &IndexedMessage) -> bool {
    let in_both = |word: &Word, one: &Relation| {
        one.from.iter().any(|other| word.matches(other))
            && one.to.iter().any(|other| word.matches(other))
    };
    let overlap = |mine: &[Word], theirs: &[Word], one: &Relation| {
        // A word on both sides of a relation tells nothing about its direction.
        let distinctive = mine
            .iter()
            .filter(|word| !in_both(word, one) && !in_both(word, relation));
        distinctive
            .filter(|word| theirs.iter().any(|other| word.matches(other)))
            .count()
    };
    let precedes = |one: &Relation| one.kind == RelationKind::Precedes;
    let (mut reversed, mut half_from, mut half_to) = (false, false, false);
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
        reversed |= crossed || back_from + back_to > from + to;
        half_from |= from > 0 && to == 0;
        half_to |= to > 0 && from == 0;
    }
    // Halves of two relations do not make a third.
    if reversed || half_from && half_to {
        return false;
    }
    // Without a relation between the two the order in which they were named counts.
    let first = |words: &[Word]| {
        words
            .iter()
            .filter_map(|word| said.positions(word).into_iter().next())
            .min()
    };
    match (first(&relation.from), first(&relation.to)) {
        (Some(from), Some(to)) => from <= to,
        _ => true,
    }
}

/// Says whether a message agrees to a proposal, and requests nothing else.
pub fn is_agreement(said: &IndexedMessage, text: &str) -> bool {
    if said.len() > 20 || text.len() > 160 {
        return false;
    }
    let mut words = said.words().iter().filter(|word| !word.is_mark());
    let Some(first) = words.next() else {
        return false;
    };
    let is_hedged =
        said.words().iter().any(|word| HEDGES.has(&word.text)) || WIDE_HEDGES.occurs_in(text);
    let is_yes = YES.has(&first.text) || WIDE_YES.start_of(text.trim_start()).is_some();
    is_yes && !is_hedged
}

/// Returns the assistant's proposal: the last question with the sentence before it, or else the end of the message.
pub fn find_proposal(text: &str) -> &str {
    const MAX_PROPOSAL_BYTES: usize = 1500;
    let end = &text[text.ceil_char_boundary(text.len().saturating_sub(MAX_PROPOSAL_BYTES))..];
    let ranges = ranges(end, KeepWhole::Quotations);
    let asked = ranges
        .iter()
        .rposition(|range| end[range.clone()].trim_end().ends_with(['?', '？']));
    match asked {
        Some(last) => &end[ranges[last.saturating_sub(1)].start..],
        None => end,
    }
}
