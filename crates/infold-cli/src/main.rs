//! The `infold` command: parses the command line, calls the libraries, prints and exits.

mod args;
mod help;
mod error;
mod output;
mod progress;
mod input;
mod signals;
mod task;
mod inspect;
mod recall;
mod state;
mod layers;
mod search;
mod tools;
mod steps;
mod checkpoint;
mod diff_lines;
mod redact;
mod task_lock;
mod doctor;
mod secrets;
mod count;
mod models;
mod config;
mod import;
mod export;
mod fold_options;
mod model_access;
mod picture;
mod fold;
mod manage;
mod condense;
mod eval;
mod gain;
mod call_runtime;
mod live_reply;
mod ask;
mod reply_calls;
mod enqueue;
mod run;
mod work;
mod model_call;
mod provider;
mod serve;
mod mcp;
mod setup;
mod fetch;
mod source_report;
mod agent_sessions;
mod completions;

use std::process::ExitCode;

use args::{Cli, CliCommand, Color};
use clap::FromArgMatches as _;
use error::{CliError, CliResult};
use infold::checkpoint::git::CheckpointSettings;
use infold::step::Step;
use infold::{Config, Hooks};
use infold_store::Contexts;
use output::Output;

fn main() -> ExitCode {
    signals::handle_file_size_limit();
    signals::hide_memory();
    if setup::first_run::is_first_run() {
        let mut out = Output::new(false);
        return match first_run(&mut out).and_then(|()| out.finish()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => error.report(false),
        };
    }
    let cli = match parse_command_line() {
        Ok(cli) => cli,
        Err(error) => return report_usage_error(&error),
    };
    let choice = match cli.color {
        Color::Auto => anstream::ColorChoice::Auto,
        Color::Always => anstream::ColorChoice::Always,
        Color::Never => anstream::ColorChoice::Never,
    };
    choice.write_global();
    let mut out = Output::new(cli.json);
    let json = cli.json;
    match run(cli, &mut out).and_then(|()| out.finish()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(json),
    }
}

/// Prints an overview, with the configuration and the directory that a command without options would use.
fn first_run(out: &mut Output) -> CliResult {
    let named = |variable| std::env::var_os(variable).map(std::path::PathBuf::from);
    let named = work::NamedFiles {
        contexts: named("INFOLD_CONTEXTS"),
        config: named("INFOLD_CONFIG"),
        durability: args::Fsync::Turn,
    };
    let config = config::load(named.config.as_deref(), named.contexts.clone(), false)?;
    let base = config.context_storage.base_dir.value.clone();
    let contexts = Contexts::new(base, infold_store::Durability::Turn);
    setup::first_run::print(&contexts, &config, &named, out)
}

fn parse_command_line() -> Result<Cli, clap::Error> {
    let mut command = help::command();
    let mut matches = command.try_get_matches_from_mut(std::env::args_os())?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Prints clap's message, as JSON with `--json`.
fn report_usage_error(error: &clap::Error) -> ExitCode {
    let json = std::env::args_os().any(|arg| arg == "--json");
    if json && error.use_stderr() {
        return clap_error(&error.to_string()).report(true);
    }
    // A closed pipe is not an error.
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { 2 } else { 0 })
}

/// Converts clap's text into an error and a hint of one line each.
fn clap_error(text: &str) -> CliError {
    let lines = || text.lines().map(str::trim);
    let error: Vec<&str> = lines().take_while(|line| !line.is_empty()).collect();
    let tip = lines().find_map(|line| line.strip_prefix("tip: "));
    CliError::usage(error.join(" ").trim_start_matches("error: "))
        .hint(tip.unwrap_or("`infold --help` lists the commands"))
}

/// Returns the configuration that a command reads.
fn load_config(cli: &Cli) -> CliResult<Config> {
    match &cli.command {
        CliCommand::Completions { .. } => Ok(Config::default()),
        // What setup wrote into the configuration may be what has to be taken back.
        CliCommand::Setup(args) if args.is_undo() => Ok(Config::default()),
        _ => config::load(cli.config.as_deref(), cli.contexts.clone(), cli.json),
    }
}

fn run(cli: Cli, out: &mut Output) -> CliResult {
    // `infold config` reports errors in the configuration itself.
    if let CliCommand::Config(args) = &cli.command {
        return config::run(args, cli.config.as_deref(), cli.contexts, out);
    }
    let named_root = cli.contexts.clone();
    let named = &work::NamedFiles {
        contexts: cli.contexts.clone(),
        config: cli.config.clone(),
        durability: cli.durability,
    };
    let is_named = named_root.is_some();
    let config = &load_config(&cli)?;
    let base = config.context_storage.base_dir.value.clone();
    if is_named && cli.command.needs_tasks() && !base.is_dir() {
        let text = format!(
            "there are no tasks in {}: no such directory",
            base.display()
        );
        return Err(CliError::usage(text)
            .hint("--contexts DIR or INFOLD_CONTEXTS sets the directory of the tasks"));
    }
    let warn: fn(&str) = if cli.json {
        |text| CliError::store(text).warn(true)
    } else {
        |text| CliError::store(text).warn(false)
    };
    let hooks = &Hooks::of(config);
    let contexts = Contexts::new(base, cli.durability.into()).telling(warn);
    let contexts = contexts.redacting(config.redact.value);
    let contexts = &contexts.keeping_files(CheckpointSettings {
        home: std::env::home_dir(),
        config_home: std::env::var_os("XDG_CONFIG_HOME").map(Into::into),
        ..CheckpointSettings::default()
    });
    match cli.command {
        CliCommand::Count(args) => count::run(config, &args, out),
        CliCommand::Models(args) => models::run(contexts, config, &args, out),
        CliCommand::Config(_) => Ok(()),
        CliCommand::Import(args) => import::import(contexts, config, &args, out),
        CliCommand::Export(args) => export::export(contexts, &args, out),
        CliCommand::Fold(args) => fold::run(config, &args, out),
        CliCommand::Manage(args) => manage::run(contexts, config, &args, out),
        CliCommand::Ask(args) => ask::ask(contexts, config, &args, out),
        CliCommand::Send(args) => ask::send(contexts, config, &args, out),
        CliCommand::Run(args) => run::run(contexts, config, &args, out),
        CliCommand::Enqueue(args) => enqueue::run(contexts, config, &args, out),
        CliCommand::Work(args) => work::run(contexts, config, &args, named, out),
        CliCommand::Serve(args) => serve::serve(contexts, config, &args, out),
        CliCommand::Wrap(args) => match serve::wrap(contexts, config, &args)? {
            0 => Ok(()),
            code => std::process::exit(code.into()),
        },
        CliCommand::Setup(args) => setup::run(config, named, &args, out),
        CliCommand::Mcp(args) => mcp::run(contexts, config, &args, named_root, out),
        CliCommand::Fetch(args) => fetch::run(contexts, config, &args, out),
        CliCommand::Provider(command) => provider::run(config, &command, out),
        CliCommand::Eval(args) => eval::run(config, &args, out),
        CliCommand::Gain(args) => gain::run(contexts, config, &args, out),
        CliCommand::Task(command) => task::run(contexts, config, command, out),
        CliCommand::Log(args) => inspect::log(contexts, &args, out),
        CliCommand::View(args) => inspect::view(contexts, &args, out),
        CliCommand::Folds(args) => inspect::folds(contexts, &args, out),
        CliCommand::Search(args) => search::run(contexts, &args, out),
        CliCommand::Recall(args) => recall::recall(contexts, &args, out),
        CliCommand::State(args) => state::run(contexts, &args, out),
        CliCommand::Layers(command) => layers::run(contexts, config, &command, out),
        CliCommand::Tools(command) => tools::run(contexts, config, &command, out),
        CliCommand::Truncate { task, fraction } => {
            steps::take(contexts, hooks, &task, &Step::Truncate { fraction }, out)
        }
        CliCommand::Condense(args) => condense::run(contexts, config, &args, out),
        CliCommand::Mask { task, seq, part } => {
            steps::take(contexts, hooks, &task, &Step::Mask { seq, part }, out)
        }
        CliCommand::Unfold { task, fold } => {
            steps::take(contexts, hooks, &task, &Step::Unfold { fold }, out)
        }
        CliCommand::Rewind(args) => steps::rewind(contexts, &args, out),
        CliCommand::Undo(args) => steps::undo(contexts, &args, &Step::Undo, out),
        CliCommand::Redo(args) => steps::undo(contexts, &args, &Step::Redo, out),
        CliCommand::Checkpoint(args) => checkpoint::run(contexts, &args, out),
        CliCommand::Diff(args) => checkpoint::diff(contexts, &args, out),
        CliCommand::Fork { task, at } => steps::fork(contexts, &task, at, out),
        CliCommand::Pin(args) => steps::pin(contexts, args, out),
        CliCommand::Unpin { task, pinned } => steps::unpin(contexts, &task, pinned, out),
        CliCommand::Redact(args) => redact::run(contexts, &args, out),
        CliCommand::Verify { task } => doctor::verify(contexts, task.as_deref(), out),
        CliCommand::Doctor {
            secrets: true,
            task,
            ..
        } => secrets::find(contexts, task.as_deref(), out),
        CliCommand::Doctor { repair, .. } => doctor::doctor(contexts, repair, out),
        CliCommand::Completions { shell } => out.raw(completions::script(shell).as_bytes()),
    }
}
