//! Look-ups that a reply was made with, which the client has not seen.

use infold_log::{Seq, Span};
use infold_wire::lookup::PendingResult;
use infold_wire::{Json, Wire};

use super::{number, text};

/// Look-ups that a reply was made with.
///
/// The messages of the log are the reply as the client has it; these are the messages that the model exchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupLine {
    /// The messages of the reply.
    pub span: Span,
    /// The wire format of the messages.
    pub wire: Wire,
    /// The messages shown in place of the reply: calls, results, and the reply itself. Empty if one of them was
    /// redacted: the reply is shown then.
    pub messages: Vec<Vec<u8>>,
    /// Results that belong to those of the client's own calls.
    pub results: Vec<PendingResult>,
    /// Tokens of these messages and results, beyond those of the reply.
    pub tokens: u64,
}

impl LookupLine {
    /// Returns it without its messages, after one of them was redacted: the reply is shown as it is.
    pub(crate) fn emptied(self) -> LookupLine {
        LookupLine {
            messages: Vec::new(),
            results: Vec::new(),
            tokens: 0,
            ..self
        }
    }

    pub(super) fn encode(&self) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let messages: Vec<String> = self.messages.iter().map(|bytes| text(bytes)).collect();
        let results = self.results.iter().map(|result| {
            let message = text(&result.message);
            format!(r#"{{"before":{},"message":{message}}}"#, result.before)
        });
        let results: Vec<String> = results.collect();
        format!(
            r#","from":{},"to":{},"wire":"{}","tokens":{},"messages":[{}],"results":[{}]"#,
            self.span.from(),
            self.span.to(),
            self.wire.name(),
            self.tokens,
            messages.join(","),
            results.join(",")
        )
    }

    pub(super) fn decode(json: Json<'_>) -> Option<LookupLine> {
        let seq = |name: &str| number(json, name).and_then(Seq::new);
        let results = json.get("results")?.elements().map(|result| {
            Some(PendingResult {
                before: usize::try_from(number(result, "before")?).ok()?,
                message: result.get("message")?.bytes().to_vec(),
            })
        });
        Some(LookupLine {
            span: Span::new(seq("from")?, seq("to")?)?,
            wire: text(json, "wire")?.parse().ok()?,
            messages: json
                .get("messages")?
                .elements()
                .map(|message| message.bytes().to_vec())
                .collect(),
            results: results.collect::<Option<_>>()?,
            tokens: number(json, "tokens")?,
        })
    }
}
