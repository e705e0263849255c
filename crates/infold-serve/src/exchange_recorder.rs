//! Records how an exchange ends: the reply and its usage, or why there is none.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use infold::usage;
use infold_log::steer::{Side, Target};
use infold_log::{Item, Seq};
use infold_store::{Key, Purpose, Usage};
use infold_wire::digest::{self, Digest};
use infold_wire::{Reply, TokenUsage};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::checkpoints::PendingCheckpoint;
use crate::conversations::{Core, MAX_INLINE_BYTES, last_sent, response_key, rewind};
use crate::headers::ClientKeys;
use crate::lookups::{LookupRecord, Lookups};
use crate::message_digest::MessageDigest;
use crate::metrics::Metrics;
use crate::open_task::{Continuation, OpenTask};
use crate::parsed_request::ParsedRequest;
use crate::pool::TaskLease;
use crate::{ConversationError, ConversationName, Exchange, ModelCall};

/// Records how an exchange ends: as failed if it is dropped before a reply is recorded.
pub(crate) struct ExchangeRecorder {
    exchange: Option<Box<Exchange>>,
    metrics: Arc<Metrics>,
    keys: Arc<ClientKeys>,
    /// A snapshot that is being taken of a workspace.
    checkpoint: Option<PendingCheckpoint>,
}

/// The recorded reason if the client disconnected before a reply.
const CLIENT_LEFT: &str = "the client went away";

impl ExchangeRecorder {
    pub fn new(
        exchange: Box<Exchange>,
        metrics: Arc<Metrics>,
        keys: Arc<ClientKeys>,
    ) -> ExchangeRecorder {
        ExchangeRecorder {
            exchange: Some(exchange),
            metrics,
            keys,
            checkpoint: None,
        }
    }

    /// Begins to take a snapshot of a workspace, if that is due.
    pub fn begin_checkpoint(&mut self, core: &Arc<Core>, call: &ModelCall) {
        let begun = self.with_exchange(|exchange| PendingCheckpoint::begin(core, call, exchange));
        self.checkpoint = begun.flatten();
    }

    /// Waits for the snapshot, but not for ever.
    pub async fn wait_for_checkpoint(&mut self) {
        if let Some(checkpoint) = self.checkpoint.take() {
            checkpoint.wait().await;
        }
    }

    /// Calls a function with the exchange; returns `None` if the exchange has ended.
    pub fn with_exchange<T>(&self, read: impl FnOnce(&Exchange) -> T) -> Option<T> {
        self.exchange.as_deref().map(read)
    }

    /// Returns a provider's text, shortened and without keys.
    pub fn shortened(&self, text: &str) -> String {
        const MAX_REFUSAL_CHARS: usize = 300;
        infold_wire::shorten(&self.keys.taken_out_of(text), MAX_REFUSAL_CHARS)
    }

    /// Tells the exchange that the provider accepted the request.
    pub fn accepted(&mut self) {
        if let Some(exchange) = &mut self.exchange {
            exchange.accepted();
        }
    }

    /// Runs work on the exchange in a thread that may block. Returns `None` if the exchange has ended or the work
    /// failed; a failure is reported under the name `what`.
    pub async fn run_blocking<T: Send + 'static>(
        mut self,
        what: &'static str,
        work: impl FnOnce(&mut Exchange) -> Result<T, ConversationError> + Send + 'static,
    ) -> (ExchangeRecorder, Option<T>) {
        let (metrics, keys) = (Arc::clone(&self.metrics), Arc::clone(&self.keys));
        let worked = spawn_blocking(move || {
            let done = self.exchange.as_deref_mut().map(work);
            (self, done)
        });
        match worked.await {
            Ok((recorder, Some(Ok(done)))) => (recorder, Some(done)),
            Ok((recorder, Some(Err(error)))) => {
                recorder.tell(what, &error);
                (recorder, None)
            }
            Ok((recorder, None)) => (recorder, None),
            // The closure panicked, and dropped the exchange.
            Err(_) => {
                metrics.failed(what);
                let gone = ExchangeRecorder {
                    exchange: None,
                    metrics,
                    keys,
                    checkpoint: None,
                };
                (gone, None)
            }
        }
    }

    /// Records a whole reply: at once if that is quick, else in a thread that may block.
    pub fn record(mut self, reply: Reply) -> Option<JoinHandle<()>> {
        let exchange = self.exchange.take()?;
        let quick = exchange.can_record_inline(&reply);
        let record = move || {
            let mut exchange = exchange;
            let recorded = exchange.record(reply);
            self.metrics.replied(recorded.is_ok());
            if let Err(error) = recorded {
                self.tell("record", &error);
            }
        };
        if !quick {
            return Some(spawn_blocking(record));
        }
        catch_panic(record);
        None
    }

    /// Records that the client disconnected during the reply.
    pub fn left(mut self) {
        self.metrics.disconnected();
        self.failed(CLIENT_LEFT);
    }

    /// Records that no whole reply came.
    pub fn fail(mut self, why: &str) {
        self.failed(why);
    }

    fn failed(&mut self, why: &str) {
        let Some(mut exchange) = self.exchange.take() else {
            return;
        };
        self.metrics.replied(false);
        tracing::info!(task = %exchange.task(), "no reply was recorded");
        // The error text may repeat a key.
        let why = self.keys.taken_out_of(why);
        let metrics = Arc::clone(&self.metrics);
        let mut fail = move || {
            if let Err(error) = exchange.fail(&why) {
                metrics.failed("record");
                tracing::error!(error = %error, "a failure was not recorded");
            }
        };
        match Handle::try_current() {
            Ok(handle) => drop(handle.spawn_blocking(fail)),
            // Without a runtime nothing waits for this thread.
            Err(_) => fail(),
        }
    }

    fn tell(&self, what: &'static str, error: &ConversationError) {
        self.metrics.failed(what);
        tracing::error!(error = %error, what, "an exchange could not be recorded, or not folded");
    }
}

impl Exchange {
    /// Says whether a reply can be recorded without blocking.
    pub(crate) fn can_record_inline(&self, reply: &Reply) -> bool {
        let bytes: usize = reply.messages.iter().map(Vec::len).sum();
        bytes as u64 <= MAX_INLINE_BYTES && self.core.pool.is_idle(self.task)
    }

    /// Records a whole reply.
    pub fn record(&mut self, mut reply: Reply) -> Result<(), ConversationError> {
        let core = Arc::clone(&self.core);
        self.record_refusals()?;
        let mut lookups = self.lookups.as_ref().and_then(Lookups::take);
        if let Some(lookups) = &mut lookups {
            // The client gets the sum of all requests; each is recorded separately.
            reply.usage = lookups.usages.pop();
            let mut open = core.pool.lease(self.task)?;
            self.record_earlier_usage(&mut open, &lookups.usages)?;
        }
        if reply.messages.is_empty() {
            let why = format!("an empty reply ({})", reply.stop.name());
            return self.record_failure(&mut core.pool.lease(self.task)?, &why);
        }
        let digests: Vec<MessageDigest> = reply
            .messages
            .iter()
            .map(|bytes| core.digests.digest(bytes))
            .collect::<Result<_, _>>()
            .map_err(|error| {
                ConversationError::Internal(format!("the reply is no message: {error}"))
            })?;
        if let Some(window) = self.named_window.take() {
            let ParsedRequest {
                provider, model, ..
            } = &self.parsed;
            core.rules
                .learn_window(provider, model, self.long_context, window)?;
        }
        let mut open = core.pool.lease(self.task)?;
        if self.fell_back {
            open_folds(&mut open)?;
        }
        let mut purpose = Purpose::Reply;
        let has_lookups = lookups.is_some();
        match open.continuation(self.last)? {
            Continuation::Nothing => {
                self.append_reply(&mut open, &reply, &digests, lookups)?;
            }
            _ if self.is_recorded(&mut open, &digests)? => purpose = Purpose::Nothing,
            // No client continued from the recorded reply, and the client that repeated the request got this one.
            continuation if continuation == Continuation::Reply || self.is_only_exchange() => {
                let before = last_sent(open.log(), self.last)?;
                rewind(&mut open, self.last, before)?;
                self.append_reply(&mut open, &reply, &digests, lookups)?;
            }
            // The conversation continued without this reply. It is recorded beside the path: if a client continues it,
            // it becomes a task of its own.
            _ => {
                let target = Target::Message(self.last.get());
                open.writer.rewind(Side::To, target)?;
                let appended = self.append_reply(&mut open, &reply, &digests, lookups);
                open.writer.undo()?;
                appended?;
                purpose = Purpose::Nothing;
            }
        }
        self.record_report(&mut open, &reply, purpose, has_lookups)
    }

    /// Records the calls that were refused.
    pub(crate) fn record_refusals(&self) -> Result<(), ConversationError> {
        let refusals = self.lookups.as_ref().map(Lookups::take_refusals);
        let refusals = refusals.unwrap_or_default();
        if refusals.is_empty() {
            return Ok(());
        }
        let mut open = self.core.pool.lease(self.task)?;
        for refusal in refusals {
            open.writer.refusal(refusal)?;
        }
        open.wrote();
        Ok(())
    }

    /// Records the usage of requests whose replies the client does not have by themselves.
    pub(crate) fn record_earlier_usage(
        &self,
        open: &mut TaskLease,
        usages: &[TokenUsage],
    ) -> Result<(), ConversationError> {
        for reported in usages {
            let report = self.usage_report(reported, Purpose::Nothing);
            open.writer.usage(report)?;
            open.wrote();
        }
        Ok(())
    }

    fn usage_report(&self, reported: &TokenUsage, purpose: Purpose) -> Usage {
        let rule = self.rule.as_ref();
        Usage {
            provider: self.parsed.provider.clone(),
            model: self.parsed.model.clone(),
            tokens: reported.total(),
            cached: reported.cache_read,
            output: reported.output,
            frame: rule.map_or(0, |rule| rule.aim.frame.tokens),
            cost: usage::cost(rule.and_then(|rule| rule.profile.prices), reported),
            purpose,
        }
    }

    /// Records the usage that the provider reported, and has it learned from.
    fn record_report(
        &self,
        open: &mut TaskLease,
        reply: &Reply,
        purpose: Purpose,
        has_lookups: bool,
    ) -> Result<(), ConversationError> {
        let Some(reported) = &reply.usage else {
            return Ok(());
        };
        let rule = self.rule.as_ref();
        let report = self.usage_report(reported, purpose);
        open.writer.usage(report.clone())?;
        open.wrote();
        let event = json!({
            "model": report.model,
            "tokens": report.tokens,
            "cached_tokens": report.cached,
            "output_tokens": report.output,
            "cost": report.cost as f64 / 1e6,
        });
        self.core.publish(open.id, "usage", event.to_string());
        let core = &self.core;
        // The lookups are part of the reported tokens, but not of the counted ones.
        if !has_lookups && core.rules.is_learning_due(&report.provider, &report.model) {
            let factor = rule.map_or(1.0, |rule| rule.aim.factor);
            core.background.learn(report, (self.sent.counted, factor));
        }
        Ok(())
    }

    /// Says whether the task has this reply already.
    fn is_recorded(
        &self,
        open: &mut OpenTask,
        reply: &[MessageDigest],
    ) -> Result<bool, ConversationError> {
        let reply: Vec<Digest> = reply.iter().filter_map(|message| message.digest).collect();
        let next = open.digests_after(self.last, reply.len())?;
        Ok(!reply.is_empty() && next == reply)
    }

    /// Says whether the task has a given name and no other exchange under way.
    fn is_only_exchange(&self) -> bool {
        let is_given = self
            .parsed
            .name
            .as_ref()
            .is_some_and(ConversationName::is_given);
        is_given && self.core.pool.exchanges(self.task) <= 1
    }

    fn append_reply(
        &mut self,
        open: &mut TaskLease,
        reply: &Reply,
        digests: &[MessageDigest],
        lookups: Option<LookupRecord>,
    ) -> Result<(), ConversationError> {
        let Some(span) = open.writer.append(&reply.messages)? else {
            return Ok(());
        };
        let lookups = lookups.filter(|lookups| !lookups.messages.is_empty());
        if let Some(LookupRecord {
            messages, results, ..
        }) = lookups
        {
            open.writer
                .lookup(span.from(), self.parsed.wire, messages, results)?;
        }
        let mut chain = self.parsed.chain;
        let mut rows: Vec<(Key, Seq)> = Vec::new();
        for (seq, message) in span.seqs().zip(digests) {
            open.remember(seq, *message);
            if let Some(digest) = message.digest {
                chain = digest::chain_digest(chain, digest);
                rows.push((chain, seq));
            }
        }
        match &reply.id {
            Some(id) => {
                // A request that continues a stored response is found by its id alone.
                rows.push((response_key(id), span.to()));
                self.core.index.add_now(open.id, &rows)?;
            }
            None => self.core.index.add(open, &rows)?,
        }
        open.wrote();
        self.core.publish_messages(open.id, span);
        Ok(())
    }
}

/// Opens all folds of a conversation that the provider refused folded and accepted unfolded, so that it does not refuse the next
/// request for the same reason.
fn open_folds(open: &mut TaskLease) -> Result<(), ConversationError> {
    open.fold_refused = true;
    open.prepared = None;
    loop {
        let shown = open.log().state().shown();
        let folds = shown.items().iter().filter_map(|item| match item {
            Item::Fold(fold) => Some(fold.id),
            Item::Run(_) => None,
        });
        let masks = shown.all_masks().map(|(_, _, mask)| mask.id);
        // Opening a fold may reveal other folds that it had hidden.
        let Some(fold) = folds.chain(masks).next() else {
            break;
        };
        open.writer.unfold(fold)?;
    }
    open.wrote();
    Ok(())
}

/// Runs work on this thread; returns `None` if it panicked. The request continues without it.
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    // The closure's own values are dropped; state behind mutexes is checked when it is used.
    catch_unwind(AssertUnwindSafe(work)).ok()
}

impl Drop for ExchangeRecorder {
    fn drop(&mut self) {
        // A request without an answer is counted by its permit.
        self.failed(CLIENT_LEFT);
    }
}
