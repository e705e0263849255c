//! The folds of a log, and the state of each.

use infold_log::steer::{Refused, unfold};
use infold_log::{EventId, Role, Seq, Span, State};
use infold_store::{EventLine, LogError, What, iso};
use infold_wire::Json;
use serde_json::{Value, json};

use super::{LogSnapshot, kind};

/// A fold, and its state.
#[derive(Debug)]
pub struct FoldEntry {
    /// The event of the fold.
    pub line: EventLine,
    /// From the first to the last message under it.
    pub span: Span,
    /// The tokens it hides.
    pub hides: u64,
    /// The tokens of the stand-in.
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

/// Returns the text that the model sees instead of the folded messages, by role.
pub fn fold_texts(what: &What) -> Vec<(Role, String)> {
    match what {
        What::Fold(fold) => fold.stand_in.clone(),
        What::Mask(mask) => {
            let text = Json::parse(mask.stub.as_bytes()).ok();
            let text = text.and_then(|json| Some(json.text()?.into_owned()));
            vec![(Role::Tool, text.unwrap_or_else(|| mask.stub.clone()))]
        }
        _ => Vec::new(),
    }
}

/// Returns a fold with its text, for scripts.
pub fn fold_json(line: &EventLine) -> Value {
    let texts = fold_texts(&line.what);
    let texts: Vec<Value> = texts
        .iter()
        .map(|(role, text)| json!({"role": role.wire_name(), "text": text}))
        .collect();
    let (span, hides, tokens) = sizes(&line.what).unwrap_or((Span::one(Seq::FIRST), 0, 0));
    json!({
        "fold": line.id.to_string(), "kind": kind(&line.what),
        "from": span.from().get(), "to": span.to().get(),
        "original_tokens": hides, "tokens": tokens, "timestamp": iso(line.ts), "stand_in": texts,
    })
}

/// Returns the messages of a fold, the tokens it hides and those of its stand-in; `None` if the event is no fold.
fn sizes(what: &What) -> Option<(Span, u64, u64)> {
    match what {
        What::Fold(fold) => Some((fold.span, fold.original_tokens, fold.tokens)),
        What::Mask(mask) => Some((Span::one(mask.seq), mask.original_tokens, mask.tokens)),
        _ => None,
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
            let Some((span, hides, tokens)) = sizes(&line.what) else {
                continue;
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
