//! The loop that carries out a task: fold, ask the model, run its calls, record the results, until the task ends.

use infold::config::LayersConfig;
use infold::{CallFailure, Connection, ManageError, Setup, TurnContext, TurnError, TurnEvent};
use infold::{TurnReply, layers};
use infold_log::Role;
use infold_store::{
    AppendError, CheckpointNote, Contexts, LogError, RegistryError, Status, StopRequest, TaskError,
    ToolsShownLine, Writer, recorded_status,
};
use infold_wire::request::RequestFrame;
use infold_wire::{StopReason, render_text};
use jiff::Timestamp;
use uuid::Uuid;

use crate::call_runner::{CallRecordError, CallRunner};
use crate::round::{LastRound, result_wire};
use crate::tool_set::ToolSetError;
use crate::{
    CallOutcome, LeaseKeeper, LeaseState, RunCheckpoints, RunEnd, ToolSet, WorkLimits, built_in,
};

/// The model that carries out a task.
pub struct RunModel<'a> {
    /// The model.
    pub connection: &'a Connection,
    /// How to fold for it.
    pub setup: &'a mut Setup,
    /// All parts of a request except its messages and tools.
    pub frame: RequestFrame,
    /// How the layered state of the task is shown.
    pub layers: &'a LayersConfig,
}

/// A task that is carried out.
pub struct TaskRun<'a> {
    /// The contexts directory of the task.
    pub contexts: &'a Contexts,
    /// The task.
    pub task: Uuid,
    /// Its log.
    pub writer: &'a mut Writer,
    /// The model.
    pub model: RunModel<'a>,
    /// The tools.
    pub tools: ToolSet,
    /// The checkpoints of its workspace; none if they are not wanted.
    pub checkpoints: Option<RunCheckpoints>,
    /// The limits at which it is paused.
    pub limits: WorkLimits,
    /// The lease on it.
    pub lease: &'a LeaseKeeper,
    /// Returns whether the process was asked to end. It is called between steps: the step under way is finished first.
    pub is_stopped: &'a dyn Fn() -> bool,
}

/// Something that happens while a task is carried out.
pub enum RunEvent<'a> {
    /// An event of a turn with the model.
    Turn(TurnEvent<'a>),
    /// The reply of a turn was recorded.
    Replied(&'a TurnReply),
    /// A call is about to be run.
    CallStarted {
        /// The tool.
        name: &'a str,
        /// Its arguments, as the model wrote them.
        arguments: &'a str,
    },
    /// A call has its result.
    CallEnded {
        /// The tool.
        name: &'a str,
        /// How it went.
        outcome: &'a CallOutcome,
    },
    /// The phase or the plan of the task changed. Both are reported.
    State {
        /// The phase.
        phase: Option<&'a str>,
        /// The steps of the plan.
        plan: &'a [String],
    },
    /// Something about the checkpoints of its workspace, such as why there are none.
    Checkpoint {
        /// The text.
        text: &'a str,
    },
    /// Tools of a server are missing.
    ServerProblem {
        /// The server.
        server: &'a str,
        /// Why.
        reason: &'a str,
    },
}

/// Receives the events of a task that is carried out.
pub type RunListener<'a> = &'a mut (dyn FnMut(RunEvent<'_>) + Send);

/// The error that ended a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The model gave no reply that could be used.
    #[error(transparent)]
    Turn(#[from] TurnError),
    /// The tools could not be offered.
    #[error(transparent)]
    Tools(#[from] ToolSetError),
    /// The results of calls could not be recorded.
    #[error(transparent)]
    Calls(#[from] CallRecordError),
    /// A message could not be appended.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The task could not be read or written.
    #[error(transparent)]
    Task(#[from] TaskError),
}

impl From<LogError> for RunError {
    fn from(error: LogError) -> RunError {
        RunError::Task(error.into())
    }
}

impl From<RegistryError> for RunError {
    fn from(error: RegistryError) -> RunError {
        RunError::Task(error.into())
    }
}

impl RunError {
    /// Returns whether another attempt may succeed.
    pub fn is_transient(&self) -> bool {
        !matches!(
            self,
            RunError::Turn(
                TurnError::TooLong { .. }
                    | TurnError::Layers(_)
                    | TurnError::Manage(_)
                    | TurnError::Nothing(_)
                    | TurnError::Open
            ) | RunError::Tools(_)
        )
    }

    /// Returns whether the run was cancelled on request.
    fn is_cancelled(&self) -> bool {
        matches!(
            self,
            RunError::Turn(
                TurnError::Unanswered(CallFailure::Cancelled)
                    | TurnError::Manage(ManageError::Cancelled)
            )
        )
    }
}

/// A tool result is shown with at most the window divided by this, in tokens.
const RESULT_WINDOW_DIVISOR: u64 = 8;
/// A tool result is shown with at most this many tokens, however large the window is.
const MAX_RESULT_TOKENS: u64 = 10_000;

/// The message to the model when its reply had neither text nor a call.
const SAID_NOTHING: &str = "Your reply was empty, so nothing was done. Go on with a call of a tool; call `done` when the task is done or cannot be done.";
/// After so many empty replies in a row the task is paused.
const MAX_EMPTY_REPLIES: u32 = 3;
/// The message to the model when its reply was withheld.
const DECLINED: &str = "Your last reply was withheld by the provider, or declined. Go on with the task in another way, or call `done` and say that it cannot be done.";

/// The message to the model when its reply reached its limit of tokens.
const CUT_OFF: &str = "Your reply was cut off at its limit of tokens. Go on, in smaller steps.";

impl TaskRun<'_> {
    /// Continues the task after the last entry of its log, until it ends or stops.
    pub fn run(mut self, listener: RunListener<'_>) -> Result<RunEnd, RunError> {
        let ended = self.run_steps(listener);
        self.tools.shutdown();
        if ended.is_err() {
            // Count the tokens used before the error; a failure to do so is ignored in favour of that error.
            let _ = self.contexts.settle(self.task, self.writer);
        }
        match ended {
            Err(error) if error.is_cancelled() => Ok(RunEnd::Stopped),
            ended => ended,
        }
    }

    /// Runs steps until the task ends or stops. What comes next is read from the log each time, so a run that was
    /// interrupted at any point is resumed here.
    fn run_steps(&mut self, listener: RunListener<'_>) -> Result<RunEnd, RunError> {
        let status = recorded_status(self.writer.log())?;
        if status.is_some_and(|(status, _)| status == Status::Paused) {
            self.writer.status(Status::Running, None)?;
        }
        self.writer
            .set_recall_tool(Some(built_in::RECALL.to_owned()));
        self.model.setup.aim.recall_tool = Some(built_in::RECALL.to_owned());
        let row = self.contexts.row(self.task)?;
        let started = row.and_then(|row| row.started_at);
        let started = started.unwrap_or_else(Timestamp::now);
        let mut shown: Option<ToolsShownLine> = None;
        let mut empty_replies = 0;
        let mut state = (None, Vec::new());
        self.tools.offer(self.writer.log(), self.model.frame.wire)?;
        self.checkpoint(CheckpointNote::Start, listener);
        loop {
            if let Some(end) = self.stop_request()? {
                return Ok(end);
            }
            self.report_state(&mut state, listener)?;
            let Some(round) = LastRound::read(self.writer.log())? else {
                let nothing = TurnError::Nothing("the task has no messages yet");
                return Err(nothing.into());
            };
            if round.is_silent(self.writer.log())? {
                empty_replies += 1;
                if empty_replies == MAX_EMPTY_REPLIES {
                    let reason =
                        format!("the model said nothing {MAX_EMPTY_REPLIES} times in a row");
                    return Ok(RunEnd::Paused { reason });
                }
                self.tell(SAID_NOTHING)?;
                continue;
            }
            if !round.calls.is_empty() {
                empty_replies = 0;
            }
            if !round.pending().is_empty() {
                if let Some(reason) = self.run_calls(&round, listener)? {
                    return Ok(RunEnd::Paused { reason });
                }
                continue;
            }
            if let Some(finish) = round.finish(self.writer.log())? {
                return Ok(RunEnd::of(finish));
            }
            let used = self.contexts.recount(self.writer.log())?;
            if let Some(reason) = self.limits.reached(&used, started, Timestamp::now()) {
                return Ok(RunEnd::Paused { reason });
            }
            if let Some(reason) = self.ask(&mut shown, listener)? {
                return Ok(RunEnd::Paused { reason });
            }
        }
    }

    /// Returns the end that was requested, if one was.
    fn stop_request(&self) -> Result<Option<RunEnd>, RunError> {
        let end = match self.lease.renew()? {
            LeaseState::Lost => RunEnd::LeaseLost,
            LeaseState::Stop(StopRequest::Pause { reason }) => RunEnd::Paused { reason },
            LeaseState::Stop(StopRequest::Cancel { reason }) => RunEnd::Failed { error: reason },
            LeaseState::Held if (self.is_stopped)() => RunEnd::Stopped,
            LeaseState::Held => return Ok(None),
        };
        Ok(Some(end))
    }

    /// Reports the phase and the plan to the listener, if they changed.
    fn report_state(
        &self,
        reported: &mut (Option<String>, Vec<String>),
        listener: RunListener<'_>,
    ) -> Result<(), RunError> {
        use layers::model::Field;
        let log = self.writer.log();
        if log.state().shown().state_changes().last.is_none() {
            return Ok(());
        }
        let state = layers::read_state(log, log.state().shown())?;
        let plan = state.items(Field::Plan).iter();
        let plan: Vec<String> = plan.map(|item| item.text.clone()).collect();
        let now = (state.text(Field::Phase).map(str::to_owned), plan);
        if now != *reported {
            listener(RunEvent::State {
                phase: now.0.as_deref(),
                plan: &now.1,
            });
            *reported = now;
        }
        Ok(())
    }

    /// Runs the calls that have no result yet; returns why the task is to be paused, if so.
    fn run_calls(
        &mut self,
        round: &LastRound,
        listener: RunListener<'_>,
    ) -> Result<Option<String>, RunError> {
        let window = self.model.setup.profile.window;
        let default_tokens = (window / RESULT_WINDOW_DIVISOR).min(MAX_RESULT_TOKENS);
        let runner = CallRunner {
            contexts: self.contexts,
            task: self.task,
            tools: &self.tools,
            transitions: &self.model.layers.transitions,
            result_tokens: self.limits.result_tokens.unwrap_or(default_tokens),
        };
        let wire = result_wire(&round.calls, self.model.frame.wire);
        let paused = runner.run(self.writer, round, wire, listener)?;
        // `round` was read before the calls were run, so its pending calls are those that were run now.
        if round
            .pending()
            .iter()
            .any(|one| self.tools.may_write(&one.call))
        {
            self.checkpoint(CheckpointNote::Step, listener);
        }
        self.record_progress()?;
        Ok(paused)
    }

    /// Takes a checkpoint of the workspace, if that is wanted, and reports what is notable.
    fn checkpoint(&mut self, note: CheckpointNote, listener: RunListener<'_>) {
        let checkpoints = self.checkpoints.as_mut();
        let texts = checkpoints.map(|checkpoints| checkpoints.take(self.writer, note));
        for text in texts.unwrap_or_default() {
            listener(RunEvent::Checkpoint { text: &text });
        }
    }

    /// Appends a message for the model.
    fn tell(&mut self, text: &str) -> Result<(), RunError> {
        let message = render_text(self.model.frame.wire, Role::User, text);
        self.writer.append(&[message])?;
        Ok(())
    }

    /// Asks the model, and records its reply; returns why the task is to be paused, if so.
    fn ask(
        &mut self,
        shown: &mut Option<ToolsShownLine>,
        listener: RunListener<'_>,
    ) -> Result<Option<String>, RunError> {
        let offered = self.tools.offer(self.writer.log(), self.model.frame.wire)?;
        for problem in &offered.problems {
            listener(RunEvent::ServerProblem {
                server: &problem.server,
                reason: &problem.reason,
            });
        }
        if let Some(line) = offered.line
            && shown.as_ref() != Some(&line)
        {
            self.writer.tools_shown(line.clone())?;
            *shown = Some(line);
        }
        let setup = &mut *self.model.setup;
        let mut context = TurnContext {
            contexts: self.contexts,
            writer: &mut *self.writer,
            connection: self.model.connection,
            profile: setup.profile.clone(),
            aim: setup.aim.clone(),
            summarizer: &mut *setup.summarizer,
            hooks: &setup.hooks,
            frame: RequestFrame {
                tools: Some(offered.tools),
                ..self.model.frame.clone()
            },
            layers: Some(self.model.layers),
            // Calls are judged when they are run, each for itself.
            tools: None,
        };
        let reply = context.turn(&mut |event| listener(RunEvent::Turn(event)))?;
        self.model.setup.aim.factor = reply.factor;
        listener(RunEvent::Replied(&reply));
        let stop = reply.stop.clone();
        drop(reply);
        let round = LastRound::read(self.writer.log())?;
        let has_calls = round.is_some_and(|round| !round.calls.is_empty());
        // A reply that was cut off or withheld and has no calls would end the task. The message makes the model continue.
        let mut pause_reason = None;
        match stop {
            StopReason::Length if !has_calls => self.tell(CUT_OFF)?,
            StopReason::Declined if !has_calls => {
                self.tell(DECLINED)?;
                let reason = "the provider withheld the reply, or the model declined";
                pause_reason = Some(reason.to_owned());
            }
            _ => {}
        }
        self.record_progress()?;
        Ok(pause_reason)
    }

    /// Updates the counters of the registry, and resets the count of attempts: the task has made progress.
    fn record_progress(&mut self) -> Result<(), RunError> {
        self.contexts.settle(self.task, self.writer)?;
        Ok(self.lease.record_progress()?)
    }
}
