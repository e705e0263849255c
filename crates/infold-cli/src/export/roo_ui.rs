//! Roo Code's `ui_messages.json`: the list that it shows the user, including folds.

use infold_log::{Cause, EventId, Past as _, Point, Role, Source, View};
use infold_store::{FoldLine, Log, LogError, Purpose, What};
use infold_wire::{Message, append_words};
use serde_json::{Value, json};

use super::active_folds;
use crate::error::CliResult;

/// Returns the list for a task, as JSON.
pub fn list(log: &Log) -> CliResult<Vec<u8>> {
    let mut entries = messages(log)?;
    for (id, ts, fold) in active_folds(log)? {
        entries.push((ts, fold_entry(log, id, ts, &fold)?));
    }
    // The sort is stable: messages stay before a fold of the same millisecond.
    entries.sort_by_key(|(ts, _)| *ts);
    let entries: Vec<Value> = entries.into_iter().map(|(_, entry)| entry).collect();
    Ok(serde_json::to_vec(&entries).unwrap_or_default())
}

/// Returns the texts of user and model, without calls and results.
fn messages(log: &Log) -> CliResult<Vec<(u64, Value)>> {
    let mut entries: Vec<(u64, Value)> = Vec::new();
    let mut visit = |source: Source, bytes: &[u8]| -> Result<(), LogError> {
        let Some(seq) = source.seq() else {
            return Ok(());
        };
        let record = log.record(seq)?;
        let mut text = String::new();
        if let Ok(message) = Message::parse(bytes) {
            append_words(&message, &mut text);
        }
        let say = match record.role {
            // The first user message is the task itself.
            Role::User if !entries.is_empty() => "user_feedback",
            Role::User | Role::Assistant => "text",
            _ => return Ok(()),
        };
        if !text.trim().is_empty() {
            let entry = json!({"ts": record.time, "type": "say", "say": say, "text": text});
            entries.push((record.time, entry));
        }
        Ok(())
    };
    for span in log.state().shown().path() {
        log.each_message(span, &mut visit)?;
    }
    Ok(entries)
}

/// Returns Roo Code's entry for a fold.
fn fold_entry(log: &Log, id: EventId, ts: u64, fold: &FoldLine) -> CliResult<Value> {
    let at = Point {
        seq: log.event(id)?.after,
        event: id.get(),
    };
    let after = View::of(&log.shown(at)?, log)?.tokens();
    let before = (after + fold.original_tokens).saturating_sub(fold.tokens);
    let name = id.to_string();
    Ok(match fold.cause {
        Cause::Summary => {
            let summary: Vec<&str> = fold.stand_in.iter().map(|(_, text)| &**text).collect();
            json!({
                "ts": ts, "type": "say", "say": "condense_context",
                "contextCondense": {
                    "cost": summary_cost(log, id)?, "prevContextTokens": before, "newContextTokens": after,
                    "summary": summary.join("\n\n"), "condenseId": name,
                },
            })
        }
        Cause::Window => json!({
            "ts": ts, "type": "say", "say": "sliding_window_truncation",
            "contextTruncation": {
                "truncationId": name, "messagesRemoved": fold.messages,
                "prevContextTokens": before, "newContextTokens": after,
            },
        }),
    })
}

/// Returns the cost of the summarizer's calls since the previous fold, in dollars.
fn summary_cost(log: &Log, id: EventId) -> Result<f64, LogError> {
    let mut millionths = 0;
    for number in (log.own().event..id.get()).rev() {
        let Some(earlier) = EventId::new(number) else {
            break;
        };
        match log.event(earlier)?.what {
            What::Fold(_) => break,
            What::Usage(usage) if usage.purpose == Purpose::Summary => millionths += usage.cost,
            _ => {}
        }
    }
    Ok(millionths as f64 / 1e6)
}
