//! Gemini: chunks of the parts of one content.

use super::reader::Missing;
use super::text::{Hear, Text, array, changed, count, object, raw, word};
use super::{Delta, Reply, Reported, Stop};
use crate::{Json, Kind};

/// Puts the chunks of a content together.
#[derive(Debug, Default)]
pub struct Gemini {
    parts: Vec<Part>,
    calls: bool,
    begun: bool,
    finish: Option<String>,
    /// Why the question was not even put to the model.
    blocked: Option<String>,
    usage: Option<Reported>,
    model: Option<String>,
}

#[derive(Debug)]
struct Part {
    start: String,
    /// What it says, if it is a text, which may grow.
    text: Option<Text>,
    thought: bool,
    /// It has nothing but its text, so another of its kind continues it.
    open: bool,
}

impl Gemini {
    /// Takes a chunk, or a whole reply.
    pub fn take(&mut self, json: Json<'_>, hear: &mut Hear<'_>) {
        let keys = [
            "candidates",
            "promptFeedback",
            "usageMetadata",
            "modelVersion",
        ];
        let [candidates, feedback, usage, model] = json.pick(keys);
        self.model = word(model).or_else(|| self.model.take());
        let usage = usage.filter(|usage| usage.kind() == Kind::Object);
        self.usage = usage.map(reported).or(self.usage);
        let blocked = word(feedback.and_then(|feedback| feedback.get("blockReason")));
        self.blocked = blocked.or_else(|| self.blocked.take());
        let first = candidates
            .into_iter()
            .flat_map(Json::elements)
            .find(|candidate| {
                let index = candidate.get("index").and_then(Json::number);
                index.is_none_or(|index| index == 0.0)
            });
        let Some(candidate) = first else {
            return;
        };
        self.begun = true;
        let [content, finish] = candidate.pick(["content", "finishReason"]);
        self.finish = word(finish).or_else(|| self.finish.take());
        let parts = content.and_then(|content| content.get("parts"));
        for part in parts.into_iter().flat_map(Json::elements) {
            self.part(part, hear);
        }
    }

    /// Nothing of it is to come: there is no mark, but what ends it comes with its count.
    pub fn is_complete(&self) -> bool {
        self.usage.is_some() && (self.blocked.is_some() || self.begun && self.finish.is_some())
    }

    fn part(&mut self, json: Json<'_>, hear: &mut Hear<'_>) {
        let [text, thought, call] = json.pick(["text", "thought", "functionCall"]);
        if let Some(call) = call {
            let [name, args] = call.pick(["name", "args"]);
            hear(Delta::Call(word(name).unwrap_or_default()));
            hear(Delta::Arguments(args.map(raw).unwrap_or_default()));
            self.calls = true;
        }
        let thought = thought.is_some_and(Json::is_true);
        let text = text.filter(|text| text.kind() == Kind::String);
        let known = |name: Json<'_>| name.is("text") || name.is("thought");
        // A signature belongs to the part it came with, so that part stays by itself.
        let open = text.is_some() && json.members().all(|(name, _)| known(name));
        let grows = |last: &&mut Part| open && last.open && last.thought == thought;
        if self.parts.last_mut().filter(grows).is_none() {
            self.parts.push(Part {
                start: raw(json),
                text: text.map(|_| Text::default()),
                thought,
                open,
            });
        }
        let last = self.parts.last_mut().and_then(|last| last.text.as_mut());
        if let (Some(last), Some(text)) = (last, text) {
            let delta = if thought {
                Delta::Reasoning
            } else {
                Delta::Text
            };
            last.hear(text, hear, delta);
        }
    }

    /// Returns the reply, if it is complete.
    pub fn end(self, closed: bool) -> Result<Reply, Missing> {
        if !self.begun && self.blocked.is_none() {
            return Err(Missing::Everything);
        }
        if self.finish.is_none() && self.blocked.is_none() && !closed {
            return Err(Missing::End);
        }
        let parts: Vec<String> = self.parts.iter().filter_map(Part::written).collect();
        let message = array(&parts).map(|parts| {
            let role = Some("\"model\"".to_owned());
            object(&[("role", role), ("parts", Some(parts))]).into_bytes()
        });
        Ok(Reply {
            messages: message.into_iter().collect(),
            stop: self.stop(),
            usage: self.usage,
            model: self.model,
            id: None,
        })
    }

    fn stop(&self) -> Stop {
        match self.finish.as_deref() {
            None if self.blocked.is_some() => Stop::Declined,
            None | Some("STOP") if self.calls => Stop::Calls,
            None | Some("STOP") => Stop::End,
            Some("MAX_TOKENS") => Stop::Length,
            Some(
                "SAFETY"
                | "RECITATION"
                | "BLOCKLIST"
                | "PROHIBITED_CONTENT"
                | "SPII"
                | "IMAGE_SAFETY"
                | "IMAGE_PROHIBITED_CONTENT"
                | "IMAGE_RECITATION",
            ) => Stop::Declined,
            Some(other) => Stop::Other(other.to_owned()),
        }
    }
}

impl Part {
    /// The part as it would have come in one piece; none if nothing is in it.
    fn written(&self) -> Option<String> {
        let Some(text) = &self.text else {
            return Some(self.start.clone());
        };
        if self.open && text.is_empty() {
            return None;
        }
        let start = Json::checked(self.start.as_bytes());
        Some(changed(start, &[("text", Some(text.raw()))]))
    }
}

/// What was sent includes what came from a cache; thoughts are counted beside the reply.
fn reported(usage: Json<'_>) -> Reported {
    let keys = [
        "promptTokenCount",
        "cachedContentTokenCount",
        "candidatesTokenCount",
        "thoughtsTokenCount",
        "toolUsePromptTokenCount",
    ];
    let [sent, cached, said, thoughts, tools] = usage.pick(keys).map(count);
    let cache_read = cached.min(sent);
    Reported {
        input: sent - cache_read + tools,
        cache_read,
        cache_write: 0,
        output: said + thoughts,
        reasoning: thoughts,
    }
}
