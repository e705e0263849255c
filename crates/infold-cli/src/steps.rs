use std::io::Read as _;
use std::path::Path;

use infold::Hooks;
use infold::step::{Step, StepResult, fork_at};
use infold_log::steer::{Side, Target};
use infold_log::{EventId, Pinned, Point, Seq};
use infold_store::{Contexts, Writer};
use serde_json::json;
use uuid::Uuid;

use crate::args::{At, PinArgs, RewindArgs};
use crate::failure::{Failure, Kind};
use crate::holder::released;
use crate::out::{DIM, Out, paint, repaired, say, warn};

/// A task opened for one step.
pub struct Open {
    /// The task.
    pub id: Uuid,
    /// Its name, as short as a person would type it.
    pub name: String,
    /// The task itself.
    pub writer: Writer,
}

/// Opens a task for one step.
pub fn open(contexts: &Contexts, task: &str, json: bool) -> Result<Open, Failure> {
    let id = contexts.resolve(task)?;
    let (writer, repairs) = released(|| contexts.write(id))?;
    repaired(json, &repairs);
    Ok(Open {
        id,
        name: short(task),
        writer,
    })
}

/// A full id is more than a person wants to type again.
pub fn short(task: &str) -> String {
    task.chars().take(8).collect()
}

/// Takes a step and says what it did to the view.
pub fn take(
    contexts: &Contexts,
    hooks: &Hooks,
    task: &str,
    step: &Step,
    out: &mut Out,
) -> Result<(), Failure> {
    let mut open = open(contexts, task, out.is_json())?;
    let taken = step.take(&mut open.writer, hooks);
    let taken = taken.map_err(|error| Failure::from(error).about(&open.name))?;
    tell(contexts, &open, taken, out)
}

/// Says what a step did to the view.
pub fn tell(
    contexts: &Contexts,
    open: &Open,
    taken: StepResult,
    out: &mut Out,
) -> Result<(), Failure> {
    let json = out.is_json();
    // The step is made; the registry catches up with the next one.
    warn(json, contexts.settle(open.id, &open.writer));
    if let Some(error) = taken.hook_error {
        Failure::new(Kind::No, error).warn(json);
    }
    if let Some(note) = taken.note {
        say(json, paint(DIM, note));
    }
    if json {
        return out.object(&taken.json);
    }
    let (text, back, name) = (taken.text, taken.inverse, &open.name);
    out.line(format!("{text} ({back}: infold {back} {name})"))
}

/// `infold rewind`
pub fn rewind(contexts: &Contexts, args: &RewindArgs, out: &mut Out) -> Result<(), Failure> {
    let (side, target) = match (args.point.to, args.point.before) {
        (Some(when), _) => (Side::To, when.0),
        (None, Some(when)) => (Side::Before, when.0),
        (None, None) => return Err(Failure::new(Kind::Usage, "say where: --to or --before")),
    };
    if let Target::Time(time) = target
        && time > infold_store::now()
    {
        let error = format!("{} lies in the future", infold_store::iso(time));
        return Err(Failure::new(Kind::Usage, error)
            .hint("`infold log TASK --json` shows when things happened")
            .about(&short(&args.task)));
    }
    let step = Step::Rewind { side, target };
    take(contexts, &Hooks::default(), &args.task, &step, out)
}

/// `infold fork`
pub fn fork(contexts: &Contexts, task: &str, at: Option<At>, out: &mut Out) -> Result<(), Failure> {
    let parent = contexts.resolve(task)?;
    let forked = fork_at(contexts, parent, at.map(Target::from));
    let id = forked.map_err(|error| Failure::from(error).about(&short(task)))?;
    // It is made, whether or not it can be read just now.
    let read = contexts.read(id).map(|log| log.parent().map(|(_, at)| at));
    let at = read.as_ref().ok().copied().flatten();
    warn(out.is_json(), read.map(drop));
    if out.is_json() {
        let (seq, event) = (at.map(|at| at.seq), at.map(|at| at.event));
        return out.object(&json!({"uuid": id.to_string(), "parent": parent.to_string(), "seq": seq, "event": event}));
    }
    out.line(id.to_string())?;
    out.finish()?;
    let from = at.map(|Point { seq, .. }| format!(" from message {seq}"));
    say(
        false,
        format!("continues {parent}{}", from.unwrap_or_default()),
    );
    Ok(())
}

/// `infold pin`
pub fn pin(contexts: &Contexts, args: &PinArgs, out: &mut Out) -> Result<(), Failure> {
    let step = match (&args.what.seq, &args.what.note) {
        (Some(seq), _) => Step::Pin { seq: seq.0 },
        (None, note) => Step::Note {
            text: note.clone().unwrap_or_default(),
        },
    };
    take(contexts, &Hooks::default(), &args.task, &step, out)
}

/// `infold unpin`
pub fn unpin(contexts: &Contexts, task: &str, pinned: At, out: &mut Out) -> Result<(), Failure> {
    let bad = || {
        Failure::new(Kind::Usage, "messages and events are counted from 1")
            .hint("`infold view TASK` marks what is pinned")
            .about(&short(task))
    };
    let what = match pinned {
        At::Seq(seq) => Pinned::Message(Seq::new(seq).ok_or_else(bad)?),
        At::Event(id) => Pinned::Note(EventId::new(id).ok_or_else(bad)?),
    };
    let step = Step::Unpin { what };
    take(contexts, &Hooks::default(), task, &step, out)
}

pub fn read_text(path: &Path) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().read_to_end(&mut bytes).map(|_| ()),
        false => std::fs::read(path).map(|read| bytes = read),
    };
    let name = path.display();
    let hint = "--text names a file with the summary, or - for standard input";
    let unread = |error| format!("{name} could not be read: {error}");
    read.map_err(|error| Failure::new(Kind::Usage, unread(error)).hint(hint))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::new(Kind::Usage, format!("{name} is not UTF-8 (byte {at})")).hint(hint)
    })
}
