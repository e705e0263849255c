use std::collections::BTreeMap;

use infold_log::steer::{Side, locate};
use infold_log::{EventId, Past, Place, Point, Role, Seq, Shown, Shows, Source, Span, View};
use infold_store::{Contexts, EventLine, Log, LogError, Purpose, What, iso};
use infold_wire::{Message, gist};
use serde_json::json;

use crate::args::{Look, ViewArgs};
use crate::failure::Failure;
use crate::out::{DIM, MADE, Out, cells, count, fit, number, of_role, one_line, paint, say, table};
use crate::steps::short;

/// A log as it was at a point.
struct Seen {
    log: Log,
    at: Point,
    shown: Shown,
}

fn seen(contexts: &Contexts, look: &Look) -> Result<Seen, Failure> {
    let log = contexts.read(contexts.resolve(&look.task)?)?;
    let at = match look.at {
        Some(at) => locate(log.state(), Side::To, at.into(), &log)
            .map_err(|error| Failure::from(error).about(&short(&look.task)))?,
        None => log.state().at(),
    };
    let shown = log.shown(at)?;
    Ok(Seen { log, at, shown })
}

/// `infold view`
pub fn view(contexts: &Contexts, args: &ViewArgs, out: &mut Out) -> Result<(), Failure> {
    let Seen { log, at, shown } = seen(contexts, &args.look)?;
    out.widen_names(at.seq);
    let view = View::of(&shown, &log)?;
    let mut printed = Ok(());
    for piece in view.pieces() {
        let fold = match piece.shows {
            Shows::StandIn(fold) if !args.raw => Some(log.event(fold)?),
            _ => None,
        };
        if let Some(line) = fold {
            fold_line(&line, piece.tokens, out)?;
            continue;
        }
        let mut notes = marks(&shown, &piece.shows, &log)?;
        log.render_piece(piece, &mut |source, bytes| {
            let note = match source {
                Source::Message(seq) | Source::Late(seq) => notes.remove(&seq).unwrap_or_default(),
                Source::StandIn => "note".to_owned(),
                Source::Repair => "no result".to_owned(),
            };
            if printed.is_ok() {
                printed = match args.raw {
                    true => out.raw(bytes).and_then(|()| out.raw(b"\n")),
                    false => view_line(source, bytes, &note, out),
                };
            }
            Ok(())
        })?;
        std::mem::replace(&mut printed, Ok(()))?;
    }
    let all = match Seq::new(at.seq) {
        Some(last) => log.record(last)?.sums.tokens,
        None => 0,
    };
    // What is said comes after what was printed.
    out.finish()?;
    let open = if view.is_open() {
        "; its last round waits for tool results"
    } else {
        ""
    };
    let (shown, all) = (number(view.tokens()), number(all));
    say(
        out.is_json(),
        paint(
            DIM,
            format!(
                "view {shown} tokens, log {all} in {}{open}",
                count(at.seq, "message")
            ),
        ),
    );
    Ok(())
}

/// What is special about messages: pinned, masked.
fn marks(shown: &Shown, shows: &Shows, log: &Log) -> Result<BTreeMap<Seq, String>, LogError> {
    let mut notes: BTreeMap<Seq, Vec<String>> = BTreeMap::new();
    for pin in shown.pins() {
        notes.entry(pin).or_default().push("pinned".to_owned());
    }
    if let Shows::Round { members, masks, .. } = shows {
        for (seq, part, id) in masks {
            notes
                .entry(*seq)
                .or_default()
                .push(format!("part {part} masked by {id}"));
        }
        for seq in members {
            if log.record(*seq)?.late {
                notes
                    .entry(*seq)
                    .or_default()
                    .push("late result".to_owned());
            }
        }
    }
    Ok(notes
        .into_iter()
        .map(|(seq, notes)| (seq, notes.join(", ")))
        .collect())
}

fn view_line(source: Source, bytes: &[u8], note: &str, out: &mut Out) -> Result<(), Failure> {
    let Ok(message) = Message::parse(bytes) else {
        return out.raw(bytes);
    };
    let tokens = infold_wire::tokens::message(&message);
    let name = source.seq().map_or(String::new(), |seq| seq.to_string());
    if out.is_json() {
        let seq = source.seq().map(Seq::get);
        let object =
            json!({"seq": seq, "role": message.role().wire_name(), "tokens": tokens, "note": note});
        return out.object_with(&object, "message", bytes);
    }
    let text = gist(&message, 400);
    line(out, &name, Some(speaker(&message)), &text, note, tokens)
}

/// Who speaks, for people: on some wires tool results come in the user's name.
fn speaker(message: &Message<'_>) -> Role {
    match message.answers().is_empty() {
        true => message.role(),
        false => Role::Tool,
    }
}

fn fold_line(line: &EventLine, tokens: u64, out: &mut Out) -> Result<(), Failure> {
    let What::Fold(fold) = &line.what else {
        return Ok(());
    };
    let (kind, span) = (kind(&line.what), fold.span);
    if out.is_json() {
        let stand_in: Vec<_> = fold
            .stand_in
            .iter()
            .map(|(role, text)| json!({"role": role.wire_name(), "text": text}))
            .collect();
        return out.object(&json!({
            "fold": line.id.to_string(), "kind": kind, "from": span.from().get(), "to": span.to().get(),
            "messages": fold.messages, "original_tokens": fold.original_tokens, "tokens": tokens, "stand_in": stand_in,
        }));
    }
    let hides = match kind {
        "summary" => format!(
            "(summary of {}, {} tokens)",
            count(fold.messages, "message"),
            number(fold.original_tokens)
        ),
        _ => format!(
            "({} hidden, {} tokens)",
            count(fold.messages, "message"),
            number(fold.original_tokens)
        ),
    };
    let name = if span.count() == 1 {
        span.to_string()
    } else {
        format!("{}-{}", span.from(), span.to())
    };
    made_line(out, &name, &format!("{} {hides}", line.id), tokens)
}

fn kind(what: &What) -> &'static str {
    match what {
        What::Fold(fold) if fold.cause == infold_log::Cause::Summary => "summary",
        What::Fold(_) => "window",
        _ => "mask",
    }
}

const ROLE: usize = 7;
const TOKENS: usize = 15;

fn line(
    out: &mut Out,
    name: &str,
    role: Option<Role>,
    text: &str,
    note: &str,
    tokens: u64,
) -> Result<(), Failure> {
    let role_text = role.map_or(String::new(), |role| role.to_string());
    let note = if note.is_empty() {
        String::new()
    } else {
        format!(" [{note}]")
    };
    let room = out
        .width()
        .saturating_sub(out.names() + ROLE + TOKENS)
        .max(10);
    let room = room.saturating_sub(cells(&note));
    let role = paint(role.map_or(DIM, of_role), fit(&role_text, ROLE));
    let tokens = paint(DIM, format!("{:>TOKENS$}", count(tokens, "token")));
    out.line(format!(
        "{}{role}{}{}{tokens}",
        fit(name, out.names()),
        fit(text, room),
        paint(MADE, &note)
    ))
}

fn made_line(out: &mut Out, name: &str, text: &str, tokens: u64) -> Result<(), Failure> {
    let room = out.width().saturating_sub(out.names() + TOKENS).max(10);
    let tokens = paint(DIM, format!("{:>TOKENS$}", count(tokens, "token")));
    out.line(format!(
        "{}{}{tokens}",
        fit(name, out.names()),
        paint(MADE, fit(text, room))
    ))
}

/// `infold log`
pub fn log(contexts: &Contexts, look: &Look, out: &mut Out) -> Result<(), Failure> {
    let Seen { log, at, shown } = seen(contexts, look)?;
    out.widen_names(at.seq);
    let mut event = 0;
    let mut printed: Result<(), Failure> = Ok(());
    let mut events_up_to = |seq: u64, out: &mut Out| -> Result<(), Failure> {
        while let Some(id) = EventId::new(event + 1).filter(|id| id.get() <= at.event) {
            if log.mark(id)?.after > seq {
                break;
            }
            event += 1;
            event_line(&log.event(id)?, out)?;
        }
        Ok(())
    };
    events_up_to(0, out)?;
    let all = Seq::new(at.seq).and_then(|last| Span::new(Seq::FIRST, last));
    if let Some(all) = all {
        log.each_message(all, &mut |source, bytes| {
            if let (Source::Message(seq), Ok(())) = (source, &printed) {
                printed = message_line(&log, &shown, seq, bytes, out)
                    .and_then(|()| events_up_to(seq.get(), out));
            }
            Ok(())
        })?;
    }
    printed
}

fn message_line(
    log: &Log,
    shown: &Shown,
    seq: Seq,
    bytes: &[u8],
    out: &mut Out,
) -> Result<(), Failure> {
    let record = log.record(seq)?;
    let before = seq.prev().map(|seq| log.record(seq)).transpose()?;
    let tokens = record.sums.tokens - before.map_or(0, |before| before.sums.tokens);
    let place = match shown.place(seq) {
        Place::Open => String::new(),
        Place::Under(fold) => format!("in {fold}"),
        Place::Elsewhere => "rewound".to_owned(),
    };
    if out.is_json() {
        let object = json!({
            "seq": seq.get(), "role": record.role.wire_name(), "timestamp": iso(record.time),
            "tokens": tokens, "round": record.round.get(), "place": if place.is_empty() { "shown" } else { &place },
        });
        return out.object_with(&object, "message", bytes);
    }
    let message = Message::parse(bytes);
    let text = message
        .as_ref()
        .map_or_else(|error| error.to_string(), |message| gist(message, 400));
    let role = message.as_ref().map_or(record.role, speaker);
    if place.is_empty() {
        return line(out, &seq.to_string(), Some(role), &text, "", tokens);
    }
    let room = out
        .width()
        .saturating_sub(out.names() + ROLE + TOKENS)
        .max(10);
    let room = room.saturating_sub(place.len() + 3);
    let (name, role) = (
        fit(&seq.to_string(), out.names()),
        fit(&role.to_string(), ROLE),
    );
    let text = format!(
        "{name}{role}{} [{place}]{:>TOKENS$}",
        fit(&text, room),
        count(tokens, "token")
    );
    out.line(paint(DIM, text))
}

fn event_line(line: &EventLine, out: &mut Out) -> Result<(), Failure> {
    let text = one_line(&describe(&line.what));
    if out.is_json() {
        return out.object(&json!({
            "event": line.id.to_string(), "timestamp": iso(line.ts), "after": line.after, "what": text,
        }));
    }
    let room = out.width().saturating_sub(out.names()).max(10);
    let (name, text) = (fit(&line.id.to_string(), out.names()), fit(&text, room));
    out.line(paint(MADE, format!("{name}{}", text.trim_end())))
}

/// What an event did, in a few words.
fn describe(what: &What) -> String {
    match what {
        What::Fold(fold) => format!(
            "fold {} {}: {}, {} → {} tokens",
            kind(what),
            fold.span,
            count(fold.messages, "message"),
            number(fold.original_tokens),
            number(fold.tokens)
        ),
        What::Mask(mask) => format!(
            "fold mask {} part {}: {} → {} tokens",
            mask.seq,
            mask.part,
            number(mask.original_tokens),
            number(mask.tokens)
        ),
        What::Unfold(fold) => format!("unfold {fold}"),
        What::Rewind(to) => format!("rewind to {to}"),
        What::Undo(step) => format!("undo {step}"),
        What::Redo(undo) => format!("redo, taking back {undo}"),
        What::Pin(seq) => format!("pin {seq}"),
        What::Note { text, .. } => format!("pin note: {text}"),
        What::Unpin(infold_log::Pinned::Message(seq)) => format!("unpin {seq}"),
        What::Unpin(infold_log::Pinned::Note(note)) => format!("unpin note {note}"),
        What::Fork { task, at } => format!("continues task {task} from {at}"),
        What::Status { status, error } => match error {
            Some(error) => format!("{status}: {error}"),
            None => status.to_string(),
        },
        What::Tool(record) => format!("tool {}", infold_wire::shorten(record, 200)),
        What::Usage(usage) => format!(
            "usage {}{}: {} tokens, {} of them cached",
            usage.model,
            match usage.purpose {
                Purpose::Reply => "",
                Purpose::Summary => ", for a summary",
                Purpose::Nothing => ", for a reply that was not taken",
            },
            number(usage.tokens),
            number(usage.cached)
        ),
        What::Failure(failure) => format!(
            "no reply from {}: {}",
            failure.model,
            infold_wire::shorten(&failure.error, 200)
        ),
        What::Manage(record) => format!("manage {}", infold_wire::shorten(record, 200)),
        What::Other(kind) => kind.clone(),
    }
}

/// `infold folds`
pub fn folds(contexts: &Contexts, look: &Look, out: &mut Out) -> Result<(), Failure> {
    let Seen { log, at, shown } = seen(contexts, look)?;
    let state = infold_log::State::resume(at, None, shown);
    let mut rows = Vec::new();
    let mut styles = Vec::new();
    for id in (1..=at.event).filter_map(EventId::new) {
        let line = log.event(id)?;
        let (span, hides, tokens) = match &line.what {
            What::Fold(fold) => (fold.span, fold.original_tokens, fold.tokens),
            What::Mask(mask) => (Span::one(mask.seq), mask.original_tokens, mask.tokens),
            _ => continue,
        };
        let status = match infold_log::steer::unfold(&state, id, &log) {
            Ok(_) => "active".to_owned(),
            Err(infold_log::steer::Refused::Inner { outer, .. }) => format!("inside {outer}"),
            Err(infold_log::steer::Refused::Past(error)) => return Err(error.into()),
            Err(_) => "inactive".to_owned(),
        };
        let kind = kind(&line.what);
        if out.is_json() {
            out.object(&json!({
                "fold": line.id.to_string(), "kind": kind, "from": span.from().get(), "to": span.to().get(),
                "original_tokens": hides, "tokens": tokens, "status": status, "timestamp": iso(line.ts),
            }))?;
            continue;
        }
        styles.push(if status == "active" { MADE } else { DIM });
        rows.push([
            id.to_string(),
            kind.to_owned(),
            span.to_string(),
            status,
            format!("{} → {} tokens", number(hides), number(tokens)),
            iso(line.ts)[..19].replace('T', " "),
        ]);
    }
    if rows.is_empty() {
        say(out.is_json(), paint(DIM, "no folds"));
    }
    let lines = table(&rows, &[4], out.width());
    let mut lines = styles.iter().zip(lines);
    lines.try_for_each(|(style, line)| out.line(paint(*style, line)))
}

/// `infold recall`
pub fn recall(contexts: &Contexts, task: &str, range: Span, out: &mut Out) -> Result<(), Failure> {
    let log = contexts.read(contexts.resolve(task)?)?;
    let last = log.state().at().seq;
    if range.to().get() > last {
        let seq = range.to().get();
        let error = infold_store::StepError::NoMessage { seq, last };
        return Err(Failure::from(error).about(&short(task)));
    }
    let mut printed: Result<(), Failure> = Ok(());
    log.each_message(range, &mut |source, bytes| {
        if let (Source::Message(seq), Ok(())) = (source, &printed) {
            printed = in_full(&log, seq, bytes, out);
        }
        Ok(())
    })?;
    printed
}

fn in_full(log: &Log, seq: Seq, bytes: &[u8], out: &mut Out) -> Result<(), Failure> {
    let record = log.record(seq)?;
    let shown = log.state().shown().place(seq) == Place::Open;
    if out.is_json() {
        let object = json!({
            "seq": seq.get(), "role": record.role.wire_name(), "timestamp": iso(record.time), "shown": shown,
        });
        return out.object_with(&object, "message", bytes);
    }
    let head = format!(
        "── {seq} {} · {}{}",
        record.role,
        iso(record.time),
        if shown { "" } else { " · hidden" }
    );
    out.line(paint(of_role(record.role), head))?;
    let message = Message::parse(bytes).ok();
    let text = message.and_then(|message| message.content()?.text());
    let more = message.is_none_or(|message| !message.calls().is_empty());
    if let Some(text) = &text {
        let safe: String = text
            .chars()
            .map(|c| {
                if c.is_control() && c != '\n' && c != '\t' {
                    '\u{fffd}'
                } else {
                    c
                }
            })
            .collect();
        out.line(safe)?;
    }
    // What no text says: blocks and calls, as they came.
    if text.is_none() || more {
        out.raw(bytes)?;
        out.raw(b"\n")?;
    }
    Ok(())
}

/// Prints a line for each message of a span, the middle of a long one left out.
pub fn gists(log: &Log, span: Span, out: &mut Out) -> Result<(), Failure> {
    const ENDS: u64 = 6;
    let last = span.count();
    let mut failed = Ok(());
    for (at, seq) in span.seqs().enumerate() {
        let at = at as u64;
        if last > 2 * ENDS && at == ENDS {
            out.line(paint(DIM, format!("  … {} more", number(last - 2 * ENDS))))?;
        }
        if last > 2 * ENDS && at >= ENDS && at < last - ENDS {
            continue;
        }
        log.each_message(Span::one(seq), &mut |_, bytes| {
            if let Ok(message) = Message::parse(bytes) {
                let room = out.width().saturating_sub(out.names() + 10).max(10);
                let text = gist(&message, room);
                let name = fit(&seq.to_string(), out.names());
                failed = out.line(format!("  {name}{:<7}{text}", speaker(&message)));
            }
            Ok(())
        })?;
        std::mem::replace(&mut failed, Ok(()))?;
    }
    Ok(())
}
