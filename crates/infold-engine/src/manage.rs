//! The step before each request: fold as much as needed, and no more.
//!
//! # Why a pass ends
//!
//! A pass is a fixed sequence: mask, make room, condense, mask what is left, clip, truncate, clip
//! again. Each happens at most once. Masking goes once over the visible parts. Condensing calls the
//! summarizer at most [`MAX_CHUNKS`] times, and the built-in one, which calls nothing, at most once
//! more. Truncating simulates hiding half of what is visible, then half of the rest; every turn of that loop
//! hides a round or a stand-in that was visible, of which there are finitely many, and it asks
//! no summarizer. A step that would not make the view smaller is not taken.
//!
//! # Why it does not thrash
//!
//! A pass that ends above its target, whose summarizer failed, or that was undone, is recorded
//! with `wait`: the next automatic pass waits until the view grew by a tenth of the window, or
//! no longer fits. A floor that fills the threshold almost alone is reported once.

mod aim;
mod executor;
mod measure;
mod backoff;
mod mask;
mod fold_source;
mod condense;
mod truncate;
mod clip;
mod prepared;

use infold_log::plan::FloorSize;
use infold_log::{Budget, Due, EventId, Size, Span};
use infold_store::{Log, LogError, StepError, Usage, Writer};
use serde_json::json;

pub use aim::Aim;
pub use condense::{Draft, draft};
use executor::Executor;
pub use fold_source::MAX_CHUNKS;
use measure::Scale;
pub use prepared::{PreparedFold, prepare};

use crate::summarizer::Extractive;
use crate::{Hooks, ManageOutcome, PassAction, PassStep, SkipReason, Summarizer};

/// The reason that a conversation could not be made to fit.
#[derive(Debug, thiserror::Error)]
pub enum ManageError {
    /// The floor does not fit. Nothing was folded.
    #[error("{floor}")]
    Floor {
        /// Its size, and its parts.
        floor: Box<FloorTooLarge>,
    },
    /// The pass was cancelled while a summary was written. Nothing was folded.
    #[error("cancelled; nothing was folded")]
    Cancelled,
    /// A step was refused.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The log could not be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// A floor that is too large for the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloorTooLarge {
    /// The window.
    pub window: u64,
    /// The part of it that is reserved for the reply.
    pub reserve: u64,
    /// The part of it that a view may have.
    pub allow: u64,
    /// The parts of the floor, by name.
    pub parts: Vec<(&'static str, u64)>,
    /// The size of the floor in tokens.
    pub tokens: u64,
    /// The size of the floor in bytes and the limit, if the floor exceeds the limit of bytes.
    pub bytes: Option<(u64, u64)>,
}

impl std::fmt::Display for FloorTooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = self.parts.iter();
        let parts: Vec<String> = parts.map(|(name, size)| format!("{name} {size}")).collect();
        let parts = parts.join(", ");
        let (tokens, allow, window, reserve) = (self.tokens, self.allow, self.window, self.reserve);
        match self.bytes {
            Some((bytes, most)) => write!(
                f,
                "what cannot be folded has {bytes} bytes, and a request may have {most} ({parts})"
            ),
            None => write!(
                f,
                "what cannot be folded has {tokens} tokens, and a window of {window} leaves {allow} \
                 for it ({parts}; {reserve} reserved for the reply)"
            ),
        }
    }
}

/// The size to which a pass folds if two thirds of the window are floor, as a share of the size at which it is due.
const TIGHT_TARGET_SHARE: f64 = 0.55;

/// About the size of a marker or a stub, as counted.
const MARKER_TOKENS: u64 = 48;

/// Folds as much of a task as it takes to fit, and no more. One pass is one step for `undo`.
pub fn manage(
    writer: &mut Writer,
    aim: &Aim,
    summarizer: &mut dyn Summarizer,
    hooks: &Hooks,
) -> Result<ManageOutcome, ManageError> {
    writer.set_recall_tool(aim.recall_tool.clone());
    let mut pass = match Pass::begin(writer.log(), aim, aim.forced)? {
        PassStart::Due(pass) => pass,
        PassStart::Skipped(outcome) => {
            backoff::record_once(writer, aim, &outcome)?;
            return Ok(outcome);
        }
    };
    let mut details = json!({
        "task": writer.log().dir().file_name().map(|name| name.to_string_lossy()),
        "trigger": aim.trigger.name(),
        "due": pass.outcome.due.map(Due::name),
        "tokens": pass.outcome.before.tokens,
        "target": pass.outcome.target.tokens,
        "window": aim.budget.window(),
    });
    if let Err(veto) = hooks.before(&details) {
        pass.outcome.skipped = Some(SkipReason::Vetoed);
        pass.outcome.errors.push(veto);
        backoff::record_once(writer, aim, &pass.outcome)?;
        return Ok(pass.outcome);
    }
    writer.begin_pass();
    let folded = pass.fold(&mut Executor::Writes(writer), summarizer);
    let mut outcome = pass.outcome;
    let wait = backoff::did_not_help(&outcome);
    if folded.is_ok() && outcome.action > PassAction::Untouched {
        details["outcome"] = outcome.json();
        if let Err(error) = hooks.after(&details) {
            outcome.errors.push(error);
        }
    }
    // A cancelled pass says nothing about the next one.
    let record = match folded {
        Err(ManageError::Cancelled) => None,
        _ => backoff::record(aim, &outcome, wait),
    };
    writer.end_pass(record.map(|record| record.to_string()))?;
    let is_useless = matches!(
        folded,
        Err(ManageError::Floor { .. } | ManageError::Cancelled)
    );
    if is_useless && outcome.action > PassAction::Untouched {
        writer.undo()?;
    }
    folded.map(|()| outcome)
}

/// Returns what `manage` would do, without writing. The summarizer is called.
pub fn rehearse(
    log: &Log,
    aim: &Aim,
    summarizer: &mut dyn Summarizer,
) -> Result<ManageOutcome, ManageError> {
    let mut pass = match Pass::begin(log, aim, aim.forced)? {
        PassStart::Due(pass) => pass,
        PassStart::Skipped(outcome) => return Ok(outcome),
    };
    let mut executor = Executor::Simulates {
        log,
        state: Box::new(log.state().clone()),
    };
    pass.fold(&mut executor, summarizer)?;
    Ok(pass.outcome)
}

/// Returns why `manage` would fold, if it would, without folding or calling anything.
pub fn will_manage(log: &Log, aim: &Aim) -> Result<Option<Due>, ManageError> {
    Ok(match Pass::begin(log, aim, aim.forced)? {
        PassStart::Due(pass) => pass.outcome.due,
        PassStart::Skipped(_) => None,
    })
}

/// Returns the size of the view as `manage` measures it: usage reported by a provider counts, if there is any.
pub fn measured(log: &Log, aim: &Aim) -> Result<Size, LogError> {
    Ok(Scale::now(log, aim)?.1)
}

/// Returns the tokens that a view may have beside the floor.
pub fn room(log: &Log, aim: &Aim) -> Result<u64, LogError> {
    let (scale, _) = Scale::now(log, aim)?;
    let fixed = FloorSize::of(log.state(), log)?.fixed();
    let fixed = scale.size(fixed).tokens;
    Ok(aim.budget.allow().saturating_sub(fixed))
}

/// A pass under way.
struct Pass<'a> {
    aim: &'a Aim,
    /// The aim's budget, above the floor if the strategy wants that.
    budget: Budget,
    /// Whether a person asked for the pass.
    forced: bool,
    scale: Scale,
    outcome: ManageOutcome,
    /// The usage of summarizer calls that is not recorded yet.
    spent: Vec<Usage>,
}

/// The decision whether a pass begins.
enum PassStart<'a> {
    /// The pass is due.
    Due(Pass<'a>),
    /// There is nothing to do.
    Skipped(ManageOutcome),
}

impl<'a> Pass<'a> {
    /// Measures the view, and decides whether a pass is due.
    fn begin(log: &Log, aim: &'a Aim, forced: bool) -> Result<PassStart<'a>, ManageError> {
        let (scale, before) = Scale::now(log, aim)?;
        let mut budget = aim.budget.folding_to(aim.strategy.target_share);
        // Above the floor a pass is due no sooner, so most of the time the floor is not measured.
        let floor = if forced || budget.due(before).is_some() {
            let floor = FloorSize::of(log.state(), log)?;
            if aim.strategy.is_relative() {
                budget = budget.above(scale.size(floor.fixed()).tokens);
                // In little room a pass frees more of it, or every other turn would need one.
                if is_tight(&budget) {
                    budget = budget.folding_to(TIGHT_TARGET_SHARE);
                }
            }
            Some(floor)
        } else {
            None
        };
        let due = match budget.due(before) {
            None if forced => Some(Due::Forced),
            due => due,
        };
        let outcome = ManageOutcome {
            action: PassAction::Untouched,
            due,
            skipped: None,
            before,
            after: before,
            target: due.map_or(before, |due| budget.target(due, before)),
            fits: aim.budget.fits(before),
            steps: Vec::new(),
            cost: 0.0,
            calls: 0,
            inflated: false,
            errors: Vec::new(),
            dropped: Vec::new(),
        };
        let Some((due, floor)) = due.zip(floor) else {
            return Ok(PassStart::Skipped(outcome));
        };
        check_floor(log, &floor, aim, scale, before)?;
        let skipped = if forced || due != Due::Threshold {
            None
        } else if is_near(scale.size(floor.total()).tokens, budget.trigger()) {
            Some(SkipReason::Floor)
        } else if backoff::must_wait(log, aim, before)? {
            Some(SkipReason::Waiting)
        } else {
            None
        };
        if skipped.is_some() {
            return Ok(PassStart::Skipped(ManageOutcome { skipped, ..outcome }));
        }
        Ok(PassStart::Due(Pass {
            aim,
            budget,
            forced,
            scale,
            outcome,
            spent: Vec::new(),
        }))
    }

    /// Runs the pass: each line is a step that is taken at most once.
    fn fold(
        &mut self,
        executor: &mut Executor<'_>,
        summarizer: &mut dyn Summarizer,
    ) -> Result<(), ManageError> {
        let mut built_in = Extractive;
        let needs_free = self.aim.free_only && !self.forced && summarizer.is_paid();
        let summarizer = if needs_free {
            &mut built_in
        } else {
            summarizer
        };
        // A stub changes the prefix as a summary does, and says less: it comes first only if there are too many bytes.
        // A view many times too large is not saved by stubs, and reading all of it takes long.
        let window = self.aim.budget.window();
        let is_heavy = self.outcome.before.bytes > self.outcome.target.bytes;
        if is_heavy && self.outcome.before.tokens <= 4 * window {
            self.mask(executor, mask::MaskGain::Enough)?;
        }
        if !self.is_done() && self.aim.clips {
            self.make_room(executor)?;
        }
        if !self.is_done() {
            self.condense(executor, summarizer)?;
        }
        if !self.outcome.fits || self.outcome.after.bytes > self.outcome.target.bytes {
            self.mask(executor, mask::MaskGain::Some)?;
        }
        // A summary says more than the middle of one tool result: if clipping is enough, nothing else is hidden.
        if !self.outcome.fits && self.aim.clips && self.aim.strategy.condenses {
            self.clip(executor)?;
        }
        // Without a summary a pass hides rounds.
        let hides = !self.aim.strategy.condenses && !self.is_done();
        if hides || !self.outcome.fits {
            self.truncate(executor)?;
        }
        if !self.outcome.fits && self.aim.clips {
            self.clip(executor)?;
        }
        if self.outcome.action == PassAction::Untouched {
            self.outcome.skipped = Some(SkipReason::Nothing);
        }
        if !self.outcome.fits {
            let floor = FloorSize::of(executor.state(), executor.log())?;
            return Err(too_small(&floor, self.aim, self.scale, self.outcome.after));
        }
        Ok(())
    }

    /// Returns how many of some tokens the view may have to come to its target in bytes.
    fn limit_by_bytes(&self, tokens: u64) -> u64 {
        let (now, most) = (self.outcome.after, self.outcome.target.bytes);
        if now.bytes <= most {
            return tokens;
        }
        let share = most as f64 / now.bytes as f64;
        tokens.min((now.tokens as f64 * share) as u64)
    }

    fn is_done(&self) -> bool {
        self.outcome.after.within(self.outcome.target)
    }

    /// Measures again after a step, and returns the tokens before and after it.
    fn measured(
        &mut self,
        executor: &Executor<'_>,
        action: PassAction,
    ) -> Result<(u64, u64), LogError> {
        let before = self.outcome.after;
        self.outcome.after = self.scale.measure(executor, self.aim)?;
        self.outcome.fits = self.aim.budget.fits(self.outcome.after);
        self.outcome.action = self.outcome.action.max(action);
        Ok((before.tokens, self.outcome.after.tokens))
    }

    /// Measures again after a step without a summary, and adds the step to the outcome.
    fn add_step(
        &mut self,
        executor: &Executor<'_>,
        action: PassAction,
        folds: Vec<EventId>,
        hidden: u64,
        span: Span,
    ) -> Result<(), ManageError> {
        let (before, after) = self.measured(executor, action)?;
        self.outcome.steps.push(PassStep {
            action,
            folds,
            hidden,
            span,
            before,
            after,
            summarizer: None,
        });
        Ok(())
    }
}

/// Says whether most of the window is floor.
fn is_tight(budget: &Budget) -> bool {
    budget.room() < budget.window() / 3
}

/// Says whether the floor is so close to the threshold that it is reported instead of folding.
fn is_near(floor: u64, trigger: Option<u64>) -> bool {
    trigger.is_some_and(|trigger| floor as f64 >= trigger as f64 * 0.9)
}

fn check_floor(
    log: &Log,
    floor: &FloorSize,
    aim: &Aim,
    scale: Scale,
    before: Size,
) -> Result<(), ManageError> {
    if aim.budget.fits(before) {
        return Ok(());
    }
    // A marker has to say that the rest is hidden.
    let mut total = floor.total();
    total.tokens += MARKER_TOKENS;
    if aim.clips {
        let gain = clip::gain(log, log.state())?;
        total.tokens -= gain.tokens.min(floor.last.tokens);
        total.bytes -= gain.bytes.min(floor.last.bytes);
    }
    let least = scale.size(total);
    let least = Size {
        tokens: least.tokens.min(before.tokens),
        bytes: least.bytes.min(before.bytes),
    };
    if aim.budget.fits(least) {
        return Ok(());
    }
    Err(too_small(floor, aim, scale, least))
}

fn too_small(floor: &FloorSize, aim: &Aim, scale: Scale, found: Size) -> ManageError {
    let budget = aim.budget;
    let mut parts: Vec<(&'static str, u64)> = Vec::new();
    let bytes = budget
        .bytes()
        .filter(|most| found.bytes > *most && found.tokens <= budget.allow())
        .map(|most| (found.bytes, most));
    let size = |size: Size| match bytes {
        Some(_) => size.bytes,
        None => size.tokens,
    };
    for (name, part) in floor.parts() {
        let tokens = scale.part(part.tokens);
        parts.push((name, size(Size { tokens, ..part })));
    }
    parts.push(("tools and instructions", size(aim.frame)));
    parts.retain(|(_, size)| *size > 0);
    ManageError::Floor {
        floor: Box::new(FloorTooLarge {
            window: budget.window(),
            reserve: budget.reserve(),
            allow: budget.allow(),
            parts,
            tokens: scale.size(floor.total()).tokens,
            bytes,
        }),
    }
}
