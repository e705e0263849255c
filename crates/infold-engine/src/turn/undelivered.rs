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
/// Its copy still lies beside the log.
pub fn undelivered_reply(
    writer: &Writer,
    message: Option<&[u8]>,
) -> Result<Option<Span>, LogError> {
    let log = writer.log();
    let last = log.state().last_seq();
    let undelivered = std::fs::read(log.dir().join(Working::Reply.name())).unwrap_or_default();
    if undelivered.is_empty() || last.is_none() || log.state().shown().open_end() != last {
        return Ok(None);
    }
    let mut reply = None;
    let mut next = last;
    while let Some(seq) = next {
        if log.record(seq)?.role != Role::Assistant {
            break;
        }
        reply = Some(seq);
        next = seq.prev();
    }
    let (Some(from), Some(to), Some(asked)) = (reply, last, next) else {
        return Ok(None);
    };
    let same = match message {
        Some(message) => is_user_message(log, asked, message)?,
        None => true,
    };
    let mut recorded = Vec::new();
    if let Some(reply) = Span::new(from, to).filter(|_| same) {
        for seq in reply.seqs() {
            recorded.extend(log.message(seq)?);
            recorded.push(b'\n');
        }
    }
    // Another process may have recorded a reply since.
    Ok(Span::new(from, to).filter(|_| recorded == undelivered))
}

/// Marks the reply as delivered.
pub fn mark_delivered(writer: &Writer) -> Result<(), LogError> {
    for working in [Working::Reply, Working::Request] {
        // A new file replaces the old one, and is removed when it is dropped.
        writer.log().aside(working)?;
    }
    Ok(())
}

/// Says whether a message is one of the user with these bytes.
fn is_user_message(log: &Log, seq: Seq, message: &[u8]) -> Result<bool, LogError> {
    let is_user = log.record(seq)?.role == Role::User;
    Ok(is_user && log.message(seq)? == *log.without_secrets(message))
}
