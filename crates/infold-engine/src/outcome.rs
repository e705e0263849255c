//! The outcome of a pass: its steps and its cost.

use infold_log::{Due, EventId, Size};
use serde_json::{Value, json};

/// The outcome of a pass.
#[derive(Clone, Debug, PartialEq)]
pub struct ManageOutcome {
    /// The strongest action it took.
    pub action: PassAction,
    /// The reason that the pass was due; `None` if it was not.
    pub due: Option<Due>,
    /// The reason that a due pass did nothing.
    pub skipped: Option<SkipReason>,
    /// The size of the view before.
    pub before: Size,
    /// The size of the view after it.
    pub after: Size,
    /// The size it was to have.
    pub target: Size,
    /// Whether the view fits and may be sent.
    pub fits: bool,
    /// The steps of the pass.
    pub steps: Vec<PassStep>,
    /// The cost of its summaries, in dollars.
    pub cost: f64,
    /// The number of summarizer calls.
    pub calls: u32,
    /// A summary was refused because it would not have made the view smaller.
    pub inflated: bool,
    /// Errors on the way.
    pub errors: Vec<String>,
    /// The lines of a summary that were dropped because no message supports their claims.
    pub dropped: Vec<String>,
}

/// The action of a pass, or of a step of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PassAction {
    /// No change.
    Untouched,
    /// Old tool output is shown as stubs.
    Masked,
    /// Old turns are shown as a summary.
    Condensed,
    /// The oldest messages are hidden.
    Truncated,
}

/// The reason that a due pass did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// The last one did not help enough, failed, or was undone: this one waits for the view to grow.
    Waiting,
    /// The floor fills the threshold almost alone.
    Floor,
    /// A hook refused.
    Vetoed,
    /// There was nothing to fold.
    Nothing,
}

/// One step of a pass.
#[derive(Clone, Debug, PartialEq)]
pub struct PassStep {
    /// The kind of the step.
    pub action: PassAction,
    /// The folds it made; none in a rehearsal.
    pub folds: Vec<EventId>,
    /// The number of messages, or parts of messages, that it hid.
    pub hidden: u64,
    /// From the first to the last of them.
    pub span: infold_log::Span,
    /// The view's tokens before it.
    pub before: u64,
    /// The view's tokens after it.
    pub after: u64,
    /// The summarizer that wrote the summary.
    pub summarizer: Option<String>,
}

impl PassAction {
    /// Returns the kind that its folds are counted as.
    pub fn kind(self) -> &'static str {
        match self {
            PassAction::Untouched => "none",
            PassAction::Masked => "mask",
            PassAction::Condensed => "summary",
            PassAction::Truncated => "window",
        }
    }

    /// Returns its name in events and for scripts.
    pub fn name(self) -> &'static str {
        match self {
            PassAction::Untouched => "untouched",
            PassAction::Masked => "masked",
            PassAction::Condensed => "condensed",
            PassAction::Truncated => "truncated",
        }
    }
}

impl SkipReason {
    /// Returns its name in events and for scripts.
    pub fn name(self) -> &'static str {
        match self {
            SkipReason::Waiting => "waiting",
            SkipReason::Floor => "floor",
            SkipReason::Vetoed => "vetoed",
            SkipReason::Nothing => "nothing",
        }
    }
}

/// An outcome in the terms of Gemini's tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeminiStatus {
    /// The view became smaller.
    Compressed,
    /// A summary would have made it larger.
    Inflated,
    /// The conversation could not be measured or summarised.
    CountError,
    /// No change.
    Noop,
}

impl ManageOutcome {
    /// Returns the outcome in Gemini's terms.
    pub fn gemini(&self) -> GeminiStatus {
        match self.action {
            PassAction::Untouched if self.inflated => GeminiStatus::Inflated,
            PassAction::Untouched if !self.errors.is_empty() => GeminiStatus::CountError,
            PassAction::Untouched => GeminiStatus::Noop,
            PassAction::Masked | PassAction::Condensed | PassAction::Truncated => {
                GeminiStatus::Compressed
            }
        }
    }

    /// Returns all folds it made.
    pub fn folds(&self) -> impl Iterator<Item = EventId> {
        self.steps
            .iter()
            .flat_map(|step| step.folds.iter().copied())
    }

    /// Returns the outcome for scripts, hooks and the log.
    pub fn json(&self) -> Value {
        let steps: Vec<Value> = self.steps.iter().map(PassStep::json).collect();
        let mut object = json!({
            "outcome": self.action.name(),
            "due": self.due.map(Due::name),
            "tokens_before": self.before.tokens,
            "tokens_after": self.after.tokens,
            "target": self.target.tokens,
            "fits": self.fits,
            "steps": steps,
        });
        if self.before.bytes > 0 {
            object["bytes_before"] = self.before.bytes.into();
            object["bytes_after"] = self.after.bytes.into();
        }
        if let Some(reason) = self.skipped {
            object["left"] = reason.name().into();
        }
        if self.calls > 0 {
            object["calls"] = self.calls.into();
            object["cost"] = self.cost.into();
        }
        for (key, list) in [("errors", &self.errors), ("dropped", &self.dropped)] {
            if !list.is_empty() {
                object[key] = list.clone().into();
            }
        }
        object
    }
}

impl PassStep {
    fn json(&self) -> Value {
        let folds: Vec<String> = self.folds.iter().map(EventId::to_string).collect();
        let mut object = json!({
            "did": self.action.name(),
            "folds": folds,
            "hidden": self.hidden,
            "span": self.span.to_string(),
            "tokens_before": self.before,
            "tokens_after": self.after,
        });
        if let Some(name) = &self.summarizer {
            object["summarizer"] = name.clone().into();
        }
        object
    }
}
