//! Replies that were recorded and not delivered, because the process ended between the two.

use infold_log::{Past as _, Role, Seq, Span};
use infold_store::{Log, LogError, Working, Writer};

/// Says whether the last message is this one, still without a reply.
pub fn is_unanswered(writer: &Writer, message: &[u8]) -> Result<bool, LogError> {
    let log = writer.log();
    match log.state().shown().open_end() {
        Some(last) => is_user_message(log, last, message),
        None => Ok(false),
    }
}

/// Returns the undelivered reply to this message, or to the last one, if there is one.
///
/// Its copy is still beside the log.
pub fn undelivered_reply(
    writer: &Writer,
    message: Option<&[u8]>,
) -> Result<Option<Span>, LogError> {
    let log = writer.log();
    let last = log.state().last_seq();
    let undelivered = std::fs::read(log.dir().join(Working::Reply.name())).unwrap_or_default();
    let Some(last) = last.filter(|last| log.state().shown().open_end() == Some(*last)) else {
        return Ok(None);
    };
    // Results of refused calls follow the reply, and lie beside the log with it.
    let lines: Vec<&[u8]> = undelivered.split_inclusive(|byte| *byte == b'\n').collect();
    let count = lines.len() as u64;
    let from = last.next().get().checked_sub(count).and_then(Seq::new);
    let (Some(from), true) = (from, count > 0) else {
        return Ok(None);
    };
    let mut reply = None;
    for (seq, line) in (from.get()..).filter_map(Seq::new).zip(lines) {
        // Another process may have recorded a reply since.
        let recorded = log.message(seq)?;
        if line.strip_suffix(b"\n") != Some(&recorded) {
            return Ok(None);
        }
        if log.record(seq)?.role == Role::Assistant {
            reply = Span::new(from, seq);
        }
    }
    let Some(asked) = from.prev() else {
        return Ok(None);
    };
    let same = match message {
        Some(message) => is_user_message(log, asked, message)?,
        None => log.record(asked)?.role != Role::Assistant,
    };
    Ok(reply.filter(|_| same))
}

/// Marks the reply as delivered.
pub fn mark_delivered(writer: &Writer) -> Result<(), LogError> {
    for working in [Working::Reply, Working::Request] {
        // A new file replaces the old one, and is removed when it is dropped.
        writer.log().create_working_file(working)?;
    }
    Ok(())
}

/// Says whether a message is one of the user with these bytes.
fn is_user_message(log: &Log, seq: Seq, message: &[u8]) -> Result<bool, LogError> {
    let is_user = log.record(seq)?.role == Role::User;
    Ok(is_user && log.message(seq)? == *log.without_secrets(message))
}
