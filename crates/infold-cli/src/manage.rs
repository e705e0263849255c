//! `infold manage`: folds a task as far as its window requires.

use clap::Args;
use infold::summarizer::Extractive;
use infold::{Config, FoldMap, ManageOutcome, SkipReason, manage, rehearse};
use infold_store::{Contexts, Log, Metadata, Trigger};

use crate::error::{CliError, CliResult};
use crate::fold::{cannot_fold, describe_step, veto_error};
use crate::fold_options::{FoldOptions, TaskModel};
use crate::model_access::ModelAccess;
use crate::output::{DIM, Output, number, paint, warn};
use crate::picture::draw;
use crate::steps::{open, short};

/// The arguments of `infold manage`.
#[derive(Debug, Args)]
pub struct ManageArgs {
    /// The task
    #[arg(default_value = "@")]
    pub task: String,
    #[command(flatten)]
    pub options: FoldOptions,
    /// Only print what would be folded; calls no summarizer and no hook
    #[arg(long)]
    pub dry_run: bool,
    /// Fold even if the view is below the threshold
    #[arg(long)]
    pub force: bool,
}

/// `infold manage`
pub fn run(contexts: &Contexts, config: &Config, args: &ManageArgs, out: &mut Output) -> CliResult {
    if args.dry_run {
        dry_run(contexts, config, args, out)
    } else {
        fold(contexts, config, args, out)
    }
}

fn dry_run(contexts: &Contexts, config: &Config, args: &ManageArgs, out: &mut Output) -> CliResult {
    let log = contexts.read(contexts.resolve(&args.task)?)?;
    let model = task_model(contexts, &log)?;
    let mut setup = args
        .options
        .setup(config, model, ModelAccess::default(), out.is_json())?;
    setup.setup.aim.forced = args.force;
    let outcome = rehearse(&log, &setup.setup.aim, &mut Extractive);
    let outcome = outcome.map_err(|error| cannot_fold(error, "--window"))?;
    print_outcome(&outcome, None, "would be ", out)
}

fn fold(contexts: &Contexts, config: &Config, args: &ManageArgs, out: &mut Output) -> CliResult {
    let json = out.is_json();
    let mut open = open(contexts, &args.task, json)?;
    let access = ModelAccess {
        contexts: Some(contexts),
        prefer_model: true,
        ..ModelAccess::default()
    };
    let model = task_model(contexts, open.writer.log())?;
    let mut setup = args.options.setup(config, model, access, json)?;
    let setup = &mut setup.setup;
    setup.aim.forced = args.force;
    if args.force {
        setup.aim.trigger = Trigger::Manual;
    }
    let before = open.writer.log().state().step();
    let outcome = manage(
        &mut open.writer,
        &setup.aim,
        &mut *setup.summarizer,
        &setup.hooks,
    );
    // A failed pass may have recorded events too.
    warn(json, contexts.settle(open.id, &open.writer));
    let log = open.writer.log();
    let is_changed = log.state().step() != before;
    let explain = |mut error: CliError| {
        if is_changed {
            error = error.after("the folds made so far stay; `infold undo TASK` reverts them");
        }
        error.about(&open.name)
    };
    let outcome = outcome.map_err(|error| explain(cannot_fold(error, "--window")))?;
    let picture = FoldMap::of(log.state(), log).map_err(|error| explain(error.into()))?;
    let picture = picture.scaled(setup.aim.factor);
    print_outcome(&outcome, Some(&picture), "", out)?;
    if !json && !outcome.steps.is_empty() {
        out.line(paint(
            DIM,
            format!("undo: infold undo {}", short(&args.task)),
        ))?;
    }
    // Standard output comes first, because the error refers to it.
    out.finish()?;
    veto_error(&outcome, &setup.aim.budget).map_or(Ok(()), Err)
}

/// Returns the model of a task with its learned values.
pub fn task_model(contexts: &Contexts, log: &Log) -> CliResult<TaskModel> {
    let metadata = Metadata::read(log.dir())?;
    let model = metadata
        .llm_provider
        .as_deref()
        .zip(metadata.model.as_deref());
    let factor = match model {
        Some((provider, model)) => infold::usage::learned_factor(contexts, provider, model)?,
        None => None,
    };
    Ok(TaskModel {
        provider: metadata.llm_provider,
        name: metadata.model,
        window: metadata.context_length,
        is_detected: false,
        factor,
    })
}

fn print_outcome(
    outcome: &ManageOutcome,
    picture: Option<&FoldMap>,
    would: &str,
    out: &mut Output,
) -> CliResult {
    if out.is_json() {
        return out.object(&outcome.json());
    }
    let (before, after) = (number(outcome.before.tokens), number(outcome.after.tokens));
    if outcome.steps.is_empty() {
        let reason = why_nothing(outcome);
        return out.line(format!(
            "nothing {would}folded: {reason}; view {before} tokens"
        ));
    }
    for line in picture.map(draw).into_iter().flatten() {
        out.line(line)?;
    }
    for step in &outcome.steps {
        out.line(describe_step(step))?;
    }
    for error in &outcome.errors {
        out.line(format!("{:<10}{error}", "problem"))?;
    }
    for line in &outcome.dropped {
        out.line(format!(
            "{:<10}an unsupported line of the summary: {line}",
            "dropped"
        ))?;
    }
    out.line(format!("{:<10}{before} → {after} tokens", "view"))
}

fn why_nothing(outcome: &ManageOutcome) -> String {
    match outcome.skipped {
        None => "the view is below the threshold".to_owned(),
        Some(SkipReason::Waiting) => {
            "the last pass did not help or was undone; the next one waits until the view grows"
                .to_owned()
        }
        Some(SkipReason::Floor) => {
            "what cannot be folded nearly fills the threshold; raise the threshold or the window"
                .to_owned()
        }
        Some(SkipReason::Vetoed) => outcome.errors.join("; "),
        Some(SkipReason::Nothing) => "there is nothing to fold".to_owned(),
    }
}
