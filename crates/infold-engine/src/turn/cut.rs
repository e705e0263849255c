//! A server that drops the front of a prompt, and says nothing.

use infold_log::{Past as _, Role, Seq, View};
use infold_provider::CallError;
use infold_wire::{Message, Part, PartKind, Trouble, Wire};

use super::{Exchange, OVERFLOWS, Talk};
use crate::{Did, Outcome, manage};

/// A prompt of which a server counts less than this share was cut by it.
const CUT: f64 = 0.7;

/// A prompt of fewer tokens than this is cut by nobody.
const SMALL: u64 = 1024;

impl Talk<'_> {
    /// Some servers drop the front of a prompt that is too long, and only their count tells.
    pub(super) fn cut(&self, done: &Exchange, left: u32) -> bool {
        let sent = done.called.reply.usage.map_or(0, |usage| usage.sent());
        let counted = done.request.counted;
        // Once is enough: a count that stays low is how this server counts.
        if self.connection.wire() != Wire::Ollama
            || left < OVERFLOWS
            || counted < SMALL
            || sent == 0
        {
            return false;
        }
        let least = match self.writer.log().last_usage() {
            // What was read before is read again, and what came since on top of it.
            Ok(Some((before, since))) if before.model == self.connection.model => {
                let reply = if self.reasoned() { 0 } else { before.output };
                let sent = before.tokens.saturating_sub(before.output);
                sent + (reply + since) * 4 / 5
            }
            _ => (counted as f64 * self.aim.factor.min(1.0) * CUT) as u64,
        };
        // What images come to is anybody's guess.
        sent < least && !self.shows_images()
    }

    /// Folds for a server that read no more than this; nothing if there is nothing to fold.
    ///
    /// Then it is the count that was odd, and the reply is as good as any.
    pub(super) fn shrunk(&mut self, done: &Exchange, estimate: u64) -> Option<Outcome> {
        let before = (self.profile.clone(), self.aim.clone(), self.frame.clone());
        let trouble = Trouble::TooLong {
            tokens: None,
            limit: done.called.reply.usage.map(|usage| usage.sent()),
        };
        let narrowed = self.narrow(&trouble, estimate, &mut None).ok();
        let outcome = narrowed
            .and_then(|()| manage(self.writer, &self.aim, self.summarizer, self.hooks).ok());
        let outcome = outcome.filter(|outcome| outcome.did > Did::Untouched);
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

/// What such a server would have said.
pub(super) fn silently_cut(done: &Exchange) -> Box<CallError> {
    let sent = done.called.reply.usage.map_or(0, |usage| usage.sent());
    let text = format!(
        "the server read {sent} tokens of a request of about {}: it dropped the front of it",
        done.request.counted
    );
    Box::new(CallError {
        trouble: Trouble::TooLong {
            tokens: None,
            limit: Some(sent),
        },
        status: Some(200),
        text,
        requests: 0,
    })
}
