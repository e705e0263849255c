//! `infold checkpoint` and `infold diff`: keep the files of a workspace, list what is kept, and compare it.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use infold::checkpoint::git::{ChangeKind, CheckpointError, DiffOptions, FileChange};
use infold::checkpoint::{FileHistory, FileRange, FilesError, TakenSnapshot, describe_left_out};
use infold::error_chain;
use infold_log::steer::{Side, Target};
use infold_store::{CheckpointNote, Contexts, FileCounts, iso};
use serde_json::{Value, json};

use crate::diff_lines::DiffLines;
use crate::error::{CliError, CliResult, Exit};
use crate::output::{Output, bytes, count, note, one_line, warn};
use crate::steps::{open, short};

/// The arguments of `infold checkpoint`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct CheckpointArgs {
    #[command(subcommand)]
    command: Option<CheckpointCommand>,
    /// The task
    #[arg(default_value = "@")]
    task: String,
    /// The directory whose files are kept [default: that of the last checkpoint, else where the task was made]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

/// A command of `infold checkpoint`.
#[derive(Debug, Subcommand)]
pub enum CheckpointCommand {
    /// List the checkpoints of a task, those of the tasks that it continues included
    List {
        /// The task
        #[arg(default_value = "@")]
        task: String,
    },
    /// Remove what belongs to no task any more, and pack the rest
    Gc,
}

/// The arguments of `infold diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The task
    task: String,
    /// Two points: seqs, events such as e3, times, or `now` for the directory as it is
    #[arg(value_name = "A..B")]
    range: FileRange,
    /// Only how much differs in each file
    #[arg(long)]
    stat: bool,
}

/// `infold checkpoint`
pub fn run(contexts: &Contexts, args: &CheckpointArgs, out: &mut Output) -> CliResult {
    match &args.command {
        Some(CheckpointCommand::List { task }) => list(contexts, task, out),
        Some(CheckpointCommand::Gc) => collect_garbage(contexts, out),
        None => take(contexts, args, out),
    }
}

fn take(contexts: &Contexts, args: &CheckpointArgs, out: &mut Output) -> CliResult {
    let files = FileHistory::new(contexts);
    let mut open = open(contexts, &args.task, out.is_json())?;
    let taken = match &args.workspace {
        Some(workspace) => Ok(workspace.clone()),
        None => files.workspace_of(open.writer.log()),
    };
    let taken = taken.and_then(|workspace| {
        let taken = files.take(&mut open.writer, &workspace, CheckpointNote::Command);
        Ok((taken?, workspace))
    });
    let (taken, workspace) = taken.map_err(|error| CliError::from(error).about(&open.name))?;
    warn(out.is_json(), contexts.settle(open.id, &open.writer));
    print_taken(&taken, &workspace, &open.id.to_string(), out)
}

/// The most omitted files that are named on standard error.
const MAX_NAMED_FILES: usize = 20;

fn print_taken(taken: &TakenSnapshot, workspace: &Path, uuid: &str, out: &mut Output) -> CliResult {
    let json = out.is_json();
    for text in &taken.notes {
        note(json, text);
    }
    let snapshot = &taken.snapshot;
    let left_out = snapshot.left_out.iter();
    for file in left_out.clone().take(MAX_NAMED_FILES) {
        let path = one_line(&file.path.to_string_lossy());
        note(
            json,
            format!("left out {path}: {}", describe_left_out(file.why)),
        );
    }
    let more = snapshot.left_out.len().saturating_sub(MAX_NAMED_FILES);
    if more > 0 {
        note(
            json,
            format!("left out {}", count(more as u64, "more file")),
        );
    }
    let left_out: Vec<Value> = left_out
        .map(|file| json!({"path": file.path.display().to_string(), "why": file.why.name(), "bytes": file.size}))
        .collect();
    let changes = FileCounts {
        added: snapshot.changes.added,
        changed: snapshot.changes.changed,
        removed: snapshot.changes.removed,
    };
    let number = snapshot.at.number;
    let text = match taken.event {
        Some(event) => {
            let dir = one_line(&workspace.to_string_lossy());
            format!("{event}: checkpoint {number} of {dir}: {changes}")
        }
        None => format!("nothing changed since checkpoint {number}"),
    };
    let object = json!({
        "uuid": uuid, "checkpoint": number, "event": taken.event.map(|id| id.to_string()),
        "workspace": workspace.display().to_string(), "left_out": left_out,
        "added": changes.added, "changed": changes.changed, "removed": changes.removed,
    });
    out.result(&object, text)
}

fn list(contexts: &Contexts, task: &str, out: &mut Output) -> CliResult {
    let id = contexts.resolve(task)?;
    let log = contexts.read(id)?;
    let mut found = Vec::new();
    log.each_checkpoint(|files, after, line| {
        found.push((files.clone(), after, line.clone()));
        true
    })?;
    found.reverse();
    if found.is_empty() {
        note(out.is_json(), "no checkpoints");
        return Ok(());
    }
    let mut rows = Vec::new();
    for (files, after, line) in found {
        let time = iso(log.event(files.event)?.ts);
        if out.is_json() {
            let FileCounts {
                added,
                changed,
                removed,
            } = line.files;
            out.object(&json!({
                "event": files.event.to_string(), "after": after, "time": time,
                "task": files.at.task.to_string(), "checkpoint": line.number,
                "workspace": line.workspace.display().to_string(), "note": line.note.name(),
                "added": added, "changed": changed, "removed": removed, "left_out": line.left_out,
            }))?;
            continue;
        }
        let from = if files.at.task == id {
            String::new()
        } else {
            format!(" of {}", short(&files.at.task.to_string()))
        };
        rows.push([
            files.event.to_string(),
            after.to_string(),
            time.get(..19).unwrap_or(&time).replace('T', " "),
            format!("{}{from}", line.number),
            one_line(line.note.name()),
            line.files.to_string(),
        ]);
    }
    if out.is_json() {
        return Ok(());
    }
    let head = ["event", "after", "time", "checkpoint", "why", "files"];
    out.table(head, rows, &[1])
}

fn collect_garbage(contexts: &Contexts, out: &mut Output) -> CliResult {
    let (before, after) = FileHistory::new(contexts).collect_garbage()?;
    let text = format!("{} → {}", bytes(before), bytes(after));
    out.result(&json!({"bytes_before": before, "bytes_after": after}), text)
}

/// Prints the changes that a rewind of the files would make.
pub fn preview_rewind(
    contexts: &Contexts,
    task: &str,
    (side, target): (Side, Target),
    out: &mut Output,
) -> CliResult {
    let log = contexts.read(contexts.resolve(task)?)?;
    let found = FileHistory::new(contexts).preview(&log, side, target);
    let compared = found.and_then(|compared| Ok((compared.planned_changes()?, compared)));
    let (changes, compared) =
        compared.map_err(|error| CliError::from(error).about(&short(task)))?;
    for text in &compared.open.notes {
        note(out.is_json(), text);
    }
    print_changes(&changes, &compared.workspace, out)
}

fn print_changes(changes: &[FileChange], workspace: &Path, out: &mut Output) -> CliResult {
    if out.is_json() {
        let files = changes.iter().map(
            |change| json!({"path": change.path.display().to_string(), "change": kind_name(change.kind)}),
        );
        let files: Vec<Value> = files.collect();
        let workspace = workspace.display().to_string();
        return out.object(&json!({"workspace": workspace, "files": files}));
    }
    if changes.is_empty() {
        note(false, "no file differs");
    }
    for change in changes {
        let path = one_line(&change.path.to_string_lossy());
        out.line(format!("{:<8} {path}", kind_name(change.kind)))?;
    }
    Ok(())
}

/// Names how a file differs.
fn kind_name(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => "added",
        ChangeKind::Removed => "removed",
        ChangeKind::Modified => "modified",
        ChangeKind::Mode { .. } => "mode",
        ChangeKind::Type => "type",
    }
}

/// `infold diff`
pub fn diff(contexts: &Contexts, args: &DiffArgs, out: &mut Output) -> CliResult {
    let about = |error: FilesError| CliError::from(error).about(&short(&args.task));
    let log = contexts.read(contexts.resolve(&args.task)?)?;
    let compared = FileHistory::new(contexts).compare(&log, args.range);
    let compared = compared.map_err(about)?;
    for text in &compared.open.notes {
        note(out.is_json(), text);
    }
    if out.is_json() {
        let changes = compared.changes().map_err(about)?;
        return print_changes(&changes, &compared.workspace, out);
    }
    let options = DiffOptions {
        stat: args.stat,
        ..DiffOptions::default()
    };
    let is_colored = out.is_colored() && !args.stat;
    let mut lines = DiffLines::new(out.writer(), is_colored);
    compared.diff(&options, &mut lines).map_err(about)?;
    Ok(lines.finish()?)
}

impl From<FilesError> for CliError {
    fn from(error: FilesError) -> CliError {
        match error {
            FilesError::Checkpoint(error) => error.into(),
            FilesError::Step(error) => error.into(),
            FilesError::Task(error) => error.into(),
            FilesError::NoWorkspace => CliError::usage(error)
                .hint("`infold checkpoint TASK --workspace DIR` names it, and is remembered"),
            FilesError::NoneBefore { .. } => {
                CliError::usage(error).hint("`infold checkpoint list TASK` shows what is kept")
            }
            FilesError::TwoWorkspaces { .. } => {
                CliError::usage(error).hint("`infold checkpoint list TASK --json` shows which")
            }
            FilesError::Unfinished { .. } => CliError::store(error_chain(&error)).hint(
                "once that is put right, `infold checkpoint TASK` or `infold doctor --repair` finishes it",
            ),
        }
    }
}

impl From<CheckpointError> for CliError {
    fn from(error: CheckpointError) -> CliError {
        let (exit, hint) = match &error {
            CheckpointError::GitMissing { .. } => (
                Exit::Usage,
                "install git, such as with `apt install git` or `brew install git`; everything else works without it",
            ),
            CheckpointError::GitTooOld { .. } => {
                (Exit::Usage, "update git; everything else works without it")
            }
            CheckpointError::Workspace { .. } => (
                Exit::Usage,
                "--workspace DIR names a directory of a project",
            ),
            CheckpointError::NoSnapshot { .. } => (
                Exit::Usage,
                "it was removed; `infold checkpoint list TASK` shows what is recorded",
            ),
            CheckpointError::Locked { .. } => (Exit::Store, "wait for it, and try again"),
            CheckpointError::Unfinished { .. } => {
                (Exit::Store, "`infold doctor --repair` finishes it")
            }
            CheckpointError::Damaged { .. } => (
                Exit::Store,
                "the next checkpoint sets it aside and begins anew",
            ),
            CheckpointError::Full { .. } => (
                Exit::Store,
                "free some space and try again; `infold checkpoint gc` packs what is kept",
            ),
            CheckpointError::Io { .. } | CheckpointError::Git { .. } => (
                Exit::Store,
                "`infold doctor` shows the state of the checkpoints",
            ),
        };
        CliError::new(exit, error_chain(&error)).hint(hint)
    }
}
