//! References that messages mention: how often, from where, how lately, and the target they belong to.

use std::collections::HashMap;

use super::facts::{persist, persist_enum};
use super::targets::TargetId;
use super::terms;
use super::word_lists::{COMMON_METHODS, KEYWORDS, LANGUAGE_NAMESPACES};

/// The kind of text that mentions a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MentionOrigin {
    User,
    Assistant,
    Call,
    Result,
}

impl MentionOrigin {
    /// Returns the weight of a mention: people and models choose their words, tools print everything.
    fn weight(self) -> f32 {
        match self {
            MentionOrigin::User => 3.0,
            MentionOrigin::Assistant => 1.4,
            MentionOrigin::Call => 2.0,
            MentionOrigin::Result => 0.4,
        }
    }
}

/// The strength of the association between a name and a target. A stronger affinity, or an equal later one, replaces
/// another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Affinity {
    /// The name was mentioned while the target was worked on.
    Nearby,
    /// The name occurs in the output of a command.
    Output,
    /// The name occurs in a file or in the arguments of a call.
    Content,
    /// The name was written there.
    Written,
}

/// The mentions of one reference.
#[derive(Clone, Debug)]
pub struct NameRecord {
    mentions: Mentions,
    /// The last message that mentions it.
    pub last: u64,
    /// The target it belongs to.
    pub home: Option<(TargetId, Affinity)>,
}

/// The weight of mentions: in all, and recent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mentions {
    /// All mentions, weighted by origin.
    total: f32,
    /// The same sum, in which each mention counts half as much after every [`HALF_LIFE_MESSAGES`].
    recent: f32,
    /// The message it was last counted for.
    last: u64,
    /// The origins it was counted for in that message, as bits.
    origins: u8,
    /// Whether a user or a model ever used the name.
    is_spoken: bool,
}

/// After this many messages a mention counts half as much.
const HALF_LIFE_MESSAGES: f64 = 30.0;
/// The share of its weight that an old mention keeps.
const PAST_WORTH: f64 = 0.1;
/// The factor for names that only tools printed: they are seldom referred to.
const UNSPOKEN_WORTH: f64 = 0.2;

impl Mentions {
    /// Counts a mention once for each message and origin.
    pub fn count(&mut self, seq: u64, origin: MentionOrigin) {
        let bit = 1 << origin as u8;
        if self.last == seq && self.origins & bit != 0 {
            return;
        }
        let age = seq.saturating_sub(self.last) as f64;
        let weight = origin.weight();
        self.recent = (f64::from(self.recent) * decay(age)) as f32 + weight;
        self.total += weight;
        self.origins = bit | if self.last == seq { self.origins } else { 0 };
        self.last = seq;
        self.is_spoken |= origin != MentionOrigin::Result;
    }

    /// Returns the weight of all mentions, recent ones counting more.
    pub fn value(&self, now: u64) -> f64 {
        let age = now.saturating_sub(self.last) as f64;
        let weight = f64::from(self.recent) * decay(age) + PAST_WORTH * f64::from(self.total);
        if self.is_spoken {
            weight
        } else {
            weight * UNSPOKEN_WORTH
        }
    }

    /// Returns one for a single mention, and less for more of them.
    pub fn rarity(&self) -> f64 {
        f64::from(MentionOrigin::User.weight() / self.total.max(MentionOrigin::User.weight()))
    }
}

fn decay(messages: f64) -> f64 {
    0.5_f64.powf(messages / HALF_LIFE_MESSAGES)
}

/// All mentioned references; the less likely half is dropped if there are too many.
#[derive(Default)]
pub struct NameTable {
    known: HashMap<Box<str>, NameRecord>,
    /// The last message that mentions any.
    now: u64,
}

/// The capacity of a map of 2 MB; one more would double it.
const MAX_NAMES: usize = 28_000;

impl NameTable {
    /// Counts a reference once for each message and origin.
    pub fn record(
        &mut self,
        text: &str,
        seq: u64,
        origin: MentionOrigin,
        home: Option<(TargetId, Affinity)>,
    ) {
        self.now = self.now.max(seq);
        if let Some(name) = self.known.get_mut(text) {
            name.record(seq, origin, home);
            return;
        }
        if self.known.len() >= MAX_NAMES {
            self.forget();
        }
        let mut name = NameRecord {
            mentions: Mentions::default(),
            last: seq,
            home: None,
        };
        name.record(seq, origin, home);
        self.known.insert(text.into(), name);
    }

    /// Returns how likely a reference is to be used again; zero if it was never mentioned.
    pub fn score(&self, text: &str) -> f64 {
        self.known
            .get(text)
            .map_or(0.0, |name| name.score(text, self.now))
    }

    /// Returns about how many bytes the table takes.
    pub fn memory_bytes(&self) -> usize {
        let each = size_of::<(Box<str>, NameRecord)>() + 1;
        self.known.capacity() * each + self.known.keys().map(|text| text.len() + 16).sum::<usize>()
    }

    /// Returns the references most likely to be used again, the likeliest first.
    pub fn ranked(&self, max_names: usize) -> Vec<(&str, &NameRecord)> {
        let mut all: Vec<(f64, &str, &NameRecord)> = self
            .known
            .iter()
            .map(|(text, name)| (name.score(text, self.now), &**text, name))
            .filter(|(score, ..)| *score > 0.0)
            .collect();
        all.sort_unstable_by(|a, b| {
            b.0.total_cmp(&a.0)
                .then(b.2.last.cmp(&a.2.last))
                .then(a.1.cmp(b.1))
        });
        all.truncate(max_names);
        all.into_iter()
            .map(|(_, text, name)| (text, name))
            .collect()
    }

    /// Keeps the better half. As many new names fill it up again, so the total time stays linear.
    fn forget(&mut self) {
        let now = self.now;
        // The hash decides between equals, so that the same messages lead to the same summary.
        let rank = |text: &str, name: &NameRecord| (name.score(text, now), terms::hash(text));
        let order = |a: &(f64, u64), b: &(f64, u64)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        let mut ranks: Vec<(f64, u64)> = self
            .known
            .iter()
            .map(|(text, name)| rank(text, name))
            .collect();
        let middle = ranks.len() / 2;
        let least = *ranks.select_nth_unstable_by(middle, order).1;
        self.known
            .retain(|text, name| order(&rank(text, name), &least).is_ge());
    }
}

impl NameRecord {
    fn record(&mut self, seq: u64, origin: MentionOrigin, home: Option<(TargetId, Affinity)>) {
        self.last = seq;
        if let Some((_, tie)) = home
            && self.home.is_none_or(|(_, old)| tie >= old)
        {
            self.home = home;
        }
        self.mentions.count(seq, origin);
    }

    /// Returns the weight of its mentions against its length.
    ///
    /// Of the rankings tried on real sessions this one keeps most at all sizes.
    fn score(&self, text: &str, now: u64) -> f64 {
        let worth = self.mentions.value(now) * plausibility(text, self.mentions.is_spoken);
        10.0 * worth / (text.len() as f64 + 6.0)
    }
}

/// Says whether a text may be the name of something, and not a word of a language or a bare number.
pub fn is_plausible(text: &str) -> bool {
    plausibility(text, false) >= 0.5
}

/// Returns how likely a reference is a name: bare numbers in outputs are mostly sizes and line numbers, hyphens and
/// capitals also make ordinary words, and names of a standard library are not specific to a project.
fn plausibility(text: &str, spoken: bool) -> f64 {
    let bytes = text.as_bytes();
    let all = |class: fn(&u8) -> bool| bytes.iter().all(class);
    if all(u8::is_ascii_digit) {
        let round = bytes[1..].iter().all(|byte| *byte == b'0');
        return match (round, spoken) {
            (true, _) => 0.1,
            (false, true) => 0.7,
            (false, false) => 0.25,
        };
    }
    // Dates and versions are more specific than bare numbers.
    if !bytes.iter().any(u8::is_ascii_alphabetic) {
        return if spoken { 0.9 } else { 0.5 };
    }
    if KEYWORDS.has(text) {
        return 0.0;
    }
    if bytes.len() == 6 && all(u8::is_ascii_hexdigit) {
        return 0.2;
    }
    if all(|byte| byte.is_ascii_lowercase() || *byte == b'-') || all(u8::is_ascii_uppercase) {
        return 0.6;
    }
    if let Some((head, tail)) = text.split_once('.')
        && (LANGUAGE_NAMESPACES.has(head) || COMMON_METHODS.has(tail))
    {
        return 0.3;
    }
    1.0
}

persist!(Mentions: total, recent, last, origins, is_spoken);
persist!(NameRecord: mentions, last, home);
persist!(NameTable: known, now);
persist_enum!(MentionOrigin: User, Assistant, Call, Result);
persist_enum!(Affinity: Nearby, Output, Content, Written);
