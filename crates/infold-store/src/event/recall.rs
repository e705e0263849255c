//! Excerpts of hidden messages.

use infold_log::Seq;
use infold_wire::{Json, quote};

use super::number;

/// An excerpt of a hidden message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecallLine {
    /// The message at whose end it is shown.
    pub at: Seq,
    /// The message that it quotes.
    pub source: Seq,
    /// What the message at the end refers to.
    pub reference: String,
    /// The text that is shown.
    pub text: String,
    /// Its size in tokens.
    pub tokens: u64,
}

impl RecallLine {
    pub(super) fn encode(&self) -> String {
        format!(
            r#","seq":{},"source":{},"reference":{},"tokens":{},"text":{}"#,
            self.at,
            self.source,
            quote(&self.reference),
            self.tokens,
            quote(&self.text)
        )
    }

    pub(super) fn decode(json: Json<'_>) -> Option<RecallLine> {
        Some(RecallLine {
            at: number(json, "seq").and_then(Seq::new)?,
            source: number(json, "source").and_then(Seq::new)?,
            reference: json.get("reference")?.text()?.into_owned(),
            text: json.get("text")?.text()?.into_owned(),
            tokens: number(json, "tokens")?,
        })
    }
}
