//! Measures a view in the tokens of the model.

use infold_log::{Size, View};
use infold_store::{Log, LogError, Usage};

use super::{Aim, Executor};

/// Converts counted tokens to tokens of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    factor: f64,
    frame: Size,
}

impl Scale {
    /// Measures the current view.
    ///
    /// While the view only grew since the provider reported its size, that report is used, and only the messages since
    /// are estimated.
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

    /// Measures the view that the steps of an executor led to.
    pub fn measure(&self, executor: &Executor<'_>, aim: &Aim) -> Result<Size, LogError> {
        let view = View::of(executor.state().shown(), executor.log())?;
        self.view(executor.log(), &view, aim)
    }

    /// Measures any view.
    pub fn view(&self, log: &Log, view: &View, aim: &Aim) -> Result<Size, LogError> {
        Ok(Size {
            tokens: self.part(view.tokens()) + self.frame.tokens,
            bytes: bytes(log, view, aim)?,
        })
    }

    /// Converts a counted size, and adds the frame.
    pub fn size(&self, counted: Size) -> Size {
        Size {
            tokens: self.part(counted.tokens) + self.frame.tokens,
            bytes: counted.bytes + self.frame.bytes,
        }
    }

    /// Converts counted tokens.
    pub fn part(&self, counted: u64) -> u64 {
        (counted as f64 * self.factor).ceil() as u64
    }

    /// Returns how many counted tokens come to no more than this many of the model.
    pub fn counted(&self, tokens: u64) -> u64 {
        (tokens as f64 / self.factor).floor() as u64
    }
}

fn usage_applies(usage: &Usage, aim: &Aim) -> bool {
    usage.tokens > 0
        && usage.frame == aim.frame.tokens
        && aim.model.as_ref().is_none_or(|model| *model == usage.model)
}

/// Returns the bytes of a view; zero if there is no limit on bytes.
fn bytes(log: &Log, view: &View, aim: &Aim) -> Result<u64, LogError> {
    if aim.budget.bytes().is_none() {
        return Ok(0);
    }
    Ok(log.view_bytes(view)? + aim.frame.bytes)
}
