//! The step before each request: fold as much as needed, and no more.
//!
//! # Why a pass ends
//!
//! A pass is a fixed sequence: mask, make room, condense, mask what is left, clip, truncate, clip
//! again. Each happens at most once. Masking goes once over the visible parts. Condensing asks the summarizer at most
//! [`CHUNKS`] times, and the built-in one, which calls nobody, at most once more. Truncating
//! imagines hiding half of what is visible, then half of the rest; every turn of that loop
//! hides a round or a stand-in that was visible, of which there are finitely many, and it asks
//! no summarizer. A step that would not make the view smaller is not taken.
//!
//! # Why it does not thrash
//!
//! A pass that ends above its target, whose summarizer failed, or that was undone, is recorded
//! with `wait`: the next automatic pass waits until the view grew by a tenth of the window, or
//! no longer fits. A floor that fills the threshold almost alone is reported once.

mod aim;
mod hand;
mod measure;
mod waits;
mod mask;
mod folded;
mod condense;
mod truncate;
mod clip;
mod ahead;

use infold_log::plan::FloorSize;
use infold_log::{Budget, Due, Size};
use infold_store::{Log, LogError, StepError, Usage, Writer};
use serde_json::json;

pub use ahead::{Prepared, prepare};
pub use aim::Aim;
pub use condense::{Draft, draft};
pub use folded::CHUNKS;
use hand::Hand;
use measure::Scale;

use crate::summarizer::Extractive;
use crate::{Did, Hooks, Left, Outcome, Summarizer};

/// Why a conversation could not be made to fit.
#[derive(Debug, thiserror::Error)]
pub enum ManageError {
    /// What cannot be folded does not fit. Nothing was folded.
    #[error("{floor}")]
    Floor {
        /// How large it is, and its parts.
        floor: Box<TooSmall>,
    },
    /// Whoever asked changed their mind while a summary was written. Nothing was folded.
    #[error("cancelled; nothing was folded")]
    Cancelled,
    /// A step was refused.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The log could not be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// A window that is too small for what cannot be folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooSmall {
    /// The window.
    pub window: u64,
    /// What of it the reply takes.
    pub reserve: u64,
    /// What of it a view may have.
    pub allow: u64,
    /// The parts that cannot be folded, by name.
    pub parts: Vec<(&'static str, u64)>,
    /// All of them, in tokens.
    pub tokens: u64,
    /// All of them, in bytes, if that is the trouble, and how many are allowed.
    pub bytes: Option<(u64, u64)>,
}

impl std::fmt::Display for TooSmall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (tokens, allow, window) = (self.tokens, self.allow, self.window);
        match self.bytes {
            Some((bytes, most)) => write!(
                f,
                "what cannot be folded has {bytes} bytes, and a request may have {most}"
            )?,
            None => write!(
                f,
                "what cannot be folded has {tokens} tokens, and a window of {window} leaves {allow} for it"
            )?,
        }
        let parts: Vec<String> = self
            .parts
            .iter()
            .map(|(name, size)| format!("{name} {size}"))
            .collect();
        let parts = parts.join(", ");
        match self.bytes {
            Some(_) => write!(f, " ({parts})"),
            None => write!(f, " ({parts}; {} reserved for the reply)", self.reserve),
        }
    }
}

/// To what share of what made it due a pass folds where two thirds of the window cannot be folded.
const TIGHT_TARGET_SHARE: f64 = 0.55;

/// About what a marker or a stub weighs, as counted.
const MARKER: u64 = 48;

/// Folds as much of a task as it takes to fit, and no more. One pass is one step for `undo`.
pub fn manage(
    writer: &mut Writer,
    aim: &Aim,
    summarizer: &mut dyn Summarizer,
    hooks: &Hooks,
) -> Result<Outcome, ManageError> {
    let mut pass = match Pass::begin(writer.log(), aim, aim.forced)? {
        Begun::Go(pass) => pass,
        Begun::Stop(outcome) => {
            waits::record_once(writer, aim, &outcome)?;
            return Ok(outcome);
        }
    };
    let told = json!({
        "task": writer.log().dir().file_name().map(|name| name.to_string_lossy()),
        "trigger": aim.trigger.name(),
        "due": pass.outcome.due.map(Due::name),
        "tokens": pass.outcome.before.tokens,
        "target": pass.outcome.target.tokens,
        "window": aim.budget.window(),
    });
    if let Err(veto) = hooks.before(&told) {
        pass.outcome.left = Some(Left::Vetoed);
        pass.outcome.errors.push(veto);
        waits::record_once(writer, aim, &pass.outcome)?;
        return Ok(pass.outcome);
    }
    writer.begin_pass();
    let folded = pass.fold(&mut Hand::Writes(writer), summarizer);
    let mut outcome = pass.outcome;
    let wait = waits::did_not_help(&outcome);
    if folded.is_ok() && outcome.did > Did::Untouched {
        let mut told = told;
        told["outcome"] = outcome.json();
        if let Err(error) = hooks.after(&told) {
            outcome.errors.push(error);
        }
    }
    // One that was cancelled says nothing of the next.
    let record = match folded {
        Err(ManageError::Cancelled) => None,
        _ => waits::record(aim, &outcome, wait),
    };
    writer.end_pass(record.map(|record| record.to_string()))?;
    let in_vain = matches!(
        folded,
        Err(ManageError::Floor { .. } | ManageError::Cancelled)
    );
    if in_vain && outcome.did > Did::Untouched {
        // It was of no use: the view is as it was.
        writer.undo()?;
    }
    folded.map(|()| outcome)
}

/// Says what `manage` would do, and does nothing. `summarizer` is really asked.
pub fn rehearse(
    log: &Log,
    aim: &Aim,
    summarizer: &mut dyn Summarizer,
) -> Result<Outcome, ManageError> {
    let mut pass = match Pass::begin(log, aim, aim.forced)? {
        Begun::Go(pass) => pass,
        Begun::Stop(outcome) => return Ok(outcome),
    };
    let mut hand = Hand::Imagines {
        log,
        state: log.state().clone(),
    };
    pass.fold(&mut hand, summarizer)?;
    Ok(pass.outcome)
}

/// Says whether `manage` would fold, and why, without doing anything or asking anybody.
pub fn will_manage(log: &Log, aim: &Aim) -> Result<Option<Due>, ManageError> {
    Ok(match Pass::begin(log, aim, aim.forced)? {
        Begun::Go(pass) => pass.outcome.due,
        Begun::Stop(_) => None,
    })
}

/// How large what is shown is, as `manage` sees it: what a provider reported counts, where it did.
pub fn measured(log: &Log, aim: &Aim) -> Result<Size, LogError> {
    Ok(Scale::now(log, aim)?.1)
}

/// How many tokens of what a view may have are left for what can be folded.
pub fn room(log: &Log, aim: &Aim) -> Result<u64, LogError> {
    let (scale, _) = Scale::now(log, aim)?;
    let fixed = FloorSize::of(log.state(), log)?.fixed();
    let fixed = scale.size(fixed).tokens;
    Ok(aim.budget.allow().saturating_sub(fixed))
}

/// A pass under way.
struct Pass<'a> {
    aim: &'a Aim,
    /// The aim's, above what cannot be folded where the strategy wants that.
    budget: Budget,
    /// A person asked for it.
    forced: bool,
    scale: Scale,
    outcome: Outcome,
    /// What calls of a summarizer took, until it is recorded.
    spent: Vec<Usage>,
}

/// How a pass began.
enum Begun<'a> {
    /// It is due.
    Go(Pass<'a>),
    /// There is nothing to do.
    Stop(Outcome),
}

impl<'a> Pass<'a> {
    /// Measures, and decides whether it is time.
    fn begin(log: &Log, aim: &'a Aim, forced: bool) -> Result<Begun<'a>, ManageError> {
        let (scale, before) = Scale::now(log, aim)?;
        let mut budget = aim.budget.folding_to(aim.strategy.target_share);
        // Above what cannot be folded it is due no sooner, so most of the time nothing more is asked.
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
        let outcome = Outcome {
            did: Did::Untouched,
            due,
            left: None,
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
            return Ok(Begun::Stop(outcome));
        };
        check_floor(log, &floor, aim, scale, before)?;
        let left = if forced || due != Due::Threshold {
            None
        } else if near(scale.size(floor.total()).tokens, budget.trigger()) {
            Some(Left::Floor)
        } else if waits::waits(log, aim, before)? {
            Some(Left::Waiting)
        } else {
            None
        };
        Ok(match left {
            Some(_) => Begun::Stop(Outcome { left, ..outcome }),
            None => Begun::Go(Pass {
                aim,
                budget,
                forced,
                scale,
                outcome,
                spent: Vec::new(),
            }),
        })
    }

    /// The pass itself: each line a step that is taken at most once.
    fn fold(
        &mut self,
        hand: &mut Hand<'_>,
        summarizer: &mut dyn Summarizer,
    ) -> Result<(), ManageError> {
        let mut built_in = Extractive;
        let summarizer = match self.aim.free_only && !self.forced && summarizer.is_paid() {
            true => &mut built_in,
            false => summarizer,
        };
        // A stub changes the prefix as a summary does, and tells less: it comes first only where bytes are the trouble.
        // Many times too large a view is not saved by stubs, and looking at all of it takes long.
        let window = self.aim.budget.window();
        let is_heavy = self.outcome.before.bytes > self.outcome.target.bytes;
        if is_heavy && self.outcome.before.tokens <= 4 * window {
            self.mask(hand, mask::Gain::Enough)?;
        }
        if !self.is_done() && self.aim.clips {
            self.make_room(hand)?;
        }
        if !self.is_done() {
            self.condense(hand, summarizer)?;
        }
        if !self.outcome.fits || self.outcome.after.bytes > self.outcome.target.bytes {
            self.mask(hand, mask::Gain::Some)?;
        }
        // A summary says more than the middle of one result: where clipping is enough, nothing else is hidden.
        if !self.outcome.fits && self.aim.clips && self.aim.strategy.condenses {
            self.clip(hand)?;
        }
        // Without a summary, hiding rounds is what a pass does.
        let hides = !self.aim.strategy.condenses && !self.is_done();
        if hides || !self.outcome.fits {
            self.truncate(hand)?;
        }
        if !self.outcome.fits && self.aim.clips {
            self.clip(hand)?;
        }
        if self.outcome.did == Did::Untouched {
            self.outcome.left = Some(Left::Nothing);
        }
        if !self.outcome.fits {
            let floor = FloorSize::of(hand.state(), hand.log())?;
            return Err(too_small(&floor, self.aim, self.scale, self.outcome.after));
        }
        Ok(())
    }

    /// How much of so many tokens there may be for the view to come to the bytes it is to have.
    fn narrowed(&self, tokens: u64) -> u64 {
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
    fn measured(&mut self, hand: &Hand<'_>, did: Did) -> Result<(u64, u64), LogError> {
        let before = self.outcome.after;
        self.outcome.after = self.scale.measure(hand, self.aim)?;
        self.outcome.fits = self.aim.budget.fits(self.outcome.after);
        self.outcome.did = self.outcome.did.max(did);
        Ok((before.tokens, self.outcome.after.tokens))
    }
}

/// Says whether most of the window cannot be folded.
fn is_tight(budget: &Budget) -> bool {
    budget.room() < budget.window() / 3
}

/// The floor is reported instead of folded at when it comes this near the threshold.
fn near(floor: u64, trigger: Option<u64>) -> bool {
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
    // Something has to say that the rest is hidden.
    let mut total = floor.total();
    total.tokens += MARKER;
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
    match aim.budget.fits(least) {
        true => Ok(()),
        false => Err(too_small(floor, aim, scale, least)),
    }
}

fn too_small(floor: &FloorSize, aim: &Aim, scale: Scale, found: Size) -> ManageError {
    let budget = aim.budget;
    let mut parts: Vec<(&'static str, u64)> = Vec::new();
    let bytes = budget
        .bytes()
        .filter(|most| found.bytes > *most && found.tokens <= budget.allow())
        .map(|most| (found.bytes, most));
    for (name, part) in floor.parts() {
        let size = match bytes {
            Some(_) => part.bytes,
            None => scale.part(part.tokens),
        };
        if size > 0 {
            parts.push((name, size));
        }
    }
    let frame = match bytes {
        Some(_) => aim.frame.bytes,
        None => aim.frame.tokens,
    };
    if frame > 0 {
        parts.push(("tools and instructions", frame));
    }
    ManageError::Floor {
        floor: Box::new(TooSmall {
            window: budget.window(),
            reserve: budget.reserve(),
            allow: budget.allow(),
            parts,
            tokens: scale.size(floor.total()).tokens,
            bytes,
        }),
    }
}
