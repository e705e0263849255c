//! The event `lookup`: the dialogue of a reply with look-ups, which only the model has seen.

use infold_log::{Seq, Span};
use infold_wire::lookup::PendingResult;
use infold_wire::{Json, Wire};

use super::{number, text};

/// The dialogue in which the model made look-ups before it gave a reply.
///
/// The messages of the log are the reply as the client has it, without look-ups. This event has the messages that the
/// model wrote and received, which later views show in place of that reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupLine {
    /// The messages of the log that are the reply.
    pub span: Span,
    /// The wire format of the messages.
    pub wire: Wire,
    /// The messages shown in place of the reply: calls, results, and the reply itself. Empty if one of them was
    /// redacted; the view then shows the reply from the log.
    pub messages: Vec<Vec<u8>>,
    /// The results of look-ups that the model called together with tools of the client: they are sent with the client's
    /// results, which are later messages of the log.
    pub results: Vec<PendingResult>,
    /// The tokens of `messages` and `results` beyond those of the reply in the log.
    pub tokens: u64,
}

impl LookupLine {
    /// Returns the event without its messages and results, for a redaction in any of them. The view then shows the
    /// reply from the log.
    pub(crate) fn emptied(self) -> LookupLine {
        LookupLine {
            messages: Vec::new(),
            results: Vec::new(),
            tokens: 0,
            ..self
        }
    }

    /// Returns the members of the event's line in `events.jsonl`, behind those that all events have.
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
