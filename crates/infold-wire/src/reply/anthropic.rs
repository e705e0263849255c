//! Anthropic messages: content blocks that start, grow and stop.

use std::collections::HashMap;

use super::reader::Missing;
use super::text::{Hear, Text, array, changed, count, object, raw, word};
use super::{Delta, Reply, Reported, Stop};
use crate::{Json, Kind};

/// Puts the events of a message together.
#[derive(Debug, Default)]
pub struct Anthropic {
    blocks: Vec<Block>,
    by_index: HashMap<u64, usize>,
    begun: bool,
    stopped: bool,
    reason: Option<String>,
    usage: Option<Reported>,
    model: Option<String>,
}

#[derive(Debug, Default)]
struct Block {
    /// As it came first.
    start: String,
    text: Text,
    thinking: Text,
    signature: Option<String>,
    input: Text,
    citations: Vec<String>,
    /// What the provider made of earlier messages, in two forms.
    compaction: [Option<String>; 2],
}

impl Anthropic {
    /// Takes an event, or a whole message.
    pub fn take(&mut self, name: &[u8], json: Json<'_>, hear: &mut Hear<'_>) {
        let keys = [
            "type",
            "message",
            "index",
            "content_block",
            "delta",
            "usage",
        ];
        let [kind, message, index, block, delta, usage] = json.pick(keys);
        let kind = kind.map(Json::name);
        match kind.as_deref().unwrap_or(name) {
            b"message_start" => {
                if let Some(message) = message {
                    self.message(message, hear);
                }
            }
            b"message" => {
                self.message(json, hear);
                self.stopped = true;
            }
            b"content_block_start" => {
                if let Some(block) = block {
                    self.by_index.insert(count(index), self.blocks.len());
                    self.blocks.push(Block::start(block, hear));
                }
            }
            b"content_block_delta" => {
                let at = self.by_index.get(&count(index)).copied();
                if let (Some(at), Some(delta)) = (at, delta) {
                    let last = at + 1 == self.blocks.len();
                    self.blocks[at].grow(delta, hear, last);
                }
            }
            b"message_delta" => {
                let reason = word(delta.and_then(|delta| delta.get("stop_reason")));
                self.reason = reason.or_else(|| self.reason.take());
                self.count(usage);
            }
            b"message_stop" => self.stopped = true,
            _ => {}
        }
    }

    /// Nothing of it is to come.
    pub fn is_complete(&self) -> bool {
        self.begun && self.stopped
    }

    fn message(&mut self, json: Json<'_>, hear: &mut Hear<'_>) {
        let [model, content, reason, usage] =
            json.pick(["model", "content", "stop_reason", "usage"]);
        self.begun = true;
        self.model = word(model);
        self.reason = word(reason);
        self.count(usage);
        for block in content.into_iter().flat_map(Json::elements) {
            self.blocks.push(Block::start(block, hear));
        }
    }

    /// Counts only grow, and what is not said again still holds.
    fn count(&mut self, usage: Option<Json<'_>>) {
        let Some(usage) = usage.filter(|usage| usage.kind() == Kind::Object) else {
            return;
        };
        let keys = [
            "input_tokens",
            "cache_read_input_tokens",
            "cache_creation_input_tokens",
            "output_tokens",
        ];
        let [input, read, write, output] = usage.pick(keys).map(count);
        let details = usage.get("output_tokens_details");
        let thinking = count(details.and_then(|details| details.get("thinking_tokens")));
        let known = self.usage.get_or_insert_default();
        known.input = known.input.max(input);
        known.cache_read = known.cache_read.max(read);
        known.cache_write = known.cache_write.max(write);
        known.output = known.output.max(output);
        known.reasoning = known.reasoning.max(thinking).min(known.output);
    }

    /// Returns the reply, if it is complete.
    pub fn end(self) -> Result<Reply, Missing> {
        if !self.begun {
            return Err(Missing::Everything);
        }
        if self.reason.is_none() && !self.stopped {
            return Err(Missing::End);
        }
        let blocks: Vec<String> = self.blocks.iter().filter_map(Block::written).collect();
        let message = array(&blocks).map(|blocks| {
            let role = Some("\"assistant\"".to_owned());
            object(&[("role", role), ("content", Some(blocks))]).into_bytes()
        });
        Ok(Reply {
            messages: message.into_iter().collect(),
            stop: match self.reason.as_deref() {
                None | Some("end_turn" | "stop_sequence") => Stop::End,
                Some("max_tokens" | "model_context_window_exceeded") => Stop::Length,
                Some("tool_use") => Stop::Calls,
                Some("refusal") => Stop::Declined,
                Some(other) => Stop::Other(other.to_owned()),
            },
            usage: self.usage,
            model: self.model,
            id: None,
        })
    }
}

/// The members that a compaction block grows by.
const COMPACTION: [&str; 2] = ["content", "encrypted_content"];

impl Block {
    fn start(json: Json<'_>, hear: &mut Hear<'_>) -> Block {
        let mut block = Block {
            start: raw(json),
            ..Block::default()
        };
        let keys = ["type", "text", "thinking", "signature", "citations", "name"];
        let [kind, text, thinking, signature, citations, name] = json.pick(keys);
        let kind = kind.map(Json::name).unwrap_or_default();
        let calls = kind.ends_with(b"tool_use");
        if calls {
            hear(Delta::Call(word(name).unwrap_or_default()));
        }
        match &*kind {
            b"text" => block.text.hear_some(text, hear, Delta::Text),
            b"thinking" => {
                block.thinking.hear_some(thinking, hear, Delta::Reasoning);
                block.signature = signature.map(raw);
            }
            _ => {}
        }
        let citations = citations.into_iter().flat_map(Json::elements);
        block.citations = citations.map(raw).collect();
        let input = json.get("input").filter(|_| calls);
        if let Some(input) = input.filter(|input| input.members().next().is_some()) {
            hear(Delta::Arguments(raw(input)));
        }
        block
    }

    fn grow(&mut self, delta: Json<'_>, hear: &mut Hear<'_>, last: bool) {
        let keys = ["text", "thinking", "signature", "partial_json", "citation"];
        let [text, thinking, signature, input, citation] = delta.pick(keys);
        self.text.hear_some(text, hear, Delta::Text);
        self.thinking.hear_some(thinking, hear, Delta::Reasoning);
        self.signature = signature.map(raw).or_else(|| self.signature.take());
        if crate::message::block_is(delta, "compaction_delta") {
            self.compaction = delta.pick(COMPACTION).map(|form| form.map(raw));
        }
        if let Some(input) = input {
            self.input.push(input);
            if last {
                self.input.tell(hear, Delta::Arguments);
            }
        }
        self.citations.extend(citation.map(raw));
    }

    /// The block as it would have come in one piece; none if it is a text without a character.
    fn written(&self) -> Option<String> {
        let start = Json::checked(self.start.as_bytes());
        let is = |name: &str| crate::message::block_is(start, name);
        let mut changes = Vec::new();
        if is("text") {
            // It would be refused when it is sent back.
            changes.push(("text", Some(self.text.some()?)));
            changes.push(("citations", array(&self.citations)));
        } else if is("thinking") {
            changes.push(("thinking", Some(self.thinking.raw())));
            changes.push(("signature", self.signature.clone()));
        } else if !self.input.is_empty() {
            changes.push(("input", Some(self.input.object())));
        }
        for (name, form) in COMPACTION.into_iter().zip(&self.compaction) {
            if form.is_some() {
                changes.push((name, form.clone()));
            }
        }
        Some(changed(start, &changes))
    }
}
