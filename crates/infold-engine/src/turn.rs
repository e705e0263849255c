//! One exchange with a model: fold to fit, ask, record the answer.

mod narrow;
mod cut;
mod untold;

use infold_log::{EventId, Past as _, Role, Span, View};
use infold_provider::{CallError, Called, Heard};
use infold_store::{
    AppendError, Aside, Contexts, Failure, LogError, Purpose, TaskError, Usage, Working, Writer,
};
use infold_wire::request::Frame;
use infold_wire::trouble::RequestSize;
use infold_wire::{Reply, Reported, Stop, Trouble};

use crate::connection::Unanswered;
use crate::request::{self, Request};
use crate::{Aim, Connection, Hooks, ManageError, Outcome, Profile, Summarizer, manage, usage};
use cut::silently_cut;
pub use narrow::Refusal;
pub use untold::{is_waiting, told, unread};

/// A task and the model it talks to.
pub struct Talk<'a> {
    /// Where the task is kept.
    pub contexts: &'a Contexts,
    /// The task.
    pub writer: &'a mut Writer,
    /// The model.
    pub connection: &'a Connection,
    /// How the conversation is folded.
    pub profile: Profile,
    /// What to fold for.
    pub aim: Aim,
    /// Who writes summaries.
    pub summarizer: &'a mut dyn Summarizer,
    /// Whom to tell.
    pub hooks: &'a Hooks,
    /// What is sent beside the conversation.
    pub frame: Frame,
}

/// What is heard while a turn is under way.
pub enum News<'a> {
    /// A pass of `manage` is over.
    Managed(&'a Outcome),
    /// A request is on its way.
    Sending(&'a Request),
    /// What the provider says.
    Heard(Heard),
    /// The provider found the request too long; more is folded, and it is asked again.
    TooLong(&'a str),
}

/// Whoever wants to hear it.
pub type Hear<'a> = &'a mut (dyn FnMut(News<'_>) + Send);

/// What came of a turn.
///
/// As long as this is there, so is the request: a reply that is recorded while its request
/// still lies there was never handed over, see [`unread`].
#[derive(Debug)]
pub struct Turned {
    /// The messages of the reply.
    pub reply: Span,
    /// Why the reply ended.
    pub stop: Stop,
    /// What it took, if the provider said so.
    pub usage: Option<Usage>,
    /// What we took it to be, in the model's tokens.
    pub estimate: u64,
    /// The tokens of the model for each that we count, from now on.
    pub factor: f64,
    /// How many requests were sent.
    pub requests: u32,
    /// What could not be recorded beside the reply.
    pub unrecorded: Option<TaskError>,
    _untold: Aside,
}

/// Why there is no answer. What was said before is kept.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    /// The model still waits for tool results.
    #[error("calls of the last message still wait for their results")]
    Open,
    /// There is nothing to answer.
    #[error("{0}")]
    Nothing(&'static str),
    /// The conversation could not be made to fit.
    #[error(transparent)]
    Manage(#[from] ManageError),
    /// It was too long for the provider, however much was folded.
    #[error("{call}; folding harder did not help: {why}")]
    TooLong {
        /// What the provider said.
        call: Box<CallError>,
        /// Why no more could be folded.
        why: String,
    },
    /// The provider did not answer.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    /// The reply says nothing that could be kept.
    #[error("the model said nothing (it stopped with: {0})")]
    Silent(String),
    /// The reply is none that can be kept.
    #[error("the reply cannot be recorded: {0}")]
    Reply(#[from] AppendError),
    /// The task could not be read or written.
    #[error(transparent)]
    Task(#[from] TaskError),
}

impl From<LogError> for TurnError {
    fn from(error: LogError) -> TurnError {
        TurnError::Task(error.into())
    }
}

/// So often is more folded because the provider found a request too long.
const OVERFLOWS: u32 = 3;

/// What came of requests that were too long.
#[derive(Default)]
struct Overflow {
    /// The task's last step before anything was folded for it.
    before: Option<Option<EventId>>,
    /// The window that the provider named.
    named: Option<u64>,
}

/// A request and what came back.
struct Exchange {
    called: Called,
    request: Request,
}

impl Talk<'_> {
    /// Shows the model what fits, and records its answer.
    pub fn turn(&mut self, hear: Hear<'_>) -> Result<Turned, TurnError> {
        self.check()?;
        self.aim.frame = request::size(&self.frame);
        let mut overflow = Overflow::default();
        let turned = self.turn_folding(&mut overflow, hear);
        match &turned {
            Ok(_) => self.remember(overflow.named),
            Err(_) => self.take_back(overflow.before),
        }
        turned
    }

    /// Folds more each time the provider finds the request too long, and records its answer.
    fn turn_folding(
        &mut self,
        overflow: &mut Overflow,
        hear: Hear<'_>,
    ) -> Result<Turned, TurnError> {
        let mut requests = 0;
        let mut refused: Option<Box<CallError>> = None;
        for left in (0..=OVERFLOWS).rev() {
            let outcome = manage(self.writer, &self.aim, self.summarizer, self.hooks);
            let outcome = match (outcome, refused.take()) {
                (Err(error), Some(call)) => {
                    let why = error.to_string();
                    return Err(TurnError::TooLong { call, why });
                }
                (outcome, _) => outcome?,
            };
            hear(News::Managed(&outcome));
            let estimate = outcome.after.tokens;
            let (trouble, error) = match self.exchange(&mut requests, hear)? {
                Ok(done) => {
                    let before = self.writer.log().state().step();
                    let folded = match self.cut(&done, left) {
                        true => self.shrunk(&done, estimate),
                        false => None,
                    };
                    let Some(outcome) = folded else {
                        return self.record(done, estimate, requests);
                    };
                    overflow.before.get_or_insert(before);
                    // It was heard whole, and yet is no answer to all that was said.
                    hear(News::Heard(Heard::Again));
                    let error = silently_cut(&done);
                    self.discard(&done, &error.text)?;
                    hear(News::TooLong(&error.text));
                    hear(News::Managed(&outcome));
                    refused = Some(error);
                    continue;
                }
                Err(error) => (error.trouble.clone(), error),
            };
            let too_long = matches!(trouble, Trouble::TooLong { .. } | Trouble::TooLarge);
            if !too_long || left == 0 {
                return Err(Unanswered::Call(error).into());
            }
            hear(News::TooLong(&error.text));
            let before = self.writer.log().state().step();
            overflow.before.get_or_insert(before);
            if let Err(no_room) = self.narrow(&trouble, estimate, &mut overflow.named) {
                let why = no_room.to_string();
                return Err(TurnError::TooLong { call: error, why });
            }
            refused = Some(error);
        }
        unreachable!("the last time round returns")
    }

    /// Keeps the window that the provider named, once a shorter request was answered.
    fn remember(&self, named: Option<u64>) {
        if let Some(window) = named {
            // Only a help for the next time: without it, that is found out again.
            let (provider, model) = (&self.connection.endpoint.name, &self.connection.model);
            let _ = usage::remember_window(self.contexts, provider, model, window);
        }
    }

    /// Opens what was folded because the provider found the request too long, since that did not
    /// help. `before` is the last step before the first of those folds, if there were any.
    fn take_back(&mut self, before: Option<Option<EventId>>) {
        let Some(before) = before else {
            return;
        };
        // Where a step cannot be undone, the error of the call is still what there is to tell.
        while self.writer.log().state().step() > before && self.writer.undo().is_ok() {}
    }

    /// Sends what is shown now, and records the answer.
    pub fn send(&mut self, hear: Hear<'_>) -> Result<Turned, TurnError> {
        self.check()?;
        self.aim.frame = request::size(&self.frame);
        let mut requests = 0;
        match self.exchange(&mut requests, hear)? {
            Ok(done) if self.cut(&done, OVERFLOWS) => {
                let error = silently_cut(&done);
                self.discard(&done, &error.text)?;
                done.request.keep();
                Err(Unanswered::Call(error).into())
            }
            Ok(done) => {
                let estimate = (done.request.counted as f64 * self.aim.factor).ceil() as u64;
                self.record(done, estimate, requests)
            }
            Err(error) => Err(Unanswered::Call(error).into()),
        }
    }

    /// Makes sure that there is something to answer.
    fn check(&self) -> Result<(), TurnError> {
        let log = self.writer.log();
        let view = View::of(log.state().shown(), log)?;
        if view.is_open() {
            return Err(TurnError::Open);
        }
        let Some(last) = log.state().shown().last() else {
            return Err(TurnError::Nothing("the task has no messages yet"));
        };
        match log.record(last)?.role {
            Role::Assistant => Err(TurnError::Nothing(
                "the last message is the model's own: there is nothing to answer",
            )),
            Role::System => Err(TurnError::Nothing(
                "there is only a system prompt: nobody has asked anything",
            )),
            Role::User | Role::Tool => Ok(()),
        }
    }

    /// Sends what is shown; what the provider refuses is recorded, and the request kept.
    fn exchange(
        &mut self,
        requests: &mut u32,
        hear: Hear<'_>,
    ) -> Result<Result<Exchange, Box<CallError>>, TurnError> {
        let (provider, model) = (&self.connection.endpoint.name, &self.connection.model);
        // Without it, that is found out again.
        let mut quirks = usage::quirks(self.contexts, provider, model).unwrap_or_default();
        loop {
            let request = Request::write(self.writer.log(), &self.frame, quirks)?;
            hear(News::Sending(&request));
            let mut broken = Vec::new();
            let mut heard = |what| {
                if let Heard::Waiting { why, .. } = &what {
                    broken.push(why.clone());
                }
                hear(News::Heard(what));
            };
            let sent = self
                .connection
                .send(request.body(), self.frame.stream, &mut heard);
            match sent {
                Ok(called) => {
                    *requests += called.requests;
                    if !broken.is_empty() {
                        self.failed(&broken.join("; "), called.requests - 1)?;
                    }
                    return Ok(Ok(Exchange { called, request }));
                }
                Err(Unanswered::Cancelled) => {
                    self.failed("cancelled", 1)?;
                    return Err(Unanswered::Cancelled.into());
                }
                Err(Unanswered::Call(mut error)) => {
                    *requests += error.requests;
                    error.trouble = match error.trouble {
                        // Whoever folds for a smaller window asks for a shorter reply, too.
                        Trouble::ReplyTooLong { tokens, limit } => Trouble::TooLong {
                            tokens: Some(tokens),
                            limit: Some(limit),
                        },
                        trouble => trouble.explain(RequestSize {
                            tokens: (request.counted as f64 * self.aim.factor).ceil() as u64,
                            window: self.profile.window,
                            bytes: request.bytes,
                        }),
                    };
                    request.keep();
                    let known = quirks;
                    quirks.alternate |= error.trouble == Trouble::Alternate;
                    quirks.plain |= error.trouble == Trouble::Plain;
                    quirks.bound |= error.trouble == Trouble::Bound;
                    self.failed(&error.to_string(), error.requests)?;
                    if quirks == known {
                        return Ok(Err(error));
                    }
                    let (provider, model) =
                        (&self.connection.endpoint.name, &self.connection.model);
                    // Only a help for the next time.
                    let _ = usage::remember_quirks(self.contexts, provider, model, quirks);
                }
            }
        }
    }

    fn failed(&mut self, error: &str, requests: u32) -> Result<(), LogError> {
        let failure = Failure {
            provider: self.connection.endpoint.name.clone(),
            model: self.connection.model.clone(),
            error: error.to_owned(),
            requests: requests.into(),
        };
        self.writer.failure(failure).map(drop)
    }

    /// Records that a reply came and was not taken, and what it took all the same.
    fn discard(&mut self, done: &Exchange, why: &str) -> Result<(), LogError> {
        self.failed(why, 1)?;
        if let Some(reported) = done.called.reply.usage {
            let usage = self.usage(&reported, Purpose::Nothing);
            self.writer.usage(usage)?;
        }
        Ok(())
    }

    /// A report, as the log keeps it.
    fn usage(&self, reported: &Reported, purpose: Purpose) -> Usage {
        Usage {
            provider: self.connection.endpoint.name.clone(),
            model: self.connection.model.clone(),
            tokens: reported.total(),
            cached: reported.cache_read,
            output: reported.output,
            frame: self.aim.frame.tokens,
            cost: self.connection.cost(reported),
            purpose,
        }
    }

    /// Records a reply, once, and what it took.
    fn record(
        &mut self,
        done: Exchange,
        estimate: u64,
        requests: u32,
    ) -> Result<Turned, TurnError> {
        if done.called.reply.messages.is_empty() {
            let stop = done.called.reply.stop.name().to_owned();
            self.discard(&done, &format!("an empty reply ({stop})"))?;
            done.request.keep();
            return Err(TurnError::Silent(stop));
        }
        let Exchange { called, request } = done;
        let Reply {
            messages,
            stop,
            usage,
            ..
        } = called.reply;
        let mut untold = self.writer.log().aside(Working::Reply)?;
        for message in &messages {
            untold.write(&self.writer.log().without_secrets(message))?;
            untold.write(b"\n")?;
        }
        untold.flush()?;
        let first = self.writer.log().state().next_seq();
        self.writer.append(&messages)?;
        let last = self.writer.log().state().last_seq().unwrap_or(first);
        let usage = usage.map(|reported| self.usage(&reported, Purpose::Reply));
        let (factor, unrecorded) = match &usage {
            Some(usage) => {
                let guess = (request.counted, self.aim.factor);
                // The reply is recorded: whoever took this for a failure would ask again.
                match usage::report(self.contexts, self.writer, usage, guess) {
                    Ok(factor) => (factor, None),
                    Err(error) => (self.aim.factor, Some(error)),
                }
            }
            None => (self.aim.factor, None),
        };
        self.writer.sync()?;
        Ok(Turned {
            reply: Span::new(first, last).unwrap_or(Span::one(first)),
            stop,
            usage,
            estimate,
            factor,
            requests,
            unrecorded,
            _untold: untold,
        })
    }
}
