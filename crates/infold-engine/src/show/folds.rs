//! The folds of a log, and the state of each.

use infold_log::steer::{Refused, unfold};
use infold_log::{EventId, Span, State};
use infold_store::{EventLine, LogError, What, iso};
use serde_json::{Value, json};

use super::{LogSnapshot, kind};

/// A fold, and its state.
#[derive(Debug)]
pub struct FoldEntry {
    /// Its event.
    pub line: EventLine,
    /// From the first to the last message under it.
    pub span: Span,
    /// The tokens it hides.
    pub hides: u64,
    /// The tokens of its stand-in.
    pub tokens: u64,
    /// `active`, `inactive`, or `inside e3`.
    pub status: String,
}

impl FoldEntry {
    /// Returns the fold for scripts.
    pub fn json(&self) -> Value {
        json!({
            "fold": self.line.id.to_string(), "kind": kind(&self.line.what),
            "from": self.span.from().get(), "to": self.span.to().get(),
            "original_tokens": self.hides, "tokens": self.tokens,
            "status": self.status, "timestamp": iso(self.line.ts),
        })
    }
}

impl LogSnapshot {
    /// Visits all folds, oldest first.
    pub fn folds<E: From<LogError>>(
        &self,
        visit: &mut dyn FnMut(FoldEntry) -> Result<(), E>,
    ) -> Result<(), E> {
        let state = State::resume(self.at, None, self.shown.clone());
        for id in (1..=self.at.event).filter_map(EventId::new) {
            let line = self.log.event(id)?;
            let (span, hides, tokens) = match &line.what {
                What::Fold(fold) => (fold.span, fold.original_tokens, fold.tokens),
                What::Mask(mask) => (Span::one(mask.seq), mask.original_tokens, mask.tokens),
                _ => continue,
            };
            let status = match unfold(&state, id, &self.log) {
                Ok(_) => "active".to_owned(),
                Err(Refused::Inner { outer, .. }) => format!("inside {outer}"),
                Err(Refused::Past(error)) => return Err(error.into()),
                Err(_) => "inactive".to_owned(),
            };
            visit(FoldEntry {
                line,
                span,
                hides,
                tokens,
                status,
            })?;
        }
        Ok(())
    }
}
