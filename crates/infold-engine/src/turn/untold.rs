use infold_log::{Past as _, Role, Seq, Span};
use infold_store::{Log, LogError, Working, Writer};

/// Says whether the last message is this one, still without an answer.
pub fn is_waiting(writer: &Writer, message: &[u8]) -> Result<bool, LogError> {
    let log = writer.log();
    match log.state().shown().open_end() {
        Some(last) => {
            Ok(is_user(log, last)? && log.message(last)? == *log.without_secrets(message))
        }
        None => Ok(false),
    }
}

/// The reply to this message, or to whatever was said last, if it is recorded and nobody was told.
///
/// So it is when a process ends between the two: the reply still lies beside the log.
pub fn unread(writer: &Writer, message: Option<&[u8]>) -> Result<Option<Span>, LogError> {
    let log = writer.log();
    let last = log.state().last_seq();
    let untold = std::fs::read(log.dir().join(Working::Reply.name())).unwrap_or_default();
    if untold.is_empty() || last.is_none() || log.state().shown().open_end() != last {
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
        Some(message) => {
            is_user(log, asked)? && log.message(asked)? == *log.without_secrets(message)
        }
        None => true,
    };
    let mut recorded = Vec::new();
    if let Some(reply) = Span::new(from, to).filter(|_| same) {
        for seq in reply.seqs() {
            recorded.extend(log.message(seq)?);
            recorded.push(b'\n');
        }
    }
    // Somebody else may have answered meanwhile.
    Ok(Span::new(from, to).filter(|_| recorded == untold))
}

/// A reply that lay there has been handed over.
pub fn told(writer: &Writer) -> Result<(), LogError> {
    for working in [Working::Reply, Working::Request] {
        // Made anew, it goes when it is dropped.
        writer.log().aside(working)?;
    }
    Ok(())
}

fn is_user(log: &Log, seq: Seq) -> Result<bool, LogError> {
    Ok(log.record(seq)?.role == Role::User)
}
