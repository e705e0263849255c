//! References that were met: how often, by whom, how lately, and where they belong.

use std::collections::HashMap;

use super::facts::{keep, keep_choice};
use super::places::PlaceId;
use super::terms;

/// Where a name was met. Users and assistants choose their words; tools pour them out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    User,
    Said,
    Called,
    Given,
}

impl Source {
    /// What a meeting counts.
    fn weight(self) -> f32 {
        match self {
            Source::User => 3.0,
            Source::Said => 1.4,
            Source::Called => 2.0,
            Source::Given => 0.4,
        }
    }
}

/// How firmly a name belongs to a place. A firmer tie, or an equal later one, replaces another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tie {
    /// Said while the place was at hand.
    Near,
    /// In what it gave back.
    Shown,
    /// In a file's contents, or in what was asked of a tool.
    Inside,
    /// In what was written there.
    Written,
}

/// What is known of one reference.
#[derive(Clone, Debug)]
pub struct Name {
    /// How it was met, and when.
    met: Met,
    /// The message it was last met in.
    pub last: u64,
    /// Where it belongs.
    pub home: Option<(PlaceId, Tie)>,
}

/// In how many messages something was met: in all, and lately.
#[derive(Clone, Copy, Debug, Default)]
pub struct Met {
    /// All meetings, weighed by who spoke.
    total: f32,
    /// The same, each counting half as much after every [`HALF_LIFE_MESSAGES`].
    recent: f32,
    /// The message it was last counted for,
    last: u64,
    /// the sources it was counted for there,
    sources: u8,
    /// and whether a user or a model ever said it.
    is_spoken: bool,
}

/// After this many messages a meeting counts half as much.
const HALF_LIFE_MESSAGES: f64 = 30.0;
/// What a meeting that is long past still counts.
const PAST_WORTH: f64 = 0.1;
/// What only tools poured out is seldom referred to.
const UNSPOKEN_WORTH: f64 = 0.2;

impl Met {
    /// Counts a meeting once for each message and source.
    pub fn count(&mut self, seq: u64, source: Source) {
        let bit = 1 << source as u8;
        if self.last == seq && self.sources & bit != 0 {
            return;
        }
        let age = seq.saturating_sub(self.last) as f64;
        let weight = source.weight();
        self.recent = (f64::from(self.recent) * decay(age)) as f32 + weight;
        self.total += weight;
        self.sources = bit | if self.last == seq { self.sources } else { 0 };
        self.last = seq;
        self.is_spoken |= source != Source::Given;
    }

    /// How much it was met, most of all lately, and whether somebody said it.
    pub fn value(&self, now: u64) -> f64 {
        let age = now.saturating_sub(self.last) as f64;
        let met = f64::from(self.recent) * decay(age) + PAST_WORTH * f64::from(self.total);
        if self.is_spoken {
            met
        } else {
            met * UNSPOKEN_WORTH
        }
    }
}

impl Met {
    /// How rare it is: one if it was met once, less the more it was met.
    pub fn rarity(&self) -> f64 {
        f64::from(Source::User.weight() / self.total.max(Source::User.weight()))
    }
}

fn decay(messages: f64) -> f64 {
    0.5_f64.powf(messages / HALF_LIFE_MESSAGES)
}

/// All references met, the less telling of them forgotten when there are too many.
#[derive(Default)]
pub struct Names {
    known: HashMap<Box<str>, Name>,
    /// The last message that any was met in.
    now: u64,
}

/// As many as a map of 2 MB holds; with one more it would double.
const MAX_NAMES: usize = 28_000;

impl Names {
    /// Counts a reference once for each message and source.
    pub fn meet(&mut self, text: &str, seq: u64, source: Source, home: Option<(PlaceId, Tie)>) {
        self.now = self.now.max(seq);
        if let Some(name) = self.known.get_mut(text) {
            name.meet(seq, source, home);
            return;
        }
        if self.known.len() >= MAX_NAMES {
            self.forget();
        }
        let mut name = Name {
            met: Met::default(),
            last: seq,
            home: None,
        };
        name.meet(seq, source, home);
        self.known.insert(text.into(), name);
    }

    /// Returns how likely a reference is to be made again; zero if it was never met.
    pub fn score(&self, text: &str) -> f64 {
        self.known
            .get(text)
            .map_or(0.0, |name| name.score(text, self.now))
    }

    /// Returns about how many bytes they take.
    pub fn held(&self) -> usize {
        let each = size_of::<(Box<str>, Name)>() + 1;
        self.known.capacity() * each + self.known.keys().map(|text| text.len() + 16).sum::<usize>()
    }

    /// Returns those most likely to be referred to again, the likeliest first.
    pub fn ranked(&self, most: usize) -> Vec<(&str, &Name)> {
        let mut all: Vec<(f64, &str, &Name)> = self
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
        all.truncate(most);
        all.into_iter()
            .map(|(_, text, name)| (text, name))
            .collect()
    }

    /// Keeps the better half. It takes as many new ones to fill up again, so the time stays linear.
    fn forget(&mut self) {
        let now = self.now;
        // Of equals the hash decides, so that the same messages lead to the same summary.
        let rank = |text: &str, name: &Name| (name.score(text, now), terms::hash(text));
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

impl Name {
    fn meet(&mut self, seq: u64, source: Source, home: Option<(PlaceId, Tie)>) {
        self.last = seq;
        if let Some((_, tie)) = home
            && self.home.is_none_or(|(_, old)| tie >= old)
        {
            self.home = home;
        }
        self.met.count(seq, source);
    }

    /// How much it was met, most of all lately, against what it costs to keep.
    ///
    /// Of the rankings tried on real sessions this keeps most at all sizes; what is met in calls counts as much as what is said.
    fn score(&self, text: &str, now: u64) -> f64 {
        let worth = self.met.value(now) * plausible(text, self.met.is_spoken);
        10.0 * worth / (text.len() as f64 + 6.0)
    }
}

/// Says whether a text may be the name of something: not a word of a language, not a bare number.
pub fn is_plausible(text: &str) -> bool {
    plausible(text, false) >= 0.5
}

/// How much a reference is one: bare numbers in outputs are mostly sizes and line numbers, hyphens and capitals also
/// make ordinary words, and what every program calls says nothing of this one.
fn plausible(text: &str, spoken: bool) -> f64 {
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
    // Dates and versions say more than bare numbers.
    if !bytes.iter().any(u8::is_ascii_alphabetic) {
        return if spoken { 0.9 } else { 0.5 };
    }
    if WORDS.contains(&text) {
        return 0.0;
    }
    if bytes.len() == 6 && all(u8::is_ascii_hexdigit) {
        return 0.2;
    }
    if all(|byte| byte.is_ascii_lowercase() || *byte == b'-') || all(u8::is_ascii_uppercase) {
        return 0.6;
    }
    if let Some((head, tail)) = text.split_once('.')
        && (EVERYBODYS.contains(&head) || EVERYTHINGS.contains(&tail))
    {
        return 0.3;
    }
    1.0
}

/// Words of query languages, shells and formats, which are written like names.
const WORDS: [&str; 74] = [
    "SELECT",
    "FROM",
    "WHERE",
    "INSERT",
    "INTO",
    "VALUES",
    "UPDATE",
    "DELETE",
    "CREATE",
    "TABLE",
    "INTEGER",
    "TEXT",
    "NULL",
    "PRIMARY",
    "ORDER",
    "GROUP",
    "LIMIT",
    "JOIN",
    "BEGIN",
    "COMMIT",
    "JSON",
    "HTTP",
    "HTTPS",
    "TRUE",
    "FALSE",
    "NONE",
    "INNER",
    "LEFT",
    "RIGHT",
    "OUTER",
    "HAVING",
    "DISTINCT",
    "UNION",
    "INDEX",
    "UNIQUE",
    "VARCHAR",
    "REFERENCES",
    "FOREIGN",
    "DEFAULT",
    "CASCADE",
    "ALTER",
    "DROP",
    "EXISTS",
    "COUNT",
    "DESC",
    "ROLLBACK",
    "EXPLAIN",
    "WITH",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "NAME",
    "TYPE",
    "DATE",
    "TIME",
    "UUID",
    "HTML",
    "UTF-8",
    "utf-8",
    "POST",
    "HEAD",
    "PATCH",
    "ERROR",
    "WARN",
    "INFO",
    "DEBUG",
    "PASS",
    "FAIL",
    "TODO",
    "NOTE",
    "README",
    "/dev/null",
    "2>&1",
];
/// Heads of names that belong to a language, not to a project,
const EVERYBODYS: [&str; 14] = [
    "Math", "JSON", "Object", "Array", "Number", "String", "Promise", "Date", "console", "process",
    "path", "os", "std", "sys",
];
/// and ends that any value has.
const EVERYTHINGS: [&str; 20] = [
    "length",
    "push",
    "map",
    "filter",
    "join",
    "trim",
    "includes",
    "forEach",
    "slice",
    "split",
    "append",
    "format",
    "replace",
    "toString",
    "substring",
    "startsWith",
    "len",
    "unwrap",
    "clone",
    "next",
];

keep!(Met {
    total,
    recent,
    last,
    sources,
    is_spoken
});
keep!(Name { met, last, home });
keep!(Names { known, now });
keep_choice!(Source {
    User,
    Said,
    Called,
    Given
});
keep_choice!(Tie {
    Near,
    Shown,
    Inside,
    Written
});
