//! `infold work`: carries out the tasks of the queue, each in a process of its own.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use clap::{Args, ValueEnum as _};
use infold::Config;
use infold_store::{Contexts, host};
use infold_work::{RunEnd, Worker, WorkerEvent, WorkerSettings};
use serde_json::json;
use uuid::Uuid;

use crate::args::Fsync;
use crate::error::{CliError, CliResult};
use crate::output::{Output, note, number};
use crate::signals::Interrupt;
use crate::source_report::report_end;
use crate::steps::short;

/// The arguments of `infold work`.
#[derive(Debug, Args)]
pub struct WorkArgs {
    /// How many tasks at a time [default: the configured number, else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub concurrency: Option<u64>,
    /// End when there is nothing to do
    #[arg(long)]
    pub once: bool,
    /// Do not keep the files of workspaces
    #[arg(long)]
    pub no_checkpoints: bool,
}

/// The files that were named on the command line, for the processes of tasks.
pub struct NamedFiles {
    /// The directory of the tasks.
    pub contexts: Option<PathBuf>,
    /// The configuration file.
    pub config: Option<PathBuf>,
    /// When writes are synced.
    pub durability: Fsync,
}

/// `infold work`
pub fn run(
    contexts: &Contexts,
    config: &Config,
    args: &WorkArgs,
    named: &NamedFiles,
    out: &mut Output,
) -> CliResult {
    let program = std::env::current_exe()
        .map_err(|error| CliError::store(format!("this program cannot be found: {error}")))?;
    let interrupt = Interrupt::listen();
    let spawn = |task: Uuid, owner: &str, attempts: u32| -> std::io::Result<Child> {
        let mut command = Command::new(&program);
        let root = named.contexts.as_deref().unwrap_or(contexts.root());
        command.arg("--contexts").arg(root);
        if let Some(file) = &named.config {
            command.arg("--config").arg(file);
        }
        if let Some(when) = named.durability.to_possible_value() {
            command.arg("--durability").arg(when.get_name());
        }
        command.args(["run", "--claimed", &task.to_string(), "--lease", owner]);
        command.args(["--attempt", &attempts.to_string()]);
        command.args(args.no_checkpoints.then_some("--no-checkpoints"));
        // Ctrl-C reaches this process alone, which then asks the others to end.
        command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
    };
    let worker = Worker {
        contexts,
        config: &config.work,
        settings: WorkerSettings {
            concurrency: args
                .concurrency
                .map_or(config.work.concurrency(), |n| n as usize),
            once: args.once,
            host: host(),
        },
        spawn: &spawn,
        is_stopped: &|| interrupt.is_set(),
    };
    let mut printed = Ok(());
    let worked = worker.run(&mut |event| {
        let done = tell(contexts, config, &event, out);
        if printed.is_ok() {
            printed = done;
        }
    });
    worked.map_err(|error| match error {
        infold_work::WorkerError::Task(error) => CliError::from(error),
        error => CliError::store(error),
    })?;
    printed
}

/// Prints events; with `--json` the end of each task as an object.
fn tell(
    contexts: &Contexts,
    config: &Config,
    event: &WorkerEvent<'_>,
    out: &mut Output,
) -> CliResult {
    let json = out.is_json();
    match event {
        WorkerEvent::Started { task, pid } => {
            note(
                json,
                format!("{} started in process {pid}", short(&task.to_string())),
            );
        }
        WorkerEvent::Ended { task, .. } => {
            let id = task.to_string();
            let Some(row) = contexts.row(*task)? else {
                return Ok(());
            };
            let object = json!({
                "uuid": id, "status": row.status.to_string(), "error": row.error_message,
                "tokens": row.counters.tokens, "cost": row.counters.cost as f64 / 1e6,
            });
            let error = row.error_message.map(|error| format!(": {error}"));
            let text = format!(
                "{id} {}{} ({} tokens)",
                row.status,
                error.unwrap_or_default(),
                number(row.counters.tokens)
            );
            out.result(&object, text)?;
            out.finish()?;
        }
        WorkerEvent::GivenUp { task, end } => {
            report_end(contexts, config, *task, end, json);
            let text = match end {
                RunEnd::Retried { error, wait } => {
                    format!("{error}; it is tried again in {} s", wait.as_secs())
                }
                RunEnd::Failed { error } => error.clone(),
                _ => return Ok(()),
            };
            note(json, format!("{}: {text}", short(&task.to_string())));
        }
        WorkerEvent::Problem { error } => note(json, format!("{error}; trying again")),
        WorkerEvent::Stopping => note(json, "finishing the steps under way"),
    }
    Ok(())
}
