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
}

/// About 5 MB of them.
const MOST: usize = 40_000;

impl Names {
    /// Counts a reference once for each message and source.
    pub fn meet(&mut self, text: &str, seq: u64, source: Source, home: Option<(PlaceId, Tie)>) {
        if let Some(name) = self.known.get_mut(text) {
            name.meet(seq, source, home);
            return;
        }
        if self.known.len() >= MOST {
            self.forget(seq);
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
        self.known.get(text).map_or(0.0, |name| name.score(text))
    }

    /// Returns those most likely to be referred to again, the likeliest first.
    pub fn ranked(&self, most: usize) -> Vec<(&str, &Name)> {
        let mut all: Vec<(f64, &str, &Name)> = self
            .known
            .iter()
            .map(|(text, name)| (name.score(text), &**text, name))
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
    fn forget(&mut self, now: u64) {
        let value = |text: &str, name: &Name| {
            // Of those met once, the newest may yet be met again.
            let age = now.saturating_sub(name.last) as f64;
            name.score(text) + 1.0 / (1.0 + age / 50.0)
        };
        let mut values: Vec<(f64, &str)> = self
            .known
            .iter()
            .map(|(text, name)| (value(text, name), &**text))
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
    /// poured out, against what it costs to keep. Of many rankings tried this was among the best at all
    /// sizes, and it has nothing in it that fits one kind of session only.
    fn score(&self, text: &str) -> f64 {
        let [user, said, called, given] = self.counts.map(f64::from);
        let met = 2.0 * user + 2.0 * said + called + 0.5 * given;
        let spoken = user + said + called > 0.0;
        met * plausible(text, spoken) / (text.len() as f64 + 6.0).sqrt()
    }
}

/// Bare numbers in outputs are mostly sizes and line numbers; hyphens also make ordinary words.
fn plausible(text: &str, spoken: bool) -> f64 {
    let letters = text.bytes().any(|byte| byte.is_ascii_alphabetic());
    let word = text
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    match (letters, spoken) {
        (false, false) => 0.25,
        (false, true) => 0.7,
        (true, _) if word => 0.6,
        _ => 1.0,
    }
}
