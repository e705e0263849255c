use infold_log::{Due, EventId, Size};
use serde_json::{Value, json};

/// What a pass came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The strongest thing it did.
    pub did: Did,
    /// Why it was due; none if it was not.
    pub due: Option<Due>,
    /// Why it did nothing although it was due.
    pub left: Option<Left>,
    /// The size of the view before.
    pub before: Size,
    /// And after.
    pub after: Size,
    /// How small it was to become.
    pub target: Size,
    /// The view may be sent.
    pub fits: bool,
    /// What it did, step by step.
    pub steps: Vec<Step>,
    /// What its summaries cost, in dollars.
    pub cost: f64,
    /// How often a summarizer was asked.
    pub calls: u32,
    /// A summary was refused because it would not have made the view smaller.
    pub inflated: bool,
    /// What went wrong on the way.
    pub errors: Vec<String>,
    /// Lines that a summary claimed and nobody said.
    pub dropped: Vec<String>,
}

/// The strongest thing a pass did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Did {
    /// Nothing.
    Untouched,
    /// Old tool output is shown as stubs.
    Masked,
    /// Old turns are shown as a summary.
    Condensed,
    /// The oldest messages are hidden.
    Truncated,
}

/// Why a pass that was due did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// The last one did not help enough, failed, or was undone: it waits for the view to grow.
    Waiting,
    /// What cannot be folded fills the threshold almost alone.
    Floor,
    /// A hook said no.
    Vetoed,
    /// There was nothing to fold.
    Nothing,
}

/// One step of a pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What kind it is.
    pub did: Did,
    /// The folds it made; none in a rehearsal.
    pub folds: Vec<EventId>,
    /// How many messages, or parts of messages, it hid.
    pub hidden: u64,
    /// From the first to the last of them.
    pub span: infold_log::Span,
    /// The view's tokens before.
    pub before: u64,
    /// And after.
    pub after: u64,
    /// Who wrote the summary.
    pub summarizer: Option<String>,
}

impl Did {
    /// What its folds are counted as.
    pub fn kind(self) -> &'static str {
        match self {
            Did::Untouched => "none",
            Did::Masked => "mask",
            Did::Condensed => "summary",
            Did::Truncated => "window",
        }
    }

    /// Its name in events and for scripts.
    pub fn name(self) -> &'static str {
        match self {
            Did::Untouched => "untouched",
            Did::Masked => "masked",
            Did::Condensed => "condensed",
            Did::Truncated => "truncated",
        }
    }
}

impl Left {
    /// Its name in events and for scripts.
    pub fn name(self) -> &'static str {
        match self {
            Left::Waiting => "waiting",
            Left::Floor => "floor",
            Left::Vetoed => "vetoed",
            Left::Nothing => "nothing",
        }
    }
}

/// How Gemini's tools would put an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeminiStatus {
    /// The view became smaller.
    Compressed,
    /// A summary would have made it larger.
    Inflated,
    /// It could not be measured or summarised.
    CountError,
    /// Nothing was done.
    Noop,
}

impl Outcome {
    /// The outcome in Gemini's terms.
    pub fn gemini(&self) -> GeminiStatus {
        match self.did {
            Did::Untouched if self.inflated => GeminiStatus::Inflated,
            Did::Untouched if !self.errors.is_empty() => GeminiStatus::CountError,
            Did::Untouched => GeminiStatus::Noop,
            Did::Masked | Did::Condensed | Did::Truncated => GeminiStatus::Compressed,
        }
    }

    /// All folds it made.
    pub fn folds(&self) -> impl Iterator<Item = EventId> {
        self.steps
            .iter()
            .flat_map(|step| step.folds.iter().copied())
    }

    /// The outcome for scripts, hooks and the log.
    pub fn json(&self) -> Value {
        let steps: Vec<Value> = self.steps.iter().map(Step::json).collect();
        let mut object = json!({
            "outcome": self.did.name(),
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
        if let Some(left) = self.left {
            object["left"] = left.name().into();
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

impl Step {
    fn json(&self) -> Value {
        let folds: Vec<String> = self.folds.iter().map(EventId::to_string).collect();
        let mut object = json!({
            "did": self.did.name(),
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
