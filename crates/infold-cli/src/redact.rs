//! `infold redact`: permanently removes the content of messages.

use clap::Args;
use infold::redact::{Pattern, RedactionRequest, describe};
use infold_log::Span;
use infold_store::{Contexts, RedactedTask, Redaction, TaskError};
use uuid::Uuid;

use crate::error::{CliError, CliResult};
use crate::output::{Output, confirm, count, note, one_line};
use crate::steps::short;
use crate::task_lock::acquire;

/// The arguments of `infold redact`.
#[derive(Debug, Args)]
pub struct RedactArgs {
    /// The task
    task: String,
    /// The messages [default with --pattern: all]
    #[arg(value_name = "SEQ|A..B", required_unless_present = "pattern")]
    messages: Vec<Span>,
    /// Replace only the matches of this regular expression
    // A PEM key begins with hyphens.
    #[arg(long, value_name = "RE", allow_hyphen_values = true)]
    pattern: Option<Pattern>,
    /// Only print what would be redacted
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

/// `infold redact`
pub fn run(contexts: &Contexts, args: &RedactArgs, out: &mut Output) -> CliResult {
    let id = contexts.resolve(&args.task)?;
    let redact = RedactionRequest {
        spans: args.messages.clone(),
        pattern: args.pattern.clone(),
    };
    let name = short(&args.task);
    let failed = |error: TaskError| CliError::from(error).about(&name);
    if args.dry_run || !args.yes {
        let found = redact.preview(contexts, id).map_err(failed)?;
        if found.is_empty() {
            return Err(no_match(&found));
        }
        if args.dry_run {
            return print_redaction(id, &found, false, out);
        }
        let details = redaction_lines(id, &found, false);
        let subject = match found.messages() as u64 {
            0 => "this".to_owned(),
            messages => count(messages, "message"),
        };
        let refusal = CliError::usage(
            "this removes the content of messages permanently, and there is no terminal to confirm it",
        )
        .hint("--yes redacts without confirmation, --dry-run prints what would be redacted");
        if !confirm(&details, &format!("redact {subject} permanently?"), refusal)? {
            return Err(CliError::no("nothing was redacted"));
        }
    }
    let done = acquire(|| redact.carry_out(contexts, id)).map_err(failed)?;
    if done.is_empty() {
        return Err(no_match(&done));
    }
    print_redaction(id, &done, true, out)
}

fn no_match(found: &Redaction) -> CliError {
    if let Some(error) = spanned(found) {
        return error;
    }
    let error = CliError::no("the pattern matches nothing; nothing was changed");
    match found.left {
        0 => error,
        left => error.hint(format!("{} {WHERE_MATCHES_STAY}", matches(left))),
    }
}

/// Returns an error if matches remain that span several texts of a message.
fn spanned(found: &Redaction) -> Option<CliError> {
    let seqs: Vec<String> = found.spanned.iter().map(ToString::to_string).collect();
    let noun = match seqs.as_slice() {
        [] => return None,
        [_] => "message",
        _ => "messages",
    };
    let error = format!(
        "the pattern matches across several texts of {noun} {}, which were not changed by that",
        seqs.join(", ")
    );
    let hint = "a pattern that matches within the texts, or `infold redact TASK SEQ`, removes them";
    Some(CliError::no(error).hint(hint))
}

const WHERE_MATCHES_STAY: &str =
    "in ids, roles, types, names and positions, which pair and place messages";

/// Prints a redaction that was made or would be.
fn print_redaction(id: Uuid, redaction: &Redaction, is_done: bool, out: &mut Output) -> CliResult {
    if out.is_json() {
        out.object(&describe(redaction))?;
        return spanned(redaction).map_or(Ok(()), Err);
    }
    for line in redaction_lines(id, redaction, is_done) {
        out.line(line)?;
    }
    if redaction.left > 0 {
        note(
            false,
            format!("{} left {WHERE_MATCHES_STAY}", matches(redaction.left)),
        );
    }
    spanned(redaction).map_or(Ok(()), Err)
}

/// Returns one line for each redacted task, and one for each file that is removed whole.
fn redaction_lines(id: Uuid, redaction: &Redaction, is_done: bool) -> Vec<String> {
    let tasks = redaction.tasks.iter();
    let mut lines: Vec<String> = tasks.map(|task| task_line(id, task)).collect();
    if redaction.tasks.is_empty() && redaction.entries > 0 {
        let entries = match redaction.entries {
            1 => "1 title or name".to_owned(),
            many => format!("{many} titles and names"),
        };
        let verb = if is_done { "redacted" } else { "would redact" };
        lines.push(format!("{verb} {entries} of tasks"));
    }
    lines.extend(redaction.removed.iter().map(|path| {
        let path = path.display();
        if is_done {
            format!("{path} removed")
        } else {
            format!("would remove {path}")
        }
    }));
    lines.extend(redaction.files.iter().map(|file| {
        let (path, workspace) = (file.path.display(), file.workspace.display());
        let from = count(file.snapshots as u64, "checkpoint");
        let verb = if is_done { "removed" } else { "would remove" };
        one_line(&format!("{verb} {path} from {from} of {workspace}"))
    }));
    lines
}

fn task_line(id: Uuid, task: &RedactedTask) -> String {
    let messages = task.messages.iter().map(|(seq, found)| match found {
        1 => seq.to_string(),
        many => format!("{seq} ({})", matches(*many)),
    });
    let messages: Vec<String> = messages.collect();
    let mut what = match messages.as_slice() {
        [] => String::new(),
        [message] => format!("message {message}"),
        messages => format!("messages {}", messages.join(", ")),
    };
    if task.texts > 0 {
        let and = if messages.is_empty() { "" } else { ", and in " };
        what += &format!("{and}{} derived from messages", count(task.texts, "text"));
    }
    if task.task != id {
        what += &format!(" of task {}, which shares them", task.task);
    }
    match task.event {
        Some(event) => format!("e{event}: redacted {what}"),
        None => format!("would redact {what}"),
    }
}

fn matches(number: usize) -> String {
    match number {
        1 => "1 match".to_owned(),
        many => format!("{many} matches"),
    }
}
