//! The reply to a client whose model still makes look-ups when no more are answered.

use crate::{Reply, StopReason, TokenUsage, Wire, quote};

/// The result of a look-up that is not answered.
pub const NO_LOOKUP_LEFT: &str = "no look-ups are left in this turn: answer with what you have";

/// The reason that a model gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// The model continued to look things up.
    UsedUp,
    /// The model continued to make calls that a policy refuses.
    Refused,
    /// The model reached its token limit during a call.
    Cut,
}

impl NoAnswer {
    /// Returns the text that the client gets instead of an answer.
    fn text(self) -> &'static str {
        match self {
            NoAnswer::UsedUp => {
                "[Infold: the look-ups are used up, and the model asked for more of them instead of answering.]"
            }
            NoAnswer::Refused => {
                "[Infold: the model went on making calls that are refused instead of answering.]"
            }
            NoAnswer::Cut => {
                "[Infold: the model reached its limit of tokens within a call, before it answered.]"
            }
        }
    }
}

/// Returns a reply that replaces the model's missing answer; `before` is the model's last reply.
pub fn reply_in_place(wire: Wire, before: &Reply, why: NoAnswer) -> Reply {
    let text = quote(why.text());
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
        stop: match why {
            NoAnswer::Cut => StopReason::Length,
            NoAnswer::UsedUp | NoAnswer::Refused => StopReason::End,
        },
        // Nothing more was used, but a client that waits for a usage report gets one.
        usage: before.usage.map(|_| TokenUsage::default()),
        model: before.model.clone(),
        id: before.id.clone(),
    }
}
