//! Delays automatic passes after one that did not help.

use infold_log::{EventId, Size, plan};
use infold_store::{Log, LogError, What, Writer};
use serde_json::{Value, json};

use super::{Aim, ManageError};
use crate::{ManageOutcome, PassAction, SkipReason};

/// The number of events that are searched for the last pass.
const MAX_SEARCHED_EVENTS: u64 = 1_000;

/// By which share of the window the view must have grown before a pass is tried again.
const MIN_GROWTH_SHARE: f64 = 0.1;

/// Says whether an automatic pass should wait, because the last one did not help.
pub fn must_wait(log: &Log, aim: &Aim, now: Size) -> Result<bool, LogError> {
    let Some((pass, record)) = last_pass(log)? else {
        return Ok(false);
    };
    let undone = match pass {
        Some(pass) => plan::is_undone(log.state(), pass, log)?,
        None => false,
    };
    if record["wait"] != true && !undone {
        return Ok(false);
    }
    let then = if undone {
        &record["tokens_before"]
    } else {
        &record["tokens_after"]
    };
    let growth = (aim.budget.window() as f64 * MIN_GROWTH_SHARE) as u64;
    Ok(now.tokens < then.as_u64().unwrap_or(0).saturating_add(growth))
}

/// Says whether a pass failed, was not allowed, or ended above its target.
pub fn did_not_help(outcome: &ManageOutcome) -> bool {
    !outcome.errors.is_empty() || !outcome.after.within(outcome.target)
}

/// Returns the record of a pass; none of one that was not due.
pub fn record(aim: &Aim, outcome: &ManageOutcome, wait: bool) -> Option<Value> {
    outcome.due?;
    let mut record = json!({
        "trigger": aim.trigger.name(),
        "strategy": aim.strategy.name,
        "window": aim.budget.window(),
        "allow": aim.budget.allow(),
        "wait": wait,
    });
    if let (Value::Object(record), Value::Object(more)) = (&mut record, outcome.json()) {
        record.extend(more);
    }
    if outcome.action == PassAction::Untouched {
        record["folded"] = false.into();
    }
    Some(record)
}

/// Records a pass that did nothing, unless the last one did nothing for the same reason.
pub fn record_once(
    writer: &mut Writer,
    aim: &Aim,
    outcome: &ManageOutcome,
) -> Result<(), ManageError> {
    let is_repeated = match last_pass(writer.log())? {
        Some((_, last)) => last["left"] == json!(outcome.skipped.map(SkipReason::name)),
        None => false,
    };
    let is_waiting = outcome.skipped == Some(SkipReason::Waiting);
    if outcome.skipped.is_some() && !is_repeated && !is_waiting {
        let record = record(aim, outcome, did_not_help(outcome));
        writer.end_pass(record.map(|record| record.to_string()))?;
    }
    Ok(())
}

/// Returns the last recorded pass, and its first event if it folded.
fn last_pass(log: &Log) -> Result<Option<(Option<EventId>, Value)>, LogError> {
    let newest = log.state().at().event;
    let oldest = newest.saturating_sub(MAX_SEARCHED_EVENTS);
    for id in (oldest + 1..=newest).rev().filter_map(EventId::new) {
        let line = log.event(id)?;
        if let What::Manage(record) = &line.what {
            let record = serde_json::from_str(record).unwrap_or_default();
            return Ok(Some((line.pass.filter(|pass| *pass != id), record)));
        }
    }
    Ok(None)
}
