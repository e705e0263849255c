//! Detects servers that drop the front of a prompt that is too long, without an error.

use infold_log::{Past as _, Role, Seq, View};
use infold_provider::CallError;
use infold_wire::{Message, Part, PartKind, ProviderError, Wire};

use super::{CompletedCall, MAX_OVERFLOWS, TurnContext};
use crate::{ManageOutcome, PassAction, manage};

/// A server that counts less than this share of a prompt has cut it.
const MIN_COUNTED_SHARE: f64 = 0.7;

/// The fewest tokens of a prompt that servers cut.
const MIN_CUT_TOKENS: u64 = 1024;

impl TurnContext<'_> {
    /// Says whether the server dropped the front of the prompt, which only its count shows.
    pub(super) fn is_cut(&self, done: &CompletedCall, left: u32) -> bool {
        let sent = done.called.reply.usage.map_or(0, |usage| usage.sent());
        let counted = done.request.counted;
        // It is checked once: a count that stays low is the server's way of counting.
        if self.connection.wire() != Wire::Ollama
            || left < MAX_OVERFLOWS
            || counted < MIN_CUT_TOKENS
            || sent == 0
        {
            return false;
        }
        let least = match self.writer.log().last_usage() {
            // The server reads again what it read before, and the messages since.
            Ok(Some((before, since))) if before.model == self.connection.model => {
                let reply = if self.reasoned() { 0 } else { before.output };
                let sent = before.tokens.saturating_sub(before.output);
                sent + (reply + since) * 4 / 5
            }
            _ => (counted as f64 * self.aim.factor.min(1.0) * MIN_COUNTED_SHARE) as u64,
        };
        // The tokens of images are unknown.
        sent < least && !self.shows_images()
    }

    /// Folds for a server that read no more than this; returns none if there is nothing to fold.
    ///
    /// Then the count was odd, and the reply is valid.
    pub(super) fn fold_for_cut(
        &mut self,
        done: &CompletedCall,
        estimate: u64,
    ) -> Option<ManageOutcome> {
        let before = (self.profile.clone(), self.aim.clone(), self.frame.clone());
        let trouble = ProviderError::TooLong {
            tokens: None,
            limit: done.called.reply.usage.map(|usage| usage.sent()),
        };
        let narrowed = self.narrow(&trouble, estimate, &mut None).ok();
        let outcome = narrowed
            .and_then(|()| manage(self.writer, &self.aim, self.summarizer, self.hooks).ok());
        let outcome = outcome.filter(|outcome| outcome.action > PassAction::Untouched);
        if outcome.is_none() {
            (self.profile, self.aim, self.frame) = before;
        }
        outcome
    }

    fn shows_images(&self) -> bool {
        let log = self.writer.log();
        let Ok(view) = View::of(log.state().shown(), log) else {
            return false;
        };
        let mut found = false;
        let looked = log.render(&view, &mut |_, bytes| {
            let message = Message::parse(bytes).ok();
            found |= message.is_some_and(|message| {
                let shown = message.json().get("images");
                let listed = shown.is_some_and(|list| list.elements().next().is_some());
                let image = |part: &Part| part.kind == PartKind::Image;
                listed || message.parts().iter().any(image)
            });
            Ok(())
        });
        found || looked.is_err()
    }

    /// Says whether the last reply holds reasoning, which templates leave out of the next prompt.
    fn reasoned(&self) -> bool {
        let log = self.writer.log();
        let path = log.state().shown().path();
        let mut seqs = path.iter().rev().flat_map(|run| run.seqs().rev());
        let is_reply = |seq: &Seq| log.record(*seq).is_ok_and(|it| it.role == Role::Assistant);
        let bytes = seqs.find(is_reply).and_then(|seq| log.message(seq).ok());
        let message = bytes.as_deref().map(Message::parse);
        message.is_none_or(|message| message.is_ok_and(|message| message.facts().reasoning))
    }
}

/// Returns the error that such a server should have given.
pub(super) fn silent_cut_error(done: &CompletedCall) -> Box<CallError> {
    let sent = done.called.reply.usage.map_or(0, |usage| usage.sent());
    let text = format!(
        "the server read {sent} tokens of a request of about {}: it dropped the front of it",
        done.request.counted
    );
    Box::new(CallError {
        trouble: ProviderError::TooLong {
            tokens: None,
            limit: Some(sent),
        },
        status: Some(200),
        text,
        requests: 0,
    })
}
