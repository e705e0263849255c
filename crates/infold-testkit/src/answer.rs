//! The answer of a scripted model, on any wire.

use infold_wire::tokens::{Encoding, count};
use infold_wire::{Reply, StopReason, TokenUsage, Wire, quote};

/// Separates the namespace of a tool, which only the Responses API has, from its name.
pub(crate) const NAMESPACE_END: &str = "::";

/// The answer of a model, independent of the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Reasoning that comes first.
    pub thinking: Option<String>,
    /// The text.
    pub text: Option<String>,
    /// The calls: names, and arguments as the text of a JSON object.
    pub calls: Vec<(String, String)>,
    /// Why it ends; by default derived from whether there are calls.
    pub stop: Option<StopReason>,
    /// The usage to report; by default the tokens are counted.
    pub usage: Option<TokenUsage>,
}

impl Answer {
    /// Returns the number of its tokens, and how many of them are reasoning.
    pub(crate) fn tokens(&self) -> (u64, u64) {
        let tokens_of = |text: &str| count(Encoding::O200k, text);
        let reasoning = self.thinking.as_deref().map_or(0, tokens_of);
        let said = self.text.as_deref().map_or(0, tokens_of);
        let calls = self
            .calls
            .iter()
            .map(|(name, given)| tokens_of(name) + tokens_of(given));
        (reasoning + said + calls.sum::<u64>(), reasoning)
    }

    /// Returns the answer as a reply of a wire. `number` is part of the ids, so that no other reply has the same.
    pub(crate) fn reply(&self, wire: Wire, number: u64, model: &str, usage: TokenUsage) -> Reply {
        let stop = if self.calls.is_empty() {
            StopReason::End
        } else {
            StopReason::Calls
        };
        let messages = match wire {
            Wire::Chat => vec![self.chat(number)],
            Wire::Responses => self.items(number),
            Wire::Anthropic => vec![self.anthropic(number)],
            Wire::Gemini => vec![self.gemini()],
            Wire::Ollama => vec![self.ollama()],
        };
        Reply {
            messages: messages.into_iter().map(String::into_bytes).collect(),
            stop: self.stop.clone().unwrap_or(stop),
            usage: Some(self.usage.unwrap_or(usage)),
            model: Some(model.to_owned()),
            id: None,
        }
    }

    fn chat(&self, number: u64) -> String {
        let content = self.text.as_deref().map_or("null".to_owned(), quote);
        let mut out = format!(r#"{{"role":"assistant","content":{content}"#);
        if let Some(thought) = &self.thinking {
            out += &format!(r#","reasoning_content":{}"#, quote(thought));
        }
        let calls = self.calls.iter().enumerate().map(|(at, (name, given))| {
            let (name, given) = (quote(name), quote(given));
            format!(
                r#"{{"id":"call_{number}_{at}","type":"function","function":{{"name":{name},"arguments":{given}}}}}"#
            )
        });
        out + &member("tool_calls", calls.collect()) + "}"
    }

    fn items(&self, number: u64) -> Vec<String> {
        let thought = self.thinking.iter().map(|thought| {
            let thought = quote(thought);
            format!(
                r#"{{"id":"rs_{number}","type":"reasoning","summary":[{{"type":"summary_text","text":{thought}}}],"encrypted_content":"c2VhbGVk{number}"}}"#
            )
        });
        let said = self.text.iter().map(|text| {
            let text = quote(text);
            format!(
                r#"{{"id":"msg_{number}","type":"message","status":"completed","role":"assistant","content":[{{"type":"output_text","text":{text},"annotations":[]}}]}}"#
            )
        });
        let calls = self.calls.iter().enumerate().map(|(at, (name, given))| {
            let (space, name) = match name.split_once(NAMESPACE_END) {
                Some((space, name)) => (format!(r#","namespace":{}"#, quote(space)), name),
                None => (String::new(), name.as_str()),
            };
            let (name, given) = (quote(name), quote(given));
            format!(
                r#"{{"id":"fc_{number}_{at}","type":"function_call","status":"completed","call_id":"call_{number}_{at}","name":{name}{space},"arguments":{given}}}"#
            )
        });
        thought.chain(said).chain(calls).collect()
    }

    fn anthropic(&self, number: u64) -> String {
        let thought = self.thinking.iter().map(|thought| {
            let thought = quote(thought);
            format!(r#"{{"type":"thinking","thinking":{thought},"signature":"c2lnbmVk{number}"}}"#)
        });
        let said = self.text.iter().map(|text| {
            let text = quote(text);
            format!(r#"{{"type":"text","text":{text}}}"#)
        });
        let calls = self.calls.iter().enumerate().map(|(at, (name, given))| {
            let name = quote(name);
            format!(
                r#"{{"type":"tool_use","id":"toolu_{number}_{at}","name":{name},"input":{given}}}"#
            )
        });
        let blocks: Vec<_> = thought.chain(said).chain(calls).collect();
        let blocks = blocks.join(",");
        format!(r#"{{"role":"assistant","content":[{blocks}]}}"#)
    }

    fn gemini(&self) -> String {
        let thought = self.thinking.iter().map(|thought| {
            let thought = quote(thought);
            format!(r#"{{"text":{thought},"thought":true}}"#)
        });
        let said = self
            .text
            .iter()
            .map(|text| format!(r#"{{"text":{}}}"#, quote(text)));
        let calls = self.calls.iter().map(|(name, given)| {
            let name = quote(name);
            format!(r#"{{"functionCall":{{"name":{name},"args":{given}}}}}"#)
        });
        let parts: Vec<_> = thought.chain(said).chain(calls).collect();
        let parts = parts.join(",");
        format!(r#"{{"role":"model","parts":[{parts}]}}"#)
    }

    fn ollama(&self) -> String {
        let content = quote(self.text.as_deref().unwrap_or_default());
        let mut out = format!(r#"{{"role":"assistant","content":{content}"#);
        if let Some(thought) = &self.thinking {
            out += &format!(r#","thinking":{}"#, quote(thought));
        }
        let calls = self.calls.iter().map(|(name, given)| {
            let name = quote(name);
            format!(r#"{{"function":{{"name":{name},"arguments":{given}}}}}"#)
        });
        out + &member("tool_calls", calls.collect()) + "}"
    }
}

/// Returns a member whose value is a list, with a comma before it; nothing for an empty list.
fn member(name: &str, values: Vec<String>) -> String {
    if values.is_empty() {
        String::new()
    } else {
        format!(r#","{name}":[{}]"#, values.join(","))
    }
}
