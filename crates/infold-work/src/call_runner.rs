//! Runs the tool calls of a round. Each call is recorded before and after it runs, so that no call runs twice if the
//! worker is killed and started again.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use infold::layers::model::Transitions;
use infold_log::Seq;
use infold_log::steer::Refused;
use infold_store::{AppendError, Contexts, LogError, RefusalLine, TaskError, ToolError, Writer};
use infold_toolbox::{CallStatus, head_and_tail};
use infold_wire::secrets::contains_marker;
use infold_wire::{
    ClientCall, INTERRUPTED_RESULT, Message, PartKind, Wire, quote, tokens, write_call_results,
};
use uuid::Uuid;

use crate::built_in::{self, BuiltInTools};
use crate::call_record::{CallKey, CallRecord, call_records, record_end, record_start};
use crate::repeats::{self, PAUSE_AFTER_REPEATS, WARN_AFTER_REPEATS};
use crate::round::{LastRound, RoundCall};
use crate::{RunEvent, RunListener, ToolSet};

/// How a call ended, for listeners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// The call was run.
    Ran {
        /// The output of the tool, or the error.
        result: Result<String, String>,
        /// How long the call took.
        duration: Duration,
    },
    /// The call was not run; the text says why, and is the result that the model gets.
    Refused(String),
    /// An earlier process ran the call, and its recorded result was used.
    Restored,
    /// An earlier process started the call and did not record its end. The call is not run again, because it may have
    /// taken effect.
    Interrupted,
}

/// Runs the calls of a round of one task.
pub(crate) struct CallRunner<'a> {
    pub contexts: &'a Contexts,
    pub task: Uuid,
    pub tools: &'a ToolSet,
    pub transitions: &'a Transitions,
    /// The most tokens of one result that the model is shown; the log stores the whole result.
    pub result_tokens: u64,
}

/// Why calls or their results could not be recorded.
#[derive(Debug, thiserror::Error)]
pub enum CallRecordError {
    /// The log could not be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A record could not be written.
    #[error(transparent)]
    Record(#[from] ToolError),
    /// A result could not be appended.
    #[error(transparent)]
    Result(#[from] AppendError),
    /// The calls could not be counted.
    #[error(transparent)]
    Count(#[from] TaskError),
}

/// The decision about a call: run it, or use a known result.
enum CallPlan {
    /// The call is not run, and gets this result.
    Known(Result<String, String>),
    /// The call is run.
    Run,
}

/// The most bytes of all results of a round as JSON. On some wires they are one message, and the message and the
/// records have other members too.
const MAX_RESULT_BYTES: usize = infold_store::MAX_MESSAGE - (64 << 10);

/// The result for a call whose arguments contain the placeholder of a secret. The tool would take the placeholder
/// literally, such as by writing it into a file in place of the secret.
const REDACTED_ARGUMENTS: &str = "This call was not run: its arguments hold `[redacted:…]`, which stands for a secret that is not recorded, and would be taken literally. Leave that part out: edit other parts of the file, or let a command take the secret from a file.";

impl CallRunner<'_> {
    /// Runs the calls that have no result yet, and appends their results. Returns the reason to pause the task; `None`
    /// if it can continue.
    pub fn run(
        &self,
        writer: &mut Writer,
        round: &LastRound,
        wire: Wire,
        listener: RunListener<'_>,
    ) -> Result<Option<String>, CallRecordError> {
        let pending = round.pending();
        let records = call_records(writer.log(), round.first)?;
        let share = MAX_RESULT_BYTES / pending.len().max(1);
        let mut pause_reason = None;
        let mut results: Vec<Result<String, String>> = Vec::new();
        let mut at = 0;
        while at < pending.len() {
            let repeats = count_repeats(writer, round, &pending[at])?;
            let plan = self.plan(writer, &pending[at], &records, repeats, listener)?;
            if repeats >= PAUSE_AFTER_REPEATS {
                let name = &pending[at].call.name;
                pause_reason = Some(format!(
                    "the model made the same call of `{name}` {repeats} times in a row"
                ));
            }
            let count = match &plan {
                CallPlan::Known(_) => 1,
                CallPlan::Run => self.batch_len(&pending[at..], &records),
            };
            match plan {
                CallPlan::Known(result) => results.push(result),
                CallPlan::Run => {
                    let batch = &pending[at..at + count];
                    results.extend(self.run_batch(writer, batch, share, repeats, listener)?);
                }
            }
            at += count;
        }
        let calls = pending.iter().map(|pending| &pending.call);
        let answered: Vec<_> = calls.zip(results).collect();
        let appended = writer.append(&write_call_results(wire, &answered))?;
        if let Some(span) = appended {
            let mut calls = pending.iter().map(|pending| &pending.call);
            for seq in span.seqs() {
                self.clip(writer, seq, &mut calls)?;
            }
        }
        writer.sync()?;
        Ok(pause_reason)
    }

    /// Decides whether a call is run. If it is not, this reports the call to the listener, and records its result
    /// unless that was recorded before.
    fn plan(
        &self,
        writer: &mut Writer,
        pending: &RoundCall,
        records: &HashMap<CallKey, CallRecord>,
        repeats: usize,
        listener: RunListener<'_>,
    ) -> Result<CallPlan, CallRecordError> {
        let (key, call) = (pending.key, &pending.call);
        let (outcome, result) = match records.get(&key) {
            Some(CallRecord::Ended(result)) => (CallOutcome::Restored, result.clone()),
            Some(CallRecord::Started) => {
                let told = format!(
                    "{INTERRUPTED_RESULT} The process that ran this call ended before its result was recorded: it may or may not have taken effect. Look before you repeat it."
                );
                let result = Err(told);
                record_end(writer, key, call, &result, Duration::ZERO)?;
                (CallOutcome::Interrupted, result)
            }
            None => {
                let refusal = if repeats >= PAUSE_AFTER_REPEATS {
                    let text = format!(
                        "This call was not run: it is call {repeats} in a row with the same arguments. The task is paused."
                    );
                    Some(text)
                } else {
                    let refusal = self.refusal(call);
                    refusal.map(|told| match repeats {
                        WARN_AFTER_REPEATS.. => format!("{told}\n\n{}", repeats::warning(repeats)),
                        _ => told,
                    })
                };
                let Some(told) = refusal else {
                    return Ok(CallPlan::Run);
                };
                let result = Err(told.clone());
                record_end(writer, key, call, &result, Duration::ZERO)?;
                writer.refusal(RefusalLine {
                    tool: call.name.clone(),
                    call: call.id.clone(),
                    told: told.clone(),
                })?;
                (CallOutcome::Refused(told), result)
            }
        };
        listener(RunEvent::CallEnded {
            name: &call.name,
            outcome: &outcome,
        });
        Ok(CallPlan::Known(result))
    }

    /// Returns the text for the model that says why a call is not run; `None` if it is run.
    fn refusal(&self, call: &ClientCall) -> Option<String> {
        let is_own = built_in::NAMES.contains(&call.name.as_str());
        if self.contexts.redacts() && !is_own && contains_marker(&call.arguments) {
            return Some(REDACTED_ARGUMENTS.to_owned());
        }
        self.tools.refusal(call)
    }

    /// Returns how many calls from the first on run at the same time. Calls that may change something run alone and in
    /// order, because a later call may depend on the change.
    fn batch_len(&self, pending: &[RoundCall], records: &HashMap<CallKey, CallRecord>) -> usize {
        let is_batchable = |one: &RoundCall| {
            let is_new = !records.contains_key(&one.key);
            is_new && self.tools.is_read_only(&one.call) && self.refusal(&one.call).is_none()
        };
        let mut count = pending.iter().take_while(|one| is_batchable(one)).count();
        // A call that repeats another one of its batch begins the next batch, so that it is counted as a repetition.
        let differs = |at: usize| {
            let before = &pending[..at];
            !before
                .iter()
                .any(|one| repeats::is_same(&one.call, &pending[at].call))
        };
        count = (1..count).find(|at| !differs(*at)).unwrap_or(count);
        count.max(1)
    }

    /// Runs calls at the same time, and records their results. All are recorded as started before the first runs. Each
    /// result has at most `share` bytes as JSON.
    fn run_batch(
        &self,
        writer: &mut Writer,
        batch: &[RoundCall],
        share: usize,
        repeats: usize,
        listener: RunListener<'_>,
    ) -> Result<Vec<Result<String, String>>, CallRecordError> {
        for one in batch {
            record_start(writer, one.key, &one.call)?;
            listener(RunEvent::CallStarted {
                name: &one.call.name,
                arguments: &one.call.arguments,
            });
        }
        let ran = match batch {
            [one] if built_in::NAMES.contains(&one.call.name.as_str()) => {
                let own = BuiltInTools {
                    contexts: self.contexts,
                    task: self.task,
                    transitions: self.transitions,
                };
                let started = Instant::now();
                let result = own.call(writer, &one.call.name, &one.call.arguments);
                vec![(result, started.elapsed())]
            }
            batch => {
                let calls: Vec<_> = batch.iter().map(|one| &one.call).collect();
                let results = self.tools.call_all(&calls).into_iter();
                let results = results.map(|result| match result.status {
                    CallStatus::Success => (Ok(result.text), result.duration),
                    CallStatus::Error => (Err(result.text), result.duration),
                });
                results.collect()
            }
        };
        let mut results = Vec::new();
        for (at, (one, (result, duration))) in batch.iter().zip(ran).enumerate() {
            let mut result = shorten_to_fit(result, share);
            // Only the first call of a batch was compared with the calls before it.
            if at == 0 && repeats >= WARN_AFTER_REPEATS {
                let (Ok(text) | Err(text)) = &mut result;
                text.push_str("\n\n");
                text.push_str(&repeats::warning(repeats));
            }
            record_end(writer, one.key, &one.call, &result, duration)?;
            listener(RunEvent::CallEnded {
                name: &one.call.name,
                outcome: &CallOutcome::Ran {
                    result: result.clone(),
                    duration,
                },
            });
            results.push(result);
        }
        // The counters of the task are updated after each batch, because the calls that follow may take long.
        self.contexts.settle(self.task, writer)?;
        Ok(results)
    }

    /// Shows only the head and the tail of those results of a message that are too long for the model; the log keeps
    /// them whole. `calls` are the calls that the results answer, in order.
    fn clip<'a>(
        &self,
        writer: &mut Writer,
        seq: Seq,
        calls: &mut impl Iterator<Item = &'a ClientCall>,
    ) -> Result<(), CallRecordError> {
        let bytes = writer.log().message(seq)?;
        let Ok(message) = Message::parse(&bytes) else {
            return Ok(());
        };
        let parts = message.parts().into_iter();
        let parts = parts.filter(|part| part.kind == PartKind::Result);
        let mut long = Vec::new();
        for (part, call) in parts.zip(calls) {
            // A result of `recall` or `search_history` is bounded already. The model asked for a hidden text, so hiding
            // it again would be pointless.
            let is_long = tokens::part(&message, &part.range) > self.result_tokens;
            if is_long && !built_in::is_lookup(&call.name) {
                long.push(part.index);
            }
        }
        for part in long {
            match writer.clip(seq, part, self.result_tokens) {
                Ok(_) => {}
                Err(Refused::Past(error)) => return Err(error.into()),
                // A part that must not be masked is shown whole; `manage` makes room for it, or reports that it cannot.
                Err(_) => {}
            }
        }
        Ok(())
    }
}

/// Returns how many times in a row the model made a call with the same arguments, this time included. The calls of this
/// round are compared first, then those of earlier rounds.
fn count_repeats(
    writer: &Writer,
    round: &LastRound,
    pending: &RoundCall,
) -> Result<usize, LogError> {
    let in_round = round.calls.iter().rev();
    let mut before = in_round.skip_while(|call| call.key != pending.key).skip(1);
    let mut count = 1;
    for call in before.by_ref() {
        if !repeats::is_same(&call.call, &pending.call) {
            return Ok(count);
        }
        count += 1;
    }
    Ok(count + repeats::count_before(writer.log(), round.first, &pending.call)?)
}

/// Returns a result of at most `share` bytes as JSON: a longer one is reduced to its head and tail.
fn shorten_to_fit(result: Result<String, String>, share: usize) -> Result<String, String> {
    let cut = |mut text: String| {
        let mut size = quote(&text).len();
        while size > share {
            // Head and tail may have more escapes than the rest. Each pass takes 5 % less than the average allows, so
            // the loop ends.
            let bytes = (text.len() as f64 * share as f64 / size as f64 * 0.95) as usize;
            text = head_and_tail(&text, bytes, "it was too long to be kept");
            size = quote(&text).len();
        }
        text
    };
    result.map(cut).map_err(cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_fits_whatever_it_holds() {
        assert_eq!(
            shorten_to_fit(Ok("short".to_owned()), 100),
            Ok("short".to_owned())
        );
        for text in ["x".repeat(5000), "\u{1}".repeat(5000), "é\n".repeat(5000)] {
            let fits = shorten_to_fit(Err(text), 1000).unwrap_err();
            assert!(quote(&fits).len() <= 1000, "{}", fits.len());
            assert!(fits.contains("it was too long to be kept"));
            // The note to the model in place of a hidden part of it must not say that nothing is lost.
            assert!(infold_wire::stand_in::left_out_bytes(&fits) > 0, "{fits}");
        }
    }
}
