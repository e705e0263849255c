//! Builds an Anthropic message of content blocks that start, grow and stop.

use std::collections::HashMap;

use super::growing_json::{
    GrowingText, OnDelta, array, object, pick, raw, text_of, token_count, with_members,
};
use super::reader::MissingPart;
use super::{Reply, ReplyDelta, StopReason, TokenUsage};
use crate::{Json, JsonKind};

/// Builds a message.
#[derive(Debug, Default)]
pub struct AnthropicBuilder {
    blocks: Vec<BlockBuilder>,
    by_index: HashMap<u64, usize>,
    has_begun: bool,
    stopped: bool,
    reason: Option<String>,
    usage: Option<TokenUsage>,
    model: Option<String>,
}

#[derive(Debug, Default)]
struct BlockBuilder {
    /// The block as it started.
    start: String,
    text: GrowingText,
    thinking: GrowingText,
    signature: Option<String>,
    input: GrowingText,
    citations: Vec<String>,
    /// A compaction of earlier messages, plain and encrypted.
    compaction: [Option<String>; 2],
}

impl AnthropicBuilder {
    /// Reads an event, or a whole message.
    pub fn push(&mut self, name: &[u8], json: Json<'_>, on_delta: &mut OnDelta<'_>) {
        let keys = "type message index content_block delta usage";
        let [kind, message, index, block, delta, usage] = pick(keys, json);
        let kind = kind.map(Json::name);
        match kind.as_deref().unwrap_or(name) {
            b"message_start" => {
                if let Some(message) = message {
                    self.push_message(message, on_delta);
                }
            }
            b"message" => {
                self.push_message(json, on_delta);
                self.stopped = true;
            }
            b"content_block_start" => {
                if let Some(block) = block {
                    self.by_index.insert(token_count(index), self.blocks.len());
                    self.blocks.push(BlockBuilder::start(block, on_delta));
                }
            }
            b"content_block_delta" => {
                let at = self.by_index.get(&token_count(index)).copied();
                if let (Some(at), Some(delta)) = (at, delta) {
                    let last = at + 1 == self.blocks.len();
                    self.blocks[at].grow(delta, on_delta, last);
                }
            }
            b"message_delta" => {
                let reason = text_of(delta.and_then(|delta| delta.get("stop_reason")));
                self.reason = reason.or_else(|| self.reason.take());
                self.add_usage(usage);
            }
            b"message_stop" => self.stopped = true,
            _ => {}
        }
    }

    /// Returns whether the end of the reply came.
    pub fn is_complete(&self) -> bool {
        self.has_begun && self.stopped
    }

    fn push_message(&mut self, json: Json<'_>, on_delta: &mut OnDelta<'_>) {
        let [model, content, reason, usage] =
            json.pick(["model", "content", "stop_reason", "usage"]);
        self.has_begun = true;
        self.model = text_of(model);
        self.reason = text_of(reason);
        self.add_usage(usage);
        for block in content.into_iter().flat_map(Json::elements) {
            self.blocks.push(BlockBuilder::start(block, on_delta));
        }
    }

    /// Adds usage: counts only grow, and missing ones keep their value.
    fn add_usage(&mut self, usage: Option<Json<'_>>) {
        let Some(usage) = usage.filter(|usage| usage.kind() == JsonKind::Object) else {
            return;
        };
        let keys = "input_tokens cache_read_input_tokens cache_creation_input_tokens output_tokens";
        let [input, read, write, output] = pick(keys, usage).map(token_count);
        let details = usage.get("output_tokens_details");
        let thinking = token_count(details.and_then(|details| details.get("thinking_tokens")));
        let total = self.usage.get_or_insert_default();
        total.input = total.input.max(input);
        total.cache_read = total.cache_read.max(read);
        total.cache_write = total.cache_write.max(write);
        total.output = total.output.max(output);
        total.reasoning = total.reasoning.max(thinking).min(total.output);
    }

    /// Returns the reply, if it is complete.
    pub fn finish(self) -> Result<Reply, MissingPart> {
        if !self.has_begun {
            return Err(MissingPart::Everything);
        }
        if self.reason.is_none() && !self.stopped {
            return Err(MissingPart::End);
        }
        let blocks: Vec<String> = self
            .blocks
            .iter()
            .filter_map(BlockBuilder::to_json)
            .collect();
        let message = array(&blocks).map(|blocks| {
            let role = Some("\"assistant\"".to_owned());
            object(&[("role", role), ("content", Some(blocks))]).into_bytes()
        });
        Ok(Reply {
            messages: message.into_iter().collect(),
            stop: match self.reason.as_deref() {
                None | Some("end_turn" | "stop_sequence") => StopReason::End,
                Some("max_tokens" | "model_context_window_exceeded") => StopReason::Length,
                Some("tool_use") => StopReason::Calls,
                Some("refusal") => StopReason::Declined,
                Some(other) => StopReason::Other(other.to_owned()),
            },
            usage: self.usage,
            model: self.model,
            ..Reply::default()
        })
    }
}

/// The members that a compaction block grows by.
const COMPACTION_MEMBERS: [&str; 2] = ["content", "encrypted_content"];

impl BlockBuilder {
    fn start(json: Json<'_>, on_delta: &mut OnDelta<'_>) -> BlockBuilder {
        let mut block = BlockBuilder {
            start: raw(json),
            ..BlockBuilder::default()
        };
        let keys = ["type", "text", "thinking", "signature", "citations", "name"];
        let [kind, text, thinking, signature, citations, name] = json.pick(keys);
        let kind = kind.map(Json::name).unwrap_or_default();
        let is_call = kind.ends_with(b"tool_use");
        if is_call {
            on_delta(ReplyDelta::Call(text_of(name).unwrap_or_default()));
        }
        match &*kind {
            b"text" => block.text.grow(text, on_delta, ReplyDelta::Text),
            b"thinking" => {
                block
                    .thinking
                    .grow(thinking, on_delta, ReplyDelta::Reasoning);
                block.signature = signature.map(raw);
            }
            _ => {}
        }
        let citations = citations.into_iter().flat_map(Json::elements);
        block.citations = citations.map(raw).collect();
        let input = json.get("input").filter(|_| is_call);
        if let Some(input) = input.filter(|input| input.members().next().is_some()) {
            on_delta(ReplyDelta::Arguments(raw(input)));
        }
        block
    }

    fn grow(&mut self, delta: Json<'_>, on_delta: &mut OnDelta<'_>, last: bool) {
        let keys = ["text", "thinking", "signature", "partial_json", "citation"];
        let [text, thinking, signature, input, citation] = delta.pick(keys);
        self.text.grow(text, on_delta, ReplyDelta::Text);
        self.thinking
            .grow(thinking, on_delta, ReplyDelta::Reasoning);
        self.signature = signature.map(raw).or_else(|| self.signature.take());
        if crate::message::block_is(delta, "compaction_delta") {
            self.compaction = delta.pick(COMPACTION_MEMBERS).map(|form| form.map(raw));
        }
        if let Some(input) = input {
            self.input.push(input);
            if last {
                self.input.report(on_delta, ReplyDelta::Arguments);
            }
        }
        self.citations.extend(citation.map(raw));
    }

    /// Returns the block in its unstreamed form; `None` if it is an empty text.
    fn to_json(&self) -> Option<String> {
        let start = Json::checked(self.start.as_bytes());
        let is = |name: &str| crate::message::block_is(start, name);
        let mut changes = Vec::new();
        if is("text") {
            // Providers refuse an empty text that is sent back.
            changes.push(("text", Some(self.text.non_empty()?)));
            changes.push(("citations", array(&self.citations)));
        } else if is("thinking") {
            changes.push(("thinking", Some(self.thinking.raw())));
            changes.push(("signature", self.signature.clone()));
        } else if !self.input.is_empty() {
            changes.push(("input", Some(self.input.object())));
        }
        for (name, form) in COMPACTION_MEMBERS.into_iter().zip(&self.compaction) {
            if form.is_some() {
                changes.push((name, form.clone()));
            }
        }
        Some(with_members(start, &changes))
    }
}
