use infold::show::{LogEntry, LogSnapshot, RecalledMessage, ViewEntry, describe, kind};
use infold_log::steer::Target;
use infold_log::{Past as _, Role, Seq, Source, Span};
use infold_store::{Contexts, EventLine, Log, What, iso};
use infold_wire::{Message, gist};

use crate::args::{Look, ViewArgs};
use crate::failure::Failure;
use crate::out::{
    DIM, MADE, Out, cells, count, fit, number, of_role, one_line, paint, printable, say, table,
};
use crate::steps::short;

fn seen(contexts: &Contexts, look: &Look) -> Result<LogSnapshot, Failure> {
    let log = contexts.read(contexts.resolve(&look.task)?)?;
    let seen = LogSnapshot::new(log, look.at.map(Target::from));
    seen.map_err(|error| Failure::from(error).about(&short(&look.task)))
}

/// `infold view`
pub fn view(contexts: &Contexts, args: &ViewArgs, out: &mut Out) -> Result<(), Failure> {
    let seen = seen(contexts, &args.look)?;
    let LogSnapshot { log, at, .. } = &seen;
    out.widen_names(at.seq);
    let view = seen.view()?;
    seen.pieces(&view, args.raw, &mut |piece| match &piece {
        ViewEntry::Message { bytes, .. } if args.raw => {
            out.raw(bytes).and_then(|()| out.raw(b"\n"))
        }
        ViewEntry::Message { bytes, .. } if out.is_json() => {
            out.object_with(&piece.json(), "message", bytes)
        }
        ViewEntry::Fold(..) if out.is_json() => out.object(&piece.json()),
        ViewEntry::Message {
            source,
            note,
            bytes,
        } => view_line(*source, bytes, note, out),
        ViewEntry::Fold(line, tokens) => fold_line(line, *tokens, out),
    })?;
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

fn view_line(source: Source, bytes: &[u8], note: &str, out: &mut Out) -> Result<(), Failure> {
    let Ok(message) = Message::parse(bytes) else {
        return out.raw(bytes);
    };
    let tokens = infold_wire::tokens::message(&message);
    let name = source.seq().map_or(String::new(), |seq| seq.to_string());
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
    let seen = seen(contexts, look)?;
    out.widen_names(seen.at.seq);
    seen.entries(seen.all(), &mut |entry| match &entry {
        LogEntry::Message { bytes, .. } if out.is_json() => {
            out.object_with(&entry.json(), "message", bytes)
        }
        LogEntry::Event(_) if out.is_json() => out.object(&entry.json()),
        LogEntry::Message {
            seq,
            record,
            tokens,
            place,
            bytes,
        } => message_line(*seq, record.role, *tokens, place, bytes, out),
        LogEntry::Event(line) => event_line(line, out),
    })
}

fn message_line(
    seq: Seq,
    role: Role,
    tokens: u64,
    place: &str,
    bytes: &[u8],
    out: &mut Out,
) -> Result<(), Failure> {
    let message = Message::parse(bytes);
    let text = message
        .as_ref()
        .map_or_else(|error| error.to_string(), |message| gist(message, 400));
    let role = message.as_ref().map_or(role, speaker);
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
    let room = out.width().saturating_sub(out.names()).max(10);
    let (name, text) = (fit(&line.id.to_string(), out.names()), fit(&text, room));
    out.line(paint(MADE, format!("{name}{}", text.trim_end())))
}

/// `infold folds`
pub fn folds(contexts: &Contexts, look: &Look, out: &mut Out) -> Result<(), Failure> {
    let seen = seen(contexts, look)?;
    let mut rows = Vec::new();
    let mut styles = Vec::new();
    let mut none = true;
    seen.folds(&mut |fold| {
        none = false;
        if out.is_json() {
            return out.object(&fold.json());
        }
        let active = fold.status == "active";
        styles.push(if active { MADE } else { DIM });
        rows.push([
            fold.line.id.to_string(),
            kind(&fold.line.what).to_owned(),
            fold.span.to_string(),
            fold.status,
            format!("{} → {} tokens", number(fold.hides), number(fold.tokens)),
            iso(fold.line.ts)[..19].replace('T', " "),
        ]);
        Ok::<(), Failure>(())
    })?;
    if none {
        say(out.is_json(), paint(DIM, "no folds"));
    }
    let lines = table(&rows, &[4], out.width());
    let mut lines = styles.iter().zip(lines);
    lines.try_for_each(|(style, line)| out.line(paint(*style, line)))
}

/// `infold recall`
pub fn recall(contexts: &Contexts, task: &str, range: Span, out: &mut Out) -> Result<(), Failure> {
    let log = contexts.read(contexts.resolve(task)?)?;
    let there = RecalledMessage::check(&log, range);
    there.map_err(|error| Failure::from(error).about(&short(task)))?;
    RecalledMessage::each(&log, range, &mut |recalled| match out.is_json() {
        true => out.object_with(&recalled.json(), "message", recalled.bytes),
        false => in_full(&recalled, out),
    })
}

fn in_full(recalled: &RecalledMessage<'_>, out: &mut Out) -> Result<(), Failure> {
    let RecalledMessage {
        seq,
        record,
        shown,
        bytes,
    } = recalled;
    let head = format!(
        "── {seq} {} · {}{}",
        record.role,
        iso(record.time),
        if *shown { "" } else { " · hidden" }
    );
    out.line(paint(of_role(record.role), head))?;
    let message = Message::parse(bytes).ok();
    let text = message.and_then(|message| message.content()?.text());
    let more = message.is_none_or(|message| !message.calls().is_empty());
    if let Some(text) = &text {
        out.line(printable(text))?;
    }
    // What no text says: blocks and calls, as they came.
    if text.is_none() || more {
        out.line(String::from_utf8_lossy(bytes))?;
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
