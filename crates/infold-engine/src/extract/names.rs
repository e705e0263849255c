use std::collections::HashMap;

use super::places::PlaceId;

/// Where a name was met. Users and assistants choose their words; tools pour them out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    User,
    Said,
    Called,
    Given,
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
    /// In how many messages, by source.
    counts: [u16; 4],
    /// The message and source it was last counted for.
    mark: (u64, u8),
    /// The message it was last met in.
    pub last: u64,
    /// Where it belongs.
    pub home: Option<(PlaceId, Tie)>,
}

/// All references met, the less telling of them forgotten when there are too many.
#[derive(Default)]
pub struct Names {
    known: HashMap<Box<str>, Name>,
    /// The last message that any was met in.
    now: u64,
}

/// About 5 MB of them.
const MOST: usize = 40_000;
/// After this many messages half of what is new about a name is gone.
const FRESH: f64 = 100.0;

impl Names {
    /// Counts a reference once for each message and source.
    pub fn meet(&mut self, text: &str, seq: u64, source: Source, home: Option<(PlaceId, Tie)>) {
        self.now = self.now.max(seq);
        if let Some(name) = self.known.get_mut(text) {
            name.meet(seq, source, home);
            return;
        }
        if self.known.len() >= MOST {
            self.forget();
        }
        let mut name = Name {
            counts: [0; 4],
            mark: (u64::MAX, 0),
            last: seq,
            home: None,
        };
        name.meet(seq, source, home);
        self.known.insert(text.into(), name);
    }

    /// Counts a reference that an earlier summary found worth keeping.
    pub fn keep(&mut self, text: &str, seq: u64, home: Option<(PlaceId, Tie)>) {
        self.meet(text, seq, Source::Said, home);
        if let Some(name) = self.known.get_mut(text) {
            let said = &mut name.counts[Source::Said as usize];
            *said = said.saturating_add(2);
        }
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
        let mut values: Vec<(f64, &str)> = self
            .known
            .iter()
            .map(|(text, name)| (name.score(text, self.now), &**text))
            .collect();
        values.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        let gone: Vec<Box<str>> = values[MOST / 2..]
            .iter()
            .map(|(_, text)| (*text).into())
            .collect();
        for text in gone {
            self.known.remove(&text);
        }
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
        if self.mark != (seq, source as u8) {
            self.mark = (seq, source as u8);
            let count = &mut self.counts[source as usize];
            *count = count.saturating_add(1);
        }
    }

    /// In how many messages it was met, what people and models chose to say counting more than what tools
    /// poured out; up to twice that if it was met lately; against what it costs to keep.
    ///
    /// Of the rankings tried this was among the best at all sizes, none was much better, and it has nothing in it that
    /// fits one kind of session only.
    fn score(&self, text: &str, now: u64) -> f64 {
        let [user, said, called, given] = self.counts.map(f64::from);
        let met = 3.0 * user + 2.0 * said + called + 0.5 * given;
        let spoken = user + said + called > 0.0;
        let age = now.saturating_sub(self.last) as f64;
        let fresh = 1.0 + 0.5_f64.powf(age / FRESH);
        met * fresh * plausible(text, spoken) / (text.len() as f64 + 6.0).powf(0.7)
    }
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
    if WORDS.contains(&text) || bytes.len() == 6 && all(u8::is_ascii_hexdigit) {
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

/// Words of query languages and formats, which are written like names.
const WORDS: [&str; 24] = [
    "SELECT", "FROM", "WHERE", "INSERT", "INTO", "VALUES", "UPDATE", "DELETE", "CREATE", "TABLE",
    "INTEGER", "TEXT", "NULL", "PRIMARY", "ORDER", "GROUP", "LIMIT", "JOIN", "BEGIN", "COMMIT",
    "JSON", "HTTP", "TRUE", "FALSE",
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
