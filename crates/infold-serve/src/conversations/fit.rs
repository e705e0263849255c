//! Folds a conversation if that is due, and assembles the request that is sent.

use infold::summarizer::Extractive;
use infold::{Aim, Hooks, ManageError, PassAction, Profile, Summarizer, manage, will_manage};
use infold_log::{Due, Past as _, Seq, Shows, Span, View};
use infold_store::{Log, LogError};
use infold_wire::lookup::LookupOffer;
use serde_json::json;
use uuid::Uuid;

use super::context::InjectedContext;
use super::recall::recalled_count;
use super::{ConversationError, Core};
use crate::lookups::with_tools;
use crate::model_rules::ModelRule;
use crate::open_task::OpenTask;
use crate::parsed_request::ParsedRequest;
use crate::pool::TaskLease;
use crate::recorded_summary::RecordedSummary;
use crate::splice::{is_plain, splice_contexts, splice_full, splice_request};
use crate::tool_policy::RequestTools;
use crate::{ModelCall, OutgoingBody};

/// A request that fits, and its size.
pub(crate) struct Fitted {
    pub outgoing: OutgoingBody,
    /// The size of the whole conversation, in the model's tokens.
    pub before: u64,
    /// The size of the request, in the model's tokens.
    pub after: u64,
    /// The size of the request, as counted by us.
    pub counted: u64,
    /// The number of folds that apply.
    pub folds: usize,
    /// The number of excerpts of hidden messages in the last message.
    pub recalled: usize,
    /// The tools that are offered for looking up hidden messages.
    pub lookups: Option<LookupOffer>,
}

/// The changes that the proxy makes to a request, besides folds.
#[derive(Clone, Copy)]
pub(crate) struct RequestAdditions<'a> {
    /// The changes by the tool policy.
    pub tools: Option<&'a RequestTools>,
    /// The texts that are shown of the state of the task.
    pub context: Option<&'a InjectedContext>,
    /// Tools for looking up hidden messages may be offered.
    pub may_look_up: bool,
}

/// A fold that is due, and its settings.
pub(crate) struct FoldDue {
    pub due: Due,
    pub aim: Aim,
}

impl FoldDue {
    /// Says whether the fold can wait for a summary that is being written, so that the request need not.
    pub fn can_wait(&self, open: &OpenTask) -> Result<bool, LogError> {
        Ok(open.is_preparing && self.due != Due::Bytes && still_fits(open, &self.aim)?)
    }
}

impl Core {
    /// Makes the fold that is due, with a prepared summary or else the built-in summarizer.
    pub fn fold(
        &self,
        open: &mut TaskLease,
        fold: &FoldDue,
        summary: Option<&mut RecordedSummary>,
    ) -> Result<PassAction, ConversationError> {
        let hooks = Hooks::of(&self.config);
        if summary.is_none() {
            self.publish_folding(open.id, fold);
        }
        let with_summary = summary.map(|it| manage(&mut open.writer, &fold.aim, it, &hooks));
        let managed = match with_summary {
            // Without a summary, or if the task changed while it was written, only the built-in summarizer is fast enough.
            None | Some(Err(ManageError::Cancelled)) => {
                manage(&mut open.writer, &fold.aim, &mut Extractive, &hooks)
            }
            Some(managed) => managed,
        };
        open.wrote();
        let outcome = match managed {
            Ok(outcome) => outcome,
            Err(ManageError::Floor { .. }) => return Ok(PassAction::Untouched),
            Err(error) => return Err(error.into()),
        };
        if outcome.action > PassAction::Untouched {
            let (before, after) = (outcome.before.tokens, outcome.after.tokens);
            self.metrics.folded(outcome.action.kind(), before, after);
            self.publish(open.id, "fold", outcome.json().to_string());
        }
        Ok(outcome.action)
    }

    /// Assembles the request to send: the client's own bytes if nothing is folded, else a splice of them.
    pub fn assemble(
        &self,
        call: &ModelCall,
        parsed: &ParsedRequest,
        open: &mut OpenTask,
        rule: &ModelRule,
        additions: RequestAdditions<'_>,
    ) -> Result<Fitted, ConversationError> {
        let ModelRule { aim, quirks, .. } = rule;
        let RequestAdditions { tools, context, .. } = additions;
        let OpenTask { path, writer, .. } = &mut *open;
        let log = writer.log();
        let view = View::of(log.state().shown(), log)?;
        // A response that one provider stores is unknown to another.
        let is_stored_elsewhere =
            parsed.params.previous.is_some() && crate::translate::is_translated(call);
        // Without a list of messages there is nothing to splice.
        let must_be_full = parsed.params.previous.is_some() || parsed.is_text();
        let offer = additions
            .may_look_up
            .then(|| self.offer_lookups(call, parsed, tools, log));
        let mut lookups = offer.flatten();
        let mut is_full = false;
        let mut outgoing = if is_plain(&view, log.state().shown()) && !is_stored_elsewhere {
            splice_contexts(call, parsed, log, path.follow(log)?)?
        } else if !must_be_full {
            splice_request(
                call,
                parsed,
                log,
                &view,
                path.follow(log)?,
                *quirks,
                lookups.is_some() || tools.is_some_and(RequestTools::has_tools),
            )?
        } else if is_native(log, &view, call)? {
            is_full = true;
            splice_full(call, parsed, log, &view, additions, lookups.as_ref())?
        } else {
            // Messages of another wire cannot be sent in its place.
            lookups = None;
            OutgoingBody::untouched(&call.body)
        };
        if let Some(offer) = lookups.as_ref().filter(|_| !must_be_full) {
            outgoing = with_tools(parsed, outgoing, offer);
        }
        if let Some(context) = context.filter(|_| !is_full) {
            outgoing = context.apply(parsed, outgoing);
        }
        let pieces = view.pieces().iter();
        let folds = pieces.filter(|piece| is_fold(&piece.shows)).count();
        let after = infold::manage::measured(open.log(), aim)?.tokens;
        let last = open.log().state().shown().last().unwrap_or(Seq::FIRST);
        let whole = scaled(aim, tokens_up_to(open, last)?);
        Ok(Fitted {
            outgoing,
            // The tokens that the provider reported are part of `after` alone, and may be more than the counted ones:
            // without a fold both are the same request.
            before: if folds == 0 { after } else { whole.max(after) },
            after,
            counted: view.tokens() + aim.frame.tokens,
            folds,
            recalled: recalled_count(open),
            lookups,
        })
    }

    /// Publishes that a fold begins.
    pub fn publish_folding(&self, task: Uuid, fold: &FoldDue) {
        let told = json!({
            "trigger": fold.aim.trigger.name(),
            "due": fold.due.name(),
            "window": fold.aim.budget.window(),
        });
        self.publish(task, "folding", told.to_string());
    }

    /// Folds with a prefetched summary, if there is one that still applies; says whether it did.
    pub fn apply_prefetched(
        &self,
        open: &mut TaskLease,
        fold: &FoldDue,
    ) -> Result<bool, ConversationError> {
        let Some(prepared) = open.prepared.take() else {
            return Ok(false);
        };
        let aim = &fold.aim;
        let before = scaled(aim, view_tokens(open)?);
        let hooks = Hooks::of(&self.config);
        let mut asked = json!({
            "task": open.id.to_string(),
            "trigger": aim.trigger.name(),
            "due": fold.due.name(),
            "tokens": before,
            "window": aim.budget.window(),
        });
        // If a hook refuses, the pass that folds instead runs it again and records the refusal.
        if hooks.before(&asked).is_err() {
            return Ok(false);
        }
        self.publish_folding(open.id, fold);
        if prepared.apply(&mut open.writer, aim)?.is_none() {
            return Ok(false);
        }
        open.wrote();
        let after = scaled(aim, view_tokens(open)?);
        self.metrics
            .folded(PassAction::Condensed.kind(), before, after);
        let outcome = json!({
            "outcome": PassAction::Condensed.name(),
            "ahead": true,
            "tokens_before": before,
            "tokens_after": after,
        });
        self.publish(open.id, "fold", outcome.to_string());
        asked["outcome"] = outcome;
        if let Err(error) = hooks.after(&asked) {
            self.pool.report(&ConversationError::Internal(error));
        }
        Ok(true)
    }
}

/// Says whether a summarizer takes long: only the built-in one does not.
pub(crate) fn is_slow(summarizer: &dyn Summarizer) -> bool {
    summarizer.name() != Extractive.name()
}

/// Returns the fold that is due, if any, and its settings.
///
/// If the messages that cannot be folded leave too little room for a reply of the expected length, or hardly any for
/// the conversation, the reserve for the reply is reduced. If that is not enough, only head and tail of the last tool
/// results are shown. If the request still does not fit, everything else is folded: our value of the window may be
/// wrong, and the provider decides.
pub(crate) fn fold_due(log: &Log, rule: &ModelRule) -> Result<Option<FoldDue>, ConversationError> {
    /// A reply gets at least the window divided by this.
    const MIN_REPLY_DIVISOR: u64 = 16;
    /// Less room than the window divided by this is not worth folding for, as long as the reply can do with less.
    const MIN_ROOM_DIVISOR: u64 = 8;
    /// The size of the marker that says that the rest is hidden, as counted.
    const MARKER_TOKENS: f64 = 52.0;
    let ModelRule { profile, aim, .. } = rule;
    let expected = Aim {
        clips: false,
        ..aim.clone()
    };
    let narrower = |window: u64, reply: u64, bytes: Option<u64>| {
        let narrower = Profile {
            window,
            max_tokens: Some(reply),
            ..profile.clone()
        };
        let other = Aim::of(&narrower, bytes).ok()?;
        Some(Aim {
            factor: aim.factor,
            frame: aim.frame,
            recall_tool: aim.recall_tool.clone(),
            clips: false,
            ..other
        })
    };
    let window = profile.window;
    let reply = (window / MIN_REPLY_DIVISOR).min(aim.budget.reserve());
    let short = narrower(window, reply, aim.budget.bytes()).unwrap_or_else(|| expected.clone());
    match will_manage(log, &expected) {
        Ok(None) => return Ok(None),
        Ok(Some(due)) if infold::manage::room(log, &expected)? >= window / MIN_ROOM_DIVISOR => {
            return Ok(Some(FoldDue { due, aim: expected }));
        }
        Ok(Some(_)) | Err(ManageError::Floor { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let clipped = Aim {
        clips: true,
        ..short.clone()
    };
    let mut floor = None;
    for aim in [short, clipped] {
        match will_manage(log, &aim) {
            Ok(due) => return Ok(due.map(|due| FoldDue { due, aim })),
            Err(ManageError::Floor { floor: found }) => floor = Some(found),
            Err(error) => return Err(error.into()),
        }
    }
    let Some(floor) = floor else { return Ok(None) };
    let marker = (MARKER_TOKENS * aim.factor).ceil() as u64;
    let least = (floor.tokens + marker) * 10 / 9 + 2;
    let bytes = floor.bytes.map(|(bytes, _)| bytes + 8 * marker);
    let Some(aim) = narrower(least, 1, bytes.or(aim.budget.bytes())) else {
        return Ok(None);
    };
    let due = will_manage(log, &aim).ok().flatten();
    Ok(due.map(|due| FoldDue { due, aim }))
}

/// Says whether all that a view shows can be sent on the wire of a call without conversion.
fn is_native(log: &Log, view: &View, call: &ModelCall) -> Result<bool, ConversationError> {
    for piece in view.pieces() {
        let native = match &piece.shows {
            Shows::Verbatim(span) => log.is_native(*span, call.wire)?,
            Shows::Round { members, .. } => {
                let mut all = true;
                for seq in members {
                    all &= log.is_native(Span::one(*seq), call.wire)?;
                }
                all
            }
            Shows::StandIn(_) | Shows::Note(_) => log.wire() == call.wire,
        };
        if !native {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_fold(shows: &Shows) -> bool {
    match shows {
        Shows::StandIn(_) => true,
        Shows::Round { masks, .. } => !masks.is_empty(),
        _ => false,
    }
}

/// Returns counted tokens in the model's tokens, with the frame.
fn scaled(aim: &Aim, tokens: u64) -> u64 {
    (tokens as f64 * aim.factor).ceil() as u64 + aim.frame.tokens
}

/// Says whether the view fits if only half as much as usual is reserved for miscounting.
fn still_fits(open: &OpenTask, aim: &Aim) -> Result<bool, LogError> {
    let window = aim.budget.window();
    let tokens = scaled(aim, view_tokens(open)?) + aim.budget.reserve();
    Ok(tokens <= window - window / 20)
}

fn view_tokens(open: &OpenTask) -> Result<u64, LogError> {
    let log = open.log();
    Ok(View::of(log.state().shown(), log)?.tokens())
}

/// Returns the tokens of the messages of the path up to one.
pub(crate) fn tokens_up_to(open: &OpenTask, seq: Seq) -> Result<u64, LogError> {
    let log = open.log();
    let mut tokens = 0;
    for run in log.state().shown().path() {
        let Some(run) = Span::new(run.from(), run.to().min(seq)) else {
            break;
        };
        let before = match run.from().prev() {
            Some(before) => log.record(before)?.sums.tokens,
            None => 0,
        };
        tokens += log.record(run.to())?.sums.tokens - before;
    }
    Ok(tokens)
}
