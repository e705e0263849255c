//! Adds excerpts of hidden messages that a request refers to.

use infold::recall::{RecalledExcerpt, indexed_mentions, is_recall_possible, recall_references};
use infold_log::{Span, View};
use serde_json::json;

use super::{ConversationError, Core};
use crate::model_rules::ModelRule;
use crate::open_task::OpenTask;
use crate::pool::TaskLease;

/// Says whether something may have to be looked up for a request, which reads files and the search index.
pub(crate) fn may_recall(open: &OpenTask, rule: &ModelRule) -> Result<bool, ConversationError> {
    Ok(rule.aim.recall.is_some() && is_recall_possible(open.log())?)
}

/// Returns how many excerpts the last message carries.
pub(crate) fn recalled_count(open: &OpenTask) -> usize {
    let shown = open.log().state().shown();
    let Some(last) = shown.last() else { return 0 };
    let recalls = shown.recalls(Span::one(last));
    recalls.filter(|(_, recall)| !recall.is_context()).count()
}

impl Core {
    /// Adds excerpts of hidden messages that the request refers to.
    ///
    /// A request never fails because of them: errors are reported, and the request is sent without.
    pub fn recall(&self, open: &mut TaskLease, rule: &ModelRule) {
        match self.try_recall(open, rule) {
            Ok(recalled) if recalled.is_empty() => {}
            Ok(recalled) => {
                open.wrote();
                self.metrics.recalled(recalled.len() as u64);
                let excerpts = recalled.iter().map(|one| {
                    json!({
                        "event": one.event.get(),
                        "source": one.source.get(),
                        "reference": one.reference,
                        "tokens": one.tokens,
                    })
                });
                let excerpts: Vec<_> = excerpts.collect();
                let told = json!({ "excerpts": excerpts });
                self.publish(open.id, "recall", told.to_string());
            }
            Err(error) => self.pool.report(&error),
        }
    }

    fn try_recall(
        &self,
        open: &mut TaskLease,
        rule: &ModelRule,
    ) -> Result<Vec<RecalledExcerpt>, ConversationError> {
        let Some(limits) = rule.aim.recall else {
            return Ok(Vec::new());
        };
        let log = open.log();
        let view = View::of(log.state().shown(), log)?.tokens();
        let size = (view as f64 * rule.aim.factor).ceil() as u64 + rule.aim.frame.tokens;
        let limits = limits.within(&rule.aim, size);
        let mut mentions = indexed_mentions(&self.contexts, open.id);
        Ok(recall_references(&mut open.writer, limits, &mut mentions)?)
    }
}
