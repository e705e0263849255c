use infold_store::{Chains, Contexts, Filter, Registry, Status, TaskRow};
use serde_json::json;
use uuid::Uuid;

use crate::failure::{Failure, Kind, chain};
use crate::holder::released;
use crate::out::{BAD, DIM, GOOD, Out, bytes, count, paint, say};
use crate::progress::Progress;

/// `infold verify`
pub fn verify(contexts: &Contexts, task: Option<&str>, out: &mut Out) -> Result<(), Failure> {
    let ids = match task {
        Some(task) => vec![contexts.resolve(task)?],
        None => contexts.tasks()?,
    };
    if ids.is_empty() {
        say(out.is_json(), paint(DIM, "no tasks"));
        return Ok(());
    }
    let registry = contexts.registry_if_writable()?;
    let damaged = match task {
        Some(_) => Vec::new(),
        None => damaged_databases(contexts, registry.as_ref())?,
    };
    let mut found = damaged.len() as u64;
    for text in &damaged {
        match out.is_json() {
            true => out.object(&json!({"uuid": null, "ok": false, "problems": [text]}))?,
            false => out.line(format!("{}  {text}", paint(BAD, "not ok")))?,
        }
    }
    let mut progress = Progress::new(out.is_json(), "checking tasks", ids.len() as u64);
    for id in &ids {
        let texts = problems(contexts, *id, registry.as_ref());
        progress.advance(1);
        found += texts.len() as u64;
        if out.is_json() {
            out.object(
                &json!({"uuid": id.to_string(), "ok": texts.is_empty(), "problems": texts}),
            )?;
            continue;
        }
        let word = if texts.is_empty() {
            paint(GOOD, "ok")
        } else {
            paint(BAD, "not ok")
        };
        out.line(format!("{id}  {word}"))?;
        texts
            .iter()
            .try_for_each(|text| out.line(format!("    {text}")))?;
    }
    drop(progress);
    out.finish()?;
    match found {
        0 => {
            say(
                out.is_json(),
                paint(DIM, format!("{} checked", count(ids.len() as u64, "task"))),
            );
            Ok(())
        }
        found => Err(Failure::new(Kind::No, count(found, "problem")).hint(
            "`infold doctor --repair` puts right what can be, and keeps damaged bytes aside",
        )),
    }
}

/// What is wrong with the databases beside the tasks.
fn damaged_databases(
    contexts: &Contexts,
    registry: Option<&Registry>,
) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    if let Some(reason) = registry.map(Registry::check).transpose()?.flatten() {
        found.push(format!("tasks.db is damaged: {reason}"));
    }
    if let Some(reason) = Chains::check(contexts.root())? {
        found.push(format!("chains.db is damaged: {reason}"));
    }
    Ok(found)
}

/// Sets a damaged index of conversations aside; says so.
fn repair_chains(contexts: &Contexts) -> Result<Option<String>, Failure> {
    let root = contexts.root();
    if Chains::check(root)?.is_none() {
        return Ok(None);
    }
    Ok(Chains::set_aside(root)?.map(|aside| {
        let aside = aside.display();
        format!("damaged chains.db moved to {aside}; `infold serve` fills a new one when it starts")
    }))
}

/// What is wrong with a task. That it cannot be checked is a problem of that task, not
/// the end of the checking: the others come after it.
fn problems(contexts: &Contexts, id: Uuid, registry: Option<&Registry>) -> Vec<String> {
    match contexts.verify(id, registry) {
        Ok(problems) => problems.iter().map(ToString::to_string).collect(),
        Err(error) => vec![chain(&error)],
    }
}

/// What a check-up found.
struct Findings {
    ids: Vec<Uuid>,
    rows: Vec<TaskRow>,
    problems: Vec<String>,
    repaired: Vec<String>,
}

/// Looks at all tasks, after repairing them if that is wanted.
fn examine(contexts: &Contexts, repair: bool) -> Result<Findings, Failure> {
    let (registry, mut repaired) = match repair {
        true => contexts
            .repaired_registry()
            .map(|(registry, done)| (Some(registry), done))?,
        // Looking does not make a directory.
        false if !contexts.root().exists() => (None, Vec::new()),
        false => (contexts.registry_if_writable()?, Vec::new()),
    };
    if repair {
        repaired.extend(repair_chains(contexts)?);
    }
    let mut found = match contexts.root().exists() {
        true => damaged_databases(contexts, registry.as_ref())?,
        false => Vec::new(),
    };
    if let Some(registry) = registry.as_ref().filter(|_| repair) {
        found.extend(repair_all(contexts, registry, &mut repaired)?);
    }
    // A repair may have made a task again that was gone.
    let ids = contexts.tasks()?;
    if let Some(registry) = &registry {
        let rows = registry.uuids()?.into_iter();
        let gone = rows.filter(|id| contexts.place(*id).is_none());
        found.extend(gone.map(|id| format!("{id}: in the registry, but its directory is gone")));
    }
    for id in &ids {
        let problems = problems(contexts, *id, registry.as_ref());
        found.extend(problems.iter().map(|problem| format!("{id}: {problem}")));
    }
    let rows = match contexts.root().exists() {
        true => contexts.rows(&Filter::default())?,
        false => Vec::new(),
    };
    Ok(Findings {
        ids,
        rows,
        problems: found,
        repaired,
    })
}

/// Repairs all tasks; returns what could not be repaired. What a task continues may have to be repaired before it.
fn repair_all(
    contexts: &Contexts,
    registry: &Registry,
    repaired: &mut Vec<String>,
) -> Result<Vec<String>, Failure> {
    const MAX_PASSES: usize = 4;
    let mut failed = Vec::new();
    for _ in 0..MAX_PASSES {
        let before = repaired.len();
        failed.clear();
        // A repair may have made a task again that was gone.
        for id in contexts.tasks()? {
            match released(|| contexts.repair(id, registry)) {
                Ok(done) => {
                    let done = done.into_iter().map(|what| format!("{id}: {what}"));
                    let new: Vec<String> = done.filter(|what| !repaired.contains(what)).collect();
                    repaired.extend(new);
                }
                Err(error) => failed.push(format!("{id}: not repaired: {}", chain(&error))),
            }
        }
        if repaired.len() == before {
            break;
        }
    }
    Ok(failed)
}

/// `infold doctor`
pub fn doctor(contexts: &Contexts, repair: bool, out: &mut Out) -> Result<(), Failure> {
    let root = contexts.root();
    let here = std::path::absolute(root).unwrap_or(root.to_owned());
    let Findings {
        ids,
        rows,
        problems: found,
        repaired: done,
    } = examine(contexts, repair)?;
    let mut size = 0;
    for dir in ids.iter().filter_map(|id| contexts.place(*id)) {
        size += infold_store::size(&dir)?;
    }
    let with = |status: Status| rows.iter().filter(|row| row.status == status).count() as u64;
    let statuses: Vec<(Status, u64)> = Status::ALL
        .iter()
        .map(|status| (*status, with(*status)))
        .collect();
    if out.is_json() {
        let statuses: serde_json::Map<_, _> = statuses
            .iter()
            .map(|(status, count)| (status.to_string(), (*count).into()))
            .collect();
        out.object(&json!({
            "version": env!("CARGO_PKG_VERSION"), "contexts": here.display().to_string(), "tasks": statuses,
            "bytes": size, "problems": found, "repaired": done,
        }))?;
    } else {
        let statuses: Vec<String> = statuses
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(status, count)| format!("{count} {status}"))
            .collect();
        let statuses = if statuses.is_empty() {
            "none".to_owned()
        } else {
            statuses.join(", ")
        };
        out.line(format!(
            "{}{}",
            paint(DIM, "infold     "),
            env!("CARGO_PKG_VERSION")
        ))?;
        let made = match root.exists() {
            true => "",
            false => " (not there yet; the first task makes it)",
        };
        let here = here.display();
        out.line(format!("{}{here}{made}", paint(DIM, "contexts   ")))?;
        out.line(format!("{}{statuses}", paint(DIM, "tasks      ")))?;
        out.line(format!("{}{}", paint(DIM, "on disk    "), bytes(size)))?;
        done.iter()
            .try_for_each(|what| out.line(format!("{} {what}", paint(GOOD, "repaired"))))?;
        found
            .iter()
            .try_for_each(|what| out.line(format!("{} {what}", paint(BAD, "problem "))))?;
    }
    out.finish()?;
    match found.len() as u64 {
        0 => {
            say(out.is_json(), paint(GOOD, "all is well"));
            Ok(())
        }
        number if repair => Err(Failure::new(
            Kind::No,
            format!("{} left", count(number, "problem")),
        )
        .hint("what is left needs a person: bring back what is missing from a backup")),
        number => Err(Failure::new(Kind::No, count(number, "problem"))
            .hint("`infold doctor --repair` puts right what can be")),
    }
}
