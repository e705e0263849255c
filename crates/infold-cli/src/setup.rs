//! `infold setup`: puts the proxy between the agents of this machine and their models.

mod programs;
mod server;
mod scripted_model;
mod proof;
mod check;
mod undo;
pub mod first_run;
mod report;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use infold::Config;
use infold_setup::{
    Agent, AgentTarget, ApplyError, LockError, Plan, PlanError, ServerEntry, SetupLock,
    SetupRecord, Surroundings, UndoneLines, file_changes, read_file, undo_agent, undo_before_write,
    write_agent,
};
use serde_json::json;

use crate::config::user_directory;
use crate::error::{CliError, CliResult};
use crate::mcp::command_entry;
use crate::output::{DIM, Output, note, one_line, paint, say};
use crate::serve::DEFAULT_PORT;
use crate::work::NamedFiles;
use report::{report_changes, report_refusal};
use server::ServerConfig;

/// How long another setup may take, which may start a server.
const PATIENCE: Duration = Duration::from_secs(5);

/// The arguments of `infold setup`.
#[derive(Debug, Default, Args)]
pub struct SetupArgs {
    /// Change the configuration of these agents, start the server and prove that it works
    #[arg(long, value_name = "AGENT", num_args = 1.., conflicts_with_all = ["undo", "check"])]
    write: Vec<String>,
    /// Do that for every agent that is found
    #[arg(long, conflicts_with_all = ["write", "undo", "check", "prove"])]
    all: bool,
    /// Take everything back, or what was done for these agents
    #[arg(long, value_name = "AGENT", num_args = 0.., conflicts_with_all = ["check", "prove"])]
    undo: Option<Vec<String>>,
    /// Say which agents go through the proxy, which do not, and why; exits with 1 if one does not
    #[arg(long, conflicts_with = "prove")]
    check: bool,
    /// Prove that these agents go through, or all that were set up; changes nothing
    #[arg(long, value_name = "AGENT", num_args = 0.., conflicts_with = "write")]
    prove: Option<Vec<String>>,
    /// Do not prove it after --write
    #[arg(long)]
    no_prove: bool,
    /// Do not start the server
    #[arg(long)]
    no_service: bool,
    /// Leave out the MCP server with search and recall
    #[arg(long)]
    no_mcp: bool,
    /// The port of the proxy [default: the configured one, else 7333]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
}

/// The surroundings and options of one command.
struct Context<'a> {
    home: PathBuf,
    current: PathBuf,
    base: String,
    port: u16,
    mcp: Option<ServerEntry>,
    /// The user's own configuration of Infold.
    config_file: PathBuf,
    /// The configuration that was named on the command line or in the environment.
    named_config: Option<PathBuf>,
    state_file: PathBuf,
    /// The directory of tasks.
    tasks: PathBuf,
    /// Options of the whole program that the server and the MCP server need, too.
    global: Vec<String>,
    args: &'a SetupArgs,
}

/// `infold setup`
pub fn run(config: &Config, named: &NamedFiles, args: &SetupArgs, out: &mut Output) -> CliResult {
    let context = Context::new(config, named, args)?;
    if let Some(names) = &args.undo {
        let named = agents(names)?;
        let (_lock, mut state) = context.lock()?;
        return undo::run(&context, &named, &mut state, out);
    }
    if args.all || !args.write.is_empty() {
        let chosen = if args.all {
            context.found()?
        } else {
            agents(&args.write)?
        };
        return write(&context, &chosen, out);
    }
    SetupLock::remove_leftover(&context.home);
    let state = SetupRecord::load(&context.state_file).map_err(damaged)?;
    if args.check {
        return check::run(&context, &state, out);
    }
    if let Some(names) = &args.prove {
        let named = agents(names)?;
        let is_set_up = |agent: &Agent| state.of(agent.name()).is_some();
        let all = Agent::ALL.into_iter().filter(is_set_up);
        let chosen = if named.is_empty() {
            all.collect()
        } else {
            named
        };
        if chosen.is_empty() {
            return Err(CliError::no("no agent was set up")
                .hint("`infold setup` shows what would be changed"));
        }
        return prove(&context, &chosen, &state, true, out);
    }
    overview(&context, &state, out)
}

fn damaged(error: impl std::fmt::Display) -> CliError {
    CliError::store(error)
        .hint("it says what was changed; the copies beside the files end in .before-infold")
}

fn nothing_found() -> CliError {
    let names: Vec<&str> = Agent::ALL.iter().map(|agent| agent.name()).collect();
    CliError::no("no agent was found on this machine").hint(format!(
        "known are {}; `infold wrap -- AGENT` starts any other",
        names.join(", ")
    ))
}

fn agents(names: &[String]) -> CliResult<Vec<Agent>> {
    let find = |name: &String| {
        Agent::named(name).ok_or_else(|| {
            let known: Vec<&str> = Agent::ALL.iter().map(|agent| agent.name()).collect();
            CliError::usage(format!("no agent `{}` is known", one_line(name)))
                .hint(format!("known are {}", known.join(", ")))
        })
    };
    names.iter().map(find).collect()
}

impl SetupArgs {
    /// Returns whether the command is `--undo`, which must work with a configuration that has an error.
    pub fn is_undo(&self) -> bool {
        self.undo.is_some()
    }
}

impl<'a> Context<'a> {
    fn new(config: &Config, files: &NamedFiles, args: &'a SetupArgs) -> CliResult<Context<'a>> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let home = home.filter(|home| home.is_absolute() && home.is_dir()).ok_or_else(|| {
            CliError::usage("there is no home directory: HOME is not set, or names none")
                .hint("agents keep their configuration there; set HOME, or use `infold wrap -- AGENT`")
        })?;
        let directory = |variable: &str, in_home: &str| {
            user_directory(variable, in_home).unwrap_or_else(|| home.join(in_home).join("infold"))
        };
        let configured = config
            .serve
            .port
            .as_ref()
            .map(|set| set.value)
            .filter(|port| *port != 0);
        let port = args.port.or(configured).unwrap_or(DEFAULT_PORT);
        let named = files.config.as_deref();
        let named = named.filter(|file| !file.as_os_str().is_empty());
        // The server is started in the home directory.
        let absolute = |file: &Path| std::path::absolute(file).unwrap_or(file.to_owned());
        let named = named.map(absolute);
        let named_config = named.clone();
        let named = named.filter(|file| file != Path::new("/dev/null"));
        // The server and the tools have to find the tasks from wherever they are started.
        let mut global = Vec::new();
        if let Some(contexts) = &files.contexts {
            global = vec![
                "--contexts".to_owned(),
                absolute(contexts).display().to_string(),
            ];
        }
        let mcp = [global.clone(), vec!["mcp".to_owned()]].concat();
        Ok(Context {
            base: server::base(port),
            port,
            mcp: (!args.no_mcp).then(|| command_entry(mcp)),
            config_file: named
                .unwrap_or_else(|| directory("XDG_CONFIG_HOME", ".config").join("config.yaml")),
            named_config,
            tasks: absolute(&config.context_storage.base_dir.value),
            state_file: directory("XDG_STATE_HOME", ".local/state").join("setup.json"),
            current: std::env::current_dir().unwrap_or_else(|_| home.clone()),
            home,
            global,
            args,
        })
    }

    /// Calls a function with the surroundings that an agent's configuration depends on.
    fn with_surroundings<T>(&self, work: impl FnOnce(&Surroundings<'_>) -> T) -> T {
        let env = |name: &str| std::env::var(name).ok();
        let read = |file: &Path| match read_file(file) {
            Ok(read) => Ok(read.map(|read| read.text)),
            Err(error) => Err(reason(&error, file)),
        };
        work(&Surroundings {
            home: &self.home,
            current: &self.current,
            env: &env,
            read: &read,
        })
    }

    /// Returns the changes for an agent.
    fn plan(&self, agent: Agent, state: &SetupRecord) -> Result<Plan, PlanError> {
        let former: Vec<&str> = state.agents.iter().map(|one| one.base.as_str()).collect();
        let to = AgentTarget {
            base: &self.base,
            former: &former,
            mcp: self.mcp.as_ref(),
        };
        let others = state
            .agents
            .iter()
            .filter(|record| record.agent != agent.name());
        let mut others: Vec<(String, String)> =
            others.flat_map(|record| record.upstreams.clone()).collect();
        self.with_surroundings(|at| {
            let mut plan = agent.plan(at, &to)?;
            // Where those of its models went that are set up already.
            let own = state.of(agent.name()).into_iter();
            let own = own.flat_map(|record| record.upstreams.clone());
            others.extend(own.filter(|(api, _)| plan.through.contains(&api.as_str())));
            plan.forward(at, self.config_file.clone(), &others)?;
            Ok(plan)
        })
    }

    /// Locks the record and reads it.
    fn lock(&self) -> CliResult<(SetupLock, SetupRecord)> {
        let lock = SetupLock::take(&self.home, PATIENCE).map_err(|error| match error {
            LockError::Taken { .. } => {
                CliError::store(error).hint("nothing was changed; try again when it has ended")
            }
            LockError::File(error) => CliError::store(error),
        })?;
        let state = SetupRecord::load_locked(&self.state_file, &lock).map_err(damaged)?;
        Ok((lock, state))
    }

    /// The agents of this machine.
    fn found(&self) -> CliResult<Vec<Agent>> {
        let all = Agent::ALL.into_iter();
        let found: Vec<Agent> = all.filter(|agent| self.is_found(*agent)).collect();
        if found.is_empty() {
            return Err(nothing_found());
        }
        Ok(found)
    }

    fn is_found(&self, agent: Agent) -> bool {
        !programs::find(agent).is_empty() || self.with_surroundings(|at| agent.traces(at).exists())
    }
}

/// The reason of an error without the name of the file.
fn reason(error: &dyn std::fmt::Display, file: &Path) -> String {
    let text = error.to_string();
    let name = format!("{}: ", file.display());
    text.strip_prefix(&name).map_or(text.clone(), str::to_owned)
}

/// Shows the agents of this machine, and how their files would be changed.
fn overview(context: &Context<'_>, state: &SetupRecord, out: &mut Output) -> CliResult {
    let mut names = Vec::new();
    let mut refused = 0;
    let found = context.found()?;
    for agent in &found {
        let plan = context.plan(*agent, state);
        let changes = plan
            .map_err(ApplyError::from)
            .and_then(|plan| Ok((file_changes(&plan.changes)?, plan.notes)));
        let (title, place) = (agent.title(), programs::describe(*agent));
        if !out.is_json() {
            out.line(format!("{title} {}", paint(DIM, place)))?;
        }
        match changes {
            Ok((files, notes)) => {
                if files.is_empty() {
                    report_changes(out, *agent, "configured", &[], &notes)?;
                    continue;
                }
                names.push(agent.name());
                report_changes(out, *agent, "would change", &files, &notes)?;
            }
            Err(error) => {
                refused += 1;
                report_refusal(out, *agent, &error)?;
            }
        }
    }
    out.finish()?;
    if names.is_empty() {
        note(
            out.is_json(),
            "nothing is to be changed; `infold setup --check` says who goes through",
        );
    } else {
        say(
            out.is_json(),
            format!(
                "nothing was changed; next: infold setup --write {}",
                names.join(" ")
            ),
        );
    }
    if refused > 0 {
        let of = crate::output::count(found.len() as u64, "agent");
        return Err(
            CliError::no(format!("{refused} of {of} would not be set up"))
                .hint("the reasons are above; --write changes nothing of them"),
        );
    }
    Ok(())
}

/// Writes the plans of agents, starts the server, and proves that requests arrive.
fn write(context: &Context<'_>, chosen: &[Agent], out: &mut Output) -> CliResult {
    // A port that is taken by another program is found out before anything is changed.
    server::probe(context.port)?;
    let (lock, mut state) = context.lock()?;
    let state = &mut state;
    let earlier: Vec<String> = state.agents.iter().map(|one| one.agent.clone()).collect();
    let mut refused = 0;
    let mut written = Vec::new();
    let mut server_config = ServerConfig::Unchanged;
    for agent in chosen {
        if !out.is_json() {
            out.line(format!(
                "{} {}",
                agent.title(),
                paint(DIM, programs::describe(*agent))
            ))?;
        }
        let is_moved = state
            .of(agent.name())
            .is_some_and(|record| record.base != context.base);
        let is_changed = |state: &SetupRecord| {
            let plan = context.plan(*agent, state).map_err(ApplyError::from);
            plan.and_then(|plan| file_changes(&plan.changes))
                .is_ok_and(|files| !files.is_empty())
        };
        // The earlier changes are taken back first, so that one record holds all.
        if state.of(agent.name()).is_some() && (is_moved || is_changed(state)) {
            let done = undo_before_write(agent.name(), state, &context.state_file)
                .map_err(|error| failure(&error))?;
            let failed = done.into_iter().find_map(|(_, restored)| match restored {
                UndoneLines::Failed(why) => Some(why),
                _ => None,
            });
            if let Some(why) = failed {
                return Err(CliError::store(why)
                    .hint("what was set before could not be taken back; nothing was added"));
            }
        }
        let known = state.clone();
        let plan = || context.plan(*agent, &known);
        let notes = plan().map(|plan| plan.notes).unwrap_or_default();
        match write_agent(*agent, &context.base, &plan, state, &context.state_file) {
            Ok(files) => {
                let what = if files.is_empty() {
                    "unchanged"
                } else {
                    "written"
                };
                report_changes(out, *agent, what, &files, &notes)?;
                if files
                    .iter()
                    .any(|change| change.file == context.config_file)
                {
                    server_config = ServerConfig::Changed;
                }
                written.push(*agent);
            }
            Err(error) => {
                refused += 1;
                report_refusal(out, *agent, &error)?;
            }
        }
    }
    out.finish()?;
    if !written.is_empty()
        && let Err(error) = server::start(context, server_config, state, out)
    {
        out.finish()?;
        return Err(without_server(context, &earlier, state, error));
    }
    // An agent that was moved to this port may have been the last of another one.
    server::stop_unused(state, &context.state_file, out)?;
    out.finish()?;
    // Proofs change nothing.
    drop(lock);
    if !written.is_empty() {
        if !context.args.no_prove {
            prove(context, &written, state, false, out)?;
        }
        note(
            out.is_json(),
            "`infold setup --undo` takes it all back, `infold setup --check` says who goes through",
        );
    }
    if refused > 0 {
        return Err(CliError::no(format!(
            "{refused} of {} not set up",
            crate::output::count(chosen.len() as u64, "agent")
        ))
        .hint("the reasons are above; nothing of them was changed"));
    }
    Ok(())
}

/// Takes back the agents that were set up just now, as their requests would find no server.
///
/// A unit that systemd did not start stays with its agents: `systemctl` says why.
fn without_server(
    context: &Context<'_>,
    earlier: &[String],
    state: &mut SetupRecord,
    error: CliError,
) -> CliError {
    if state.unit.is_some() {
        return error;
    }
    let names = state.agents.iter().map(|one| one.agent.clone());
    let new: Vec<String> = names.filter(|name| !earlier.contains(name)).collect();
    for name in new.iter().rev() {
        let undone = undo_agent(name, state, &context.state_file);
        let is_failed = |files: &[(PathBuf, UndoneLines)]| {
            files
                .iter()
                .any(|(_, one)| matches!(one, UndoneLines::Failed(_)))
        };
        if undone.map_or(true, |files| is_failed(&files)) {
            return error.hint("`infold setup --undo` takes back what was written");
        }
    }
    if state.agents.is_empty() && server::remove_tasks(state, &context.state_file).is_err() {
        return error.hint("`infold setup --undo` removes what is left");
    }
    let done = if new.is_empty() {
        "nothing was changed".to_owned()
    } else {
        format!("what was written for {} was taken back", new.join(", "))
    };
    match error.hint_text() {
        Some(hint) => {
            let hint = format!("{done}; {hint}");
            error.hint(hint)
        }
        None => error.hint(format!(
            "{done}; --no-service leaves the server to you, --port N takes another port"
        )),
    }
}

/// Runs the programs of agents against a scripted model.
///
/// `is_asked` says that nothing else is to be done: then one that cannot be proven is a failure.
fn prove(
    context: &Context<'_>,
    chosen: &[Agent],
    state: &SetupRecord,
    is_asked: bool,
    out: &mut Output,
) -> CliResult {
    let mut failed = Vec::new();
    for agent in chosen {
        let proof = proof::prove(context, *agent, state);
        let (what, text) = match &proof {
            proof::Proof::Seen { task, seconds } => (
                "proven",
                format!("proven in {seconds:.1} s: a request of its own program is task {task}"),
            ),
            proof::Proof::Skipped(why) => ("not proven", format!("not proven: {why}")),
            proof::Proof::Failed(why) => ("failed", format!("failed: {why}")),
        };
        let is_skipped = matches!(proof, proof::Proof::Skipped(_));
        if matches!(proof, proof::Proof::Failed(_)) || is_asked && is_skipped {
            failed.push(agent.title());
        }
        let object = json!({"agent": agent.name(), "proof": what, "detail": text});
        out.result(&object, format!("{}: {text}", agent.title()))?;
        out.finish()?;
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(
        CliError::no(format!("no request arrived from {}", failed.join(", ")))
            .hint("`infold setup --check` looks for reasons, `infold setup --undo` takes it back"),
    )
}

fn failure(error: &ApplyError) -> CliError {
    CliError::store(error).hint("nothing of it was changed")
}
