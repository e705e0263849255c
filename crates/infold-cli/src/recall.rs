//! `infold recall`, and a single fold of `infold folds`: prints messages and folds in full, as text.

use infold::show::{LineKind, RecallTarget, RecalledMessage, fold_json, fold_lines};
use infold_log::{EventId, Seq};
use infold_store::{Contexts, EventLine, Log};
use infold_wire::{ContentBlock, Message, searchable_text};

use crate::args::RecallArgs;
use crate::error::{CliError, CliResult};
use crate::output::{DIM, FOLD, Output, note, paint, printable, role_style};
use crate::steps::short;

/// `infold recall`
pub fn recall(contexts: &Contexts, args: &RecallArgs, out: &mut Output) -> CliResult {
    let log = contexts.read(contexts.resolve(&args.task)?)?;
    let target = match (args.target, &args.grep) {
        (Some(target), _) => target,
        (None, Some(_)) => RecallTarget::Messages(Seq::FIRST, None),
        (None, None) => {
            let error = CliError::usage("no messages named");
            return Err(error.hint("name them (12, 12..40, 12.., e3), or search with --grep WORD"));
        }
    };
    let found = target.find(&log);
    let found = found.map_err(|error| CliError::from(error).about(&short(&args.task)))?;
    let grep = args.grep.as_ref().map(|word| word.to_lowercase());
    if let Some(line) = &found.fold
        && grep.is_none()
    {
        print_fold(line, out)?;
    }
    let mut is_empty = true;
    for span in found.spans {
        RecalledMessage::each(&log, span, &mut |recalled| {
            if let Some(grep) = &grep
                && !has_text(recalled.bytes, grep)
            {
                return Ok(());
            }
            is_empty = false;
            if out.is_json() {
                out.object_with(&recalled.json(), "message", recalled.bytes)
            } else {
                recalled.lines(&mut |kind, text| print_line(kind, text, out))
            }
        })?;
    }
    if is_empty && let Some(grep) = &args.grep {
        note(out.is_json(), format!("no message contains `{grep}`"));
    }
    Ok(())
}

/// Returns whether a message contains a text, in any case.
fn has_text(bytes: &[u8], wanted: &str) -> bool {
    let Ok(message) = Message::parse(bytes) else {
        return false;
    };
    let text = searchable_text(&ContentBlock::all(&message));
    text.to_lowercase().contains(wanted)
}

/// `infold folds TASK e3`
pub fn fold(log: &Log, task: &str, id: EventId, out: &mut Output) -> CliResult {
    let found = RecallTarget::Fold(id).find(log);
    let found = found.map_err(|error| CliError::from(error).about(&short(task)))?;
    found.fold.map_or(Ok(()), |line| print_fold(&line, out))
}

fn print_fold(line: &EventLine, out: &mut Output) -> CliResult {
    if out.is_json() {
        return out.object(&fold_json(line));
    }
    fold_lines(line, &mut |kind, text| print_line(kind, text, out))
}

fn print_line(kind: LineKind, text: &str, out: &mut Output) -> CliResult {
    match kind {
        LineKind::Fold => out.line(paint(FOLD, text)),
        LineKind::Message(role) => out.line(paint(role_style(role), text)),
        LineKind::Text => out.line(printable(text)),
        LineKind::Reasoning | LineKind::Remark => out.line(paint(DIM, printable(text))),
        LineKind::Call => out.line(text),
    }
}
