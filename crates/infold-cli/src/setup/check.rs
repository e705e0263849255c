//! `infold setup --check`: which agents send their requests through infold, and why others do not.

use infold_setup::{Agent, ApplyError, SetupRecord, file_changes};
use serde_json::json;

use super::{Context, programs, server};
use crate::config::with_tilde;
use crate::error::{CliError, CliResult};
use crate::output::{BAD, DIM, GOOD, Output, paint};

/// Prints a line for each agent that is found here: whether its requests go through infold, and below it why not.
pub fn run(context: &Context<'_>, state: &SetupRecord, out: &mut Output) -> CliResult {
    let found = context.found()?;
    let server = server::probe(context.port);
    let (object, text) = server::describe(context, state, &server);
    out.result(&object, format!("server: {text}"))?;
    let mut missing = 0;
    for agent in found {
        let (reasons, notes) = reasons(context, agent, state, &server);
        let through = reasons.is_empty();
        missing += usize::from(!through);
        if out.is_json() {
            let programs: Vec<String> = programs::find(agent)
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            out.object(&json!({"agent": agent.name(), "through": through, "reasons": reasons, "notes": notes, "programs": programs}))?;
            continue;
        }
        let word = if through {
            paint(GOOD, "yes")
        } else {
            paint(BAD, "no ")
        };
        out.line(format!(
            "{word}  {} {}",
            agent.title(),
            paint(DIM, programs::describe(agent))
        ))?;
        for reason in reasons {
            out.line(format!("     {reason}"))?;
        }
        for note in notes {
            out.line(format!("     {}", paint(DIM, format!("note: {note}"))))?;
        }
    }
    out.finish()?;
    if missing > 0 {
        return Err(CliError::no(format!(
            "{missing} of the agents here do not go through {}",
            context.base
        ))
        .hint("`infold setup` shows what would be changed"));
    }
    Ok(())
}

/// Returns the reasons why the requests of an agent do not go through infold, and notes that are no obstacle.
fn reasons(
    context: &Context<'_>,
    agent: Agent,
    state: &SetupRecord,
    server: &CliResult<server::Listener>,
) -> (Vec<String>, Vec<String>) {
    let (mut reasons, mut notes) = (Vec::new(), Vec::new());
    let plan = context.plan(agent, state).map_err(ApplyError::from);
    match plan.and_then(|plan| Ok((file_changes(&plan.changes)?, plan.notes))) {
        Ok((files, plan_notes)) => {
            // A file that setup would still change does not point to infold.
            for change in files {
                let name = with_tilde(change.file.display().to_string());
                reasons.push(format!("{name} does not say so"));
            }
            notes.extend(plan_notes);
        }
        Err(error) => reasons.push(error.to_string()),
    }
    for name in agent.overriding() {
        let value = std::env::var(name).unwrap_or_default();
        if !value.is_empty() && !value.starts_with(&context.base) {
            reasons.push(format!(
                "{name} is set in this shell, and comes before the file"
            ));
        }
    }
    for file in context.with_surroundings(|at| agent.nearer(at)) {
        reasons.push(format!("{} is nearer, and is read instead", file.display()));
    }
    if let Some(name) = intercepting_proxy() {
        reasons.push(format!("{name} is set, and NO_PROXY does not name 127.0.0.1: requests to this machine would go there; export NO_PROXY=127.0.0.1,localhost"));
    }
    match server {
        Ok(server::Listener::Infold) => {}
        Ok(server::Listener::Nobody) => {
            let command = server::start_command(context.port, state);
            reasons.push(format!(
                "no server is running at {}: {command}",
                context.base
            ));
        }
        Err(error) => reasons.push(error.text().to_owned()),
    }
    if programs::find(agent).len() > 1 {
        notes.push("there are several programs on the path; the first is the one that is started and proven".to_owned());
    }
    (reasons, notes)
}

/// Returns the variable that sends requests even for this machine to a proxy: one is set, and `NO_PROXY` does not
/// except 127.0.0.1, the address that agents are given.
fn intercepting_proxy() -> Option<&'static str> {
    let is_set = |name: &&str| std::env::var(name).is_ok_and(|value| !value.is_empty());
    let names = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
    let proxy = names.into_iter().find(|name| is_set(name))?;
    let is_excepted = ["NO_PROXY", "no_proxy"].into_iter().any(|name| {
        let hosts = std::env::var(name).unwrap_or_default();
        hosts
            .split(',')
            .any(|host| matches!(host.trim(), "*" | "127.0.0.1" | "127.0.0.0/8"))
    });
    (!is_excepted).then_some(proxy)
}
