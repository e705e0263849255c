//! Commands that take one step in a task: undo, rewind, pin, fork and the like.

use std::io::Read as _;
use std::path::Path;

use infold::Hooks;
use infold::checkpoint::{FileHistory, RestoreReport};
use infold::layers::model::Transitions;
use infold::step::{Step, StepContext, StepResult, fork_at};
use infold_log::steer::{Side, Target};
use infold_log::{EventId, Pinned, Point, Seq};
use infold_store::{Contexts, Writer};
use serde_json::json;
use uuid::Uuid;

use crate::args::{PinArgs, RewindArgs, UndoArgs};
use crate::checkpoint::preview_rewind;
use crate::error::{CliError, CliResult};
use crate::output::{Output, count, note, one_line, report_repairs, say, warn};
use crate::task_lock::acquire;

/// A task opened for writing.
pub struct WritableTask {
    /// The task's id.
    pub id: Uuid,
    /// The task's short name, for hints.
    pub name: String,
    /// The task's writer.
    pub writer: Writer,
}

/// Opens a task for writing and reports repairs.
pub fn open(contexts: &Contexts, task: &str, json: bool) -> CliResult<WritableTask> {
    let id = contexts.resolve(task)?;
    let (writer, repairs) = acquire(|| contexts.write(id))?;
    report_repairs(json, &repairs);
    Ok(WritableTask {
        id,
        name: short(task),
        writer,
    })
}

/// Shortens an id to the form that users type.
pub fn short(task: &str) -> String {
    task.chars().take(8).collect()
}

/// Takes a step and prints its effect on the view.
pub fn take(
    contexts: &Contexts,
    hooks: &Hooks,
    task: &str,
    step: &Step,
    out: &mut Output,
) -> CliResult {
    let files = FileHistory::new(contexts);
    take_with(contexts, (hooks, &files), task, step, out)
}

/// Like [`take`], with the handling of files.
fn take_with(
    contexts: &Contexts,
    (hooks, files): (&Hooks, &FileHistory),
    task: &str,
    step: &Step,
    out: &mut Output,
) -> CliResult {
    let mut open = open(contexts, task, out.is_json())?;
    let context = StepContext {
        hooks,
        // A person may change the phase as they like.
        transitions: &Transitions::default(),
        files,
    };
    let taken = step.take(&mut open.writer, context);
    let taken = taken.map_err(|error| CliError::from(error).about(&open.name))?;
    print_step(contexts, &open, taken, out)
}

/// Prints the effect of a step on the view.
pub fn print_step(
    contexts: &Contexts,
    open: &WritableTask,
    taken: StepResult,
    out: &mut Output,
) -> CliResult {
    let json = out.is_json();
    // The step is recorded; the next write updates the registry too.
    warn(json, contexts.settle(open.id, &open.writer));
    if let Some(error) = taken.hook_error {
        CliError::no(error).warn(json);
    }
    if let Some(text) = taken.note {
        note(json, text);
    }
    if let Some(files) = &taken.files {
        print_files(files, json);
    }
    let (text, back, name) = (taken.text, taken.inverse, &open.name);
    out.result(
        &taken.json,
        format!("{text} ({back}: infold {back} {name})"),
    )
}

/// The most files that are named on standard error.
const MAX_NAMED_FILES: usize = 20;

/// Names the files that were restored, and those that were left as they are.
fn print_files(files: &RestoreReport, json: bool) {
    for text in &files.notes {
        note(json, text);
    }
    let written = files.written.iter().map(|path| ("wrote", path));
    let removed = files.removed.iter().map(|path| ("removed", path));
    for (verb, path) in written.chain(removed).take(MAX_NAMED_FILES) {
        note(
            json,
            format!("{verb} {}", one_line(&path.to_string_lossy())),
        );
    }
    let more = (files.written.len() + files.removed.len()).saturating_sub(MAX_NAMED_FILES);
    if more > 0 {
        note(json, format!("and {}", count(more as u64, "more file")));
    }
    for (path, why) in &files.kept {
        let path = one_line(&path.to_string_lossy());
        CliError::no(format!("{path} was left as it is: {why}")).warn(json);
    }
}

/// `infold undo` and `infold redo`
pub fn undo(contexts: &Contexts, args: &UndoArgs, step: &Step, out: &mut Output) -> CliResult {
    let files = FileHistory::new(contexts);
    let files = if args.no_files {
        files.keeping_files()
    } else {
        files
    };
    take_with(contexts, (&Hooks::default(), &files), &args.task, step, out)
}

/// `infold rewind`
pub fn rewind(contexts: &Contexts, args: &RewindArgs, out: &mut Output) -> CliResult {
    let (side, target) = match (args.point.to, args.point.before) {
        (Some(target), _) => (Side::To, target),
        (None, Some(target)) => (Side::Before, target),
        (None, None) => return Err(CliError::usage("give --to or --before")),
    };
    if let Target::Time(time) = target
        && time > infold_store::now()
    {
        let error = format!("{} is in the future", infold_store::iso(time));
        return Err(CliError::usage(error)
            .hint("`infold log TASK --json` shows the times")
            .about(&short(&args.task)));
    }
    if args.dry_run {
        return preview_rewind(contexts, &args.task, (side, target), out);
    }
    let step = Step::Rewind {
        side,
        target,
        files: args.files,
    };
    take(contexts, &Hooks::default(), &args.task, &step, out)
}

/// `infold fork`
pub fn fork(contexts: &Contexts, task: &str, at: Option<Target>, out: &mut Output) -> CliResult {
    let parent = contexts.resolve(task)?;
    let forked = fork_at(contexts, parent, at);
    let id = forked.map_err(|error| CliError::from(error).about(&short(task)))?;
    // The fork exists even if it cannot be read now.
    let read = contexts.read(id).map(|log| log.parent().map(|(_, at)| at));
    let at = read.as_ref().ok().copied().flatten();
    warn(out.is_json(), read.map(drop));
    let (seq, event) = (at.map(|at| at.seq), at.map(|at| at.event));
    let object =
        json!({"uuid": id.to_string(), "parent": parent.to_string(), "seq": seq, "event": event});
    out.result(&object, id.to_string())?;
    out.finish()?;
    let from = at.map(|Point { seq, .. }| format!(" from message {seq}"));
    say(
        out.is_json(),
        format!("continues {parent}{}", from.unwrap_or_default()),
    );
    Ok(())
}

/// `infold pin`
pub fn pin(contexts: &Contexts, args: PinArgs, out: &mut Output) -> CliResult {
    let text = args.target.note.unwrap_or_default();
    let note = Step::Note { text };
    let step = args.target.seq.map_or(note, |seq| Step::Pin { seq });
    take(contexts, &Hooks::default(), &args.task, &step, out)
}

/// `infold unpin`
pub fn unpin(contexts: &Contexts, task: &str, pinned: Target, out: &mut Output) -> CliResult {
    let what = match pinned {
        Target::Message(seq) => Seq::new(seq).map(Pinned::Message),
        Target::Event(id) => EventId::new(id).map(Pinned::Note),
        Target::Time(_) => None,
    };
    let what = what.ok_or_else(|| {
        CliError::usage("messages and events are counted from 1")
            .hint("`infold view TASK` marks what is pinned")
            .about(&short(task))
    })?;
    take(
        contexts,
        &Hooks::default(),
        task,
        &Step::Unpin { what },
        out,
    )
}

/// Reads the text of a summary from a file or standard input.
pub fn read_text(path: &Path) -> CliResult<String> {
    let mut bytes = Vec::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().read_to_end(&mut bytes).map(|_| ())
    } else {
        std::fs::read(path).map(|read| bytes = read)
    };
    let name = path.display();
    let hint = "--text names a file with the summary, or - for standard input";
    let unread = |error| format!("{name} could not be read: {error}");
    read.map_err(|error| CliError::usage(unread(error)).hint(hint))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        CliError::usage(format!("{name} is not UTF-8 (byte {at})")).hint(hint)
    })
}
