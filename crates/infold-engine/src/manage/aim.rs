use infold_log::{Budget, Size};
use infold_store::Trigger;

use crate::Strategy;

/// What a pass folds for: how much room there is, and how to make it.
#[derive(Clone, Debug, PartialEq)]
pub struct Aim {
    /// How much of the window a view may fill.
    pub budget: Budget,
    /// What to keep and how the stand-in looks.
    pub strategy: Strategy,
    /// At least so many of the newest messages stay, as long as they fit.
    pub keep: u64,
    /// How large a summary may be against what it replaces.
    pub ratio: f64,
    /// Tokens of the model for each that we count.
    pub factor: f64,
    /// What is sent beside the view: tools, instructions.
    pub frame: Size,
    /// The model, so that what was reported for another one is not taken for its own.
    pub model: Option<String>,
    /// What to ask a summarizer for.
    pub prompt: Option<String>,
    /// Who asked.
    pub trigger: Trigger,
    /// Fold even if it is not due.
    pub forced: bool,
}

impl Aim {
    /// Aims at a budget, with a strategy's own settings.
    pub fn new(budget: Budget, strategy: Strategy) -> Aim {
        Aim {
            budget,
            strategy,
            keep: 3,
            ratio: 0.25,
            factor: 1.0,
            frame: Size::default(),
            model: None,
            prompt: None,
            trigger: Trigger::Auto,
            forced: false,
        }
    }
}
