//! Messages in the form of another wire.
//!
//! What is native there passes byte for byte. The rest is taken apart and written anew, a
//! round at a time: a model's output (on Responses several items) and the results of its
//! calls. Reasoning never crosses: a provider takes back only its own. Whatever else cannot
//! be carried over is shown otherwise or left out, and [`Converter::lost`] says so.
//!
//! There and back the following may differ: texts of one message are joined by a line break
//! where a wire has one text; outputs in a row may become one; images that a tool result or
//! the assistant cannot hold follow in a user message; later system messages become user text
//! where the system prompt stands apart; calls without an id get one; an error mark is lost
//! where there is none.
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

pub(crate) mod ids;
mod words;
mod write;

use std::borrow::Cow;
use std::collections::BTreeMap;

use infold_log::Role;

use crate::said::{Block, Round, Said};
use crate::{EMPTY, Form, Item, Json, Message, MessageError, Wire, quote};
use ids::Ids;
use words::{Lost, lose};
use write::{Out, write};

/// Puts messages into the form of another wire, round by round; what is native passes byte for byte.
///
/// Memory is bounded by the largest round.
#[derive(Debug)]
pub struct Converter {
    to: Wire,
    round: Round,
    ids: Ids,
    lost: Lost,
    /// Nothing but the system prompt was said.
    leading: bool,
    /// An output that may go on, if it says anything yet.
    output: Option<Vec<Block<'static>>>,
    /// The last message was part of an output that may go on.
    open: bool,
    /// Results that wait for the others of their round.
    results: Vec<Block<'static>>,
    /// The only message with results so far, native, and the calls that they answer.
    native: Option<(Vec<u8>, Vec<Answered>)>,
    /// What the user says beside the results of a round.
    beside: Vec<Block<'static>>,
}

/// The id and the name of the call that a result answers, if it answers one.
type Answered = Option<(String, String)>;

impl Converter {
    /// Converts to this wire.
    pub fn new(to: Wire) -> Converter {
        Converter {
            to,
            round: Round::default(),
            ids: Ids::new(to),
            lost: BTreeMap::new(),
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
        let said = Said::of(&message);
        let answers = |block: &Block<'_>| matches!(block, Block::Result { .. });
        self.leading &= said.role == Role::System;
        match said.role {
            Role::Assistant => self.assistant(&message, said, out),
            _ if said.blocks.iter().any(answers) => self.answer(&message, said, out),
            _ => self.other(&message, said, out),
        }
        Ok(())
    }

    /// Hands over what is still held.
    pub fn finish(&mut self, out: &mut dyn FnMut(&[u8])) {
        self.end_round(out);
    }

    /// What could not be carried over, what became of it, and how often.
    pub fn lost(&self) -> &BTreeMap<&'static str, u64> {
        &self.lost
    }

    fn is_native(&self, message: &Message<'_>) -> bool {
        message.wires().has(self.to)
    }

    fn assistant(&mut self, message: &Message<'_>, said: Said<'_>, out: Out<'_>) {
        let item = matches!(message.form(), Form::Item(_));
        // Gemini wants calls right behind what they answer, so its outputs are always whole.
        let may_go_on = item || self.to == Wire::Gemini;
        if !(self.open && may_go_on) {
            self.end_round(out);
            self.round.clear();
        }
        self.open = may_go_on;
        if self.is_native(message) {
            self.end_output(out);
            for block in &said.blocks {
                if let Block::Call(id, name, _) = block {
                    self.round.next();
                    self.ids.note(id);
                    self.round.call(id, name, id.to_string());
                }
            }
            return out(message.bytes());
        }
        if self.to == Wire::Responses && message.form() == Form::Item(Item::Reasoning) {
            return lose(&mut self.lost, words::BARE);
        }
        self.metadata(message);
        let beside = self.beside.len();
        let mut blocks = self.spoken(Role::Assistant, said.blocks);
        // What says nothing once its reasoning is left out is an output all the same.
        let silent = blocks.iter().all(Block::is_blank) && self.beside.len() == beside;
        if silent && !item {
            blocks.push(self.nothing());
        }
        let output = self.output.get_or_insert_default();
        output.extend(blocks.into_iter().map(Block::into_owned));
        if !may_go_on {
            self.end_output(out);
        }
    }

    fn answer(&mut self, message: &Message<'_>, said: Said<'_>, out: Out<'_>) {
        self.open = false;
        self.end_output(out);
        let mut same = true;
        let mut answered = Vec::new();
        for block in &said.blocks {
            if let Block::Result { id, name, .. } = block {
                let made = self.round.answer(id, name);
                same &= made.is_none_or(|made| made.id == **id);
                answered.push(made.map(|made| (made.id.clone(), made.name.clone())));
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
                self.metadata(message);
                self.take(said, answered);
                if !together {
                    let results = std::mem::take(&mut self.results);
                    write(self.to, Role::User, &results, out);
                }
            }
        }
        if complete {
            self.end_round(out);
        }
    }

    /// Takes the held native message apart, because others join it.
    fn merge_native(&mut self) {
        if let Some((bytes, answered)) = self.native.take()
            && let Ok(message) = Message::read(&bytes)
        {
            self.metadata(&message);
            self.take(Said::of(&message), answered);
        }
    }

    /// Keeps the results of a message, and what is said beside them.
    fn take(&mut self, said: Said<'_>, answered: Vec<Answered>) {
        let mut answered = answered.into_iter();
        for block in said.blocks {
            let Block::Result {
                id,
                name,
                content,
                failed,
            } = block
            else {
                let said = self.spoken(said.role, vec![block]);
                self.beside.extend(said.into_iter().map(Block::into_owned));
                continue;
            };
            match answered.next().flatten() {
                Some((id, name)) => self.result(id, name, content, failed),
                None => self.orphan(if name == "\"\"" { &id } else { &name }, content),
            }
        }
    }

    fn result(&mut self, id: String, name: String, content: Vec<Block<'_>>, failed: bool) {
        let keeps_images = matches!(self.to, Wire::Anthropic | Wire::Responses);
        let marks = matches!(self.to, Wire::Anthropic | Wire::Gemini);
        if failed && !marks {
            lose(&mut self.lost, words::ERROR);
        }
        let said = self.spoken(Role::User, content);
        let is_image = |block: &Block<'_>| matches!(block, Block::Image(..) | Block::Link(_));
        let (images, mut content): (Vec<_>, Vec<_>) = said
            .into_iter()
            .map(Block::into_owned)
            .partition(|block| is_image(block) && !keeps_images);
        if !images.is_empty() {
            let tool = Json::checked(name.as_bytes()).text().unwrap_or_default();
            let label = quote(&format!("[image from the result of {tool}]"));
            if content.is_empty() {
                content.push(Block::Text("\"[the image follows]\"".into()));
            }
            self.beside.push(Block::Text(label.into()));
            for image in images {
                lose(&mut self.lost, words::RESULT_IMAGE);
                self.beside.push(image);
            }
        }
        self.results.push(Block::Result {
            id: Cow::Owned(id),
            name: Cow::Owned(name),
            content,
            failed,
        });
    }

    /// A result that answers nothing is text.
    fn orphan(&mut self, of: &str, content: Vec<Block<'_>>) {
        lose(&mut self.lost, words::ORPHAN);
        let of = Json::checked(of.as_bytes()).text().unwrap_or_default();
        let label = quote(&format!("[result of {of}]"));
        self.beside.push(Block::Text(label.into()));
        let said = self.spoken(Role::User, content);
        self.beside.extend(said.into_iter().map(Block::into_owned));
    }

    fn other(&mut self, message: &Message<'_>, said: Said<'_>, out: Out<'_>) {
        self.end_round(out);
        self.open = false;
        if self.is_native(message) {
            return out(message.bytes());
        }
        self.metadata(message);
        let silent = said.blocks.iter().all(Block::is_blank);
        let mut role = said.role;
        let mut blocks = self.spoken(role, said.blocks);
        if silent {
            blocks.push(self.nothing());
        }
        if role == Role::System && self.to.system_apart() && !self.leading {
            lose(&mut self.lost, words::SYSTEM);
            blocks.insert(0, Block::Text("\"[system message]\"".into()));
            role = Role::User;
        }
        if !blocks.is_empty() {
            write(self.to, role, &blocks, out);
        }
        self.end_round(out);
    }

    fn nothing(&mut self) -> Block<'static> {
        lose(&mut self.lost, words::NOTHING);
        Block::Text(quote(EMPTY).into())
    }

    /// What of some blocks somebody can say on this wire; images that he cannot show wait.
    fn spoken<'a>(&mut self, role: Role, blocks: Vec<Block<'a>>) -> Vec<Block<'a>> {
        let mut said = Vec::with_capacity(blocks.len());
        let shows = role == Role::User || role == Role::Assistant && self.to == Wire::Gemini;
        for block in blocks {
            match block {
                block if block.is_empty() => {}
                block if block.is_blank() && self.to == Wire::Anthropic => {}
                Block::Thinking(..) => lose(&mut self.lost, words::REASONING),
                Block::Call(given, name, input) => {
                    let id = self.give_id(&given, &name);
                    said.push(Block::Call(id.into(), name, input));
                }
                Block::Link(url) if self.to == Wire::Ollama => {
                    lose(&mut self.lost, words::ADDRESS);
                    said.push(Block::Text(url));
                }
                image @ (Block::Image(..) | Block::Link(_)) if !shows => {
                    lose(&mut self.lost, words::MOVED_IMAGE);
                    self.beside.push(image.into_owned());
                }
                Block::Other(raw) => {
                    let shown = words::stand_in(&raw, &mut self.lost);
                    said.extend(shown);
                }
                // A result where none belongs.
                Block::Result { id, content, .. } => self.orphan(&id, content),
                block => said.push(block),
            }
        }
        said
    }

    fn give_id(&mut self, given: &str, name: &str) -> String {
        let number = self.round.next();
        let id = self.ids.give(given, number, self.round.has(given));
        if id != given && given != "\"\"" {
            lose(&mut self.lost, words::ID);
        }
        self.round.call(given, name, id.clone());
        id
    }

    /// Counts what stands beside what is said.
    fn metadata(&mut self, message: &Message<'_>) {
        let json = message.json();
        if message.role() != Role::Tool && json.get("role").is_some() {
            let [name, audio] = json.pick(["name", "audio"]);
            if name.is_some_and(|name| !name.is_null()) {
                lose(&mut self.lost, words::SPEAKER);
            }
            if audio.is_some_and(|audio| !audio.is_null()) {
                let named = words::stand_in("{\"type\":\"audio\"}", &mut self.lost);
                self.beside.extend(named);
            }
        }
        for block in message.blocks() {
            let cited = block.pick(["citations", "annotations"]);
            let mut cited = cited.into_iter().flatten().flat_map(Json::elements);
            if cited.next().is_some() {
                lose(&mut self.lost, words::CITATIONS);
            }
        }
    }

    /// Hands over the output that is held.
    fn end_output(&mut self, out: Out<'_>) {
        if let Some(blocks) = self.output.take().filter(|blocks| !blocks.is_empty()) {
            write(self.to, Role::Assistant, &blocks, out);
        }
    }

    /// Hands over a round: its output, its results, and what the user says beside them.
    fn end_round(&mut self, out: Out<'_>) {
        self.end_output(out);
        if let Some((bytes, _)) = self.native.take() {
            out(&bytes);
        }
        let mut said = std::mem::take(&mut self.results);
        said.append(&mut self.beside);
        if !said.is_empty() {
            write(self.to, Role::User, &said, out);
        }
    }
}
