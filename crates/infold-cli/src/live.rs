use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use infold::TurnEvent;
use infold_provider::CallEvent;
use infold_wire::Delta;

use crate::fold::told;
use crate::out::{DIM, bytes, count, paint, printable, say};

/// Shows a reply as it comes: its text on standard output, all else beside.
///
/// A terminal sees the text at once. Whoever else reads it cannot take back what broke off, and
/// gets it when it is whole and recorded.
pub struct Live {
    json: bool,
    /// The text of the reply, for scripts.
    pub text: String,
    /// What it thought before, for scripts.
    pub reasoning: String,
    /// What the request could not carry, and how often, for scripts.
    pub lost: BTreeMap<&'static str, u64>,
    /// What was folded on the way, for scripts.
    pub managed: Vec<serde_json::Value>,
    /// Text goes to a terminal, where a line of progress would stand in its way.
    shown: bool,
    /// Somebody watches standard error.
    watched: bool,
    started: Instant,
    first: Option<Instant>,
    next: Instant,
    pieces: u64,
    line: bool,
    at_start: bool,
    /// What was written last ends no line.
    open: bool,
    broken: io::Result<()>,
}

const PACE: Duration = Duration::from_millis(150);

/// What takes less, in seconds, has no speed that means anything.
const MEASURABLE: f64 = 0.05;

impl Live {
    /// Starts to listen.
    pub fn new(json: bool) -> Live {
        let now = Instant::now();
        Live {
            json,
            text: String::new(),
            reasoning: String::new(),
            lost: BTreeMap::new(),
            managed: Vec::new(),
            shown: !json && io::stdout().is_terminal(),
            watched: !json && io::stderr().is_terminal(),
            started: now,
            first: None,
            next: now + PACE,
            pieces: 0,
            line: false,
            at_start: true,
            open: false,
            broken: Ok(()),
        }
    }

    /// Takes in what is heard.
    pub fn hear(&mut self, news: TurnEvent<'_>) {
        match news {
            TurnEvent::Managed(outcome) => {
                if !outcome.steps.is_empty() || !outcome.errors.is_empty() {
                    self.managed.push(outcome.json());
                }
                for step in &outcome.steps {
                    self.aside(told(step));
                }
                for error in &outcome.errors {
                    self.aside(format!("but {error}"));
                }
            }
            TurnEvent::Sending(request) => {
                self.lost.clone_from(&request.lost);
                for (what, often) in &request.lost {
                    self.aside(format!("not carried over: {what} ({often})"));
                }
                let size = bytes(request.bytes);
                self.progress(&format!("sending {size}"));
            }
            TurnEvent::TooLong(text) => self.aside(format!("too long: {text}; folding more")),
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
                self.aside(format!("{why}; trying again in {seconds:.1} s ({attempt})"));
            }
            TurnEvent::Call(CallEvent::Discarded) => {
                self.text.clear();
                self.reasoning.clear();
                self.first = None;
                self.pieces = 0;
                if !self.at_start {
                    self.write("\n");
                    self.at_start = true;
                    self.aside(
                        "the reply broke off; what was shown of it does not count".to_owned(),
                    );
                }
            }
        }
    }

    fn delta(&mut self, delta: Delta) {
        self.first.get_or_insert_with(Instant::now);
        self.pieces += 1;
        match delta {
            Delta::Text(text) => {
                self.text.push_str(&text);
                if self.shown {
                    self.clear();
                    self.write(&text);
                }
            }
            Delta::Call(name) => {
                self.aside(format!("calls {name}"));
            }
            Delta::Reasoning(text) => self.reasoning.push_str(&text),
            Delta::Arguments(_) => {}
        }
        if !self.shown || self.at_start {
            let seconds = self
                .first
                .map_or(0.0, |first| first.elapsed().as_secs_f64());
            // A piece of a stream is about a token.
            let rate = self.pieces as f64 / seconds.max(0.1);
            self.progress(&format!("{}, {rate:.0}/s", count(self.pieces, "token")));
        }
    }

    /// Shows what was not shown yet of a reply that is recorded.
    pub fn show(&mut self) {
        self.clear();
        if self.at_start && !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.write(&text);
            self.text = text;
        }
    }

    /// Says how fast it was, and ends the line.
    pub fn finish(&mut self, output: Option<u64>) -> io::Result<Option<String>> {
        self.clear();
        // Whoever reads it as data gets the text and one line end, always.
        if !self.json && !self.at_start && (self.open || !self.shown) {
            self.write("\n");
        }
        if output.is_none() && self.pieces <= 1 {
            // One piece is some number of tokens, and nobody counted them.
            return std::mem::replace(&mut self.broken, Ok(())).map(|()| None);
        }
        let seconds = self.first.map(|first| first.elapsed().as_secs_f64());
        let waited = self.first.map(|first| (first - self.started).as_secs_f64());
        let tokens = output.unwrap_or(self.pieces);
        let speed = seconds.zip(waited).map(|(seconds, waited)| {
            let streamed = self.pieces > 1;
            let took = if streamed { seconds } else { seconds + waited };
            let mut told = count(tokens, "token");
            if took >= MEASURABLE {
                told += &format!(", {:.0}/s", tokens as f64 / took);
            }
            if streamed {
                told += &format!(", first after {waited:.1} s");
            }
            told
        });
        std::mem::replace(&mut self.broken, Ok(())).map(|()| speed)
    }

    fn write(&mut self, text: &str) {
        if self.json || self.broken.is_err() {
            return;
        }
        let mut out = io::stdout().lock();
        let safe;
        let text = match self.shown {
            // A terminal obeys what a file would only hold.
            true => {
                safe = printable(text);
                &safe
            }
            false => text,
        };
        self.broken = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        self.at_start = false;
        self.open = !text.ends_with('\n');
    }

    fn aside(&mut self, text: String) {
        self.clear();
        if self.shown && self.open {
            self.write("\n");
        }
        say(self.json, paint(DIM, text));
    }

    fn progress(&mut self, text: &str) {
        let now = Instant::now();
        if self.watched && now >= self.next {
            self.next = now + PACE;
            self.line = true;
            let _ = write!(io::stderr(), "\r\x1b[K{text}");
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.line) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
