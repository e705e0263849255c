//! Finds where a sentence speaks of what the user said, asked for or decided.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::cue_words::{
    APPROVING, AS_ASKED, BEFORE_NOUN, BETWEEN, GENERIC, MODALS, NOUNS, PRONOUNS, REJECTING,
    SPEAKERS, WAS_ASKED, WHENEVER, WIDE_APPROVING, WIDE_AS_ASKED, WIDE_PRONOUNS, WIDE_SPEAKERS,
    WIDE_VERBS,
};
use super::form::fold;
use super::words::{Kind, Word};

/// How a sentence speaks of the user's words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cue {
    /// The words it is made of, first and behind the last.
    pub start: usize,
    pub end: usize,
    /// Whether what stands before it is claimed, too: "done as requested".
    pub whole: bool,
    pub force: Force,
    /// The bytes of a verb that stands apart from it.
    pub verb: std::ops::Range<usize>,
    /// Whether it says that one thing is liked better than another.
    pub prefers: bool,
    /// Whether what follows is given as the very words.
    pub literal: bool,
}

/// What is claimed of the words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Force {
    /// That they were said.
    #[default]
    Said,
    /// That the user agreed.
    Approved,
    /// That they were said against something.
    Rejected,
    /// That they were not said.
    Unsaid,
    /// Nothing yet: a heading over what follows.
    Label,
}

static VERBS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    include_str!("tables/verbs.txt")
        .split_whitespace()
        .collect()
});

fn among(list: &str, word: &str) -> bool {
    !word.is_empty() && list.split(' ').any(|one| one == word)
}

/// Finds the first cue of a sentence. `follows`: whether the sentence before was about the user.
pub fn find(text: &str, base: usize, words: &[Word], follows: bool) -> Option<Cue> {
    if text[base..].chars().any(super::form::is_wide)
        && let Some(cue) = wide(text, base, words, follows)
    {
        return Some(cue);
    }
    (0..words.len())
        .find_map(|at| speaker(words, at, follows))
        .or_else(|| nobody(text, words))
}

fn text_of(words: &[Word], at: usize) -> &str {
    words.get(at).map_or("", |word| &word.text)
}

/// A cue that starts with who speaks.
fn speaker(words: &[Word], at: usize, follows: bool) -> Option<Cue> {
    let word = &words[at];
    let before = at.checked_sub(1).map_or("", |at| text_of(words, at));
    let article = among(
        "the this our der die das dem den des le la les l el o os il lo gli vom zum del al do ao pelo dal dall'",
        before,
    );
    let ahead = match article {
        true => at.checked_sub(2).map_or("", |at| text_of(words, at)),
        false => before,
    };
    let start = at - usize::from(article);
    let opens = start == 0
        || words[start - 1].is_mark()
        || among(
            "and but so also then und aber et mais y pero e mas ma и но а",
            ahead,
        );
    let named = among(SPEAKERS, &word.text)
        || word.text == "human" && article
        || word.text == "you" && opens;
    let pronoun = follows && opens && among(PRONOUNS, &word.text);
    if named
        && !word.owns
        && let Some(cue) = label(words, start, at)
    {
        return Some(cue);
    }
    if named && let Some(cue) = noun(words, start, at, ahead) {
        return Some(cue);
    }
    // "Also wants …" after "The user asked …".
    let elided = follows
        && opens
        && among(
            "also then additionally later auch aussi tambien tambem anche также",
            &word.text,
        )
        && VERBS.contains(text_of(words, at + 1));
    let elided = elided
        || follows
            && start == 0
            && at == 0
            && VERBS.contains(&*word.text)
            && !word.is_group("add")
            && !word.text.ends_with("ing");
    if !(named || pronoun || elided) || among(GENERIC, before) || word.owns {
        return None;
    }
    let mut next = if elided && VERBS.contains(&*word.text) {
        at
    } else {
        at + 1
    };
    let mut unsaid = false;
    let mut steps = 0;
    while steps < 5
        && (among(BETWEEN, text_of(words, next))
            || matches!(
                words.get(next).map(|word| word.kind),
                Some(Kind::Mark('(' | ')' | ',' | ':'))
            ))
    {
        unsaid |= among(
            "not never didn't hasn't hadn't doesn't pas nao non не no n nicht",
            text_of(words, next),
        );
        next += 1;
        steps += 1;
    }
    let verb = text_of(words, next);
    if among(MODALS, verb) && !among("will", verb)
        || verb == "will" && before != "der" && before != "die"
    {
        return None;
    }
    let generic = among(WHENEVER, ahead) && !verb.ends_with("ed") && !among("said told", verb);
    if generic {
        return None;
    }
    let by = among(
        "by von vom par por pelo da dal dall",
        if among("the", before) { ahead } else { before },
    );
    let clauseless = among("as like since because wie comme como come как", ahead);
    if VERBS.contains(verb) && !by {
        // "the user would like"; "wants" and its kin deny what is wanted, not that it was said.
        let wants = among(
            "want wants wanted like wish expect need mochte will wollte veut voulait quiere queria quer vuole хочет хотел souhaite desea deseja prefers prefer",
            verb,
        );
        let force = match unsaid && !wants {
            true => Force::Unsaid,
            false => force(verb),
        };
        let end = next + 1;
        let prefers = super::clause::prefers(verb);
        let force = if unsaid && wants {
            Force::Rejected
        } else {
            force
        };
        return Some(Cue {
            start,
            end,
            whole: clauseless,
            force,
            prefers,
            ..Cue::default()
        });
    }
    // "The user refactored it and asked for a review."
    let second = (named && opens).then(|| second_verb(words, at)).flatten();
    if let Some(verb) = second {
        return Some(Cue {
            start,
            end: at + 1,
            whole: false,
            force: force(&words[verb].text),
            verb: words[verb].at..words[verb].end,
            prefers: false,
            literal: false,
        });
    }
    // German says the verb last.
    let late = among("hat hatte habe wurde", text_of(words, at + 1))
        .then(|| words.iter().rposition(|word| VERBS.contains(&*word.text)))
        .flatten();
    if let Some(late) = late.filter(|late| *late > at + 1) {
        return Some(Cue {
            start,
            end: at + 2,
            whole: false,
            force: force(&words[late].text),
            verb: words[late].at..words[late].end,
            ..Cue::default()
        });
    }
    // "was requested by the user"
    let passive = by
        .then(|| {
            words[..at]
                .iter()
                .rposition(|word| VERBS.contains(&*word.text))
        })
        .flatten();
    passive.map(|verb| Cue {
        start: verb.min(start),
        end: at + 1,
        whole: true,
        force: force(&words[verb].text),
        ..Cue::default()
    })
}

/// The verb of saying that follows what else the user did.
fn second_verb(words: &[Word], at: usize) -> Option<usize> {
    let end = words[at..]
        .iter()
        .position(|word| word.is_mark() && word.kind != Kind::Mark(','));
    let end = end.map_or(words.len(), |end| at + end);
    (at + 2..end).find(|verb| {
        let joined = among("and then but und et y e и", &words[verb - 1].text);
        joined && VERBS.contains(&*words[*verb].text) && !words[*verb].is_group("add")
    })
}

fn force(verb: &str) -> Force {
    if among(APPROVING, verb) {
        Force::Approved
    } else if among(REJECTING, verb) {
        Force::Rejected
    } else {
        Force::Said
    }
}

/// `User: …`
fn label(words: &[Word], start: usize, at: usize) -> Option<Cue> {
    let colon = words
        .get(at + 1)
        .is_some_and(|word| matches!(word.kind, Kind::Mark(':' | '：')));
    (colon && start == 0 && at <= 1).then_some(Cue {
        start,
        end: at + 2,
        whole: false,
        force: Force::Said,
        literal: true,
        ..Cue::default()
    })
}

/// "the user's preference is", "per user request", "User feedback:"
fn noun(words: &[Word], start: usize, at: usize, ahead: &str) -> Option<Cue> {
    let owner = &words[at];
    let told = |one: &str, two: &str| {
        start >= 2 && text_of(words, start - 2) == one && text_of(words, start - 1) == two
    };
    if told("according", "to")
        || start >= 1
            && among(
                "laut selon segun secondo segundo",
                text_of(words, start - 1),
            )
    {
        return Some(Cue {
            start: start.saturating_sub(2),
            end: at + 1,
            whole: true,
            ..Cue::default()
        });
    }
    // A word or two may describe it: "the user's next request".
    let noun = (at + 1..words.len().min(at + 5)).find(|at| among(NOUNS, &words[*at].text));
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
    let genitive = among(
        "des der del do della dell dell'",
        text_of(words, at.wrapping_sub(1)),
    ) || among("пользователя benutzers nutzers utente", &owner.text);
    let behind = start >= 1 && genitive && among(NOUNS, text_of(words, start - 1));
    let of = start >= 2
        && among("of de du von", text_of(words, start - 1))
        && among(NOUNS, text_of(words, start - 2));
    let behind = behind || of;
    if behind {
        // "Wunsch des Benutzers", "demande de l'utilisateur", "request of the user"
        let first = words[..start]
            .iter()
            .rposition(|word| among(NOUNS, &word.text))
            .unwrap_or(0);
        let force = force(&words[first].text);
        return Some(Cue {
            start: first,
            end: at + 1,
            whole: true,
            force,
            ..Cue::default()
        });
    }
    let found = noun.or(message)?;
    let word = &words[found].text;
    let next = text_of(words, found + 1);
    let marked = words
        .get(found + 1)
        .is_none_or(|word| matches!(word.kind, Kind::Mark(':' | '：' | '–')));
    let leads = among(
        "is was to that for about on to not are were not ist war dass est etait era es и",
        next,
    );
    let carried = among(BEFORE_NOUN, ahead)
        || among("per", at.checked_sub(1).map_or("", |at| text_of(words, at)));
    let colon = words[found..]
        .iter()
        .take(8)
        .any(|word| matches!(word.kind, Kind::Mark(':' | '：')));
    let label = start == 0 && colon;
    let speech =
        noun.is_some() && (owner.owns || label || carried) && (marked || leads || carried || label);
    if !(speech || message.is_some() && label) {
        return None;
    }
    let ends = words.len() <= found + 2;
    let force = match () {
        () if ends && label => Force::Label,
        () => force(word),
    };
    Some(Cue {
        start,
        end: found + 1,
        whole: carried && !label,
        force,
        ..Cue::default()
    })
}

/// Forms that leave out who asked.
fn nobody(text: &str, words: &[Word]) -> Option<Cue> {
    let small = format!(
        " {} ",
        words
            .iter()
            .map(|word| if word.is_mark() { "," } else { &*word.text })
            .collect::<Vec<_>>()
            .join(" ")
    );
    let has = |sign: &str| small.contains(&format!(" {sign} "));
    let denied = has("no") || has("none") || has("nothing");
    if let Some(sign) = AS_ASKED.iter().find(|sign| has(sign)) {
        let first = sign.split(' ').next().unwrap_or_default();
        let last = sign.split(' ').next_back().unwrap_or_default();
        let end = words.iter().position(|word| word.text == last)?;
        let start = words[..end].iter().rposition(|word| word.text == first)?;
        return Some(Cue {
            start,
            end: end + 1,
            whole: true,
            force: Force::Said,
            ..Cue::default()
        });
    }
    let sign = WAS_ASKED
        .iter()
        .find(|sign| has(sign))
        .filter(|_| !denied)?;
    let last = sign.split(' ').rfind(|word| !among("to that", word))?;
    let end = words.iter().position(|word| word.text == fold(last))?;
    let force = if text.is_empty() {
        Force::Said
    } else {
        force(&words[end].text)
    };
    Some(Cue {
        start: 0,
        end: end + 1,
        whole: false,
        force,
        ..Cue::default()
    })
}

/// Cues of scripts without spaces.
fn wide(all: &str, base: usize, words: &[Word], follows: bool) -> Option<Cue> {
    let text = &all[base..];
    let at_word = |at: usize| {
        words
            .iter()
            .position(|word| word.at >= base + at)
            .unwrap_or(words.len())
    };
    if let Some((at, sign)) = WIDE_AS_ASKED
        .iter()
        .find_map(|sign| Some((text.find(sign)?, sign)))
    {
        return Some(Cue {
            start: at_word(at),
            end: at_word(at + sign.len()),
            whole: true,
            force: Force::Said,
            ..Cue::default()
        });
    }
    let named = WIDE_SPEAKERS
        .iter()
        .filter_map(|name| Some((text.find(name)?, *name)))
        .min_by_key(|(at, name)| (*at, usize::MAX - name.len()));
    let bare = text.trim_start();
    let pronoun = follows
        .then(|| WIDE_PRONOUNS.iter().find(|name| bare.starts_with(**name)))
        .flatten();
    let (at, name) = named.or(pronoun.map(|name| (text.len() - bare.len(), *name)))?;
    let rest = &text[at + name.len()..];
    // Interfaces and tables of users are none of theirs.
    if [
        "界面",
        "表",
        "名",
        "数据",
        "端",
        "インターフェース",
        "名は",
        "数",
        "인터페이스",
        "명",
    ]
    .iter()
    .any(|thing| rest.starts_with(thing))
    {
        return None;
    }
    let colon = rest.trim_start().starts_with([':', '：']);
    let last = name.starts_with(['ユ', '彼', '사', '그']);
    let found = WIDE_VERBS.iter().filter_map(|verb| {
        let at = if last {
            rest.rfind(verb)?
        } else {
            rest.find(verb)?
        };
        Some((at, *verb))
    });
    let verb = match last {
        true => found.max_by_key(|(at, verb)| (*at, verb.len())),
        false => found.min_by_key(|(at, verb)| (*at, usize::MAX - verb.len())),
    };
    // In Chinese the verb comes soon; elsewhere it comes last.

    let verb = verb.filter(|(at, _)| last || rest[..*at].chars().count() <= 8);
    let modal = ["可能", "可以", "能够", "应该会"]
        .iter()
        .any(|sign| rest.starts_with(sign));
    if modal || verb.is_none() && !colon {
        return None;
    }
    let approving = WIDE_APPROVING.iter().any(|sign| rest.contains(sign));
    let from = at + name.len();
    let end = match verb {
        Some((at, verb)) if !last => at_word(from + at + verb.len()),
        _ => at_word(from),
    };
    let unsaid = verb
        .is_some_and(|(at, _)| !last && (rest[..at].contains('没') || rest[..at].contains('未')));
    let force = match () {
        () if unsaid => Force::Unsaid,
        () if approving => Force::Approved,
        () => Force::Said,
    };
    Some(Cue {
        start: at_word(at),
        end,
        whole: false,
        force,
        verb: verb.filter(|_| last).map_or(0..0, |(at, verb)| {
            base + from + at..base + from + at + verb.len()
        }),
        prefers: false,
        literal: false,
    })
}

/// Says whether a word only reports that something was said.
pub fn is_speech(word: &Word) -> bool {
    VERBS.contains(&*word.text) && !word.is_group("add")
        || WIDE_VERBS.iter().any(|verb| word.text == *verb)
}

/// Says whether a heading stands over words of the user.
pub fn heads(text: &str) -> bool {
    let small = fold(text);
    let small = small.trim().trim_end_matches([':', '：', '.']).trim();
    const HEADS: [&str; 26] = [
        "all user messages",
        "user messages",
        "user requests",
        "user instructions",
        "requests",
        "user feedback",
        "user preferences",
        "user quotes",
        "user's requests",
        "user's instructions",
        "what the user asked",
        "what the user asked for",
        "what the user said",
        "user constraints",
        "user requirements",
        "anfragen des benutzers",
        "wunsche des benutzers",
        "demandes de l'utilisateur",
        "solicitudes del usuario",
        "pedidos do usuario",
        "richieste dell'utente",
        "запросы пользователя",
        "用户要求",
        "用户请求",
        "ユーザーの要望",
        "사용자 요청",
    ];
    HEADS.contains(&small)
}
