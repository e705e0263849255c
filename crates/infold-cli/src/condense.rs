//! `infold condense`: replaces messages by a summary in the view.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;
use infold::step::{self, FoldPermission};
use infold::{Config, Draft, Hooks, Profile, draft};
use infold_log::{Span, View};
use infold_store::{Contexts, Writer};
use serde_json::json;

use crate::error::{CliError, CliResult};
use crate::fold::cannot_fold;
use crate::fold_options::FoldOptions;
use crate::inspect::print_gists;
use crate::manage::task_model;
use crate::model_access::ModelAccess;
use crate::output::{DIM, FOLD, Output, count, number, paint, warn};
use crate::steps::{open, print_step, read_text};

/// The arguments of `infold condense`.
#[derive(Debug, Args)]
pub struct CondenseArgs {
    /// The task
    #[arg(default_value = "@")]
    pub task: String,
    /// The messages, such as 3..40, extended to whole rounds [default: what `manage` would fold]
    #[arg(value_name = "A..B")]
    pub range: Option<Span>,
    /// The summary: a file, or - for standard input [default: the summarizer writes one]
    #[arg(long, value_name = "FILE")]
    pub text: Option<PathBuf>,
    /// Print what would be replaced and the summary, without changing anything
    #[arg(long)]
    pub preview: bool,
    /// Edit the summary in $EDITOR first
    #[arg(long, conflicts_with = "preview")]
    pub edit: bool,
    #[command(flatten)]
    pub options: FoldOptions,
}

/// `infold condense`
pub fn run(
    contexts: &Contexts,
    config: &Config,
    args: &CondenseArgs,
    out: &mut Output,
) -> CliResult {
    let json = out.is_json();
    // A single range is one of the newest task: no id contains `..`.
    let (task, range) = match (args.range, args.task.parse::<Span>()) {
        (None, Ok(range)) if args.task.contains("..") => ("@", Some(range)),
        (range, _) => (args.task.as_str(), range),
    };
    let given = args.text.as_deref().map(read_text).transpose()?;
    if given.as_ref().is_some_and(|text| text.trim().is_empty()) {
        return Err(empty_summary());
    }
    let mut open = open(contexts, task, json)?;
    let access = ModelAccess {
        contexts: Some(contexts),
        prefer_model: given.is_none(),
        ..ModelAccess::default()
    };
    let model = task_model(contexts, open.writer.log())?;
    let mut setup = args.options.setup(config, model, access, json)?;
    let setup = &mut setup.setup;
    let hooks = if args.preview {
        Hooks::default()
    } else {
        setup.hooks.clone()
    };
    // The hook decides before a summary is paid for.
    let permission = FoldPermission::ask(&hooks, open.writer.log(), "condense");
    let permission = permission.map_err(|error| CliError::from(error).about(&open.name))?;
    let drafted = match &given {
        Some(text) => Draft::given(open.writer.log(), &setup.aim, range, text),
        None => draft(&mut open.writer, &setup.aim, range, &mut *setup.summarizer),
    };
    // The cost of a summary is recorded, whether the summary is used or not.
    warn(json, contexts.settle(open.id, &open.writer));
    let drafted = drafted.map_err(|error| cannot_fold(error, "--window"));
    let drafted = drafted.and_then(|drafted| drafted.ok_or_else(nothing_to_condense));
    let mut drafted = drafted.map_err(|error| error.about(&open.name))?;
    if args.preview {
        return preview(&drafted, &open.writer, &setup.profile, out);
    }
    if args.edit {
        let text = edit(drafted.summary())?;
        drafted = drafted.with_summary(&text, &setup.aim);
    }
    for error in &drafted.errors {
        CliError::no(error).warn(json);
    }
    let taken = step::fold(&mut open.writer, drafted, &permission)?;
    print_step(contexts, &open, taken, out)
}

fn empty_summary() -> CliError {
    CliError::usage("the summary is empty").hint("nothing was folded")
}

fn nothing_to_condense() -> CliError {
    CliError::no("there is nothing to condense that a summary would make smaller").hint(
        "`infold view TASK` shows what is visible; give a range, or a text of your own with --text",
    )
}

/// Prints the effect of a fold without making it.
fn preview(draft: &Draft, writer: &Writer, profile: &Profile, out: &mut Output) -> CliResult {
    let log = writer.log();
    let before = View::of(log.state().shown(), log)?.tokens();
    let after = before - draft.leaves.min(before) + draft.enters;
    let (span, messages) = (draft.cover.span, draft.cover.messages);
    // The price of the next request, of which nothing is cached.
    let price = |tokens: u64| {
        let prices = profile.prices.as_ref()?;
        Some(tokens as f64 * profile.factor * prices.input / 1e6)
    };
    if out.is_json() {
        return out.object(&json!({
            "from": span.from().get(), "to": span.to().get(), "messages": messages,
            "leaves": draft.leaves, "enters": draft.enters,
            "tokens_before": before, "tokens_after": after,
            "summarizer": draft.summarizer, "cost": draft.cost,
            "next_request": {"before": price(before), "after": price(after)},
            "summary": draft.summary(), "errors": draft.errors, "dropped": draft.dropped,
        }));
    }
    let (messages, hidden) = (count(messages, "message"), number(draft.leaves));
    out.line(paint(
        FOLD,
        format!("- leaves   {span}, {messages}, {hidden} tokens"),
    ))?;
    print_gists(log, span, out)?;
    let (tokens, summarizer) = (number(draft.enters), &draft.summarizer);
    out.line(paint(
        FOLD,
        format!("+ enters   {tokens} tokens, by {summarizer}"),
    ))?;
    for line in draft.summary().lines() {
        out.line(format!("  {line}"))?;
    }
    for error in &draft.errors {
        out.line(format!("  problem  {error}"))?;
    }
    out.line(format!(
        "  view     {} → {} tokens",
        number(before),
        number(after)
    ))?;
    let mut cost = format!("${:.4} for the summary", draft.cost);
    if let Some((before, after)) = price(before).zip(price(after)) {
        cost += &format!("; the next request, uncached: ${before:.4} → ${after:.4}");
    }
    out.line(format!("  cost     {cost}"))?;
    out.line(paint(DIM, "nothing was changed"))
}

/// Lets the user edit a text.
fn edit(text: &str) -> CliResult<String> {
    let failed = |error: &dyn std::fmt::Display| {
        CliError::usage(format!("the summary could not be edited: {error}"))
            .hint("EDITOR sets the program; nothing was folded")
    };
    let file = tempfile::Builder::new()
        .prefix("summary-")
        .suffix(".md")
        .tempfile();
    let mut file = file.map_err(|error| failed(&error))?;
    file.write_all(text.as_bytes())
        .map_err(|error| failed(&error))?;
    let mut editors = ["VISUAL", "EDITOR"]
        .iter()
        .filter_map(|name| std::env::var(name).ok());
    let editor = editors.next().unwrap_or_else(|| "vi".to_owned());
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
    let text = read_text(file.path())?;
    if text.trim().is_empty() {
        Err(empty_summary())
    } else {
        Ok(text)
    }
}
