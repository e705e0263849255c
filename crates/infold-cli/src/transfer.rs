mod ui;

use std::io::{self, BufReader, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use infold::Config;
use infold::setup::in_effect;
use infold_log::steer::{Refused, unfold};
use infold_log::{Cause, EventId, Past as _, Seq, Source, Span, View};
use infold_store::{Contexts, Draft, FoldLine, Imported, Kept, Log, LogError, Metadata, What};
use infold_wire::Message;
use infold_wire::transcript::{
    Entry, Format, Layout, Piece, Seen, Session, Slot, Transcript, Write, slots, tag_fold,
};
use serde_json::json;
use uuid::Uuid;

use crate::args::NewArgs;
use crate::failure::{Failure, Kind};
use crate::input::{Inputs, Staged, staged, warn_of_torn_line};
use crate::interrupt::Interrupt;
use crate::out::{DIM, Out, count, paint, say};

/// What `infold import` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "The format is recognised by what is in the file. What the format holds beside messages is kept, too:\n`infold export` gives back the same bytes.\n\nExamples:\n  infold import ~/.claude/projects/app/3f9a.jsonl\n  infold import ~/.claude/projects/app/*.jsonl\n  infold import --last codex\n  infold import session.json --format gemini --model gemini-2.5-pro"
)]
pub struct ImportArgs {
    #[command(flatten)]
    inputs: Inputs,
    /// Read it as this, whatever it looks like
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    #[command(flatten)]
    new: NewArgs,
}

/// What `infold export` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Formats: openai, anthropic, gemini, roo, claude-code, codex, gemini-cli, pi.\n\nExamples:\n  infold export 3f9a > session.jsonl          as it was imported, and what was said since\n  infold export 3f9a --format anthropic --view > request.json\n  infold export 3f9a --format roo --out api_conversation_history.json --ui ui_messages.json"
)]
pub struct ExportArgs {
    /// The task; of several, one after the other
    #[arg(default_value = "@", value_name = "TASK")]
    tasks: Vec<String>,
    /// Write it as this instead of as it came
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Only what the model would be shown
    #[arg(long)]
    view: bool,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// With --format roo: also write the list that Roo Code shows, with its entries for folds
    #[arg(long, value_name = "FILE")]
    ui: Option<PathBuf>,
}

/// What was read of one conversation.
#[derive(Default)]
struct Told {
    messages: usize,
    calls: usize,
    folds: u64,
    refused: u64,
}

/// `infold import`
pub fn import(
    contexts: &Contexts,
    config: &Config,
    args: &ImportArgs,
    out: &mut Out,
) -> Result<(), Failure> {
    let json = out.is_json();
    let paths = args.inputs.paths(json)?;
    let interrupt = Interrupt::listen();
    let mut all = Vec::new();
    for path in &paths {
        let about = |failure: Failure| match paths.len() {
            1 => failure,
            _ => failure.within(&path.display().to_string()),
        };
        let mut input = staged(path, json)?;
        let buffered = BufReader::with_capacity(64 << 10, &mut input);
        let transcript = Transcript::open(buffered, args.format);
        let transcript = transcript.map_err(|error| about(error.into()))?;
        let format = transcript.format();
        let found = read(contexts, config, transcript, &args.new, &interrupt).map_err(about)?;
        all.push((path, format, found));
    }
    // All of them are whole before the first is there.
    for (path, format, (drafts, seen)) in all {
        if paths.len() > 1 {
            out.finish()?;
            say(json, path.display().to_string());
        }
        publish(drafts, format, &seen, out)?;
    }
    Ok(())
}

/// Makes tasks of what was read from one file, and tells of it.
fn publish(drafts: Drafts<'_>, format: Format, seen: &Seen, out: &mut Out) -> Result<(), Failure> {
    let mut total = Told::default();
    let mut ids = Vec::new();
    for (draft, told) in drafts {
        let published = draft.publish().map_err(|error| {
            let failure = Failure::from(error);
            match ids.is_empty() {
                true => failure,
                false => failure.after(&format!(
                    "of several conversations these were made: {}",
                    listed(&ids)
                )),
            }
        });
        ids.push((published?, told.messages));
        total.messages += told.messages;
        total.calls += told.calls;
        total.folds += told.folds;
        total.refused += told.refused;
    }
    for (id, messages) in &ids {
        match out.is_json() {
            true => out.object(&json!({
                "uuid": id.to_string(), "format": format.name(), "messages": messages,
            }))?,
            false => out.line(id.to_string())?,
        }
    }
    out.finish()?;
    let mut story = format!("{format}: {}", count(total.messages as u64, "message"));
    if ids.len() > 1 {
        story += &format!(" in {}", count(ids.len() as u64, "conversation"));
    }
    if total.calls > 0 {
        story += &format!(", {}", count(total.calls as u64, "tool call"));
    }
    if total.folds > 0 {
        story += &format!(", {} taken over", count(total.folds, "fold"));
    }
    if total.refused > 0 {
        story += &format!(
            ", {} with nothing to fold",
            count(total.refused, "compaction")
        );
    }
    let skipped = seen.skipped.iter();
    let skipped: Vec<String> = skipped
        .map(|(what, times)| format!("{times} {what}"))
        .collect();
    if !skipped.is_empty() {
        story += &format!("; no messages, but kept: {}", skipped.join(", "));
    }
    say(out.is_json(), paint(DIM, story));
    warn_of_torn_line(seen, out.is_json());
    Ok(())
}

/// The tasks that were made, for a person to copy.
fn listed(ids: &[(Uuid, usize)]) -> String {
    let ids: Vec<String> = ids.iter().map(|(id, _)| id.to_string()).collect();
    ids.join(", ")
}

type Drafts<'a> = Vec<(Draft<'a>, Told)>;

/// Reads all conversations of a transcript into drafts.
fn read<'a>(
    contexts: &'a Contexts,
    config: &Config,
    mut transcript: Transcript<BufReader<&mut Box<dyn Staged>>>,
    new: &NewArgs,
    interrupt: &Interrupt,
) -> Result<(Drafts<'a>, Seen), Failure> {
    let (format, layout) = (transcript.format(), transcript.layout());
    let session = transcript.session().clone();
    let start = || {
        let mut metadata = metadata(new, format);
        metadata.in_effect = in_effect(config, new.model.as_deref(), new.context_length);
        metadata.session = (session != Session::default()).then(|| session.clone());
        contexts.draft(metadata, format.name(), &layout.to_string())
    };
    let mut drafts = Vec::new();
    let (mut draft, mut told) = (start()?, Told::default());
    while let Some(piece) = transcript.next_piece()? {
        interrupt.check()?;
        if piece.entries.contains(&Entry::Next) {
            draft.finish()?;
            drafts.push((draft, told));
            (draft, told) = (start()?, Told::default());
        }
        take(&mut draft, piece, &mut told)?;
    }
    draft.finish()?;
    drafts.push((draft, told));
    Ok((drafts, transcript.seen().clone()))
}

fn take(draft: &mut Draft<'_>, piece: Piece, told: &mut Told) -> Result<(), Failure> {
    let mut messages = Vec::new();
    let mut folds = Vec::new();
    for entry in piece.entries {
        match entry {
            Entry::Message { text, time } => {
                told.calls += Message::parse(&text).map_or(0, |message| message.calls().len());
                messages.push((text, time));
            }
            Entry::Compaction { summary, kept } => {
                let covers = Seq::new(kept as u64).and_then(|to| Span::new(Seq::FIRST, to));
                folds.push((Cause::Summary, covers, infold_log::Role::User, summary));
            }
            Entry::Fold {
                cause,
                covers,
                role,
                text,
            } => {
                folds.push((cause, Some(covers), role, text));
            }
            Entry::Next => {}
        }
    }
    told.messages += messages.len();
    draft.piece(&piece.raw, messages)?;
    if let Some(filled) = piece.list_end {
        draft.list_end(filled)?;
    }
    for (cause, covers, role, text) in folds {
        let folded = match covers {
            Some(covers) => draft.fold(cause, covers, role, &text)?,
            None => None,
        };
        match folded {
            Some(_) => told.folds += 1,
            None => told.refused += 1,
        }
    }
    Ok(())
}

fn metadata(new: &NewArgs, format: Format) -> Metadata {
    let wire = match format {
        Format::OpenAi | Format::SweAgent | Format::Aider => "openai",
        _ => "anthropic",
    };
    Metadata {
        task_source: new.source.clone(),
        owner: new.owner.clone(),
        repo: new.repo.clone(),
        task_type: new.kind.clone(),
        task_id: new.id.clone(),
        user: new.user.clone(),
        llm_provider: new.provider.clone(),
        model: new.model.clone(),
        context_length: new.context_length,
        wire: Some(wire.to_owned()),
        // The other formats are those of providers.
        agent: (!matches!(format, Format::OpenAi | Format::Anthropic | Format::Gemini))
            .then(|| format.name().to_owned()),
        ..Metadata::default()
    }
}

/// Where an export goes, and what was lost on the way.
struct Export<'a> {
    out: &'a mut Out,
    file: Option<(PathBuf, io::BufWriter<tempfile::NamedTempFile>)>,
    lost: std::collections::BTreeMap<&'static str, u64>,
}

impl Export<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match &mut self.file {
            Some((_, file)) => Ok(file.write_all(bytes)?),
            None => self.out.raw(bytes),
        }
    }

    fn done(&mut self, write: &Write) {
        for (what, times) in write.lost() {
            *self.lost.entry(what).or_default() += times;
        }
    }
}

/// `infold export`
pub fn export(contexts: &Contexts, args: &ExportArgs, out: &mut Out) -> Result<(), Failure> {
    let json = out.is_json();
    if let (Some(history), Some(shown)) = (&args.out, &args.ui)
        && is_same_place(history, shown)
    {
        let text = format!("--out and --ui name the same file, {}", history.display());
        return Err(Failure::new(Kind::Usage, text)
            .hint("nothing was written; give each of them a file of its own"));
    }
    let file = args.out.as_deref().map(beside).transpose()?;
    let shown = args
        .ui
        .as_deref()
        .map(|path| listed_for_roo(contexts, args, path));
    let shown = shown.transpose()?;
    let mut to = Export {
        out,
        file,
        lost: Default::default(),
    };
    for task in &args.tasks {
        let log = contexts.read(contexts.resolve(task)?)?;
        one(&log, args, &mut to)?;
    }
    to.out.finish()?;
    for (path, file) in [to.file.take(), shown].into_iter().flatten() {
        // The file is there when it is whole, and not before.
        let file = file.into_inner().map_err(|error| error.into_error())?;
        file.persist(&path).map_err(|error| error.error)?;
    }
    for (what, times) in &to.lost {
        say(
            json,
            paint(DIM, format!("no room in this format for {times} {what}")),
        );
    }
    Ok(())
}

/// The list that Roo Code shows, ready to be put in its place.
fn listed_for_roo(
    contexts: &Contexts,
    args: &ExportArgs,
    path: &Path,
) -> Result<(PathBuf, io::BufWriter<tempfile::NamedTempFile>), Failure> {
    let ([task], Some(Format::Roo), false) = (args.tasks.as_slice(), args.format, args.view) else {
        return Err(
            Failure::new(Kind::Usage, "--ui is for one task as Roo Code keeps it")
                .hint("`infold export TASK --format roo --ui FILE`"),
        );
    };
    let log = contexts.read(contexts.resolve(task)?)?;
    let (path, mut file) = beside(path)?;
    file.write_all(&ui::list(&log)?)?;
    Ok((path, file))
}

/// Whether one of two files would be put in the place of the other. The files need not be there yet, so their
/// directories are compared, and their names.
fn is_same_place(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| {
        let dir = directory(path).canonicalize().ok()?;
        Some(dir.join(path.file_name()?))
    };
    one == other || place(one).is_some_and(|one| Some(one) == place(other))
}

fn directory(path: &Path) -> &Path {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    dir.unwrap_or(Path::new("."))
}

fn beside(path: &Path) -> Result<(PathBuf, io::BufWriter<tempfile::NamedTempFile>), Failure> {
    let made = tempfile::NamedTempFile::new_in(directory(path));
    let made = made.map_err(|error| {
        // What the error itself names is the temporary file.
        let kind = error.kind();
        let error = error.to_string();
        let error = error.split(" at path").next().unwrap_or_default();
        let text = format!("{} could not be written: {error}", path.display());
        match kind {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                Failure::new(Kind::Usage, text)
                    .hint("--out names a file in a directory that is there")
            }
            _ => Failure::new(Kind::Store, text)
                .hint("nothing was written; look at the disk, or name another file"),
        }
    })?;
    Ok((path.to_owned(), io::BufWriter::new(made)))
}

fn one(log: &Log, args: &ExportArgs, to: &mut Export<'_>) -> Result<(), Failure> {
    let imported = log.imported()?;
    let own = imported
        .as_ref()
        .and_then(|imported| imported.format.parse::<Format>().ok());
    // What it says is a help; the messages are there without it.
    let metadata = Metadata::read(log.dir()).unwrap_or_else(|error| {
        Failure::from(error).warn(to.out.is_json());
        Metadata::default()
    });
    let session = metadata.session.unwrap_or_default();
    let usual = match metadata.wire.as_deref() {
        Some("anthropic") => Format::Anthropic,
        Some("gemini") => Format::Gemini,
        Some("responses") => Format::Codex,
        _ => Format::OpenAi,
    };
    let format = args.format.or(own).unwrap_or(usual);
    if let Some(imported) = imported.filter(|_| own == Some(format) && !args.view) {
        let end = imported.end()?;
        // Tags are folds: what was folded since then must show in them, and the list for people names them as we do.
        let is_as_it_was = end.event == log.state().at().event && args.ui.is_none();
        if format != Format::Roo || is_as_it_was {
            return give_back(log, imported, (format, session), end.seq, to);
        }
    }
    let write = Write::new(format, None).map_err(|error| {
        Failure::new(Kind::Usage, error).hint("--format names one that is written, such as openai")
    })?;
    let mut write = write.session(session);
    if format == Format::Roo && !args.view {
        return as_tags(log, write, to);
    }
    let mut done = Ok(());
    let mut text = Vec::new();
    let mut visit = |source: Source, bytes: &[u8]| {
        if done.is_ok() {
            text.clear();
            done = match write.message(bytes, said_at(log, source)?, &mut text) {
                Ok(()) => to.bytes(&text),
                Err(error) => Err(Failure::new(Kind::Store, error)),
            };
        }
        Ok(())
    };
    match args.view {
        true => log.render(&View::of(log.state().shown(), log)?, &mut visit)?,
        false => {
            for span in log.state().shown().path() {
                log.each_message(span, &mut visit)?;
            }
        }
    }
    done?;
    let mut text = Vec::new();
    write.finish(&mut text);
    to.done(&write);
    to.bytes(&text)
}

/// When a message was recorded.
pub fn said_at(log: &Log, source: Source) -> Result<Option<u64>, LogError> {
    let record = source.seq().map(|seq| log.record(seq)).transpose()?;
    Ok(record.map(|record| record.time))
}

/// Writes the transcript as it was, and behind it what was said since.
fn give_back(
    log: &Log,
    mut imported: Imported,
    (format, session): (Format, Session),
    last: u64,
    to: &mut Export<'_>,
) -> Result<(), Failure> {
    let layout: Layout = imported
        .layout
        .parse()
        .map_err(|error| Failure::new(Kind::Store, error))?;
    let next = Seq::new(last + 1).unwrap_or(Seq::FIRST);
    let rest = log
        .state()
        .last_seq()
        .and_then(|last| Span::new(next, last));
    let mut write = rest
        .map(|_| Write::behind(format, layout).map(|write| write.session(session)))
        .transpose()
        .map_err(|error| {
            Failure::new(Kind::Usage, error)
                .hint("something was said since; --format writes it as another, such as openai")
        })?;
    let mut broken = true;
    // Messages that follow must not stand behind a torn line: what may be one waits.
    let mut line = Line::default();
    let waits = write.is_some() && layout == Layout::Lines;
    while let Some(kept) = imported.next_piece()? {
        match kept {
            Kept::Bytes(bytes) => {
                let bytes = match waits {
                    true => line.take(bytes),
                    false => bytes,
                };
                if let Some(write) = &mut write {
                    write.follow(&bytes);
                }
                broken = bytes.ends_with(b"\n") || bytes.is_empty() && broken;
                to.bytes(&bytes)?;
            }
            Kept::Message(seq) => {
                broken = false;
                to.bytes(&line.begin())?;
                to.bytes(&log.message(seq)?)?;
            }
            Kept::ListEnd(filled) => {
                if let (Some(span), Some(write)) = (rest, &mut write) {
                    write.fill(filled);
                    behind(log, span, write, to)?;
                }
            }
            Kept::End(_) if layout == Layout::Lines => {
                if let (Some(span), Some(write)) = (rest, &mut write) {
                    let last = line.end();
                    write.follow(&last);
                    broken = broken && last.is_empty();
                    to.bytes(&last)?;
                    if !broken {
                        to.bytes(b"\n")?;
                    }
                    behind(log, span, write, to)?;
                }
            }
            Kept::End(_) => {}
        }
    }
    Ok(())
}

/// A line of a transcript of which more may come.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    /// A message stands in it.
    speaks: bool,
}

impl Line {
    /// Takes bytes in, and gives back all whole lines.
    fn take(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        self.bytes.extend(bytes);
        let end = self.bytes.iter().rposition(|byte| *byte == b'\n');
        let end = end.map_or(0, |at| at + 1);
        self.speaks = self.speaks && end == 0;
        let rest = self.bytes.split_off(end);
        std::mem::replace(&mut self.bytes, rest)
    }

    /// Gives back what stands before a message.
    fn begin(&mut self) -> Vec<u8> {
        self.speaks = true;
        std::mem::take(&mut self.bytes)
    }

    /// Gives back the last line, unless it is torn.
    fn end(&mut self) -> Vec<u8> {
        let whole = self.speaks || infold_wire::Json::parse(&self.bytes).is_ok();
        match whole {
            true => std::mem::take(&mut self.bytes),
            false => Vec::new(),
        }
    }
}

fn behind(log: &Log, span: Span, write: &mut Write, to: &mut Export<'_>) -> Result<(), Failure> {
    let mut done = Ok(());
    let mut text = Vec::new();
    log.each_message(span, &mut |source, bytes| {
        if done.is_ok() {
            text.clear();
            done = match write.message(bytes, said_at(log, source)?, &mut text) {
                Ok(()) => to.bytes(&text),
                Err(error) => Err(Failure::new(Kind::Store, error)),
            };
        }
        Ok(())
    })?;
    done?;
    let mut text = Vec::new();
    write.settle(&mut text);
    to.done(write);
    to.bytes(&text)
}

/// The folds that hide something, and when each was made.
fn active_folds(log: &Log) -> Result<Vec<(EventId, u64, FoldLine)>, Failure> {
    let mut folds = Vec::new();
    for id in (1..=log.state().at().event).filter_map(EventId::new) {
        let line = log.event(id)?;
        let What::Fold(fold) = line.what else {
            continue;
        };
        match unfold(log.state(), id, log) {
            Ok(_) | Err(Refused::Inner { .. }) => folds.push((id, line.ts, fold)),
            Err(Refused::Past(error)) => return Err(error.into()),
            Err(_) => {}
        }
    }
    Ok(folds)
}

/// Writes all messages, and the folds over them as tags.
fn as_tags(log: &Log, mut write: Write, to: &mut Export<'_>) -> Result<(), Failure> {
    let path = log.state().shown().path();
    let place = |seq: Seq| {
        let before = path.iter().take_while(|span| span.to() < seq);
        let before: u64 = before.map(|span| span.count()).sum();
        let at = path.iter().find(|span| span.holds(seq));
        at.and_then(|span| Seq::new(before + seq.get() - span.from().get() + 1))
    };
    let mut folds = Vec::new();
    for (id, ts, fold) in active_folds(log)? {
        let ends = place(fold.span.from()).zip(place(fold.span.to()));
        let covers = ends.and_then(|(from, to)| Span::new(from, to));
        let id = id.to_string();
        folds.extend(
            covers.and_then(|covers| tag_fold(&id, fold.cause, covers, &fold.stand_in, ts)),
        );
    }
    let total: u64 = path.iter().map(|span| span.count()).sum();
    let mut slots = slots(total as usize, &folds).into_iter();
    let mut done: Result<(), Failure> = Ok(());
    let mut text = Vec::new();
    let mut visit = |source: Source, bytes: &[u8]| -> Result<(), LogError> {
        let when = said_at(log, source)?;
        for slot in slots.by_ref() {
            match slot {
                Slot::StandIn(record) => write.record(&record, &mut text),
                Slot::Message(tags) => {
                    if let Err(error) = write.tagged(bytes, when, tags, &mut text) {
                        done = Err(Failure::new(Kind::Store, error));
                    }
                    break;
                }
            }
        }
        if done.is_ok() {
            done = to.bytes(&text);
        }
        text.clear();
        Ok(())
    };
    for span in &path {
        log.each_message(*span, &mut visit)?;
    }
    done?;
    for slot in slots {
        if let Slot::StandIn(record) = slot {
            write.record(&record, &mut text);
        }
    }
    write.finish(&mut text);
    to.done(&write);
    to.bytes(&text)
}
