use infold_log::{Size, View};
use infold_store::{Log, LogError, Usage};

use super::{Aim, Hand};

/// From what we count to what the model counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    factor: f64,
    frame: Size,
}

impl Scale {
    /// Measures what is shown now.
    ///
    /// While the view only grew since the provider reported its size, that report counts,
    /// and only what came since is estimated.
    pub fn now(log: &Log, aim: &Aim) -> Result<(Scale, Size), LogError> {
        let mut scale = Scale {
            factor: aim.factor,
            frame: aim.frame,
        };
        let view = View::of(log.state().shown(), log)?;
        let counted = view.tokens();
        if let Some((usage, since)) = log.last_usage()?
            && usage_applies(&usage, aim)
            && counted > 0
        {
            let tokens = usage.tokens + scale.part(since);
            let view = tokens.saturating_sub(scale.frame.tokens);
            scale.factor = (view as f64 / counted as f64).clamp(0.1, 10.0);
        }
        Ok((scale, scale.view(log, &view, aim)?))
    }

    /// Measures what a hand has come to.
    pub fn measure(&self, hand: &Hand<'_>, aim: &Aim) -> Result<Size, LogError> {
        let view = View::of(hand.state().shown(), hand.log())?;
        self.view(hand.log(), &view, aim)
    }

    /// Measures a view, be it only imagined.
    pub fn view(&self, log: &Log, view: &View, aim: &Aim) -> Result<Size, LogError> {
        Ok(Size {
            tokens: self.part(view.tokens()) + self.frame.tokens,
            bytes: bytes(log, view, aim)?,
        })
    }

    /// What a counted size comes to, with what is sent beside it.
    pub fn size(&self, counted: Size) -> Size {
        Size {
            tokens: self.part(counted.tokens) + self.frame.tokens,
            bytes: counted.bytes + self.frame.bytes,
        }
    }

    /// What counted tokens come to.
    pub fn part(&self, counted: u64) -> u64 {
        (counted as f64 * self.factor).ceil() as u64
    }

    /// How many tokens may be counted so that they come to no more than this.
    pub fn counted(&self, tokens: u64) -> u64 {
        (tokens as f64 / self.factor).floor() as u64
    }
}

fn usage_applies(usage: &Usage, aim: &Aim) -> bool {
    usage.tokens > 0
        && usage.frame == aim.frame.tokens
        && aim.model.as_ref().is_none_or(|model| *model == usage.model)
}

/// The bytes of a view; zero if nobody limits them.
fn bytes(log: &Log, view: &View, aim: &Aim) -> Result<u64, LogError> {
    match aim.budget.bytes() {
        Some(_) => Ok(log.view_bytes(view)? + aim.frame.bytes),
        None => Ok(0),
    }
}
