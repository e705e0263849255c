//! Sizes and budgets: how large a view is, and how large it may become.

use crate::Sums;

/// The size of a view, or its limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Tokens, as the model counts them.
    pub tokens: u64,
    /// Bytes of the request.
    pub bytes: u64,
}

/// How much of a model's window a view may fill, and when it is time to fold.
///
/// Invariant: `allow` is not zero, so there is always room for a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    window: u64,
    reserve: u64,
    allow: u64,
    threshold: Option<f64>,
    bytes: Option<u64>,
    /// Tokens of the window that no fold can free.
    fixed: u64,
    /// The share of the size that made a pass due to which the pass folds.
    target_share: f64,
}

/// The limits from which a budget is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// The size of the window in tokens, the reply included.
    pub window: u64,
    /// The most tokens of the reply to this call.
    pub max_tokens: Option<u64>,
    /// The most tokens of any reply of the model.
    pub output: Option<u64>,
    /// The percentage of the window at which folding starts; without one, folds are made only when the window is full.
    pub threshold: Option<f64>,
    /// The most bytes of a request.
    pub bytes: Option<u64>,
}

/// A window that is too small for any question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a window of {window} tokens leaves no room: a tenth of it is held back, and {reserve} are reserved for the reply"
)]
pub struct NoRoom {
    /// The window.
    pub window: u64,
    /// The tokens that are reserved for the reply.
    pub reserve: u64,
}

/// Why it is time to fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// The view reached the threshold.
    Threshold,
    /// The view leaves no room for the reply.
    Window,
    /// The request has too many bytes.
    Bytes,
    /// A fold was requested.
    Forced,
}

impl Due {
    /// Returns its name in events and for scripts.
    pub fn name(self) -> &'static str {
        match self {
            Due::Threshold => "threshold",
            Due::Window => "window",
            Due::Bytes => "bytes",
            Due::Forced => "forced",
        }
    }
}

/// The default share of the size that made a pass due to which the pass folds.
const TARGET_SHARE: f64 = 0.6;

/// The number of tokens expected of a reply when no limit is given.
const DEFAULT_REPLY_TOKENS: u64 = 8192;

impl Budget {
    /// Computes a budget.
    pub fn new(limits: Limits) -> Result<Budget, NoRoom> {
        let window = limits.window;
        let reserve = limits.max_tokens.filter(|asked| *asked > 0);
        let reserve = reserve.unwrap_or_else(|| {
            let output = limits.output.filter(|output| *output > 0);
            DEFAULT_REPLY_TOKENS
                .min(output.unwrap_or(DEFAULT_REPLY_TOKENS))
                .min(window / 4)
        });
        let allow = share(window, 0.9).saturating_sub(reserve);
        if allow == 0 {
            return Err(NoRoom { window, reserve });
        }
        Ok(Budget {
            window,
            reserve,
            allow,
            threshold: limits.threshold,
            bytes: limits.bytes,
            fixed: 0,
            target_share: TARGET_SHARE,
        })
    }

    /// Returns the same budget with `fixed` tokens that no fold can free. Threshold and target are then shares of the
    /// room above them, so that a pass always frees a useful share of it.
    pub fn above(self, fixed: u64) -> Budget {
        let fixed = fixed.min(self.allow);
        Budget { fixed, ..self }
    }

    /// Returns the same budget for passes that fold to another share of the size that made them due.
    pub fn folding_to(self, target_share: f64) -> Budget {
        Budget {
            target_share,
            ..self
        }
    }

    /// How many tokens of the window can be folded.
    pub fn room(&self) -> u64 {
        self.window - self.fixed
    }

    /// How many tokens the model takes.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Returns the tokens that are kept free for the reply.
    pub fn reserve(&self) -> u64 {
        self.reserve
    }

    /// The most tokens a view may have.
    pub fn allow(&self) -> u64 {
        self.allow
    }

    /// The most bytes a view may have.
    pub fn bytes(&self) -> Option<u64> {
        self.bytes
    }

    /// From how many tokens on the threshold makes it due.
    pub fn trigger(&self) -> Option<u64> {
        let percent = self.threshold?;
        Some(self.fixed + (percent * self.room() as f64 / 100.0).ceil() as u64)
    }

    /// Says whether a view may be sent.
    pub fn fits(&self, size: Size) -> bool {
        size.tokens <= self.allow && self.bytes.is_none_or(|most| size.bytes <= most)
    }

    /// Returns the reason for a fold, if one is due. Reasons that require a fold precede those that allow one.
    pub fn due(&self, size: Size) -> Option<Due> {
        if size.tokens > self.allow {
            Some(Due::Window)
        } else if self.bytes.is_some_and(|most| size.bytes > most) {
            Some(Due::Bytes)
        } else if self.trigger().is_some_and(|trigger| size.tokens >= trigger) {
            Some(Due::Threshold)
        } else {
            None
        }
    }

    /// How small the view should become once it is due.
    pub fn target(&self, due: Due, size: Size) -> Size {
        let above =
            |limit: u64| self.fixed + share(limit.saturating_sub(self.fixed), self.target_share);
        let tokens = match due {
            Due::Forced => above(size.tokens),
            Due::Threshold | Due::Window | Due::Bytes => u64::MAX,
        };
        let bytes = match due {
            Due::Bytes => self
                .bytes
                .map_or(u64::MAX, |limit| share(limit, self.target_share)),
            Due::Threshold | Due::Window | Due::Forced => self.bytes.unwrap_or(u64::MAX),
        };
        let limit = self.trigger().unwrap_or(self.allow).min(self.allow);
        Size {
            tokens: tokens.min(above(limit)),
            bytes,
        }
    }
}

impl Size {
    /// Says whether it is no more than another in either respect.
    pub fn within(self, other: Size) -> bool {
        self.tokens <= other.tokens && self.bytes <= other.bytes
    }
}

impl From<Sums> for Size {
    fn from(sums: Sums) -> Size {
        Size {
            tokens: sums.tokens,
            bytes: sums.bytes,
        }
    }
}

/// A share of a number, rounded down.
pub(crate) fn share(of: u64, fraction: f64) -> u64 {
    (of as f64 * fraction).floor() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(window: u64) -> Budget {
        Budget::new(Limits {
            window,
            threshold: Some(75.0),
            ..Limits::default()
        })
        .unwrap()
    }

    fn tokens(tokens: u64) -> Size {
        Size { tokens, bytes: 0 }
    }

    #[test]
    fn small_windows_keep_a_quarter_for_the_reply() {
        assert_eq!(budget(1_024).allow(), 921 - 256);
        assert_eq!(budget(8_000).allow(), 7_200 - 2_000);
        assert_eq!(budget(200_000).allow(), 180_000 - 8_192);
    }

    #[test]
    fn a_reply_as_long_as_the_window_leaves_no_room() {
        let limits = Limits {
            window: 8_000,
            max_tokens: Some(7_200),
            ..Limits::default()
        };
        let error = Budget::new(limits).unwrap_err();
        assert_eq!(error.reserve, 7_200);
        assert!(Budget::new(Limits::default()).is_err());
    }

    #[test]
    fn the_threshold_is_reached_and_the_budget_exceeded() {
        let large = budget(100_000);
        assert_eq!(large.due(tokens(74_999)), None);
        assert_eq!(large.due(tokens(75_000)), Some(Due::Threshold));
        assert_eq!(large.due(tokens(large.allow())), Some(Due::Threshold));
        assert_eq!(large.due(tokens(large.allow() + 1)), Some(Due::Window));
    }

    #[test]
    fn what_cannot_be_folded_is_not_counted() {
        let large = budget(100_000).above(20_000);
        assert_eq!(large.due(tokens(79_999)), None);
        assert_eq!(large.due(tokens(80_000)), Some(Due::Threshold));
        let target = large.target(Due::Threshold, tokens(80_000));
        assert_eq!(target.tokens, 20_000 + 36_000);
        let full = budget(100_000).above(200_000);
        assert_eq!(
            full.target(Due::Window, tokens(99_000)).tokens,
            full.allow()
        );
    }

    #[test]
    fn what_made_it_due_decides_how_far_to_fold() {
        let large = budget(100_000);
        let size = Size {
            tokens: 80_000,
            bytes: 900,
        };
        assert_eq!(large.target(Due::Threshold, size).tokens, 45_000);
        assert_eq!(large.target(Due::Forced, tokens(10_000)).tokens, 6_000);
        let narrow = Budget {
            bytes: Some(500),
            ..large
        };
        assert_eq!(narrow.due(size), Some(Due::Bytes));
        assert_eq!(narrow.due(Size { tokens: 9, ..size }), Some(Due::Bytes));
        assert_eq!(narrow.target(Due::Bytes, size).bytes, 300);
    }
}
