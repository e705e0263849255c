//! `infold layers`: builds the document that a model is shown of a task's layered state.

use clap::{Args, Subcommand};
use infold::config::RelevanceMethod;
use infold::connect::{self, ConnectError};
use infold::layers::model::{BuiltDocument, Verdict};
use infold::layers::{ContextError, ContextRequest, VectorSource, build_context_with, built_json};
use infold::models::UNKNOWN_WINDOW;
use infold::show::LogSnapshot;
use infold::{Config, Connection};
use infold_log::steer::Target;
use infold_provider::RetryPolicy;
use infold_store::{Contexts, now};

use crate::call_runtime::CallRuntime;
use crate::error::{CliError, CliResult};
use crate::fold_options::parse_tokens;
use crate::output::{Output, note, number};
use crate::steps::short;

/// A command of `infold layers`.
#[derive(Debug, Subcommand)]
pub enum LayersCommand {
    /// Print the document that a model is shown of a task's state
    Build(BuildArgs),
}

/// The arguments of `infold layers build`.
#[derive(Debug, Args)]
pub struct BuildArgs {
    /// The task
    #[arg(default_value = "@")]
    task: String,
    /// How many tokens it may take, such as 4k; nine tenths of them are used
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens)]
    max_tokens: Option<u64>,
    /// Print each item: in or out, why, and its tokens
    #[arg(long)]
    explain: bool,
    /// As it was right after a message, or an event such as e3, or at a time
    #[arg(long, value_name = "SEQ|EVENT|TIME", value_parser = infold::step::target)]
    at: Option<Target>,
}

/// `infold layers`
pub fn run(
    contexts: &Contexts,
    config: &Config,
    command: &LayersCommand,
    out: &mut Output,
) -> CliResult {
    let LayersCommand::Build(args) = command;
    let log = contexts.read(contexts.resolve(&args.task)?)?;
    let seen = LogSnapshot::new(log, args.at);
    let seen = seen.map_err(|error| CliError::from(error).about(&short(&args.task)))?;
    let configured = || config.layers.max_tokens(UNKNOWN_WINDOW);
    let request = ContextRequest {
        max_tokens: args.max_tokens.unwrap_or_else(configured),
        now: now(),
        config: &config.layers,
    };
    let (built, problem) = build(config, &seen, &request);
    if let Some(problem) = problem {
        note(out.is_json(), ranked_by_words(&problem));
    }
    let built = built.map_err(|error| match error {
        ContextError::Build(error) => {
            CliError::no(error).hint("raise --max-tokens or `layers.max_tokens`")
        }
        ContextError::Log(error) => error.into(),
    })?;
    if out.is_json() {
        return out.object(&built_json(&built));
    }
    if args.explain {
        return explain(&built, out);
    }
    out.raw(built.document().as_bytes())
}

/// Builds the document, with embeddings of the provider if they are configured; also returns the reason if there are
/// none.
fn build(
    config: &Config,
    seen: &LogSnapshot,
    request: &ContextRequest<'_>,
) -> (Result<BuiltDocument, ContextError>, Option<String>) {
    let build = |source: &mut VectorSource<'_>| {
        let built = build_context_with(&seen.log, &seen.shown, request, source);
        (built, source.problem.take())
    };
    if config.layers.relevance.value != RelevanceMethod::Embeddings {
        return build(&mut VectorSource::cached());
    }
    match connected(config) {
        Ok((_runtime, connection)) => {
            let embed = connection.embedder(&config.layers);
            build(&mut VectorSource::asking(&embed))
        }
        // The cached vectors may suffice.
        Err(error) => {
            let (built, problem) = build(&mut VectorSource::cached());
            (built, problem.map(|_| error))
        }
    }
}

/// Connects to the provider in use.
fn connected(config: &Config) -> Result<(CallRuntime, Connection), String> {
    let failed = |error: ConnectError| error.to_string();
    let provider = connect::provider(config, None, None, None).map_err(failed)?;
    let runtime = CallRuntime::new(RetryPolicy::default());
    let runtime = runtime.map_err(|_| "there are no threads".to_owned())?;
    let connection = connect::connection(runtime.connector(), config, &provider, "");
    Ok((runtime, connection.map_err(failed)?))
}

/// Returns the note that relevance is by words, with the reason.
pub fn ranked_by_words(why: &str) -> String {
    format!("relevance is by words, without embeddings: {why}")
}

fn explain(built: &BuiltDocument, out: &mut Output) -> CliResult {
    let rows = built.decisions.iter().map(|decision| {
        let relevance = decision.relevance;
        [
            format!("{} {}", decision.field.path(), decision.index),
            number(decision.tokens),
            relevance.map_or(String::new(), |one| format!("{one:.2}")),
            decision.field.part().name().to_owned(),
            reason(&decision.verdict),
        ]
    });
    let head = ["item", "tokens", "relevance", "part", "verdict"];
    let rows: Vec<[String; 5]> = rows.collect();
    out.table(head, rows, &[1, 2])?;
    out.line(format!(
        "{} of {} tokens",
        number(built.tokens),
        number(built.limit)
    ))
}

fn reason(verdict: &Verdict) -> String {
    match verdict {
        Verdict::In => "in".to_owned(),
        Verdict::Condensed { from } => format!("in, condensed from {} tokens", number(*from)),
        Verdict::NoRoom { left } => format!("out: {} tokens were left", number(*left)),
        Verdict::Irrelevant => "out: matches the goal too little".to_owned(),
    }
}
