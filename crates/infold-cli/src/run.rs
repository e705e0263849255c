//! `infold run`: carries out one task, live in the foreground or silently for a worker.

mod live_run;
mod task_tools;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use infold::Config;
use infold::layers::task_situation;
use infold::queue::enqueue;
use infold_store::{
    Contexts, InEffect, Metadata, OpenError, QueueEntry, Return, Status, TaskError, Writer, host,
};
use infold_wire::Wire;
use infold_wire::tools::{ToolChoice, write_tool_choice};
use infold_work::{
    EndMode, LeaseKeeper, RunCheckpoints, RunEnd, RunError, RunEvent, RunModel, TaskRun,
    WorkLimits, claim_request, new_owner,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use uuid::Uuid;

use crate::ask::{has_reply, turn_error};
use crate::call_runtime::{OnSignal, ProviderArg};
use crate::enqueue::task_request;
use crate::error::{CliError, CliResult};
use crate::fold_options::FoldOptions;
use crate::manage::task_model;
use crate::model_call::{CallArgs, ModelCall, TaskFacts};
use crate::output::{Output, count, note, number, printable, report_repairs};
use crate::source_report::{SourceReport, report_end};
use crate::steps::short;
use crate::task_lock::acquire;
use live_run::LiveRun;
use task_tools::tool_set;

/// The arguments of `infold run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// What is to be done
    #[arg(required_unless_present_any = ["resume", "claimed"])]
    pub text: Option<String>,
    /// Go on with this task where its log stands
    #[arg(long, value_name = "TASK", conflicts_with_all = ["text", "workspace", "user"])]
    pub resume: Option<String>,
    /// The directory it is done in [default: the configured one, else the current directory]
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Let the model run commands in the workspace, until the task ends
    #[arg(long)]
    pub allow_commands: bool,
    /// Require a call of a tool at each step, for models that say what they would do instead of doing it
    #[arg(long)]
    pub require_calls: bool,
    /// Do not keep the files of the workspace
    #[arg(long)]
    pub no_checkpoints: bool,
    /// The user it is done for [default: $USER]
    // Not `env = "USER"`: a variable would conflict with `--resume` as the option does.
    #[arg(long)]
    pub user: Option<String>,
    #[command(flatten)]
    pub provider: ProviderArg,
    #[command(flatten)]
    pub options: FoldOptions,
    /// Carry out this task, which a worker has claimed
    #[arg(long, value_name = "UUID", hide = true, requires = "lease", conflicts_with_all = ["text", "resume"])]
    pub claimed: Option<Uuid>,
    /// The owner of the worker's lease
    #[arg(long, value_name = "OWNER", hide = true)]
    pub lease: Option<String>,
    /// How often the task was claimed since it last went on
    #[arg(long, value_name = "N", hide = true, default_value_t = 1)]
    pub attempt: u32,
}

/// A task whose lease this process has.
struct LeasedTask {
    id: Uuid,
    owner: String,
    mode: EndMode,
    /// Whether a person allowed the model to run commands.
    allows_commands: bool,
    /// Whether a snapshot of the workspace is taken after each step that may have changed files.
    keeps_files: bool,
}

/// A task that is open for writing, with its lease.
struct OpenedTask {
    lease: LeaseKeeper,
    writer: Writer,
}

impl OpenedTask {
    fn open(
        contexts: &Contexts,
        config: &Config,
        task: &LeasedTask,
        json: bool,
    ) -> Result<OpenedTask, TaskError> {
        let lease = LeaseKeeper::start(contexts, task.id, &task.owner, config.work.lease());
        let (writer, repairs) = acquire(|| contexts.write(task.id))?;
        report_repairs(json, &repairs);
        Ok(OpenedTask { lease, writer })
    }
}

/// A call of a model is given up after so long, all attempts included.
const CALL_DEADLINE: Duration = Duration::from_secs(600);

/// `infold run`
pub fn run(contexts: &Contexts, config: &Config, args: &RunArgs, out: &mut Output) -> CliResult {
    let contexts = &contexts.clone().keeping()?;
    match (args.claimed, args.resume.as_deref()) {
        (Some(task), _) => run_claimed(contexts, config, args, task, out),
        (None, Some(task)) => resume(contexts, config, args, task, out),
        (None, None) => start(contexts, config, args, out),
    }
}

/// Makes a task and carries it out.
fn start(contexts: &Contexts, config: &Config, args: &RunArgs, out: &mut Output) -> CliResult {
    let text = args.text.as_deref().unwrap_or_default();
    let user = args.user.clone().or_else(|| std::env::var("USER").ok());
    let mut request = task_request(config, text, user, args.workspace.as_deref())?;
    let json = out.is_json();
    // The task is made once everything else has succeeded.
    let facts = TaskFacts::default();
    let mut call = ModelCall::new(contexts, config, &call_args(args), facts, json)?;
    require_calls(args, &mut call, json);
    let profile = &call.setup.setup.profile;
    let endpoint = &call.connection.endpoint;
    request.metadata = Metadata {
        llm_provider: Some(endpoint.name.clone()),
        model: Some(call.connection.model.clone()),
        context_length: args.options.window,
        wire: Some(endpoint.wire.name().to_owned()),
        in_effect: InEffect {
            model: None,
            context_length: Some(profile.window),
            compression_threshold: Some(profile.threshold.share()),
        },
        ..request.metadata
    };
    let host = host();
    let owner = new_owner(&host);
    request.lease = Some(claim_request(&owner, &host, config.work.lease()).lease);
    request.allows_commands = args.allow_commands;
    let id = enqueue(contexts, request)?.task;
    note(json, format!("task {id}"));
    let task = LeasedTask {
        id,
        owner,
        mode: EndMode::Foreground,
        allows_commands: args.allow_commands,
        keeps_files: config.work.checkpoints() && !args.no_checkpoints,
    };
    let opened = OpenedTask::open(contexts, config, &task, json);
    run_in_foreground(contexts, config, &task, opened, call, out)
        .map_err(|error| error.about(&short(&id.to_string())).of(&id.to_string()))
}

/// Resumes a task in the foreground.
fn resume(
    contexts: &Contexts,
    config: &Config,
    args: &RunArgs,
    task: &str,
    out: &mut Output,
) -> CliResult {
    let id = contexts.resolve(task)?;
    let name = short(&id.to_string());
    let call = task_call(
        contexts,
        config,
        args,
        id,
        OnSignal::CancelCall,
        out.is_json(),
    )?;
    let owner = new_owner(&host());
    let claimed = claim(contexts, config, id, &owner, out.is_json());
    let claimed = claimed.map_err(|error| error.about(&name).of(&id.to_string()))?;
    let Some((claimed, opened)) = claimed else {
        return Err(not_claimed(contexts, id)?.about(&name));
    };
    if args.allow_commands {
        contexts.with_registry(|rows| rows.allow_commands(id))?;
    }
    let task = LeasedTask {
        id,
        owner,
        mode: EndMode::Foreground,
        allows_commands: args.allow_commands || claimed.allows_commands,
        keeps_files: config.work.checkpoints() && !args.no_checkpoints,
    };
    run_in_foreground(contexts, config, &task, Ok(opened), call, out)
        .map_err(|error| error.about(&name).of(&id.to_string()))
}

/// Opens a task, and then claims it; `None` if another process has it, or it has ended.
///
/// The lock comes first: a process that is stopped has it longer than its lease, and keeps its row as it is.
fn claim(
    contexts: &Contexts,
    config: &Config,
    id: Uuid,
    owner: &str,
    json: bool,
) -> CliResult<Option<(QueueEntry, OpenedTask)>> {
    contexts.end_dead_lease(id)?;
    let (row, entry) = (
        contexts.row(id)?,
        contexts.with_registry(|rows| rows.queue_entry(id))?,
    );
    let status = row.map(|row| row.status);
    let is_leased = entry.is_some_and(|entry| entry.is_leased(Timestamp::now()));
    if status.is_some_and(Status::is_end) || status == Some(Status::Running) && is_leased {
        return Ok(None);
    }
    let (writer, repairs) = acquire(|| contexts.write(id))?;
    report_repairs(json, &repairs);
    let mut request = claim_request(owner, &host(), config.work.lease());
    request.task = Some(id);
    let claimed = contexts.with_registry(|rows| rows.claim(&request))?;
    Ok(claimed.map(|claimed| {
        let lease = LeaseKeeper::start(contexts, id, owner, config.work.lease());
        (claimed, OpenedTask { lease, writer })
    }))
}

/// Says why a task cannot be carried out now.
fn not_claimed(contexts: &Contexts, id: Uuid) -> CliResult<CliError> {
    let row = contexts.row(id)?;
    let ended = row.as_ref().map(|row| row.status);
    if let Some(status) = ended.filter(|status| status.is_end()) {
        return Ok(CliError::usage(format!("task {id} is {status}"))
            .hint("`infold fork TASK` continues it as another task"));
    }
    let entry = contexts.with_registry(|rows| rows.queue_entry(id))?;
    let until = entry.and_then(|entry| entry.lease).map(|lease| lease.until);
    let left = until.map(|until| until.duration_since(Timestamp::now()).as_secs().max(0) + 1);
    let process = row.and_then(|row| row.process_id.zip(row.hostname));
    let by = process.map(|(pid, host)| format!(" by process {pid} on {host}"));
    let hint = format!(
        "`infold task pause TASK` asks its worker to stop; if that process is gone, the task is free in {} s",
        left.unwrap_or_default()
    );
    let text = format!("task {id} is being carried out{}", by.unwrap_or_default());
    Ok(CliError::usage(text).hint(hint))
}

/// Carries a task out; an error before the loop begins leaves it paused, so that it can be resumed.
fn run_in_foreground(
    contexts: &Contexts,
    config: &Config,
    task: &LeasedTask,
    opened: Result<OpenedTask, TaskError>,
    call: ModelCall,
    out: &mut Output,
) -> CliResult {
    let ran = opened
        .map_err(CliError::from)
        .and_then(|opened| carry_out(contexts, config, task, opened, call, out));
    if let Err(error) = &ran {
        let reason = error.text().to_owned();
        let end = RunEnd::Paused { reason };
        // The first error is the one to report; without this call the lease expires.
        let _ = end.conclude_unopened(contexts, task.id, &task.owner);
    }
    ran
}

/// Carries out a task that a worker has claimed.
fn run_claimed(
    contexts: &Contexts,
    config: &Config,
    args: &RunArgs,
    id: Uuid,
    out: &mut Output,
) -> CliResult {
    let entry = contexts.with_registry(|rows| {
        rows.set_process(id, std::process::id())?;
        rows.queue_entry(id)
    })?;
    let task = LeasedTask {
        id,
        owner: args.lease.clone().unwrap_or_default(),
        mode: EndMode::Worker {
            attempts: args.attempt,
        },
        allows_commands: entry.is_some_and(|entry| entry.allows_commands),
        keeps_files: config.work.checkpoints() && !args.no_checkpoints,
    };
    let opened = match OpenedTask::open(contexts, config, &task, out.is_json()) {
        Err(error) if is_held(&error) => {
            // A process that lost its lease still has the task open: it is stopped, or very slow. That does not count
            // as an attempt.
            let wait = SignedDuration::try_from(config.work.lease()).unwrap_or_default();
            let back = Return::Deferred {
                not_before: Timestamp::now() + wait,
                error: error.to_string(),
            };
            contexts.with_registry(|rows| rows.give_back(id, &task.owner, &back))?;
            return Err(error.into());
        }
        opened => opened.map_err(CliError::from),
    };
    let call = task_call(
        contexts,
        config,
        args,
        id,
        OnSignal::FinishCall,
        out.is_json(),
    );
    let ran = opened.and_then(|opened| carry_out(contexts, config, &task, opened, call?, out));
    if let Err(error) = &ran {
        // An error before the loop began counts as an attempt.
        let end = RunEnd::failed_attempt(error.text().to_owned(), args.attempt, &config.work);
        report_end(contexts, config, id, &end, out.is_json());
        end.conclude_unopened(contexts, id, &task.owner)?;
    }
    ran
}

/// Returns whether a task could not be opened because another process has it open.
fn is_held(error: &TaskError) -> bool {
    let TaskError::Open { source, .. } = error else {
        return false;
    };
    matches!(source, OpenError::Held { .. })
}

/// Finds the model of a task that is there.
fn task_call(
    contexts: &Contexts,
    config: &Config,
    args: &RunArgs,
    id: Uuid,
    on_signal: OnSignal,
    json: bool,
) -> CliResult<ModelCall> {
    let log = contexts.read(id)?;
    let facts = TaskFacts {
        metadata: Metadata::read(log.dir())?,
        model: task_model(contexts, &log)?,
        has_reply: has_reply(&log)?,
        situation: task_situation(&log, log.state().shown(), infold_store::now())?,
    };
    let mut call =
        ModelCall::with_signals(contexts, config, &call_args(args), facts, on_signal, json)?;
    require_calls(args, &mut call, json);
    Ok(call)
}

/// Warns if the cost of a task is limited, but what the model costs is not known.
fn warn_of_unknown_prices(config: &Config, call: &ModelCall, json: bool) {
    let connection = &call.connection;
    if config.work.max_cost.is_some() && connection.prices.is_none() {
        let model = &connection.model;
        let text = format!(
            "the prices of the model `{model}` are not known, so work.max_cost has no effect; `prices` in the configuration of the model sets them"
        );
        CliError::usage(text).warn(json);
    }
}

/// Requires a tool call in each reply, if that was requested.
fn require_calls(args: &RunArgs, call: &mut ModelCall, json: bool) {
    if !args.require_calls {
        return;
    }
    if call.frame.wire == Wire::Ollama {
        let text = "Ollama has no tool choice: the model may end without a call";
        return CliError::usage(text).warn(json);
    }
    call.frame.tool_choice = Some(write_tool_choice(ToolChoice::Any, call.frame.wire));
}

fn call_args(args: &RunArgs) -> CallArgs {
    CallArgs {
        provider: args.provider.clone(),
        options: args.options.clone(),
        tools: None,
        tool_choice: None,
        temperature: None,
        no_stream: false,
        deadline: CALL_DEADLINE.as_secs(),
        first_wait: None,
    }
}

/// Runs the loop, and carries its end through.
fn carry_out(
    contexts: &Contexts,
    config: &Config,
    task: &LeasedTask,
    opened: OpenedTask,
    mut call: ModelCall,
    out: &mut Output,
) -> CliResult {
    let json = out.is_json();
    warn_of_unknown_prices(config, &call, json);
    let OpenedTask { lease, mut writer } = opened;
    let metadata = Metadata::read(writer.log().dir())?;
    let mut source = SourceReport::open(config, writer.log(), task.id, json)?;
    if let Some(source) = &mut source {
        source.start();
    }
    let stopped = call.runtime.stopped();
    let tools = tool_set(config, contexts, task.allows_commands, &metadata, &call)?;
    let workspace = metadata.cwd.as_ref().filter(|_| task.keeps_files);
    let run = TaskRun {
        contexts,
        task: task.id,
        writer: &mut writer,
        model: RunModel {
            connection: &call.connection,
            setup: &mut call.setup.setup,
            frame: call.frame.clone(),
            layers: &call.layers,
        },
        tools,
        checkpoints: workspace.map(|dir| RunCheckpoints::new(contexts, dir.into())),
        limits: WorkLimits::new(&config.work),
        lease: &lease,
        is_stopped: &|| *stopped.borrow(),
    };
    let mut live = LiveRun::new(json);
    let ran = match task.mode {
        EndMode::Foreground => run.run(&mut |event| live.handle(event)),
        EndMode::Worker { .. } => run.run(&mut |_: RunEvent<'_>| {}),
    };
    live.finish()?;
    let (end, error) = match ran {
        Ok(end) => (end, None),
        Err(error) => {
            let end = RunEnd::after_error(&error, task.mode, &config.work);
            (end, Some(error))
        }
    };
    // The source hears of the end before the task ends: after a crash, resuming the task reports it again.
    if let Some(source) = &mut source {
        source.end(&end);
    }
    end.conclude(contexts, task.id, writer, &lease, task.mode)?;
    match task.mode {
        EndMode::Worker { .. } => Ok(()),
        EndMode::Foreground => {
            // A reply without a call is the summary, too.
            let is_shown = matches!(&end, RunEnd::Completed { summary } if live.has_shown(summary));
            report(contexts, task.id, &end, is_shown, error, out)
        }
    }
}

/// Prints the task's end, unless its text `is_shown` already, and its usage.
fn report(
    contexts: &Contexts,
    id: Uuid,
    end: &RunEnd,
    is_shown: bool,
    error: Option<RunError>,
    out: &mut Output,
) -> CliResult {
    let row = contexts.row(id)?;
    let counters = row.map(|row| row.counters).unwrap_or_default();
    let (status, text) = match end {
        RunEnd::Completed { summary } => ("completed", summary.as_str()),
        RunEnd::Failed { error } => ("failed", error.as_str()),
        RunEnd::Paused { reason } => ("paused", reason.as_str()),
        RunEnd::Stopped => ("paused", "interrupted"),
        RunEnd::Retried { error, .. } => ("queued", error.as_str()),
        RunEnd::LeaseLost => ("lost", "another process carries the task out now"),
    };
    if out.is_json() {
        out.object(&json!({
            "uuid": id.to_string(), "status": status, "text": text,
            "steps": counters.llm_calls, "tool_calls": counters.tool_calls,
            "tokens": counters.tokens, "cached": counters.cached, "folds": counters.compressions,
            "cost": counters.cost as f64 / 1e6,
        }))?;
    } else {
        if *end != RunEnd::Stopped && error.is_none() && !is_shown {
            // A terminal would execute escape sequences; a pipe gets the text as it is, as that of replies.
            if std::io::stdout().is_terminal() {
                out.line(printable(text))?;
            } else {
                out.line(text)?;
            }
        }
        out.finish()?;
        let cost = match counters.cost {
            0 => String::new(),
            cost => format!(", ${:.4}", cost as f64 / 1e6),
        };
        let parts = [
            count(counters.llm_calls, "step"),
            count(counters.tool_calls, "tool call"),
            format!(
                "{} tokens ({} cached)",
                number(counters.tokens),
                number(counters.cached)
            ),
            count(counters.compressions, "fold"),
        ];
        note(false, format!("{status}: {}{cost}", parts.join(", ")));
    }
    out.finish()?;
    let hint = "`infold run --resume TASK` goes on";
    match (end, error) {
        (RunEnd::Completed { .. }, _) => Ok(()),
        (RunEnd::Stopped, _) => Err(CliError::interrupted("the task is paused").hint(hint)),
        (_, Some(RunError::Turn(error))) => Err(turn_error(error, hint)),
        (_, Some(error)) => Err(CliError::store(error).hint(hint)),
        (RunEnd::Failed { .. }, None) => Err(CliError::no("the task failed")
            .hint("`infold log TASK` shows what was done; `infold fork TASK` continues it")),
        (_, None) => Err(CliError::no(format!("the task is {status}: {text}")).hint(hint)),
    }
}
