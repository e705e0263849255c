use std::io::{IsTerminal as _, Read as _};

use clap::Args;
use infold::turn::{is_unanswered, mark_delivered, undelivered_reply};
use infold::{CallFailure, Config, Connection, ManageError, TurnContext, TurnError, TurnReply};
use infold_log::{EventId, Past as _, Role, Seq, Span};
use infold_store::{Contexts, InEffect, Log, Metadata, Writer};
use infold_wire::trouble::Refused;
use infold_wire::{Message, Stop, Trouble, render_text, spoken};
use serde_json::json;

use crate::called::{Called, calls, wait_for};
use crate::failure::{Failure, Kind};
use crate::fold::cannot_fold;
use crate::live::Live;
use crate::manage::known;
use crate::out::{DIM, Out, number, paint, say, warn};
use crate::ready::{Before, CallArgs, Ready};
use crate::steps::{Open, open};

/// What `infold ask` takes.
#[derive(Debug, Args)]
pub struct AskArgs {
    /// The task; `new` makes one, and so does a question in its place
    pub task: Option<String>,
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
    #[arg(default_value = "@")]
    pub task: String,
    #[command(flatten)]
    pub call: CallArgs,
}

/// `infold ask`
pub fn ask(
    contexts: &Contexts,
    config: &Config,
    args: &AskArgs,
    out: &mut Out,
) -> Result<(), Failure> {
    let (task, text) = addressed(args.task.as_deref(), args.text.as_deref())?;
    let text = match text {
        Some("-") => Some(standard_input()?),
        text => text.map(str::to_owned),
    };
    if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
        return Err(Failure::new(Kind::Usage, "there is nothing to say")
            .hint("`infold ask TASK 'how are you?'`; nothing was kept"));
    }
    if args
        .system
        .as_ref()
        .is_some_and(|text| text.trim().is_empty())
    {
        return Err(Failure::new(Kind::Usage, "the instructions are blank")
            .hint("`--system 'be brief'`; nothing was kept"));
    }
    if text.is_none() && (task == "new" || args.system.is_some()) {
        return Err(
            Failure::new(Kind::Usage, "there is nothing to answer").hint(format!(
                "`infold ask {task} 'what to say'`; nothing was kept"
            )),
        );
    }
    let said = Said {
        text,
        system: args.system.clone(),
    };
    if task != "new" {
        return talk(contexts, config, task, Some(said), &args.call, out);
    }
    // A task is made once nothing is left that could stand in its way.
    let ready = Ready::new(
        contexts,
        config,
        &args.call,
        Before::default(),
        out.is_json(),
    )?;
    let open = made(contexts, &ready, &args.call, out.is_json())?;
    let task = open.id.to_string();
    answer(contexts, open, ready, Some(said), out)
        .map_err(|failure| failure.after(&format!("task {task} was made")))
}

/// Tells the task from what to say: what cannot be the id of a task is a question, and standard
/// input is read if there is nothing else.
fn addressed<'a>(
    task: Option<&'a str>,
    text: Option<&'a str>,
) -> Result<(&'a str, Option<&'a str>), Failure> {
    let is_id = |text: &str| {
        let is_of_id = |c: char| c.is_ascii_hexdigit() || c == '-';
        text.starts_with('@') || text.chars().all(is_of_id)
    };
    match (task, text) {
        (Some("-"), None) => Ok(("new", Some("-"))),
        (Some(question), None) if question != "new" && !is_id(question) => {
            Ok(("new", Some(question)))
        }
        (Some(task), text) => Ok((task, text)),
        (None, _) if std::io::stdin().is_terminal() => {
            Err(Failure::new(Kind::Usage, "there is nothing to say")
                .hint("`infold ask 'how are you?'`; nothing was kept"))
        }
        (None, _) => Ok(("new", Some("-"))),
    }
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

fn current_directory() -> Option<String> {
    Some(std::env::current_dir().ok()?.to_str()?.to_owned())
}

/// Makes a task for a conversation with this model.
fn made(contexts: &Contexts, ready: &Ready, call: &CallArgs, json: bool) -> Result<Open, Failure> {
    let endpoint = &ready.connection.endpoint;
    let id = contexts.create(Metadata {
        llm_provider: Some(endpoint.name.clone()),
        model: Some(ready.connection.model.clone()),
        context_length: call.choice.window,
        agent: Some("infold".to_owned()),
        cwd: current_directory(),
        in_effect: InEffect {
            model: None,
            context_length: Some(ready.chosen.setup.profile.window),
            compression_threshold: Some(ready.chosen.setup.profile.threshold.share()),
        },
        wire: Some(endpoint.wire.name().to_owned()),
        ..Metadata::default()
    })?;
    let id = id.to_string();
    say(json, paint(DIM, format!("task {id}")));
    open(contexts, &id, json)
        .map_err(|failure| failure.after(&format!("task {id} was made")).of(&id))
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
    let open = open(contexts, task, json)?;
    let id = open.id.to_string();
    let mut work = || {
        if let Some(said) = &said
            && let Some(reply) =
                undelivered_reply(&open.writer, said.message(&open.writer).as_deref())?
        {
            return recall(&open.writer, reply, &id, out).map(|()| None);
        }
        let log = open.writer.log();
        let before = Before {
            metadata: Metadata::read(log.dir())?,
            known: known(contexts, log)?,
            answered: answered(log)?,
        };
        Ready::new(contexts, config, call, before, json).map(Some)
    };
    match work().map_err(|failure: Failure| failure.of(&id))? {
        Some(ready) => answer(contexts, open, ready, said, out),
        None => Ok(()),
    }
}

/// Keeps what was said, and lets the model answer.
fn answer(
    contexts: &Contexts,
    mut open: Open,
    mut ready: Ready,
    said: Option<Said>,
    out: &mut Out,
) -> Result<(), Failure> {
    let id = open.id.to_string();
    let before = progress(&open);
    let is_asked = said.is_some();
    let answered = turn(contexts, &mut open, &mut ready, said, out);
    answered.map_err(|failure| {
        let failure = match progress(&open) == before {
            true => failure,
            false if is_asked => failure.after(KEPT),
            false => {
                failure.after("what came of it until then is kept; `infold log TASK` shows it")
            }
        };
        failure.about(&open.name).of(&id)
    })
}

/// How far a conversation has come: its last message, and the last step that changed what is shown.
fn progress(open: &Open) -> (Option<Seq>, Option<EventId>) {
    let state = open.writer.log().state();
    (state.last_seq(), state.step())
}

/// What there is to say when no answer came.
const KEPT: &str = "what was said is kept; `infold ask TASK` lets the model answer it";

fn turn(
    contexts: &Contexts,
    open: &mut Open,
    ready: &mut Ready,
    said: Option<Said>,
    out: &mut Out,
) -> Result<(), Failure> {
    let json = out.is_json();
    let whole = said.is_some();
    if let Some(said) = said {
        keep(&mut open.writer, said)?;
        warn(json, contexts.settle(open.id, &open.writer));
    }
    let mut live = Live::new(json);
    let turned = {
        let chosen = &mut ready.chosen;
        let mut talk = TurnContext {
            contexts,
            writer: &mut open.writer,
            connection: &ready.connection,
            profile: chosen.setup.profile.clone(),
            aim: chosen.setup.aim.clone(),
            summarizer: &mut *chosen.setup.summarizer,
            hooks: &chosen.setup.hooks,
            frame: ready.frame.clone(),
        };
        let mut hear = |news: infold::TurnEvent<'_>| live.hear(news);
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
    let mut turned = turned.map_err(unanswered)?;
    warn(json, turned.unrecorded.take().map_or(Ok(()), Err));
    tell(open, &turned, &live, speed, &ready.connection, out)?;
    // Only now is the reply handed over, and the request may go.
    out.finish()
}

/// Tells of a reply that is recorded already.
fn recall(writer: &Writer, reply: Span, task: &str, out: &mut Out) -> Result<(), Failure> {
    let mut live = Live::new(out.is_json());
    for seq in reply.seqs() {
        if let Ok(message) = Message::parse(&writer.log().message(seq)?) {
            spoken(&message, &mut live.text);
        }
    }
    live.show();
    live.finish(None)?;
    let calls = calls(writer, reply, None)?;
    if out.is_json() {
        let listed: Vec<_> = calls.iter().map(Called::json).collect();
        out.object(&json!({
            "task": task, "from": reply.from().get(), "to": reply.to().get(),
            "text": live.text, "calls": listed, "requests": 0,
        }))?;
    } else {
        let why = "this reply was recorded before, by a process that ended too early to say so";
        say(false, paint(DIM, why));
        wait_for(&calls, task);
    }
    out.finish()?;
    Ok(mark_delivered(writer)?)
}

impl Said {
    /// The text as a message of a task.
    fn message(&self, writer: &Writer) -> Option<Vec<u8>> {
        let wire = writer.log().wire();
        let text = self.text.as_ref()?;
        Some(render_text(wire, Role::User, text))
    }
}

/// Keeps what was said, once.
fn keep(writer: &mut Writer, said: Said) -> Result<(), Failure> {
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
        && !is_unanswered(writer, &message)?
    {
        messages.push(message);
    }
    writer.append(&messages)?;
    Ok(writer.sync()?)
}

fn unanswered(error: TurnError) -> Failure {
    let kept = KEPT;
    match error {
        TurnError::Open => Failure::new(Kind::Usage, error)
            .hint("push the tool results with `infold task push TASK`, then `infold ask TASK`"),
        TurnError::Nothing(_) => {
            Failure::new(Kind::Usage, error).hint("`infold ask TASK 'what to say'`")
        }
        TurnError::Silent(ref stop) => {
            let hint = match stop.as_str() {
                "length" => "it used up its tokens before it said anything: give a larger --max-tokens",
                "declined" => "the provider declined to answer; say it differently",
                _ => kept,
            };
            Failure::new(Kind::Provider, error).hint(hint)
        }
        TurnError::Manage(ManageError::Cancelled) => {
            Failure::new(Kind::Interrupted, error).hint(kept)
        }
        TurnError::Manage(error) => cannot_fold(error, "--window"),
        error @ TurnError::TooLong { .. } => Failure::new(Kind::Provider, error)
            .hint("give the window it really has: --window TOKENS, or `context_length` in config.yaml; or unpin what need not stay"),
        TurnError::Unanswered(CallFailure::Cancelled) => {
            Failure::new(Kind::Interrupted, error).hint(kept)
        }
        // The request could not be read again: the disk failed, not the provider.
        TurnError::Unanswered(CallFailure::Call(error))
            if error.requests == 0 && matches!(error.trouble, Trouble::Refused(Refused::Request)) =>
        {
            Failure::new(Kind::Store, error).hint(kept)
        }
        TurnError::Unanswered(CallFailure::Call(error)) => Failure::from(*error),
        TurnError::Reply(error) => Failure::from(error),
        TurnError::Task(error) => Failure::from(error),
    }
}

/// Prints what came of it.
fn tell(
    open: &Open,
    turned: &TurnReply,
    live: &Live,
    speed: Option<String>,
    connection: &Connection,
    out: &mut Out,
) -> Result<(), Failure> {
    let task = &open.id.to_string();
    let calls = calls(&open.writer, turned.reply, Some(&turned.stop))?;
    if out.is_json() {
        let usage = turned.usage.as_ref().map(|usage| {
            json!({
                "tokens": usage.tokens, "cached": usage.cached, "output": usage.output,
                "cost": usage.cost as f64 / 1e6,
            })
        });
        let listed: Vec<_> = calls.iter().map(Called::json).collect();
        let mut object = json!({
            "task": task, "from": turned.reply.from().get(), "to": turned.reply.to().get(),
            "provider": connection.endpoint.name, "model": connection.model,
            "text": live.text, "calls": listed, "managed": live.managed, "lost": live.lost,
            "stop": turned.stop.name(), "usage": usage, "estimate": turned.estimate,
            "factor": turned.factor, "requests": turned.requests,
        });
        if !live.reasoning.is_empty() {
            object["reasoning"] = live.reasoning.as_str().into();
        }
        return out.object(&object);
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
    if !matches!(turned.stop, Stop::End | Stop::Calls) {
        story.push(format!("ended early: {}", turned.stop.name()));
    }
    say(false, paint(DIM, story.join("; ")));
    wait_for(&calls, task);
    Ok(())
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
