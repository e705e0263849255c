//! Decides before a request whether to condense or truncate a conversation, and does it.

use infold_wire::tokens::{self, Encoding};

use crate::truncate::is_visible;
use crate::{
    CondenseError, CondenseRefusal, Condensed, Stamps, SummaryModel, TagId, Tagged,
    TaggedConversation, Truncated, add_margin, condense, count_tokens, truncate,
};

/// The fill level of a model's window, and its limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowLimits {
    /// Tokens of the last call, as the provider counted them; the last message came after it.
    pub used: f64,
    /// Tokens of the model's window.
    pub window: f64,
    /// Tokens reserved for the reply; 8192 if none or zero is given.
    pub reply: Option<f64>,
    /// When to condense; without it, there is only truncation.
    pub condense_at: Option<CondenseThreshold>,
}

/// From how many percent of the window on a conversation is condensed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CondenseThreshold {
    /// The percentage for profiles without their own.
    pub everywhere: f64,
    /// The percentage of the profile in use; -1 means that it has none.
    pub profile: Option<f64>,
}

/// The result of [`manage`].
#[derive(Clone, Debug)]
pub struct ManageReport {
    /// The tokens of the conversation before, the last message included.
    pub before: f64,
    /// The reason that it was not condensed although it was due.
    pub refused: Option<CondenseRefusal>,
    /// The change of the conversation.
    pub action: ManageAction,
}

/// The change of a conversation.
#[derive(Clone, Debug)]
pub enum ManageAction {
    /// No change.
    Nothing,
    /// The conversation was condensed.
    Condensed(Condensed),
    /// The conversation was truncated, possibly without effect.
    Truncated {
        /// The truncated conversation.
        truncated: Truncated,
        /// The id of the new fold, drawn even if there is none.
        id: TagId,
        /// The tokens it has now, as the agent counts: messages behind a summary are counted too.
        tokens: f64,
    },
}

/// The reason that a conversation could not be managed. It is unchanged.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TagManageError<E> {
    /// There is no last message to count.
    #[error("a conversation without messages cannot be managed")]
    NoMessages,
    /// The model failed. The agent does not truncate then, either.
    #[error("the model failed: {0}")]
    Model(E),
}

/// Says whether [`manage`] would try to change a conversation whose last message has `last` tokens.
pub fn will_manage(limits: &WindowLimits, last: f64) -> bool {
    let tokens = limits.used + last;
    limits.should_condense(tokens) || limits.are_exceeded(tokens)
}

/// Condenses a conversation that has reached its threshold or has no room for a reply.
///
/// If it cannot be condensed and has no room, half of it is truncated. If the model fails,
/// nothing changes, as in the agent; see [`manage_despite_failure`].
pub fn manage<E>(
    conversation: TaggedConversation<'_>,
    limits: &WindowLimits,
    model: Option<SummaryModel<'_, E>>,
    stamps: Stamps<'_>,
) -> Result<ManageReport, TagManageError<E>> {
    match manage_despite_failure(conversation, limits, model, stamps)? {
        (report, None) => Ok(report),
        (_, Some(error)) => Err(TagManageError::Model(error)),
    }
}

/// Like [`manage`], but truncates a conversation without room if the model fails: returns the report and the model's
/// error.
pub fn manage_despite_failure<E>(
    conversation: TaggedConversation<'_>,
    limits: &WindowLimits,
    model: Option<SummaryModel<'_, E>>,
    stamps: Stamps<'_>,
) -> Result<(ManageReport, Option<E>), TagManageError<E>> {
    let messages = conversation.messages;
    let last = messages.last().ok_or(TagManageError::NoMessages)?;
    let before = limits.used + count_message(last);
    let Stamps { now, ids } = stamps;
    let (mut refused, mut failed) = (None, None);
    let mut action = ManageAction::Nothing;
    if limits.should_condense(before) {
        match condense(conversation, before, model, Stamps { now, ids }) {
            Ok(condensed) => action = ManageAction::Condensed(condensed),
            Err(CondenseError::Refused(refusal)) => refused = Some(refusal),
            Err(CondenseError::Model(error)) => failed = Some(error),
        }
    }
    if matches!(action, ManageAction::Nothing) && limits.are_exceeded(before) {
        let id = ids();
        let truncated = truncate(messages, TRUNCATED_SHARE, &id, now);
        let system = add_margin(tokens::count(Encoding::O200k, conversation.system)) as f64;
        let visible = truncated.messages.iter().filter(|m| is_visible(m));
        let tokens = system + visible.map(count_message).sum::<f64>();
        action = ManageAction::Truncated {
            truncated,
            id,
            tokens,
        };
    }
    Ok((
        ManageReport {
            before,
            refused,
            action,
        },
        failed,
    ))
}

/// The share of the window that is never filled.
const UNFILLED_WINDOW_SHARE: f64 = 0.1;
/// The tokens reserved for a reply of unknown length.
const DEFAULT_REPLY_TOKENS: f64 = 8192.0;
/// The share of the messages that truncation hides.
const TRUNCATED_SHARE: f64 = 0.5;

impl CondenseThreshold {
    /// Returns the percentage that applies.
    pub fn percent(self) -> f64 {
        let profile = self.profile.filter(|own| is_percent(*own));
        profile.unwrap_or(self.everywhere)
    }

    /// Says whether the profile has a value that is no percentage, which the agent warns of.
    pub fn is_profile_ignored(self) -> bool {
        self.profile
            .is_some_and(|own| own != -1.0 && !is_percent(own))
    }
}

fn is_percent(profile: f64) -> bool {
    (5.0..=100.0).contains(&profile)
}

impl WindowLimits {
    fn should_condense(&self, tokens: f64) -> bool {
        let reached = |at: CondenseThreshold| 100.0 * tokens / self.window >= at.percent();
        self.condense_at
            .is_some_and(|at| reached(at) || self.are_exceeded(tokens))
    }

    fn are_exceeded(&self, tokens: f64) -> bool {
        let reply = self.reply.filter(|reply| *reply != 0.0);
        let reply = reply.unwrap_or(DEFAULT_REPLY_TOKENS);
        tokens > self.window * (1.0 - UNFILLED_WINDOW_SHARE) - reply
    }
}

fn count_message(message: &Tagged) -> f64 {
    message.content().map_or(0, count_tokens) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: WindowLimits = WindowLimits {
        used: 0.0,
        window: 10_000.0,
        reply: None,
        condense_at: None,
    };

    #[test]
    fn without_a_length_an_answer_has_room_for_8192_tokens() {
        for (reply, room) in [(None, 808.0), (Some(0.0), 808.0), (Some(1000.0), 8000.0)] {
            let limits = WindowLimits { reply, ..LIMITS };
            assert!(!will_manage(&limits, room), "{reply:?}");
            assert!(will_manage(&limits, room + 1.0), "{reply:?}");
        }
    }

    #[test]
    fn a_profile_has_its_say_from_5_to_100_percent() {
        let threshold = |profile| CondenseThreshold {
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
