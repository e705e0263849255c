use std::sync::Arc;

use infold::turn::Refusal;
use infold::{Aim, Did, usage};
use infold_log::steer::{Side, Target};
use infold_log::{EventId, Item, Seq};
use infold_store::{Failure, Key, Purpose, Usage};
use infold_wire::normal::{self, Digest};
use infold_wire::trouble::RequestSize;
use infold_wire::{Reply, Trouble};
use serde_json::json;
use uuid::Uuid;

use crate::desk::{
    DeskError, Fitted, Inner, LITTLE, Pace, Rule, Settled, due, in_the_way, is_unfolded, last_sent,
    locked, long_context_name, response_key, rewind, tokens_up_to,
};
use crate::held::{Follows, Held};
use crate::seen::Sight;
use crate::told::Told;
use crate::twice::Twice;
use crate::{Call, Name, Outgoing};

/// A request under way, and what is to become of its reply.
///
/// All of its methods read and write files: they are called from threads that may block.
pub struct Exchange {
    desk: Arc<Inner>,
    told: Told,
    task: Uuid,
    /// The last message of what is asked.
    base: Seq,
    /// The window before the provider found anything too long.
    window: u64,
    /// A window of a million tokens is asked for.
    long_context: bool,
    /// How to fold, narrowed each time the provider finds it too long.
    rule: Option<Rule>,
    sent: Sent,
    /// How often the provider found it too long.
    refusals: u32,
    /// What was folded because it was too long: the task's last step before, and after.
    folded: Vec<(Option<EventId>, Option<EventId>)>,
    /// The window that the provider named: believed once a shorter request was answered.
    named: Option<u64>,
    /// The client's own bytes were sent because the provider refused a folded request.
    fell_back: bool,
}

/// What was sent.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    before: u64,
    after: u64,
    counted: u64,
    bytes: u64,
    folds: usize,
    /// It is not what the client sent.
    changed: bool,
}

/// So often is more folded because the provider found a request too long.
const REFUSALS: u32 = 3;

impl Exchange {
    /// Of a call that was settled: it counts as under way already.
    pub(crate) fn new(desk: Arc<Inner>, told: Told, settled: Settled) -> Exchange {
        Exchange {
            task: settled.task,
            base: settled.base,
            window: 0,
            long_context: false,
            rule: None,
            sent: Sent::default(),
            refusals: 0,
            folded: Vec::new(),
            named: None,
            fell_back: false,
            told,
            desk,
        }
    }

    /// Makes the request fit, and returns what to send; nothing if that takes longer than there is time.
    pub(crate) fn begin(&mut self, call: &Call, pace: Pace) -> Result<Option<Outgoing>, DeskError> {
        let long_context = self.asks_for_long_context(call);
        let model = &self.told.model;
        let Some(rule) = self.desk.rule(&call.provider, model, long_context, pace)? else {
            return Ok(None);
        };
        let mut profile = rule.profile.clone();
        if let Some(window) = self.told.params.num_ctx {
            profile.window = window;
        }
        let asked = self.told.params.max_tokens;
        if asked.is_some() {
            // A client may ask for more than there is; half of the window is the most a reply may take.
            profile.max_tokens = asked.map(|most| most.min(profile.window / 2));
        }
        let room = Aim::of(&profile, None).map_err(|error| DeskError::Own(error.to_string()))?;
        let aim = Aim {
            factor: rule.aim.factor,
            frame: self.desk.frame(call, &self.told)?,
            ..room
        };
        self.window = profile.window;
        self.rule = Some(Rule {
            profile,
            aim,
            quirks: rule.quirks,
        });
        self.long_context = long_context;
        self.desk.keep_frame(call, &self.told, self.task)?;
        self.fit(call, pace)
    }

    /// The task it belongs to.
    pub fn task(&self) -> Uuid {
        self.task
    }

    /// The model that is asked.
    pub fn model(&self) -> &str {
        &self.told.model
    }

    /// The client wants the reply as it is made.
    pub fn is_stream(&self) -> bool {
        self.told.stream
    }

    /// What the client is told of it: names and values of headers.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        vec![
            ("x-infold-task", self.task.to_string()),
            ("x-infold-tokens-before", self.sent.before.to_string()),
            ("x-infold-tokens-after", self.sent.after.to_string()),
            ("x-infold-folds", self.sent.folds.to_string()),
        ]
    }

    /// Says what an error means that does not say it, by the size of the request.
    pub fn explain(&self, trouble: Trouble) -> Trouble {
        trouble.explain(RequestSize {
            tokens: self.sent.after,
            window: self.window,
            bytes: self.sent.bytes,
        })
    }

    /// The provider refused the request as it was folded, and says why: returns the client's own
    /// bytes if they fit the window, nothing if they do not.
    pub fn fall_back(&mut self, call: &Call, why: &str) -> Result<Option<Outgoing>, DeskError> {
        let Some(rule) = self.rule.clone().filter(|_| !self.fell_back) else {
            return Ok(None);
        };
        let held = self.desk.open(self.task)?;
        let guard = locked(&held);
        // Of a conversation that the service keeps, the client's bytes are only the end.
        if self.told.params.previous.is_some() || !self.fits_unfolded(&guard, &rule)? {
            return Ok(None);
        }
        let outgoing = self.as_it_is(call, &guard, &rule)?;
        drop(guard);
        self.fell_back = true;
        self.note(&format!("a folded request was refused: {why}"), 1)?;
        self.desk.metrics.fell_back();
        tracing::warn!(task = %self.task, why, "a folded request was refused: sent again as the client wrote it");
        Ok(Some(outgoing))
    }

    /// Says whether all of the conversation fits the window.
    fn fits_unfolded(&self, held: &Held, rule: &Rule) -> Result<bool, DeskError> {
        Ok(self.unfolded_tokens(held, rule)?.1 <= rule.profile.window)
    }

    /// What all of the conversation comes to: as we count, and in the model's tokens.
    fn unfolded_tokens(&self, held: &Held, rule: &Rule) -> Result<(u64, u64), DeskError> {
        let counted = tokens_up_to(held, self.base)? + rule.aim.frame.tokens;
        Ok((counted, (counted as f64 * rule.aim.factor).ceil() as u64))
    }

    /// Says whether the client asks for a window of a million tokens. A provider of another
    /// wire is not told.
    fn asks_for_long_context(&self, call: &Call) -> bool {
        (call.long_context || self.told.params.long_context) && !crate::translate::is_abroad(call)
    }

    /// The provider found it too long: folds harder, and returns what to send instead; nothing if
    /// no more can be done.
    pub fn refused(
        &mut self,
        call: &Call,
        trouble: &Trouble,
    ) -> Result<Option<Outgoing>, DeskError> {
        self.refusals += 1;
        let told = &self.told;
        let Some(rule) = self.rule.as_mut().filter(|_| self.refusals <= REFUSALS) else {
            return Ok(None);
        };
        if matches!(trouble, Trouble::Alternate | Trouble::Bound) {
            let known = rule.quirks;
            rule.quirks.alternate |= *trouble == Trouble::Alternate;
            rule.quirks.bound |= *trouble == Trouble::Bound;
            if rule.quirks == known || !self.sent.changed {
                return Ok(None);
            }
            let quirks = rule.quirks;
            self.desk
                .learned_quirks(&told.provider, &told.model, quirks);
            return self.fit(call, Pace::Patient);
        }
        let refusal = Refusal {
            trouble,
            estimate: self.sent.after,
            reply: told.params.max_tokens,
            bytes: self.sent.bytes,
        };
        self.named = refusal.named().or(self.named);
        if refusal.narrow(&mut rule.profile, &mut rule.aim).is_err() {
            return Ok(None);
        }
        let why = format!(
            "too long for the provider: {} tokens or so",
            self.sent.after
        );
        self.note(&why, 1)?;
        let sent = self.sent;
        let outgoing = self.fit(call, Pace::Patient)?;
        self.desk.metrics.retried();
        // The same again would be refused again.
        Ok(outgoing.filter(|outgoing| outgoing.len() < sent.bytes))
    }

    /// The provider answers: what was folded for it stays folded, whatever becomes of the answer.
    pub fn accepted(&mut self) {
        self.folded.clear();
    }

    /// Opens what was folded because the provider found it too long, since that did not help.
    /// Whatever somebody else did since stays, and so does what lies beneath it.
    fn take_back(&mut self) -> Result<(), DeskError> {
        if self.folded.is_empty() {
            return Ok(());
        }
        let held = self.desk.open(self.task)?;
        let mut held = locked(&held);
        for (before, after) in std::mem::take(&mut self.folded).into_iter().rev() {
            if held.log().state().step() != after {
                break;
            }
            while held.log().state().step() > before {
                held.writer.undo()?;
            }
        }
        self.desk.wrote(&mut held);
        Ok(())
    }

    /// Keeps in mind what was folded because the provider found it too long.
    fn keep_steps(&mut self, before: Option<EventId>, held: &Held) {
        let after = held.log().state().step();
        if self.refusals > 0 && before != after {
            self.folded.push((before, after));
        }
    }

    /// Says whether it takes no time to speak of to record a reply.
    pub(crate) fn is_at_hand(&self, reply: &Reply) -> bool {
        let bytes: usize = reply.messages.iter().map(Vec::len).sum();
        bytes as u64 <= LITTLE && self.desk.is_at_hand(self.task)
    }

    /// Records a whole reply.
    pub fn record(&mut self, reply: Reply) -> Result<(), DeskError> {
        if reply.messages.is_empty() {
            let stop = reply.stop.name().to_owned();
            return self.note(&format!("an empty reply ({stop})"), 1);
        }
        let said: Vec<Sight> = reply
            .messages
            .iter()
            .map(|bytes| Sight::of(&self.desk.seen.kept(bytes)))
            .collect::<Result<_, _>>()
            .map_err(|error| DeskError::Own(format!("the reply is no message: {error}")))?;
        if let Some(window) = self.named.take() {
            let Told {
                provider, model, ..
            } = &self.told;
            let name = match self.long_context {
                true => &long_context_name(model),
                false => model,
            };
            usage::remember_window(&self.desk.contexts, provider, name, window)?;
            self.desk.forget_rule(provider, model);
        }
        let held = self.desk.open(self.task)?;
        let mut guard = locked(&held);
        if self.fell_back {
            self.open_folds(&mut guard)?;
        }
        let mut purpose = Purpose::Reply;
        match guard.follows(self.base)? {
            Follows::Nothing => self.append(&mut guard, &reply, &said)?,
            _ if self.is_there(&mut guard, &said)? => purpose = Purpose::Nothing,
            // The reply that is there was not gone on with, and whoever asked again got this one.
            follows if follows == Follows::Reply || self.is_ours_alone() => {
                let before = last_sent(guard.log(), self.base)?;
                rewind(&mut guard, self.base, before)?;
                self.append(&mut guard, &reply, &said)?;
            }
            // The conversation went on without it. It is kept beside the path: if somebody goes on
            // from it, it becomes a task of its own.
            _ => {
                let target = Target::Message(self.base.get());
                guard.writer.rewind(Side::To, target)?;
                let appended = self.append(&mut guard, &reply, &said);
                guard.writer.undo()?;
                appended?;
                purpose = Purpose::Nothing;
            }
        }
        self.report(&mut guard, &reply, purpose)
    }

    /// Opens all folds of a conversation that the provider refused folded and took unfolded, so that
    /// it does not refuse the next request for the same reason.
    fn open_folds(&self, held: &mut Held) -> Result<(), DeskError> {
        held.fold_refused = true;
        held.ready = None;
        loop {
            let shown = held.log().state().shown();
            let folds = shown.items().iter().filter_map(|item| match item {
                Item::Fold(fold) => Some(fold.id),
                _ => None,
            });
            let masks = shown.all_masks().map(|(_, _, mask)| mask.id);
            // An open fold may show others that it had hidden.
            let Some(fold) = folds.chain(masks).next() else {
                break;
            };
            held.writer.unfold(fold)?;
        }
        self.desk.wrote(held);
        Ok(())
    }

    /// Records what the provider reported, and has it learned from.
    fn report(&self, held: &mut Held, reply: &Reply, purpose: Purpose) -> Result<(), DeskError> {
        let Some(reported) = &reply.usage else {
            return Ok(());
        };
        let usage = self.usage(reported, purpose);
        held.writer.usage(usage.clone())?;
        self.desk.wrote(held);
        let told = json!({
            "model": usage.model,
            "tokens": usage.tokens,
            "cached_tokens": usage.cached,
            "output_tokens": usage.output,
            "cost": usage.cost as f64 / 1e6,
        });
        self.desk.tell(held.id, "usage", told.to_string());
        if self.desk.learns(&usage.provider, &usage.model) {
            let factor = self.rule.as_ref().map_or(1.0, |rule| rule.aim.factor);
            self.desk.later.learn(usage, (self.sent.counted, factor));
        }
        Ok(())
    }

    /// Records that no whole reply came, and why.
    pub fn failed(&mut self, why: &str) -> Result<(), DeskError> {
        self.take_back()?;
        self.note(why, 1)
    }

    /// Folds if that is due; an old request that comes again and has to be folded gets a task of its own.
    fn fit(&mut self, call: &Call, pace: Pace) -> Result<Option<Outgoing>, DeskError> {
        let mut pen = None;
        let fitted = self.fit_with(call, pace, &mut pen);
        // What was paid for is a fact, whatever came of it.
        let left: Vec<Usage> = pen.into_iter().flat_map(Twice::left).collect();
        if !left.is_empty() {
            let held = self.desk.open(self.task)?;
            self.desk.paid(&mut locked(&held), left)?;
        }
        fitted
    }

    fn fit_with(
        &mut self,
        call: &Call,
        pace: Pace,
        pen: &mut Option<Twice>,
    ) -> Result<Option<Outgoing>, DeskError> {
        let Some(rule) = self.rule.clone() else {
            return Ok(Some(Outgoing::untouched(&call.body)));
        };
        let held = self.desk.open(self.task)?;
        let mut guard = locked(&held);
        let gone_on = guard.follows(self.base)? != Follows::Nothing;
        if gone_on {
            let fits = matches!(infold::will_manage(guard.log(), &rule.aim), Ok(None));
            // As long as nothing has to be folded, what comes of it can wait.
            if fits && is_unfolded(&guard) {
                return self.as_it_is(call, &guard, &rule).map(Some);
            }
            if pace == Pace::Hasty {
                return Ok(None);
            }
            let fork = self.desk.fork_at(&self.told, &mut guard, self.base)?;
            drop(guard);
            drop(held);
            self.move_to(fork);
            return self.fit_with(call, pace, pen);
        }
        if self.told.params.previous.is_some() && self.desk.is_partial(self.task)? {
            return self.as_it_is(call, &guard, &rule).map(Some);
        }
        while let Some(fold) = in_the_way(&guard, self.base)? {
            if pace == Pace::Hasty {
                return Ok(None);
            }
            guard.writer.unfold(fold)?;
            self.desk.wrote(&mut guard);
        }
        if guard.fold_refused && self.refusals == 0 && self.fits_unfolded(&guard, &rule)? {
            return self.as_it_is(call, &guard, &rule).map(Some);
        }
        let before = guard.log().state().step();
        let mut because = due(guard.log(), &rule)?;
        if because.is_some() && pace == Pace::Hasty {
            return Ok(None);
        }
        if let Some((reason, aim)) = &because
            && self.desk.apply_ahead(&mut guard, *reason, aim)?
        {
            because = due(guard.log(), &rule)?;
        }
        if let (Some((reason, aim)), None) = (&because, &pen)
            && let Some(mut slow) = self.desk.slow_pen(call, &guard, &rule.profile)?
        {
            guard.preparing = true;
            self.keep_steps(before, &guard);
            drop(guard);
            // Another process may want it.
            drop(held);
            self.desk.tell_folding(self.task, *reason, aim);
            let written = self.desk.write_now(self.task, aim, &mut slow);
            *pen = Some(slow);
            written?;
            // The task may have gone on meanwhile.
            return self.fit_with(call, pace, pen);
        }
        let must = self.refusals > 0;
        let (desk, told) = (&self.desk, &self.told);
        let fitted = desk.fit(call, told, &mut guard, &rule, because, pen.as_mut(), must)?;
        self.keep_steps(before, &guard);
        let is_ahead = guard.preparing || guard.ready.is_some();
        drop(guard);
        let Fitted {
            outgoing,
            before,
            after,
            counted,
            folds,
            did,
        } = fitted;
        self.sent = Sent {
            before,
            after,
            counted,
            folds,
            bytes: outgoing.len(),
            changed: outgoing != Outgoing::untouched(&call.body),
        };
        if did == Did::Untouched && !is_ahead {
            self.desk.look_out(self.task, call, &rule, after);
        }
        Ok(Some(outgoing))
    }

    /// Sends the request as it came.
    fn as_it_is(&mut self, call: &Call, held: &Held, rule: &Rule) -> Result<Outgoing, DeskError> {
        let (counted, tokens) = self.unfolded_tokens(held, rule)?;
        self.sent = Sent {
            before: tokens,
            after: tokens,
            counted,
            bytes: call.body.len(),
            folds: 0,
            changed: false,
        };
        Ok(Outgoing::untouched(&call.body))
    }

    /// Says whether what was answered is what the task has there already.
    fn is_there(&self, held: &mut Held, said: &[Sight]) -> Result<bool, DeskError> {
        let said: Vec<Digest> = said.iter().filter_map(|sight| sight.digest).collect();
        let there = held.next_said(self.base, said.len())?;
        Ok(!said.is_empty() && there == said)
    }

    /// Whoever named the task has nothing else under way in it.
    fn is_ours_alone(&self) -> bool {
        matches!(self.told.name, Some(Name::Given(_))) && self.desk.count_under_way(self.task) <= 1
    }

    fn append(&mut self, held: &mut Held, reply: &Reply, said: &[Sight]) -> Result<(), DeskError> {
        let Some(span) = held.writer.append(&reply.messages)? else {
            return Ok(());
        };
        let mut chain = self.told.chain;
        let mut rows: Vec<(Key, Seq)> = Vec::new();
        for (seq, sight) in span.seqs().zip(said) {
            held.saw(seq, *sight);
            if let Some(digest) = sight.digest {
                chain = normal::chain(chain, digest);
                rows.push((chain, seq));
            }
        }
        match &reply.id {
            Some(id) => {
                // Nothing else leads from the one to the other.
                rows.push((response_key(id), span.to()));
                self.desk.index_now(held.id, &rows)?;
            }
            None => self.desk.index(held, &rows)?,
        }
        self.desk.wrote(held);
        self.desk.tell(
            held.id,
            "message",
            format!(r#"{{"from":{},"to":{}}}"#, span.from(), span.to()),
        );
        Ok(())
    }

    /// Records a failure.
    fn note(&mut self, why: &str, requests: u64) -> Result<(), DeskError> {
        let held = self.desk.open(self.task)?;
        let mut held = locked(&held);
        held.writer.failure(Failure {
            provider: self.told.provider.clone(),
            model: self.told.model.clone(),
            error: why.to_owned(),
            requests,
        })?;
        self.desk.wrote(&mut held);
        self.tell_failure(why);
        Ok(())
    }

    /// Tells whoever watches that something failed.
    pub(crate) fn tell_failure(&self, why: &str) {
        let told = json!({ "error": why });
        self.desk.tell(self.task, "failure", told.to_string());
    }

    fn usage(&self, reported: &infold_wire::Reported, purpose: Purpose) -> Usage {
        let rule = self.rule.as_ref();
        Usage {
            provider: self.told.provider.clone(),
            model: self.told.model.clone(),
            tokens: reported.total(),
            cached: reported.cache_read,
            output: reported.output,
            frame: rule.map_or(0, |rule| rule.aim.frame.tokens),
            cost: usage::cost(rule.and_then(|rule| rule.profile.prices), reported),
            purpose,
        }
    }

    fn move_to(&mut self, task: Uuid) {
        self.desk.under_way(self.task, false);
        self.desk.under_way(task, true);
        self.task = task;
        // What was folded in the other one is its own affair.
        self.folded.clear();
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
        self.desk.under_way(self.task, false);
    }
}
