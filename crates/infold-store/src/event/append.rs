//! Pushes that are done once.

use infold_log::{EventId, Seq, Span};
use infold_wire::{Json, quote};

use super::{number, text};

/// A push with a key, which is done once however often it is repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendLine {
    /// The key.
    pub key: String,
    /// The digest of the messages as they came.
    pub digest: String,
    /// Their seqs.
    pub span: Span,
    /// The last such event before.
    pub previous: Option<EventId>,
}

impl AppendLine {
    pub(super) fn encode(&self) -> String {
        let previous = self.previous.map_or(String::new(), |previous| {
            format!(r#","previous":{}"#, previous.get())
        });
        format!(
            r#","key":{},"digest":{},"from":{},"to":{}{previous}"#,
            quote(&self.key),
            quote(&self.digest),
            self.span.from(),
            self.span.to()
        )
    }

    pub(super) fn decode(json: Json<'_>) -> Option<AppendLine> {
        let seq = |key| number(json, key).and_then(Seq::new);
        Some(AppendLine {
            key: text(json, "key")?,
            digest: text(json, "digest")?,
            span: Span::new(seq("from")?, seq("to")?)?,
            previous: number(json, "previous").and_then(EventId::new),
        })
    }
}
