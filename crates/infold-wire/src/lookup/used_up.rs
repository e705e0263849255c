//! The reply to a client whose model goes on looking things up when no more look-ups are answered.

use crate::{Reply, StopReason, TokenUsage, Wire, quote};

/// The result of a look-up that is not answered.
pub const NO_LOOKUP_LEFT: &str = "no look-ups are left in this turn: answer with what you have";

/// What the client is told in the place of an answer.
const USED_UP_TEXT: &str = "[Infold: the look-ups are used up, and the model asked for more of them instead of answering.]";

/// What the client is told if the model goes on calling tools that it may not use.
const REFUSED_TEXT: &str =
    "[Infold: the model went on making calls that are refused instead of answering.]";

/// Returns a reply in the place of the answer that a model did not give; `before` is what it said last, and `is_refused` says that
/// it made calls which a policy refuses.
pub fn used_up_reply(wire: Wire, before: &Reply, is_refused: bool) -> Reply {
    let text = quote(if is_refused {
        REFUSED_TEXT
    } else {
        USED_UP_TEXT
    });
    let message = match wire {
        Wire::Chat | Wire::Ollama => format!(r#"{{"role":"assistant","content":{text}}}"#),
        Wire::Anthropic => {
            format!(r#"{{"role":"assistant","content":[{{"type":"text","text":{text}}}]}}"#)
        }
        Wire::Gemini => format!(r#"{{"role":"model","parts":[{{"text":{text}}}]}}"#),
        Wire::Responses => {
            let of = before.id.as_deref().unwrap_or_default();
            let id = quote(&format!("msg_{}", of.strip_prefix("resp_").unwrap_or(of)));
            format!(
                r#"{{"id":{id},"type":"message","status":"completed","role":"assistant","content":[{{"type":"output_text","text":{text},"annotations":[]}}]}}"#
            )
        }
    };
    Reply {
        messages: vec![message.into_bytes()],
        stop: StopReason::End,
        // Nothing more was used; but whoever waits for a report gets one.
        usage: before.usage.map(|_| TokenUsage::default()),
        model: before.model.clone(),
        id: before.id.clone(),
    }
}
