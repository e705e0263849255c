//! Reads the claims of a sentence about the user's words.

use super::clause::{Clause, split_clauses};
use super::cue::{self, Cue, Force};
use super::message_index::plain;
use super::quotation::{Quotation, blank_citations, cited_seq, find_quotations};
use super::relation::{Relation, find_relations};
use super::tables::{ASSISTANT, ASSISTANT_DID, NEGATIONS, TOPICS, URGENT, among};
use super::word_form::is_wide;
use super::words::{Word, WordKind, split_words};

/// Shorter quotations are single words: values, which are compared as such.
const MIN_QUOTE_CHARS: usize = 8;
const MAX_SENTENCE_WORDS: usize = 2000;

/// A statement that a summary attributes to the user, and the evidence found so far.
#[derive(Default)]
pub struct UserClaim {
    pub quotes: Vec<Quotation>,
    /// The message that the sentence cites for its quotation.
    pub cited: Option<u64>,
    /// The meaningful words of the claim, for comparison in other words.
    pub words: Vec<Word>,
    pub clauses: Vec<Clause>,
    pub relations: Vec<Relation>,
    pub force: Force,
    /// Whether the claimed action is costly if the user did not ask for it.
    pub strict: bool,
    /// Whether the claim names only a topic, not the statement about it.
    pub topic: bool,
    /// The exact words in plain form, if they are given without quotation marks.
    pub literal: Option<String>,
    /// Whether evidence was found.
    pub found: bool,
    /// The reason that the nearest message does not support the claim.
    pub mismatch: Option<Mismatch>,
}

/// The reason that a message does not support a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The message lacks these words.
    Words(Vec<String>),
    /// The message says the opposite.
    Opposite,
    /// The message has the relation in the other direction.
    Reversed,
    /// The message has the words, but not together.
    Scattered,
}

impl Mismatch {
    /// Returns how far the message is from supporting the claim.
    pub fn distance(&self) -> usize {
        match self {
            Mismatch::Reversed => 0,
            Mismatch::Opposite => 1,
            Mismatch::Scattered => 2,
            Mismatch::Words(words) => 2 + words.len(),
        }
    }
}

/// The context of a sentence in the summary.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClaimContext {
    /// Whether the preceding sentence is about the user's words.
    pub follows_claim: bool,
    /// Whether the sentence is an item of a list that a claim or a heading announces.
    pub in_list: bool,
}

/// Returns the claims of a sentence; none if it is not about the user's words.
pub fn read_claims(sentence: &str, around: ClaimContext) -> Vec<UserClaim> {
    let cited = cited_seq(sentence);
    let mut text = sentence.to_owned();
    blank_citations(&mut text);
    if let Some(mark) = sentence.find('[').filter(|_| cited.is_some()) {
        text.replace_range(..mark, &" ".repeat(mark));
    }
    let mut quotes = Vec::new();
    for quote in find_quotations(sentence) {
        if plain(quote).chars().count() >= MIN_QUOTE_CHARS {
            let at = quote.as_ptr() as usize - sentence.as_ptr() as usize;
            text.replace_range(at..at + quote.len(), &" ".repeat(quote.len()));
            quotes.push((at, Quotation::read(quote)));
        }
    }
    let all = split_words(&text, MAX_SENTENCE_WORDS);
    let mut out: Vec<UserClaim> = Vec::new();
    let mut from = 0;
    while from == 0 || from < all.len() {
        let base = if from == 0 { 0 } else { all[from].at };
        let follows = around.follows_claim && from == 0;
        let Some(mut cue) = cue::find(&text, base, &all[from..], follows) else {
            break;
        };
        // Indices stay those of the whole sentence.
        (cue.start, cue.end) = (cue.start + from, cue.end + from);
        let start = all.get(cue.start).map_or(0, |word| word.at);
        let end = find_own_report(&all, cue.end.max(from + 1), |at| {
            quotes.iter().any(|(quote, _)| (start..at).contains(quote))
        });
        // Quotations behind that end are not the user's.
        let until = all.get(end).map_or(text.len(), |word| word.at);
        let (mine, others) = quotes.into_iter().partition(|(at, _)| *at < until);
        quotes = others;
        out.extend(build_claim(&text, &all, (from, end), mine, cue));
        from = end;
        if from == 0 {
            break;
        }
    }
    if out.is_empty() && (around.in_list || cited.is_some() && !quotes.is_empty()) {
        let cue = Cue {
            whole: true,
            literal: true,
            ..Cue::default()
        };
        let end = find_own_report(&all, 0, |at| quotes.iter().any(|(quote, _)| *quote < at));
        out.extend(build_claim(&text, &all, (0, end), quotes, cue));
    }
    if let Some(first) = out.first_mut() {
        first.cited = cited;
    }
    out.retain(|claim| {
        !claim.quotes.is_empty() || !claim.words.is_empty() || claim.is_about_consent()
    });
    out
}

impl UserClaim {
    fn is_about_consent(&self) -> bool {
        matches!(self.force, Force::Approved | Force::Rejected)
    }

    /// Says whether the claim holds.
    pub fn holds(&self) -> bool {
        let is_quoted = self.quotes.iter().all(|quote| quote.found);
        if self.force == Force::Unsaid {
            return !(self.found && is_quoted);
        }
        is_quoted && (self.found || self.words.is_empty() && !self.is_about_consent())
    }

    /// Says for a person why it does not hold.
    pub fn reason(&self) -> String {
        if let Some(quote) = self.quotes.iter().find(|quote| !quote.found) {
            return format!(
                "no message of the user has \"{}\"",
                infold_wire::shorten(&quote.text, 80)
            );
        }
        let reason = match (&self.mismatch, self.force) {
            (_, Force::Unsaid) => "the user did say it",
            (_, Force::Approved) => "the user agreed to no such thing",
            (Some(Mismatch::Opposite), _) => "the user said the opposite, or left the \"not\" out",
            (Some(Mismatch::Reversed), _) => "the user said it the other way round",
            (Some(Mismatch::Words(words)), _) => {
                let words = words.join(", ");
                return format!("no message of the user says it: {words} is in none");
            }
            _ => "no message of the user says it",
        };
        reason.to_owned()
    }
}

/// Builds the claim that a cue makes of the words from `from` to `end`.
fn build_claim(
    text: &str,
    all: &[Word],
    (from, end): (usize, usize),
    quotes: Vec<(usize, Quotation)>,
    cue: Cue,
) -> Option<UserClaim> {
    let quotes: Vec<Quotation> = quotes.into_iter().map(|(_, quote)| quote).collect();
    if cue.force == Force::Label && quotes.is_empty() {
        return None;
    }
    let cue_end = cue.end.min(end);
    let literal = all
        .get(cue_end)
        .filter(|_| cue.literal && end == all.len())
        .map(|first| plain(&text[first.at..]));
    let mut words: Vec<Word> = all[cue_end..end].to_vec();
    if cue.whole || quotes.is_empty() && !words.iter().any(Word::carries_meaning) {
        let is_cue = |at: usize| (cue.start..cue_end).contains(&at);
        words = (from..end)
            .filter(|at| !is_cue(*at))
            .map(|at| all[at].clone())
            .collect();
    }
    let is_strict = stop_reporting_words(&mut words, &cue);
    let first = words.iter().find(|word| !word.is_mark());
    let is_topic = first.is_some_and(|word| TOPICS.has(&word.text));
    let mut clauses = split_clauses(text, &words);
    // "not to use X" is "no X".
    for clause in clauses
        .iter_mut()
        .filter(|clause| clause.negated && clause.words.len() > 1)
    {
        let uses = clause.words.iter().filter(|word| word.means("use"));
        let uses: Vec<usize> = uses.map(|word| word.at).collect();
        clause.words.retain(|word| !uses.contains(&word.at));
        for word in words.iter_mut().filter(|word| uses.contains(&word.at)) {
            word.kind = WordKind::Stop;
        }
    }
    if cue.force == Force::Rejected {
        clauses.iter_mut().for_each(|clause| clause.negated = true);
    }
    Some(UserClaim {
        clauses,
        relations: find_relations(text, &words),
        // A costly action that is wanted now may only have been allowed for later.
        words: words
            .into_iter()
            .filter(|word| word.carries_meaning() || is_strict && URGENT.has(&word.text))
            .collect(),
        force: cue.force,
        strict: is_strict,
        topic: is_topic,
        literal,
        quotes,
        ..UserClaim::default()
    })
}

/// Turns reporting words into stop words; says whether one of the remaining words is costly.
fn stop_reporting_words(words: &mut [Word], cue: &Cue) -> bool {
    for word in words.iter_mut().filter(|word| cue.verb.contains(&word.at)) {
        word.kind = WordKind::Stop;
    }
    for at in 1..words.len().saturating_sub(1) {
        let is_between = words[at - 1].carries_meaning()
            && words[at + 1].carries_meaning()
            && !words[at + 1].is_action();
        if cue.prefers && is_between && among("over a to", &words[at].text) {
            words[at].text = "statt".to_owned();
        }
    }
    let mut is_ahead = true;
    for at in 0..words.len() {
        let is_speech = cue::is_speech(&words[at]) && !words[at].means("approve");
        // "asked … and said": only if a verb of saying is used, not the same word as a noun.
        let opens = is_ahead
            || at > 0
                && (words[at - 1].is_mark()
                    || among(
                        "and then also but user they und et y e и",
                        &words[at - 1].text,
                    ));
        if is_speech && (opens || words[at].text.chars().any(is_wide)) {
            words[at].kind = WordKind::Stop;
        }
        is_ahead &= !words[at].carries_meaning();
    }
    for at in 1..words.len() {
        // "the approach used in" is no request to use it.
        if words[at - 1].text == "used" && among("in by", &words[at].text) {
            words[at - 1].kind = WordKind::Stop;
        }
    }
    let is_strict = cue.force == Force::Approved || words.iter().any(Word::is_costly);
    for word in words {
        if word.means("want") || word.means("all") && !is_strict || NEGATIONS.has(&word.text) {
            word.kind = WordKind::Stop;
        }
    }
    is_strict
}

/// Says whether a sentence announces a list of the user's statements: "The user wanted:", "Specifically:" behind a
/// claim.
pub fn announces_list(sentence: &str, around: ClaimContext) -> bool {
    let bare = sentence.trim_end().trim_end_matches(['*', '_']);
    if !bare.ends_with([':', '：']) {
        return false;
    }
    let all = split_words(sentence, MAX_SENTENCE_WORDS);
    match cue::find(sentence, 0, &all, around.follows_claim) {
        Some(cue) => {
            let rest = all[cue.end.min(all.len())..].iter();
            rest.filter(|word| word.carries_meaning()).count() <= 1
        }
        None => around.follows_claim && sentence.split_whitespace().count() <= 2,
    }
}

/// Returns the index of the word where the sentence continues with the assistant's own actions or thoughts.
fn find_own_report(words: &[Word], from: usize, quoted_before: impl Fn(usize) -> bool) -> usize {
    for at in from..words.len() {
        let word = &words[at];
        // "The user said: I want …" continues with the user's words.
        if !words[from..at].iter().any(Word::carries_meaning) && !quoted_before(word.at) {
            continue;
        }
        let Some(next) = words.get(at + 1) else { break };
        let second = words.get(at + 2).map_or("", |word| &*word.text);
        let is_soft = word.kind == WordKind::Mark(',') || among("and so und et", &word.text);
        let is_hard = matches!(
            word.kind,
            WordKind::Mark('–' | '—' | ';' | ':' | '(' | '→' | '.')
        );
        let is_assistant = ASSISTANT.has(&next.text) || next.text == "the" && second == "assistant";
        let is_remark = among("this these that", &next.text) && among("is was are were", second);
        let is_deed = next.is_action() && next.text.ends_with("ed");
        let is_own = ASSISTANT_DID.has(&next.text);
        if (is_soft && is_assistant || is_hard && (is_assistant || is_own || is_remark || is_deed))
            && !resumes(&words[at + 1..])
        {
            return at;
        }
    }
    words.len()
}

/// Says whether words return to the request or permission: "… and to publish it".
fn resumes(words: &[Word]) -> bool {
    words.windows(3).any(|three| {
        let is_joined = three[0].text == "and" || three[0].is_mark();
        let is_request = three[1].text == "to" && three[2].is_action();
        is_joined && (is_request || three[1].means("approve"))
    })
}
