use infold_log::{Budget, Limits, NoRoom, Size};
use infold_store::Trigger;

use crate::strategy::Keeps;
use crate::{Profile, Strategy};

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
    /// How many tokens a summary has at most, as counted, instead of what the window has room for.
    pub summary: Option<u64>,
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
    /// Only who costs nothing writes summaries, unless a person asked for the pass.
    pub free_only: bool,
    /// If all else does not help, show only head and tail of what the last round's tools gave back.
    pub clips: bool,
}

/// The newest messages that stay, whatever share the strategy keeps, as long as they fit.
const NEWEST: u64 = 3;

impl Aim {
    /// Aims at a budget, with a strategy's own settings.
    pub fn new(budget: Budget, strategy: Strategy) -> Aim {
        Aim {
            budget,
            strategy,
            keep: match strategy.keeps {
                Keeps::Messages(count) => count,
                Keeps::Share(_) | Keeps::Window(_) => NEWEST,
            },
            ratio: strategy.ratio,
            summary: None,
            factor: 1.0,
            frame: Size::default(),
            model: None,
            prompt: None,
            trigger: Trigger::Auto,
            forced: false,
            free_only: false,
            clips: true,
        }
    }

    /// Aims at what a profile says, and at so many bytes if they are limited.
    pub fn of(profile: &Profile, bytes: Option<u64>) -> Result<Aim, NoRoom> {
        let budget = Budget::new(Limits {
            window: profile.window,
            max_tokens: profile.max_tokens,
            output: profile.max_output,
            threshold: profile.auto.then(|| profile.threshold.percent()),
            bytes,
        })?;
        let strategy: Strategy = profile.strategy.parse().unwrap_or_default();
        Ok(Aim {
            ratio: profile.ratio,
            factor: profile.factor,
            model: Some(profile.model.clone()).filter(|model| !model.is_empty()),
            prompt: profile.prompt.clone(),
            free_only: !profile.auto,
            ..Aim::new(budget, strategy.keeping(profile.keep))
        })
    }
}
