use infold_store::{Contexts, Status};
use serde_json::json;

use crate::failure::{Failure, Kind};
use crate::out::{BAD, DIM, GOOD, Out, bytes, count, paint, say};

/// `infold verify`
pub fn verify(contexts: &Contexts, task: Option<&str>, out: &mut Out) -> Result<(), Failure> {
    let ids = match task {
        Some(task) => vec![contexts.resolve(task)?],
        None => contexts.tasks()?,
    };
    let registry = contexts.registry()?;
    let mut found = 0;
    for id in &ids {
        let problems = contexts.verify(*id, &registry)?;
        found += problems.len() as u64;
        let texts: Vec<String> = problems.iter().map(|problem| problem.to_string()).collect();
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

/// `infold doctor`
pub fn doctor(contexts: &Contexts, repair: bool, out: &mut Out) -> Result<(), Failure> {
    let root = contexts.root();
    let here = std::path::absolute(root).unwrap_or(root.to_owned());
    let (registry, mut done) = match repair {
        true => contexts.repaired_registry()?,
        false => (contexts.registry()?, Vec::new()),
    };
    let ids = contexts.tasks()?;
    let mut found = Vec::new();
    for id in &ids {
        if repair {
            match contexts.repair(*id, &registry) {
                Ok(repaired) => {
                    done.extend(repaired.into_iter().map(|what| format!("{id}: {what}")));
                }
                // One that cannot be repaired does not keep the others from it.
                Err(error) => {
                    found.push(format!("{id}: {error}"));
                    continue;
                }
            }
        }
        let problems = contexts.verify(*id, &registry)?;
        found.extend(problems.iter().map(|problem| format!("{id}: {problem}")));
    }
    for id in registry.uuids()? {
        if contexts.place(id).is_none() {
            found.push(format!("{id}: in the registry, but its directory is gone"));
        }
    }
    let size: u64 = ids
        .iter()
        .filter_map(|id| contexts.place(*id))
        .map(|dir| infold_store::size(&dir))
        .sum();
    let rows = registry.list(&infold_store::Filter::default())?;
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
        out.line(format!("{}{}", paint(DIM, "contexts   "), here.display()))?;
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
        )),
        number => Err(Failure::new(Kind::No, count(number, "problem"))
            .hint("`infold doctor --repair` puts right what can be")),
    }
}
