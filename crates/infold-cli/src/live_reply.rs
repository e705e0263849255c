//! Shows a reply while it streams.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use infold::TurnEvent;
use infold_provider::CallEvent;
use infold_wire::ReplyDelta;

use crate::fold::describe_step;
use crate::layers::ranked_by_words;
use crate::output::{bytes, count, note, printable};

/// Shows a reply while it streams: its text on standard output, the rest on standard error.
///
/// A terminal gets the text at once. A pipe gets it when it is complete and recorded, because a
/// reader could not discard the text of a stream that breaks off.
pub struct LiveReply {
    json: bool,
    /// The text of the reply.
    pub text: String,
    /// The reasoning before it.
    pub reasoning: String,
    /// The features that the request could not include, and how often each occurred.
    pub lost: BTreeMap<&'static str, u64>,
    /// The passes that folded something.
    pub managed: Vec<serde_json::Value>,
    /// Standard output is a terminal.
    to_terminal: bool,
    /// Standard error is a terminal.
    shows_progress: bool,
    started: Instant,
    first: Option<Instant>,
    next: Instant,
    deltas: u64,
    has_progress_line: bool,
    at_start: bool,
    /// The last text written does not end with a newline.
    in_line: bool,
    written: io::Result<()>,
}

const UPDATE_INTERVAL: Duration = Duration::from_millis(150);

/// Below this time no rate is shown.
const MIN_MEASURED_SECONDS: f64 = 0.05;

impl LiveReply {
    /// Makes an empty reply.
    pub fn new(json: bool) -> LiveReply {
        let now = Instant::now();
        LiveReply {
            json,
            text: String::new(),
            reasoning: String::new(),
            lost: BTreeMap::new(),
            managed: Vec::new(),
            to_terminal: !json && io::stdout().is_terminal(),
            shows_progress: !json && io::stderr().is_terminal(),
            started: now,
            first: None,
            next: now + UPDATE_INTERVAL,
            deltas: 0,
            has_progress_line: false,
            at_start: true,
            in_line: false,
            written: Ok(()),
        }
    }

    /// Handles an event of the turn.
    pub fn handle(&mut self, news: TurnEvent<'_>) {
        match news {
            TurnEvent::Managed(outcome) => {
                if !outcome.steps.is_empty() || !outcome.errors.is_empty() {
                    self.managed.push(outcome.json());
                }
                for step in &outcome.steps {
                    self.note(describe_step(step));
                }
                for error in &outcome.errors {
                    self.note(format!("problem: {error}"));
                }
            }
            TurnEvent::Recalled(excerpts) => {
                for one in excerpts {
                    let (source, reference) = (one.source, &one.reference);
                    self.note(format!("recalled: message {source}, for {reference}"));
                }
            }
            TurnEvent::Sending(request) => {
                self.lost.clone_from(&request.lost);
                for (what, often) in &request.lost {
                    self.note(format!("not included: {what} ({often})"));
                }
                let size = bytes(request.bytes);
                self.progress(&format!("sending {size}"));
            }
            TurnEvent::RankedByWords(why) => self.note(ranked_by_words(why)),
            TurnEvent::TooLong(text) => self.note(format!("too long: {text}; folding more")),
            TurnEvent::Call(CallEvent::Sent { bytes: sent, of }) if sent < of => {
                let (part, size) = (sent * 100 / of, bytes(of));
                self.progress(&format!("sending {part} % of {size}"));
            }
            TurnEvent::Call(CallEvent::Sent { .. }) => {
                let seconds = self.started.elapsed().as_secs();
                self.progress(&format!("waiting for the reply, {seconds} s"));
            }
            TurnEvent::Call(CallEvent::Delta(delta)) => self.delta(delta),
            TurnEvent::Call(CallEvent::Retrying {
                why, wait, attempt, ..
            }) => {
                let seconds = wait.as_secs_f64();
                self.note(format!("{why}; trying again in {seconds:.1} s ({attempt})"));
            }
            TurnEvent::Call(CallEvent::Discarded) => {
                self.text.clear();
                self.reasoning.clear();
                self.first = None;
                self.deltas = 0;
                if !self.at_start {
                    self.write("\n");
                    self.at_start = true;
                    self.note("the reply broke off; ignore what was shown of it".to_owned());
                }
            }
        }
    }

    fn delta(&mut self, delta: ReplyDelta) {
        self.first.get_or_insert_with(Instant::now);
        self.deltas += 1;
        match delta {
            ReplyDelta::Text(text) => {
                self.text.push_str(&text);
                if self.to_terminal {
                    self.clear();
                    self.write(&text);
                }
            }
            ReplyDelta::Call(name) => {
                self.note(format!("calls {name}"));
            }
            ReplyDelta::Reasoning(text) => self.reasoning.push_str(&text),
            ReplyDelta::Arguments(_) => {}
        }
        if !self.to_terminal || self.at_start {
            let seconds = self
                .first
                .map_or(0.0, |first| first.elapsed().as_secs_f64());
            // A delta of a stream is about one token.
            let rate = self.deltas as f64 / seconds.max(0.1);
            self.progress(&format!("{}, {rate:.0}/s", count(self.deltas, "token")));
        }
    }

    /// Prints the text of a recorded reply, unless it was printed already.
    pub fn print(&mut self) {
        self.clear();
        if self.at_start && !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.write(&text);
            self.text = text;
        }
    }

    /// Ends the line, and returns the speed.
    pub fn finish(&mut self, output: Option<u64>) -> io::Result<Option<String>> {
        self.clear();
        // A pipe always gets the text and one newline.
        if !self.json && !self.at_start && (self.in_line || !self.to_terminal) {
            self.write("\n");
        }
        if output.is_none() && self.deltas <= 1 {
            // The number of tokens in a single delta is unknown.
            return std::mem::replace(&mut self.written, Ok(())).map(|()| None);
        }
        let seconds = self.first.map(|first| first.elapsed().as_secs_f64());
        let waited = self.first.map(|first| (first - self.started).as_secs_f64());
        let tokens = output.unwrap_or(self.deltas);
        let speed = seconds.zip(waited).map(|(seconds, waited)| {
            let streamed = self.deltas > 1;
            let took = if streamed { seconds } else { seconds + waited };
            let mut text = count(tokens, "token");
            if took >= MIN_MEASURED_SECONDS {
                text += &format!(", {:.0}/s", tokens as f64 / took);
            }
            if streamed {
                text += &format!(", first after {waited:.1} s");
            }
            text
        });
        std::mem::replace(&mut self.written, Ok(())).map(|()| speed)
    }

    fn write(&mut self, text: &str) {
        if self.json || self.written.is_err() {
            return;
        }
        let mut out = io::stdout().lock();
        // A terminal would execute escape sequences.
        let text = if self.to_terminal {
            printable(text).into()
        } else {
            Cow::from(text)
        };
        self.written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        self.at_start = false;
        self.in_line = !text.ends_with('\n');
    }

    fn note(&mut self, text: String) {
        self.clear();
        if self.to_terminal && self.in_line {
            self.write("\n");
        }
        note(self.json, text);
    }

    fn progress(&mut self, text: &str) {
        let now = Instant::now();
        if self.shows_progress && now >= self.next {
            self.next = now + UPDATE_INTERVAL;
            self.has_progress_line = true;
            let _ = write!(io::stderr(), "\r\x1b[K{text}");
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.has_progress_line) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
