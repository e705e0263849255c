//! Builds an Ollama reply from JSON lines, the last of which is `done`.

use super::growing_json::{GrowingText, OnDelta, array, object, pick, raw, text_of, token_count};
use super::reader::MissingPart;
use super::{Reply, ReplyDelta, StopReason, TokenUsage};
use crate::Json;

/// Builds a reply.
#[derive(Debug, Default)]
pub struct OllamaBuilder {
    content: GrowingText,
    thinking: GrowingText,
    images: Vec<String>,
    calls: Vec<String>,
    has_begun: bool,
    done: bool,
    reason: Option<String>,
    usage: Option<TokenUsage>,
    model: Option<String>,
}

impl OllamaBuilder {
    /// Reads a line, or a whole reply.
    pub fn push(&mut self, json: Json<'_>, on_delta: &mut OnDelta<'_>) {
        let keys = "model message done done_reason prompt_eval_count eval_count";
        let [model, message, done, reason, sent, output] = pick(keys, json);
        self.model = text_of(model).or_else(|| self.model.take());
        self.has_begun |= message.is_some();
        for (key, value) in message.into_iter().flat_map(Json::members) {
            match &*key.name() {
                b"content" => self.content.grow(value, on_delta, ReplyDelta::Text),
                b"thinking" => self.thinking.grow(value, on_delta, ReplyDelta::Reasoning),
                b"images" => self.images.extend(value.elements().map(raw)),
                b"tool_calls" => value
                    .elements()
                    .for_each(|call| self.push_call(call, on_delta)),
                _ => {}
            }
        }
        self.done |= done.is_some_and(Json::is_true);
        self.reason = text_of(reason).or_else(|| self.reason.take());
        if sent.or(output).is_some() {
            self.usage = Some(TokenUsage {
                input: token_count(sent),
                output: token_count(output),
                ..TokenUsage::default()
            });
        }
    }

    /// Returns whether the end of the reply came.
    pub fn is_complete(&self) -> bool {
        self.done
    }

    fn push_call(&mut self, call: Json<'_>, on_delta: &mut OnDelta<'_>) {
        let function = call.get("function").unwrap_or(call);
        let [name, arguments] = function.pick(["name", "arguments"]);
        on_delta(ReplyDelta::Call(text_of(name).unwrap_or_default()));
        on_delta(ReplyDelta::Arguments(
            arguments.map(raw).unwrap_or_default(),
        ));
        self.calls.push(raw(call));
    }

    /// Returns the reply, if it is complete.
    pub fn finish(self, is_whole: bool) -> Result<Reply, MissingPart> {
        if !self.has_begun && !self.done {
            return Err(MissingPart::Everything);
        }
        if !self.done && !is_whole {
            return Err(MissingPart::End);
        }
        let stop = match self.reason.as_deref() {
            Some("length") => StopReason::Length,
            None | Some("stop") if !self.calls.is_empty() => StopReason::Calls,
            None | Some("stop") => StopReason::End,
            Some(other) => StopReason::Other(other.to_owned()),
        };
        let message = object(&[
            ("role", Some("\"assistant\"".to_owned())),
            ("content", Some(self.content.raw())),
            ("thinking", self.thinking.non_empty()),
            ("images", array(&self.images)),
            ("tool_calls", array(&self.calls)),
        ]);
        Ok(Reply {
            messages: vec![message.into_bytes()],
            stop,
            usage: self.usage,
            model: self.model,
            ..Reply::default()
        })
    }
}
