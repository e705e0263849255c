//! One turn with a model: fold to fit, send, record the reply.

mod too_long;
mod silent_cut;
mod tools;
mod undelivered;

use infold_layers::BuildError;
use infold_log::{EventId, Past as _, Role, Span, View};
use infold_provider::{CallError, CallEvent, CallReply};
use infold_store::{
    AppendError, Contexts, Failure, LogError, Purpose, RefusalLine, TaskError, Usage, Working,
    WorkingFile, Writer,
};
use infold_wire::provider_error::RequestSize;
use infold_wire::request::{RequestFrame, credentials};
use infold_wire::tokens::text_message;
use infold_wire::{ProviderError, Reply, StopReason, TokenUsage, with_json_arguments};
use uuid::Uuid;

use crate::config::LayersConfig;
use crate::connection::CallFailure;
use crate::layers::{
    ContextError, ContextRequest, VectorSource, request_context_with, show_changing,
};
use crate::recall::{RecalledExcerpt, indexed_mentions, recall_references};
use crate::request::{self, RequestFile};
use crate::{
    Aim, Connection, Hooks, ManageError, ManageOutcome, Profile, Summarizer, manage, usage,
};
use silent_cut::silent_cut_error;
pub use too_long::TooLongRequest;
pub use tools::TurnTools;
pub use undelivered::{is_unanswered, mark_delivered, undelivered_reply};

/// A task and the model it talks to.
pub struct TurnContext<'a> {
    /// The contexts directory of the task.
    pub contexts: &'a Contexts,
    /// The task.
    pub writer: &'a mut Writer,
    /// The model.
    pub connection: &'a Connection,
    /// The settings for folding.
    pub profile: Profile,
    /// The aim of passes.
    pub aim: Aim,
    /// The summarizer.
    pub summarizer: &'a mut dyn Summarizer,
    /// The hooks.
    pub hooks: &'a Hooks,
    /// The request without its messages.
    pub frame: RequestFrame,
    /// The settings for showing the layered state of the task, if it is shown.
    pub layers: Option<&'a LayersConfig>,
    /// The rules that check the calls of the reply, if there is a policy for tools.
    pub tools: Option<&'a TurnTools>,
}

/// Something that happens while a turn is under way.
pub enum TurnEvent<'a> {
    /// A pass of `manage` is over.
    Managed(&'a ManageOutcome),
    /// Excerpts of hidden messages were added to the request.
    Recalled(&'a [RecalledExcerpt]),
    /// A request is being sent.
    Sending(&'a RequestFile),
    /// An event of the call.
    Call(CallEvent),
    /// There are no embeddings, for this reason: words decide which items of the layered state match the goal.
    RankedByWords(&'a str),
    /// The request was too long for the provider; more is folded, and another is sent.
    TooLong(&'a str),
}

/// Receives the events of a turn.
pub type TurnListener<'a> = &'a mut (dyn FnMut(TurnEvent<'_>) + Send);

/// The recorded reply of a turn.
///
/// The request file exists as long as this value: a recorded reply whose request file still
/// exists was never delivered, see [`undelivered_reply`].
#[derive(Debug)]
pub struct TurnReply {
    /// The messages of the reply.
    pub reply: Span,
    /// The reason that the reply ended.
    pub stop: StopReason,
    /// The usage, if the provider reported it.
    pub usage: Option<Usage>,
    /// The estimate of the request, in the model's tokens.
    pub estimate: u64,
    /// Tokens of the model for each counted one, from now on.
    pub factor: f64,
    /// The number of requests that were sent.
    pub requests: u32,
    /// The calls of the reply that the policy for tools refused. The next request reports them to the model.
    pub refusals: Vec<RefusalLine>,
    /// The reason that the usage could not be recorded.
    pub unrecorded: Option<TaskError>,
    _undelivered: WorkingFile,
}

/// The reason that a turn has no reply. The messages before it are kept.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    /// The model still waits for tool results.
    #[error("calls of the last message still wait for their results")]
    Open,
    /// There is nothing to reply to.
    #[error("{0}")]
    Nothing(&'static str),
    /// The layered state does not fit.
    #[error(transparent)]
    Layers(#[from] BuildError),
    /// The conversation could not be made to fit.
    #[error(transparent)]
    Manage(#[from] ManageError),
    /// The request was too long for the provider, even after all folds.
    #[error("{call}; folding harder did not help: {why}")]
    TooLong {
        /// The error of the provider.
        call: Box<CallError>,
        /// The reason that no more could be folded.
        why: String,
    },
    /// The provider gave no reply.
    #[error(transparent)]
    Unanswered(#[from] CallFailure),
    /// The reply is empty.
    #[error("the model gave an empty reply (it stopped with: {0})")]
    Silent(String),
    /// The reply is not valid.
    #[error("the reply cannot be recorded: {0}")]
    Reply(#[from] AppendError),
    /// The task could not be read or written.
    #[error(transparent)]
    Task(#[from] TaskError),
}

impl From<ContextError> for TurnError {
    fn from(error: ContextError) -> TurnError {
        match error {
            ContextError::Build(error) => TurnError::Layers(error),
            ContextError::Log(error) => error.into(),
        }
    }
}

impl From<LogError> for TurnError {
    fn from(error: LogError) -> TurnError {
        TurnError::Task(error.into())
    }
}

/// The number of further folds because a request was too long for the provider.
const MAX_OVERFLOWS: u32 = 3;

/// The history of requests that were too long.
#[derive(Default)]
struct Overflow {
    /// The task's last step before the folds for this request.
    before: Option<Option<EventId>>,
    /// The window that the provider named.
    named: Option<u64>,
}

/// A request and its reply.
struct CompletedCall {
    called: CallReply,
    request: RequestFile,
}

impl TurnContext<'_> {
    /// Folds until the request fits, sends it, and records the reply.
    pub fn turn(&mut self, listener: TurnListener<'_>) -> Result<TurnReply, TurnError> {
        self.check()?;
        self.record_tools_shown()?;
        let shown = self.add_layers(listener)?;
        self.aim.frame = request::size(&self.frame);
        self.aim.frame.tokens += shown.as_deref().map_or(0, text_message);
        let mut overflow = Overflow::default();
        let turned = self.turn_folding(&mut overflow, shown.as_deref(), listener);
        match &turned {
            Ok(_) => self.remember(overflow.named),
            Err(_) => self.take_back(overflow.before),
        }
        turned
    }

    /// Folds more each time the request is too long for the provider, and records the reply.
    fn turn_folding(
        &mut self,
        overflow: &mut Overflow,
        layers: Option<&str>,
        listener: TurnListener<'_>,
    ) -> Result<TurnReply, TurnError> {
        let mut requests = 0;
        let mut refused: Option<Box<CallError>> = None;
        for left in (0..=MAX_OVERFLOWS).rev() {
            let outcome = manage(self.writer, &self.aim, self.summarizer, self.hooks);
            let outcome = match (outcome, refused.take()) {
                (Err(error), Some(call)) => {
                    let why = error.to_string();
                    return Err(TurnError::TooLong { call, why });
                }
                (outcome, _) => outcome?,
            };
            self.count_folds(&outcome);
            listener(TurnEvent::Managed(&outcome));
            let recalled = self.recall(outcome.after.tokens);
            if !recalled.is_empty() {
                listener(TurnEvent::Recalled(&recalled));
            }
            self.show_layers(layers)?;
            let estimate = outcome.after.tokens;
            let (trouble, error) = match self.exchange(&mut requests, listener)? {
                Ok(done) => {
                    let before = self.writer.log().state().step();
                    let folded = if self.is_cut(&done, left) {
                        self.fold_for_cut(&done, estimate)
                    } else {
                        None
                    };
                    let Some(outcome) = folded else {
                        return self.record(done, estimate, requests);
                    };
                    overflow.before.get_or_insert(before);
                    // The reply came whole, and yet does not answer all messages.
                    listener(TurnEvent::Call(CallEvent::Discarded));
                    let error = silent_cut_error(&done);
                    self.discard(&done, &error.text)?;
                    listener(TurnEvent::TooLong(&error.text));
                    listener(TurnEvent::Managed(&outcome));
                    refused = Some(error);
                    continue;
                }
                Err(error) => (error.trouble.clone(), error),
            };
            let too_long = matches!(
                trouble,
                ProviderError::TooLong { .. } | ProviderError::TooLarge
            );
            if !too_long || left == 0 {
                return Err(CallFailure::Call(error).into());
            }
            listener(TurnEvent::TooLong(&error.text));
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

    /// Updates the registry's counters after a pass: the following call may take minutes.
    fn count_folds(&self, outcome: &ManageOutcome) {
        if let Some(task) = self.task().filter(|_| !outcome.steps.is_empty()) {
            // A failure is ignored: the counters are set again with the reply.
            let _ = self.contexts.settle(task, self.writer);
        }
    }

    /// Returns the id of the task, which is the name of its directory.
    fn task(&self) -> Option<Uuid> {
        let dir = self.writer.log().dir().file_name();
        dir.and_then(|name| name.to_str())?.parse().ok()
    }

    /// Adds the stable part of the layered state to the frame; returns the part for the end of the request.
    fn add_layers(&mut self, listener: TurnListener<'_>) -> Result<Option<String>, TurnError> {
        let Some(config) = self.layers else {
            return Ok(None);
        };
        let max_tokens = config.max_tokens(self.aim.budget.window());
        let request = ContextRequest {
            max_tokens,
            now: infold_store::now(),
            config,
        };
        let embed = self.connection.embedder(config);
        let mut source = VectorSource::asking(&embed);
        let context = request_context_with(self.writer.log(), &request, &mut source)?;
        if let Some(problem) = &source.problem {
            listener(TurnEvent::RankedByWords(problem));
        }
        let Some(context) = context else {
            return Ok(None);
        };
        self.frame.context = context.stable;
        Ok(context.changing)
    }

    /// Shows the changing part of the layered state at the end of the request.
    fn show_layers(&mut self, layers: Option<&str>) -> Result<(), LogError> {
        if self.layers.is_some() {
            show_changing(self.writer, layers)?;
        }
        Ok(())
    }

    /// Adds excerpts of hidden messages that the request refers to, as far as they fit beside a view of `view` tokens.
    fn recall(&mut self, view: u64) -> Vec<RecalledExcerpt> {
        let Some(limits) = self.aim.recall else {
            return Vec::new();
        };
        let limits = limits.within(&self.aim, view);
        let Some(task) = self.task() else {
            return Vec::new();
        };
        let mut mentions = indexed_mentions(self.contexts, task);
        // A failure is ignored: the request goes without excerpts.
        recall_references(self.writer, limits, &mut mentions).unwrap_or_default()
    }

    /// Remembers the window that the provider named, once a shorter request was answered.
    fn remember(&self, named: Option<u64>) {
        if let Some(window) = named {
            // A failure is ignored: without the window, the next turn finds it out again.
            let (provider, model) = (&self.connection.endpoint.name, &self.connection.model);
            let _ = usage::remember_window(self.contexts, provider, model, window);
        }
    }

    /// Undoes the folds that were made because the request was too long, since they did not
    /// help. `before` is the last step before the first of them, if there were any.
    fn take_back(&mut self, before: Option<Option<EventId>>) {
        let Some(before) = before else {
            return;
        };
        // If a step cannot be undone, the error of the call is still reported.
        while self.writer.log().state().step() > before && self.writer.undo().is_ok() {}
    }

    /// Sends the view unchanged, and records the reply.
    pub fn send(&mut self, listener: TurnListener<'_>) -> Result<TurnReply, TurnError> {
        self.check()?;
        self.record_tools_shown()?;
        let layers = self.add_layers(listener)?;
        self.show_layers(layers.as_deref())?;
        self.aim.frame = request::size(&self.frame);
        let mut requests = 0;
        match self.exchange(&mut requests, listener)? {
            Ok(done) if self.is_cut(&done, MAX_OVERFLOWS) => {
                let error = silent_cut_error(&done);
                self.discard(&done, &error.text)?;
                done.request.keep();
                Err(CallFailure::Call(error).into())
            }
            Ok(done) => {
                let estimate = (done.request.counted as f64 * self.aim.factor).ceil() as u64;
                self.record(done, estimate, requests)
            }
            Err(error) => Err(CallFailure::Call(error).into()),
        }
    }

    /// Checks that there is something to reply to.
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
                "there is only a system prompt: there is no request to answer",
            )),
            Role::User | Role::Tool => Ok(()),
        }
    }

    /// Sends the view; a refusal is recorded, and its request kept.
    fn exchange(
        &mut self,
        requests: &mut u32,
        listener: TurnListener<'_>,
    ) -> Result<Result<CompletedCall, Box<CallError>>, TurnError> {
        let (provider, model) = (&self.connection.endpoint.name, &self.connection.model);
        // A failure is ignored: without the quirks, this turn finds them out again.
        let mut quirks = usage::quirks(self.contexts, provider, model).unwrap_or_default();
        loop {
            let request = RequestFile::write(self.writer.log(), &self.frame, quirks)?;
            listener(TurnEvent::Sending(&request));
            let mut broken = Vec::new();
            let mut on_event = |event| {
                if let CallEvent::Retrying { why, .. } = &event {
                    broken.push(why.clone());
                }
                listener(TurnEvent::Call(event));
            };
            let sent = self
                .connection
                .send(request.body(), self.frame.stream, &mut on_event);
            match sent {
                Ok(called) => {
                    *requests += called.requests;
                    if !broken.is_empty() {
                        let broken = self.without_credentials(&broken.join("; "));
                        self.record_failure(&broken, called.requests - 1)?;
                    }
                    return Ok(Ok(CompletedCall { called, request }));
                }
                Err(CallFailure::Cancelled) => {
                    self.record_failure("cancelled", 1)?;
                    return Err(CallFailure::Cancelled.into());
                }
                Err(CallFailure::Call(mut error)) => {
                    *requests += error.requests;
                    error.text = self.without_credentials(&error.text);
                    error.trouble = match error.trouble {
                        // Folding for a smaller window also asks for a shorter reply.
                        ProviderError::ReplyTooLong { tokens, limit } => ProviderError::TooLong {
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
                    quirks.alternate |= error.trouble == ProviderError::AlternateRoles;
                    quirks.plain |= error.trouble == ProviderError::PlainMessages;
                    quirks.bound |= error.trouble == ProviderError::BoundThinking;
                    self.record_failure(&error.to_string(), error.requests)?;
                    if quirks == known {
                        return Ok(Err(error));
                    }
                    let (provider, model) =
                        (&self.connection.endpoint.name, &self.connection.model);
                    // A failure is ignored, because only later turns would profit.
                    let _ = usage::remember_quirks(self.contexts, provider, model, quirks);
                }
            }
        }
    }

    /// Takes the credentials of tools out of a provider's error, which may repeat them. Its key is out already.
    fn without_credentials(&self, error: &str) -> String {
        const MIN_BYTES: usize = 4;
        let tools = self.frame.tools.as_deref().unwrap_or_default();
        let mut text = error.to_owned();
        for credential in credentials(tools) {
            if credential.len() >= MIN_BYTES {
                text = text.replace(&credential, "(key)");
            }
        }
        text
    }

    fn record_failure(&mut self, error: &str, requests: u32) -> Result<(), LogError> {
        let failure = Failure {
            provider: self.connection.endpoint.name.clone(),
            model: self.connection.model.clone(),
            error: error.to_owned(),
            requests: requests.into(),
        };
        self.writer.failure(failure).map(drop)
    }

    /// Records that a reply was discarded, and its usage.
    fn discard(&mut self, done: &CompletedCall, why: &str) -> Result<(), LogError> {
        self.record_failure(why, 1)?;
        if let Some(reported) = done.called.reply.usage {
            let usage = self.usage(&reported, Purpose::Nothing);
            self.writer.usage(usage)?;
        }
        Ok(())
    }

    /// Converts reported usage to the form of the log.
    fn usage(&self, reported: &TokenUsage, purpose: Purpose) -> Usage {
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

    /// Records a reply once, and its usage.
    fn record(
        &mut self,
        done: CompletedCall,
        estimate: u64,
        requests: u32,
    ) -> Result<TurnReply, TurnError> {
        if done.called.reply.messages.is_empty() {
            let stop = done.called.reply.stop.name().to_owned();
            self.discard(&done, &format!("an empty reply ({stop})"))?;
            done.request.keep();
            return Err(TurnError::Silent(stop));
        }
        let CompletedCall { called, request } = done;
        let Reply {
            messages,
            stop,
            usage,
            ..
        } = called.reply;
        // The reply is part of each later request.
        let messages = messages
            .into_iter()
            .map(|message| with_json_arguments(&message).unwrap_or(message));
        let judged = self.judge(messages.collect());
        let mut undelivered = self.writer.log().create_working_file(Working::Reply)?;
        for message in &judged.messages {
            undelivered.write(&self.writer.log().without_secrets(message))?;
            undelivered.write(b"\n")?;
        }
        undelivered.flush()?;
        let (reply, refusals) = self.append_judged(judged)?;
        let usage = usage.map(|reported| self.usage(&reported, Purpose::Reply));
        let (factor, unrecorded) = match &usage {
            Some(usage) => {
                let guess = (request.counted, self.aim.factor);
                // The reply is recorded: an error here would make the caller send again.
                match usage::report(self.contexts, self.writer, usage, guess) {
                    Ok(factor) => (factor, None),
                    Err(error) => (self.aim.factor, Some(error)),
                }
            }
            None => (self.aim.factor, None),
        };
        self.writer.sync()?;
        Ok(TurnReply {
            reply,
            refusals,
            stop,
            usage,
            estimate,
            factor,
            requests,
            unrecorded,
            _undelivered: undelivered,
        })
    }
}
