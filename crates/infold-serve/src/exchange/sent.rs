//! The parts of a request that were sent, and the response headers that describe them to the client.

use std::borrow::Cow;

use super::Exchange;
use crate::conversations::{ConversationError, Fitted, InjectedContext, RequestAdditions};
use crate::lookups::Lookups;
use crate::model_rules::ModelRule;
use crate::open_task::OpenTask;
use crate::pool::TaskLease;
use crate::splice::splice_contexts;
use crate::tool_policy::RequestTools;
use crate::{ModelCall, OutgoingBody};

/// The size of the request that was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SentSize {
    /// The tokens of the whole conversation.
    pub(super) before: u64,
    /// The tokens of the request, as the model counts and as we count.
    pub(super) after: u64,
    pub counted: u64,
    pub(super) bytes: u64,
    folds: usize,
    /// The number of excerpts of hidden messages in its last message.
    recalled: usize,
    /// The tokens of the texts that show the state of its task.
    layers: u64,
    /// The request differs from the client's.
    pub(super) is_changed: bool,
}

impl Exchange {
    /// Returns the response headers that describe the exchange to the client: names and values.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = vec![
            ("x-infold-task", self.task.to_string()),
            ("x-infold-tokens-before", self.sent.before.to_string()),
            ("x-infold-tokens-after", self.sent.after.to_string()),
            ("x-infold-folds", self.sent.folds.to_string()),
            ("x-infold-recalled", self.sent.recalled.to_string()),
            (
                "x-infold-recall-tool",
                if self.offers_lookups() {
                    "offered"
                } else {
                    "off"
                }
                .to_owned(),
            ),
        ];
        if self.core.config.layers.inject.value {
            headers.push(("x-infold-layers", self.sent.layers.to_string()));
        }
        headers
    }

    /// Returns the rule with room for the text at the request's end.
    pub(super) fn rule_for_folding<'r>(&self, rule: &'r ModelRule) -> Cow<'r, ModelRule> {
        let mut rule = Cow::Borrowed(rule);
        let end = self.context.as_ref().map(InjectedContext::end_tokens);
        if let Some(end) = end.filter(|end| *end > 0) {
            rule.to_mut().aim.frame.tokens += end;
        }
        rule
    }

    /// Returns the changes to the request besides folds.
    pub(super) fn additions(&self) -> RequestAdditions<'_> {
        RequestAdditions {
            tools: self.tools.as_ref(),
            context: self.context.as_ref(),
            may_look_up: !self.lookups_refused,
        }
    }

    pub(super) fn show_context(&self, open: &mut TaskLease) {
        if let Some(context) = &self.context {
            self.core.show_context(open, context);
        }
    }

    pub(super) fn send_fitted(&mut self, call: &ModelCall, fitted: Fitted) -> OutgoingBody {
        let budget = self.rule.as_ref().map(|rule| &rule.aim.budget);
        let (task, sent) = (self.task, fitted.after);
        let judge = self.tools.as_ref().map(RequestTools::judge);
        let offer = fitted.lookups;
        self.lookups = Lookups::new(task, &self.parsed, offer, judge, (budget, sent));
        self.sent = SentSize {
            before: fitted.before,
            after: fitted.after,
            counted: fitted.counted,
            folds: fitted.folds,
            recalled: fitted.recalled,
            layers: self.context.as_ref().map_or(0, InjectedContext::tokens),
            bytes: fitted.outgoing.len(),
            is_changed: fitted.outgoing != OutgoingBody::untouched(&call.body),
        };
        fitted.outgoing
    }

    /// Sends the request unfolded, with the texts of its task's state.
    pub(super) fn send_unfolded(
        &mut self,
        call: &ModelCall,
        open: &mut OpenTask,
        rule: &ModelRule,
    ) -> Result<OutgoingBody, ConversationError> {
        self.send_untouched(call, open, rule)?;
        let OpenTask { path, writer, .. } = open;
        let log = writer.log();
        let mut outgoing = splice_contexts(call, &self.parsed, log, path.follow(log)?)?;
        if let Some(context) = &self.context {
            outgoing = context.apply(&self.parsed, outgoing);
            self.sent.layers = context.tokens();
        }
        self.sent.bytes = outgoing.len();
        self.sent.is_changed = outgoing != OutgoingBody::untouched(&call.body);
        Ok(outgoing)
    }

    /// Sends the request as it came.
    pub(super) fn send_untouched(
        &mut self,
        call: &ModelCall,
        open: &OpenTask,
        rule: &ModelRule,
    ) -> Result<OutgoingBody, ConversationError> {
        let (counted, tokens) = self.unfolded_tokens(open, rule)?;
        let judge = self.tools.as_ref().map(RequestTools::judge);
        let budget = Some(&rule.aim.budget);
        self.lookups = Lookups::new(self.task, &self.parsed, None, judge, (budget, tokens));
        self.sent = SentSize {
            before: tokens,
            after: tokens,
            counted,
            bytes: call.body.len(),
            ..SentSize::default()
        };
        Ok(OutgoingBody::untouched(&call.body))
    }
}
