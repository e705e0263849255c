//! A summary written before it is needed, so that no request waits for it.

use infold_log::{Cause, EventId, View};
use infold_store::{Log, LogError, Trigger, Usage, Writer};
use serde_json::json;

use super::condense::drafted;
use super::{Aim, Draft, ManageError};
use crate::Summarizer;

/// A fold that was drafted from an earlier state of the log, and is applied when it is needed.
#[derive(Debug)]
pub struct PreparedFold {
    draft: Draft,
    /// The last change of the view when it was drafted.
    last_change: u64,
}

/// Writes a summary of the messages that `manage` would condense, from a log that is only read.
///
/// Also returns the usage of its calls, for the writer of the log to record.
pub fn prepare(
    log: &Log,
    aim: &Aim,
    summarizer: &mut dyn Summarizer,
) -> Result<(Option<PreparedFold>, Vec<Usage>), ManageError> {
    let last_change = log.last_change()?;
    let (draft, spent) = drafted(log, aim, None, summarizer)?;
    let prepared = draft?.map(|draft| PreparedFold { draft, last_change });
    Ok((prepared, spent))
}

impl PreparedFold {
    /// Folds, if only messages came since it was drafted; returns the fold.
    pub fn apply(self, writer: &mut Writer, aim: &Aim) -> Result<Option<EventId>, LogError> {
        if writer.log().last_change()? != self.last_change {
            return Ok(None);
        }
        let before = View::of(writer.log().state().shown(), writer.log())?.tokens();
        let Draft {
            cover,
            stand_in,
            leaves,
            enters,
            ..
        } = self.draft;
        writer.begin_pass();
        let folded = writer.fold(Cause::Summary, &cover, Trigger::Auto, stand_in);
        let after = (before + enters).saturating_sub(leaves);
        let scaled = |tokens: u64| (tokens as f64 * aim.factor) as u64 + aim.frame.tokens;
        let record = json!({
            "trigger": Trigger::Auto.name(),
            "strategy": aim.strategy.name,
            "window": aim.budget.window(),
            "ahead": true,
            "wait": false,
            "tokens_before": scaled(before),
            "tokens_after": scaled(after),
        });
        let record = folded.is_ok().then(|| record.to_string());
        writer.end_pass(record)?;
        folded.map(Some)
    }
}
