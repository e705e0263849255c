use infold_wire::acts::{Ending, State, Todo};

use super::names::Tie;
use super::places::{Done, Kind};
use super::talk::Line;
use super::write::{
    ASKED, BEFORE, CALLS, COMMANDS, FAILED, FILES, FOUND, GOAL, NAMED, OPEN, RECALL, RULED,
};
use super::{EARLIER, Extract, Source, squeeze};
use crate::refs;

impl Extract {
    /// Takes in an earlier summary, before the messages that follow it.
    ///
    /// One that an extract wrote is read back, so that what it found worth keeping competes with what came
    /// since; of any other text a shortened form is kept.
    pub fn previous(&mut self, text: &str) {
        let mut heading = "";
        let mut other = String::new();
        for line in text.lines() {
            if let Some(known) = HEADINGS.iter().find(|known| **known == line.trim_end()) {
                heading = known;
                continue;
            }
            let item = line.strip_prefix("- ");
            let read = match (heading, item) {
                (RECALL, _) => true,
                (BEFORE | "", _) | (_, None) => false,
                (heading, Some(item)) => self.read_item(heading, item).is_some(),
            };
            if !read && !is_frame(line) {
                other.push_str(line);
                other.push('\n');
            }
        }
        let other = other.trim();
        if !other.is_empty() {
            let seq = self.span.map_or(1, |(first, _)| first);
            refs::each(other, |name| self.names.meet(name, seq, Source::Said, None));
            self.earlier = squeeze(other, EARLIER);
        }
    }

    fn read_item(&mut self, heading: &str, item: &str) -> Option<()> {
        match heading {
            FILES => self.read_place(Kind::File, item),
            COMMANDS => self.read_place(Kind::Command, item),
            CALLS => self.read_place(Kind::Call, item),
            OPEN => self.read_open(item),
            GOAL | ASKED => {
                let (seq, text) = cited(item.find('[').map(|at| &item[at..])?)?;
                let text = text.strip_prefix('"')?.strip_suffix('"')?;
                self.reach(seq);
                if !self.talk.requests.iter().any(|line| line.seq == seq) {
                    self.talk.request(seq, text);
                    self.meet(text, seq, Source::User, None);
                }
                Some(())
            }
            _ => {
                let (seq, text) = cited(item)?;
                self.reach(seq);
                match heading {
                    FOUND => {
                        self.talk.finding(seq, text);
                        self.keep_names(text, seq);
                    }
                    FAILED => self.errors.read(line(seq, text)),
                    RULED => self.rules.push_back(line(seq, text)),
                    _ => self.keep_names(text, seq),
                }
                Some(())
            }
        }
    }

    fn keep_names(&mut self, text: &str, seq: u64) {
        refs::each(text, |name| self.names.keep(name, seq, None));
    }

    /// Reads `src/a.rs (edited 3× [12]): name, name`.
    fn read_place(&mut self, kind: Kind, item: &str) -> Option<()> {
        let (open, close) = brackets(item)?;
        let key = &item[..open];
        let inside = &item[open + 2..close];
        let (state, cite) = inside.rsplit_once('[')?;
        let seq: u64 = cite
            .strip_suffix(']')?
            .parse()
            .ok()
            .filter(|seq| *seq > 0)?;
        let (state, times) = match state.trim().rsplit_once(' ') {
            Some((state, times)) if times.ends_with('×') => {
                (state, times.trim_end_matches('×').parse().ok()?)
            }
            _ => (state.trim(), 1),
        };
        self.reach(seq);
        let done = Done::of(state).unwrap_or(Done::Mentioned);
        let id = self.places.touch(kind, key, done, seq);
        let rest = &item[close + 1..];
        let (key_line, names) = match rest.strip_prefix(" → ") {
            // Names stand behind the last colon, if there is one.
            Some(rest) => rest
                .rsplit_once(": ")
                .map_or((Some(rest), ""), |(key, names)| (Some(key), names)),
            None => (None, rest.strip_prefix(": ").unwrap_or("")),
        };
        if let Some(place) = self.places.get_mut(id) {
            place.times = times;
            if kind != Kind::File {
                place.ending = ending(state, key_line);
            }
        }
        let home = Some((id, Tie::Inside));
        if kind == Kind::File {
            self.names.keep(key, seq, home);
        }
        for name in names.split(", ").filter(|name| !name.is_empty()) {
            self.names.keep(name, seq, home);
        }
        Some(())
    }

    /// Reads an open thing to do. A list that comes later replaces them all.
    fn read_open(&mut self, item: &str) -> Option<()> {
        if let Some(rest) = item.strip_prefix("Plan ") {
            let (seq, text) = cited(rest)?;
            self.plan = Some(line(seq, text.trim_matches('"')));
            return Some(());
        }
        if item.starts_with("Last said ") || item.contains(" done [") {
            return Some(());
        }
        let state = match item.get(..4)? {
            "[ ] " => State::Open,
            "[-] " => State::Doing,
            _ => return None,
        };
        let (text, cite) = item[4..].rsplit_once(" [")?;
        let seq: u64 = cite.strip_suffix(']')?.parse().ok()?;
        self.reach(seq);
        let todos = &mut self.todos.get_or_insert_with(|| (seq, Vec::new())).1;
        todos.push(Todo {
            text: text.to_owned(),
            state,
        });
        Some(())
    }

    fn reach(&mut self, seq: u64) {
        let (first, last) = self.span.unwrap_or((seq, seq));
        self.span = Some((first.min(seq), last.max(seq)));
    }
}

const HEADINGS: [&str; 12] = [
    GOAL, ASKED, RULED, FOUND, FILES, COMMANDS, CALLS, FAILED, OPEN, NAMED, BEFORE, RECALL,
];

/// What the caller puts around a summary.
fn is_frame(line: &str) -> bool {
    line.starts_with("[Summary of messages ") && line.ends_with(']')
}

fn line(seq: u64, text: &str) -> Line {
    Line {
        seq,
        text: text.to_owned(),
    }
}

/// Reads `[12] text`.
fn cited(item: &str) -> Option<(u64, &str)> {
    let (seq, text) = item.strip_prefix('[')?.split_once("] ")?;
    let seq = seq.parse().ok().filter(|seq| *seq > 0)?;
    Some((seq, text))
}

/// Where ` (` and `)` stand around the last thing done.
fn brackets(item: &str) -> Option<(usize, usize)> {
    let mut from = 0;
    while let Some(found) = item[from..].find("])") {
        let close = from + found + 1;
        let open = item[..close].rfind(" (")?;
        let inside = &item[open + 2..close - 1];
        let cite = inside.rsplit_once('[')?.1;
        if !cite.is_empty() && cite.bytes().all(|byte| byte.is_ascii_digit()) {
            return Some((open, close));
        }
        from = close;
    }
    None
}

fn ending(state: &str, key: Option<&str>) -> Option<Ending> {
    let failed = match state.split(' ').next()? {
        "failed" => Some(true),
        "ok" => Some(false),
        "ran" => None,
        _ => return None,
    };
    Some(Ending {
        failed,
        code: state.rsplit(' ').next().and_then(|code| code.parse().ok()),
        key: key.map(str::to_owned),
    })
}
