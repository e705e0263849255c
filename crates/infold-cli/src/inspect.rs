//! `infold view`, `log` and `folds`: print what the model is shown of a task, all that was recorded, and its folds.

use infold::show::{LogEntry, LogSnapshot, ViewEntry, ViewLine, describe, kind, speaker};
use infold_log::{Past as _, Role, Seq, Span};
use infold_store::{Contexts, EventLine, Log, iso};
use infold_wire::{Message, message_excerpt};

use crate::args::{FoldsArgs, InspectArgs, ViewArgs};
use crate::error::{CliError, CliResult};
use crate::output::{
    DIM, FOLD, Output, cells, count, fit, format_table, note, number, one_line, paint, role_style,
};
use crate::recall;
use crate::steps::short;

/// Opens the log of a task for reading, as of the point that `--at` names.
fn open(contexts: &Contexts, args: &InspectArgs) -> CliResult<LogSnapshot> {
    let log = contexts.read(contexts.resolve(&args.task)?)?;
    let snapshot = LogSnapshot::new(log, args.at);
    snapshot.map_err(|error| CliError::from(error).about(&short(&args.task)))
}

/// `infold view`: prints the messages that the model is shown.
pub fn view(contexts: &Contexts, args: &ViewArgs, out: &mut Output) -> CliResult {
    let snapshot = open(contexts, &args.inspect)?;
    let LogSnapshot { log, at, .. } = &snapshot;
    out.widen_names(at.seq);
    let view = snapshot.view()?;
    snapshot.pieces(&view, args.raw, &mut |piece| match &piece {
        ViewEntry::Message { bytes, .. } if args.raw => {
            out.raw(bytes).and_then(|()| out.raw(b"\n"))
        }
        ViewEntry::Message { bytes, .. } if out.is_json() => {
            out.object_with(&piece.json(), "message", bytes)
        }
        ViewEntry::Fold(..) if out.is_json() => out.object(&piece.json()),
        entry => print_entry(entry, out),
    })?;
    let all = match Seq::new(at.seq) {
        Some(last) => log.record(last)?.sums.tokens,
        None => 0,
    };
    // Stdout is flushed first, so that the note on stderr appears below the view.
    out.finish()?;
    let open = if view.is_open() {
        "; its last round waits for tool results"
    } else {
        ""
    };
    let (shown, all) = (number(view.tokens()), number(all));
    let messages = count(at.seq, "message");
    let text = format!("view {shown} tokens, log {all} in {messages}{open}");
    note(out.is_json(), text);
    Ok(())
}

fn print_entry(entry: &ViewEntry<'_>, out: &mut Output) -> CliResult {
    let Some(line) = entry.line() else {
        // A message that cannot be parsed is printed as it is.
        return match entry {
            ViewEntry::Message { bytes, .. } => out.raw(bytes),
            ViewEntry::Fold(..) => Ok(()),
        };
    };
    // Only a fold has no role.
    let Some(role) = line.role else {
        return print_fold(&line, out);
    };
    let columns = message_line(&line.name, role, &line.text, &line.note, line.tokens, out);
    out.line(columns.join(""))
}

fn print_fold(line: &ViewLine, out: &mut Output) -> CliResult {
    let width = out.width().saturating_sub(out.name_width() + TOKENS_WIDTH);
    let text = paint(FOLD, fit(&line.text, width.max(10)));
    let tokens = paint(DIM, tokens_column(line.tokens));
    let name = fit(&line.name, out.name_width());
    out.line(format!("{name}{text}{tokens}"))
}

const ROLE_WIDTH: usize = 7;
const TOKENS_WIDTH: usize = 15;

fn tokens_column(tokens: u64) -> String {
    format!("{:>TOKENS_WIDTH$}", count(tokens, "token"))
}

/// Formats the columns of a message: name, role, text, note and tokens.
fn message_line(
    name: &str,
    role: Role,
    text: &str,
    note: &str,
    tokens: u64,
    out: &Output,
) -> [String; 5] {
    let note = if note.is_empty() {
        String::new()
    } else {
        format!(" [{note}]")
    };
    let used = out.name_width() + ROLE_WIDTH + TOKENS_WIDTH;
    let width = out.width().saturating_sub(used).max(10);
    [
        fit(name, out.name_width()),
        paint(role_style(role), fit(&role.to_string(), ROLE_WIDTH)),
        fit(text, width.saturating_sub(cells(&note))),
        paint(FOLD, &note),
        paint(DIM, tokens_column(tokens)),
    ]
}

/// `infold log`: prints all messages and events in the order in which they were recorded.
pub fn log(contexts: &Contexts, args: &InspectArgs, out: &mut Output) -> CliResult {
    let snapshot = open(contexts, args)?;
    out.widen_names(snapshot.at.seq);
    snapshot.entries(snapshot.all(), &mut |entry| match &entry {
        LogEntry::Message { bytes, .. } if out.is_json() => {
            out.object_with(&entry.json(), "message", bytes)
        }
        LogEntry::Event(_) if out.is_json() => out.object(&entry.json()),
        LogEntry::Message {
            seq,
            record,
            tokens,
            place,
            bytes,
        } => {
            let message = Message::parse(bytes);
            let (role, text) = match &message {
                Ok(message) => (speaker(message), message_excerpt(message, 400)),
                Err(error) => (record.role, error.to_string()),
            };
            let line = message_line(&seq.to_string(), role, &text, place, *tokens, out).join("");
            if place.is_empty() {
                return out.line(line);
            }
            // A hidden message is dimmed as a whole: the colours of its columns would end the dimming.
            out.line(paint(DIM, anstream::adapter::strip_str(&line).to_string()))
        }
        LogEntry::Event(line) => print_event(line, out),
    })
}

fn print_event(line: &EventLine, out: &mut Output) -> CliResult {
    let text = one_line(&describe(&line.what));
    let width = out.width().saturating_sub(out.name_width()).max(10);
    let name = fit(&line.id.to_string(), out.name_width());
    out.line(paint(
        FOLD,
        format!("{name}{}", fit(&text, width).trim_end()),
    ))
}

/// `infold folds`: prints a table of the folds, or the contents of one.
pub fn folds(contexts: &Contexts, args: &FoldsArgs, out: &mut Output) -> CliResult {
    let snapshot = open(contexts, &args.inspect)?;
    if let Some(id) = args.fold {
        return recall::fold(&snapshot.log, &args.inspect.task, id, out);
    }
    let mut rows = Vec::new();
    let mut styles = Vec::new();
    let mut is_empty = true;
    snapshot.folds(&mut |fold| {
        is_empty = false;
        if out.is_json() {
            return out.object(&fold.json());
        }
        styles.push(if fold.status == "active" { FOLD } else { DIM });
        rows.push([
            fold.line.id.to_string(),
            kind(&fold.line.what).to_owned(),
            fold.span.to_string(),
            fold.status,
            format!("{} → {} tokens", number(fold.hides), number(fold.tokens)),
            iso(fold.line.ts)[..19].replace('T', " "),
        ]);
        Ok::<(), CliError>(())
    })?;
    if is_empty {
        note(out.is_json(), "no folds");
    }
    let lines = format_table(&rows, &[4], out.width());
    let mut lines = styles.iter().zip(lines);
    lines.try_for_each(|(style, line)| out.line(paint(*style, line)))
}

/// Prints a line for each message of a span. Of a long span only the first and the last messages are printed.
pub fn print_gists(log: &Log, span: Span, out: &mut Output) -> CliResult {
    const MAX_EDGE_MESSAGES: u64 = 6;
    let total = span.count();
    let skipped = total.saturating_sub(2 * MAX_EDGE_MESSAGES);
    for (at, seq) in (0..).zip(span.seqs()) {
        if skipped > 0 && at == MAX_EDGE_MESSAGES {
            out.line(paint(DIM, format!("  … {} more", number(skipped))))?;
        }
        if skipped > 0 && at >= MAX_EDGE_MESSAGES && at < total - MAX_EDGE_MESSAGES {
            continue;
        }
        let bytes = log.message(seq)?;
        if let Ok(message) = Message::parse(&bytes) {
            let width = out.width().saturating_sub(out.name_width() + 10).max(10);
            let name = fit(&seq.to_string(), out.name_width());
            let (role, text) = (speaker(&message), message_excerpt(&message, width));
            out.line(format!("  {name}{role:<7}{text}"))?;
        }
    }
    Ok(())
}
