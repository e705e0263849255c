//! Sentences that a summary may quote, bounded: those of the assistant, and lines of results.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use super::facts::keep;
use super::names::Source;
use super::sentence;
use super::terms::Vocabulary;
use crate::refs;

/// A sentence that may be quoted.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The message it stands in.
    pub seq: u64,
    /// Who said it.
    pub source: Source,
    /// Its words.
    pub text: Box<str>,
    /// It decides, concludes or explains.
    pub decides: bool,
    /// It was said last before the user spoke again.
    pub is_final: bool,
}

/// All sentences that may be quoted; when there are too many, the weaker ones among the older half are forgotten.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    /// In the order they were said.
    pub all: Vec<Candidate>,
    bytes: usize,
    /// Where the assistant's words since the user last spoke begin.
    turn: usize,
}

const MAX_BYTES: usize = 3 << 19;
const MAX_CANDIDATES: usize = 16_000;
/// Shorter sentences say nothing by themselves, longer ones are no sentences.
const MIN_SENTENCE_BYTES: usize = 12;
const MAX_SENTENCE_BYTES: usize = 420;
/// A reply with more sentences is a document.
const MAX_SENTENCES_OF_REPLY: usize = 120;
/// So many lines of a result may be quoted,
const MAX_LINES_OF_RESULT: usize = 24;
/// if they have so many bytes.
const LINE_BYTES: RangeInclusive<usize> = 24..=240;

impl Pool {
    /// Takes what the assistant said.
    pub fn said(&mut self, seq: u64, text: &str, words: &Vocabulary) {
        let mut left = MAX_SENTENCES_OF_REPLY;
        sentence::each(text, |sentence| {
            if sentence.is_code || left == 0 || !tells(sentence.text) {
                return;
            }
            left -= 1;
            self.push(seq, Source::Said, sentence.text);
        });
        self.thin(words);
    }

    /// Takes the lines of a result that say something in words.
    pub fn given(&mut self, seq: u64, text: &str, words: &Vocabulary) {
        let mut lines: Vec<&str> = Vec::new();
        for line in text.lines() {
            let line = without_number(line.trim());
            if LINE_BYTES.contains(&line.len()) && sentence::is_prose(line) {
                lines.push(line);
            }
        }
        // Evenly from all of it, its last line included.
        let step = lines.len().div_ceil(MAX_LINES_OF_RESULT).max(1);
        let skip = lines.len().saturating_sub(1) % step;
        for line in lines.iter().skip(skip).step_by(step) {
            self.push(seq, Source::Given, line);
        }
        self.thin(words);
    }

    /// The user speaks: what the assistant said last is what it came to.
    pub fn user_speaks(&mut self, turns_down: bool) {
        let start = self.turn.min(self.all.len());
        let last = self.all[start..]
            .iter()
            .rev()
            .find(|candidate| candidate.source == Source::Said)
            .map(|candidate| candidate.seq);
        if turns_down {
            // What was proposed and turned down is not to be remembered as decided.
            let mut at = 0;
            self.all.retain(|candidate| {
                at += 1;
                at <= start || Some(candidate.seq) != last || !proposes(&candidate.text)
            });
        }
        for candidate in &mut self.all[start..] {
            candidate.is_final |= Some(candidate.seq) == last && candidate.source == Source::Said;
        }
        self.turn = self.all.len();
    }

    /// Says of each whether a later one gives a name that it gives a value another one, or says the same.
    pub fn obsolete(&self) -> Vec<bool> {
        let mut valued: HashSet<&str> = HashSet::new();
        let mut texts: HashSet<&str> = HashSet::new();
        let mut out = vec![false; self.all.len()];
        for (at, candidate) in self.all.iter().enumerate().rev() {
            let mut is_old = !texts.insert(&candidate.text);
            if candidate.source == Source::Said {
                let names = valued_names(&candidate.text);
                is_old |= names.iter().any(|name| valued.contains(name));
                valued.extend(names);
            }
            out[at] = is_old;
        }
        out
    }

    /// Returns about how many bytes they take.
    pub fn held(&self) -> usize {
        self.bytes + self.all.capacity() * size_of::<Candidate>()
    }

    fn push(&mut self, seq: u64, source: Source, text: &str) {
        let text = text.replace("**", "");
        self.bytes += text.len();
        self.all.push(Candidate {
            seq,
            source,
            decides: source == Source::Said && decides(&text),
            is_final: false,
            text: text.into(),
        });
    }

    /// Takes as long as it took to fill up, so the time stays linear.
    fn thin(&mut self, words: &Vocabulary) {
        if self.bytes <= MAX_BYTES && self.all.len() <= MAX_CANDIDATES {
            return;
        }
        let half = self.all.len() / 2;
        let mut ranked: Vec<(f64, usize)> = self.all[..half]
            .iter()
            .enumerate()
            .map(|(at, candidate)| (candidate.static_value(words), at))
            .collect();
        ranked.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let mut stays = vec![false; half];
        for (_, at) in &ranked[..half / 3] {
            stays[*at] = true;
        }
        let mut at = 0;
        self.all.retain(|_| {
            at += 1;
            at > half || stays[at - 1]
        });
        self.bytes = self.all.iter().map(|candidate| candidate.text.len()).sum();
        self.turn = self.turn.min(self.all.len());
    }
}

impl Candidate {
    /// What it says for its length, whatever else is said.
    fn static_value(&self, words: &Vocabulary) -> f64 {
        let mut sum = 0.0;
        super::terms::each(&self.text, |term| {
            sum += term.map_or(0.0, |term| words.weight(term))
        });
        let weight = if self.decides || self.is_final {
            1.5
        } else {
            1.0
        };
        weight * sum / (self.text.len() as f64 + 20.0)
    }
}

/// Takes off the number of a line that a tool put in front: `101→let x`, `12: fn`.
fn without_number(line: &str) -> &str {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = rest.len() < line.len() && rest.starts_with(['→', '\t', ':', '|']);
    if !is_numbered {
        return line;
    }
    rest[rest.chars().next().map_or(0, char::len_utf8)..].trim_start()
}

/// The names that a sentence gives numbers: `MAX = 150`, "`MAX` is 135 now", "raised `max` from 5 to 8".
fn valued_names(text: &str) -> Vec<&str> {
    const WORDS: [&str; 8] = [
        "= ", ": ", "is ", "are ", "to ", "from ", "becomes ", "now ",
    ];
    const MARKS: [char; 5] = ['`', '*', '"', '\'', ' '];
    let mut found = Vec::new();
    refs::each(text, |name| {
        let end = name.as_ptr() as usize - text.as_ptr() as usize + name.len();
        if name.starts_with(|c: char| c.is_ascii_alphabetic()) && !name.contains('/') {
            let rest = text[end..].trim_start_matches(MARKS);
            let value = WORDS.iter().find_map(|word| rest.strip_prefix(word));
            let value = value.map(|rest| rest.trim_start_matches(MARKS));
            if value.is_some_and(|value| value.starts_with(|c: char| c.is_ascii_digit())) {
                found.push(name);
            }
        }
    });
    found
}

fn tells(text: &str) -> bool {
    (MIN_SENTENCE_BYTES..=MAX_SENTENCE_BYTES).contains(&text.len())
        && !text.ends_with(':')
        && !announces(text)
}

/// Announcements tell nothing that the call after them does not.
fn announces(text: &str) -> bool {
    const STARTS: [&str; 28] = [
        "let me",
        "now let me",
        "i'll",
        "i will",
        "now i'll",
        "now i need",
        "let's",
        "now let's",
        "first, let me",
        "great",
        "perfect",
        "you're right",
        "sure",
        "okay",
        "good!",
        "here's",
        "here is",
        "excellent",
        "now i can see",
        "i'm going to",
        "next, i",
        "now i will",
        "lass mich",
        "ich werde",
        "je vais",
        "voy a",
        "我来",
        "让我",
    ];
    let small: String = text.chars().take(24).collect::<String>().to_lowercase();
    STARTS.iter().any(|start| small.starts_with(start))
}

/// Says whether a sentence offers to do something.
fn proposes(text: &str) -> bool {
    const STARTS: [&str; 14] = [
        "i would",
        "i'd",
        "we could",
        "we should",
        "should i",
        "shall i",
        "i suggest",
        "i propose",
        "i recommend",
        "option",
        "would you",
        "do you want",
        "my plan",
        "the plan",
    ];
    let small = text.to_lowercase();
    text.ends_with('?') || STARTS.iter().any(|start| small.starts_with(start))
}

/// Words that decide, conclude or explain.
const CUES: [&str; 78] = [
    "decid",
    "because",
    "instead",
    "root cause",
    "problem",
    "issue",
    "the fix",
    "fixed",
    "works",
    "should",
    "must",
    "need to",
    "needs to",
    "important",
    "found",
    "turns out",
    "chose",
    "choose",
    "will use",
    "we use",
    "no longer",
    "renamed",
    "moved",
    "added",
    "removed",
    "replaced",
    "updated",
    "changed",
    "implemented",
    "done",
    "complete",
    "failed",
    "failing",
    "passes",
    "confirmed",
    "cannot",
    "can't",
    "won't",
    "never",
    "always",
    "only",
    "total",
    "caused by",
    "reason",
    "conclu",
    "means that",
    "so that",
    "决定",
    "因为",
    "问题",
    "原因",
    "修复",
    "完成",
    "必须",
    "应该",
    "改为",
    "発見",
    "決定",
    "修正",
    "完了",
    "原因は",
    "ため",
    "weil",
    "entschieden",
    "ursache",
    "deshalb",
    "porque",
    "causa",
    "parce que",
    "cause",
    "décidé",
    "perché",
    "deciso",
    "потому",
    "причина",
    "решили",
    "때문",
    "결정",
];

/// Says whether a sentence decides or concludes something.
pub fn decides(text: &str) -> bool {
    let small = text.to_lowercase();
    CUES.iter().any(|cue| small.contains(cue))
}

keep!(Candidate {
    seq,
    source,
    text,
    decides,
    is_final
});
keep!(Pool { all, bytes, turn });
