//! `infold` alone on a terminal: its purpose, the agents here, and the next command.

use std::io::IsTerminal as _;

use infold::Config;
use infold_setup::{Agent, SetupRecord};
use infold_store::Contexts;
use jiff::Timestamp;

use super::{Context, SetupArgs, programs, server};
use crate::config::with_tilde;
use crate::error::CliResult;
use crate::output::{DIM, Output, count, number, paint};
use crate::work::NamedFiles;

/// Returns whether the command was started alone, by a person.
pub fn is_first_run() -> bool {
    std::env::args_os().len() == 1 && std::io::stdout().is_terminal()
}

/// Prints the purpose of Infold, the tasks and agents here, and the next command.
pub fn print(
    contexts: &Contexts,
    config: &Config,
    named: &NamedFiles,
    out: &mut Output,
) -> CliResult {
    out.line("Infold stores everything an agent has said and seen, and folds it to fit the model's window.")?;
    out.line("")?;
    let tasks = contexts.rows_by_activity()?;
    let root = with_tilde(contexts.root().display().to_string());
    let kept = match tasks.first() {
        Some(newest) => {
            let last = age(newest.active_at.unwrap_or(newest.created_at));
            let tasks = count(tasks.len() as u64, "task");
            format!("{tasks} in {root}, the last one {last}")
        }
        None => format!("no tasks yet; they will be in {root}"),
    };
    let args = SetupArgs::default();
    let here = Here::look(config, named, &args);
    for (name, text) in [
        ("tasks", kept),
        ("agents", here.agents()),
        ("server", here.server.clone()),
    ] {
        out.line(format!("{} {text}", paint(DIM, format!("{name:<7}"))))?;
    }
    out.line("")?;
    let (command, why) = here.next(tasks.is_empty());
    out.line(format!("next    {command:<38} {}", paint(DIM, why)))?;
    for (command, why) in [
        ("infold fold FILE --window 8k", "fold a transcript, offline"),
        ("infold --help", "all commands"),
    ] {
        out.line(format!("        {command:<38} {}", paint(DIM, why)))?;
    }
    Ok(())
}

/// The agents and servers of this machine.
#[derive(Default)]
struct Here {
    found: Vec<Agent>,
    set_up: Vec<Agent>,
    server: String,
    start_command: String,
    is_running: bool,
}

impl Here {
    fn look(config: &Config, named: &NamedFiles, args: &SetupArgs) -> Here {
        // Without a home directory there are no agents to be found, which is no error here.
        let Ok(context) = Context::new(config, named, args) else {
            return Here {
                server: "not looked for, without a home directory".to_owned(),
                ..Here::default()
            };
        };
        let record = SetupRecord::load(&context.state_file).unwrap_or_default();
        let is_found = |agent: &Agent| !programs::find(*agent).is_empty();
        let found: Vec<Agent> = Agent::ALL.into_iter().filter(is_found).collect();
        let set_up = Agent::ALL.into_iter();
        let set_up: Vec<Agent> = set_up
            .filter(|agent| record.of(agent.name()).is_some())
            .collect();
        let is_running = server::is_running(context.port);
        let start_command = server::start_command(context.port, &record);
        let state = if is_running { "running" } else { "not running" };
        Here {
            found,
            set_up,
            server: format!("{state} at {}", context.base),
            start_command,
            is_running,
        }
    }

    fn agents(&self) -> String {
        if self.found.is_empty() {
            return "none of those that `infold setup` knows".to_owned();
        }
        let name = |agent: &Agent| {
            let is_set_up = self.set_up.contains(agent);
            let how = if is_set_up { " (set up)" } else { "" };
            format!("{}{how}", agent.title())
        };
        let names: Vec<String> = self.found.iter().map(name).collect();
        names.join(", ")
    }

    /// Returns the next command, and what it is for.
    fn next(&self, has_no_tasks: bool) -> (String, &'static str) {
        let is_new = |agent: &&Agent| !self.set_up.contains(agent);
        match self.found.iter().find(is_new) {
            Some(_) if self.set_up.is_empty() => (
                "infold setup".to_owned(),
                "shows what would put your agents behind it",
            ),
            _ if !self.set_up.is_empty() && !self.is_running => (
                self.start_command.clone(),
                "starts the server that your agents are set up for",
            ),
            _ if has_no_tasks && self.found.is_empty() => (
                "infold ask 'hello' --provider ollama".to_owned(),
                "a first task; `infold provider list` names others",
            ),
            _ if has_no_tasks => ("infold setup --check".to_owned(), "which agents go through"),
            _ => ("infold gain".to_owned(), "what it saved so far"),
        }
    }
}

/// Says how long ago a time was.
fn age(time: Timestamp) -> String {
    let seconds = Timestamp::now().as_second() - time.as_second();
    let (amount, unit) = match seconds {
        ..60 => return "just now".to_owned(),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    let plural = if amount == 1 { "" } else { "s" };
    format!("{} {unit}{plural} ago", number(amount.unsigned_abs()))
}
