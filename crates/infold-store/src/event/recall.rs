//! The event `recall`: a text that is shown at the end of a message, usually an excerpt of a hidden one.

use infold_log::Seq;
use infold_wire::{Json, quote};

use super::number;

/// A text that every view shows at the end of a message: an excerpt of a hidden message that it refers to, or a part of
/// the layered state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecallLine {
    /// The message at whose end the text is shown.
    pub at: Seq,
    /// The hidden message that the text quotes; `None` for a part of the layered state.
    pub source: Option<Seq>,
    /// The reference in the message `at` for which the excerpt was found; a fixed word for a part of the layered state.
    pub reference: String,
    /// The text that is shown.
    pub text: String,
    /// The size of the text in tokens.
    pub tokens: u64,
}

impl RecallLine {
    /// Returns the members of the event's line in `events.jsonl`, behind those that all events have. `at` is the member
    /// `seq` there.
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
