//! `infold task delete`: the one command after which something is gone.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use infold_store::{Contexts, TaskError};
use serde_json::json;
use uuid::Uuid;

use crate::failure::{Failure, Kind};
use crate::holder::released;
use crate::out::{Out, count};

pub fn run(
    contexts: &Contexts,
    task: &str,
    with_forks: bool,
    yes: bool,
    out: &mut Out,
) -> Result<(), Failure> {
    let id = contexts.resolve(task)?;
    let forks = contexts.continued_by(id)?;
    if !with_forks && !forks.is_empty() {
        return Err(TaskError::Continued {
            task: id,
            by: forks,
        }
        .into());
    }
    let all: Vec<Uuid> = forks.into_iter().chain([id]).collect();
    if !yes && !is_confirmed(&all)? {
        return Err(Failure::new(Kind::No, "nothing was removed"));
    }
    for (removed, id) in all.into_iter().enumerate() {
        released(|| contexts.delete(id)).map_err(|error| match removed {
            0 => Failure::from(error),
            1 => Failure::from(error).after("1 task that continues it was removed"),
            more => {
                let done = format!("{more} tasks that continue it were removed");
                Failure::from(error).after(&done)
            }
        })?;
        match out.is_json() {
            true => out.object(&json!({"uuid": id.to_string(), "removed": true}))?,
            false => out.line(format!("task {id} removed"))?,
        }
    }
    Ok(())
}

/// Asks a person whether it is meant.
fn is_confirmed(tasks: &[Uuid]) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        let text = "this removes tasks for good, and there is nobody to ask";
        return Err(Failure::new(Kind::Usage, text).hint("--yes says that it is meant"));
    }
    for task in tasks {
        eprintln!("  {task}");
    }
    eprint!(
        "remove {} for good? [y/N] ",
        count(tasks.len() as u64, "task")
    );
    let _ = io::stderr().flush();
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
