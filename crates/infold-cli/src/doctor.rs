//! `infold verify` and `infold doctor`: check and repair stored data.

use infold::checkpoint::FileHistory;
use infold::error_chain;
use infold_store::{ChainIndex, Contexts, Filter, Registry, Status, TaskRow};
use serde_json::json;
use uuid::Uuid;

use crate::error::{CliError, CliResult};
use crate::output::{BAD, DIM, GOOD, Output, bytes, count, note, paint, say};
use crate::progress::ProgressLine;
use crate::task_lock::acquire;

/// `infold verify`
pub fn verify(contexts: &Contexts, task: Option<&str>, out: &mut Output) -> CliResult {
    let ids = match task {
        Some(task) => vec![contexts.resolve(task)?],
        None => contexts.tasks()?,
    };
    if ids.is_empty() {
        note(out.is_json(), "no tasks");
        return Ok(());
    }
    let registry = contexts.registry_if_writable()?;
    let damaged = match task {
        Some(_) => Vec::new(),
        None => damaged_databases(contexts, registry.as_ref())?,
    };
    let mut found = damaged.len() as u64;
    for text in &damaged {
        let object = json!({"uuid": null, "ok": false, "problems": [text]});
        out.result(&object, format!("{}  {text}", paint(BAD, "not ok")))?;
    }
    let mut progress = ProgressLine::new(out.is_json(), "checking tasks", ids.len() as u64);
    for id in &ids {
        let problems = task_problems(contexts, *id, registry.as_ref());
        progress.advance(1);
        found += problems.len() as u64;
        let is_ok = problems.is_empty();
        let word = if is_ok {
            paint(GOOD, "ok")
        } else {
            paint(BAD, "not ok")
        };
        let lines: String = problems
            .iter()
            .map(|text| format!("\n    {text}"))
            .collect();
        let object = json!({"uuid": id.to_string(), "ok": is_ok, "problems": problems});
        out.result(&object, format!("{id}  {word}{lines}"))?;
    }
    drop(progress);
    out.finish()?;
    if found > 0 {
        return Err(CliError::no(count(found, "problem")).hint(
            "`infold doctor --repair` repairs what can be repaired, and sets damaged bytes aside",
        ));
    }
    note(
        out.is_json(),
        format!("{} checked", count(ids.len() as u64, "task")),
    );
    Ok(())
}

/// Checks the databases beside the tasks.
fn damaged_databases(contexts: &Contexts, registry: Option<&Registry>) -> CliResult<Vec<String>> {
    let mut found = Vec::new();
    if let Some(reason) = registry.map(Registry::check).transpose()?.flatten() {
        found.push(format!("tasks.db is damaged: {reason}"));
    }
    if let Some(reason) = ChainIndex::check(contexts.root())? {
        found.push(format!("chains.db is damaged: {reason}"));
    }
    if let Some(problem) = contexts.check_search_index()? {
        found.push(format!("search.db {problem}"));
    }
    for info in contexts.checkpoints().all()? {
        let dir = info.workspace.display();
        if let Some(damage) = &info.damage {
            found.push(format!("the checkpoints of {dir} are damaged: {damage}"));
        }
        if info.pending.is_some() {
            found.push(format!("a restoration of {dir} was cut off"));
        }
    }
    Ok(found)
}

/// The number and size of the checkpoints of all workspaces.
#[derive(Default)]
struct CheckpointFigures {
    workspaces: u64,
    snapshots: u64,
    bytes: u64,
}

impl CheckpointFigures {
    fn count(contexts: &Contexts) -> CliResult<CheckpointFigures> {
        let mut figures = CheckpointFigures::default();
        for info in contexts.checkpoints().all()? {
            figures.workspaces += 1;
            figures.snapshots += info.tasks.values().sum::<u64>();
            figures.bytes += info.bytes;
        }
        Ok(figures)
    }

    /// Describes them, if there are any.
    fn row(&self) -> Option<(&'static str, String)> {
        let text = format!(
            "{} of {}, {}",
            self.snapshots,
            count(self.workspaces, "workspace"),
            bytes(self.bytes)
        );
        (self.workspaces > 0).then_some(("snapshots", text))
    }
}

/// Finishes interrupted restorations, and sets damaged checkpoints aside; returns a description of each.
fn repair_checkpoints(contexts: &Contexts) -> CliResult<Vec<String>> {
    let files = FileHistory::new(contexts);
    let mut done = files.settle_all()?;
    for info in contexts.checkpoints().all()? {
        if info.damage.is_some() {
            done.extend(files.open(&info.workspace)?.notes);
        }
    }
    // If the removal of a task was interrupted, its snapshots are still there.
    files.collect_garbage()?;
    Ok(done)
}

/// Sets a damaged conversation index aside; returns a description.
fn repair_index(contexts: &Contexts) -> CliResult<Option<String>> {
    let root = contexts.root();
    if ChainIndex::check(root)?.is_none() {
        return Ok(None);
    }
    Ok(ChainIndex::set_aside(root)?.map(|aside| {
        let aside = aside.display();
        format!("damaged chains.db moved to {aside}; `infold serve` rebuilds it when it starts")
    }))
}

/// Removes a search index that is damaged or of another version; returns a description.
fn repair_search_index(contexts: &Contexts) -> CliResult<Option<String>> {
    let Some(problem) = contexts.check_search_index()? else {
        return Ok(None);
    };
    contexts.remove_search_index()?;
    Ok(Some(format!(
        "search.db {problem}; it was removed, and the next search rebuilds it"
    )))
}

/// Checks a task. If that fails, the failure is its problem, and the other tasks are still checked.
fn task_problems(contexts: &Contexts, id: Uuid, registry: Option<&Registry>) -> Vec<String> {
    match contexts.verify(id, registry) {
        Ok(problems) => problems.iter().map(ToString::to_string).collect(),
        Err(error) => vec![error_chain(&error)],
    }
}

/// The result of checking, and perhaps repairing, all tasks.
struct Findings {
    ids: Vec<Uuid>,
    rows: Vec<TaskRow>,
    problems: Vec<String>,
    repaired: Vec<String>,
}

/// Checks all tasks, after repairing them if `repair` is set.
fn examine(contexts: &Contexts, repair: bool) -> CliResult<Findings> {
    let exists = || contexts.root().exists();
    let mut repaired = Vec::new();
    let mut problems = Vec::new();
    let mut registry = None;
    if repair {
        let (repaired_registry, done) = contexts.repaired_registry()?;
        repaired = done;
        registry = Some(repaired_registry);
        repaired.extend(repair_index(contexts)?);
        repaired.extend(repair_search_index(contexts)?);
        repaired.extend(repair_checkpoints(contexts)?);
    } else if exists() {
        // A check does not create the directory.
        registry = contexts.registry_if_writable()?;
    }
    if exists() {
        problems = damaged_databases(contexts, registry.as_ref())?;
    }
    if let Some(registry) = registry.as_ref().filter(|_| repair) {
        problems.extend(repair_all(contexts, registry, &mut repaired)?);
    }
    // Listed after the repair, which may have restored a task.
    let ids = contexts.tasks()?;
    if let Some(registry) = &registry {
        let rows = registry.uuids()?.into_iter();
        let gone = rows.filter(|id| contexts.place(*id).is_none());
        problems.extend(gone.map(|id| format!("{id}: in the registry, but its directory is gone")));
    }
    for id in &ids {
        let found = task_problems(contexts, *id, registry.as_ref());
        problems.extend(found.iter().map(|problem| format!("{id}: {problem}")));
    }
    let rows = if exists() {
        contexts.rows(&Filter::default())?
    } else {
        Vec::new()
    };
    Ok(Findings {
        ids,
        rows,
        problems,
        repaired,
    })
}

/// Repairs all tasks; returns those that could not be repaired.
///
/// Takes several passes, because the parent of a fork may have to be repaired before the fork.
fn repair_all(
    contexts: &Contexts,
    registry: &Registry,
    repaired: &mut Vec<String>,
) -> CliResult<Vec<String>> {
    const MAX_PASSES: usize = 4;
    let mut failed = Vec::new();
    for _ in 0..MAX_PASSES {
        let before = repaired.len();
        failed.clear();
        // Listed in each pass: the repair of one task may have restored another whose directory was gone.
        for id in contexts.tasks()? {
            match acquire(|| contexts.repair(id, registry)) {
                Ok(done) => {
                    let done = done.into_iter().map(|what| format!("{id}: {what}"));
                    let new: Vec<String> = done.filter(|what| !repaired.contains(what)).collect();
                    repaired.extend(new);
                }
                Err(error) => failed.push(format!("{id}: not repaired: {}", error_chain(&error))),
            }
        }
        if repaired.len() == before {
            break;
        }
    }
    Ok(failed)
}

/// `infold doctor`
pub fn doctor(contexts: &Contexts, repair: bool, out: &mut Output) -> CliResult {
    let version = env!("CARGO_PKG_VERSION");
    let root = contexts.root();
    let path = std::path::absolute(root).unwrap_or(root.to_owned());
    let found = examine(contexts, repair)?;
    let (problems, repaired) = (found.problems, found.repaired);
    let mut size = 0;
    for dir in found.ids.iter().filter_map(|id| contexts.place(*id)) {
        size += infold_store::size(&dir)?;
    }
    let with_status = |status| found.rows.iter().filter(|row| row.status == status).count() as u64;
    let statuses = Status::ALL
        .iter()
        .map(|status| (status.to_string(), with_status(*status)));
    let path = path.display().to_string();
    let checkpoints = CheckpointFigures::count(contexts)?;
    if out.is_json() {
        let statuses = statuses.map(|(status, count)| (status, count.into()));
        let statuses: serde_json::Map<_, _> = statuses.collect();
        out.object(&json!({
            "version": version, "contexts": path, "tasks": statuses,
            "bytes": size,
            "checkpoints": {
                "workspaces": checkpoints.workspaces, "snapshots": checkpoints.snapshots, "bytes": checkpoints.bytes,
            },
            "problems": problems, "repaired": repaired,
        }))?;
    } else {
        let statuses = statuses.filter(|(_, count)| *count > 0);
        let statuses: Vec<String> = statuses
            .map(|(status, count)| format!("{count} {status}"))
            .collect();
        let tasks = if statuses.is_empty() {
            "none".to_owned()
        } else {
            statuses.join(", ")
        };
        let missing = if root.exists() {
            ""
        } else {
            " (created with the first task)"
        };
        let rows = [
            ("infold", version.to_owned()),
            ("contexts", path + missing),
            ("tasks", tasks),
            ("on disk", bytes(size)),
        ];
        for (name, value) in rows.into_iter().chain(checkpoints.row()) {
            out.line(paint(DIM, format!("{name:<11}")) + &value)?;
        }
        for text in &repaired {
            out.line(format!("{} {text}", paint(GOOD, "repaired")))?;
        }
        for text in &problems {
            out.line(format!("{} {text}", paint(BAD, "problem ")))?;
        }
    }
    out.finish()?;
    match problems.len() as u64 {
        0 => {
            say(out.is_json(), paint(GOOD, "no problems found"));
            Ok(())
        }
        left if repair => Err(CliError::no(format!("{} left", count(left, "problem")))
            .hint("these cannot be repaired: restore what is missing from a backup")),
        found => Err(CliError::no(count(found, "problem"))
            .hint("`infold doctor --repair` repairs what can be repaired")),
    }
}
