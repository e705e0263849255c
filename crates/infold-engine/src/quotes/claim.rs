//! What a sentence says that the user said.

use super::clause::{Clause, clauses, is_negator};
use super::cue::{self, Cue, Force};
use super::quote::{Quote, blank_citations, cited, quotes};
use super::relation::{Relation, relations};
use super::said::plain;
use super::words::{Kind, Word, words};

/// Shorter quotations are single words: values, which are compared as such.
const MIN_QUOTE_CHARS: usize = 8;
const MAX_WORDS: usize = 2000;
/// Words that say at once.
const URGENT: [&str; 11] = [
    "now",
    "immediately",
    "directly",
    "jetzt",
    "sofort",
    "maintenant",
    "ahora",
    "agora",
    "ora",
    "subito",
    "сейчас",
];
/// Words that lead to what a question or remark is about.
const TOPICS: [&str; 22] = [
    "about",
    "on",
    "regarding",
    "concerning",
    "whether",
    "if",
    "what",
    "why",
    "how",
    "where",
    "which",
    "ob",
    "warum",
    "wie",
    "si",
    "pourquoi",
    "por",
    "perche",
    "почему",
    "как",
    "sobre",
    "sur",
];

/// A claim, and what was found of it so far.
pub struct Claim {
    pub quotes: Vec<Quote>,
    /// The message that the sentence names as the place of its quotation.
    pub cited: Option<u64>,
    /// What is claimed in other words: those that carry meaning.
    pub words: Vec<Word>,
    pub clauses: Vec<Clause>,
    pub relations: Vec<Relation>,
    pub force: Force,
    /// Whether what is claimed is costly if nobody said it.
    pub strict: bool,
    /// Whether it only says what the words were about: whether it is so is left open.
    pub topic: bool,
    /// The very words in plain form, where they are given without quotation marks.
    pub literal: Option<String>,
    /// Whether the words were found.
    pub met: bool,
    /// How near the nearest message came: the words that it lacked.
    pub lacks: Option<Lack>,
}

/// Why the nearest message does not say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lack {
    Words(Vec<String>),
    Opposite,
    Turned,
    Scattered,
}

impl Lack {
    /// Orders them by how near they are.
    pub fn distance(&self) -> usize {
        match self {
            Lack::Turned => 0,
            Lack::Opposite => 1,
            Lack::Scattered => 2,
            Lack::Words(words) => 2 + words.len(),
        }
    }
}

/// How a sentence stands among others.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// The sentence before is about what the user said.
    pub follows: bool,
    /// It is an item of a list that a claim or a heading announces.
    pub listed: bool,
}

/// The claims of a sentence; none if it is not about the user's words.
pub fn read(sentence: &str, place: Place) -> Vec<Claim> {
    let (cited, quotes) = (cited(sentence), quotes(sentence));
    let mut text = sentence.to_owned();
    blank_citations(&mut text);
    if let Some(mark) = sentence.find('[').filter(|_| cited.is_some()) {
        text.replace_range(..mark, &" ".repeat(mark));
    }
    for quote in &quotes {
        if plain(quote).chars().count() >= MIN_QUOTE_CHARS {
            let at = quote.as_ptr() as usize - sentence.as_ptr() as usize;
            text.replace_range(at..at + quote.len(), &" ".repeat(quote.len()));
        }
    }
    let mut quotes: Vec<(usize, Quote)> = quotes
        .into_iter()
        .filter(|quote| plain(quote).chars().count() >= MIN_QUOTE_CHARS)
        .map(|quote| {
            (
                quote.as_ptr() as usize - sentence.as_ptr() as usize,
                Quote::read(quote),
            )
        })
        .collect();
    let all = words(&text, MAX_WORDS);
    let mut out: Vec<Claim> = Vec::new();
    let mut from = 0;
    while let Some(mut cue) = cue::find(
        &text,
        base(&all, from),
        &all[from..],
        place.follows && from == 0,
    ) {
        // Places in the text stay those of the whole sentence.
        (cue.start, cue.end) = (cue.start + from, cue.end + from);
        let start = all.get(cue.start).map_or(0, |word| word.at);
        let end = cut(&all, cue.end.max(from + 1), |at| {
            quotes.iter().any(|(quote, _)| (start..at).contains(quote))
        });
        // What the assistant goes on to quote is not the user's.
        let until = all.get(end).map_or(text.len(), |word| word.at);
        let (mine, other) = quotes.into_iter().partition(|(at, _)| *at < until);
        quotes = other;
        out.extend(claim(&text, &all, (from, end), mine, cue));
        from = end;
        if from >= all.len() {
            break;
        }
    }
    if out.is_empty() && (place.listed || cited.is_some() && !quotes.is_empty()) {
        let cue = Cue {
            whole: true,
            literal: true,
            ..Cue::default()
        };
        let end = cut(&all, 0, |at| quotes.iter().any(|(quote, _)| *quote < at));
        out.extend(claim(&text, &all, (0, end), quotes, cue));
    }
    if let Some(first) = out.first_mut() {
        first.cited = cited;
    }
    out.retain(|claim| {
        !claim.quotes.is_empty()
            || !claim.words.is_empty()
            || matches!(claim.force, Force::Approved | Force::Rejected)
    });
    out
}

/// Where in the text the words from one on begin.
fn base(words: &[Word], from: usize) -> usize {
    match from {
        0 => 0,
        _ => words.get(from).map_or(0, |word| word.at),
    }
}

impl Claim {
    fn empty() -> Claim {
        Claim {
            quotes: Vec::new(),
            cited: None,
            words: Vec::new(),
            clauses: Vec::new(),
            relations: Vec::new(),
            force: Force::Said,
            strict: false,
            topic: false,
            literal: None,
            met: false,
            lacks: None,
        }
    }

    /// Says whether the user said so.
    pub fn found(&self) -> bool {
        let quoted = self.quotes.iter().all(|quote| quote.found);
        match self.force {
            Force::Unsaid => !(self.met && quoted),
            _ => {
                quoted
                    && (self.met
                        || self.words.is_empty()
                            && !matches!(self.force, Force::Approved | Force::Rejected))
            }
        }
    }

    /// Why it counts as not said, for a person.
    pub fn why(&self) -> String {
        if let Some(quote) = self.quotes.iter().find(|quote| !quote.found) {
            return format!(
                "no message of the user has \"{}\"",
                infold_wire::shorten(&quote.text, 80)
            );
        }
        match (&self.lacks, self.force) {
            (_, Force::Unsaid) => "the user did say it".to_owned(),
            (_, Force::Approved) => "the user agreed to no such thing".to_owned(),
            (Some(Lack::Opposite), _) => {
                "the user said the opposite, or left the \"not\" out".to_owned()
            }
            (Some(Lack::Turned), _) => "the user said it the other way round".to_owned(),
            (Some(Lack::Words(words)), _) => format!(
                "no message of the user says it: {} is in none",
                words.join(", ")
            ),
            _ => "no message of the user says it".to_owned(),
        }
    }
}

/// The claim that a cue makes of the words up to `end`.
fn claim(
    text: &str,
    all: &[Word],
    (from, end): (usize, usize),
    quotes: Vec<(usize, Quote)>,
    cue: Cue,
) -> Option<Claim> {
    let quotes: Vec<Quote> = quotes.into_iter().map(|(_, quote)| quote).collect();
    if cue.force == Force::Label && quotes.is_empty() {
        return None;
    }
    let cue_end = cue.end.min(end);
    let literal = all
        .get(cue_end)
        .filter(|_| cue.literal && end == all.len())
        .map(|first| plain(&text[first.at..]));
    let mut kept: Vec<Word> = all[cue_end..end].to_vec();
    if cue.whole || quotes.is_empty() && !kept.iter().any(Word::counts) {
        kept = all[from..end]
            .iter()
            .enumerate()
            .filter(|(at, _)| !(cue.start..cue_end).contains(&(at + from)))
            .map(|(_, word)| word.clone())
            .collect();
    }
    for word in &mut kept {
        if cue.verb.contains(&word.at) {
            word.kind = Kind::Stop;
        }
    }
    for at in 1..kept.len().saturating_sub(1) {
        let between = kept[at - 1].counts() && kept[at + 1].counts() && !kept[at + 1].acts();
        if cue.prefers && between && matches!(&*kept[at].text, "over" | "a" | "to") {
            kept[at].text = "statt".to_owned();
        }
    }
    let mut ahead = true;
    for at in 0..kept.len() {
        let speech = cue::is_speech(&kept[at]) && !kept[at].is_group("approve");
        // "asked … and said": only where a verb of saying stands, not where it is a noun.
        let wide = kept[at].text.chars().any(super::form::is_wide);
        let opens = ahead
            || at > 0
                && (kept[at - 1].is_mark()
                    || [
                        "and", "then", "also", "but", "user", "they", "und", "et", "y", "e", "и",
                    ]
                    .contains(&&*kept[at - 1].text));
        if speech && (opens || wide) {
            kept[at].kind = Kind::Stop;
        }
        ahead &= !kept[at].counts();
    }
    for at in 1..kept.len() {
        // "the approach used in" asks nobody to use it.
        if kept[at - 1].text == "used" && matches!(&*kept[at].text, "in" | "by") {
            kept[at - 1].kind = Kind::Stop;
        }
    }
    let strict = cue.force == Force::Approved || kept.iter().any(Word::is_high);
    for word in &mut kept {
        if word.is_group("want") || word.is_group("all") && !strict || is_negator(word) {
            word.kind = Kind::Stop;
        }
    }
    let first = kept
        .iter()
        .find(|word| !word.is_mark())
        .map_or("", |word| &*word.text);
    let kept_topic = TOPICS.contains(&first);
    let mut clauses = clauses(text, &kept);
    // "not to use X" is "no X".
    for clause in clauses
        .iter_mut()
        .filter(|clause| clause.negated && clause.words.len() > 1)
    {
        let verbs = clause
            .words
            .iter()
            .filter(|word| word.is_group("use"))
            .map(|word| word.at);
        let verbs: Vec<usize> = verbs.collect();
        clause.words.retain(|word| !verbs.contains(&word.at));
        kept.iter_mut()
            .filter(|word| verbs.contains(&word.at))
            .for_each(|word| word.kind = Kind::Stop);
    }
    if cue.force == Force::Rejected {
        clauses.iter_mut().for_each(|clause| clause.negated = true);
    }
    Some(Claim {
        clauses,
        relations: relations(text, &kept),
        // What is costly now may be allowed later.
        words: kept
            .into_iter()
            .filter(|word| word.counts() || strict && URGENT.contains(&&*word.text))
            .collect(),
        force: cue.force,
        strict,
        topic: kept_topic,
        literal,
        quotes,
        ..Claim::empty()
    })
}

/// Says whether a sentence announces a list of what was said: "The user wanted:", "Specifically:" behind a claim.
pub fn announces(sentence: &str, place: Place) -> bool {
    let bare = sentence.trim_end().trim_end_matches(['*', '_']);
    if !bare.ends_with([':', '：']) {
        return false;
    }
    let all = words(sentence, MAX_WORDS);
    match cue::find(sentence, 0, &all, place.follows) {
        Some(cue) => {
            all[cue.end.min(all.len())..]
                .iter()
                .filter(|word| word.counts())
                .count()
                <= 1
        }
        None => place.follows && sentence.split_whitespace().count() <= 2,
    }
}

/// Where the sentence goes on with what the assistant did or thinks.
fn cut(words: &[Word], from: usize, quoted_before: impl Fn(usize) -> bool) -> usize {
    const OWN: [&str; 22] = [
        "i",
        "i'll",
        "i've",
        "i'd",
        "claude",
        "assistant",
        "found",
        "fixed",
        "verified",
        "done",
        "committed",
        "implemented",
        "completed",
        "ich",
        "j'ai",
        "я",
        "resolved",
        "reverted",
        "skipped",
        "confirmed",
        "valid",
        "rejected",
    ];
    for at in from..words.len() {
        let word = &words[at];
        // "The user said: I want …" goes on with what was said.
        if !words[from..at].iter().any(Word::counts) && !quoted_before(word.at) {
            continue;
        }
        let Some(next) = words.get(at + 1) else { break };
        let soft =
            word.kind == Kind::Mark(',') || ["and", "so", "und", "et"].contains(&&*word.text);
        let hard = matches!(
            word.kind,
            Kind::Mark('–' | '—' | ';' | ':' | '(' | '→' | '.')
        );
        let article = words
            .get(at + 2)
            .filter(|_| next.text == "the")
            .map(|word| &*word.text)
            == Some("assistant");
        let own = OWN.contains(&&*next.text);
        let first_person = [
            "i",
            "i'll",
            "i've",
            "i'd",
            "ich",
            "j'ai",
            "я",
            "claude",
            "assistant",
        ]
        .contains(&&*next.text);
        let this = hard
            && ["this", "these", "that"].contains(&&*next.text)
            && words
                .get(at + 2)
                .is_some_and(|word| ["is", "was", "are", "were"].contains(&&*word.text));
        let did = hard && next.acts() && next.text.ends_with("ed");
        if (soft && (first_person || article) || hard && (own || article) || this || did)
            && !resumes(&words[at + 1..])
        {
            return at;
        }
    }
    words.len()
}

/// Says whether words come back to what was asked or allowed: "… and to publish it".
fn resumes(words: &[Word]) -> bool {
    words.windows(3).any(|three| {
        let joined = three[0].text == "and" || three[0].is_mark();
        let asked = three[1].text == "to" && three[2].acts();
        joined && (asked || three[1].is_group("approve"))
    })
}
