//! A summary written before it is needed, so that no request waits for it.

use infold_log::{Cause, EventId, View};
use infold_store::{Log, LogError, Trigger, Usage, Writer};
use serde_json::json;

use super::condense::drafted;
use super::{Aim, Draft, ManageError};
use crate::Summarizer;

/// A fold that was drafted from a log as it was, and waits to be needed.
#[derive(Debug)]
pub struct Prepared {
    draft: Draft,
    /// The last change of what was shown when it was drafted.
    seen: u64,
}

/// Has a summary written of what `manage` would condense, from a log that is only read.
///
/// Also returns what its calls took, for whoever writes to the log to record.
pub fn prepare(
    log: &Log,
    aim: &Aim,
    summarizer: &mut dyn Summarizer,
) -> Result<(Option<Prepared>, Vec<Usage>), ManageError> {
    let seen = log.last_change()?;
    let (draft, spent) = drafted(log, aim, None, summarizer)?;
    let prepared = draft?.map(|draft| Prepared { draft, seen });
    Ok((prepared, spent))
}

impl Prepared {
    /// Folds, if only messages came since it was drafted; says whether it did.
    pub fn apply(self, writer: &mut Writer, aim: &Aim) -> Result<Option<EventId>, LogError> {
        if writer.log().last_change()? != self.seen {
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
