//! Aims at a smaller request after one that was too long for the provider.

use infold_log::{NoRoom, View};
use infold_wire::ProviderError;

use super::TurnContext;
use crate::{Aim, Profile};

/// A request that was too long for a provider.
#[derive(Clone, Copy, Debug)]
pub struct TooLongRequest<'a> {
    /// The error of the provider.
    pub trouble: &'a ProviderError,
    /// Our estimate of the request, in the model's tokens.
    pub estimate: u64,
    /// The reply length that the request had.
    pub reply: Option<u64>,
    /// The size of the request in bytes.
    pub bytes: u64,
}

impl TooLongRequest<'_> {
    /// Aims at less, by the provider's numbers.
    pub fn narrow(&self, profile: &mut Profile, aim: &mut Aim) -> Result<(), NoRoom> {
        let window = profile.window;
        let mut bytes = aim.budget.bytes();
        match self.trouble {
            ProviderError::TooLong { tokens, limit } => {
                let off = tokens.map_or(1.0, |tokens| self.count_ratio(tokens));
                let room = limit.unwrap_or(window).min(window) as f64 / off.max(1.0);
                // If the error has no new numbers, three quarters of the sent tokens are the limit.
                let most = self.estimate as f64 * 0.75;
                let less = match profile.max_tokens {
                    Some(reply) => (most + reply.min(self.estimate / 2) as f64) / 0.9,
                    None => most / 0.65,
                };
                let less = (less as u64).min(window);
                let room = room as u64;
                profile.window = if room < window { room } else { less };
                // A reply may take half of the window at most.
                let half = profile.window / 2;
                profile.max_tokens = profile.max_tokens.map(|most| most.min(half));
            }
            _ => bytes = Some(self.bytes * 3 / 4),
        }
        *aim = Aim {
            factor: aim.factor,
            frame: aim.frame,
            recall: aim.recall,
            recall_tool: aim.recall_tool.take(),
            ..Aim::of(profile, bytes)?
        };
        Ok(())
    }

    /// Returns the window that the provider named, if it is credible.
    pub fn named(&self) -> Option<u64> {
        match self.trouble {
            ProviderError::TooLong {
                limit,
                tokens: Some(_),
            } => *limit,
            _ => None,
        }
    }

    /// Returns how many tokens the provider counts for each estimated one.
    fn count_ratio(&self, tokens: u64) -> f64 {
        // Some providers count the requested reply, some do not: the closer number is used.
        let whole = self.estimate + self.reply.unwrap_or(0);
        let is_whole = tokens.abs_diff(whole) < tokens.abs_diff(self.estimate);
        let meant = if is_whole { whole } else { self.estimate };
        tokens as f64 / meant.max(1) as f64
    }
}

impl TurnContext<'_> {
    /// Aims at less, by the provider's numbers.
    /// `named` becomes the window that the provider names, if it names one.
    pub(super) fn narrow(
        &mut self,
        trouble: &ProviderError,
        estimate: u64,
        named: &mut Option<u64>,
    ) -> Result<(), NoRoom> {
        let log = self.writer.log();
        let view = View::of(log.state().shown(), log);
        let size = view.and_then(|view| log.view_bytes(&view)).unwrap_or(0);
        let too_long = TooLongRequest {
            trouble,
            estimate,
            reply: self.frame.max_tokens,
            bytes: size + self.aim.frame.bytes,
        };
        *named = too_long.named().or(*named);
        too_long.narrow(&mut self.profile, &mut self.aim)?;
        let reserve = self.aim.budget.reserve();
        self.frame.max_tokens = self.frame.max_tokens.map(|most| most.min(reserve));
        Ok(())
    }
}
