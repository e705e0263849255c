//! One exchange with a model: fold to fit, ask, record the answer.

use infold_log::{EventId, NoRoom, Past as _, Role, Seq, Span, View};
use infold_provider::{CallError, Called, Heard};
use infold_store::{
    AppendError, Aside, Contexts, Failure, Log, LogError, Purpose, TaskError, Usage, What, Working,
    Writer,
};
use infold_wire::request::Frame;
use infold_wire::{Message, Part, PartKind, Reply, Reported, Stop, Trouble, Wire};

use crate::connection::Unanswered;
use crate::request::{self, Quirks, Request};
use crate::{
    Aim, Connection, Did, Hooks, ManageError, Outcome, Profile, Summarizer, manage, usage,
};

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

/// A prompt of which a server counts less than this share was cut by it.
const CUT: f64 = 0.7;

/// A prompt of fewer tokens than this is cut by nobody.
const SMALL: u64 = 1024;

/// What the log says of a model that wants roles to alternate.
const ALTERNATE: &str = "(roles must alternate: from now on something stands between them)";

/// What the log says of a model that takes only plain messages.
const PLAIN: &str = "(from now on messages are sent without what it does not know)";

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
                    let folded = match self.cut(&done, left) {
                        true => self.shrunk(&done, estimate),
                        false => None,
                    };
                    let Some(outcome) = folded else {
                        return self.record(done, estimate, requests);
                    };
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
            if let Err(no_room) = self.narrow(&trouble, estimate) {
                let why = no_room.to_string();
                return Err(TurnError::TooLong { call: error, why });
            }
            refused = Some(error);
        }
        unreachable!("the last time round returns")
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
        let mut quirks = self.quirks()?;
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
                Err(Unanswered::Call(error)) => {
                    *requests += error.requests;
                    request.keep();
                    let known = quirks;
                    let mut text = error.to_string();
                    match error.trouble {
                        Trouble::Alternate => {
                            quirks.alternate = true;
                            text = format!("{text} {ALTERNATE}");
                        }
                        Trouble::Plain => {
                            quirks.plain = true;
                            text = format!("{text} {PLAIN}");
                        }
                        _ => {}
                    }
                    self.failed(&text, error.requests)?;
                    if quirks == known {
                        return Ok(Err(error));
                    }
                }
            }
        }
    }

    /// What the model has lately refused messages for.
    fn quirks(&self) -> Result<Quirks, LogError> {
        /// So far back it is looked for; then it is found out again.
        const LOOK_BACK: u64 = 64;
        let mut quirks = Quirks::default();
        let log = self.writer.log();
        let newest = log.state().at().event;
        let oldest = newest.saturating_sub(LOOK_BACK);
        for id in (oldest + 1..=newest).rev().filter_map(EventId::new) {
            if let What::Failure(failure) = log.event(id)?.what
                && failure.model == self.connection.model
                && failure.provider == self.connection.endpoint.name
            {
                quirks.alternate |= failure.error.contains(ALTERNATE);
                quirks.plain |= failure.error.contains(PLAIN);
            }
        }
        Ok(quirks)
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

    /// Some servers drop the front of a prompt that is too long, and only their count tells.
    fn cut(&self, done: &Exchange, left: u32) -> bool {
        let sent = done.called.reply.usage.map_or(0, |usage| usage.sent());
        let counted = done.request.counted;
        // Once is enough: a count that stays low is how this server counts.
        if self.connection.wire() != Wire::Ollama
            || left < OVERFLOWS
            || counted < SMALL
            || sent == 0
        {
            return false;
        }
        let least = match self.writer.log().last_usage() {
            // What was read before is read again, and what came since on top of it.
            Ok(Some((before, since))) if before.model == self.connection.model => {
                let reply = if self.reasoned() { 0 } else { before.output };
                let sent = before.tokens.saturating_sub(before.output);
                sent + (reply + since) * 4 / 5
            }
            _ => (counted as f64 * self.aim.factor.min(1.0) * CUT) as u64,
        };
        // What images come to is anybody's guess.
        sent < least && !self.shows_images()
    }

    /// Folds for a server that read no more than this; nothing if there is nothing to fold.
    ///
    /// Then it is the count that was odd, and the reply is as good as any.
    fn shrunk(&mut self, done: &Exchange, estimate: u64) -> Option<Outcome> {
        let before = (self.profile.clone(), self.aim.clone(), self.frame.clone());
        let trouble = Trouble::TooLong {
            tokens: None,
            limit: done.called.reply.usage.map(|usage| usage.sent()),
        };
        let narrowed = self.narrow(&trouble, estimate).ok();
        let outcome = narrowed
            .and_then(|()| manage(self.writer, &self.aim, self.summarizer, self.hooks).ok());
        let outcome = outcome.filter(|outcome| outcome.did > Did::Untouched);
        if outcome.is_none() {
            (self.profile, self.aim, self.frame) = before;
        }
        outcome
    }

    fn shows_images(&self) -> bool {
        let log = self.writer.log();
        let Ok(view) = View::of(log.state().shown(), log) else {
            return false;
        };
        let mut found = false;
        let looked = log.render(&view, &mut |_, bytes| {
            let message = Message::parse(bytes).ok();
            found |= message.is_some_and(|message| {
                let shown = message.json().get("images");
                let listed = shown.is_some_and(|list| list.elements().next().is_some());
                let image = |part: &Part| part.kind == PartKind::Image;
                listed || message.parts().iter().any(image)
            });
            Ok(())
        });
        found || looked.is_err()
    }

    /// Says whether the last reply holds reasoning, which templates leave out of the next prompt.
    fn reasoned(&self) -> bool {
        let log = self.writer.log();
        let path = log.state().shown().path();
        let mut seqs = path.iter().rev().flat_map(|run| run.seqs().rev());
        let is_reply = |seq: &Seq| log.record(*seq).is_ok_and(|it| it.role == Role::Assistant);
        let bytes = seqs.find(is_reply).and_then(|seq| log.message(seq).ok());
        let message = bytes.as_deref().map(Message::parse);
        message.is_none_or(|message| message.is_ok_and(|message| message.facts().reasoning))
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

    /// Aims at less, as far as the provider's numbers tell.
    fn narrow(&mut self, trouble: &Trouble, estimate: u64) -> Result<(), NoRoom> {
        let window = self.profile.window;
        let mut bytes = self.aim.budget.bytes();
        match trouble {
            Trouble::TooLong { tokens, limit } => {
                if let (Some(limit), Some(_)) = (limit, tokens) {
                    // Only a help for the next time: without it, that is found out again.
                    let _ = self.remember(*limit);
                }
                let off = tokens.map_or(1.0, |tokens| self.off(tokens, estimate));
                let room = limit.unwrap_or(window).min(window) as f64 / off.max(1.0);
                // If that is nothing new, three quarters of what was sent must do.
                let most = estimate as f64 * 0.75;
                let less = match self.profile.max_tokens {
                    Some(reply) => (most + reply.min(estimate / 2) as f64) / 0.9,
                    None => most / 0.65,
                };
                let less = (less as u64).min(window);
                self.profile.window = match room as u64 {
                    room if room < window => room,
                    _ => less,
                };
                // Half of it is the most that a reply may take.
                let half = self.profile.window / 2;
                self.profile.max_tokens = self.profile.max_tokens.map(|most| most.min(half));
            }
            _ => {
                let log = self.writer.log();
                let view = View::of(log.state().shown(), log);
                let size = view.and_then(|view| log.view_bytes(&view)).unwrap_or(0);
                bytes = Some((size + self.aim.frame.bytes) * 3 / 4);
            }
        }
        let before = self.aim.clone();
        self.aim = Aim {
            factor: before.factor,
            frame: before.frame,
            ..Aim::of(&self.profile, bytes)?
        };
        let reserve = self.aim.budget.reserve();
        self.frame.max_tokens = self.frame.max_tokens.map(|most| most.min(reserve));
        Ok(())
    }

    /// Keeps the window that a provider named.
    fn remember(&self, window: u64) -> Result<(), TaskError> {
        let (provider, model) = (&self.connection.endpoint.name, &self.connection.model);
        let registry = self.contexts.registry()?;
        Ok(registry.set_window(provider, model, window, jiff::Timestamp::now())?)
    }

    /// How many tokens the provider counts for each that we took it to count.
    fn off(&self, tokens: u64, estimate: u64) -> f64 {
        // Some count the reply that was asked for, some do not: the closer one is meant.
        let whole = estimate + self.frame.max_tokens.unwrap_or(0);
        let meant = match tokens.abs_diff(whole) < tokens.abs_diff(estimate) {
            true => whole,
            false => estimate,
        };
        tokens as f64 / meant.max(1) as f64
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
            untold.write(message)?;
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

fn silently_cut(done: &Exchange) -> Box<CallError> {
    let sent = done.called.reply.usage.map_or(0, |usage| usage.sent());
    let text = format!(
        "the server read {sent} tokens of a request of about {}: it dropped the front of it",
        done.request.counted
    );
    Box::new(CallError {
        trouble: Trouble::TooLong {
            tokens: None,
            limit: Some(sent),
        },
        status: Some(200),
        text,
        requests: 0,
    })
}

/// Says whether the last message is this one, still without an answer.
pub fn is_waiting(writer: &Writer, message: &[u8]) -> Result<bool, LogError> {
    let log = writer.log();
    match log.state().shown().open_end() {
        Some(last) => Ok(is_user(log, last)? && log.message(last)? == message),
        None => Ok(false),
    }
}

/// The reply to this message, or to whatever was said last, if it is recorded and nobody was told.
///
/// So it is when a process ends between the two: the reply still lies beside the log.
pub fn unread(writer: &Writer, message: Option<&[u8]>) -> Result<Option<Span>, LogError> {
    let log = writer.log();
    let last = log.state().last_seq();
    let untold = std::fs::read(log.dir().join(Working::Reply.name())).unwrap_or_default();
    if untold.is_empty() || last.is_none() || log.state().shown().open_end() != last {
        return Ok(None);
    }
    let mut reply = None;
    let mut next = last;
    while let Some(seq) = next {
        if log.record(seq)?.role != Role::Assistant {
            break;
        }
        reply = Some(seq);
        next = seq.prev();
    }
    let (Some(from), Some(to), Some(asked)) = (reply, last, next) else {
        return Ok(None);
    };
    let same = match message {
        Some(message) => is_user(log, asked)? && log.message(asked)? == message,
        None => true,
    };
    let mut recorded = Vec::new();
    if let Some(reply) = Span::new(from, to).filter(|_| same) {
        for seq in reply.seqs() {
            recorded.extend(log.message(seq)?);
            recorded.push(b'\n');
        }
    }
    // Somebody else may have answered meanwhile.
    Ok(Span::new(from, to).filter(|_| recorded == untold))
}

/// A reply that lay there has been handed over.
pub fn told(writer: &Writer) -> Result<(), LogError> {
    for working in [Working::Reply, Working::Request] {
        // Made anew, it goes when it is dropped.
        writer.log().aside(working)?;
    }
    Ok(())
}

fn is_user(log: &Log, seq: Seq) -> Result<bool, LogError> {
    Ok(log.record(seq)?.role == Role::User)
}
