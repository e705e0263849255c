use std::io::Read as _;
use std::path::Path;

use infold_log::steer::{Cover, Side, Target};
use infold_log::{EventId, Past, Pinned, Point, Seq, Span, View};
use infold_store::{Contexts, StepError, Writer};
use serde_json::json;
use uuid::Uuid;

use crate::args::{At, PinArgs, RewindArgs};
use crate::failure::{Failure, Kind};
use crate::out::{Out, count, number, repaired, say, warn};

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
    let (writer, repairs) = contexts.write(id)?;
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

/// Does a step and says what it did to the view.
fn step(
    contexts: &Contexts,
    task: &str,
    out: &mut Out,
    make: impl FnOnce(&mut Writer) -> Result<(String, serde_json::Value), StepError>,
) -> Result<(), Failure> {
    step_and(contexts, task, "undo", out, make)
}

/// As [`step`], naming the command that takes it back.
fn step_and(
    contexts: &Contexts,
    task: &str,
    back: &str,
    out: &mut Out,
    make: impl FnOnce(&mut Writer) -> Result<(String, serde_json::Value), StepError>,
) -> Result<(), Failure> {
    let mut open = open(contexts, task, out.is_json())?;
    let before = sizes(&open.writer)?;
    let made = make(&mut open.writer);
    let (text, mut object) = made.map_err(|error| Failure::from(error).about(&open.name))?;
    let after = sizes(&open.writer)?;
    // The step is made; the registry catches up with the next one.
    warn(out.is_json(), contexts.settle(open.id, &open.writer));
    if out.is_json() {
        object["tokens_before"] = before.into();
        object["tokens_after"] = after.into();
        object["event"] = open
            .writer
            .log()
            .state()
            .last_event()
            .map(|id| id.to_string())
            .into();
        return out.object(&object);
    }
    let sizes = format!("view {} → {} tokens", number(before), number(after));
    let name = &open.name;
    out.line(format!("{text}; {sizes} ({back}: infold {back} {name})"))
}

/// The tokens of the view.
pub fn sizes(writer: &Writer) -> Result<u64, Failure> {
    let log = writer.log();
    Ok(View::of(log.state().shown(), log)?.tokens())
}

/// `infold truncate`
pub fn truncate(
    contexts: &Contexts,
    task: &str,
    fraction: f64,
    out: &mut Out,
) -> Result<(), Failure> {
    step(contexts, task, out, |writer| {
        let (id, cover) = writer.truncate(fraction)?;
        Ok(folded("hid", id, &cover))
    })
}

/// How a fold differs from what was asked for, and why.
pub fn adjusted(cover: &Cover) -> Option<String> {
    let (asked, span) = (cover.asked, cover.span);
    let wider = span.from() < asked.from() || span.to() > asked.to();
    let narrower = span.from() > asked.from() || span.to() < asked.to();
    let (verb, why) = match (wider, narrower) {
        (false, false) => return None,
        (true, false) => (
            "widened",
            "a call and its results are hidden together, and a fold as a whole",
        ),
        (false, true) => (
            "narrowed",
            "the system prompt, the first request and what a rewind hid stay as they are",
        ),
        (true, true) => (
            "moved",
            "a call and its results are hidden together, the system prompt and the first request never",
        ),
    };
    Some(format!("{asked} was {verb} to {span}: {why}"))
}

pub fn folded(verb: &str, id: EventId, cover: &Cover) -> (String, serde_json::Value) {
    let span = cover.span;
    let text = format!("{id}: {verb} {span}, {}", count(cover.messages, "message"));
    let object = json!({
        "fold": id.to_string(), "from": span.from().get(), "to": span.to().get(), "messages": cover.messages,
        "asked_from": cover.asked.from().get(), "asked_to": cover.asked.to().get(),
    });
    (text, object)
}

/// `infold mask`
pub fn mask(
    contexts: &Contexts,
    task: &str,
    seq: Seq,
    part: u32,
    out: &mut Out,
) -> Result<(), Failure> {
    step(contexts, task, out, |writer| {
        let id = writer.mask(seq, part)?;
        let object = json!({"fold": id.to_string(), "seq": seq.get(), "part": part});
        Ok((format!("{id}: masked part {part} of message {seq}"), object))
    })
}

/// `infold unfold`
pub fn unfold(
    contexts: &Contexts,
    task: &str,
    fold: EventId,
    out: &mut Out,
) -> Result<(), Failure> {
    step(contexts, task, out, |writer| {
        writer.unfold(fold)?;
        Ok((format!("opened {fold}"), json!({"fold": fold.to_string()})))
    })
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
    step(contexts, &args.task, out, |writer| {
        let before = writer.log().state().shown().path();
        writer.rewind(side, target)?;
        let shown = writer.log().state().shown();
        let after = shown.path();
        let gone = messages(&before) - shared(&before, &after);
        let after = messages(&after);
        let text = format!(
            "rewound {}: {} hidden, none lost",
            target_name(side, target),
            count(gone, "message")
        );
        Ok((text, json!({"hidden": gone, "shown": after})))
    })
}

fn messages(runs: &[Span]) -> u64 {
    runs.iter().map(|run| run.count()).sum()
}

/// How many messages two paths have in common.
fn shared(one: &[Span], other: &[Span]) -> u64 {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    let mut count = 0;
    while let (Some(a), Some(b)) = (one.peek(), other.peek()) {
        count += a.meet(**b).map_or(0, Span::count);
        if a.to() <= b.to() {
            one.next();
        } else {
            other.next();
        }
    }
    count
}

fn target_name(side: Side, target: Target) -> String {
    let side = match side {
        Side::To => "to",
        Side::Before => "to before",
    };
    match target {
        Target::Message(seq) => format!("{side} {seq}"),
        Target::Event(event) => format!("{side} e{event}"),
        Target::Time(time) => format!("{side} {}", infold_store::iso(time)),
    }
}

/// `infold undo`
pub fn undo(contexts: &Contexts, task: &str, out: &mut Out) -> Result<(), Failure> {
    step_and(contexts, task, "redo", out, |writer| {
        let step = writer.undo()?;
        Ok((format!("undid {step}"), json!({"undone": step.to_string()})))
    })
}

/// `infold redo`
pub fn redo(contexts: &Contexts, task: &str, out: &mut Out) -> Result<(), Failure> {
    step(contexts, task, out, |writer| {
        let step = writer.redo()?;
        Ok((format!("redid {step}"), json!({"redone": step.to_string()})))
    })
}

/// `infold fork`
pub fn fork(contexts: &Contexts, task: &str, at: Option<At>, out: &mut Out) -> Result<(), Failure> {
    let parent = contexts.resolve(task)?;
    let forked = contexts.fork(parent, at.map(Target::from));
    let id = forked.map_err(|error| Failure::from(error).about(&short(task)))?;
    let Point { seq, event } = contexts
        .read(id)?
        .parent()
        .map(|(_, at)| at)
        .unwrap_or_default();
    if out.is_json() {
        return out.object(&json!({"uuid": id.to_string(), "parent": parent.to_string(), "seq": seq, "event": event}));
    }
    out.line(id.to_string())?;
    out.finish()?;
    say(false, format!("continues {parent} from message {seq}"));
    Ok(())
}

/// `infold pin`
pub fn pin(contexts: &Contexts, args: &PinArgs, out: &mut Out) -> Result<(), Failure> {
    step(contexts, &args.task, out, |writer| {
        match (&args.what.seq, &args.what.note) {
            (Some(seq), _) => {
                let seq = seq.0;
                writer.pin(seq)?;
                let round = writer.log().record(seq)?.round;
                Ok((
                    format!("pinned message {seq} and its round"),
                    json!({"seq": seq.get(), "round": round.get()}),
                ))
            }
            (None, note) => {
                let id = writer.note(note.as_deref().unwrap_or_default())?;
                Ok((
                    format!("{id}: pinned a note"),
                    json!({"note": id.to_string()}),
                ))
            }
        }
    })
}

/// `infold unpin`
pub fn unpin(contexts: &Contexts, task: &str, pinned: At, out: &mut Out) -> Result<(), Failure> {
    let bad = || {
        Failure::new(Kind::Usage, "messages and events are counted from 1")
            .hint("`infold view TASK` marks what is pinned")
            .about(&short(task))
    };
    let (pinned, name) = match pinned {
        At::Seq(seq) => (
            Pinned::Message(Seq::new(seq).ok_or_else(bad)?),
            format!("message {seq}"),
        ),
        At::Event(id) => (
            Pinned::Note(EventId::new(id).ok_or_else(bad)?),
            format!("note e{id}"),
        ),
    };
    step(contexts, task, out, |writer| {
        writer.unpin(pinned)?;
        Ok((format!("unpinned {name}"), json!({"unpinned": name})))
    })
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
