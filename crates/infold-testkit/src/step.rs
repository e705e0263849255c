//! One step of a script: the handling of one request.

use std::sync::Arc;
use std::time::Duration;

use infold_wire::Reply;
use tokio::sync::Semaphore;

use crate::{Answer, NamedError, errors};

/// The handling of one request.
#[derive(Clone, Debug)]
pub struct Step {
    pub(crate) what: StepAction,
    pub(crate) pace: Pace,
}

#[derive(Clone, Debug)]
pub(crate) enum StepAction {
    /// The default model, which repeats its input.
    Model,
    Answer(Answer),
    /// A reply already in the form of the wire.
    Exact(Reply),
    Raw(Raw),
    Never,
}

/// A response as it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Raw {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// How a response is sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pace {
    pub after: Duration,
    pub between: Duration,
    /// How many bytes at a time, and how long between them.
    pub slow: Option<(usize, Duration)>,
    pub cut: Option<Cut>,
    pub reset: bool,
    /// Which event is broken, from zero.
    pub malformed: Option<usize>,
    /// How many characters a streamed piece has.
    pub piece: Option<usize>,
    /// After how many events the rest waits for a gate.
    pub gate: Option<(usize, Gate)>,
}

/// A gate that a test opens to let the rest of an answer through.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Semaphore>);

impl Gate {
    /// Returns a closed gate.
    pub fn closed() -> Gate {
        Gate(Arc::new(Semaphore::new(0)))
    }

    /// Lets everything through, from now on.
    pub fn open(&self) {
        self.0.close();
    }

    /// Waits until it is open.
    pub(crate) async fn wait(&self) {
        // There are no permits: this ends when the semaphore is closed.
        let _ = self.0.acquire().await;
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    Bytes(usize),
    Events(usize),
}

impl Step {
    fn new(what: StepAction) -> Step {
        let pace = Pace::default();
        Step { what, pace }
    }

    /// Says this.
    pub fn say(text: impl Into<String>) -> Step {
        Step::answer(Answer {
            text: Some(text.into()),
            ..Answer::default()
        })
    }

    /// Reasons, then speaks.
    pub fn think(thought: impl Into<String>, text: impl Into<String>) -> Step {
        Step::answer(Answer {
            thinking: Some(thought.into()),
            text: Some(text.into()),
            ..Answer::default()
        })
    }

    /// Calls a tool; the arguments are the text of a JSON object.
    pub fn call(name: impl Into<String>, arguments: impl Into<String>) -> Step {
        Step::answer(Answer {
            calls: vec![(name.into(), arguments.into())],
            ..Answer::default()
        })
    }

    /// Answers.
    pub fn answer(answer: Answer) -> Step {
        Step::new(StepAction::Answer(answer))
    }

    /// Replies with exactly this, whose messages are in the form of the wire that is asked.
    pub fn exact(reply: Reply) -> Step {
        Step::new(StepAction::Exact(reply))
    }

    /// Lets the default model answer.
    pub fn model() -> Step {
        Step::new(StepAction::Model)
    }

    /// Responds with this status and body.
    pub fn error(status: u16, body: impl Into<Vec<u8>>) -> Step {
        Step::new(StepAction::Raw(Raw {
            status,
            headers: vec![("content-type".into(), "application/json".into())],
            body: body.into(),
        }))
    }

    /// Responds with an error of [`errors`], by its name.
    ///
    /// # Panics
    ///
    /// If there is none of that name: the test is wrong.
    pub fn named(name: &str) -> Step {
        let found = errors().iter().find(|error| error.name == name);
        Step::from(found.unwrap_or_else(|| panic!("no error is named `{name}`")))
    }

    /// Responds with 200 and nothing.
    pub fn empty() -> Step {
        Step::new(StepAction::Raw(Raw {
            status: 200,
            ..Raw::default()
        }))
    }

    /// Never responds; the connection stays open.
    pub fn never() -> Step {
        Step::new(StepAction::Never)
    }

    /// Drops the connection before the first byte.
    pub fn hang_up() -> Step {
        Step::empty().cut_after_bytes(0)
    }

    /// Adds a header to a response that was given as it is; a content type replaces the one before.
    pub fn header(mut self, name: &str, value: &str) -> Step {
        if let StepAction::Raw(raw) = &mut self.what {
            raw.headers
                .retain(|(other, _)| name != "content-type" || other != name);
            raw.headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// Waits this long before the first byte.
    pub fn after(mut self, wait: Duration) -> Step {
        self.pace.after = wait;
        self
    }

    /// Waits this long between events.
    pub fn pausing(mut self, pause: Duration) -> Step {
        self.pace.between = pause;
        self
    }

    /// Sends this many events, and the rest when the gate is opened.
    pub fn gated(mut self, events: usize, gate: &Gate) -> Step {
        self.pace.gate = Some((events, gate.clone()));
        self
    }

    /// Sends this many bytes at a time and waits between them.
    pub fn slowly(mut self, bytes: usize, pause: Duration) -> Step {
        self.pace.slow = Some((bytes.max(1), pause));
        self
    }

    /// Streams texts in pieces of about this many characters.
    pub fn in_pieces(mut self, size: usize) -> Step {
        self.pace.piece = Some(size.max(1));
        self
    }

    /// Drops the connection after this many bytes of the body; after none, before the status.
    pub fn cut_after_bytes(mut self, bytes: usize) -> Step {
        self.pace.cut = Some(Cut::Bytes(bytes));
        self
    }

    /// Drops the connection after this many events.
    pub fn cut_after_events(mut self, events: usize) -> Step {
        self.pace.cut = Some(Cut::Events(events));
        self
    }

    /// Where the connection is dropped, it is reset rather than closed.
    pub fn reset(mut self) -> Step {
        self.pace.reset = true;
        self
    }

    /// Breaks this event (from zero), or the body of a reply that is not streamed.
    pub fn malformed_at(mut self, event: usize) -> Step {
        self.pace.malformed = Some(event);
        self
    }
}

impl From<&NamedError> for Step {
    fn from(error: &NamedError) -> Step {
        let headers = error.headers.iter();
        let headers = headers.map(|(name, value)| (name.to_string(), value.to_string()));
        Step::new(StepAction::Raw(Raw {
            status: error.status,
            headers: headers.collect(),
            body: error.body.as_bytes().to_vec(),
        }))
    }
}
