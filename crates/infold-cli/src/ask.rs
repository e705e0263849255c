//! `infold ask` and `infold send`: one turn with a model.

use std::io::{IsTerminal as _, Read as _};

use clap::Args;
use infold::layers::task_situation;
use infold::turn::{is_unanswered, mark_delivered, undelivered_reply};
use infold::{CallFailure, Config, Connection, ManageError, TurnContext, TurnError, TurnReply};
use infold_log::{EventId, Past as _, Role, Seq, Span};
use infold_store::{Contexts, InEffect, Log, Metadata, Writer};
use infold_wire::provider_error::RefusalCause;
use infold_wire::{Message, ProviderError, StopReason, append_words, render_text};
use serde_json::json;

use crate::call_runtime::WINDOW_HINT;
use crate::error::{CliError, CliResult};
use crate::fold::cannot_fold;
use crate::live_reply::LiveReply;
use crate::manage::task_model;
use crate::model_call::{CallArgs, ModelCall, TaskFacts};
use crate::output::{Output, note, number, warn};
use crate::reply_calls::{ReplyCall, print_refused, print_waiting, waiting_calls};
use crate::steps::{WritableTask, open};

/// The arguments of `infold ask`.
#[derive(Debug, Args)]
pub struct AskArgs {
    /// The task; `new`, or a question in its place, creates one
    pub task: Option<String>,
    /// The message; - for standard input [default: let the model answer the last message]
    pub text: Option<String>,
    /// The system prompt of a task that has no messages yet
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,
    #[command(flatten)]
    pub call: CallArgs,
}

/// The arguments of `infold send`.
#[derive(Debug, Args)]
pub struct SendArgs {
    /// The task
    #[arg(default_value = "@")]
    pub task: String,
    #[command(flatten)]
    pub call: CallArgs,
}

/// `infold ask`
pub fn ask(contexts: &Contexts, config: &Config, args: &AskArgs, out: &mut Output) -> CliResult {
    let (task, text) = split_task_and_text(args.task.as_deref(), args.text.as_deref())?;
    let text = match text {
        Some("-") => Some(read_stdin()?),
        text => text.map(str::to_owned),
    };
    let is_blank = |text: &Option<String>| text.as_ref().is_some_and(|text| text.trim().is_empty());
    if is_blank(&text) {
        return Err(CliError::usage("the message is empty")
            .hint("`infold ask TASK 'how are you?'`; nothing was stored"));
    }
    if is_blank(&args.system) {
        return Err(CliError::usage("the instructions are blank")
            .hint("`--system 'be brief'`; nothing was stored"));
    }
    if text.is_none() && (task == "new" || args.system.is_some()) {
        return Err(CliError::usage("no message given").hint(format!(
            "`infold ask {task} 'your message'`; nothing was stored"
        )));
    }
    let prompt = PromptMessages {
        text,
        system: args.system.clone(),
    };
    if task != "new" {
        return ask_task(contexts, config, task, Some(prompt), &args.call, out);
    }
    // The task is created once everything else has succeeded.
    let json = out.is_json();
    let call = ModelCall::new(contexts, config, &args.call, TaskFacts::default(), json)?;
    let open = create_task(contexts, &call, &args.call, json)?;
    let task = open.id.to_string();
    answer(contexts, open, call, Some(prompt), out)
        .map_err(|error| error.after(&format!("task {task} was created")))
}

/// Separates the task from the text: an argument that cannot be a task id is a question, and without a text standard
/// input is read.
fn split_task_and_text<'a>(
    task: Option<&'a str>,
    text: Option<&'a str>,
) -> CliResult<(&'a str, Option<&'a str>)> {
    let is_id = |text: &str| {
        text.starts_with('@') || text.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
    };
    match (task, text) {
        (Some("-"), None) => Ok(("new", Some("-"))),
        (Some(question), None) if question != "new" && !is_id(question) => {
            Ok(("new", Some(question)))
        }
        (Some(task), text) => Ok((task, text)),
        (None, _) if std::io::stdin().is_terminal() => Err(CliError::usage("no message given")
            .hint("`infold ask 'how are you?'`; nothing was stored")),
        (None, _) => Ok(("new", Some("-"))),
    }
}

/// `infold send`
pub fn send(contexts: &Contexts, config: &Config, args: &SendArgs, out: &mut Output) -> CliResult {
    ask_task(contexts, config, &args.task, None, &args.call, out)
}

/// The messages to append before the model answers.
struct PromptMessages {
    text: Option<String>,
    system: Option<String>,
}

fn read_stdin() -> CliResult<String> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| {
            CliError::usage(format!("standard input could not be read: {error}"))
                .hint("it must be UTF-8; nothing was stored")
        })?;
    Ok(text.trim_end_matches('\n').to_owned())
}

/// Creates a task for a conversation with this model.
fn create_task(
    contexts: &Contexts,
    call: &ModelCall,
    args: &CallArgs,
    json: bool,
) -> CliResult<WritableTask> {
    let endpoint = &call.connection.endpoint;
    let profile = &call.setup.setup.profile;
    let cwd = std::env::current_dir().ok();
    let id = contexts.create(Metadata {
        llm_provider: Some(endpoint.name.clone()),
        model: Some(call.connection.model.clone()),
        context_length: args.options.window,
        agent: Some("infold".to_owned()),
        cwd: cwd.and_then(|dir| Some(dir.to_str()?.to_owned())),
        in_effect: InEffect {
            model: None,
            context_length: Some(profile.window),
            compression_threshold: Some(profile.threshold.share()),
        },
        wire: Some(endpoint.wire.name().to_owned()),
        ..Metadata::default()
    })?;
    let id = id.to_string();
    note(json, format!("task {id}"));
    open(contexts, &id, json)
        .map_err(|error| error.after(&format!("task {id} was created")).of(&id))
}

/// Appends the prompt to an existing task and lets the model answer. Without a prompt the view is sent unchanged.
fn ask_task(
    contexts: &Contexts,
    config: &Config,
    task: &str,
    prompt: Option<PromptMessages>,
    args: &CallArgs,
    out: &mut Output,
) -> CliResult {
    let json = out.is_json();
    let open = open(contexts, task, json)?;
    let id = open.id.to_string();
    let mut prepare = || {
        if let Some(prompt) = &prompt
            && let Some(reply) =
                undelivered_reply(&open.writer, prompt.message(&open.writer).as_deref())?
        {
            return print_recorded(&open.writer, reply, &id, out).map(|()| None);
        }
        let log = open.writer.log();
        let facts = TaskFacts {
            metadata: Metadata::read(log.dir())?,
            model: task_model(contexts, log)?,
            has_reply: has_reply(log)?,
            situation: task_situation(log, log.state().shown(), infold_store::now())?,
        };
        ModelCall::new(contexts, config, args, facts, json).map(Some)
    };
    match prepare().map_err(|error: CliError| error.of(&id))? {
        Some(call) => answer(contexts, open, call, prompt, out),
        None => Ok(()),
    }
}

/// Stores the prompt and lets the model answer.
fn answer(
    contexts: &Contexts,
    mut open: WritableTask,
    mut call: ModelCall,
    prompt: Option<PromptMessages>,
    out: &mut Output,
) -> CliResult {
    let id = open.id.to_string();
    let before = position(&open);
    let has_text = prompt.as_ref().is_some_and(|prompt| prompt.text.is_some());
    let answered = turn(contexts, &mut open, &mut call, prompt, out);
    answered.map_err(|mut error| {
        if position(&open) != before {
            error = error.after(if has_text {
                PROMPT_STORED
            } else {
                "the events so far are stored; `infold log TASK` shows them"
            });
        }
        error.about(&open.name).of(&id)
    })
}

/// Returns the last message, and the last step that changed the view.
fn position(open: &WritableTask) -> (Option<Seq>, Option<EventId>) {
    let state = open.writer.log().state();
    (state.last_seq(), state.step())
}

/// The hint when no answer came to a message that was given with the command.
const PROMPT_STORED: &str = "the message is stored; `infold ask TASK` sends it again";

/// Returns the hint when no answer came. It claims that something is stored only if the command was given something to store.
fn unanswered_hint(prompt: Option<&PromptMessages>) -> &'static str {
    match prompt {
        Some(prompt) if prompt.text.is_some() => PROMPT_STORED,
        Some(_) => "`infold ask TASK` asks for the answer again",
        None => "`infold send TASK` sends it again",
    }
}

fn turn(
    contexts: &Contexts,
    open: &mut WritableTask,
    call: &mut ModelCall,
    prompt: Option<PromptMessages>,
    out: &mut Output,
) -> CliResult {
    let json = out.is_json();
    let has_prompt = prompt.is_some();
    let hint = unanswered_hint(prompt.as_ref());
    if let Some(prompt) = prompt {
        store_prompt(&mut open.writer, prompt)?;
        warn(json, contexts.settle(open.id, &open.writer));
    }
    let mut live = LiveReply::new(json);
    let turned = {
        let setup = &mut call.setup.setup;
        let mut talk = TurnContext {
            contexts,
            writer: &mut open.writer,
            connection: &call.connection,
            profile: setup.profile.clone(),
            aim: setup.aim.clone(),
            summarizer: &mut *setup.summarizer,
            hooks: &setup.hooks,
            frame: call.frame.clone(),
            layers: Some(&call.layers),
            tools: call.tools.as_ref(),
        };
        let mut handle = |news: infold::TurnEvent<'_>| live.handle(news);
        if has_prompt {
            talk.turn(&mut handle)
        } else {
            talk.send(&mut handle)
        }
    };
    warn(json, contexts.settle(open.id, &open.writer));
    let usage = turned
        .as_ref()
        .ok()
        .and_then(|turned| turned.usage.as_ref());
    let output = usage.map(|usage| usage.output);
    if turned.is_ok() {
        live.print();
    }
    let speed = live.finish(output)?;
    let mut turned = turned.map_err(|error| turn_error(error, hint))?;
    warn(json, turned.unrecorded.take().map_or(Ok(()), Err));
    print_turn(open, &turned, &live, speed, &call.connection, out)?;
    // The reply counts as delivered only after this.
    out.finish()
}

/// Prints a reply that was recorded already.
fn print_recorded(writer: &Writer, reply: Span, task: &str, out: &mut Output) -> CliResult {
    let mut live = LiveReply::new(out.is_json());
    for seq in reply.seqs() {
        if let Ok(message) = Message::parse(&writer.log().message(seq)?) {
            append_words(&message, &mut live.text);
        }
    }
    live.print();
    live.finish(None)?;
    let calls = waiting_calls(writer, reply, None)?;
    if out.is_json() {
        let listed: Vec<_> = calls.iter().map(ReplyCall::json).collect();
        out.object(&json!({
            "task": task, "from": reply.from().get(), "to": reply.to().get(),
            "text": live.text, "calls": listed, "requests": 0,
        }))?;
    } else {
        note(
            false,
            "this reply was recorded by an earlier process that ended before printing it",
        );
        print_waiting(&calls, task);
    }
    out.finish()?;
    Ok(mark_delivered(writer)?)
}

impl PromptMessages {
    /// Returns the text as a message of the task.
    fn message(&self, writer: &Writer) -> Option<Vec<u8>> {
        let text = self.text.as_ref()?;
        Some(render_text(writer.log().wire(), Role::User, text))
    }
}

/// Appends the messages that are not there yet.
fn store_prompt(writer: &mut Writer, prompt: PromptMessages) -> CliResult {
    let mut messages = Vec::new();
    if let Some(system) = &prompt.system {
        let message = render_text(writer.log().wire(), Role::System, system);
        let is_empty = writer.log().state().last_seq().is_none();
        if is_empty {
            messages.push(message);
        } else if writer.log().message(Seq::FIRST)? != message {
            // Repeated instructions are a retry.
            return Err(
                CliError::usage("instructions must come first, and the task has messages")
                    .hint("`infold pin TASK --note TEXT` adds a text to every view"),
            );
        }
    }
    if let Some(message) = prompt.message(writer)
        && !is_unanswered(writer, &message)?
    {
        messages.push(message);
    }
    writer.append(&messages)?;
    Ok(writer.sync()?)
}

/// Converts the error; `unanswered` is the hint if the model gave no reply.
pub fn turn_error(error: TurnError, unanswered: &str) -> CliError {
    match error {
        TurnError::Open => CliError::usage(error)
            .hint("push the tool results with `infold task push TASK`, then `infold ask TASK`"),
        TurnError::Nothing(_) => CliError::usage(error).hint("`infold ask TASK 'your message'`"),
        TurnError::Silent(ref stop) => {
            let hint = match stop.as_str() {
                "length" => "it used up its tokens before any text: use a larger --max-tokens",
                "declined" => "the provider declined to answer; rephrase the message",
                _ => unanswered,
            };
            CliError::provider(error).hint(hint)
        }
        TurnError::Manage(ManageError::Cancelled)
        | TurnError::Unanswered(CallFailure::Cancelled) => {
            CliError::interrupted(error).hint(unanswered)
        }
        TurnError::Manage(error) => cannot_fold(error, "--window"),
        error @ TurnError::TooLong { .. } => {
            CliError::provider(error).hint(format!("{WINDOW_HINT}; or unpin messages"))
        }
        // The request could not be read from the disk: the store failed, not the provider.
        TurnError::Unanswered(CallFailure::Call(error))
            if error.requests == 0
                && matches!(error.trouble, ProviderError::Refused(RefusalCause::Request)) =>
        {
            CliError::store(error).hint(unanswered)
        }
        TurnError::Unanswered(CallFailure::Call(error)) => CliError::from(*error),
        TurnError::Reply(error) => CliError::from(error),
        TurnError::Layers(error) => CliError::no(error)
            .hint("raise `layers.max_tokens`, or shorten the system and task layers"),
        TurnError::Task(error) => CliError::from(error),
    }
}

/// Prints the reply for scripts, or the usage for people.
fn print_turn(
    open: &WritableTask,
    turned: &TurnReply,
    live: &LiveReply,
    speed: Option<String>,
    connection: &Connection,
    out: &mut Output,
) -> CliResult {
    let task = &open.id.to_string();
    let calls = waiting_calls(&open.writer, turned.reply, Some(&turned.stop))?;
    if out.is_json() {
        let usage = turned.usage.as_ref().map(|usage| {
            json!({
                "tokens": usage.tokens, "cached": usage.cached, "output": usage.output,
                "cost": usage.cost as f64 / 1e6,
            })
        });
        let listed: Vec<_> = calls.iter().map(ReplyCall::json).collect();
        let mut object = json!({
            "task": task, "from": turned.reply.from().get(), "to": turned.reply.to().get(),
            "provider": connection.endpoint.name, "model": connection.model,
            "text": live.text, "calls": listed, "managed": live.managed, "lost": live.lost,
            "stop": turned.stop.name(), "usage": usage, "estimate": turned.estimate,
            "factor": turned.factor, "requests": turned.requests,
        });
        if !turned.refusals.is_empty() {
            let refused = turned.refusals.iter();
            let refused =
                refused.map(|it| json!({"name": it.tool, "id": it.call, "told": it.told}));
            object["refused"] = refused.collect::<Vec<_>>().into();
        }
        if !live.reasoning.is_empty() {
            object["reasoning"] = live.reasoning.as_str().into();
        }
        return out.object(&object);
    }
    let mut parts: Vec<String> = speed.into_iter().collect();
    if let Some(usage) = &turned.usage {
        let sent = usage.tokens.saturating_sub(usage.output);
        parts.push(format!(
            "sent {} ({} cached)",
            number(sent),
            number(usage.cached)
        ));
        if usage.cost > 0 {
            parts.push(format!("${:.4}", usage.cost as f64 / 1e6));
        }
    }
    if !matches!(turned.stop, StopReason::End | StopReason::Calls) {
        parts.push(format!("ended early: {}", turned.stop.name()));
    }
    note(false, parts.join("; "));
    print_refused(&turned.refusals, task, !calls.is_empty());
    print_waiting(&calls, task);
    Ok(())
}

/// Returns whether the visible conversation has a reply of a model.
pub fn has_reply(log: &Log) -> CliResult<bool> {
    let path = log.state().shown().path();
    for seq in path.iter().rev().flat_map(|run| run.seqs().rev()) {
        if log.record(seq)?.role == Role::Assistant {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_command_that_was_given_a_message_claims_to_have_stored_it() {
        let prompt = |text: Option<&str>| PromptMessages {
            text: text.map(str::to_owned),
            system: None,
        };
        let given = prompt(Some("and then?"));
        assert!(unanswered_hint(Some(&given)).contains("is stored"));
        let hints = [unanswered_hint(Some(&prompt(None))), unanswered_hint(None)];
        assert!(hints.iter().all(|hint| !hint.contains("stored")));
    }
}
