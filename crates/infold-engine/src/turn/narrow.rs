use infold_log::{NoRoom, View};
use infold_store::TaskError;
use infold_wire::Trouble;

use super::Talk;
use crate::Aim;

impl Talk<'_> {
    /// Aims at less, as far as the provider's numbers tell.
    pub(super) fn narrow(&mut self, trouble: &Trouble, estimate: u64) -> Result<(), NoRoom> {
        let window = self.profile.window;
        let mut bytes = self.aim.budget.bytes();
        match trouble {
            Trouble::TooLong { tokens, limit } => {
                if let (Some(limit), Some(_)) = (limit, tokens) {
                    // Only a help for the next time: without it, that is found out again.
                    let _ = self.remember(*limit);
                }
                let off = tokens.map_or(1.0, |tokens| self.off(tokens, estimate));
                let room = limit.unwrap_or(window).min(window) as f64 / off.max(1.0);
                // If that is nothing new, three quarters of what was sent must do.
                let most = estimate as f64 * 0.75;
                let less = match self.profile.max_tokens {
                    Some(reply) => (most + reply.min(estimate / 2) as f64) / 0.9,
                    None => most / 0.65,
                };
                let less = (less as u64).min(window);
                self.profile.window = match room as u64 {
                    room if room < window => room,
                    _ => less,
                };
                // Half of it is the most that a reply may take.
                let half = self.profile.window / 2;
                self.profile.max_tokens = self.profile.max_tokens.map(|most| most.min(half));
            }
            _ => {
                let log = self.writer.log();
                let view = View::of(log.state().shown(), log);
                let size = view.and_then(|view| log.view_bytes(&view)).unwrap_or(0);
                bytes = Some((size + self.aim.frame.bytes) * 3 / 4);
            }
        }
        let before = self.aim.clone();
        self.aim = Aim {
            factor: before.factor,
            frame: before.frame,
            ..Aim::of(&self.profile, bytes)?
        };
        let reserve = self.aim.budget.reserve();
        self.frame.max_tokens = self.frame.max_tokens.map(|most| most.min(reserve));
        Ok(())
    }

    /// Keeps the window that a provider named.
    fn remember(&self, window: u64) -> Result<(), TaskError> {
        let (provider, model) = (&self.connection.endpoint.name, &self.connection.model);
        let registry = self.contexts.registry()?;
        Ok(registry.set_window(provider, model, window, jiff::Timestamp::now())?)
    }

    /// How many tokens the provider counts for each that we took it to count.
    fn off(&self, tokens: u64, estimate: u64) -> f64 {
        // Some count the reply that was asked for, some do not: the closer one is meant.
        let whole = estimate + self.frame.max_tokens.unwrap_or(0);
        let meant = match tokens.abs_diff(whole) < tokens.abs_diff(estimate) {
            true => whole,
            false => estimate,
        };
        tokens as f64 / meant.max(1) as f64
    }
}
