//! Excerpts of hidden messages.

use infold_log::Seq;
use infold_wire::{Json, quote};

use super::number;

/// An excerpt of a hidden message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecallLine {
    /// The message at whose end it is shown.
    pub at: Seq,
    /// The message that it quotes; none if it is no excerpt but a part of the layered state.
    pub source: Option<Seq>,
    /// The reference in the message at `at` that the excerpt answers.
    pub reference: String,
    /// The text that is shown.
    pub text: String,
    /// Its size in tokens.
    pub tokens: u64,
}

impl RecallLine {
    pub(super) fn encode(&self) -> String {
        let source = self
            .source
            .map_or(String::new(), |source| format!(r#","source":{source}"#));
        format!(
            r#","seq":{}{source},"reference":{},"tokens":{},"text":{}"#,
            self.at,
            quote(&self.reference),
            self.tokens,
            quote(&self.text)
        )
    }

    pub(super) fn decode(json: Json<'_>) -> Option<RecallLine> {
        Some(RecallLine {
            at: number(json, "seq").and_then(Seq::new)?,
            source: number(json, "source").and_then(Seq::new),
            reference: json.get("reference")?.text()?.into_owned(),
            text: json.get("text")?.text()?.into_owned(),
            tokens: number(json, "tokens")?,
        })
    }
}
