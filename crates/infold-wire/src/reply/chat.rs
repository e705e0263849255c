//! Builds a chat completion from its chunks: the deltas of one message, and pieces of tool calls, which have an index.

use super::chat_calls::CallPlaces;
use super::growing_json::{
    GrowingText, OnDelta, array, first_choice, object, pick, raw, text_of, token_count,
    with_members,
};
use super::reader::MissingPart;
use super::{Reply, ReplyDelta, StopReason, TokenUsage};
use crate::{Json, JsonKind, quote};

/// Builds a chat completion.
#[derive(Debug, Default)]
pub struct ChatBuilder {
    content: GrowingText,
    /// Content that is a list of parts.
    parts: PartList,
    refusal: GrowingText,
    reasoning_content: GrowingText,
    reasoning: GrowingText,
    reasoning_details: PartList,
    annotations: Vec<String>,
    images: Vec<String>,
    audio: Audio,
    calls: CallList,
    /// The call in `function_call`, the predecessor of `tool_calls`.
    function: Option<CallBuilder>,
    /// Whether choice 0 has begun.
    has_begun: bool,
    /// Whether the message arrived unstreamed.
    is_whole: bool,
    /// The last `finish_reason`.
    finish: Option<String>,
    /// Whether `[DONE]` arrived.
    done: bool,
    usage: Option<TokenUsage>,
    model: Option<String>,
}

impl ChatBuilder {
    /// Reads a chunk, or a whole completion.
    pub fn push(&mut self, json: Json<'_>, on_delta: &mut OnDelta<'_>) {
        if self.done {
            return;
        }
        let [model, choices, usage, groq] = json.pick(["model", "choices", "usage", "x_groq"]);
        self.model = text_of(model).or_else(|| self.model.take());
        let choice = first_choice(choices);
        // Usage in other places than the usual one: Groq's own member, or the choice.
        let mut elsewhere = groq.and_then(|groq| groq.get("usage"));
        if let Some(choice) = choice {
            let keys = ["delta", "message", "finish_reason", "usage"];
            let [delta, message, finish, usage] = choice.pick(keys);
            self.has_begun = true;
            self.is_whole |= message.is_some_and(|message| message.kind() == JsonKind::Object);
            // The calls of an unstreamed message are complete, each by itself.
            self.calls.are_whole = delta.is_none();
            for (key, value) in delta.or(message).into_iter().flat_map(Json::members) {
                self.push_member(&key.name(), value, on_delta);
            }
            self.finish = text_of(finish).or_else(|| self.finish.take());
            elsewhere = usage.or(elsewhere);
        }
        let usage = usage.filter(|usage| usage.kind() == JsonKind::Object);
        let elsewhere = elsewhere.filter(|usage| usage.kind() == JsonKind::Object);
        self.usage = usage.or(elsewhere).map(read_usage).or(self.usage);
    }

    /// Records that `[DONE]` arrived, the marker after the last chunk.
    pub fn mark_done(&mut self) {
        self.done = true;
    }

    /// Returns whether the end of the reply arrived.
    pub fn is_complete(&self) -> bool {
        self.has_begun && self.done
    }

    fn push_member(&mut self, name: &[u8], value: Json<'_>, on_delta: &mut OnDelta<'_>) {
        match name {
            b"content" if value.kind() == JsonKind::Array => {
                for part in value.elements() {
                    self.parts.push(part, on_delta, ReplyDelta::Text);
                }
            }
            b"content" => self.content.grow(value, on_delta, ReplyDelta::Text),
            b"refusal" => self.refusal.grow(value, on_delta, ReplyDelta::Text),
            b"reasoning_content" => {
                self.reasoning_content
                    .grow(value, on_delta, ReplyDelta::Reasoning)
            }
            // Some servers send the same text under both names.
            b"reasoning" if self.reasoning_content.has_chunk() => self.reasoning.push(value),
            b"reasoning" => self.reasoning.grow(value, on_delta, ReplyDelta::Reasoning),
            b"reasoning_details" => {
                let silent = &mut |_| {};
                for part in value.elements() {
                    self.reasoning_details
                        .push(part, silent, ReplyDelta::Reasoning);
                }
            }
            b"annotations" => self.annotations.extend(value.elements().map(raw)),
            b"images" => self.images.extend(value.elements().map(raw)),
            b"audio" => self.audio.push(value, on_delta),
            b"tool_calls" => value
                .elements()
                .for_each(|call| self.calls.push(call, on_delta)),
            b"function_call" if value.kind() == JsonKind::Object => {
                let call = self.function.get_or_insert_default();
                call.push_function(value, on_delta, true);
            }
            _ => {}
        }
    }

    /// Returns the reply, if it is complete. `is_whole` says that the body is a single JSON object, not a stream.
    pub fn finish(self, is_whole: bool) -> Result<Reply, MissingPart> {
        if !self.has_begun {
            return Err(MissingPart::Everything);
        }
        if self.finish.is_none() && !self.done && !self.is_whole && !is_whole {
            return Err(MissingPart::End);
        }
        Ok(Reply {
            messages: self.message().into_iter().collect(),
            stop: self.stop(),
            usage: self.usage,
            model: self.model,
            ..Reply::default()
        })
    }

    fn stop(&self) -> StopReason {
        let calls = !self.calls.calls.is_empty() || self.function.is_some();
        match self.finish.as_deref() {
            Some("length" | "model_length") => StopReason::Length,
            Some("content_filter" | "sensitive") => StopReason::Declined,
            Some("tool_calls" | "function_call") => StopReason::Calls,
            // Some servers always send `stop`.
            None | Some("stop") if calls => StopReason::Calls,
            None | Some("stop") if !self.refusal.is_empty() => StopReason::Declined,
            None | Some("stop") => StopReason::End,
            Some(other) => StopReason::Other(other.to_owned()),
        }
    }

    /// Returns the message as an unstreamed reply would have it; none if it has no content.
    fn message(&self) -> Option<Vec<u8>> {
        let parts = array(&self.parts.to_json());
        let calls = array(&self.calls.to_json());
        let members = [
            ("refusal", self.refusal.non_empty()),
            ("reasoning_content", self.reasoning_content.non_empty()),
            ("reasoning", self.reasoning.non_empty()),
            (
                "reasoning_details",
                array(&self.reasoning_details.to_json()),
            ),
            ("annotations", array(&self.annotations)),
            ("images", array(&self.images)),
            ("audio", self.audio.to_json()),
            (
                "function_call",
                self.function.as_ref().map(CallBuilder::function_json),
            ),
            ("tool_calls", calls),
        ];
        let has = |name: &str| {
            members
                .iter()
                .any(|(key, value)| *key == name && value.is_some())
        };
        let content = parts.or_else(|| self.content.non_empty());
        let has_content = content.is_some() || self.content.has_chunk();
        if !has_content && members.iter().all(|(_, value)| value.is_none()) {
            return None;
        }
        // When the message is sent back, null content is accepted only beside one of these members; reasoning is not
        // enough.
        let answers = ["refusal", "audio", "function_call", "tool_calls"];
        let empty = if answers.into_iter().any(has) {
            "null"
        } else {
            "\"\""
        };
        let mut all = vec![
            ("role", Some("\"assistant\"".to_owned())),
            ("content", content.or_else(|| Some(empty.to_owned()))),
        ];
        all.extend(members);
        Some(object(&all).into_bytes())
    }
}

/// Reads usage. On this wire, the tokens of the prompt include those read from a cache.
fn read_usage(usage: Json<'_>) -> TokenUsage {
    let keys = "prompt_tokens completion_tokens total_tokens prompt_tokens_details completion_tokens_details prompt_cache_hit_tokens cached_tokens";
    let [sent, output, total, sent_of, output_of, hit, cached] = pick(keys, usage);
    fn of<'a>(details: Option<Json<'a>>, name: &str) -> Option<Json<'a>> {
        details.and_then(|details| details.get(name))
    }
    let read = of(sent_of, "cached_tokens").or(hit).or(cached);
    let write = token_count(of(sent_of, "cache_write_tokens"));
    let [sent, read, output] = [sent, read, output].map(token_count);
    let reasoning = token_count(of(output_of, "reasoning_tokens"));
    // Some providers count reasoning separately from the reply; only the total includes both.
    let is_apart = token_count(total) >= sent + output + reasoning;
    let output = output + if is_apart { reasoning } else { 0 };
    TokenUsage::including_cache(sent, read, write, output, reasoning)
}

/// The tool calls so far.
#[derive(Debug, Default)]
struct CallList {
    calls: Vec<CallBuilder>,
    /// Finds the call in `calls` that a piece belongs to.
    places: CallPlaces,
    /// Whether each element is a complete call.
    are_whole: bool,
}

#[derive(Debug, Default)]
struct CallBuilder {
    index: u64,
    /// A JSON string, like the members that follow.
    id: Option<String>,
    kind: Option<String>,
    name: GrowingText,
    arguments: GrowingText,
    /// Whether the call is of a custom tool, which takes a text.
    is_custom: bool,
    /// Signatures of reasoning that some gateways want back.
    extra: Option<String>,
}

impl CallList {
    fn push(&mut self, json: Json<'_>, on_delta: &mut OnDelta<'_>) {
        let keys = ["index", "id", "type", "function", "custom", "extra_content"];
        let [index, id, kind, function, custom, extra] = json.pick(keys);
        let index = index.filter(|index| index.kind() == JsonKind::Number);
        let index = index.map(|index| token_count(Some(index)));
        let string = |json: Json<'_>| json.kind() == JsonKind::String && json.bytes() != b"\"\"";
        let id = id.filter(|id| string(*id));
        let inner = function.or(custom).unwrap_or(json);
        let at = self.places.place(json, self.are_whole);
        if at == self.calls.len() {
            self.calls.push(CallBuilder {
                index: index.unwrap_or(at as u64),
                ..CallBuilder::default()
            });
        }
        let last = at + 1 == self.calls.len();
        let call = &mut self.calls[at];
        call.is_custom |= custom.is_some_and(|custom| !custom.is_null());
        call.id = call.id.take().or_else(|| id.map(raw));
        call.kind = call
            .kind
            .take()
            .or_else(|| kind.filter(|kind| string(*kind)).map(raw));
        call.extra = extra
            .filter(|extra| !extra.is_null())
            .map(raw)
            .or(call.extra.take());
        call.push_function(inner, on_delta, last);
    }

    fn to_json(&self) -> Vec<String> {
        let mut calls: Vec<&CallBuilder> = self.calls.iter().collect();
        calls.sort_by_key(|call| call.index);
        calls.into_iter().map(CallBuilder::to_json).collect()
    }
}

impl CallBuilder {
    /// Reads a piece of the name and the arguments. Arguments are reported only for the last call, because a delta of
    /// arguments continues the call that began last.
    fn push_function(&mut self, json: Json<'_>, on_delta: &mut OnDelta<'_>, last: bool) {
        let [name, arguments, input] = json.pick(["name", "arguments", "input"]);
        // A name may be repeated, and may come in several chunks.
        if let Some(name) = name
            && !self.name.is(name)
        {
            self.name.grow(name, on_delta, ReplyDelta::Call);
        }
        let Some(given) = arguments.or(input).filter(|given| !given.is_null()) else {
            return;
        };
        match given.kind() {
            JsonKind::String => self.arguments.push(given),
            // Some servers send an object instead of its text.
            _ => self.arguments.push_raw(&quote(&raw(given))),
        }
        if last {
            self.arguments.report(on_delta, ReplyDelta::Arguments);
        }
    }

    fn function_json(&self) -> String {
        let given = if self.is_custom { "input" } else { "arguments" };
        object(&[
            ("name", Some(self.name.raw())),
            (given, Some(self.arguments.raw())),
        ])
    }

    fn to_json(&self) -> String {
        let kind = if self.is_custom { "custom" } else { "function" };
        let named = || Some(format!("\"{kind}\""));
        object(&[
            ("id", self.id.clone()),
            ("type", self.kind.clone().or_else(named)),
            (kind, Some(self.function_json())),
            ("extra_content", self.extra.clone()),
        ])
    }
}

/// A list of objects that comes in chunks: a chunk with a text may continue the last object.
#[derive(Debug, Default)]
struct PartList(Vec<PartBuilder>);

#[derive(Debug)]
struct PartBuilder {
    /// The first chunk of the part.
    start: String,
    /// The type and the index of the part.
    identity: [Option<String>; 2],
    text: GrowingText,
    summary: GrowingText,
    signature: Option<String>,
}

impl PartList {
    fn push(
        &mut self,
        json: Json<'_>,
        on_delta: &mut OnDelta<'_>,
        delta: fn(String) -> ReplyDelta,
    ) {
        let keys = ["type", "index", "text", "summary", "signature"];
        let [kind, index, text, summary, signature] = json.pick(keys);
        let identity = [kind.map(raw), index.map(raw)];
        let signature = signature.filter(|signature| !signature.is_null()).map(raw);
        let grows = text.or(summary).is_some() || signature.is_some();
        let last = self.0.last_mut();
        let last =
            last.filter(|last| grows && last.identity == identity && last.signature.is_none());
        if last.is_none() {
            self.0.push(PartBuilder {
                start: raw(json),
                identity,
                text: GrowingText::default(),
                summary: GrowingText::default(),
                signature: None,
            });
        }
        let Some(last) = self.0.last_mut() else {
            return;
        };
        if let Some(text) = text {
            last.text.grow(text, on_delta, delta);
        }
        if let Some(summary) = summary {
            last.summary.push(summary);
        }
        last.signature = signature;
    }

    fn to_json(&self) -> Vec<String> {
        let to_json = |part: &PartBuilder| {
            let start = Json::checked(part.start.as_bytes());
            let mut changes = Vec::new();
            for (name, text) in [("text", &part.text), ("summary", &part.summary)] {
                if text.has_chunk() {
                    changes.push((name, Some(text.raw())));
                }
            }
            if part.signature.is_some() {
                changes.push(("signature", part.signature.clone()));
            }
            with_members(start, &changes)
        };
        self.0.iter().map(to_json).collect()
    }
}

/// A spoken reply.
#[derive(Debug, Default)]
struct Audio {
    id: Option<String>,
    data: GrowingText,
    expires: Option<String>,
    transcript: GrowingText,
}

impl Audio {
    fn push(&mut self, json: Json<'_>, on_delta: &mut OnDelta<'_>) {
        let [id, data, expires, transcript] = json.pick(["id", "data", "expires_at", "transcript"]);
        self.id = self.id.take().or_else(|| id.map(raw));
        self.expires = expires.map(raw).or_else(|| self.expires.take());
        if let Some(data) = data {
            self.data.push(data);
        }
        if let Some(transcript) = transcript {
            self.transcript.grow(transcript, on_delta, ReplyDelta::Text);
        }
    }

    fn to_json(&self) -> Option<String> {
        self.id.as_ref()?;
        Some(object(&[
            ("id", self.id.clone()),
            ("data", self.data.non_empty()),
            ("expires_at", self.expires.clone()),
            ("transcript", self.transcript.non_empty()),
        ]))
    }
}
