//! `infold task …`: creates, fills, lists, ends and removes tasks.

mod delete;
mod queue;

use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom};
use std::path::Path;

use infold::Config;
use infold::setup::in_effect;
use infold::show;
use infold_store::{
    ContentDigest, Contexts, Counters, Filter, Incoming, MAX_MESSAGE, Metadata, Outcome, PushKey,
    TaskRow,
};
use infold_wire::Wire;
use infold_wire::transcript::{TranscriptFormat, detect};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use uuid::Uuid;

use crate::args::{NewArgs, TaskCommand};
use crate::config::with_tilde;
use crate::error::{CliError, CliResult};
use crate::input::{open_checked, unreadable};
use crate::output::{
    DIM, Output, bytes, count, note, number, one_line, paint, report_repairs, warn,
};
use crate::progress::ProgressLine;
use crate::steps::{open, short};
use crate::task_lock::acquire;

/// `infold task …`
pub fn run(
    contexts: &Contexts,
    config: &Config,
    command: TaskCommand,
    out: &mut Output,
) -> CliResult {
    match command {
        TaskCommand::New { args, wire } => create(contexts, config, &args, wire, out),
        TaskCommand::List { status, user, ids } => {
            let filter = Filter {
                status,
                user,
                limit: None,
            };
            list(contexts, &filter, ids, out)
        }
        TaskCommand::Show(args) => show(contexts, &args.task, out),
        TaskCommand::Push { task, file, key } => push(contexts, &task, &file, key.as_deref(), out),
        TaskCommand::Tool { task } => record_tool(contexts, &task, out),
        TaskCommand::Complete { task } => end(contexts, &task, &Outcome::Completed, out),
        TaskCommand::Fail { task, error } => end(contexts, &task, &Outcome::Failed { error }, out),
        TaskCommand::Pause { task, reason } => queue::pause(contexts, &task, &reason, out),
        TaskCommand::Resume { task } => queue::resume(contexts, &task, out),
        TaskCommand::Cancel { task, reason } => {
            queue::cancel(contexts, config, &task, &reason, out)
        }
        TaskCommand::Stats => queue::stats(contexts, out),
        TaskCommand::Delete {
            task,
            with_forks,
            yes,
        } => delete::run(contexts, &task, with_forks, yes, out),
        TaskCommand::Clean {
            older_than,
            dry_run,
        } => {
            let days = i64::from(config.context_storage.cleanup_days.value);
            let configured = SignedDuration::from_hours(24 * days);
            clean(contexts, older_than.unwrap_or(configured), dry_run, out)
        }
    }
}

fn create(
    contexts: &Contexts,
    config: &Config,
    args: &NewArgs,
    wire: Option<Wire>,
    out: &mut Output,
) -> CliResult {
    let wire = match (wire, args.provider.as_deref()) {
        (Some(wire), _) => wire.name(),
        (None, Some("anthropic")) => "anthropic",
        (None, _) => "openai",
    };
    let id = contexts.create(Metadata {
        in_effect: in_effect(config, args.model.as_deref(), args.context_length),
        ..args.metadata(wire)
    })?;
    out.result(&json!({"uuid": id.to_string()}), id.to_string())
}

fn list(contexts: &Contexts, filter: &Filter, ids: bool, out: &mut Output) -> CliResult {
    // Listing does not create the directory.
    let rows = if contexts.root().exists() {
        contexts.rows(filter)?
    } else {
        Vec::new()
    };
    if out.is_json() {
        return rows.iter().try_for_each(|row| out.object(&show::row(row)));
    }
    if rows.is_empty() {
        note(false, "no tasks");
        return Ok(());
    }
    if ids {
        let mut lines = rows
            .iter()
            .map(|row| format!("{}\t{}", short_id(row), title(row)));
        return lines.try_for_each(|line| out.line(line));
    }
    let head = [
        "task",
        "status",
        "active",
        "tokens",
        "folds",
        "agent",
        "directory",
        "about",
    ];
    let rows = rows.iter().map(|row| {
        let active = row.active_at.unwrap_or(row.created_at);
        let dir = row.cwd.clone().map(with_tilde);
        [
            short_id(row),
            row.status.to_string(),
            active.strftime("%Y-%m-%d %H:%M").to_string(),
            number(row.counters.tokens),
            number(row.counters.compressions),
            one_line(row.agent.as_deref().unwrap_or("–")),
            one_line(&dir.map_or("–".to_owned(), |dir| path_end(&dir))),
            title(row),
        ]
    });
    out.table(head, rows, &[3, 4])
}

pub(super) fn short_id(row: &TaskRow) -> String {
    short(&row.uuid.to_string())
}

/// Shortens a path to its end, which is more specific than its beginning.
fn path_end(path: &str) -> String {
    const MAX_PATH_CHARS: usize = 28;
    let length = path.chars().count();
    if length <= MAX_PATH_CHARS {
        return path.to_owned();
    }
    let end: String = path.chars().skip(length - MAX_PATH_CHARS + 1).collect();
    // Begin with a whole directory name if possible.
    let from = end.find('/').unwrap_or(0);
    format!("…{}", &end[from..])
}

/// Returns the title of a task, or else its purpose.
pub(super) fn title(row: &TaskRow) -> String {
    match &row.title {
        Some(title) => join([Some(title.clone()), row.error_message.clone()]),
        None => join([purpose(row), row.error_message.clone()]),
    }
}

/// Returns the purpose of a task, as far as its row has it.
fn purpose(row: &TaskRow) -> Option<String> {
    let source = [
        &row.task_source,
        &row.owner,
        &row.repo,
        &row.task_type,
        &row.task_id,
    ];
    let source: Vec<&str> = source.iter().filter_map(|part| part.as_deref()).collect();
    Some(join([
        Some(source.join("/")),
        row.model.clone(),
        row.user.clone(),
    ]))
}

/// Joins the parts that are there into one line.
fn join<const N: usize>(parts: [Option<String>; N]) -> String {
    let parts = parts.into_iter().flatten().filter(|part| !part.is_empty());
    one_line(&parts.collect::<Vec<_>>().join(" · "))
}

/// Formats cached tokens and cost of a task's calls, if they were reported.
fn cost(counters: &Counters) -> String {
    let mut text = String::new();
    if counters.cached > 0 {
        text += &format!("; {} tokens from a cache", number(counters.cached));
    }
    if counters.cost > 0 {
        text += &format!("; ${:.4}", counters.cost as f64 / 1e6);
    }
    text
}

fn show(contexts: &Contexts, task: &str, out: &mut Output) -> CliResult {
    let id = contexts.resolve(task)?;
    let whole = show::TaskReport::of(contexts, id)?.ok_or_else(|| {
        CliError::store(format!("task {id} has no row in the registry"))
            .hint("`infold doctor --repair` adds it")
    })?;
    if out.is_json() {
        return out.object(&whole.json());
    }
    let (row, log) = (&whole.row, &whole.log);
    let at = log.state().at();
    let time =
        |at: Option<Timestamp>| at.map(|at| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string());
    let text = |text: &Option<String>| text.as_deref().map(one_line);
    let counters = &row.counters;
    let process = row.process_id.zip(row.hostname.as_ref());
    let window = row
        .context_length
        .map(|window| format!("{} tokens", number(window)));
    let (messages, events) = (count(at.seq, "message"), count(at.event, "event"));
    let log_size = format!(
        "{messages}, {events}, {} tokens",
        number(log.sums()?.tokens)
    );
    let calls = [
        count(counters.llm_calls, "model call"),
        count(counters.tool_calls, "tool call"),
        count(counters.compressions, "summary fold"),
    ];
    let rows = [
        ("task", Some(id.to_string())),
        ("status", Some(row.status.to_string())),
        ("error", text(&row.error_message)),
        ("about", text(&row.title)),
        ("agent", text(&row.agent)),
        ("directory", text(&row.cwd)),
        ("for", purpose(row)),
        ("created", time(Some(row.created_at))),
        ("active", time(row.active_at)),
        ("ended", time(row.completed_at)),
        (
            "by",
            process.map(|(pid, host)| format!("process {pid} on {host}")),
        ),
        ("window", window),
        (
            "continues",
            log.parent()
                .map(|(parent, at)| format!("{parent} from {at}")),
        ),
        ("log", Some(log_size)),
        (
            "view",
            Some(format!("{} tokens", number(whole.view_tokens))),
        ),
        ("counted", Some(calls.join(", ") + &cost(counters))),
        (
            "on disk",
            Some(format!("{} in {}", bytes(whole.bytes), log.dir().display())),
        ),
    ];
    for (name, value) in rows {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            out.line(format!("{}{value}", paint(DIM, format!("{name:<11}"))))?;
        }
    }
    Ok(())
}

fn push(
    contexts: &Contexts,
    task: &str,
    file: &Path,
    key: Option<&str>,
    out: &mut Output,
) -> CliResult {
    let id = contexts.resolve(task)?;
    // All messages are checked before the first is stored.
    let checked = open_checked(file, out.is_json(), digest_messages);
    let (mut input, digest) = checked.map_err(|error| match agent_format(file) {
        Some(format) => error.hint(format!(
            "this is a transcript of {format}: `infold import {}` creates a task from it; nothing was stored",
            file.display()
        )),
        None => error,
    })?;
    let key = key.map(|key| {
        PushKey::new(key, digest).ok_or_else(|| {
            CliError::usage("the key is blank, too long or not printable")
                .hint("a key has at most 255 bytes; nothing was stored")
        })
    });
    let key = key.transpose()?;
    let key = key.map(|key| contexts.stored_key(key)).transpose()?;
    let size = input.seek(SeekFrom::End(0)).map_err(unreadable(file))?;
    input.rewind().map_err(unreadable(file))?;
    let mut open = open(contexts, &id.to_string(), out.is_json())?;
    let mut progress = ProgressLine::new(out.is_json(), "appending", size);
    let mut incoming = Incoming::new(BufReader::new(progress.watch(&mut input)));
    let pushed = open
        .writer
        .push(key.as_ref(), &mut || incoming.next_message());
    drop(incoming);
    drop(progress);
    let pushed = pushed.map_err(|error| CliError::from(error).about(&short(task)))?;
    // The messages are stored; the next write updates the registry too.
    warn(out.is_json(), contexts.settle(id, &open.writer));
    let Some(span) = pushed else {
        note(out.is_json(), "no messages");
        let object = json!({"from": null, "to": null, "count": 0});
        return if out.is_json() {
            out.object(&object)
        } else {
            Ok(())
        };
    };
    let (from, to, count) = (span.from().get(), span.to().get(), span.count());
    let object = json!({"from": from, "to": to, "count": count});
    out.result(&object, span.to_string())
}

/// Detects whether a file is an agent's transcript.
fn agent_format(file: &Path) -> Option<TranscriptFormat> {
    let mut start = Vec::new();
    let opened = File::open(file).ok()?;
    opened.take(1 << 16).read_to_end(&mut start).ok()?;
    let format = detect(&start).ok()?;
    let is_plain = matches!(
        format,
        TranscriptFormat::OpenAi | TranscriptFormat::Anthropic | TranscriptFormat::Gemini
    );
    (!is_plain).then_some(format)
}

/// Checks that the input consists of messages, and returns their digest.
fn digest_messages(input: &mut dyn Read) -> CliResult<ContentDigest> {
    let mut messages = Incoming::new(BufReader::new(input));
    let mut digest = ContentDigest::default();
    while let Some(message) = messages.next_message()? {
        digest.add(&message);
    }
    Ok(digest)
}

fn record_tool(contexts: &Contexts, task: &str, out: &mut Output) -> CliResult {
    let id = contexts.resolve(task)?;
    let mut record = Vec::new();
    let stdin = io::stdin()
        .lock()
        .take(MAX_MESSAGE as u64 + 1)
        .read_to_end(&mut record);
    stdin.map_err(unreadable(Path::new("-")))?;
    if record.len() > MAX_MESSAGE {
        let text = format!("the record is longer than {MAX_MESSAGE} bytes");
        return Err(CliError::usage(text)
            .hint("put large data into a file and its path into the record; nothing was stored"));
    }
    let mut open = open(contexts, &id.to_string(), out.is_json())?;
    let number = open.writer.tool(&record);
    let number = number.map_err(|error| CliError::from(error).about(&short(task)))?;
    warn(out.is_json(), contexts.settle(id, &open.writer));
    out.result(&json!({"seq": number}), number.to_string())
}

fn end(contexts: &Contexts, task: &str, outcome: &Outcome, out: &mut Output) -> CliResult {
    let id = contexts.resolve(task)?;
    let repairs = acquire(|| contexts.finish(id, outcome));
    let repairs = repairs.map_err(|error| CliError::from(error).about(&short(task)))?;
    report_repairs(out.is_json(), &repairs);
    let status = outcome.status();
    let object = json!({"uuid": id.to_string(), "status": status.to_string()});
    out.result(&object, format!("task {id} {status}; it stays readable"))
}

/// Adds to an error which of the tasks in `before` are removed.
fn with_removed(contexts: &Contexts, before: &[Uuid], error: CliError) -> CliError {
    let Ok(left) = contexts.tasks() else {
        return error.after(
            "it may have taken effect for some tasks: `infold task list` shows which are left",
        );
    };
    let gone = before.iter().filter(|id| !left.contains(id));
    let gone: Vec<String> = gone.map(Uuid::to_string).collect();
    if gone.is_empty() {
        return error;
    }
    error.after(&format!("these were removed: {}", gone.join(", ")))
}

fn clean(contexts: &Contexts, age: SignedDuration, dry_run: bool, out: &mut Output) -> CliResult {
    let before = Timestamp::now().checked_sub(age);
    let before = before.map_err(|error| CliError::usage(error).hint("use an age such as 30d"))?;
    let mut removed = Vec::new();
    if contexts.root().exists() {
        let tasks = contexts.tasks()?;
        let cleaned = contexts.clean(before, !dry_run);
        removed = cleaned.map_err(|error| with_removed(contexts, &tasks, error.into()))?;
    }
    for row in &removed {
        let (id, status) = (row.uuid.to_string(), row.status);
        let object = json!({"uuid": id, "status": status.to_string(), "removed": !dry_run});
        let text = join([purpose(row), row.error_message.clone()]);
        out.result(&object, format!("{id}  {status:<10} {text}"))?;
    }
    out.finish()?;
    let verb = if dry_run {
        "would be removed"
    } else {
        "removed"
    };
    let tasks = count(removed.len() as u64, "task");
    note(out.is_json(), format!("{tasks} {verb}"));
    Ok(())
}
