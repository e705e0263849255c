//! `infold recall`, and a single fold of `infold folds`: prints messages and folds in full, as text.

use infold::show::{RecallTarget, RecalledMessage, fold_json, fold_texts, kind};
use infold_log::{EventId, Role, Seq};
use infold_store::{Contexts, EventLine, Log, iso};
use infold_wire::{ContentBlock, Message, searchable_text};

use crate::args::RecallArgs;
use crate::error::{CliError, CliResult};
use crate::output::{
    DIM, FOLD, Output, count, note, number, one_line, paint, printable, role_style,
};
use crate::steps::short;

/// Arguments of a call that are longer, or have several lines, stand below its line.
const MAX_ARGUMENT_CHARS: usize = 100;

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
            let message = Message::parse(recalled.bytes).ok();
            let blocks = message.as_ref().map(ContentBlock::all);
            if let Some(grep) = &grep
                && !blocks
                    .as_deref()
                    .is_some_and(|blocks| searchable_text(blocks).to_lowercase().contains(grep))
            {
                return Ok(());
            }
            is_empty = false;
            if out.is_json() {
                out.object_with(&recalled.json(), "message", recalled.bytes)
            } else {
                print_message(&recalled, blocks, out)
            }
        })?;
    }
    if is_empty && let Some(grep) = &args.grep {
        note(out.is_json(), format!("no message contains `{grep}`"));
    }
    Ok(())
}

/// `infold folds TASK e3`
pub fn fold(log: &Log, task: &str, id: EventId, out: &mut Output) -> CliResult {
    let found = RecallTarget::Fold(id).find(log);
    let found = found.map_err(|error| CliError::from(error).about(&short(task)))?;
    found.fold.map_or(Ok(()), |line| print_fold(&line, out))
}

fn print_fold(line: &EventLine, out: &mut Output) -> CliResult {
    let object = fold_json(line);
    if out.is_json() {
        return out.object(&object);
    }
    let size = |name: &str| number(object[name].as_u64().unwrap_or_default());
    let head = format!(
        "── {} {} · hides {}..{} · {} → {} tokens · {}",
        line.id,
        kind(&line.what),
        object["from"],
        object["to"],
        size("original_tokens"),
        size("tokens"),
        iso(line.ts)
    );
    out.line(paint(FOLD, head))?;
    for (_, text) in fold_texts(&line.what) {
        out.line(printable(&text))?;
    }
    Ok(())
}

fn print_message(
    recalled: &RecalledMessage<'_>,
    blocks: Option<Vec<ContentBlock>>,
    out: &mut Output,
) -> CliResult {
    let (record, seq) = (&recalled.record, recalled.seq);
    let hidden = if recalled.shown { "" } else { " · hidden" };
    let head = format!("── {seq} {} · {}{hidden}", record.role, iso(record.time));
    out.line(paint(role_style(record.role), head))?;
    let Some(blocks) = blocks else {
        return out.line(String::from_utf8_lossy(recalled.bytes));
    };
    for block in &blocks {
        print_block(block, record.role, out)?;
    }
    Ok(())
}

fn print_block(block: &ContentBlock, role: Role, out: &mut Output) -> CliResult {
    match block {
        ContentBlock::Text(text) => out.line(printable(text)),
        ContentBlock::Reasoning(text) => out.line(paint(DIM, printable(text))),
        ContentBlock::Image => out.line(paint(DIM, "(image)")),
        ContentBlock::Result { text, failed, .. } => {
            if *failed {
                out.line(paint(DIM, "← error"))?;
            } else if role != Role::Tool {
                out.line(paint(DIM, "← result"))?;
            }
            out.line(printable(text))
        }
        ContentBlock::Call {
            name, arguments, ..
        } => print_call(name, arguments, out),
    }
}

/// Prints a call in one line, and below it the arguments that do not fit there.
fn print_call(name: &str, arguments: &[(String, String)], out: &mut Output) -> CliResult {
    let is_long =
        |value: &str| value.contains('\n') || value.chars().nth(MAX_ARGUMENT_CHARS).is_some();
    let (long, line): (Vec<_>, Vec<_>) = arguments.iter().partition(|(_, value)| is_long(value));
    let line: Vec<String> = line
        .iter()
        .map(|(key, value)| match key.as_str() {
            "" => value.clone(),
            key => format!("{key}: {value}"),
        })
        .collect();
    out.line(one_line(&format!("→ {name}({})", line.join(", "))))?;
    for (key, value) in long {
        let lines = count(value.lines().count() as u64, "line");
        out.line(paint(DIM, one_line(&format!("  {key} ({lines}):"))))?;
        out.line(printable(value))?;
    }
    Ok(())
}
