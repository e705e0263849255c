//! `infold mcp`: serves the history to an agent as tools, on standard input and output.

mod agent_config;

pub use agent_config::command_entry;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use infold::checkpoint::FileHistory;
use infold::step::StepContext;
use infold::{Config, Hooks};
use infold_serve::mcp::{History, McpScope, StdioError, StepTaker, serve_stdio};
use infold_store::Contexts;
use tracing_subscriber::filter::LevelFilter;

use crate::error::{CliError, CliResult};
use crate::output::{Output, note, report_repairs, warn};
use crate::serve::start_tracing;
use crate::task_lock::acquire;
use agent_config::{DEFAULT_ADDRESS, McpAgent, address_entry};
use infold_setup::ServerEntry;

/// The arguments of `infold mcp`.
#[derive(Debug, Args)]
pub struct McpArgs {
    /// Serve one task: its id, the beginning of it, or @ for the newest
    #[arg(long, value_name = "TASK", conflicts_with_all = ["dir", "all"])]
    task: Option<String>,
    /// Serve the tasks whose agent worked in this directory [default: the current one]
    #[arg(long, value_name = "DIR", conflicts_with = "all")]
    dir: Option<PathBuf>,
    /// Serve all tasks
    #[arg(long)]
    all: bool,
    /// Also offer tools that write: pin, note, and those that change the task's state
    #[arg(long)]
    write: bool,
    /// Print what to add to the configuration of an agent, and exit
    #[arg(long, value_name = "AGENT")]
    print_config: Option<McpAgent>,
    /// Print it for a running `infold serve` instead, at this address
    #[arg(long, value_name = "URL", requires = "print_config", conflicts_with = "write",
        num_args = 0..=1, default_missing_value = DEFAULT_ADDRESS)]
    http: Option<String>,
}

/// `infold mcp`; `root` is the directory of tasks if the command line names it.
pub fn run(
    contexts: &Contexts,
    config: &Config,
    args: &McpArgs,
    root: Option<PathBuf>,
    out: &mut Output,
) -> CliResult {
    if let Some(agent) = args.print_config {
        return agent_config::print(agent, &args.entry(root)?, out);
    }
    start_tracing(None, LevelFilter::ERROR)?;
    if std::io::stdin().is_terminal() {
        let text = "agents start this command and talk to it; `infold mcp --print-config AGENT` prints what to tell them";
        note(out.is_json(), text);
    }
    let history = History::new(
        contexts.clone(),
        args.scope()?,
        args.steps(contexts, config),
    );
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|error| CliError::store(format!("no threads: {error}")))?;
    let served = runtime.block_on(serve_stdio(history));
    // A thread may still wait for standard input.
    runtime.shutdown_background();
    Ok(served?)
}

impl McpArgs {
    fn scope(&self) -> CliResult<McpScope> {
        if self.all {
            return Ok(McpScope::All);
        }
        if let Some(task) = &self.task {
            return Ok(McpScope::Task(task.clone()));
        }
        let dir = std::path::absolute(self.dir.as_deref().unwrap_or(".".as_ref()));
        let dir = dir.map_err(|error| {
            CliError::usage(format!("the current directory is unknown: {error}"))
                .hint("--dir DIR, --task TASK or --all says which tasks to serve")
        })?;
        // Absolute paths keep a trailing `.`, which no agent records.
        Ok(McpScope::Directory(dir.components().collect()))
    }

    fn steps(&self, contexts: &Contexts, config: &Config) -> Option<StepTaker> {
        let (contexts, transitions) = (contexts.clone(), config.layers.transitions.clone());
        let steps: StepTaker = Arc::new(move |task, step| {
            let (mut writer, repairs) = acquire(|| contexts.write(task))?;
            report_repairs(false, &repairs);
            let context = StepContext {
                hooks: &Hooks::default(),
                transitions: &transitions,
                files: &FileHistory::new(&contexts),
            };
            let taken = step.take(&mut writer, context)?;
            // The step is recorded; the next write updates the registry too.
            warn(false, contexts.settle(task, &writer));
            Ok(taken.text)
        });
        self.write.then_some(steps)
    }

    /// Returns how an agent reaches the server that these arguments describe.
    fn entry(&self, root: Option<PathBuf>) -> CliResult<ServerEntry> {
        if let Some(address) = &self.http {
            let scope = match (&self.task, &self.dir) {
                (Some(task), _) => Some(("task", task.clone())),
                (None, Some(_)) => match self.scope()? {
                    McpScope::Directory(dir) => Some(("dir", dir.display().to_string())),
                    _ => None,
                },
                (None, None) => None,
            };
            return Ok(address_entry(address, scope));
        }
        let mut words = vec!["mcp".to_owned()];
        let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
        if let Some(task) = &self.task {
            option("--task", task.clone());
        }
        if let (Some(_), McpScope::Directory(dir)) = (&self.dir, self.scope()?) {
            option("--dir", dir.display().to_string());
        }
        if let Some(root) = root {
            let root = std::path::absolute(&root).unwrap_or(root);
            option("--contexts", root.display().to_string());
        }
        let flags = [("--all", self.all), ("--write", self.write)];
        words.extend(
            flags
                .into_iter()
                .filter(|(_, set)| *set)
                .map(|(flag, _)| flag.to_owned()),
        );
        Ok(command_entry(words))
    }
}

impl From<StdioError> for CliError {
    fn from(error: StdioError) -> CliError {
        CliError::no(error).hint(
            "agents start this command; `infold mcp --print-config AGENT` prints what to tell them",
        )
    }
}
