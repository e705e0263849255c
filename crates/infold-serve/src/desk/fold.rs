//! A request made to fit.

use infold::summarizer::Extractive;
use infold::{Aim, Did, Hooks, ManageError, Profile, Summarizer, manage, will_manage};
use infold_log::{Due, Past as _, Seq, Shows, Span, View};
use infold_store::{Log, LogError};
use serde_json::json;
use uuid::Uuid;

use super::{DeskError, Inner, Rule};
use crate::held::Held;
use crate::splice::{is_plain, spliced};
use crate::told::Told;
use crate::twice::Twice;
use crate::{Call, Outgoing};

/// What is sent, and how large it is.
pub(crate) struct Fitted {
    pub outgoing: Outgoing,
    /// What the whole conversation would have come to, in the model's tokens.
    pub before: u64,
    /// What is sent comes to this.
    pub after: u64,
    /// What we counted for it.
    pub counted: u64,
    /// How many folds are in force.
    pub folds: usize,
    /// Something was folded just now.
    pub did: Did,
}

impl Inner {
    /// Folds what is `due`, and puts the request together. A summary that takes long was written
    /// before, by `pen`; what the provider found too long `must` be folded.
    #[expect(clippy::too_many_arguments, reason = "all of it decides")]
    pub fn fit(
        &self,
        call: &Call,
        told: &Told,
        held: &mut Held,
        rule: &Rule,
        due: Option<(Due, Aim)>,
        pen: Option<&mut Twice>,
        must: bool,
    ) -> Result<Fitted, DeskError> {
        let Rule { aim, quirks, .. } = rule;
        let mut did = Did::Untouched;
        if let Some((due, aim)) = due
            && (pen.is_some() || must || !can_wait(held, due, &aim)?)
        {
            let hooks = Hooks::of(&self.config);
            if pen.is_none() {
                self.tell_folding(held.id, due, &aim);
            }
            let written = pen.map(|pen| manage(&mut held.writer, &aim, pen, &hooks));
            let managed = match written {
                // Without one nobody but the built-in one has time, or the task went another way
                // while it was written.
                None | Some(Err(ManageError::Cancelled)) => {
                    manage(&mut held.writer, &aim, &mut Extractive, &hooks)
                }
                Some(managed) => managed,
            };
            match managed {
                Ok(outcome) => {
                    if outcome.did > Did::Untouched {
                        let (before, after) = (outcome.before.tokens, outcome.after.tokens);
                        self.metrics.folded(outcome.did.kind(), before, after);
                        self.tell(held.id, "fold", outcome.json().to_string());
                    }
                    did = outcome.did;
                }
                Err(ManageError::Floor { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            self.wrote(held);
        }
        let Held { places, writer, .. } = held;
        let log = writer.log();
        let view = View::of(log.state().shown(), log)?;
        // Nobody else keeps what another service keeps.
        let abroad = told.params.previous.is_some() && crate::translate::is_abroad(call);
        // There are no messages to put anything between.
        let in_full = told.params.previous.is_some() || told.text.is_some();
        let outgoing = match is_plain(&view) && !abroad {
            true => Outgoing::untouched(&call.body),
            // Messages of another form cannot be sent in its place.
            false if in_full && !is_native(log, &view, call)? => Outgoing::untouched(&call.body),
            false if in_full => crate::splice::full(call, told, log, &view)?,
            false => spliced(call, told, log, &view, places.follow(log)?, *quirks)?,
        };
        let pieces = view.pieces().iter();
        let folds = pieces.filter(|piece| is_fold(&piece.shows)).count();
        let after = infold::manage::measured(held.log(), aim)?.tokens;
        let whole = scaled(aim, tokens_up_to(held, last(held))?);
        Ok(Fitted {
            outgoing,
            // What the provider reported counts for `after` alone, and may be more than we count:
            // without a fold both are the same request.
            before: if folds == 0 { after } else { whole.max(after) },
            after,
            counted: view.tokens() + aim.frame.tokens,
            folds,
            did,
        })
    }

    /// Tells that something is about to be folded.
    pub fn tell_folding(&self, task: Uuid, due: Due, aim: &Aim) {
        let told = json!({
            "trigger": aim.trigger.name(),
            "due": due.name(),
            "window": aim.budget.window(),
        });
        self.tell(task, "folding", told.to_string());
    }

    /// Folds with the summary that was written ahead of need, if there is one that is still right.
    pub fn apply_ahead(&self, held: &mut Held, due: Due, aim: &Aim) -> Result<bool, DeskError> {
        let Some(ready) = held.ready.take() else {
            return Ok(false);
        };
        let before = scaled(aim, view_tokens(held)?);
        let hooks = Hooks::of(&self.config);
        let mut asked = json!({
            "task": held.id.to_string(),
            "trigger": aim.trigger.name(),
            "due": due.name(),
            "tokens": before,
            "window": aim.budget.window(),
        });
        // Whoever says no is heard again, and recorded, by the pass that would fold instead.
        if hooks.before(&asked).is_err() {
            return Ok(false);
        }
        self.tell_folding(held.id, due, aim);
        if ready.apply(&mut held.writer, aim)?.is_none() {
            return Ok(false);
        }
        self.wrote(held);
        let after = scaled(aim, view_tokens(held)?);
        self.metrics.folded(Did::Condensed.kind(), before, after);
        let told = json!({
            "outcome": Did::Condensed.name(),
            "ahead": true,
            "tokens_before": before,
            "tokens_after": after,
        });
        self.tell(held.id, "fold", told.to_string());
        asked["outcome"] = told;
        if let Err(error) = hooks.after(&asked) {
            self.failed(&DeskError::Own(error));
        }
        Ok(true)
    }

    /// Who is to write the summary of a fold that is due, if that takes long and nobody does.
    pub fn slow_pen(
        &self,
        call: &Call,
        held: &Held,
        profile: &Profile,
    ) -> Result<Option<Twice>, DeskError> {
        if held.preparing {
            return Ok(None);
        }
        let summarizer = self.pen(call, profile)?;
        Ok(is_slow(&*summarizer).then(|| Twice::new(summarizer)))
    }

    /// Who writes summaries.
    pub fn pen(
        &self,
        call: &Call,
        profile: &Profile,
    ) -> Result<Box<dyn Summarizer + Send>, DeskError> {
        let setup = infold::setup(
            &self.config,
            &self.contexts,
            Some(&self.switchboard),
            &call.provider,
            &profile.model,
            Some(profile.window),
        );
        let setup = setup.map_err(|error| DeskError::Own(error.to_string()))?;
        // Where nobody wants folds, those that must be are not paid for.
        Ok(match !profile.auto && setup.summarizer.is_paid() {
            true => Box::new(Extractive),
            false => setup.summarizer,
        })
    }
}

/// Says whether a summarizer takes long: only the built-in one does not.
pub(crate) fn is_slow(summarizer: &dyn Summarizer) -> bool {
    summarizer.name() != Extractive.name()
}

/// Says whether a fold can wait for a summary that is being written, so that the request need not.
fn can_wait(held: &Held, due: Due, aim: &Aim) -> Result<bool, LogError> {
    Ok(held.preparing && due != Due::Bytes && still_fits(held, aim)?)
}

/// Why something has to be folded, if it has to, and what to aim at.
///
/// Where what cannot be folded leaves no room for a reply as long as we expect, or hardly any for the conversation, the
/// reply gets less. Where that is not enough, only head and tail of the last tool results are shown; and where it does
/// not fit at all, everything else is folded: what we take the window to be may be wrong, and the provider decides.
pub(crate) fn due(log: &Log, rule: &Rule) -> Result<Option<(Due, Aim)>, DeskError> {
    /// The least that is kept free for a reply, as a share of the window.
    const LEAST_REPLY: u64 = 16;
    /// Less room than this share of the window is not worth folding for, as long as the reply can do with less.
    const LEAST_ROOM: u64 = 8;
    /// What says that the rest is hidden takes some room, as counted.
    const MARKER_TOKENS: f64 = 52.0;
    let Rule { profile, aim, .. } = rule;
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
            clips: false,
            ..other
        })
    };
    let window = profile.window;
    let reply = (window / LEAST_REPLY).min(aim.budget.reserve());
    let short = narrower(window, reply, aim.budget.bytes()).unwrap_or_else(|| expected.clone());
    match will_manage(log, &expected) {
        Ok(None) => return Ok(None),
        Ok(Some(due)) if infold::manage::room(log, &expected)? >= window / LEAST_ROOM => {
            return Ok(Some((due, expected)));
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
            Ok(due) => return Ok(due.map(|due| (due, aim))),
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
    Ok(will_manage(log, &aim).ok().flatten().map(|due| (due, aim)))
}

/// Says whether all that a view shows can be sent on the wire of a call as it is.
fn is_native(log: &Log, view: &View, call: &Call) -> Result<bool, DeskError> {
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

/// What we counted, in the model's tokens and with what is sent beside it.
fn scaled(aim: &Aim, tokens: u64) -> u64 {
    (tokens as f64 * aim.factor).ceil() as u64 + aim.frame.tokens
}

/// Says whether what is shown fits if only half as much as usual is held back for what we
/// count wrongly.
fn still_fits(held: &Held, aim: &Aim) -> Result<bool, LogError> {
    let window = aim.budget.window();
    let tokens = scaled(aim, view_tokens(held)?) + aim.budget.reserve();
    Ok(tokens <= window - window / 20)
}

/// What is shown comes to this.
fn view_tokens(held: &Held) -> Result<u64, LogError> {
    let log = held.log();
    Ok(View::of(log.state().shown(), log)?.tokens())
}

fn last(held: &Held) -> Seq {
    held.log().state().shown().last().unwrap_or(Seq::FIRST)
}

/// What the messages of the path come to, up to one.
pub(crate) fn tokens_up_to(held: &Held, seq: Seq) -> Result<u64, LogError> {
    let log = held.writer.log();
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
