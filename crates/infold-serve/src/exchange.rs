//! One request in progress: folded to fit, and folded further if the provider refuses it.

mod sent;

use std::sync::Arc;

use infold::turn::TooLongRequest;
use infold::{Aim, PassAction};
use infold_log::{EventId, Seq, Size};
use infold_store::{Failure, Usage};
use infold_wire::ProviderError;
use infold_wire::provider_error::RequestSize;
use serde_json::json;
use uuid::Uuid;

use crate::conversations::{
    Blocking, ConversationError, Core, InjectedContext, Placement, fold_due, fold_over, is_slow,
    is_unfolded, may_recall, tokens_up_to,
};
use crate::lookups::Lookups;
use crate::model_rules::ModelRule;
use crate::open_task::{Continuation, OpenTask};
use crate::parsed_request::ParsedRequest;
use crate::pool::TaskLease;
use crate::recorded_summary::RecordedSummary;
use crate::tool_policy::RequestTools;
use crate::{ModelCall, OutgoingBody};
use sent::SentSize;

/// A request in progress, from its placement in a task until its reply is recorded or has failed.
///
/// Its methods read and write files: they are called from threads that may block.
pub struct Exchange {
    pub(crate) core: Arc<Core>,
    pub(crate) parsed: ParsedRequest,
    pub(crate) task: Uuid,
    /// The last message of the request.
    pub(crate) last: Seq,
    /// The window before any refusal as too long.
    window: u64,
    /// The client asks for a window of a million tokens.
    pub(crate) long_context: bool,
    /// The fold rule, narrowed each time the provider refuses the request as too long.
    pub(crate) rule: Option<ModelRule>,
    pub(crate) sent: SentSize,
    /// The number of refusals as too long.
    refusals: u32,
    /// Steps folded because of that: the task's last step before, and after.
    retry_folds: Vec<(Option<EventId>, Option<EventId>)>,
    /// The window that the provider named. It is trusted once a shorter request was answered.
    pub(crate) named_window: Option<u64>,
    /// The tools that are offered for looking up hidden messages, and the results of their calls.
    pub(crate) lookups: Option<Lookups>,
    /// The changes by the tool policy, if there is one.
    pub(crate) tools: Option<RequestTools>,
    /// The texts that are shown of the state of the task, if any.
    context: Option<InjectedContext>,
    /// The provider refused a request with those tools: it is sent without them.
    pub(crate) lookups_refused: bool,
    /// The client's own bytes were sent because the provider refused a folded request.
    pub(crate) fell_back: bool,
}

/// The number of further folds because the provider refused a request as too long.
const MAX_REFUSALS: u32 = 3;

impl Exchange {
    /// Begins an exchange, which the pool counts as under way already.
    pub(crate) fn new(core: Arc<Core>, parsed: ParsedRequest, placement: &Placement) -> Exchange {
        Exchange {
            task: placement.task,
            last: placement.last,
            window: 0,
            long_context: false,
            rule: None,
            sent: SentSize::default(),
            refusals: 0,
            retry_folds: Vec::new(),
            named_window: None,
            lookups: None,
            tools: None,
            context: None,
            lookups_refused: false,
            fell_back: false,
            parsed,
            core,
        }
    }

    /// Makes the request fit and returns the body to send; `None` if that would block and must not.
    pub(crate) fn begin(
        &mut self,
        call: &ModelCall,
        mut open: TaskLease,
        blocking: Blocking,
    ) -> Result<Option<OutgoingBody>, ConversationError> {
        let (core, parsed) = (Arc::clone(&self.core), &self.parsed);
        // The client's beta headers are not sent to a provider of another wire.
        self.long_context = (call.long_context || parsed.params.long_context)
            && !crate::translate::is_translated(call);
        let cached = core
            .rules
            .cached(&call.provider, &parsed.model, self.long_context);
        let rule = match cached {
            Some(rule) => rule,
            None if blocking == Blocking::Forbidden => return Ok(None),
            None => core
                .rules
                .rule(&call.provider, &parsed.model, self.long_context)?,
        };
        let mut profile = rule.profile.clone();
        if let Some(window) = parsed.params.num_ctx {
            profile.window = window;
        }
        if let Some(asked) = parsed.params.max_tokens {
            // A client may ask for more than there is; a reply gets at most half of the window.
            profile.max_tokens = Some(asked.min(profile.window / 2));
        }
        let window = profile.window;
        let Some(context) = core.inject_context(call, parsed, &mut open, window, blocking) else {
            return Ok(None);
        };
        self.context = context;
        let added = self.context.as_ref().map(InjectedContext::system_size);
        let added = added.unwrap_or_default();
        let frame = core.frame_with_lookups(core.frame_size(call, parsed)?, open.log());
        let aim = Aim::of(&profile, None);
        let aim = Aim {
            factor: rule.aim.factor,
            recall: core.config.recall.limits(profile.window),
            recall_tool: core.recall_tool(call, parsed),
            frame: Size {
                tokens: frame.tokens + added.tokens,
                bytes: frame.bytes + added.bytes,
            },
            ..aim.map_err(|error| ConversationError::Internal(error.to_string()))?
        };
        let Some(tools) = core.project_tools(call, parsed, open.log(), blocking)? else {
            return Ok(None);
        };
        self.tools = tools;
        core.record_frame(call, parsed, &mut open)?;
        if let Some(tools) = &self.tools {
            core.record_tools_shown(&mut open, &tools.line)?;
        }
        self.window = window;
        self.rule = Some(ModelRule {
            profile,
            aim,
            quirks: rule.quirks,
        });
        self.fit(call, open, blocking)
    }

    /// Returns the task of the exchange.
    pub fn task(&self) -> Uuid {
        self.task
    }

    /// Returns the model of the request.
    pub fn model(&self) -> &str {
        &self.parsed.model
    }

    /// Says whether the client wants a stream.
    pub fn is_stream(&self) -> bool {
        self.parsed.stream
    }

    /// Returns the meaning of an unexplained error, by the size of the request.
    pub fn explain(&self, trouble: ProviderError) -> ProviderError {
        trouble.explain(RequestSize {
            tokens: self.sent.after,
            window: self.window,
            bytes: self.sent.bytes,
        })
    }

    /// The provider refused the folded request: returns the client's own bytes if they fit the window.
    pub fn fall_back(
        &mut self,
        call: &ModelCall,
        why: &str,
    ) -> Result<Option<OutgoingBody>, ConversationError> {
        let can_fall_back = !self.fell_back && self.sent.is_changed;
        let Some(rule) = self.rule.clone().filter(|_| can_fall_back) else {
            return Ok(None);
        };
        let mut open = self.core.pool.lease(self.task)?;
        // If the provider stores the conversation, the client's bytes are only its end.
        if self.parsed.params.previous.is_some() || !self.fits_unfolded(&open, &rule)? {
            return Ok(None);
        }
        let outgoing = self.send_untouched(call, &open, &rule)?;
        let outgoing = self.projected(outgoing);
        self.fell_back = true;
        self.record_failure(&mut open, &format!("a folded request was refused: {why}"))?;
        self.core.metrics.fell_back();
        tracing::warn!(task = %self.task, why, "a folded request was refused: sent again as the client wrote it");
        Ok(Some(outgoing))
    }

    /// Says whether all of the conversation fits the window.
    fn fits_unfolded(&self, open: &OpenTask, rule: &ModelRule) -> Result<bool, ConversationError> {
        Ok(self.unfolded_tokens(open, rule)?.1 <= rule.profile.window)
    }

    /// Returns the tokens of the whole conversation: as we count them, and as the model does.
    fn unfolded_tokens(
        &self,
        open: &OpenTask,
        rule: &ModelRule,
    ) -> Result<(u64, u64), ConversationError> {
        let counted = tokens_up_to(open, self.last)? + rule.aim.frame.tokens;
        Ok((counted, (counted as f64 * rule.aim.factor).ceil() as u64))
    }

    /// Adapts a request that the provider refused as too long, or for a quirk, and returns the body to send instead;
    /// `None` if nothing more can be done.
    pub fn adapt(
        &mut self,
        call: &ModelCall,
        trouble: &ProviderError,
    ) -> Result<Option<OutgoingBody>, ConversationError> {
        self.refusals += 1;
        let parsed = &self.parsed;
        let Some(rule) = self.rule.as_mut().filter(|_| self.refusals <= MAX_REFUSALS) else {
            return Ok(None);
        };
        let mut open = self.core.pool.lease(self.task)?;
        if matches!(
            trouble,
            ProviderError::AlternateRoles | ProviderError::BoundThinking
        ) {
            let known = rule.quirks;
            rule.quirks.alternate |= *trouble == ProviderError::AlternateRoles;
            rule.quirks.bound |= *trouble == ProviderError::BoundThinking;
            if rule.quirks == known || !self.sent.is_changed {
                return Ok(None);
            }
            let rules = &self.core.rules;
            rules.learn_quirks(&parsed.provider, &parsed.model, rule.quirks);
            return self.fit(call, open, Blocking::Allowed);
        }
        let refusal = TooLongRequest {
            trouble,
            estimate: self.sent.after,
            reply: parsed.params.max_tokens,
            bytes: self.sent.bytes,
        };
        self.named_window = refusal.named().or(self.named_window);
        if refusal.narrow(&mut rule.profile, &mut rule.aim).is_err() {
            return Ok(None);
        }
        let why = format!(
            "too long for the provider: about {} tokens",
            self.sent.after
        );
        self.record_failure(&mut open, &why)?;
        let refused_bytes = self.sent.bytes;
        let outgoing = self.fit(call, open, Blocking::Allowed)?;
        self.core.metrics.retried();
        // A request that is no shorter would be refused again.
        Ok(outgoing.filter(|outgoing| outgoing.len() < refused_bytes))
    }

    /// The provider accepted the request: its folds stay, whatever happens to the reply.
    pub fn accepted(&mut self) {
        self.retry_folds.clear();
        if self.lookups_refused {
            let (provider, model) = (&self.parsed.provider, &self.parsed.model);
            self.core.refuse_lookups(provider, model);
        }
    }

    /// Undoes the folds made because the provider refused the request as too long, since they did not help. Steps that
    /// were taken since stay, and so do the folds beneath them.
    fn undo_retry_folds(&mut self, open: &mut TaskLease) -> Result<(), ConversationError> {
        for (before, after) in std::mem::take(&mut self.retry_folds).into_iter().rev() {
            if open.log().state().step() != after {
                break;
            }
            while open.log().state().step() > before {
                open.writer.undo()?;
            }
            open.wrote();
        }
        Ok(())
    }

    /// Remembers the fold made because the provider refused the request as too long.
    fn remember_retry_fold(&mut self, before: Option<EventId>, open: &OpenTask) {
        let after = open.log().state().step();
        if self.refusals > 0 && before != after {
            self.retry_folds.push((before, after));
        }
    }

    /// Records that no whole reply came, and why.
    pub fn fail(&mut self, why: &str) -> Result<(), ConversationError> {
        self.record_refusals()?;
        let mut open = self.core.pool.lease(self.task)?;
        self.undo_retry_folds(&mut open)?;
        if let Some(lookups) = self.lookups.as_ref().and_then(Lookups::take) {
            self.record_earlier_usage(&mut open, &lookups.usages)?;
        }
        self.record_failure(&mut open, why)
    }

    /// Folds if that is due. An old request that is repeated and has to be folded gets its own task.
    pub(crate) fn fit(
        &mut self,
        call: &ModelCall,
        open: TaskLease,
        blocking: Blocking,
    ) -> Result<Option<OutgoingBody>, ConversationError> {
        let mut summary = None;
        let fitted = self.fit_with(call, open, blocking, &mut summary);
        // The summary was paid for, so its usage is recorded even if the fold failed.
        let unused = summary
            .into_iter()
            .flat_map(RecordedSummary::unrepeated_usage);
        let unused: Vec<Usage> = unused.collect();
        if !unused.is_empty() {
            let mut open = self.core.pool.lease(self.task)?;
            self.core.record_usage(&mut open, unused)?;
        }
        Ok(fitted?.map(|outgoing| self.projected(outgoing)))
    }

    fn fit_with(
        &mut self,
        call: &ModelCall,
        mut open: TaskLease,
        blocking: Blocking,
        summary: &mut Option<RecordedSummary>,
    ) -> Result<Option<OutgoingBody>, ConversationError> {
        let Some(rule) = self.rule.clone() else {
            return Ok(Some(OutgoingBody::untouched(&call.body)));
        };
        let core = Arc::clone(&self.core);
        // The changing text at the end of the last message counts in addition: it is not there yet, or may be folded
        // away with its message and shown again.
        let folding = self.rule_for_folding(&rule);
        let may_block = blocking == Blocking::Allowed;
        loop {
            if open.continuation(self.last)? != Continuation::Nothing {
                let fits = matches!(infold::will_manage(open.log(), &rule.aim), Ok(None));
                // As long as nothing has to be folded, a fork can wait for the reply.
                if fits && is_unfolded(&open) {
                    return self.send_unfolded(call, &mut open, &rule).map(Some);
                }
                if !may_block {
                    return Ok(None);
                }
                let fork = core.fork_at(&self.parsed, &mut open, self.last)?;
                self.move_to(fork.id);
                open = fork;
            }
            if self.parsed.params.previous.is_some() && core.is_partial(self.task)? {
                self.show_context(&mut open);
                return self.send_unfolded(call, &mut open, &rule).map(Some);
            }
            while let Some(fold) = fold_over(&open, self.last)? {
                if !may_block {
                    return Ok(None);
                }
                open.writer.unfold(fold)?;
                open.wrote();
            }
            if open.fold_refused && self.refusals == 0 && self.fits_unfolded(&open, &rule)? {
                return self.send_untouched(call, &open, &rule).map(Some);
            }
            let step_before = open.log().state().step();
            let mut due = fold_due(open.log(), &folding)?;
            if due.is_some() && !may_block {
                return Ok(None);
            }
            if let Some(fold) = &due
                && core.apply_prefetched(&mut open, fold)?
            {
                due = fold_due(open.log(), &folding)?;
            }
            if let (Some(fold), None) = (&due, &summary)
                && !open.is_preparing
            {
                let summarizer = core.rules.summarizer(&call.provider, &rule.profile)?;
                if is_slow(&*summarizer) {
                    let mut slow = RecordedSummary::new(summarizer);
                    open.is_preparing = true;
                    self.remember_retry_fold(step_before, &open);
                    // Other requests can use the task while the summary is written.
                    drop(open);
                    core.publish_folding(self.task, fold);
                    let written = core.write_summary(self.task, &fold.aim, &mut slow);
                    *summary = Some(slow);
                    written?;
                    open = core.pool.lease(self.task)?;
                    continue;
                }
            }
            let mut did = PassAction::Untouched;
            if let Some(fold) = &due
                && (summary.is_some() || self.refusals > 0 || !fold.can_wait(&open)?)
            {
                did = core.fold(&mut open, fold, summary.as_mut())?;
            }
            if may_recall(&open, &rule)? {
                if !may_block {
                    return Ok(None);
                }
                core.recall(&mut open, &folding);
            }
            self.show_context(&mut open);
            let additions = self.additions();
            let fitted = core.assemble(call, &self.parsed, &mut open, &rule, additions)?;
            self.remember_retry_fold(step_before, &open);
            let has_summary = open.is_preparing || open.prepared.is_some();
            drop(open);
            if did == PassAction::Untouched && !has_summary {
                core.prefetch_if_due(self.task, call, &rule, fitted.after);
            }
            return Ok(Some(self.send_fitted(call, fitted)));
        }
    }

    pub(crate) fn record_failure(
        &self,
        open: &mut TaskLease,
        why: &str,
    ) -> Result<(), ConversationError> {
        open.writer.failure(Failure {
            provider: self.parsed.provider.clone(),
            model: self.parsed.model.clone(),
            error: why.to_owned(),
            requests: 1,
        })?;
        open.wrote();
        self.publish_failure(why);
        Ok(())
    }

    /// Publishes that the exchange failed.
    pub(crate) fn publish_failure(&self, why: &str) {
        let event = json!({ "error": why });
        self.core.publish(self.task, "failure", event.to_string());
    }

    fn move_to(&mut self, task: Uuid) {
        self.core.pool.end_exchange(self.task);
        self.core.pool.begin_exchange(task);
        self.task = task;
        // Folds of the other task are its own.
        self.retry_folds.clear();
    }
}

impl std::fmt::Debug for Exchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exchange")
            .field("task", &self.task)
            .finish_non_exhaustive()
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.core.pool.end_exchange(self.task);
    }
}
