//! Converts messages to the form of another wire.
//!
//! Native messages pass byte for byte. The others are read into the neutral form and written anew, a round at a time: a
//! model's output (on Responses several items) and the results of its calls. Reasoning is left out: a provider accepts
//! only its own. Other content that the wire does not have is shown in another form or left out, and
//! [`Converter::losses`] counts it.
//!
//! A conversion there and back may change this: texts of one message are joined by a line break
//! where a wire has one text; outputs in a row may become one; images that a tool result or
//! the assistant cannot hold follow in a user message; later system messages become user text
//! where the system prompt is separate; calls without an id get one; error marks are lost
//! where a wire has none.
//!
//! ```
//! use infold_wire::{Converter, Wire};
//!
//! let mut converter = Converter::new(Wire::Gemini);
//! let mut shown = Vec::new();
//! let mut out = |message: &[u8]| shown.push(String::from_utf8_lossy(message).into_owned());
//! converter.push(br#"{"role":"user","content":"name it"}"#, &mut out)?;
//! converter.finish(&mut out);
//! assert_eq!(shown, [r#"{"role":"user","parts":[{"text":"name it"}]}"#]);
//! # Ok::<(), infold_wire::MessageError>(())
//! ```

mod losses;
mod write;

use std::borrow::Cow;
use std::collections::BTreeMap;

use infold_log::Role;

use crate::call_ids::CallIds;
use crate::neutral::{CallRound, NeutralBlock, NeutralMessage};
use crate::render::{CONTEXT_HEAD, CONTEXT_TAIL, EMPTY_PLACEHOLDER, RECALLED_HEAD};
use crate::{Form, Item, Json, Message, MessageError, Wire, quote};
use losses::{Losses, count_loss};
use write::{MessageSink, write_blocks};

/// Converts messages to the form of another wire. Its memory is bounded by the largest round.
#[derive(Debug)]
pub struct Converter {
    to: Wire,
    round: CallRound,
    ids: CallIds,
    losses: Losses,
    /// Whether all messages so far were system messages.
    leading: bool,
    /// The blocks of an output that may continue.
    output: Option<Vec<NeutralBlock<'static>>>,
    /// Whether the last message was part of an output that may continue.
    open: bool,
    /// Results that wait for the others of their round.
    results: Vec<NeutralBlock<'static>>,
    /// The only message with results so far if it is native, and the calls that they answer.
    native: Option<(Vec<u8>, Vec<CallWithResult>)>,
    /// User content beside the results of a round.
    beside: Vec<NeutralBlock<'static>>,
}

/// The id and the name of the call that a result answers, if it answers one.
type CallWithResult = Option<(String, String)>;

impl Converter {
    /// Creates a converter to a wire.
    pub fn new(to: Wire) -> Converter {
        Converter {
            to,
            round: CallRound::default(),
            ids: CallIds::new(to),
            losses: BTreeMap::new(),
            leading: true,
            output: None,
            open: false,
            results: Vec::new(),
            native: None,
            beside: Vec::new(),
        }
    }

    /// Takes the next message; `out` gets every message that is ready, in order.
    pub fn push(&mut self, message: &[u8], out: &mut dyn FnMut(&[u8])) -> Result<(), MessageError> {
        let message = Message::read(message)?;
        let neutral = NeutralMessage::of(&message);
        let is_result = |block: &NeutralBlock<'_>| matches!(block, NeutralBlock::Result { .. });
        self.leading &= neutral.role == Role::System;
        match neutral.role {
            Role::Assistant => self.push_output(&message, neutral, out),
            _ if neutral.blocks.iter().any(is_result) => self.push_results(&message, neutral, out),
            _ => self.push_other(&message, neutral, out),
        }
        Ok(())
    }

    /// Writes the messages that are still held.
    pub fn finish(&mut self, out: &mut dyn FnMut(&[u8])) {
        self.end_round(out);
    }

    /// Returns the kinds of content that were changed or left out, and how often.
    pub fn losses(&self) -> &BTreeMap<&'static str, u64> {
        &self.losses
    }

    fn lose(&mut self, loss: &'static str) {
        count_loss(&mut self.losses, loss);
    }

    fn is_native(&self, message: &Message<'_>) -> bool {
        message.wires().has(self.to)
    }

    fn push_output(
        &mut self,
        message: &Message<'_>,
        neutral: NeutralMessage<'_>,
        out: MessageSink<'_>,
    ) {
        let item = matches!(message.form(), Form::Item(_));
        // Gemini requires calls directly behind the messages that they answer, so its outputs are always whole.
        let may_continue = item || self.to == Wire::Gemini;
        if !(self.open && may_continue) {
            self.end_round(out);
            self.round.clear();
        }
        self.open = may_continue;
        if self.is_native(message) {
            self.end_output(out);
            for block in &neutral.blocks {
                if let NeutralBlock::Call(id, name, _) = block {
                    self.round.count_call();
                    self.ids.record(id);
                    self.round.add_call(id, name, id.to_string());
                }
            }
            return out(message.bytes());
        }
        if self.to == Wire::Responses && message.form() == Form::Item(Item::Reasoning) {
            return self.lose(losses::BARE_REASONING);
        }
        self.count_metadata(message);
        let beside = self.beside.len();
        let mut blocks = self.convert_blocks(Role::Assistant, neutral.blocks);
        // An output that is empty without its reasoning is shown as one.
        let is_empty = blocks.iter().all(NeutralBlock::is_blank) && self.beside.len() == beside;
        if is_empty && !item {
            blocks.push(self.placeholder());
        }
        let output = self.output.get_or_insert_default();
        output.extend(blocks.into_iter().map(NeutralBlock::into_owned));
        if !may_continue {
            self.end_output(out);
        }
    }

    fn push_results(
        &mut self,
        message: &Message<'_>,
        neutral: NeutralMessage<'_>,
        out: MessageSink<'_>,
    ) {
        self.open = false;
        self.end_output(out);
        let mut same = true;
        let mut answered = Vec::new();
        for block in &neutral.blocks {
            if let NeutralBlock::Result { id, name, .. } = block {
                let call = self.round.answer(id, name);
                same &= call.is_none_or(|call| call.id == **id);
                answered.push(call.map(|call| (call.id.clone(), call.name.clone())));
            }
        }
        let complete = self.round.is_answered();
        let native = same && self.is_native(message);
        let together = matches!(self.to, Wire::Anthropic | Wire::Gemini);
        let first = self.results.is_empty() && self.native.is_none();
        match (native, together) {
            (true, false) => out(message.bytes()),
            (true, true) if first && complete => out(message.bytes()),
            (true, true) if first => self.native = Some((message.bytes().to_vec(), answered)),
            _ => {
                self.merge_native();
                self.count_metadata(message);
                let neutral = if together {
                    neutral
                } else {
                    with_excerpts_in_result(neutral)
                };
                self.add_results(neutral, answered);
                if !together {
                    let results = std::mem::take(&mut self.results);
                    write_blocks(self.to, Role::User, &results, out);
                }
            }
        }
        if complete {
            self.end_round(out);
        }
    }

    fn merge_native(&mut self) {
        if let Some((bytes, answered)) = self.native.take()
            && let Ok(message) = Message::read(&bytes)
        {
            self.count_metadata(&message);
            self.add_results(NeutralMessage::of(&message), answered);
        }
    }

    fn add_results(&mut self, neutral: NeutralMessage<'_>, answered: Vec<CallWithResult>) {
        let mut answered = answered.into_iter();
        for block in neutral.blocks {
            let NeutralBlock::Result {
                id,
                name,
                content,
                failed,
            } = block
            else {
                self.add_beside(neutral.role, vec![block]);
                continue;
            };
            match answered.next().flatten() {
                Some((id, name)) => self.add_result(id, name, content, failed),
                None => self.add_orphan(if name == "\"\"" { &id } else { &name }, content),
            }
        }
    }

    fn add_beside(&mut self, role: Role, blocks: Vec<NeutralBlock<'_>>) {
        let blocks = self.convert_blocks(role, blocks).into_iter();
        self.beside.extend(blocks.map(NeutralBlock::into_owned));
    }

    fn add_result(
        &mut self,
        id: String,
        name: String,
        content: Vec<NeutralBlock<'_>>,
        failed: bool,
    ) {
        let keeps_images = matches!(self.to, Wire::Anthropic | Wire::Responses);
        let has_error_mark = matches!(self.to, Wire::Anthropic | Wire::Gemini);
        if failed && !has_error_mark {
            self.lose(losses::ERROR_MARK);
        }
        let content = self.convert_blocks(Role::User, content).into_iter();
        let is_image = |block: &NeutralBlock<'_>| {
            matches!(block, NeutralBlock::Image(..) | NeutralBlock::Link(_))
        };
        let (images, mut content): (Vec<_>, Vec<_>) = content
            .map(NeutralBlock::into_owned)
            .partition(|block| is_image(block) && !keeps_images);
        if !images.is_empty() {
            let tool = Json::checked(name.as_bytes()).text().unwrap_or_default();
            let label = quote(&format!("[image from the result of {tool}]"));
            if content.is_empty() {
                content.push(NeutralBlock::Text("\"[the image follows]\"".into()));
            }
            self.beside.push(NeutralBlock::Text(label.into()));
            for image in images {
                self.lose(losses::RESULT_IMAGE);
                self.beside.push(image);
            }
        }
        self.results.push(NeutralBlock::Result {
            id: Cow::Owned(id),
            name: Cow::Owned(name),
            content,
            failed,
        });
    }

    fn add_orphan(&mut self, call: &str, content: Vec<NeutralBlock<'_>>) {
        self.lose(losses::ORPHAN);
        let call = Json::checked(call.as_bytes()).text().unwrap_or_default();
        let label = quote(&format!("[result of {call}]"));
        self.beside.push(NeutralBlock::Text(label.into()));
        self.add_beside(Role::User, content);
    }

    fn push_other(
        &mut self,
        message: &Message<'_>,
        neutral: NeutralMessage<'_>,
        out: MessageSink<'_>,
    ) {
        self.end_round(out);
        self.open = false;
        if self.is_native(message) {
            return out(message.bytes());
        }
        self.count_metadata(message);
        let is_blank = neutral.blocks.iter().all(NeutralBlock::is_blank);
        let mut role = neutral.role;
        let mut blocks = self.convert_blocks(role, neutral.blocks);
        if is_blank {
            blocks.push(self.placeholder());
        }
        if role == Role::System && self.to.has_separate_system_prompt() && !self.leading {
            self.lose(losses::SYSTEM_MESSAGE);
            blocks.insert(0, NeutralBlock::Text("\"[system message]\"".into()));
            role = Role::User;
        }
        if !blocks.is_empty() {
            write_blocks(self.to, role, &blocks, out);
        }
        self.end_round(out);
    }

    fn placeholder(&mut self) -> NeutralBlock<'static> {
        self.lose(losses::EMPTY_MESSAGE);
        NeutralBlock::Text(quote(EMPTY_PLACEHOLDER).into())
    }

    /// Converts blocks to those that the wire has; images that this role cannot hold move to the user.
    fn convert_blocks<'a>(
        &mut self,
        role: Role,
        blocks: Vec<NeutralBlock<'a>>,
    ) -> Vec<NeutralBlock<'a>> {
        let mut converted = Vec::with_capacity(blocks.len());
        let holds_images = role == Role::User || role == Role::Assistant && self.to == Wire::Gemini;
        for block in blocks {
            match block {
                block if block.is_empty() => {}
                block if block.is_blank() && self.to == Wire::Anthropic => {}
                NeutralBlock::Thinking(..) => self.lose(losses::REASONING),
                NeutralBlock::Call(given, name, input) => {
                    let id = self.assign_id(&given, &name);
                    converted.push(NeutralBlock::Call(id.into(), name, input));
                }
                NeutralBlock::Link(url) if self.to == Wire::Ollama => {
                    self.lose(losses::IMAGE_URL);
                    converted.push(NeutralBlock::Text(url));
                }
                image @ (NeutralBlock::Image(..) | NeutralBlock::Link(_)) if !holds_images => {
                    self.lose(losses::MOVED_IMAGE);
                    self.beside.push(image.into_owned());
                }
                NeutralBlock::Other(raw) => {
                    converted.extend(losses::replacement(&raw, &mut self.losses));
                }
                // A result in a message that holds no results.
                NeutralBlock::Result { id, content, .. } => self.add_orphan(&id, content),
                block => converted.push(block),
            }
        }
        converted
    }

    fn assign_id(&mut self, given: &str, name: &str) -> String {
        let number = self.round.count_call();
        let id = self.ids.assign(given, number, self.round.has(given));
        if id != given && given != "\"\"" {
            self.lose(losses::CALL_ID);
        }
        self.round.add_call(given, name, id.clone());
        id
    }

    /// Counts the members and annotations that are left out.
    fn count_metadata(&mut self, message: &Message<'_>) {
        let json = message.json();
        if message.role() != Role::Tool && json.get("role").is_some() {
            let [name, audio] = json.pick(["name", "audio"]);
            if name.is_some_and(|name| !name.is_null()) {
                self.lose(losses::SPEAKER_NAME);
            }
            if audio.is_some_and(|audio| !audio.is_null()) {
                let text = losses::replacement("{\"type\":\"audio\"}", &mut self.losses);
                self.beside.extend(text);
            }
        }
        for block in message.blocks() {
            let cited = block.pick(["citations", "annotations"]);
            let mut cited = cited.into_iter().flatten().flat_map(Json::elements);
            if cited.next().is_some() {
                self.lose(losses::CITATIONS);
            }
        }
    }

    fn end_output(&mut self, out: MessageSink<'_>) {
        if let Some(blocks) = self.output.take().filter(|blocks| !blocks.is_empty()) {
            write_blocks(self.to, Role::Assistant, &blocks, out);
        }
    }

    /// Writes a round: its output, its results, and the user content beside them.
    fn end_round(&mut self, out: MessageSink<'_>) {
        self.end_output(out);
        if let Some((bytes, _)) = self.native.take() {
            out(&bytes);
        }
        let mut blocks = std::mem::take(&mut self.results);
        blocks.append(&mut self.beside);
        if !blocks.is_empty() {
            write_blocks(self.to, Role::User, &blocks, out);
        }
    }
}

/// Makes recalled excerpts and parts of the layered state behind tool results a part of the last result: where results are messages
/// of their own, they would become a message that the user never wrote.
fn with_excerpts_in_result(mut neutral: NeutralMessage<'_>) -> NeutralMessage<'_> {
    let is_excerpt = |block: &NeutralBlock<'_>| match block {
        NeutralBlock::Text(text) => is_added_text(text),
        _ => false,
    };
    let (excerpts, mut blocks): (Vec<_>, Vec<_>) = neutral.blocks.into_iter().partition(is_excerpt);
    let last = blocks.iter_mut().rev().find_map(|block| match block {
        NeutralBlock::Result { content, .. } => Some(content),
        _ => None,
    });
    match last {
        Some(content) => content.extend(excerpts),
        None => blocks.extend(excerpts),
    }
    neutral.blocks = blocks;
    neutral
}

/// Says whether a text, a JSON string, was added behind a message by [`crate::append_text`].
fn is_added_text(quoted: &str) -> bool {
    let (head, tail) = (quote(CONTEXT_HEAD), quote(CONTEXT_TAIL));
    quoted.starts_with(&format!("\"{RECALLED_HEAD}"))
        || quoted.starts_with(&head[..head.len() - 1]) && quoted.ends_with(&tail[1..])
}
