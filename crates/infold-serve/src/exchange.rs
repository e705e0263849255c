use std::sync::Arc;

use infold::turn::Refusal;
use infold::{Aim, Did, usage};
use infold_log::{EventId, Seq};
use infold_store::{Failure, Key, Purpose, Usage};
use infold_wire::normal::{self, Digest};
use infold_wire::{Reply, Trouble};
use uuid::Uuid;

use crate::desk::{
    DeskError, Fitted, Inner, Rule, Settled, is_unfolded, locked, response_key, rewind,
    tokens_up_to,
};
use crate::held::{Follows, Held};
use crate::seen::Sight;
use crate::told::Told;
use crate::{Call, Name, Outgoing};

/// A request under way, and what is to become of its reply.
///
/// All of its methods read and write files: they are called from threads that may block.
pub struct Exchange {
    desk: Arc<Inner>,
    told: Told,
    provider: String,
    task: Uuid,
    /// The last message of what is asked.
    base: Seq,
    /// The task has gone on since that was asked for the first time.
    late: bool,
    /// How to fold, narrowed each time the provider finds it too long.
    rule: Option<Rule>,
    sent: Sent,
    /// How often the provider found it too long.
    refusals: u32,
    /// The last step of which task, before anything was folded because it was too long.
    folded_from: Option<(Uuid, Option<EventId>)>,
    /// The window that the provider named: believed once a shorter request was answered.
    named: Option<u64>,
    /// What the provider named as the size and the limit.
    numbers: (Option<u64>, Option<u64>),
}

/// What was sent.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    before: u64,
    after: u64,
    counted: u64,
    bytes: u64,
    folds: usize,
}

/// So often is more folded because the provider found a request too long.
const REFUSALS: u32 = 3;

impl Exchange {
    pub(crate) fn new(desk: Arc<Inner>, call: &Call, told: Told, settled: Settled) -> Exchange {
        desk.under_way(settled.task, true);
        Exchange {
            provider: call.provider.name.clone(),
            task: settled.task,
            base: settled.base,
            late: settled.late,
            rule: None,
            sent: Sent::default(),
            refusals: 0,
            folded_from: None,
            named: None,
            numbers: (None, None),
            told,
            desk,
        }
    }

    /// Makes the request fit, and returns what to send.
    pub(crate) fn begin(&mut self, call: &Call) -> Result<Outgoing, DeskError> {
        let rule = self.desk.rule(&call.provider, &self.told.model)?;
        let mut profile = rule.profile.clone();
        let asked = self.told.params.max_tokens;
        if asked.is_some() {
            // A client may ask for more than there is; half of the window is the most a reply may take.
            profile.max_tokens = asked.map(|most| most.min(profile.window / 2));
        }
        if let Some(window) = self.told.params.num_ctx {
            profile.window = window;
        }
        let room = Aim::of(&profile, None).map_err(|error| DeskError::Own(error.to_string()))?;
        let aim = Aim {
            factor: rule.aim.factor,
            frame: self.desk.frame(call, &self.told)?,
            ..room
        };
        self.rule = Some(Rule {
            profile,
            aim,
            alternate: rule.alternate,
        });
        self.desk.keep_frame(call, &self.told, self.task)?;
        self.fit(call)
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

    /// How long the request was at last, in the model's tokens, and how long it may be.
    pub fn size(&self) -> (u64, u64) {
        let window = self.rule.as_ref().map_or(0, |rule| rule.profile.window);
        let (tokens, limit) = self.numbers;
        let limit = limit.unwrap_or(window);
        let tokens = tokens.unwrap_or(self.sent.after);
        // Nobody understands a request that is too long and yet shorter than it may be.
        (tokens.max(limit + 1), limit)
    }

    /// The provider found it too long: folds harder, and returns what to send instead; nothing if
    /// no more can be done.
    pub fn refused(
        &mut self,
        call: &Call,
        trouble: &Trouble,
    ) -> Result<Option<Outgoing>, DeskError> {
        if let Trouble::TooLong { tokens, limit } = trouble {
            self.numbers = (*tokens, *limit);
        }
        self.refusals += 1;
        let told = &self.told;
        let Some(rule) = self.rule.as_mut().filter(|_| self.refusals <= REFUSALS) else {
            return Ok(None);
        };
        if *trouble == Trouble::Alternate {
            if std::mem::replace(&mut rule.alternate, true) || self.sent.folds == 0 {
                return Ok(None);
            }
            self.desk.alternates(&self.provider, &told.model);
            return self.fit(call).map(Some);
        }
        let refusal = Refusal {
            trouble,
            estimate: self.sent.after,
            reply: told.params.max_tokens,
            bytes: self.sent.bytes,
        };
        self.named = refusal.named().or(self.named);
        if self.folded_from.is_none() {
            let held = self.desk.open(self.task)?;
            self.folded_from = Some((self.task, locked(&held).log().state().step()));
        }
        if refusal.narrow(&mut rule.profile, &mut rule.aim).is_err() {
            return Ok(None);
        }
        let why = format!(
            "too long for the provider: {} tokens or so",
            self.sent.after
        );
        self.note(&why, 1)?;
        let sent = self.sent;
        let outgoing = self.fit(call)?;
        // The same again would be refused again.
        let smaller = outgoing.len() < sent.bytes;
        self.desk.metrics.retried();
        Ok(smaller.then_some(outgoing))
    }

    /// Opens what was folded because the provider found it too long, since that did not help.
    fn take_back(&mut self) -> Result<(), DeskError> {
        let Some((task, step)) = self
            .folded_from
            .take()
            .filter(|(task, _)| *task == self.task)
        else {
            return Ok(());
        };
        let held = self.desk.open(task)?;
        let mut held = locked(&held);
        for _ in 0..=REFUSALS {
            if held.log().state().step() <= step {
                break;
            }
            held.writer.undo()?;
        }
        self.desk.wrote(&mut held);
        Ok(())
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
            .map(|bytes| Sight::of(bytes))
            .collect::<Result<_, _>>()
            .map_err(|error| DeskError::Own(format!("the reply is no message: {error}")))?;
        if let Some(window) = self.named.take() {
            let model = &self.told.model;
            usage::remember_window(&self.desk.contexts, &self.provider, model, window)?;
            self.desk.forget_rule(&self.provider, model);
        }
        let held = self.desk.open(self.task)?;
        let mut guard = locked(&held);
        let mut purpose = Purpose::Reply;
        match guard.follows(self.base)? {
            Follows::Nothing => self.append(&mut guard, &reply, &said)?,
            _ if self.is_there(&mut guard, &said)? => purpose = Purpose::Nothing,
            _ if self.is_ours_alone() => {
                rewind(&mut guard, self.base)?;
                self.append(&mut guard, &reply, &said)?;
            }
            _ => {
                let fork = self.desk.fork_at(&guard, self.base)?;
                drop(guard);
                self.move_to(fork);
                let held = self.desk.open(fork)?;
                let mut guard = locked(&held);
                self.append(&mut guard, &reply, &said)?;
                return self.report(&mut guard, &reply, purpose);
            }
        }
        self.report(&mut guard, &reply, purpose)
    }

    /// Records what the provider reported, and has it learned from.
    fn report(&self, held: &mut Held, reply: &Reply, purpose: Purpose) -> Result<(), DeskError> {
        let Some(reported) = &reply.usage else {
            return Ok(());
        };
        let usage = self.usage(reported, purpose);
        held.writer.usage(usage.clone())?;
        self.desk.wrote(held);
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
    fn fit(&mut self, call: &Call) -> Result<Outgoing, DeskError> {
        let Some(rule) = self.rule.clone() else {
            return Ok(Outgoing::untouched(&call.body));
        };
        let held = self.desk.open(self.task)?;
        let mut guard = locked(&held);
        let gone_on = guard.follows(self.base)? != Follows::Nothing;
        if gone_on {
            let fits = matches!(infold::will_manage(guard.log(), &rule.aim), Ok(None));
            // As long as nothing has to be folded, what comes of it can wait.
            if fits && is_unfolded(&guard) {
                return self.as_it_is(call, &guard, &rule);
            }
            let fork = self.desk.fork_at(&guard, self.base)?;
            drop(guard);
            self.move_to(fork);
            return self.fit(call);
        }
        if self.told.params.previous.is_some() && self.desk.is_partial(self.task)? {
            return self.as_it_is(call, &guard, &rule);
        }
        let must = self.refusals > 0;
        let fitted = self.desk.fit(call, &self.told, &mut guard, &rule, must)?;
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
        };
        if did == Did::Untouched && !is_ahead {
            self.desk.look_out(self.task, call, &rule, after);
        }
        Ok(outgoing)
    }

    /// Sends the request as it came.
    fn as_it_is(&mut self, call: &Call, held: &Held, rule: &Rule) -> Result<Outgoing, DeskError> {
        let counted = tokens_up_to(held, self.base)? + rule.aim.frame.tokens;
        let tokens = (counted as f64 * rule.aim.factor).ceil() as u64;
        self.sent = Sent {
            before: tokens,
            after: tokens,
            counted,
            bytes: call.body.len(),
            folds: 0,
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
            if let Some(digest) = sight.digest {
                chain = normal::chain(chain, digest);
                rows.push((chain, seq));
            }
        }
        if let Some(id) = &reply.id {
            rows.push((response_key(id), span.to()));
        }
        self.desk.index(held.id, &rows)?;
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
            provider: self.provider.clone(),
            model: self.told.model.clone(),
            error: why.to_owned(),
            requests,
        })?;
        self.desk.wrote(&mut held);
        let told = format!(r#"{{"error":{}}}"#, infold_wire::quote(why));
        self.desk.tell(self.task, "failure", told);
        Ok(())
    }

    fn usage(&self, reported: &infold_wire::Reported, purpose: Purpose) -> Usage {
        let rule = self.rule.as_ref();
        Usage {
            provider: self.provider.clone(),
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
        self.late = false;
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
