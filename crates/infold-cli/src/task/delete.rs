//! `infold task delete`: permanently deletes a task, and its forks if wanted.

use infold_store::{Contexts, TaskError};
use serde_json::json;
use uuid::Uuid;

use crate::error::{CliError, CliResult};
use crate::output::{Output, confirm, count};
use crate::task_lock::acquire;

/// `infold task delete`
pub fn run(
    contexts: &Contexts,
    task: &str,
    with_forks: bool,
    yes: bool,
    out: &mut Output,
) -> CliResult {
    let id = contexts.resolve(task)?;
    let forks = contexts.continued_by(id)?;
    if !with_forks && !forks.is_empty() {
        let error = TaskError::Continued {
            task: id,
            by: forks,
        };
        return Err(error.into());
    }
    let all: Vec<Uuid> = forks.into_iter().chain([id]).collect();
    if !yes {
        let names: Vec<String> = all.iter().map(Uuid::to_string).collect();
        let question = format!("delete {} permanently?", count(all.len() as u64, "task"));
        let refusal = CliError::usage(
            "this deletes tasks permanently, and there is no terminal to confirm it",
        )
        .hint("--yes deletes without confirmation");
        if !confirm(&names, &question, refusal)? {
            return Err(CliError::no("nothing was deleted"));
        }
    }
    for (deleted, id) in all.into_iter().enumerate() {
        acquire(|| contexts.delete(id)).map_err(|error| {
            let error = CliError::from(error);
            match deleted {
                0 => error,
                forks => error.after(&format!("deleted so far: {}", count(forks as u64, "fork"))),
            }
        })?;
        let object = json!({"uuid": id.to_string(), "removed": true});
        out.result(&object, format!("task {id} deleted"))?;
    }
    Ok(())
}
