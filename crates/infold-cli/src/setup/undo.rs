//! `infold setup --undo`: takes changes back, and removes the server once no agent is set up any more.

use infold_setup::{Agent, SetupRecord, UndoneLines, undo_agent};
use serde_json::json;

use super::{Context, failure, server};
use crate::config::with_tilde;
use crate::error::{CliError, CliResult};
use crate::output::Output;

/// Takes back all changes, or those for the named agents.
pub fn run(
    context: &Context<'_>,
    named: &[Agent],
    state: &mut SetupRecord,
    out: &mut Output,
) -> CliResult {
    let done: Vec<String> = state
        .agents
        .iter()
        .map(|record| record.agent.clone())
        .collect();
    let chosen: Vec<String> = if named.is_empty() {
        done.iter().rev().cloned().collect()
    } else {
        named.iter().map(|agent| agent.name().to_owned()).collect()
    };
    if let Some(unknown) = chosen.iter().find(|name| !done.contains(name)) {
        return Err(
            CliError::no(format!("{unknown} was not set up by `infold setup`")).hint(
                if done.is_empty() {
                    "nothing was set up".to_owned()
                } else {
                    format!("set up are {}", done.join(", "))
                },
            ),
        );
    }
    if state.is_empty() {
        return Err(
            CliError::no("nothing was set up, so there is nothing to take back")
                .hint("`infold setup` shows what was found"),
        );
    }
    let (mut left, mut failed) = (0, 0);
    for name in &chosen {
        let files =
            undo_agent(name, state, &context.state_file).map_err(|error| failure(&error))?;
        for (file, restored) in files {
            let (word, text) = match &restored {
                UndoneLines::Whole => ("restored", "as it was, byte for byte".to_owned()),
                UndoneLines::Removed => ("removed", "removed: it was made by setup".to_owned()),
                UndoneLines::LinesRemoved => (
                    "lines removed",
                    "our lines removed; what others changed stays".to_owned(),
                ),
                UndoneLines::Nothing => ("nothing", "nothing of ours is in it".to_owned()),
                UndoneLines::Deleted(copy) => (
                    "deleted",
                    format!(
                        "deleted since; the copy of it before setup stays: {}",
                        with_tilde(copy.display().to_string())
                    ),
                ),
                UndoneLines::Failed(why) => {
                    failed += 1;
                    ("failed", format!("not taken back: {why}"))
                }
                UndoneLines::Left(paths) => {
                    left += 1;
                    (
                        "left",
                        format!("left, since others changed it: {}", paths.join(", ")),
                    )
                }
            };
            let shown = with_tilde(file.display().to_string());
            let object = json!({"agent": name, "file": file.display().to_string(), "undone": word, "detail": text});
            out.result(&object, format!("{shown}: {text}"))?;
        }
    }
    server::stop_unused(state, &context.state_file, out)?;
    if state.agents.is_empty() {
        server::remove(state, &context.state_file, out)?;
        server::remove_tasks(state, &context.state_file)?;
    }
    out.finish()?;
    if failed > 0 {
        return Err(CliError::store("some files were not taken back")
            .hint("the reasons are above; `infold setup --undo` tries them again"));
    }
    if left > 0 {
        return Err(
            CliError::no("some values were left, because they are not what setup wrote").hint(
                "edit them by hand; the copies of the files before setup end in .before-infold",
            ),
        );
    }
    Ok(())
}
