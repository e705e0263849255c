//! One step of a script: what the test server sends for one request, and how fast.

use std::sync::Arc;
use std::time::Duration;

use infold_wire::Reply;
use tokio::sync::Semaphore;

use crate::{Answer, NamedError, errors};

/// One step of a script: the response to one request, and how it is sent. Constructors choose the response; the other
/// methods change how it is sent.
#[derive(Clone, Debug)]
pub struct Step {
    pub(crate) what: StepAction,
    pub(crate) pace: Pace,
}

#[derive(Clone, Debug)]
pub(crate) enum StepAction {
    /// The default model, which repeats its input.
    Model,
    /// The model's answer, which is written in the form of the wire of the request.
    Answer(Answer),
    /// A reply whose messages are already in the form of the wire of the request.
    Exact(Reply),
    /// An HTTP response that is sent as it is given.
    Raw(Raw),
    /// No response; the connection stays open.
    Never,
}

/// An HTTP response that is sent as it is given, whatever the wire of the request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Raw {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// How a response is sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pace {
    /// The pause before the first byte.
    pub after: Duration,
    /// The pause between two events of a stream.
    pub between: Duration,
    /// The number of bytes that are sent at a time, and the pause between them.
    pub slow: Option<(usize, Duration)>,
    /// Where the connection is dropped.
    pub cut: Option<Cut>,
    /// Whether a dropped connection is reset (RST) instead of closed (FIN).
    pub reset: bool,
    /// The index of the event that is cut in half.
    pub malformed: Option<usize>,
    /// The number of characters of a text in one event; by default the model decides.
    pub piece: Option<usize>,
    /// The number of events before the gate, and the gate for which the rest waits.
    pub gate: Option<(usize, Gate)>,
}

/// A gate that a test opens to let the server send the rest of a response. Clones are the same gate.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Semaphore>);

impl Gate {
    /// Returns a closed gate.
    pub fn closed() -> Gate {
        Gate(Arc::new(Semaphore::new(0)))
    }

    /// Opens the gate for all waiting and all later responses; it cannot be closed again.
    pub fn open(&self) {
        self.0.close();
    }

    /// Waits until the gate is open.
    pub(crate) async fn wait(&self) {
        // The semaphore never has a permit, so this waits until it is closed, which opens the gate.
        let _ = self.0.acquire().await;
    }
}

/// How much is sent before the connection is dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    /// So many bytes of the body.
    Bytes(usize),
    /// So many events.
    Events(usize),
}

impl Step {
    fn new(what: StepAction) -> Step {
        let pace = Pace::default();
        Step { what, pace }
    }

    /// Answers with a text.
    pub fn say(text: impl Into<String>) -> Step {
        Step::answer(Answer {
            text: Some(text.into()),
            ..Answer::default()
        })
    }

    /// Answers with reasoning and a text.
    pub fn think(thought: impl Into<String>, text: impl Into<String>) -> Step {
        Step::answer(Answer {
            thinking: Some(thought.into()),
            text: Some(text.into()),
            ..Answer::default()
        })
    }

    /// Answers with a call of a tool; the arguments are the text of a JSON object.
    pub fn call(name: impl Into<String>, arguments: impl Into<String>) -> Step {
        Step::answer(Answer {
            calls: vec![(name.into(), arguments.into())],
            ..Answer::default()
        })
    }

    /// Answers with this answer.
    pub fn answer(answer: Answer) -> Step {
        Step::new(StepAction::Answer(answer))
    }

    /// Responds with a reply whose messages are already in the form of the wire of the request.
    pub fn exact(reply: Reply) -> Step {
        Step::new(StepAction::Exact(reply))
    }

    /// Lets the default model answer, which repeats its input.
    pub fn model() -> Step {
        Step::new(StepAction::Model)
    }

    /// Responds with this status and this body, as JSON.
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
    /// If no error has this name.
    pub fn named(name: &str) -> Step {
        let found = errors().iter().find(|error| error.name == name);
        Step::from(found.unwrap_or_else(|| panic!("no error is named `{name}`")))
    }

    /// Responds with the status 200 and an empty body.
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

    /// Drops the connection before the first byte of the response, the status line included.
    pub fn hang_up() -> Step {
        Step::empty().cut_after_bytes(0)
    }

    /// Adds a header to a raw response ([`Step::error`], [`Step::named`], [`Step::empty`]); other steps ignore it. A
    /// `content-type` (in lower case) replaces the earlier one.
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

    /// Sends this many events, and the rest once the gate is open.
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

    /// Drops the connection after this many bytes of the body. With 0, not even the status line is sent.
    pub fn cut_after_bytes(mut self, bytes: usize) -> Step {
        self.pace.cut = Some(Cut::Bytes(bytes));
        self
    }

    /// Drops the connection after this many events.
    pub fn cut_after_events(mut self, events: usize) -> Step {
        self.pace.cut = Some(Cut::Events(events));
        self
    }

    /// Resets the connection (RST) where it would be closed (FIN) by a cut. Without a cut, this has no effect.
    pub fn reset(mut self) -> Step {
        self.pace.reset = true;
        self
    }

    /// Cuts an event in half, so that its JSON is invalid: the one with this index, or the last if there are fewer. Of
    /// a response that is not streamed, the body is cut, whatever the index.
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
