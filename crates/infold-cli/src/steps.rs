use std::io::Read as _;
use std::path::Path;

use infold_log::steer::{Cover, Side, Target};
use infold_log::{EventId, Past, Pinned, Point, Seq, Span, View};
use infold_store::{Contexts, StepError, Writer};
use serde_json::json;
use uuid::Uuid;

use crate::args::{At, PinArgs, RewindArgs};
use crate::failure::{Failure, Kind};
use crate::out::{Out, count, number, report, say, warn};

/// A task opened for one step.
struct Open {
    id: Uuid,
    name: String,
    writer: Writer,
}

fn open(contexts: &Contexts, task: &str, json: bool) -> Result<Open, Failure> {
    let id = contexts.resolve(task)?;
    let (writer, repairs) = contexts.write(id)?;
    report(json, &repairs);
    // A full id is more than a person wants to type again.
    let name = task.chars().take(8).collect();
    Ok(Open { id, name, writer })
}

/// Does a step and says what it did to the view.
fn step(
    contexts: &Contexts,
    task: &str,
    out: &mut Out,
    make: impl FnOnce(&mut Writer) -> Result<(String, serde_json::Value), StepError>,
) -> Result<(), Failure> {
    let mut open = open(contexts, task, out.is_json())?;
    let before = tokens(&open.writer)?;
    let (text, mut object) = make(&mut open.writer)?;
    let after = tokens(&open.writer)?;
    // The step is made; the registry catches up with the next one.
    warn(out.is_json(), contexts.settle(open.id, &mut open.writer));
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
    out.line(format!("{text}; {sizes} (undo: infold undo {})", open.name))
}

fn tokens(writer: &Writer) -> Result<u64, Failure> {
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
        Ok(folded("hid", id, &cover, None))
    })
}

/// `infold condense`
pub fn condense(
    contexts: &Contexts,
    task: &str,
    range: Span,
    text: &Path,
    out: &mut Out,
) -> Result<(), Failure> {
    let text = read_text(text)?;
    if text.trim().is_empty() {
        return Err(Failure::new(Kind::Usage, "the summary is empty").hint("nothing was folded"));
    }
    step(contexts, task, out, |writer| {
        let (id, cover) = writer.condense(range, text.trim_end())?;
        Ok(folded("folded", id, &cover, Some(range)))
    })
}

fn folded(
    verb: &str,
    id: EventId,
    cover: &Cover,
    asked: Option<Span>,
) -> (String, serde_json::Value) {
    let span = cover.span;
    let why = match asked.filter(|asked| *asked != span) {
        Some(asked) => format!(
            " (asked for {asked}: only whole rounds and folds are hidden, and never the system prompt or the first request)"
        ),
        None => String::new(),
    };
    let text = format!(
        "{id}: {verb} {span}, {}{why}",
        count(cover.messages, "message")
    );
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
    step(contexts, &args.task, out, |writer| {
        let before = writer.log().state().shown().path();
        writer.rewind(side, target)?;
        let shown = writer.log().state().shown();
        let after: u64 = shown.path().iter().map(|run| run.count()).sum();
        let gone = before.iter().flat_map(|run| run.seqs());
        let gone = gone
            .filter(|seq| shown.place(*seq) == infold_log::Place::Elsewhere)
            .count() as u64;
        let text = format!(
            "rewound {}: {} hidden, none lost",
            target_name(side, target),
            count(gone, "message")
        );
        Ok((text, json!({"hidden": gone, "shown": after})))
    })
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
    let mut open = open(contexts, task, out.is_json())?;
    let step = open.writer.undo()?;
    let tokens = tokens(&open.writer)?;
    if out.is_json() {
        return out.object(&json!({"undone": step.to_string(), "tokens_after": tokens}));
    }
    out.line(format!(
        "undid {step}; view {} tokens (redo: infold redo {})",
        number(tokens),
        open.name
    ))
}

/// `infold redo`
pub fn redo(contexts: &Contexts, task: &str, out: &mut Out) -> Result<(), Failure> {
    let mut open = open(contexts, task, out.is_json())?;
    let step = open.writer.redo()?;
    let tokens = tokens(&open.writer)?;
    if out.is_json() {
        return out.object(&json!({"redone": step.to_string(), "tokens_after": tokens}));
    }
    out.line(format!(
        "redid {step}; view {} tokens (undo: infold undo {})",
        number(tokens),
        open.name
    ))
}

/// `infold fork`
pub fn fork(contexts: &Contexts, task: &str, at: Option<At>, out: &mut Out) -> Result<(), Failure> {
    let parent = contexts.resolve(task)?;
    let id = contexts.fork(parent, at.map(Target::from))?;
    let Point { seq, event } = contexts
        .read(id)?
        .parent()
        .map(|(_, at)| at)
        .unwrap_or_default();
    if out.is_json() {
        return out.object(&json!({"uuid": id.to_string(), "parent": parent.to_string(), "seq": seq, "event": event}));
    }
    out.line(id.to_string())?;
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
    let bad = || Failure::new(Kind::Usage, "messages and events are counted from 1");
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

fn read_text(path: &Path) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().read_to_end(&mut bytes).map(|_| ()),
        false => std::fs::read(path).map(|read| bytes = read),
    };
    let name = path.display();
    read.map_err(|error| Failure::new(Kind::Usage, format!("{name} could not be read: {error}")))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::new(Kind::Usage, format!("{name} is not UTF-8 (byte {at})"))
    })
}
