mod delete;

use std::fs::File;
use std::io::{self, BufReader, IsTerminal as _, Read, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use infold::Config;
use infold::setup::in_effect;
use infold::show;
use infold_log::{Seq, Span};
use infold_store::{
    ContentDigest, Contexts, Counters, Filter, Incoming, MAX_MESSAGE, Metadata, Outcome, PushKey,
    TaskRow,
};
use infold_wire::Wire;
use infold_wire::transcript::{Format, detect};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use uuid::Uuid;

use crate::args::{NewArgs, TaskCommand};
use crate::config::with_tilde;
use crate::failure::{Failure, Kind};
use crate::holder::released;
use crate::out::{DIM, Out, bytes, count, number, one_line, paint, repaired, say, table, warn};
use crate::progress::Progress;
use crate::steps::short;

/// `infold task …`
pub fn run(
    contexts: &Contexts,
    config: &Config,
    command: TaskCommand,
    out: &mut Out,
) -> Result<(), Failure> {
    match command {
        TaskCommand::New { args, wire } => new(contexts, config, args, wire, out),
        TaskCommand::List { status, user, ids } => {
            let filter = Filter {
                status,
                user,
                limit: None,
            };
            list(contexts, &filter, ids, out)
        }
        TaskCommand::Show { task } => shown(contexts, &task, out),
        TaskCommand::Push { task, file, key } => push(contexts, &task, &file, key.as_deref(), out),
        TaskCommand::Tool { task } => tool(contexts, &task, out),
        TaskCommand::Complete { task } => end(contexts, &task, &Outcome::Completed, out),
        TaskCommand::Fail { task, error } => end(contexts, &task, &Outcome::Failed { error }, out),
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
            let usual = SignedDuration::from_hours(24 * days);
            clean(contexts, older_than.unwrap_or(usual), dry_run, out)
        }
    }
}

fn new(
    contexts: &Contexts,
    config: &Config,
    args: NewArgs,
    wire: Option<Wire>,
    out: &mut Out,
) -> Result<(), Failure> {
    let wire = match (wire, args.provider.as_deref()) {
        (Some(wire), _) => wire.name(),
        (None, Some("anthropic")) => "anthropic",
        (None, _) => "openai",
    };
    let in_effect = in_effect(config, args.model.as_deref(), args.context_length);
    let id = contexts.create(Metadata {
        task_source: args.source,
        owner: args.owner,
        repo: args.repo,
        task_type: args.kind,
        task_id: args.id,
        user: args.user,
        llm_provider: args.provider,
        model: args.model,
        context_length: args.context_length,
        wire: Some(wire.to_owned()),
        in_effect,
        ..Metadata::default()
    })?;
    if out.is_json() {
        return out.object(&json!({"uuid": id.to_string()}));
    }
    out.line(id.to_string())
}

fn list(contexts: &Contexts, filter: &Filter, ids: bool, out: &mut Out) -> Result<(), Failure> {
    // Looking does not make a directory.
    let rows = match contexts.root().exists() {
        true => contexts.rows(filter)?,
        false => Vec::new(),
    };
    if out.is_json() {
        return rows.iter().try_for_each(|row| out.object(&show::row(row)));
    }
    if rows.is_empty() {
        say(false, paint(DIM, "no tasks"));
        return Ok(());
    }
    if ids {
        return rows
            .iter()
            .try_for_each(|row| out.line(format!("{}\t{}", short_id(row), about(row))));
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
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(rows.iter().map(|row| {
        let active = row.active_at.unwrap_or(row.created_at);
        let place = row.cwd.clone().map(with_tilde);
        [
            short_id(row),
            row.status.to_string(),
            active.strftime("%Y-%m-%d %H:%M").to_string(),
            number(row.counters.tokens),
            number(row.counters.compressions),
            one_line(row.agent.as_deref().unwrap_or("–")),
            one_line(&place.map_or("–".to_owned(), |place| last_of(&place))),
            about(row),
        ]
    }));
    let mut lines = table(&lines, &[3, 4], out.width()).into_iter();
    let head = lines.next().unwrap_or_default();
    out.line(paint(DIM, head))?;
    lines.try_for_each(|line| out.line(line))
}

/// As much of an id as a person types.
fn short_id(row: &TaskRow) -> String {
    row.uuid.to_string()[..8].to_owned()
}

/// The end of a path, which tells more than its beginning.
fn last_of(path: &str) -> String {
    const MAX_CHARS: usize = 28;
    let length = path.chars().count();
    match length <= MAX_CHARS {
        true => path.to_owned(),
        false => {
            let end: String = path.chars().skip(length - MAX_CHARS + 1).collect();
            // A whole directory reads better than the end of one.
            match end.find('/') {
                Some(at) => format!("…{}", &end[at..]),
                None => format!("…{end}"),
            }
        }
    }
}

/// What a task is about: the first thing that was asked for, or else what it was made for.
fn about(row: &TaskRow) -> String {
    let parts = [row.title.clone(), row.error_message.clone()];
    match &row.title {
        Some(_) => one_line(&parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")),
        None => what(row),
    }
}

/// What a task was made for, as far as its row says.
fn what(row: &TaskRow) -> String {
    let place = [
        &row.task_source,
        &row.owner,
        &row.repo,
        &row.task_type,
        &row.task_id,
    ];
    let place: Vec<&str> = place.iter().filter_map(|part| part.as_deref()).collect();
    let parts = [
        Some(place.join("/")),
        row.model.clone(),
        row.user.clone(),
        row.error_message.clone(),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .flatten()
        .filter(|part| !part.is_empty())
        .collect();
    one_line(&parts.join(" · "))
}

/// What the calls of a task came to, if that was reported.
fn spent(counters: &Counters) -> String {
    let mut spent = String::new();
    if counters.cached > 0 {
        spent += &format!("; {} tokens from a cache", number(counters.cached));
    }
    if counters.cost > 0 {
        spent += &format!("; ${:.4}", counters.cost as f64 / 1e6);
    }
    spent
}

fn shown(contexts: &Contexts, task: &str, out: &mut Out) -> Result<(), Failure> {
    let id = contexts.resolve(task)?;
    let whole = show::TaskReport::of(contexts, id)?.ok_or_else(|| {
        Failure::new(Kind::Store, format!("task {id} has no row in the registry"))
            .hint("`infold doctor --repair` adds it")
    })?;
    if out.is_json() {
        return out.object(&whole.json());
    }
    let (row, log, size) = (&whole.row, &whole.log, whole.bytes);
    let at = log.state().at();
    let parent = log.parent();
    let time =
        |at: Option<Timestamp>| at.map(|at| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string());
    let tokens = log.sums()?.tokens;
    let counters = &row.counters;
    let rows = [
        ("task", Some(id.to_string())),
        ("status", Some(row.status.to_string())),
        ("error", row.error_message.as_deref().map(one_line)),
        ("about", row.title.as_deref().map(one_line)),
        ("agent", row.agent.as_deref().map(one_line)),
        ("directory", row.cwd.as_deref().map(one_line)),
        (
            "for",
            Some(what(&TaskRow {
                error_message: None,
                ..row.clone()
            })),
        ),
        ("made", time(Some(row.created_at))),
        ("active", time(row.active_at)),
        ("ended", time(row.completed_at)),
        (
            "by",
            row.process_id
                .zip(row.hostname.clone())
                .map(|(pid, host)| format!("process {pid} on {host}")),
        ),
        (
            "window",
            row.context_length
                .map(|window| format!("{} tokens", number(window))),
        ),
        (
            "continues",
            parent.map(|(parent, at)| format!("{parent} from {at}")),
        ),
        (
            "log",
            Some(format!(
                "{}, {}, {} tokens",
                count(at.seq, "message"),
                count(at.event, "event"),
                number(tokens)
            )),
        ),
        (
            "view",
            Some(format!("{} tokens", number(whole.view_tokens))),
        ),
        (
            "counted",
            Some(format!(
                "{}, {}, {}{}",
                count(counters.llm_calls, "model call"),
                count(counters.tool_calls, "tool call"),
                count(counters.compressions, "summary fold"),
                spent(counters)
            )),
        ),
        (
            "on disk",
            Some(format!("{} in {}", bytes(size), log.dir().display())),
        ),
    ];
    for (name, value) in rows {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            out.line(format!("{}{value}", paint(DIM, format!("{name:<11}"))))?;
        }
    }
    Ok(())
}

/// Input up to this size is kept in memory while it is checked.
const MAX_SPOOLED_BYTES: usize = 4 << 20;

fn push(
    contexts: &Contexts,
    task: &str,
    file: &Path,
    key: Option<&str>,
    out: &mut Out,
) -> Result<(), Failure> {
    let id = contexts.resolve(task)?;
    // All of it is checked before any of it is kept.
    let (mut input, digest) = checked(file, out.is_json()).map_err(|failure| {
        let format = agent_format(file);
        let import = |format| {
            format!(
                "this is a transcript of {format}: `infold import {}` makes a task of it; nothing was kept",
                file.display()
            )
        };
        match format {
            Some(format) => failure.hint(import(format)),
            None => failure,
        }
    })?;
    let key = key.map(|key| {
        PushKey::new(key, digest).ok_or_else(|| {
            Failure::new(Kind::Usage, "the key is blank, too long or not printable")
                .hint("a key has at most 255 bytes; nothing of it was kept")
        })
    });
    let key = key.transpose()?;
    let size = input.seek(SeekFrom::End(0)).map_err(unreadable(file))?;
    input.seek(SeekFrom::Start(0)).map_err(unreadable(file))?;
    let (mut writer, repairs) = released(|| contexts.write(id))?;
    repaired(out.is_json(), &repairs);
    let mut progress = Progress::new(out.is_json(), "appending", size);
    let mut incoming = Incoming::new(BufReader::new(progress.watch(&mut input)));
    let pushed = writer.push(key.as_ref(), &mut || incoming.next_message());
    drop(incoming);
    drop(progress);
    let pushed = pushed.map_err(|error| Failure::from(error).about(&short(task)))?;
    // The messages are kept; the registry catches up with the next ones.
    warn(out.is_json(), contexts.settle(id, &writer));
    if out.is_json() {
        let seq = |side: fn(Span) -> Seq| pushed.map(|span| side(span).get());
        let count = pushed.map_or(0, Span::count);
        return out.object(&json!({"from": seq(Span::from), "to": seq(Span::to), "count": count}));
    }
    match pushed {
        Some(span) => out.line(span.to_string()),
        None => {
            say(false, paint(DIM, "no messages"));
            Ok(())
        }
    }
}

/// The input, known to be messages, as something that can be read again: a file, or
/// standard input put into one.
fn checked(file: &Path, json: bool) -> Result<Checked, Failure> {
    if file.as_os_str() != "-" {
        let mut opened = File::open(file).map_err(unreadable(file))?;
        let kind = opened.metadata().map_err(unreadable(file))?;
        if kind.is_dir() {
            let error = io::Error::from(io::ErrorKind::IsADirectory);
            return Err(unreadable(file)(error));
        }
        if kind.is_file() {
            let mut progress = Progress::new(json, "checking", kind.len());
            let digest = check(progress.watch(&mut opened))?;
            return Ok((Box::new(opened), digest));
        }
        return spooled(opened, json);
    }
    if io::stdin().is_terminal() {
        say(
            false,
            paint(DIM, "reading messages from the terminal; end with Ctrl-D"),
        );
    }
    spooled(io::stdin().lock(), json)
}

/// The format of a file that is an agent's transcript.
fn agent_format(file: &Path) -> Option<Format> {
    let mut start = Vec::new();
    let opened = File::open(file).ok()?;
    opened.take(1 << 16).read_to_end(&mut start).ok()?;
    let format = detect(&start).ok()?;
    let is_plain = matches!(format, Format::OpenAi | Format::Anthropic | Format::Gemini);
    (!is_plain).then_some(format)
}

/// A source of bytes that can be read again.
trait Staged: Read + io::Seek {}
impl<T: Read + io::Seek> Staged for T {}

/// What is pushed, and what tells it from something else.
type Checked = (Box<dyn Staged>, ContentDigest);

fn check(input: impl Read) -> Result<ContentDigest, Failure> {
    let mut checked = Incoming::new(BufReader::new(input));
    let mut digest = ContentDigest::default();
    while let Some(message) = checked.next_message()? {
        digest.add(&message);
    }
    Ok(digest)
}

/// Checked as it comes: what is refused is not read to its end.
fn spooled(input: impl Read, json: bool) -> Result<Checked, Failure> {
    let mut copied = Copied {
        from: input,
        to: tempfile::SpooledTempFile::new(MAX_SPOOLED_BYTES),
    };
    let mut progress = Progress::new(json, "reading", 0);
    let digest = check(progress.watch(&mut copied))?;
    Ok((Box::new(copied.to), digest))
}

/// Keeps a copy of what is read.
struct Copied<R> {
    from: R,
    to: tempfile::SpooledTempFile,
}

impl<R: Read> Read for Copied<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        self.to.write_all(&buffer[..count])?;
        Ok(count)
    }
}

fn unreadable(path: &Path) -> impl Fn(io::Error) -> Failure {
    move |error| {
        Failure::new(
            Kind::Usage,
            format!("{} could not be read: {error}", path.display()),
        )
        .hint("say which file holds the messages, or - for standard input")
    }
}

fn tool(contexts: &Contexts, task: &str, out: &mut Out) -> Result<(), Failure> {
    let id = contexts.resolve(task)?;
    let mut record = Vec::new();
    let limit = MAX_MESSAGE as u64 + 1;
    io::stdin()
        .lock()
        .take(limit)
        .read_to_end(&mut record)
        .map_err(unreadable(Path::new("-")))?;
    if record.len() > MAX_MESSAGE {
        return Err(Failure::new(
            Kind::Usage,
            format!("the record is longer than {MAX_MESSAGE} bytes"),
        )
        .hint("put large data into a file and its path into the record; nothing was kept"));
    }
    let (mut writer, repairs) = released(|| contexts.write(id))?;
    repaired(out.is_json(), &repairs);
    let number = writer
        .tool(&record)
        .map_err(|error| Failure::from(error).about(&short(task)))?;
    warn(out.is_json(), contexts.settle(id, &writer));
    if out.is_json() {
        return out.object(&json!({"seq": number}));
    }
    out.line(number.to_string())
}

fn end(contexts: &Contexts, task: &str, outcome: &Outcome, out: &mut Out) -> Result<(), Failure> {
    let id = contexts.resolve(task)?;
    let repairs = released(|| contexts.finish(id, outcome));
    let repairs = repairs.map_err(|error| Failure::from(error).about(&short(task)))?;
    repaired(out.is_json(), &repairs);
    let status = outcome.status();
    if out.is_json() {
        return out.object(&json!({"uuid": id.to_string(), "status": status.to_string()}));
    }
    out.line(format!("task {id} {status}; it stays readable"))
}

/// Says which tasks are gone of those that were there when a removal fails.
fn removed_of(contexts: &Contexts, there: &[Uuid], failure: Failure) -> Failure {
    let Ok(left) = contexts.tasks() else {
        return failure.after(
            "it may have taken effect for some tasks: `infold task list` shows which are left",
        );
    };
    let gone = there.iter().filter(|id| !left.contains(id));
    let gone: Vec<String> = gone.map(Uuid::to_string).collect();
    match gone.is_empty() {
        true => failure,
        false => failure.after(&format!("these were removed: {}", gone.join(", "))),
    }
}

fn clean(
    contexts: &Contexts,
    age: SignedDuration,
    dry_run: bool,
    out: &mut Out,
) -> Result<(), Failure> {
    let before = Timestamp::now()
        .checked_sub(age)
        .map_err(|error| Failure::new(Kind::Usage, error).hint("an age such as 30d will do"))?;
    let removed = match contexts.root().exists() {
        true => {
            let there = contexts.tasks()?;
            contexts
                .clean(before, !dry_run)
                .map_err(|error| removed_of(contexts, &there, error.into()))?
        }
        false => Vec::new(),
    };
    for row in &removed {
        if out.is_json() {
            out.object(&json!({"uuid": row.uuid.to_string(), "status": row.status.to_string(), "removed": !dry_run}))?;
        } else {
            out.line(format!("{}  {:<10} {}", row.uuid, row.status, what(row)))?;
        }
    }
    out.finish()?;
    let verb = if dry_run {
        "would be removed"
    } else {
        "removed"
    };
    say(
        out.is_json(),
        paint(
            DIM,
            format!("{} {verb}", count(removed.len() as u64, "task")),
        ),
    );
    Ok(())
}
