use clap::Args;
use infold::summarizer::Extractive;
use infold::{Config, FoldMap, ManageOutcome, SkipReason, manage, rehearse};
use infold_store::{Contexts, Log, Metadata, Trigger};

use crate::failure::Failure;
use crate::fold::{cannot_fold, told, vetoed};
use crate::out::{DIM, Out, number, paint, warn};
use crate::pen::Reach;
use crate::picture::draw;
use crate::settings::{Choice, Known};
use crate::steps::{open, short};

/// What `infold manage` takes.
#[derive(Debug, Args)]
pub struct ManageArgs {
    /// The task
    #[arg(default_value = "@")]
    pub task: String,
    #[command(flatten)]
    pub choice: Choice,
    /// Only say what would be folded; no summarizer is asked, no hook run
    #[arg(long)]
    pub dry_run: bool,
    /// Fold even if there is still room
    #[arg(long)]
    pub force: bool,
}

/// `infold manage`
pub fn run(
    contexts: &Contexts,
    config: &Config,
    args: &ManageArgs,
    out: &mut Out,
) -> Result<(), Failure> {
    match args.dry_run {
        true => rehearsed(contexts, config, args, out),
        false => managed(contexts, config, args, out),
    }
}

fn rehearsed(
    contexts: &Contexts,
    config: &Config,
    args: &ManageArgs,
    out: &mut Out,
) -> Result<(), Failure> {
    let log = contexts.read(contexts.resolve(&args.task)?)?;
    let mut chosen = args.choice.chosen(
        config,
        known(contexts, &log)?,
        Reach::default(),
        out.is_json(),
    )?;
    chosen.setup.aim.forced = args.force;
    let outcome = rehearse(&log, &chosen.setup.aim, &mut Extractive);
    let outcome = outcome.map_err(|error| cannot_fold(error, "--window"))?;
    tell(&outcome, None, "would be ", out)
}

fn managed(
    contexts: &Contexts,
    config: &Config,
    args: &ManageArgs,
    out: &mut Out,
) -> Result<(), Failure> {
    let json = out.is_json();
    let mut open = open(contexts, &args.task, json)?;
    let reach = Reach {
        contexts: Some(contexts),
        usual: true,
        ..Reach::default()
    };
    let known = known(contexts, open.writer.log())?;
    let mut chosen = args.choice.chosen(config, known, reach, json)?;
    chosen.setup.aim.forced = args.force;
    if args.force {
        chosen.setup.aim.trigger = Trigger::Manual;
    }
    let writer = &mut open.writer;
    let before = writer.log().state().step();
    let outcome = manage(
        writer,
        &chosen.setup.aim,
        &mut *chosen.setup.summarizer,
        &chosen.setup.hooks,
    );
    // What was recorded counts, whatever came of it.
    warn(json, contexts.settle(open.id, &open.writer));
    let log = open.writer.log();
    let is_changed = log.state().step() != before;
    let explain = |failure: Failure| match is_changed {
        true => failure
            .after("what was folded until then stands; `infold undo TASK` takes it back")
            .about(&open.name),
        false => failure.about(&open.name),
    };
    let outcome = outcome.map_err(|error| explain(cannot_fold(error, "--window")))?;
    let picture = FoldMap::of(log.state(), log).map_err(|error| explain(error.into()))?;
    let picture = picture.scaled(chosen.setup.aim.factor);
    tell(&outcome, Some(&picture), "", out)?;
    if !json && !outcome.steps.is_empty() {
        out.line(paint(
            DIM,
            format!("undo: infold undo {}", short(&args.task)),
        ))?;
    }
    // What is on standard output comes first, as the failure is about it.
    out.finish()?;
    vetoed(&outcome, &chosen.setup.aim.budget).map_or(Ok(()), Err)
}

/// What a task knows of its model, and what was learned of it.
pub fn known(contexts: &Contexts, log: &Log) -> Result<Known, Failure> {
    let metadata = Metadata::read(log.dir())?;
    let named = metadata
        .llm_provider
        .as_deref()
        .zip(metadata.model.as_deref());
    let factor = match named {
        Some((provider, model)) => infold::usage::learned_factor(contexts, provider, model)?,
        None => None,
    };
    Ok(Known {
        provider: metadata.llm_provider,
        model: metadata.model,
        window: metadata.context_length,
        found: false,
        factor,
    })
}

/// Prints what a pass came to.
fn tell(
    outcome: &ManageOutcome,
    picture: Option<&FoldMap>,
    would: &str,
    out: &mut Out,
) -> Result<(), Failure> {
    if out.is_json() {
        return out.object(&outcome.json());
    }
    if outcome.steps.is_empty() {
        let tokens = number(outcome.before.tokens);
        return out.line(format!(
            "nothing {would}folded: {}; view {tokens} tokens",
            why(outcome)
        ));
    }
    for line in picture.map(draw).into_iter().flatten() {
        out.line(line)?;
    }
    for step in &outcome.steps {
        out.line(told(step))?;
    }
    for error in &outcome.errors {
        out.line(format!("{:<10}{error}", "but"))?;
    }
    for line in &outcome.dropped {
        out.line(format!("{:<10}nobody said: {line}", "dropped"))?;
    }
    let (before, after) = (number(outcome.before.tokens), number(outcome.after.tokens));
    out.line(format!("{:<10}{before} → {after} tokens", "view"))
}

fn why(outcome: &ManageOutcome) -> String {
    match outcome.skipped {
        None => "there is room".to_owned(),
        Some(SkipReason::Waiting) => {
            "the last pass did not help or was undone, so this one waits for the view to grow"
                .to_owned()
        }
        Some(SkipReason::Floor) => {
            "what cannot be folded fills the threshold almost alone; raise the threshold or the window"
                .to_owned()
        }
        Some(SkipReason::Vetoed) => outcome.errors.join("; "),
        Some(SkipReason::Nothing) => "there is nothing to fold".to_owned(),
    }
}
