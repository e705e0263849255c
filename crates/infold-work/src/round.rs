//! The last round of a conversation: the model's text, its calls, and their results.

use infold_log::{Past as _, Role, Seq};
use infold_store::{Log, LogError};
use infold_wire::tool_use::{RecordedResult, tool_results};
use infold_wire::{ClientCall, Message, Wire, Wires, append_words};

use crate::built_in;
use crate::call_record::{CallKey, CallRecord, call_records};

/// The last round of a conversation.
pub(crate) struct LastRound {
    /// The first message of the round.
    pub first: Seq,
    /// The role of its last message.
    pub role: Role,
    /// The calls of the model, in order.
    pub calls: Vec<RoundCall>,
}

/// A call in the last round.
#[derive(Clone, Debug)]
pub(crate) struct RoundCall {
    /// Where it stands.
    pub key: CallKey,
    /// The call.
    pub call: ClientCall,
    /// The wires that take the message that holds it as it is.
    pub wires: Wires,
    /// Whether a result is among the messages.
    pub has_result: bool,
}

/// How the model ended its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finish {
    /// The model's summary of its work.
    pub summary: String,
    /// Whether the model reports that the task could not be done.
    pub failed: bool,
}

impl LastRound {
    /// Reads the last round; none if there are no messages.
    pub fn read(log: &Log) -> Result<Option<LastRound>, LogError> {
        let Some(last) = log.state().shown().last() else {
            return Ok(None);
        };
        let record = log.record(last)?;
        let path = log.state().shown().path();
        let mut seqs = Vec::new();
        for seq in path.iter().rev().flat_map(|run| run.seqs().rev()) {
            if log.record(seq)?.round != record.round {
                break;
            }
            seqs.push(seq);
        }
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        for seq in seqs.iter().rev() {
            let bytes = log.message(*seq)?;
            let Ok(message) = Message::parse(&bytes) else {
                continue;
            };
            if log.record(*seq)?.role == Role::Assistant {
                let found = ClientCall::all(&message).into_iter().zip(0..);
                calls.extend(found.map(|(call, index)| RoundCall {
                    key: CallKey {
                        message: *seq,
                        index,
                    },
                    call,
                    wires: message.wires(),
                    has_result: false,
                }));
            } else {
                results.extend(tool_results(&message));
            }
        }
        for result in &results {
            if let Some(answered) = calls.iter_mut().find(|call| is_answered(call, result)) {
                answered.has_result = true;
            }
        }
        Ok(Some(LastRound {
            first: record.round,
            role: record.role,
            calls,
        }))
    }

    /// Returns the calls that have no result yet.
    pub fn pending(&self) -> Vec<RoundCall> {
        let pending = self.calls.iter().filter(|call| !call.has_result);
        pending.cloned().collect()
    }

    /// Returns whether the round is a reply without text and without a call.
    pub fn is_silent(&self, log: &Log) -> Result<bool, LogError> {
        let is_reply = self.role == Role::Assistant && self.calls.is_empty();
        Ok(is_reply && words(log, self.first)?.trim().is_empty())
    }

    /// Returns how the model ended its work, if this round is its end.
    pub fn finish(&self, log: &Log) -> Result<Option<Finish>, LogError> {
        if self.calls.iter().any(|call| !call.has_result) {
            return Ok(None);
        }
        if self.calls.is_empty() {
            let said = (self.role == Role::Assistant).then(|| words(log, self.first));
            let summary = said.transpose()?;
            return Ok(summary.map(|summary| Finish {
                summary,
                failed: false,
            }));
        }
        let records = call_records(log, self.first)?;
        let done = self.calls.iter().rfind(|call| {
            let record = records.get(&call.key);
            let is_well = matches!(record, Some(CallRecord::Ended(outcome)) if outcome.is_ok());
            call.call.name == built_in::DONE && is_well
        });
        Ok(done.map(|done| built_in::finish_of(&done.call.arguments)))
    }
}

/// Returns whether a result answers a call; without an id, the tool has to do.
fn is_answered(call: &RoundCall, result: &RecordedResult) -> bool {
    if call.has_result {
        return false;
    }
    match &call.call.id {
        Some(id) if !result.id.is_empty() => *id == result.id,
        _ => result.tool.is_empty() || call.call.name == result.tool,
    }
}

/// Returns the text of the model from a message on.
fn words(log: &Log, first: Seq) -> Result<String, LogError> {
    let mut text = String::new();
    let last = log.state().shown().last().unwrap_or(first);
    let mut seq = first;
    while seq <= last {
        if let Ok(message) = Message::parse(&log.message(seq)?) {
            append_words(&message, &mut text);
        }
        seq = seq.next();
    }
    Ok(text)
}

/// Returns the model's summary when it finished a task; none if it has not.
pub fn task_result(log: &Log) -> Result<Option<String>, LogError> {
    let finish = match LastRound::read(log)? {
        Some(round) => round.finish(log)?,
        None => None,
    };
    Ok(finish.map(|finish| finish.summary))
}

/// Returns the wire in whose form results go with calls: the provider's, unless another one made the calls.
pub(crate) fn result_wire(calls: &[RoundCall], provider: Wire) -> Wire {
    let wires = calls.first().map(|call| call.wires);
    let Some(wires) = wires.filter(|wires| !wires.has(provider)) else {
        return provider;
    };
    let mut others = Wire::ALL.into_iter();
    others.find(|wire| wires.has(*wire)).unwrap_or(provider)
}
