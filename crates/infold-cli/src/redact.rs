//! `infold redact`: takes what messages say out of the log for good.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use clap::Args;
use infold::redact::{Pattern, Redact, describe};
use infold_log::Span;
use infold_store::{Contexts, RedactedTask, Redaction, TaskError};
use uuid::Uuid;

use crate::failure::{Failure, Kind};
use crate::holder::released;
use crate::out::{DIM, Out, count, paint, say};
use crate::steps::short;

#[derive(Debug, Args)]
pub struct RedactArgs {
    /// The task
    task: String,
    /// The messages; all of them if there is a pattern
    #[arg(value_name = "SEQ|A..B", required_unless_present = "pattern")]
    messages: Vec<Span>,
    /// Replace only what this regular expression matches
    // A key in PEM begins with hyphens.
    #[arg(long, value_name = "RE", allow_hyphen_values = true)]
    pattern: Option<Pattern>,
    /// Only say what would go
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub fn run(contexts: &Contexts, args: &RedactArgs, out: &mut Out) -> Result<(), Failure> {
    let id = contexts.resolve(&args.task)?;
    let redact = Redact {
        spans: args.messages.clone(),
        pattern: args.pattern.clone(),
    };
    let name = short(&args.task);
    let failed = |error: TaskError| Failure::from(error).about(&name);
    if args.dry_run || !args.yes {
        let found = redact.preview(contexts, id).map_err(failed)?;
        if found.is_empty() {
            return Err(nothing(&found));
        }
        if args.dry_run {
            return tell(id, &found, false, out);
        }
        if !is_confirmed(id, &found)? {
            return Err(Failure::new(Kind::No, "nothing was redacted"));
        }
    }
    let done = released(|| redact.carry_out(contexts, id)).map_err(failed)?;
    if done.is_empty() {
        return Err(nothing(&done));
    }
    tell(id, &done, true, out)
}

fn nothing(found: &Redaction) -> Failure {
    let failure = Failure::new(Kind::No, "the pattern matches nothing; nothing was changed");
    match found.left {
        0 => failure,
        left => failure.hint(format!("{} in {STAYING}", matches(left))),
    }
}

/// Where matches are left.
const STAYING: &str =
    "ids, roles, types, names and positions, by which messages are paired and placed";

/// Says what was redacted, or would be.
fn tell(id: Uuid, redaction: &Redaction, is_done: bool, out: &mut Out) -> Result<(), Failure> {
    if out.is_json() {
        return out.object(&describe(redaction));
    }
    for line in lines(id, redaction, is_done) {
        out.line(line)?;
    }
    if redaction.left > 0 {
        let left = matches(redaction.left);
        say(false, paint(DIM, format!("{left} left in {STAYING}")));
    }
    Ok(())
}

/// What was redacted, or would be: a line for each task, and for each file that goes whole.
fn lines(id: Uuid, redaction: &Redaction, is_done: bool) -> Vec<String> {
    let mut lines: Vec<String> = redaction.tasks.iter().map(|task| line(id, task)).collect();
    if redaction.tasks.is_empty() && redaction.entries > 0 {
        let entries = match redaction.entries {
            1 => "1 title or name".to_owned(),
            many => format!("{many} titles and names"),
        };
        let done = if is_done { "redacted" } else { "would redact" };
        lines.push(format!("{done} {entries} of tasks"));
    }
    let removed = redaction.removed.iter().map(|path| match is_done {
        true => format!("{} removed", path.display()),
        false => format!("would remove {}", path.display()),
    });
    lines.extend(removed);
    lines
}

fn line(id: Uuid, task: &RedactedTask) -> String {
    let messages = task.messages.iter().map(|(seq, found)| match found {
        1 => seq.to_string(),
        many => format!("{seq} ({})", matches(*many)),
    });
    let messages: Vec<String> = messages.collect();
    let of = match task.task == id {
        true => String::new(),
        false => format!(" of task {}, which shares them", task.task),
    };
    let texts = match task.texts {
        0 => String::new(),
        texts => format!(
            "{}{} made of messages",
            if messages.is_empty() { "" } else { ", and in " },
            count(texts, "text")
        ),
    };
    let listed = match messages.len() {
        0 => String::new(),
        1 => format!("message {}", messages[0]),
        _ => format!("messages {}", messages.join(", ")),
    };
    match task.event {
        Some(event) => format!("e{event}: redacted {listed}{texts}{of}"),
        None => format!("would redact {listed}{texts}{of}"),
    }
}

fn matches(number: usize) -> String {
    match number {
        1 => "1 match".to_owned(),
        many => format!("{many} matches"),
    }
}

/// Asks a person whether it is meant.
fn is_confirmed(id: Uuid, found: &Redaction) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        let text = "this takes messages out of the log for good, and there is nobody to ask";
        return Err(Failure::new(Kind::Usage, text)
            .hint("--yes says that it is meant, --dry-run shows what would go"));
    }
    for line in lines(id, found, false) {
        eprintln!("  {line}");
    }
    match found.messages() as u64 {
        0 => eprint!("redact this for good? [y/N] "),
        messages => eprint!("redact {} for good? [y/N] ", count(messages, "message")),
    }
    let _ = io::stderr().flush();
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
