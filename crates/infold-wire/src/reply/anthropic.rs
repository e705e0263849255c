//! Builds a reply from Anthropic's stream, whose content blocks start, grow by deltas and stop, or from a whole
//! message.

use std::collections::HashMap;

use super::growing_json::{
    GrowingText, OnDelta, array, object, pick, raw, text_of, token_count, with_members,
};
use super::reader::MissingPart;
use super::{Reply, ReplyDelta, StopReason, TokenUsage};
use crate::{Json, JsonKind};

/// Builds the reply of one message.
#[derive(Debug, Default)]
pub struct AnthropicBuilder {
    blocks: Vec<BlockBuilder>,
    /// The position of each block in `blocks`, by its index in the stream.
    by_index: HashMap<u64, usize>,
    /// Whether the start of the message came.
    has_begun: bool,
    /// Whether the end of the message came.
    is_stopped: bool,
    /// The reason why the model stopped, `stop_reason`.
    reason: Option<String>,
    usage: Option<TokenUsage>,
    model: Option<String>,
}

/// Builds a content block.
#[derive(Debug, Default)]
struct BlockBuilder {
    /// The JSON of the block as it started: members that never grow are taken from it.
    start: String,
    text: GrowingText,
    thinking: GrowingText,
    /// As JSON.
    signature: Option<String>,
    /// The arguments of a call, which come as pieces of JSON text.
    input: GrowingText,
    citations: Vec<String>,
    /// A compaction of earlier messages, plain and encrypted.
    compaction: [Option<String>; 2],
}

impl AnthropicBuilder {
    /// Reads an event of the stream, or a whole message. `name` is the name of the event, used if the JSON has no type.
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
                self.is_stopped = true;
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
                    let is_last = at + 1 == self.blocks.len();
                    self.blocks[at].grow(delta, on_delta, is_last);
                }
            }
            b"message_delta" => {
                let reason = text_of(delta.and_then(|delta| delta.get("stop_reason")));
                self.reason = reason.or_else(|| self.reason.take());
                self.add_usage(usage);
            }
            b"message_stop" => self.is_stopped = true,
            _ => {}
        }
    }

    /// Returns whether the message has both begun and ended.
    pub fn is_complete(&self) -> bool {
        self.has_begun && self.is_stopped
    }

    /// Reads a message: the start of a streamed one, or a whole one.
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

    /// Merges a usage report. Several events have one, with totals so far: the larger of two counts is kept, and a
    /// missing one counts as zero.
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

    /// Returns the reply; the error is the part that is missing.
    pub fn finish(self) -> Result<Reply, MissingPart> {
        if !self.has_begun {
            return Err(MissingPart::Everything);
        }
        if self.reason.is_none() && !self.is_stopped {
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
    /// Starts a block, which is complete already if it belongs to a whole message.
    fn start(json: Json<'_>, on_delta: &mut OnDelta<'_>) -> BlockBuilder {
        let mut block = BlockBuilder {
            start: raw(json),
            ..BlockBuilder::default()
        };
        let keys = ["type", "text", "thinking", "signature", "citations", "name"];
        let [kind, text, thinking, signature, citations, name] = json.pick(keys);
        let kind = kind.map(Json::name).unwrap_or_default();
        // Calls of the provider's own tools have types such as `server_tool_use`.
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

    /// Adds a delta. Arguments are reported only for the last block: the listener takes them as those of the call that
    /// began last.
    fn grow(&mut self, delta: Json<'_>, on_delta: &mut OnDelta<'_>, is_last: bool) {
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
            if is_last {
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
