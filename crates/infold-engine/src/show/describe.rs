//! Describes events in a few words.

use infold_store::{
    CheckpointLine, Extent, Purpose, RecallLine, RedactLine, Status, ToolsShownLine, What,
};

use crate::numbers::{count, number};

/// Describes the effect of an event in a few words.
pub fn describe(what: &What) -> String {
    match what {
        What::Fold(fold) => format!(
            "fold {} {}: {}, {} → {} tokens",
            kind(what),
            fold.span,
            count(fold.messages, "message"),
            number(fold.original_tokens),
            number(fold.tokens)
        ),
        What::Mask(mask) => format!(
            "fold mask {} part {}: {} → {} tokens",
            mask.seq,
            mask.part,
            number(mask.original_tokens),
            number(mask.tokens)
        ),
        What::Unfold(fold) => format!("unfold {fold}"),
        What::Rewind(to) => format!("rewind to {to}"),
        What::Undo(step) => format!("undo {step}"),
        What::Redo(undo) => format!("redo, taking back {undo}"),
        What::Pin(seq) => format!("pin {seq}"),
        What::Note { text, .. } => format!("pin note: {text}"),
        What::Unpin(infold_log::Pinned::Message(seq)) => format!("unpin {seq}"),
        What::Unpin(infold_log::Pinned::Note(note)) => format!("unpin note {note}"),
        What::Fork { task, at } => format!("continues task {task} from {at}"),
        What::Status { is_idle: true, .. } => "ended: no request came for long".to_owned(),
        What::Status {
            status: Status::Running,
            ..
        } => "resumed".to_owned(),
        What::Status { status, error, .. } => match error {
            Some(error) => format!("{status}: {error}"),
            None => status.to_string(),
        },
        What::Tool(record) => format!("tool {}", infold_wire::shorten(record, 200)),
        What::Usage(usage) => format!(
            "usage {}{}: {} tokens, {} of them cached",
            usage.model,
            match usage.purpose {
                Purpose::Reply => "",
                Purpose::Summary => ", for a summary",
                Purpose::Nothing => ", for a reply that was discarded",
            },
            number(usage.tokens),
            number(usage.cached)
        ),
        What::Failure(failure) => format!(
            "no reply from {}: {}",
            failure.model,
            infold_wire::shorten(&failure.error, 200)
        ),
        What::Manage(record) => format!("manage {}", infold_wire::shorten(record, 200)),
        What::Append(append) => format!(
            "messages {} were pushed with the key {}",
            append.span,
            infold_wire::shorten(&append.key, 200)
        ),
        What::Redact(redact) => describe_redact(redact),
        What::Recall(recall) => describe_recall(recall),
        What::Lookup(lookup) => format!(
            "look-ups in reply {} ({} more tokens)",
            lookup.span,
            number(lookup.tokens)
        ),
        What::State(state) => format!("state {}", infold_wire::shorten(&state.changes, 200)),
        What::ToolsShown(shown) => describe_tools(shown),
        What::Refusal(refusal) => infold_wire::shorten(&refusal.told, 200),
        What::CallStarted(call) => format!(
            "runs {}, call {} of message {}",
            infold_wire::shorten(&call.tool, 80),
            call.index + 1,
            call.message
        ),
        What::Checkpoint(line) => describe_checkpoint(line),
        What::Restore(line) => format!(
            "files of {} restored with {}, from checkpoint {} to {}",
            infold_wire::shorten(&line.workspace.to_string_lossy(), 200),
            line.step,
            line.from.number,
            line.to.number
        ),
        What::Other(kind) => kind.clone(),
    }
}

fn describe_redact(redact: &RedactLine) -> String {
    let seqs: Vec<String> = redact
        .messages
        .iter()
        .map(|(seq, _)| seq.to_string())
        .collect();
    let what = match redact.extent {
        Extent::Whole => "",
        Extent::Matches => "matches in ",
    };
    match seqs.len() {
        0 => format!("redacted {} text(s) made of other messages", redact.texts),
        1 => format!("redacted {what}message {}", seqs[0]),
        _ => format!(
            "redacted {what}messages {}",
            infold_wire::shorten(&seqs.join(", "), 200)
        ),
    }
}

fn describe_recall(recall: &RecallLine) -> String {
    let (at, tokens) = (recall.at, number(recall.tokens));
    let Some(source) = recall.source else {
        return format!("layered state at {at} ({tokens} tokens)");
    };
    let reference = infold_wire::shorten(&recall.reference, 80);
    format!("recall {source} at {at}, which refers to {reference} ({tokens} tokens)")
}

fn describe_checkpoint(line: &CheckpointLine) -> String {
    let left_out = match line.left_out {
        0 => String::new(),
        left_out => format!(", {left_out} left out"),
    };
    format!(
        "checkpoint {} of {}: {}{left_out} ({})",
        line.number,
        infold_wire::shorten(&line.workspace.to_string_lossy(), 200),
        line.files,
        infold_wire::shorten(line.note.name(), 80)
    )
}

fn describe_tools(line: &ToolsShownLine) -> String {
    let (shown, hidden) = (line.shown.len(), line.hidden.len());
    let phase = infold_wire::shorten(&line.phase, 80);
    let environment = infold_wire::shorten(&line.environment, 80);
    format!("{shown} tools shown, {hidden} hidden: {phase} in {environment}")
}

/// Returns the kind of a fold.
pub fn kind(what: &What) -> &'static str {
    match what {
        What::Fold(fold) if fold.cause == infold_log::Cause::Summary => "summary",
        What::Fold(_) => "window",
        _ => "mask",
    }
}
