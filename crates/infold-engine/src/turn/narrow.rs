use infold_log::{NoRoom, View};
use infold_wire::Trouble;

use super::Talk;
use crate::{Aim, Profile};

/// A request that was too long for a provider.
#[derive(Clone, Copy, Debug)]
pub struct Refusal<'a> {
    /// What the provider said.
    pub trouble: &'a Trouble,
    /// How long we took it to be, in the model's tokens.
    pub estimate: u64,
    /// How long a reply it asked for.
    pub reply: Option<u64>,
    /// How many bytes it had.
    pub bytes: u64,
}

impl Refusal<'_> {
    /// Aims at less, as far as the provider's numbers tell.
    pub fn narrow(&self, profile: &mut Profile, aim: &mut Aim) -> Result<(), NoRoom> {
        let window = profile.window;
        let mut bytes = aim.budget.bytes();
        match self.trouble {
            Trouble::TooLong { tokens, limit } => {
                let off = tokens.map_or(1.0, |tokens| self.off(tokens));
                let room = limit.unwrap_or(window).min(window) as f64 / off.max(1.0);
                // If that is nothing new, three quarters of what was sent must do.
                let most = self.estimate as f64 * 0.75;
                let less = match profile.max_tokens {
                    Some(reply) => (most + reply.min(self.estimate / 2) as f64) / 0.9,
                    None => most / 0.65,
                };
                let less = (less as u64).min(window);
                profile.window = match room as u64 {
                    room if room < window => room,
                    _ => less,
                };
                // Half of it is the most that a reply may take.
                let half = profile.window / 2;
                profile.max_tokens = profile.max_tokens.map(|most| most.min(half));
            }
            _ => bytes = Some(self.bytes * 3 / 4),
        }
        *aim = Aim {
            factor: aim.factor,
            frame: aim.frame,
            ..Aim::of(profile, bytes)?
        };
        Ok(())
    }

    /// The window that the provider named, if it is to be believed.
    pub fn named(&self) -> Option<u64> {
        match self.trouble {
            Trouble::TooLong {
                limit,
                tokens: Some(_),
            } => *limit,
            _ => None,
        }
    }

    /// How many tokens the provider counts for each that we took it to count.
    fn off(&self, tokens: u64) -> f64 {
        // Some count the reply that was asked for, some do not: the closer one is meant.
        let whole = self.estimate + self.reply.unwrap_or(0);
        let meant = match tokens.abs_diff(whole) < tokens.abs_diff(self.estimate) {
            true => whole,
            false => self.estimate,
        };
        tokens as f64 / meant.max(1) as f64
    }
}

impl Talk<'_> {
    /// Aims at less, as far as the provider's numbers tell.
    /// `named` becomes the window that the provider names, if it names one.
    pub(super) fn narrow(
        &mut self,
        trouble: &Trouble,
        estimate: u64,
        named: &mut Option<u64>,
    ) -> Result<(), NoRoom> {
        let log = self.writer.log();
        let view = View::of(log.state().shown(), log);
        let size = view.and_then(|view| log.view_bytes(&view)).unwrap_or(0);
        let refusal = Refusal {
            trouble,
            estimate,
            reply: self.frame.max_tokens,
            bytes: size + self.aim.frame.bytes,
        };
        *named = refusal.named().or(*named);
        refusal.narrow(&mut self.profile, &mut self.aim)?;
        let reserve = self.aim.budget.reserve();
        self.frame.max_tokens = self.frame.max_tokens.map(|most| most.min(reserve));
        Ok(())
    }
}
