//! `infold export`: writes tasks as transcripts.

mod roo_ui;

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use infold::layers::read_state;
use infold_log::steer::{Refused, unfold};
use infold_log::{EventId, Past as _, Seq, Source, Span, View};
use infold_store::{Contexts, FoldLine, Imported, ImportedPiece, Log, LogError, Metadata, What};
use infold_wire::transcript::{
    AgentSession, Slot, TranscriptFormat, TranscriptLayout, TranscriptWriter, slots, tag_fold,
};

use crate::error::{CliError, CliResult};
use crate::output::{Output, note};

/// The arguments of `infold export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The task; several are written one after the other
    #[arg(default_value = "@", value_name = "TASK")]
    tasks: Vec<String>,
    /// The format [default: the one it was imported from]
    #[arg(long, value_name = "FORMAT")]
    format: Option<TranscriptFormat>,
    /// Write only what the model would be shown
    #[arg(long)]
    view: bool,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// With --format roo: also write the list that Roo Code shows, including its entries for folds
    #[arg(long, value_name = "FILE")]
    ui: Option<PathBuf>,
}

/// The target of an export, and the features that its format cannot represent.
struct ExportTarget<'a> {
    out: &'a mut Output,
    file: Option<ExportFile>,
    lost: BTreeMap<&'static str, u64>,
}

impl ExportTarget<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> CliResult {
        match &mut self.file {
            Some(file) => Ok(file.temporary.write_all(bytes)?),
            None => self.out.raw(bytes),
        }
    }

    /// Writes the last bytes of a transcript and adds the features that it cannot represent.
    fn finish(&mut self, write: &TranscriptWriter, text: &[u8]) -> CliResult {
        for (what, times) in write.lost() {
            *self.lost.entry(what).or_default() += times;
        }
        self.bytes(text)
    }
}

/// `infold export`
pub fn export(contexts: &Contexts, args: &ExportArgs, out: &mut Output) -> CliResult {
    let json = out.is_json();
    if let (Some(history), Some(shown)) = (&args.out, &args.ui)
        && is_same_file(history, shown)
    {
        let text = format!("--out and --ui name the same file, {}", history.display());
        return Err(
            CliError::usage(text).hint("nothing was written; name a different file for each")
        );
    }
    let file = args.out.as_deref().map(ExportFile::create).transpose()?;
    let shown = args
        .ui
        .as_deref()
        .map(|path| write_roo_ui(contexts, args, path))
        .transpose()?;
    let mut to = ExportTarget {
        out,
        file,
        lost: BTreeMap::new(),
    };
    let mut stateful = Vec::new();
    for task in &args.tasks {
        let log = contexts.read(contexts.resolve(task)?)?;
        export_task(&log, args, &mut to)?;
        if !read_state(&log, log.state().shown())?.is_empty() {
            stateful.push(task);
        }
    }
    to.out.finish()?;
    for file in [to.file.take(), shown].into_iter().flatten() {
        file.publish()?;
    }
    for (what, times) in &to.lost {
        note(json, format!("this format cannot hold {times} {what}"));
    }
    for task in stateful {
        let text = format!(
            "a transcript has no place for the layered state: `infold state {task} get` prints it"
        );
        note(json, text);
    }
    Ok(())
}

/// Writes the list that Roo Code shows into a temporary file.
fn write_roo_ui(contexts: &Contexts, args: &ExportArgs, path: &Path) -> CliResult<ExportFile> {
    let ([task], Some(TranscriptFormat::Roo), false) =
        (args.tasks.as_slice(), args.format, args.view)
    else {
        return Err(
            CliError::usage("--ui needs one task and --format roo, without --view")
                .hint("`infold export TASK --format roo --ui FILE`"),
        );
    };
    let log = contexts.read(contexts.resolve(task)?)?;
    let mut file = ExportFile::create(path)?;
    file.temporary.write_all(&roo_ui::list(&log)?)?;
    Ok(file)
}

/// Returns whether two paths name the same file. The files need not exist yet, so their directories
/// and names are compared.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let resolve = |path: &Path| {
        let dir = directory(path).canonicalize().ok()?;
        Some(dir.join(path.file_name()?))
    };
    one == other || resolve(one).is_some_and(|one| Some(one) == resolve(other))
}

fn directory(path: &Path) -> &Path {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    dir.unwrap_or(Path::new("."))
}

/// A file that is renamed to its final name once complete.
struct ExportFile {
    path: PathBuf,
    temporary: io::BufWriter<tempfile::NamedTempFile>,
}

impl ExportFile {
    fn create(path: &Path) -> CliResult<ExportFile> {
        let temporary = tempfile::NamedTempFile::new_in(directory(path)).map_err(|error| {
            let kind = error.kind();
            // The error names the temporary file, which the user does not know.
            let error = error.to_string();
            let error = error.split(" at path").next().unwrap_or_default();
            let text = format!("{} could not be written: {error}", path.display());
            match kind {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                    CliError::usage(text).hint("--out names a file in an existing directory")
                }
                _ => CliError::store(text)
                    .hint("nothing was written; check the disk, or name another file"),
            }
        })?;
        Ok(ExportFile {
            path: path.to_owned(),
            temporary: io::BufWriter::new(temporary),
        })
    }

    fn publish(self) -> CliResult {
        let file = self
            .temporary
            .into_inner()
            .map_err(|error| error.into_error())?;
        file.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }
}

fn export_task(log: &Log, args: &ExportArgs, to: &mut ExportTarget<'_>) -> CliResult {
    let imported = log.imported()?;
    let own = imported
        .as_ref()
        .and_then(|imported| imported.format.parse::<TranscriptFormat>().ok());
    // The messages can be written without the metadata.
    let metadata = Metadata::read(log.dir()).unwrap_or_else(|error| {
        CliError::from(error).warn(to.out.is_json());
        Metadata::default()
    });
    let session = metadata.session.unwrap_or_default();
    let default = match metadata.wire.as_deref() {
        Some("anthropic") => TranscriptFormat::Anthropic,
        Some("gemini") => TranscriptFormat::Gemini,
        Some("responses") => TranscriptFormat::Codex,
        _ => TranscriptFormat::OpenAi,
    };
    let format = args.format.or(own).unwrap_or(default);
    if let Some(imported) = imported.filter(|_| own == Some(format) && !args.view) {
        let end = imported.end()?;
        // In Roo's format folds are tags, so new folds change earlier bytes; and the list of
        // `--ui` names folds by our ids.
        let is_unchanged = end.event == log.state().at().event && args.ui.is_none();
        if format != TranscriptFormat::Roo || is_unchanged {
            return write_imported(log, imported, (format, session), end.seq, to);
        }
    }
    let write = TranscriptWriter::new(format, None).map_err(|error| {
        CliError::usage(error).hint("--format names one that can be written, such as openai")
    })?;
    let mut write = write.session(session);
    if format == TranscriptFormat::Roo && !args.view {
        return write_tagged(log, write, to);
    }
    write_messages(&mut write, to, log, |visit| {
        if args.view {
            return log.render(&View::of(log.state().shown(), log)?, visit);
        }
        for span in log.state().shown().path() {
            log.each_message(span, visit)?;
        }
        Ok(())
    })?;
    let mut text = Vec::new();
    write.finish(&mut text);
    to.finish(&write, &text)
}

type VisitMessage<'a> = &'a mut dyn FnMut(Source, &[u8]) -> Result<(), LogError>;

/// Writes the messages that `each` visits.
fn write_messages(
    write: &mut TranscriptWriter,
    to: &mut ExportTarget<'_>,
    log: &Log,
    each: impl FnOnce(VisitMessage<'_>) -> Result<(), LogError>,
) -> CliResult {
    let mut written = Ok(());
    let mut text = Vec::new();
    each(&mut |source, bytes| {
        if written.is_ok() {
            text.clear();
            written = match write.message(bytes, recorded_at(log, source)?, &mut text) {
                Ok(()) => to.bytes(&text),
                Err(error) => Err(CliError::store(error)),
            };
        }
        Ok(())
    })?;
    written
}

/// Returns when a message was recorded.
pub fn recorded_at(log: &Log, source: Source) -> Result<Option<u64>, LogError> {
    let record = source.seq().map(|seq| log.record(seq)).transpose()?;
    Ok(record.map(|record| record.time))
}

/// Writes the imported transcript byte for byte, followed by the messages since.
fn write_imported(
    log: &Log,
    mut imported: Imported,
    (format, session): (TranscriptFormat, AgentSession),
    last: u64,
    to: &mut ExportTarget<'_>,
) -> CliResult {
    let layout: TranscriptLayout = imported.layout.parse().map_err(CliError::store)?;
    let next = Seq::new(last + 1).unwrap_or(Seq::FIRST);
    let last = log.state().last_seq();
    let new = last.and_then(|last| Span::new(next, last));
    let write =
        new.map(|_| TranscriptWriter::behind(format, layout).map(|write| write.session(session)));
    let mut write = write.transpose().map_err(|error| {
        CliError::usage(error)
            .hint("the task has new messages; --format writes another format, such as openai")
    })?;
    let mut ends_line = true;
    // New messages must not follow an incomplete line, so the last line is held back.
    let mut line = PendingLine::default();
    let holds_back = write.is_some() && layout == TranscriptLayout::Lines;
    while let Some(kept) = imported.next_piece()? {
        match kept {
            ImportedPiece::Bytes(bytes) => {
                let bytes = if holds_back { line.push(bytes) } else { bytes };
                if let Some(write) = &mut write {
                    write.follow(&bytes);
                }
                ends_line = bytes.ends_with(b"\n") || bytes.is_empty() && ends_line;
                to.bytes(&bytes)?;
            }
            ImportedPiece::Message(seq) => {
                ends_line = false;
                to.bytes(&line.begin_message())?;
                to.bytes(&log.message(seq)?)?;
            }
            ImportedPiece::ListEnd(filled) => {
                if let (Some(span), Some(write)) = (new, &mut write) {
                    write.set_has_records(filled);
                    write_new(log, span, write, to)?;
                }
            }
            ImportedPiece::End(_) if layout == TranscriptLayout::Lines => {
                if let (Some(span), Some(write)) = (new, &mut write) {
                    let last = line.finish();
                    write.follow(&last);
                    to.bytes(&last)?;
                    if !(ends_line && last.is_empty()) {
                        to.bytes(b"\n")?;
                    }
                    write_new(log, span, write, to)?;
                }
            }
            ImportedPiece::End(_) => {}
        }
    }
    Ok(())
}

/// The last line of a transcript, which may be incomplete.
#[derive(Default)]
struct PendingLine {
    bytes: Vec<u8>,
    has_message: bool,
}

impl PendingLine {
    /// Adds bytes and returns all complete lines.
    fn push(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        self.bytes.extend(bytes);
        let end = self.bytes.iter().rposition(|byte| *byte == b'\n');
        let end = end.map_or(0, |at| at + 1);
        self.has_message = self.has_message && end == 0;
        let rest = self.bytes.split_off(end);
        std::mem::replace(&mut self.bytes, rest)
    }

    /// Returns the bytes before a message.
    fn begin_message(&mut self) -> Vec<u8> {
        self.has_message = true;
        std::mem::take(&mut self.bytes)
    }

    /// Returns the last line, unless it is incomplete.
    fn finish(&mut self) -> Vec<u8> {
        if self.has_message || infold_wire::Json::parse(&self.bytes).is_ok() {
            return std::mem::take(&mut self.bytes);
        }
        Vec::new()
    }
}

fn write_new(
    log: &Log,
    span: Span,
    write: &mut TranscriptWriter,
    to: &mut ExportTarget<'_>,
) -> CliResult {
    write_messages(write, to, log, |visit| log.each_message(span, visit))?;
    let mut text = Vec::new();
    write.flush_pending(&mut text);
    to.finish(write, &text)
}

/// Returns the active folds, nested ones too, with the time of each.
fn active_folds(log: &Log) -> CliResult<Vec<(EventId, u64, FoldLine)>> {
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

/// Writes all messages, with the folds as tags.
fn write_tagged(log: &Log, mut write: TranscriptWriter, to: &mut ExportTarget<'_>) -> CliResult {
    let path = log.state().shown().path();
    let position = |seq: Seq| {
        let before = path.iter().take_while(|span| span.to() < seq);
        let before: u64 = before.map(|span| span.count()).sum();
        let span = path.iter().find(|span| span.holds(seq))?;
        Seq::new(before + seq.get() - span.from().get() + 1)
    };
    let mut folds = Vec::new();
    for (id, ts, fold) in active_folds(log)? {
        let ends = position(fold.span.from()).zip(position(fold.span.to()));
        let covers = ends.and_then(|(from, to)| Span::new(from, to));
        let id = id.to_string();
        folds.extend(
            covers.and_then(|covers| tag_fold(&id, fold.cause, covers, &fold.stand_in, ts)),
        );
    }
    let total: u64 = path.iter().map(|span| span.count()).sum();
    let mut slots = slots(total as usize, &folds).into_iter();
    let mut written: CliResult = Ok(());
    let mut text = Vec::new();
    let mut visit = |source: Source, bytes: &[u8]| -> Result<(), LogError> {
        let time = recorded_at(log, source)?;
        for slot in slots.by_ref() {
            match slot {
                Slot::StandIn(record) => write.record(&record, &mut text),
                Slot::Message(tags) => {
                    if let Err(error) = write.tagged(bytes, time, tags, &mut text) {
                        written = Err(CliError::store(error));
                    }
                    break;
                }
            }
        }
        if written.is_ok() {
            written = to.bytes(&text);
        }
        text.clear();
        Ok(())
    };
    for span in &path {
        log.each_message(*span, &mut visit)?;
    }
    written?;
    for slot in slots {
        if let Slot::StandIn(record) = slot {
            write.record(&record, &mut text);
        }
    }
    write.finish(&mut text);
    to.finish(&write, &text)
}
