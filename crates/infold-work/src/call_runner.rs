//! Runs the calls of a round: each is recorded before it runs and after, and none that ended is run again.

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
    /// It was run.
    Ran {
        /// Its output, or the error.
        result: Result<String, String>,
        /// How long it took.
        duration: Duration,
    },
    /// It was not run; the text says why, and is sent to the model.
    Refused(String),
    /// It was run before, and its recorded result was taken.
    Restored,
    /// It was started before, and its end was not recorded.
    Interrupted,
}

/// Runs the calls of a round.
pub(crate) struct CallRunner<'a> {
    pub contexts: &'a Contexts,
    pub task: Uuid,
    pub tools: &'a ToolSet,
    pub transitions: &'a Transitions,
    /// How many tokens of a result the model is shown.
    pub result_tokens: u64,
}

/// Why results could not be recorded.
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
    /// It gets this result, and is not run.
    Known(Result<String, String>),
    /// It is run.
    Run,
}

/// The most bytes of a result as JSON: the message and the event that contain it have other members too.
const MAX_RESULT_BYTES: usize = infold_store::MAX_MESSAGE - (64 << 10);

/// The result for a call whose arguments contain the placeholder of a secret.
const REDACTED_ARGUMENTS: &str = "This call was not run: its arguments hold `[redacted:…]`, which stands for a secret that is not recorded, and would be taken literally. Leave that part out: edit other parts of the file, or let a command take the secret from a file.";

impl CallRunner<'_> {
    /// Runs the calls that have no result yet, and appends their results; returns why the task is to be paused, if so.
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
        let mut paused = None;
        let mut results: Vec<Result<String, String>> = Vec::new();
        let mut at = 0;
        while at < pending.len() {
            let repeats = count_repeats(writer, round, &pending[at])?;
            let plan = self.plan(writer, &pending[at], &records, repeats, listener)?;
            if repeats >= PAUSE_AFTER_REPEATS {
                let name = &pending[at].call.name;
                paused = Some(format!(
                    "the model made the same call of `{name}` {repeats} times in a row"
                ));
            }
            let count = match &plan {
                CallPlan::Known(_) => 1,
                CallPlan::Run => self.batch(&pending[at..], &records),
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
        Ok(paused)
    }

    /// Decides whether a call is run.
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
                        "This call was not run: it is the {repeats}th in a row with the same arguments. The task is paused."
                    );
                    Some(text)
                } else {
                    self.refusal(call)
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

    /// Returns the reason for the model why a call is not run; none if it is.
    fn refusal(&self, call: &ClientCall) -> Option<String> {
        let is_own = built_in::NAMES.contains(&call.name.as_str());
        if self.contexts.redacts() && !is_own && contains_marker(&call.arguments) {
            return Some(REDACTED_ARGUMENTS.to_owned());
        }
        self.tools.refusal(call)
    }

    /// Returns how many calls from the first on run at the same time: more than one if they change nothing.
    fn batch(&self, pending: &[RoundCall], records: &HashMap<CallKey, CallRecord>) -> usize {
        let is_free = |one: &RoundCall| {
            let is_new = !records.contains_key(&one.key);
            is_new && self.tools.is_read_only(&one.call) && self.refusal(&one.call).is_none()
        };
        let mut count = pending.iter().take_while(|one| is_free(one)).count();
        // A call that is repeated within its own reply is judged by itself.
        let differs = |at: usize| {
            let before = &pending[..at];
            !before
                .iter()
                .any(|one| repeats::is_same(&one.call, &pending[at].call))
        };
        count = (1..count).find(|at| !differs(*at)).unwrap_or(count);
        count.max(1)
    }

    /// Runs calls at the same time: all are recorded before the first runs.
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
        for (one, (result, duration)) in batch.iter().zip(ran) {
            let mut result = fitting(result, share);
            if repeats >= WARN_AFTER_REPEATS {
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
        // Each call is counted when it ends, because those that follow may take long.
        self.contexts.settle(self.task, writer)?;
        Ok(results)
    }

    /// Shows head and tail of the results of a message that are too long; the log keeps all of them. `calls` are those that
    /// the results answer.
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
            // Look-ups are bounded already, and were requested because the text was hidden.
            let is_long = tokens::part(&message, &part.range) > self.result_tokens;
            if is_long && !built_in::is_lookup(&call.name) {
                long.push(part.index);
            }
        }
        for part in long {
            match writer.clip(seq, part, self.result_tokens) {
                Ok(_) => {}
                Err(Refused::Past(error)) => return Err(error.into()),
                // A part that may not be shortened is shown whole; `manage` decides about it.
                Err(_) => {}
            }
        }
        Ok(())
    }
}

/// Returns how many times in a row a call was made, this time included.
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

/// Returns a result that fits into a message as JSON.
fn fitting(result: Result<String, String>, share: usize) -> Result<String, String> {
    let cut = |mut text: String| {
        let mut size = quote(&text).len();
        while size > share {
            // Escapes are not spread evenly: a little less each time.
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
        assert_eq!(fitting(Ok("short".to_owned()), 100), Ok("short".to_owned()));
        for text in ["x".repeat(5000), "\u{1}".repeat(5000), "é\n".repeat(5000)] {
            let fits = fitting(Err(text), 1000).unwrap_err();
            assert!(quote(&fits).len() <= 1000, "{}", fits.len());
            assert!(fits.contains("it was too long to be kept"));
        }
    }
}
