use infold_log::{EventId, Size, plan};
use infold_store::{Log, LogError, What, Writer};
use serde_json::{Value, json};

use super::{Aim, ManageError};
use crate::{Did, Outcome};

/// How many events are looked at for the last pass.
const LOOK_BACK: u64 = 1_000;

/// How much the view must have grown before a pass that did not help is tried again.
const GROWTH: f64 = 0.1;

/// Says whether an automatic pass should wait, because the last one did not help.
pub fn waits(log: &Log, aim: &Aim, now: Size) -> Result<bool, LogError> {
    let Some((pass, record)) = last(log)? else {
        return Ok(false);
    };
    let undone = match pass {
        Some(pass) => plan::is_undone(log.state(), pass, log)?,
        None => false,
    };
    if record["wait"] != true && !undone {
        return Ok(false);
    }
    let then = match undone {
        true => &record["tokens_before"],
        false => &record["tokens_after"],
    };
    let growth = (aim.budget.window() as f64 * GROWTH) as u64;
    Ok(now.tokens < then.as_u64().unwrap_or(0).saturating_add(growth))
}

/// Says whether a pass failed, was not allowed, or ended above its target.
pub fn did_not_help(outcome: &Outcome) -> bool {
    !outcome.errors.is_empty() || !outcome.after.within(outcome.target)
}

/// What is kept of a pass; nothing of one that had nothing to do.
pub fn record(aim: &Aim, outcome: &Outcome, wait: bool) -> Option<Value> {
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
    if outcome.did == Did::Untouched {
        record["folded"] = false.into();
    }
    Some(record)
}

/// Keeps a record of a pass that did nothing, unless the last one said the same.
pub fn record_once(writer: &mut Writer, aim: &Aim, outcome: &Outcome) -> Result<(), ManageError> {
    let said_already = match last(writer.log())? {
        Some((_, last)) => last["left"] == json!(outcome.left.map(crate::Left::name)),
        None => false,
    };
    let waiting = outcome.left == Some(crate::Left::Waiting);
    if outcome.left.is_some() && !said_already && !waiting {
        let record = record(aim, outcome, did_not_help(outcome));
        writer.end_pass(record.map(|record| record.to_string()))?;
    }
    Ok(())
}

/// The last pass that was recorded, and its first event if it folded.
fn last(log: &Log) -> Result<Option<(Option<EventId>, Value)>, LogError> {
    let newest = log.state().at().event;
    let oldest = newest.saturating_sub(LOOK_BACK);
    for id in (oldest + 1..=newest).rev().filter_map(EventId::new) {
        let line = log.event(id)?;
        if let What::Manage(record) = &line.what {
            let record = serde_json::from_str(record).unwrap_or_default();
            return Ok(Some((line.pass.filter(|pass| *pass != id), record)));
        }
    }
    Ok(None)
}
