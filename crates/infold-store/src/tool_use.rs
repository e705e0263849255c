//! Extracts the tools that a conversation used from its messages.

use std::collections::VecDeque;

use infold_log::{Past as _, Record, Role, Seq, Span};
use infold_wire::tool_use::{self, RecordedCall, RecordedResult};
use infold_wire::{Message, quote};

use crate::derived::check_record;
use crate::{Log, LogError};

/// Results follow their calls closely: a call that lies further back is not looked for.
const MAX_MESSAGES_BACK: usize = 64;

/// A call and when it was made.
type TimedCall = (RecordedCall, u64);

/// A record, as `tools.jsonl` has it, for each result in these messages whose call is known.
pub(crate) fn records(log: &Log, messages: Span) -> Result<Vec<String>, LogError> {
    let mut records = Vec::new();
    let mut calls: VecDeque<TimedCall> = VecDeque::new();
    for seq in messages.seqs() {
        let record = log.record(seq)?;
        if !may_use_tools(seq, &record) {
            continue;
        }
        let bytes = log.message(seq)?;
        let Ok(message) = Message::parse(&bytes) else {
            continue;
        };
        if record.role == Role::Assistant {
            calls.extend(
                tool_use::tool_calls(&message)
                    .into_iter()
                    .map(|made| (made, record.time)),
            );
            while calls.len() > MAX_MESSAGES_BACK {
                calls.pop_front();
            }
            continue;
        }
        for came in tool_use::tool_results(&message) {
            let near = calls.iter().rev().find(|(made, _)| answers(&came, made));
            let call = match near {
                Some(call) => Some(call.clone()),
                None => earlier(log, messages.from(), &came)?,
            };
            if let Some((made, since)) = call {
                let written = written(&made, &came, record.time.saturating_sub(since));
                // A call whose arguments are no JSON is in the messages and nowhere else.
                records.extend(check_record(written.as_bytes()));
            }
        }
    }
    Ok(records)
}

/// The call that a result answers, among the messages shown before `seq`.
fn earlier(log: &Log, seq: Seq, came: &RecordedResult) -> Result<Option<TimedCall>, LogError> {
    let path = log.state().shown().path();
    let before = path.iter().rev().flat_map(|run| run.seqs().rev());
    let before = before.filter(|other| *other < seq).take(MAX_MESSAGES_BACK);
    for other in before {
        let record = log.record(other)?;
        if record.role != Role::Assistant || !may_use_tools(other, &record) {
            continue;
        }
        let bytes = log.message(other)?;
        let made = Message::parse(&bytes).map(|message| tool_use::tool_calls(&message));
        let mut made = made.unwrap_or_default().into_iter();
        if let Some(made) = made.find(|made| answers(came, made)) {
            return Ok(Some((made, record.time)));
        }
    }
    Ok(None)
}

/// Returns whether a message may hold calls or results of tools. Most do not, and are not read again.
fn may_use_tools(seq: Seq, record: &Record) -> bool {
    match record.role {
        // Its calls wait for their results.
        Role::Assistant => record.waiting > 0,
        Role::Tool => true,
        // A result joins the round of its call, or is late.
        Role::System | Role::User => record.round != seq || record.late,
    }
}

/// Returns whether a result is of a call; without an id, the tool has to do.
fn answers(came: &RecordedResult, made: &RecordedCall) -> bool {
    if came.id.is_empty() {
        made.tool == came.tool
    } else {
        made.id == came.id
    }
}

fn written(made: &RecordedCall, came: &RecordedResult, took: u64) -> String {
    let (tool, args, text) = (quote(&made.tool), &made.args, quote(&came.text));
    let (member, status) = if came.failed {
        ("error", "error")
    } else {
        ("result", "success")
    };
    format!(
        r#"{{"tool":{tool},"args":{args},"{member}":{text},"status":"{status}","duration_ms":{took}}}"#
    )
}
