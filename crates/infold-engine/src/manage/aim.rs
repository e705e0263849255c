//! The aim of a pass: the budget, the strategy, and the model's counting.

use infold_log::{Budget, Limits, NoRoom, Size};
use infold_store::Trigger;

use crate::recall::RecallLimits;
use crate::strategy::KeepPolicy;
use crate::{Profile, Strategy};

/// The aim of a pass: how much room there is, and how to make it.
#[derive(Clone, Debug, PartialEq)]
pub struct Aim {
    /// The part of the window that a view may fill.
    pub budget: Budget,
    /// The strategy: the messages to keep and the form of the stand-in.
    pub strategy: Strategy,
    /// This many of the newest messages stay at least, as long as they fit.
    pub keep: u64,
    /// The largest size of a summary relative to the messages that it replaces.
    pub ratio: f64,
    /// The most tokens of a summary, as counted, instead of the room in the window.
    pub summary: Option<u64>,
    /// Tokens of the model for each counted one.
    pub factor: f64,
    /// The size of tools and instructions, which are sent beside the view.
    pub frame: Size,
    /// The model, so that usage reported for another one is ignored.
    pub model: Option<String>,
    /// The prompt for a summarizer.
    pub prompt: Option<String>,
    /// The trigger of the pass.
    pub trigger: Trigger,
    /// Fold even if it is not due.
    pub forced: bool,
    /// Only a free summarizer is used, unless a person requested the pass.
    pub free_only: bool,
    /// If all else does not help, show only head and tail of the last round's tool results.
    pub clips: bool,
    /// The limits of recall for a request (see [`crate::recall`]); `None` if it is off.
    pub recall: Option<RecallLimits>,
    /// The tool in the request for opening hidden messages, which stand-ins then name; `None` if there is none.
    pub recall_tool: Option<String>,
}

/// The number of the newest messages that stay as long as they fit, whatever share the strategy keeps.
const MIN_KEPT_MESSAGES: u64 = 3;

impl Aim {
    /// Returns an aim for a budget, with the strategy's own settings.
    pub fn new(budget: Budget, strategy: Strategy) -> Aim {
        Aim {
            budget,
            strategy,
            keep: match strategy.keeps {
                KeepPolicy::Messages(count) => count,
                KeepPolicy::Share(_) | KeepPolicy::Window(_) => MIN_KEPT_MESSAGES,
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
            recall: None,
            recall_tool: None,
        }
    }

    /// Returns the aim of a profile, with a limit on bytes if there is one.
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
