use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use infold::step::{self, Permission};
use infold::{Config, Draft, Hooks, Profile, draft};
use infold_log::{Span, View};
use infold_store::{Contexts, Writer};
use serde_json::json;

use crate::failure::{Failure, Kind};
use crate::fold::cannot_fold;
use crate::manage::known;
use crate::out::{DIM, MADE, Out, count, number, paint};
use crate::pen::Reach;
use crate::settings::{Choice, Chosen};
use crate::steps::{open, read_text, tell};

/// What `infold condense` takes.
#[derive(Debug, Args)]
pub struct CondenseArgs {
    /// The task
    #[arg(default_value = "@")]
    pub task: String,
    /// The messages, such as 3..40, widened to whole rounds; without them, what `manage` would choose
    #[arg(value_name = "A..B")]
    pub range: Option<Span>,
    /// The summary: a file, or - for standard input; without it, the summarizer writes one
    #[arg(long, value_name = "FILE")]
    pub text: Option<PathBuf>,
    /// Show what would leave and what would enter the view, and change nothing
    #[arg(long)]
    pub preview: bool,
    /// Open the summary in $EDITOR before it is applied
    #[arg(long, conflicts_with = "preview")]
    pub edit: bool,
    #[command(flatten)]
    pub choice: Choice,
}

/// `infold condense`
pub fn run(
    contexts: &Contexts,
    config: &Config,
    args: &CondenseArgs,
    out: &mut Out,
) -> Result<(), Failure> {
    let json = out.is_json();
    // A range alone is one of the newest task: no id looks like one.
    let (task, range) = match (args.range, args.task.parse::<Span>()) {
        (None, Ok(range)) if args.task.contains("..") => ("@", Some(range)),
        (range, _) => (args.task.as_str(), range),
    };
    let given = args.text.as_deref().map(read_text).transpose()?;
    if given.as_ref().is_some_and(|text| text.trim().is_empty()) {
        return Err(empty());
    }
    let mut open = open(contexts, task, json)?;
    let reach = Reach {
        contexts: Some(contexts),
        usual: given.is_none(),
        ..Reach::default()
    };
    let known = known(contexts, open.writer.log())?;
    let mut chosen = args.choice.chosen(config, known, reach, json)?;
    let hooks = match args.preview {
        true => Hooks::default(),
        false => chosen.setup.hooks.clone(),
    };
    // Asked before somebody is paid for a summary.
    let permission = Permission::ask(&hooks, open.writer.log(), "condense");
    let permission = permission.map_err(|error| Failure::from(error).about(&open.name))?;
    let made = drafted(&mut open.writer, range, given.as_deref(), &mut chosen);
    let mut made = made.map_err(|failure| failure.about(&open.name))?;
    if args.preview {
        return preview(&made, &open.writer, &chosen.setup.profile, out);
    }
    if args.edit {
        let text = edited(made.summary())?;
        made = made.with_summary(&text, &chosen.setup.aim.strategy);
    }
    for error in &made.errors {
        Failure::new(Kind::No, error).warn(json);
    }
    let taken = step::fold(&mut open.writer, made, &permission)?;
    tell(contexts, &open, taken, out)
}

fn empty() -> Failure {
    Failure::new(Kind::Usage, "the summary is empty")
        .hint("say what happened in those messages; nothing was folded")
}

/// The fold that is asked for: with the text that was given, or with one that is written now.
fn drafted(
    writer: &mut Writer,
    range: Option<Span>,
    given: Option<&str>,
    chosen: &mut Chosen,
) -> Result<Draft, Failure> {
    if let Some(text) = given {
        let made = Draft::given(writer.log(), &chosen.setup.aim, range, text);
        let made = made.map_err(|error| cannot_fold(error, "--window"))?;
        return made.ok_or_else(nothing);
    }
    let made = draft(
        writer,
        &chosen.setup.aim,
        range,
        &mut *chosen.setup.summarizer,
    );
    made.map_err(|error| cannot_fold(error, "--window"))?
        .ok_or_else(nothing)
}

fn nothing() -> Failure {
    Failure::new(
        Kind::No,
        "there is nothing to condense that a summary would make smaller",
    )
    .hint(
        "`infold view TASK` shows what is visible; give a range, or a text of your own with --text",
    )
}

/// Shows what a fold would do.
fn preview(made: &Draft, writer: &Writer, profile: &Profile, out: &mut Out) -> Result<(), Failure> {
    let log = writer.log();
    let before = View::of(log.state().shown(), log)?.tokens();
    let after = before - made.leaves.min(before) + made.enters;
    let (span, messages) = (made.cover.span, made.cover.messages);
    // What the next request costs, once, when nothing of it is cached any more.
    let price = |tokens: u64| {
        let prices = profile.prices.as_ref()?;
        Some(tokens as f64 * profile.factor * prices.input / 1e6)
    };
    if out.is_json() {
        return out.object(&json!({
            "from": span.from().get(), "to": span.to().get(), "messages": messages,
            "leaves": made.leaves, "enters": made.enters,
            "tokens_before": before, "tokens_after": after,
            "summarizer": made.summarizer, "cost": made.cost,
            "next_request": {"before": price(before), "after": price(after)},
            "summary": made.summary(), "errors": made.errors, "dropped": made.dropped,
        }));
    }
    let leaves = format!(
        "{span}, {}, {} tokens",
        count(messages, "message"),
        number(made.leaves)
    );
    out.line(paint(MADE, format!("- leaves   {leaves}")))?;
    crate::look::gists(log, span, out)?;
    let enters = format!("{} tokens, by {}", number(made.enters), made.summarizer);
    out.line(paint(MADE, format!("+ enters   {enters}")))?;
    for line in made.summary().lines() {
        out.line(format!("  {line}"))?;
    }
    for error in &made.errors {
        out.line(format!("  but      {error}"))?;
    }
    out.line(format!(
        "  view     {} → {} tokens",
        number(before),
        number(after)
    ))?;
    let cost = match price(before).zip(price(after)) {
        Some((before, after)) => format!(
            "${:.4} for the summary; the next request, uncached: ${before:.4} → ${after:.4}",
            made.cost
        ),
        None => format!("${:.4} for the summary", made.cost),
    };
    out.line(format!("  cost     {cost}"))?;
    out.line(paint(DIM, "nothing was changed"))
}

/// Lets the person change a text.
fn edited(text: &str) -> Result<String, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(
            Kind::Usage,
            format!("the summary could not be edited: {error}"),
        )
        .hint("EDITOR names the program; nothing was folded")
    };
    let mut file = tempfile::Builder::new()
        .prefix("summary-")
        .suffix(".md")
        .tempfile()
        .map_err(|error| failed(&error))?;
    file.write_all(text.as_bytes())
        .map_err(|error| failed(&error))?;
    let editor = ["VISUAL", "EDITOR"]
        .iter()
        .find_map(|name| std::env::var(name).ok());
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("sh")
        .arg(file.path())
        .status()
        .map_err(|error| failed(&error))?;
    if !status.success() {
        return Err(failed(&format!("`{editor}` ended with {status}")));
    }
    let text = read_text(Path::new(file.path()))?;
    match text.trim().is_empty() {
        true => Err(empty()),
        false => Ok(text),
    }
}
