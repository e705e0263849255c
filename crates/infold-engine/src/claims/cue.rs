//! Finds the places where a sentence claims that the user said, asked for or decided something.

use super::tables::{
    APPROVING, ARTICLES, AS_ASKED, BEFORE_NOUN, BETWEEN, GENERIC, HEADINGS, MODALS, NOUNS,
    PRONOUNS, REJECTING, SPEAKERS, VERBS, WANTING, WAS_ASKED, WHENEVER, WIDE_APPROVING,
    WIDE_AS_ASKED, WIDE_NOT_SPEAKERS, WIDE_PRONOUNS, WIDE_SPEAKERS, WIDE_VERBS, among,
};
use super::word_form::{fold, is_wide};
use super::words::{Word, WordKind};

/// The words of a sentence that attribute something to the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cue {
    /// The index of the first word.
    pub start: usize,
    /// The index behind the last word.
    pub end: usize,
    /// Whether the words before the cue belong to the claim, too: "done as requested".
    pub whole: bool,
    pub force: Force,
    /// The bytes of a verb that is separate from the cue.
    pub verb: std::ops::Range<usize>,
    /// Whether the cue states a preference of one thing over another.
    pub prefers: bool,
    /// Whether the following words are claimed to be literal.
    pub literal: bool,
}

/// The claim that a cue makes of the words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Force {
    /// The user said the following.
    #[default]
    Said,
    /// The user agreed to them.
    Approved,
    /// The user rejected them.
    Rejected,
    /// The user did not say them.
    Unsaid,
    /// Nothing yet: a heading over the following sentences.
    Label,
}

impl Force {
    /// Returns the force of a verb or noun of saying.
    fn of(word: &str) -> Force {
        if APPROVING.has(word) {
            Force::Approved
        } else if REJECTING.has(word) {
            Force::Rejected
        } else {
            Force::Said
        }
    }
}

impl Cue {
    fn new(start: usize, end: usize, force: Force) -> Cue {
        Cue {
            start,
            end,
            force,
            ..Cue::default()
        }
    }

    /// Returns a cue that claims the words before it, too.
    fn whole(start: usize, end: usize, force: Force) -> Cue {
        Cue {
            whole: true,
            ..Cue::new(start, end, force)
        }
    }

    /// Returns a cue whose verb is separate from it.
    fn with_verb(start: usize, end: usize, verb: &Word) -> Cue {
        Cue {
            verb: verb.at..verb.end,
            ..Cue::new(start, end, Force::of(&verb.text))
        }
    }
}

/// Finds the first cue of a sentence. `follows`: whether the sentence before was about the user.
pub fn find(text: &str, base: usize, words: &[Word], follows: bool) -> Option<Cue> {
    if text[base..].chars().any(is_wide)
        && let Some(cue) = find_wide(text, base, words, follows)
    {
        return Some(cue);
    }
    (0..words.len())
        .find_map(|at| find_at_speaker(words, at, follows))
        .or_else(|| find_without_speaker(text, words))
}

fn text_of(words: &[Word], at: usize) -> &str {
    words.get(at).map_or("", |word| &word.text)
}

fn text_before(words: &[Word], at: usize) -> &str {
    at.checked_sub(1).map_or("", |at| text_of(words, at))
}

fn is_colon(word: &Word) -> bool {
    matches!(word.kind, WordKind::Mark(':' | '：'))
}

/// Finds a cue that starts with the speaker at `at`.
fn find_at_speaker(words: &[Word], at: usize, follows: bool) -> Option<Cue> {
    let word = &words[at];
    let before = text_before(words, at);
    let has_article = ARTICLES.has(before);
    let start = at - usize::from(has_article);
    let ahead = text_before(words, start);
    let opens = start == 0
        || words[start - 1].is_mark()
        || among(
            "and but so also then und aber et mais y pero e mas ma и но а",
            ahead,
        );
    let is_named = SPEAKERS.has(&word.text)
        || word.text == "human" && has_article
        || word.text == "you" && opens;
    if is_named {
        let label = label(words, start, at).filter(|_| !word.owns);
        if let Some(cue) = label.or_else(|| find_noun(words, start, at, ahead)) {
            return Some(cue);
        }
    }
    let is_pronoun = follows && opens && PRONOUNS.has(&word.text);
    // "Also wants …" or "Wants …" after "The user asked …".
    let is_verb = VERBS.contains(&*word.text);
    let is_elided = follows
        && (opens
            && among(
                "also then additionally later auch aussi tambien tambem anche также",
                &word.text,
            )
            && VERBS.contains(text_of(words, at + 1))
            || at == 0 && is_verb && !word.means("add") && !word.text.ends_with("ing"));
    if !(is_named || is_pronoun || is_elided) || GENERIC.has(before) || word.owns {
        return None;
    }
    let first = if is_elided && is_verb { at } else { at + 1 };
    let (next, is_denied) = skip_between(words, first);
    let verb = text_of(words, next);
    let is_modal = MODALS.has(verb) && (verb != "will" || before != "der" && before != "die");
    let is_hypothetical = WHENEVER.has(ahead) && !verb.ends_with("ed") && !among("said told", verb);
    if is_modal || is_hypothetical {
        return None;
    }
    let is_agent = among(
        "by von vom par por pelo da dal dall",
        if before == "the" { ahead } else { before },
    );
    if VERBS.contains(verb) && !is_agent {
        let force = match (is_denied, WANTING.has(verb)) {
            (true, true) => Force::Rejected,
            (true, false) => Force::Unsaid,
            (false, _) => Force::of(verb),
        };
        return Some(Cue {
            whole: among("as like since because wie comme como come как", ahead),
            prefers: super::clause::prefers(verb),
            ..Cue::new(start, next + 1, force)
        });
    }
    find_distant_verb(words, (start, at), is_named && opens, is_agent)
}

/// Skips the words that may come between a speaker and the verb; says whether one of them is a negation.
fn skip_between(words: &[Word], from: usize) -> (usize, bool) {
    const MAX_BETWEEN_WORDS: usize = 5;
    let may_skip = |word: &&Word| {
        BETWEEN.has(&word.text) || matches!(word.kind, WordKind::Mark('(' | ')' | ',' | ':'))
    };
    let rest = words.get(from..).unwrap_or_default().iter();
    let between = rest.take(MAX_BETWEEN_WORDS).take_while(may_skip);
    let denials = "not never didn't hasn't hadn't doesn't pas nao non не no n nicht";
    between.fold((from, false), |(next, is_denied), word| {
        (next + 1, is_denied || among(denials, &word.text))
    })
}

/// Finds the verb of a speaker where it does not follow at once.
fn find_distant_verb(
    words: &[Word],
    (start, at): (usize, usize),
    is_subject: bool,
    is_agent: bool,
) -> Option<Cue> {
    let last_verb = |words: &[Word]| words.iter().rposition(|word| VERBS.contains(&*word.text));
    // "The user refactored it and asked for a review."
    if let Some(verb) = is_subject.then(|| second_verb(words, at)).flatten() {
        return Some(Cue::with_verb(start, at + 1, &words[verb]));
    }
    // German puts the verb last.
    if among("hat hatte habe wurde", text_of(words, at + 1))
        && let Some(verb) = last_verb(words).filter(|verb| *verb > at + 1)
    {
        return Some(Cue::with_verb(start, at + 2, &words[verb]));
    }
    // "was requested by the user"
    let verb = is_agent.then(|| last_verb(&words[..at])).flatten()?;
    let force = Force::of(&words[verb].text);
    Some(Cue::whole(verb.min(start), at + 1, force))
}

/// Finds the verb of saying that follows another verb of the user.
fn second_verb(words: &[Word], at: usize) -> Option<usize> {
    let end = words[at..]
        .iter()
        .position(|word| word.is_mark() && word.kind != WordKind::Mark(','));
    let end = end.map_or(words.len(), |end| at + end);
    (at + 2..end).find(|verb| {
        let is_joined = among("and then but und et y e и", &words[verb - 1].text);
        is_joined && VERBS.contains(&*words[*verb].text) && !words[*verb].means("add")
    })
}

/// Finds `User: …`.
fn label(words: &[Word], start: usize, at: usize) -> Option<Cue> {
    let has_colon = words.get(at + 1).is_some_and(is_colon);
    (has_colon && start == 0 && at <= 1).then(|| Cue {
        literal: true,
        ..Cue::new(start, at + 2, Force::Said)
    })
}

/// Finds "the user's preference is", "per user request", "User feedback:".
fn find_noun(words: &[Word], start: usize, at: usize, ahead: &str) -> Option<Cue> {
    let owner = &words[at];
    let (last, second_last) = (
        text_before(words, start),
        text_before(words, start.saturating_sub(1)),
    );
    if start >= 2 && second_last == "according" && last == "to"
        || among("laut selon segun secondo segundo", last)
    {
        return Some(Cue::whole(start.saturating_sub(2), at + 1, Force::Said));
    }
    // "Wunsch des Benutzers", "demande de l'utilisateur", "request of the user"
    let is_genitive = among(
        "des der del do della dell dell'",
        text_of(words, at.wrapping_sub(1)),
    ) || among("пользователя benutzers nutzers utente", &owner.text);
    let is_of = start >= 2 && among("of de du von", last) && NOUNS.has(second_last);
    if is_genitive && NOUNS.has(last) || is_of {
        let first = words[..start]
            .iter()
            .rposition(|word| NOUNS.has(&word.text))
            .unwrap_or(0);
        return Some(Cue::whole(first, at + 1, Force::of(&words[first].text)));
    }
    // A word or two may describe it: "the user's next request".
    let noun = (at + 1..words.len().min(at + 5)).find(|at| NOUNS.has(&words[*at].text));
    let noun = noun.filter(|noun| {
        words[at + 1..*noun]
            .iter()
            .all(|word| !word.is_mark() && !VERBS.contains(&*word.text))
    });
    let message = (at + 1..words.len().min(at + 4)).find(|at| {
        among(
            "message messages prompt prompts nachricht message mensaje mensagem messaggio",
            &words[*at].text,
        )
    });
    let found = noun.or(message)?;
    let is_marked = words
        .get(found + 1)
        .is_none_or(|word| is_colon(word) || word.kind == WordKind::Mark('–'));
    let leads = among(
        "is was to that for about on not are were ist war dass est etait era es и",
        text_of(words, found + 1),
    );
    let is_carried = BEFORE_NOUN.has(ahead) || text_before(words, at) == "per";
    let is_label = start == 0 && words[found..].iter().take(8).any(is_colon);
    let is_speech = noun.is_some()
        && (owner.owns || is_label || is_carried)
        && (is_marked || leads || is_carried || is_label);
    if !(is_speech || message.is_some() && is_label) {
        return None;
    }
    let force = if is_label && words.len() <= found + 2 {
        Force::Label
    } else {
        Force::of(&words[found].text)
    };
    Some(Cue {
        whole: is_carried && !is_label,
        ..Cue::new(start, found + 1, force)
    })
}

/// Finds phrases that leave out the person who asked.
fn find_without_speaker(text: &str, words: &[Word]) -> Option<Cue> {
    let texts = words
        .iter()
        .map(|word| if word.is_mark() { "," } else { &*word.text });
    let padded = format!(" {} ", texts.collect::<Vec<_>>().join(" "));
    let has = |phrase: &str| padded.contains(&format!(" {phrase} "));
    if let Some(phrase) = AS_ASKED.iter().find(|phrase| has(phrase)) {
        let first = phrase.split(' ').next().unwrap_or_default();
        let last = phrase.split(' ').next_back().unwrap_or_default();
        let end = words.iter().position(|word| word.text == last)?;
        let start = words[..end].iter().rposition(|word| word.text == first)?;
        return Some(Cue::whole(start, end + 1, Force::Said));
    }
    let is_denied = has("no") || has("none") || has("nothing");
    let phrase = WAS_ASKED.iter().find(|phrase| has(phrase));
    let phrase = phrase.filter(|_| !is_denied)?;
    let last = phrase.split(' ').rfind(|word| !among("to that", word))?;
    let end = words.iter().position(|word| word.text == fold(last))?;
    let force = if text.is_empty() {
        Force::Said
    } else {
        Force::of(&words[end].text)
    };
    Some(Cue::new(0, end + 1, force))
}

/// Finds cues of scripts without spaces.
fn find_wide(all: &str, base: usize, words: &[Word], follows: bool) -> Option<Cue> {
    let text = &all[base..];
    let word_at = |at: usize| {
        words
            .iter()
            .position(|word| word.at >= base + at)
            .unwrap_or(words.len())
    };
    if let Some((at, sign)) = WIDE_AS_ASKED
        .iter()
        .find_map(|sign| Some((text.find(sign)?, sign)))
    {
        return Some(Cue::whole(
            word_at(at),
            word_at(at + sign.len()),
            Force::Said,
        ));
    }
    let named = WIDE_SPEAKERS
        .iter()
        .filter_map(|name| Some((text.find(name)?, name)))
        .min_by_key(|(at, name)| (*at, usize::MAX - name.len()));
    let bare = text.trim_start();
    let pronoun = WIDE_PRONOUNS.start_of(bare).filter(|_| follows);
    let (at, name) = named.or(pronoun.map(|name| (text.len() - bare.len(), name)))?;
    let from = at + name.len();
    let rest = &text[from..];
    let is_possible = ["可能", "可以", "能够", "应该会"]
        .iter()
        .any(|sign| rest.starts_with(sign));
    if WIDE_NOT_SPEAKERS.start_of(rest).is_some() || is_possible {
        return None;
    }
    // In Chinese the verb comes soon; in Japanese and Korean it comes last.
    let is_verb_last = name.starts_with(['ユ', '彼', '사', '그']);
    let found = WIDE_VERBS.iter().filter_map(|verb| {
        let at = if is_verb_last {
            rest.rfind(verb)?
        } else {
            rest.find(verb)?
        };
        Some((at, verb))
    });
    let verb = if is_verb_last {
        found.max_by_key(|(at, verb)| (*at, verb.len()))
    } else {
        found
            .min_by_key(|(at, verb)| (*at, usize::MAX - verb.len()))
            .filter(|(at, _)| rest[..*at].chars().count() <= 8)
    };
    if verb.is_none() && !rest.trim_start().starts_with([':', '：']) {
        return None;
    }
    let is_unsaid = verb.is_some_and(|(at, _)| !is_verb_last && rest[..at].contains(['没', '未']));
    let force = if is_unsaid {
        Force::Unsaid
    } else if WIDE_APPROVING.occurs_in(rest) {
        Force::Approved
    } else {
        Force::Said
    };
    let start = word_at(at);
    Some(match verb {
        Some((at, verb)) if !is_verb_last => {
            Cue::new(start, word_at(from + at + verb.len()), force)
        }
        Some((at, verb)) => Cue {
            verb: base + from + at..base + from + at + verb.len(),
            ..Cue::new(start, word_at(from), force)
        },
        None => Cue::new(start, word_at(from), force),
    })
}

/// Says whether a word only reports speech.
pub fn is_speech(word: &Word) -> bool {
    VERBS.contains(&*word.text) && !word.means("add") || WIDE_VERBS.has(&word.text)
}

/// Says whether a line is a heading over words of the user.
pub fn is_heading(text: &str) -> bool {
    let small = fold(text);
    HEADINGS.has(small.trim().trim_end_matches([':', '：', '.']).trim())
}
