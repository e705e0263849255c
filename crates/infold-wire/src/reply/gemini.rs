//! Builds a Gemini content from the chunks of its parts.

use super::growing_json::{
    GrowingText, OnDelta, array, first_choice, object, pick, raw, text_of, token_count,
    with_members,
};
use super::reader::MissingPart;
use super::{Reply, ReplyDelta, StopReason, TokenUsage};
use crate::{Json, JsonKind};

/// Builds a content.
#[derive(Debug, Default)]
pub struct GeminiBuilder {
    parts: Vec<GeminiPart>,
    has_calls: bool,
    has_begun: bool,
    finish: Option<String>,
    /// The reason that the request did not reach the model.
    blocked: Option<String>,
    usage: Option<TokenUsage>,
    model: Option<String>,
}

/// The reasons of a reply that was declined.
const DECLINED: &str = "SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY \
    IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION";

#[derive(Debug)]
struct GeminiPart {
    start: String,
    /// The part's text, if it is a text, which may grow.
    text: Option<GrowingText>,
    thought: bool,
    /// Whether the part has only its text, so that another of its kind continues it.
    open: bool,
}

impl GeminiBuilder {
    /// Reads a chunk, or a whole reply.
    pub fn push(&mut self, json: Json<'_>, on_delta: &mut OnDelta<'_>) {
        let keys = "candidates promptFeedback usageMetadata modelVersion";
        let [candidates, feedback, usage, model] = pick(keys, json);
        self.model = text_of(model).or_else(|| self.model.take());
        let usage = usage.filter(|usage| usage.kind() == JsonKind::Object);
        self.usage = usage.map(read_usage).or(self.usage);
        let blocked = text_of(feedback.and_then(|feedback| feedback.get("blockReason")));
        self.blocked = blocked.or_else(|| self.blocked.take());
        let Some(candidate) = first_choice(candidates) else {
            return;
        };
        self.has_begun = true;
        let [content, finish] = candidate.pick(["content", "finishReason"]);
        self.finish = text_of(finish).or_else(|| self.finish.take());
        let parts = content.and_then(|content| content.get("parts"));
        for part in parts.into_iter().flat_map(Json::elements) {
            self.push_part(part, on_delta);
        }
    }

    /// Returns whether the end of the reply came: there is no marker, but the last chunk has the usage.
    pub fn is_complete(&self) -> bool {
        self.usage.is_some() && (self.blocked.is_some() || self.has_begun && self.finish.is_some())
    }

    fn push_part(&mut self, json: Json<'_>, on_delta: &mut OnDelta<'_>) {
        let keys = ["text", "thought", "functionCall", "function_call"];
        let [text, thought, camel, snake] = json.pick(keys);
        if let Some(call) = camel.or(snake) {
            let [name, args] = call.pick(["name", "args"]);
            on_delta(ReplyDelta::Call(text_of(name).unwrap_or_default()));
            on_delta(ReplyDelta::Arguments(args.map(raw).unwrap_or_default()));
            self.has_calls = true;
        }
        let thought = thought.is_some_and(Json::is_true);
        let text = text.filter(|text| text.kind() == JsonKind::String);
        let is_text = |name: Json<'_>| name.is("text") || name.is("thought");
        // A signature belongs to its part, so that part is not joined.
        let open = text.is_some() && json.members().all(|(name, _)| is_text(name));
        let grows = |last: &&mut GeminiPart| open && last.open && last.thought == thought;
        if self.parts.last_mut().filter(grows).is_none() {
            self.parts.push(GeminiPart {
                start: raw(json),
                text: text.map(|_| GrowingText::default()),
                thought,
                open,
            });
        }
        let last = self.parts.last_mut().and_then(|last| last.text.as_mut());
        if let (Some(last), Some(text)) = (last, text) {
            let delta = if thought {
                ReplyDelta::Reasoning
            } else {
                ReplyDelta::Text
            };
            last.grow(text, on_delta, delta);
        }
    }

    /// Returns the reply, if it is complete.
    pub fn finish(self, is_whole: bool) -> Result<Reply, MissingPart> {
        if !self.has_begun && self.blocked.is_none() {
            return Err(MissingPart::Everything);
        }
        if self.finish.is_none() && self.blocked.is_none() && !is_whole {
            return Err(MissingPart::End);
        }
        let parts: Vec<String> = self.parts.iter().filter_map(GeminiPart::to_json).collect();
        let message = array(&parts).map(|parts| {
            let role = Some("\"model\"".to_owned());
            object(&[("role", role), ("parts", Some(parts))]).into_bytes()
        });
        Ok(Reply {
            messages: message.into_iter().collect(),
            stop: self.stop(),
            usage: self.usage,
            model: self.model,
            ..Reply::default()
        })
    }

    fn stop(&self) -> StopReason {
        match self.finish.as_deref() {
            None if self.blocked.is_some() => StopReason::Declined,
            None | Some("STOP") if self.has_calls => StopReason::Calls,
            None | Some("STOP") => StopReason::End,
            Some("MAX_TOKENS") => StopReason::Length,
            Some(reason) if DECLINED.split_whitespace().any(|it| it == reason) => {
                StopReason::Declined
            }
            Some(other) => StopReason::Other(other.to_owned()),
        }
    }
}

impl GeminiPart {
    /// Returns the part in its unstreamed form; `None` if it is empty.
    fn to_json(&self) -> Option<String> {
        let Some(text) = &self.text else {
            return Some(self.start.clone());
        };
        if self.open && text.is_empty() {
            return None;
        }
        let start = Json::checked(self.start.as_bytes());
        Some(with_members(start, &[("text", Some(text.raw()))]))
    }
}

/// Reads usage, in which the prompt includes tokens from a cache, but the reply no thoughts.
fn read_usage(usage: Json<'_>) -> TokenUsage {
    let keys = "promptTokenCount cachedContentTokenCount candidatesTokenCount thoughtsTokenCount toolUsePromptTokenCount";
    let [sent, cached, said, thoughts, tools] = pick(keys, usage).map(token_count);
    let cache_read = cached.min(sent);
    TokenUsage {
        input: sent - cache_read + tools,
        cache_read,
        cache_write: 0,
        output: said + thoughts,
        reasoning: thoughts,
    }
}
