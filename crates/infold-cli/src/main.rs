//! The `infold` command: reads the command line, prints, exits. What it does is in the libraries.

mod args;
mod failure;
mod out;
mod progress;
mod input;
mod interrupt;
mod task;
mod look;
mod steps;
mod redact;
mod holder;
mod checkup;
mod secrets;
mod count;
mod models;
mod config;
mod transfer;
mod settings;
mod pen;
mod picture;
mod fold;
mod manage;
mod condense;
mod eval;
mod connect;
mod live;
mod ask;
mod called;
mod ready;
mod provider;
mod serve;
mod sessions;
mod completions;

use std::process::ExitCode;

use args::{Cli, Color, Command};
use clap::Parser as _;
use failure::{Failure, Kind};
use infold::step::Step;
use infold::{Config, Hooks};
use infold_store::Contexts;
use out::Out;

fn main() -> ExitCode {
    interrupt::outlive_file_size_limit();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let choice = match cli.color {
        Color::Auto => anstream::ColorChoice::Auto,
        Color::Always => anstream::ColorChoice::Always,
        Color::Never => anstream::ColorChoice::Never,
    };
    choice.write_global();
    let mut out = Out::new(cli.json);
    let json = cli.json;
    match run(cli, &mut out).and_then(|()| out.finish()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(json),
    }
}

/// A wrong command line, told in JSON too if that was asked for.
fn usage(error: &clap::Error) -> ExitCode {
    let json = std::env::args_os().any(|arg| arg == "--json");
    if json && error.use_stderr() {
        return told(&error.to_string()).report(true);
    }
    // A closed pipe is no news.
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { 2 } else { 0 })
}

/// What clap says, as an error and a hint of one line each.
fn told(text: &str) -> Failure {
    let lines = || text.lines().map(str::trim);
    let error: Vec<&str> = lines().take_while(|line| !line.is_empty()).collect();
    let error = error.join(" ");
    let tip = lines().find_map(|line| line.strip_prefix("tip: "));
    Failure::new(Kind::Usage, error.trim_start_matches("error: "))
        .hint(tip.unwrap_or("`infold --help` lists the commands"))
}

fn run(cli: Cli, out: &mut Out) -> Result<(), Failure> {
    // A broken configuration is told of by the command that looks at it.
    if let Command::Config(args) = &cli.command {
        return config::run(args, cli.config.as_deref(), cli.contexts, out);
    }
    let is_named = cli.contexts.is_some();
    let config = &match cli.command {
        Command::Completions { .. } => Config::default(),
        _ => config::load(cli.config.as_deref(), cli.contexts, cli.json)?,
    };
    let base = config.context_storage.base_dir.value.clone();
    if is_named && cli.command.looks_at_tasks() && !base.is_dir() {
        let text = format!(
            "there are no tasks in {}: there is no such directory",
            base.display()
        );
        return Err(Failure::new(Kind::Usage, text)
            .hint("--contexts DIR or INFOLD_CONTEXTS says where the tasks are"));
    }
    let teller: fn(&str) = match cli.json {
        true => |text| Failure::new(Kind::Store, text).warn(true),
        false => |text| Failure::new(Kind::Store, text).warn(false),
    };
    let hooks = &Hooks::of(config);
    let contexts = Contexts::new(base, cli.durability.into()).telling(teller);
    let contexts = &contexts.redacting(config.redact.value);
    match cli.command {
        Command::Count(args) => count::run(config, &args, out),
        Command::Models(args) => models::run(contexts, config, &args, out),
        Command::Config(_) => Ok(()),
        Command::Import(args) => transfer::import(contexts, config, &args, out),
        Command::Export(args) => transfer::export(contexts, &args, out),
        Command::Fold(args) => fold::run(config, &args, out),
        Command::Manage(args) => manage::run(contexts, config, &args, out),
        Command::Ask(args) => ask::ask(contexts, config, &args, out),
        Command::Send(args) => ask::send(contexts, config, &args, out),
        Command::Serve(args) => serve::serve(contexts, config, &args, out),
        Command::Wrap(args) => match serve::wrap(contexts, config, &args)? {
            0 => Ok(()),
            code => std::process::exit(code.into()),
        },
        Command::Provider(command) => provider::run(config, &command, out),
        Command::Eval(args) => eval::run(config, &args, out),
        Command::Task(command) => task::run(contexts, config, command, out),
        Command::Log(look) => look::log(contexts, &look, out),
        Command::View(args) => look::view(contexts, &args, out),
        Command::Folds(look) => look::folds(contexts, &look, out),
        Command::Recall { task, range } => look::recall(contexts, &task, range, out),
        Command::Truncate { task, fraction } => {
            steps::take(contexts, hooks, &task, &Step::Truncate { fraction }, out)
        }
        Command::Condense(args) => condense::run(contexts, config, &args, out),
        Command::Mask { task, seq, part } => {
            let seq = seq.0;
            steps::take(contexts, hooks, &task, &Step::Mask { seq, part }, out)
        }
        Command::Unfold { task, fold } => {
            steps::take(contexts, hooks, &task, &Step::Unfold { fold: fold.0 }, out)
        }
        Command::Rewind(args) => steps::rewind(contexts, &args, out),
        Command::Undo { task } => steps::take(contexts, hooks, &task, &Step::Undo, out),
        Command::Redo { task } => steps::take(contexts, hooks, &task, &Step::Redo, out),
        Command::Fork { task, at } => steps::fork(contexts, &task, at, out),
        Command::Pin(args) => steps::pin(contexts, &args, out),
        Command::Unpin { task, pinned } => steps::unpin(contexts, &task, pinned, out),
        Command::Redact(args) => redact::run(contexts, &args, out),
        Command::Verify { task } => checkup::verify(contexts, task.as_deref(), out),
        Command::Doctor {
            secrets: true,
            task,
            ..
        } => secrets::find(contexts, task.as_deref(), out),
        Command::Doctor { repair, .. } => checkup::doctor(contexts, repair, out),
        Command::Completions { shell } => out.raw(completions::script(shell).as_bytes()),
    }
}
