use std::io::Read as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use infold::models::UNKNOWN_WINDOW;
use infold::request::Request;
use infold::turn::{is_waiting, unread};
use infold::{Config, Connection, ManageError, Talk, TurnError, Turned, Unanswered};
use infold_log::{Call as ToolCall, Past as _, Role, Seq, Span};
use infold_provider::Patience;
use infold_store::{Contexts, Log, Metadata};
use infold_wire::request::Frame;
use infold_wire::tools::{self, Choice as ToolChoice};
use infold_wire::{Json, Message, Wire, render_text, spoken};
use serde_json::json;

use crate::connect::{self, Calls, Whom};
use crate::failure::{Failure, Kind};
use crate::fold::cannot_fold;
use crate::live::Live;
use crate::manage::known;
use crate::out::{DIM, Out, number, paint, say, warn};
use crate::pen::{OLLAMAS_OWN, Pen};
use crate::settings::{Choice, Chosen};
use crate::steps::{open, short};

/// What `infold ask` takes.
#[derive(Debug, Args)]
pub struct AskArgs {
    /// The task; `new` makes one
    pub task: String,
    /// What to say; - for standard input; nothing to let the model answer what is there
    pub text: Option<String>,
    /// Instructions for the model, in a task that has no messages yet
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,
    #[command(flatten)]
    pub call: CallArgs,
}

/// What `infold send` takes.
#[derive(Debug, Args)]
pub struct SendArgs {
    /// The task
    pub task: String,
    #[command(flatten)]
    pub call: CallArgs,
}

/// What a call of a model takes.
#[derive(Debug, Args)]
pub struct CallArgs {
    #[command(flatten)]
    pub whom: Whom,
    #[command(flatten)]
    pub choice: Choice,
    /// Tools the model may call: a JSON array in the form of any provider
    #[arg(long, value_name = "FILE")]
    pub tools: Option<PathBuf>,
    /// Which of them: auto, none, any, or a name
    #[arg(long, value_name = "CHOICE", requires = "tools")]
    pub tool_choice: Option<String>,
    /// How much to leave to chance
    #[arg(long, value_name = "NUMBER")]
    pub temperature: Option<f64>,
    /// Take the reply in one piece
    #[arg(long)]
    pub no_stream: bool,
    /// How long to keep trying, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub deadline: u64,
    /// How long to wait at most before asking for the second time, in milliseconds
    #[arg(long, value_name = "MILLISECONDS", hide = true)]
    pub first_wait: Option<u64>,
}

/// `infold ask`
pub fn ask(
    contexts: &Contexts,
    config: &Config,
    args: &AskArgs,
    out: &mut Out,
) -> Result<(), Failure> {
    let text = match args.text.as_deref() {
        Some("-") => Some(standard_input()?),
        text => text.map(str::to_owned),
    };
    if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
        return Err(Failure::new(Kind::Usage, "there is nothing to say")
            .hint("`infold ask TASK 'how are you?'`; nothing was kept"));
    }
    let task = match args.task.as_str() {
        "new" => made(contexts, config, &args.call, out)?,
        task => task.to_owned(),
    };
    let said = Said {
        text,
        system: args.system.clone(),
    };
    talk(contexts, config, &task, Some(said), &args.call, out)
}

/// `infold send`
pub fn send(
    contexts: &Contexts,
    config: &Config,
    args: &SendArgs,
    out: &mut Out,
) -> Result<(), Failure> {
    talk(contexts, config, &args.task, None, &args.call, out)
}

/// What a person says before the model answers.
struct Said {
    text: Option<String>,
    system: Option<String>,
}

fn standard_input() -> Result<String, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text);
    read.map_err(|error| {
        Failure::new(
            Kind::Usage,
            format!("standard input could not be read: {error}"),
        )
        .hint("it must be UTF-8; nothing was kept")
    })?;
    Ok(text.trim_end_matches('\n').to_owned())
}

/// Makes a task for a conversation with this model.
fn made(
    contexts: &Contexts,
    config: &Config,
    call: &CallArgs,
    out: &Out,
) -> Result<String, Failure> {
    let named = call.choice.model.as_deref();
    let provider = connect::provider(config, call.whom.provider.as_deref(), None, named)?;
    let model = connect::model(config, &provider, named, None)?;
    let id = contexts.create(Metadata {
        llm_provider: Some(provider.name.clone()),
        model: Some(model),
        context_length: call.choice.window,
        wire: Some(provider_wire(&provider)?),
        ..Metadata::default()
    })?;
    let id = id.to_string();
    say(out.is_json(), paint(DIM, format!("task {id}")));
    Ok(id)
}

fn provider_wire(provider: &infold::config::Provider) -> Result<String, Failure> {
    Ok(connect::endpoint(provider)?.wire.name().to_owned())
}

/// Says what there is to say, and lets the model answer. With nothing said, the view goes as it is.
fn talk(
    contexts: &Contexts,
    config: &Config,
    task: &str,
    said: Option<Said>,
    call: &CallArgs,
    out: &mut Out,
) -> Result<(), Failure> {
    let json = out.is_json();
    let mut open = open(contexts, task, json)?;
    if let Some(said) = &said
        && let Some(reply) = unread(&open.writer, said.message(&open.writer).as_deref())?
    {
        return recall(&open.writer, reply, task, out);
    }
    let metadata = Metadata::read(open.writer.log().dir())?;
    let named = call.choice.model.as_deref();
    let of_task = metadata.llm_provider.as_deref();
    let provider = connect::provider(config, call.whom.provider.as_deref(), of_task, named)?;
    let of_task = metadata
        .model
        .as_deref()
        .filter(|_| call.whom.provider.is_none());
    let model = connect::model(config, &provider, named, of_task)?;
    let mut patience = Patience {
        deadline: Duration::from_secs(call.deadline),
        ..Patience::default()
    };
    if let Some(wait) = call.first_wait {
        patience.first_wait = Duration::from_millis(wait);
    }
    let calls = Calls::new(patience)?;
    let connection = calls.connect(config, &provider, &model)?;
    let mut known = known(contexts, open.writer.log())?;
    known.factor = infold::usage::learned(contexts, &provider.name, &model)?;
    known.model = Some(model.clone());
    let choice = Choice {
        model: None,
        ..call.choice.clone()
    };
    if !choice.tells_window(config, &known)? {
        let answered = answered(open.writer.log())?;
        known.window = running(config, &connection, answered, json);
        known.found = true;
    }
    let pen = Pen {
        talk: Some((&calls, &provider)),
        contexts: Some(contexts),
        usual: true,
    };
    let mut chosen = choice.chosen(config, known, pen, json)?;
    let frame = frame(call, &chosen, &connection)?;
    let whole = said.is_some();
    if let Some(said) = said {
        keep(&mut open.writer, said).map_err(|failure| failure.about(&open.name))?;
        warn(json, contexts.settle(open.id, &open.writer));
    }
    let mut live = Live::new(json);
    let turned = {
        let mut talk = Talk {
            contexts,
            writer: &mut open.writer,
            connection: &connection,
            profile: chosen.profile.clone(),
            aim: chosen.aim.clone(),
            summarizer: &mut *chosen.summarizer,
            hooks: &chosen.hooks,
            frame,
        };
        let mut hear = |news: infold::News<'_>| live.hear(news);
        match whole {
            true => talk.turn(&mut hear),
            false => talk.send(&mut hear),
        }
    };
    warn(json, contexts.settle(open.id, &open.writer));
    let output = turned
        .as_ref()
        .ok()
        .and_then(|turned| Some(turned.usage.as_ref()?.output));
    if turned.is_ok() {
        live.show();
    }
    let speed = live.finish(output)?;
    let mut turned = turned.map_err(|error| unanswered(error).about(&open.name))?;
    warn(json, turned.unrecorded.take().map_or(Ok(()), Err));
    tell(&open.writer, &turned, &live, speed, task, out)?;
    // Only now is the reply handed over, and the request may go.
    out.finish()
}

/// Tells of a reply that is recorded already.
fn recall(
    writer: &infold_store::Writer,
    reply: Span,
    task: &str,
    out: &mut Out,
) -> Result<(), Failure> {
    let mut live = Live::new(out.is_json());
    for seq in reply.seqs() {
        if let Ok(message) = Message::parse(&writer.log().message(seq)?) {
            spoken(&message, &mut live.text);
        }
    }
    live.show();
    live.finish(None)?;
    let calls = calls(writer, reply)?;
    if out.is_json() {
        out.object(&json!({
            "task": task, "from": reply.from().get(), "to": reply.to().get(),
            "text": live.text, "calls": listed(&calls), "requests": 0,
        }))?;
    } else {
        let why = "this reply was recorded before, by a process that ended too early to say so";
        say(false, paint(DIM, why));
        wait_for(&calls, task);
    }
    out.finish()?;
    Ok(Request::forget(writer.log())?)
}

/// The window that a model runs with, where its server knows best: whatever the model could take.
fn running(config: &Config, connection: &Connection, answered: bool, json: bool) -> Option<u64> {
    let model = &connection.model;
    let listed = config.find(model).is_some();
    if connection.wire() == Wire::Ollama {
        return connection.window().or_else(|| {
            let tokens = number(OLLAMAS_OWN);
            let what = format!("nobody says with what window Ollama runs `{model}`: {tokens} tokens are assumed; --window TOKENS sets it");
            Failure::new(Kind::Provider, what).warn(json);
            Some(OLLAMAS_OWN)
        });
    }
    let asked = connection.endpoint.is_local() || !listed;
    let found = asked.then(|| connection.window()).flatten();
    // That nothing is known of it was said before the first reply.
    found.or_else(|| (answered && !listed).then_some(UNKNOWN_WINDOW))
}

/// Says whether a model has said anything yet.
fn answered(log: &Log) -> Result<bool, Failure> {
    let path = log.state().shown().path();
    for seq in path.iter().rev().flat_map(|run| run.seqs().rev()) {
        if log.record(seq)?.role == Role::Assistant {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What stands around the conversation in a request.
fn frame(call: &CallArgs, chosen: &Chosen, connection: &Connection) -> Result<Frame, Failure> {
    let profile = &chosen.profile;
    let wire = connection.wire();
    let mut frame = Frame {
        max_tokens: profile.max_tokens,
        temperature: call.temperature,
        // A window that nobody chose could make it load the model anew, or fail to.
        window: Some(profile.window).filter(|_| chosen.told && wire == Wire::Ollama),
        stream: !call.no_stream,
        official: connection.endpoint.is_openai_itself(),
        ..Frame::new(wire, &connection.model)
    };
    if wire == Wire::Anthropic {
        frame.max_tokens = frame.max_tokens.or(Some(chosen.aim.budget.reserve()));
    }
    if let Some(path) = &call.tools {
        let wrong = |error: &dyn std::fmt::Display| {
            Failure::new(Kind::Usage, format!("{}: {error}", path.display()))
                .hint("a JSON array of tool definitions, as any of the providers takes them")
        };
        let bytes = std::fs::read(path).map_err(|error| wrong(&error))?;
        let list = Json::parse(&bytes).map_err(|error| wrong(&error))?;
        frame.tools = Some(tools::tools(list, wire).map_err(|error| wrong(&error))?);
        if wire == Wire::Ollama && call.tool_choice.as_deref() == Some("none") {
            // It has no such choice: a model that is shown no tools calls none.
            frame.tools = None;
        }
        frame.tool_choice = call.tool_choice.as_deref().map(|choice| {
            let choice = match choice {
                "auto" => ToolChoice::Auto,
                "none" => ToolChoice::None,
                "any" => ToolChoice::Any,
                name => ToolChoice::Named(name.to_owned()),
            };
            tools::tool_choice(choice, wire)
        });
    }
    Ok(frame)
}

impl Said {
    /// The text as a message of a task.
    fn message(&self, writer: &infold_store::Writer) -> Option<Vec<u8>> {
        let wire = writer.log().wire();
        let text = self.text.as_ref()?;
        Some(render_text(wire, Role::User, text))
    }
}

/// Keeps what was said, once.
fn keep(writer: &mut infold_store::Writer, said: Said) -> Result<(), Failure> {
    let mut messages = Vec::new();
    if let Some(system) = &said.system {
        let message = render_text(writer.log().wire(), Role::System, system);
        let begun = writer.log().state().last_seq().is_some();
        // Said again because no answer came: it is there already.
        let there = begun && writer.log().message(Seq::FIRST)? == message;
        if begun && !there {
            return Err(Failure::new(
                Kind::Usage,
                "the task has messages already; instructions come first",
            )
            .hint("`infold pin TASK --note TEXT` adds a text to every view"));
        }
        messages.extend(Some(message).filter(|_| !there));
    }
    if let Some(message) = said.message(writer)
        && !is_waiting(writer, &message)?
    {
        messages.push(message);
    }
    writer.append(&messages)?;
    Ok(writer.sync()?)
}

fn unanswered(error: TurnError) -> Failure {
    let kept = "what was said is kept; `infold ask TASK` lets the model answer it";
    match error {
        TurnError::Open => Failure::new(Kind::Usage, error)
            .hint("push the tool results with `infold task push TASK`, then `infold ask TASK`"),
        TurnError::Nothing(_) => {
            Failure::new(Kind::Usage, error).hint("`infold ask TASK 'what to say'`")
        }
        TurnError::Silent(_) => Failure::new(Kind::Provider, error).hint(kept),
        TurnError::Manage(ManageError::Cancelled) => {
            Failure::new(Kind::Interrupted, error).hint(kept)
        }
        TurnError::Manage(error) => cannot_fold(error, "--window"),
        TurnError::TooLong { call, source } => {
            cannot_fold(source, "--window").within(&call.to_string())
        }
        TurnError::Unanswered(Unanswered::Cancelled) => {
            Failure::new(Kind::Interrupted, error).hint(kept)
        }
        TurnError::Unanswered(Unanswered::Call(error)) => Failure::from(*error),
        TurnError::Reply(error) => Failure::from(error),
        TurnError::NoRoom(error) => Failure::from(error),
        TurnError::Task(error) => Failure::from(error),
    }
}

/// Prints what came of it.
fn tell(
    writer: &infold_store::Writer,
    turned: &Turned,
    live: &Live,
    speed: Option<String>,
    task: &str,
    out: &mut Out,
) -> Result<(), Failure> {
    let calls = calls(writer, turned.reply)?;
    if out.is_json() {
        let usage = turned.usage.as_ref().map(|usage| {
            json!({
                "tokens": usage.tokens, "cached": usage.cached, "output": usage.output,
                "cost": usage.cost as f64 / 1e6,
            })
        });
        return out.object(&json!({
            "task": task, "from": turned.reply.from().get(), "to": turned.reply.to().get(),
            "text": live.text, "calls": listed(&calls), "managed": live.managed, "stop": turned.stop.name(),
            "usage": usage, "estimate": turned.estimate, "factor": turned.factor, "requests": turned.requests,
        }));
    }
    let mut story: Vec<String> = speed.into_iter().collect();
    if let Some(usage) = &turned.usage {
        let sent = usage.tokens.saturating_sub(usage.output);
        story.push(format!(
            "sent {} ({} cached)",
            number(sent),
            number(usage.cached)
        ));
        if usage.cost > 0 {
            story.push(format!("${:.4}", usage.cost as f64 / 1e6));
        }
    }
    if !matches!(
        turned.stop,
        infold_wire::Stop::End | infold_wire::Stop::Calls
    ) {
        story.push(format!("ended early: {}", turned.stop.name()));
    }
    say(false, paint(DIM, story.join("; ")));
    wait_for(&calls, task);
    Ok(())
}

/// The calls in a reply.
fn calls(writer: &infold_store::Writer, reply: Span) -> Result<Vec<ToolCall>, Failure> {
    let mut calls = Vec::new();
    for seq in reply.seqs() {
        let bytes = writer.log().message(seq)?;
        if let Ok(message) = Message::parse(&bytes) {
            calls.extend(message.calls());
        }
    }
    Ok(calls)
}

/// Calls for scripts.
fn listed(calls: &[ToolCall]) -> Vec<serde_json::Value> {
    let object = |call: &ToolCall| json!({"id": call.id, "name": call.name});
    calls.iter().map(object).collect()
}

/// Says which results the model waits for.
fn wait_for(calls: &[ToolCall], task: &str) {
    let names = calls.iter().filter_map(|call| call.name.as_deref());
    let names: Vec<&str> = names.collect();
    if !calls.is_empty() {
        let (names, task) = (names.join(", "), short(task));
        say(
            false,
            format!(
                "waits for results of {names}; `infold task push {task}`, then `infold ask {task}`"
            ),
        );
    }
}
