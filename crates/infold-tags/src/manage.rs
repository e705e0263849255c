use crate::count::{count, padded};
use crate::truncate::is_visible;
use crate::{
    CondenseError, Condensed, Conversation, Model, Refused, Stamps, TagId, Tagged, Truncated,
    condense, truncate,
};
use infold_wire::tokens::{self, Encoding};

/// How full a model's window is, and how full it may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Tokens of the last call, as the provider counted them; the last message came after it.
    pub used: f64,
    /// Tokens the model takes at once.
    pub window: f64,
    /// Tokens held back for the answer; 8192 if none or zero is given.
    pub reply: Option<f64>,
    /// From where on to condense; if not, there is only truncation.
    pub condense_at: Option<Threshold>,
}

/// From how many percent of the window on a conversation is condensed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// What holds where a profile says nothing of its own.
    pub everywhere: f64,
    /// What the profile in use says; -1 is nothing of its own.
    pub profile: Option<f64>,
}

/// What [`manage`] found and did.
#[derive(Clone, Debug)]
pub struct Managed {
    /// How many tokens the conversation was, the last message included.
    pub before: f64,
    /// Why it was not condensed though it should have been.
    pub refused: Option<Refused>,
    /// What was done.
    pub done: Done,
}

/// What was done to a conversation.
#[derive(Clone, Debug)]
pub enum Done {
    /// It is what it was.
    Nothing,
    /// It was condensed.
    Condensed(Condensed),
    /// It was truncated, though that may have changed nothing.
    Truncated {
        /// What became of it.
        truncated: Truncated,
        /// The id of the new fold, drawn even if there is none.
        id: TagId,
        /// How many tokens it is now, to the peer: messages behind a summary are counted too.
        tokens: f64,
    },
}

/// Why a conversation could not be managed. It is what it was.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ManageError<E> {
    /// There is no last message to count.
    #[error("a conversation without messages cannot be managed")]
    NoMessages,
    /// The model failed. The peer does not truncate then, either.
    #[error("the model failed: {0}")]
    Model(E),
}

/// Says whether [`manage`] would try to change a conversation whose last message has so many tokens.
pub fn will_manage(limits: &Limits, last: f64) -> bool {
    let tokens = limits.used + last;
    limits.asks_for_summary(tokens) || limits.are_exceeded(tokens)
}

/// Condenses a conversation that has reached its threshold or has no room for an answer.
///
/// If it cannot be condensed and has no room, half of it is truncated. A model that fails ends it,
/// as it does with the peer; see [`manage_despite_failure`].
pub fn manage<E>(
    conversation: Conversation<'_>,
    limits: &Limits,
    model: Option<Model<'_, E>>,
    stamps: Stamps<'_>,
) -> Result<Managed, ManageError<E>> {
    match manage_despite_failure(conversation, limits, model, stamps)? {
        (managed, None) => Ok(managed),
        (_, Some(error)) => Err(ManageError::Model(error)),
    }
}

/// As [`manage`], and where the model fails the conversation is truncated if it has no room: returns
/// what was done, with the id of the new fold, and the model's error.
pub fn manage_despite_failure<E>(
    conversation: Conversation<'_>,
    limits: &Limits,
    model: Option<Model<'_, E>>,
    stamps: Stamps<'_>,
) -> Result<(Managed, Option<E>), ManageError<E>> {
    let messages = conversation.messages;
    let last = messages.last().ok_or(ManageError::NoMessages)?;
    let before = limits.used + tokens(last);
    let Stamps { now, ids } = stamps;
    let (mut refused, mut failed) = (None, None);
    let done = |refused, done| Managed {
        before,
        refused,
        done,
    };
    if limits.asks_for_summary(before) {
        match condense(conversation, before, model, Stamps { now, ids }) {
            Ok(condensed) => return Ok((done(None, Done::Condensed(condensed)), None)),
            Err(CondenseError::Refused(why)) => refused = Some(why),
            Err(CondenseError::Model(error)) => failed = Some(error),
        }
    }
    if !limits.are_exceeded(before) {
        return Ok((done(refused, Done::Nothing), failed));
    }
    let id = ids();
    let truncated = truncate(messages, HIDDEN, &id, now);
    let visible = truncated.messages.iter().filter(|m| is_visible(m));
    let tokens = system(conversation.system) + visible.map(tokens).sum::<f64>();
    let truncated = Done::Truncated {
        truncated,
        id,
        tokens,
    };
    Ok((done(refused, truncated), failed))
}

/// The share of the window that is never filled.
const HELD_BACK: f64 = 0.1;
/// What is held back for an answer of unknown length.
const REPLY: f64 = 8192.0;
/// The share of the messages that truncation hides.
const HIDDEN: f64 = 0.5;

impl Threshold {
    /// Returns what holds.
    pub fn percent(self) -> f64 {
        let profile = self.profile.filter(|own| is_percent(*own));
        profile.unwrap_or(self.everywhere)
    }

    /// Says whether the profile says something that is no percentage, which the peer warns of.
    pub fn is_profile_ignored(self) -> bool {
        self.profile
            .is_some_and(|own| own != -1.0 && !is_percent(own))
    }
}

fn is_percent(profile: f64) -> bool {
    (5.0..=100.0).contains(&profile)
}

impl Limits {
    fn asks_for_summary(&self, tokens: f64) -> bool {
        let reached = |at: Threshold| 100.0 * tokens / self.window >= at.percent();
        self.condense_at
            .is_some_and(|at| reached(at) || self.are_exceeded(tokens))
    }

    fn are_exceeded(&self, tokens: f64) -> bool {
        let reply = self.reply.filter(|reply| *reply != 0.0).unwrap_or(REPLY);
        tokens > self.window * (1.0 - HELD_BACK) - reply
    }
}

fn tokens(message: &Tagged) -> f64 {
    message.content().map_or(0, count) as f64
}

fn system(prompt: &str) -> f64 {
    padded(tokens::count(Encoding::O200k, prompt)) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        used: 0.0,
        window: 10_000.0,
        reply: None,
        condense_at: None,
    };

    #[test]
    fn without_a_length_an_answer_has_room_for_8192_tokens() {
        for (reply, room) in [(None, 808.0), (Some(0.0), 808.0), (Some(1000.0), 8000.0)] {
            let limits = Limits { reply, ..LIMITS };
            assert!(!will_manage(&limits, room), "{reply:?}");
            assert!(will_manage(&limits, room + 1.0), "{reply:?}");
        }
    }

    #[test]
    fn a_profile_has_its_say_from_5_to_100_percent() {
        let threshold = |profile| Threshold {
            everywhere: 75.0,
            profile,
        };
        for own in [5.0, 99.9, 100.0] {
            assert_eq!(threshold(Some(own)).percent(), own);
            assert!(!threshold(Some(own)).is_profile_ignored());
        }
        for own in [0.0, 4.9, 100.1, -2.0, f64::NAN] {
            assert_eq!(threshold(Some(own)).percent(), 75.0);
            assert!(threshold(Some(own)).is_profile_ignored());
        }
        for nothing in [None, Some(-1.0)] {
            assert_eq!(threshold(nothing).percent(), 75.0);
            assert!(!threshold(nothing).is_profile_ignored());
        }
    }
}
